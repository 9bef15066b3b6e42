"""Reading flat trees: from LightGBM and CatBoost as they are, and damaged or foreign models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st

from premortem.errors import InvalidInput
from premortem.models.flat_readers import (
    flat_from_catboost,
    flat_from_lightgbm,
    flat_from_xgboost,
)

WIDTH = 9


def sample(rows: int = 500, seed: int = 1, *, gaps: bool = True) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, WIDTH)).astype(np.float32).round(1)
    scores = values[:, 0] * values[:, 1] + values[:, 2:].sum(axis=1)
    outcomes = (scores + rng.normal(size=rows) > 0).astype(int)
    if gaps:
        values[rng.random(values.shape) < 0.15] = np.nan
    values[:, -1] = 5.0
    return values, outcomes


def unlike_training() -> np.ndarray:
    values, _ = sample(100, seed=2)
    values[0], values[1], values[2] = np.nan, 0.0, -0.0
    values[3], values[4] = np.inf, -np.inf
    values[5], values[6] = 1e-36, -1e-34
    return values


def with_a_category() -> tuple[np.ndarray, np.ndarray]:
    """Rows of which the first column decides, in no order of its numbers."""
    values, _ = sample(gaps=False)
    values[:, 0] = np.arange(len(values)) % 6
    return values, np.isin(values[:, 0], [1, 4]).astype(int)


class TestLightgbm:
    @staticmethod
    def trained(*, gaps: bool = True, **parameters: Any) -> lightgbm.Booster:
        values, outcomes = sample(gaps=gaps)
        chosen = {"objective": "binary", "verbose": -1, "num_threads": 1, **parameters}
        return lightgbm.train(chosen, lightgbm.Dataset(values, outcomes), num_boost_round=9)

    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"gaps": False},
            {"num_leaves": 90, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0},
            {"num_leaves": 2},
            {"zero_as_missing": True},
            {"use_missing": False},
            {"min_data_in_leaf": 10_000},
        ],
        ids=str,
    )
    def test_everything_is_the_same(self, parameters: dict[str, Any]) -> None:
        booster = self.trained(**parameters)
        model, rows = flat_from_lightgbm(booster.dump_model()), unlike_training()
        np.testing.assert_allclose(
            model.margins(rows), booster.predict(rows, raw_score=True), atol=1e-12
        )
        np.testing.assert_allclose(model.risk(rows), booster.predict(rows), atol=1e-12)
        np.testing.assert_allclose(
            model.contributions(rows), booster.predict(rows, pred_contrib=True), atol=1e-10
        )
        np.testing.assert_allclose(model.importance(), booster.feature_importance("gain"))

    def test_margins_are_log_odds_whatever_the_sigmoid(self) -> None:
        booster, rows = self.trained(sigmoid=2.5), unlike_training()
        model = flat_from_lightgbm(booster.dump_model())
        np.testing.assert_allclose(model.risk(rows), booster.predict(rows), atol=1e-12)
        np.testing.assert_allclose(
            model.contributions(rows).sum(axis=1), model.margins(rows), atol=1e-12
        )

    @pytest.mark.parametrize(
        ("parameters", "word"),
        [
            ({"objective": "multiclass", "num_class": 2}, "binary, not multiclass"),
            ({"objective": "regression"}, "binary, not regression"),
            ({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, "boosted"),
            ({"linear_tree": True, "gaps": False}, "linear"),
        ],
    )
    def test_others_are_refused(self, parameters: dict[str, Any], word: str) -> None:
        with pytest.raises(InvalidInput, match=word):
            flat_from_lightgbm(self.trained(**parameters).dump_model())

    def test_categories_are_refused(self) -> None:
        values, outcomes = with_a_category()
        data = lightgbm.Dataset(values, outcomes, categorical_feature=[0])
        booster = lightgbm.train({"objective": "binary", "verbose": -1, "num_threads": 1}, data, 2)
        with pytest.raises(InvalidInput, match="categories"):
            flat_from_lightgbm(booster.dump_model())

    def test_zero_cannot_be_missing_for_a_part_of_the_splits(self) -> None:
        dumped = self.trained(zero_as_missing=True).dump_model()
        dumped["tree_info"][0]["tree_structure"]["missing_type"] = "NaN"
        with pytest.raises(InvalidInput, match="zero is missing for some"):
            flat_from_lightgbm(dumped)

    def test_what_is_missing_is_named(self) -> None:
        dumped = self.trained().dump_model()
        del dumped["tree_info"][3]["tree_structure"]["threshold"]
        with pytest.raises(InvalidInput, match="no LightGBM model: there is no 'threshold'"):
            flat_from_lightgbm(dumped)


class TestCatboost:
    @staticmethod
    def trained(
        folder: Path, *, gaps: bool = True, **parameters: Any
    ) -> tuple[catboost.CatBoostClassifier, dict[str, Any]]:
        values, outcomes = sample(gaps=gaps)
        chosen = {"iterations": 9, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
        model = catboost.CatBoostClassifier(**chosen, **parameters).fit(values, outcomes)
        model.save_model(folder / "model.json", format="json")
        return model, json.loads((folder / "model.json").read_text())

    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"gaps": False},
            {"nan_mode": "Max"},
            {"depth": 1},
            {"depth": 9},
            {"boost_from_average": True, "loss_function": "CrossEntropy"},
        ],
        ids=str,
    )
    def test_everything_is_the_same(self, tmp_path: Path, parameters: dict[str, Any]) -> None:
        theirs, dumped = self.trained(tmp_path, **parameters)
        model, rows = flat_from_catboost(dumped), unlike_training()
        np.testing.assert_allclose(
            model.margins(rows), theirs.predict(rows, prediction_type="RawFormulaVal"), atol=1e-12
        )
        np.testing.assert_allclose(model.risk(rows), theirs.predict_proba(rows)[:, 1], atol=1e-12)
        reasons = theirs.get_feature_importance(catboost.Pool(rows), type="ShapValues")
        np.testing.assert_allclose(model.contributions(rows), reasons, atol=1e-10)
        importance = theirs.get_feature_importance(type="PredictionValuesChange")
        np.testing.assert_allclose(
            model.importance() * 100 / model.importance().sum(), importance, atol=1e-9
        )

    @pytest.mark.parametrize(
        ("parameters", "word"),
        [
            ({"grow_policy": "Depthwise"}, "symmetric"),
            ({"loss_function": "MultiClass"}, "Logloss, not of MultiClass"),
        ],
    )
    def test_others_are_refused(
        self, tmp_path: Path, parameters: dict[str, Any], word: str
    ) -> None:
        with pytest.raises(InvalidInput, match=word):
            flat_from_catboost(self.trained(tmp_path, **parameters)[1])

    def test_categories_are_refused(self, tmp_path: Path) -> None:
        values, outcomes = with_a_category()
        mixed = [[str(row[0]), *map(float, row[1:])] for row in values]
        model = catboost.CatBoostClassifier(
            iterations=5, verbose=0, thread_count=1, allow_writing_files=False, cat_features=[0]
        ).fit(mixed, outcomes)
        model.save_model(tmp_path / "model.json", format="json")
        with pytest.raises(InvalidInput, match="categories"):
            flat_from_catboost(json.loads((tmp_path / "model.json").read_text()))

    @pytest.mark.parametrize(
        ("harm", "word"),
        [
            (lambda m: m["oblivious_trees"][0]["leaf_values"].pop(), "expected 64 leaves"),
            (lambda m: m.pop("scale_and_bias"), "scale_and_bias"),
            (lambda m: m["features_info"]["float_features"].pop(0), "no 0 in it"),
        ],
    )
    def test_damage_is_named(
        self, tmp_path: Path, harm: Callable[[Any], object], word: str
    ) -> None:
        _, dumped = self.trained(tmp_path)
        harm(dumped)
        with pytest.raises(InvalidInput, match=word):
            flat_from_catboost(dumped)


def xgboost_model(rounds: int = 3, **parameters: Any) -> dict[str, Any]:
    values, outcomes = sample()
    chosen = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3, **parameters}
    booster = xgboost.train(chosen, xgboost.DMatrix(values, label=outcomes), num_boost_round=rounds)
    found: dict[str, Any] = json.loads(booster.save_raw("json"))
    return found


def tree(model: dict[str, Any], n: int = 1) -> Any:
    return model["learner"]["gradient_booster"]["model"]["trees"][n]


def put(values: Any, k: int, value: object) -> None:
    values[k] = value


XGBOOST_HARMS: list[tuple[Callable[[Any], object], str]] = [
    (lambda m: m.pop("learner"), "no 'learner' in it"),
    (lambda m: tree(m).pop("sum_hessian"), "no 'sum_hessian' in it"),
    (lambda m: tree(m)["sum_hessian"].pop(), "tree 1 does not tell the cover"),
    (lambda m: put(tree(m)["sum_hessian"], 2, -1.0), "tree 1 has a node whose cover"),
    (lambda m: put(tree(m)["left_children"], 1, 99), "tree 1 has a node whose children"),
    (lambda m: put(tree(m)["left_children"], 1, 0), "tree 1 has a node whose children"),
    (lambda m: put(tree(m)["left_children"], 1, -1), "tree 1 has a node whose children"),
    (lambda m: put(tree(m)["left_children"], 1, 2), "tree 1 has a node with two parents"),
    (lambda m: put(tree(m)["split_indices"], 0, 9), "tree 1 asks for a column outside"),
    (lambda m: put(tree(m)["split_indices"], 0, -1), "tree 1 asks for a column outside"),
    (lambda m: put(tree(m)["split_conditions"], 0, None), "tree 1 has a split at no number"),
    (lambda m: put(tree(m)["split_conditions"], -1, float("nan")), "tree 1 has a leaf"),
    (lambda m: put(tree(m)["split_conditions"], 0, "wide"), "could not convert"),
    (lambda m: put(tree(m)["split_type"], 0, 1), "categories"),
    (lambda m: m["learner"]["gradient_booster"]["model"].update(trees=[]), "no trees"),
    (lambda m: m["learner"]["gradient_booster"]["model"].update(trees=7), "not iterable"),
    (lambda m: m["learner"]["learner_model_param"].update(num_feature="0"), "columns, not 0"),
    (lambda m: m["learner"]["learner_model_param"].update(num_feature=10**9), "columns, not"),
    (lambda m: m["learner"]["learner_model_param"].update(base_score="[1,2]"), "base_score"),
    (lambda m: m["learner"]["learner_model_param"].update(base_score="1.5"), "base_score"),
]


class TestXgboost:
    @pytest.mark.parametrize("raw", [b"", b"\xff\x00", "{", "[]", "null", "7", '{"learner": 3}'])
    def test_what_is_no_model_is_refused(self, raw: bytes | str) -> None:
        with pytest.raises(InvalidInput, match="no XGBoost model"):
            flat_from_xgboost(raw)

    @pytest.mark.parametrize(("harm", "word"), XGBOOST_HARMS)
    def test_damage_is_named(self, harm: Callable[[Any], object], word: str) -> None:
        model = xgboost_model()
        harm(model)
        with pytest.raises(InvalidInput, match=word):
            flat_from_xgboost(json.dumps(model))

    @pytest.mark.parametrize(
        ("parameters", "word"),
        [
            ({"objective": "reg:squarederror"}, "not of reg:squarederror"),
            ({"objective": "multi:softprob", "num_class": 3}, "not of multi:softprob"),
            ({"booster": "dart"}, "gbtree, not of dart"),
            ({"booster": "gblinear", "max_depth": None}, "gbtree, not of gblinear"),
        ],
    )
    def test_others_are_refused(self, parameters: dict[str, Any], word: str) -> None:
        with pytest.raises(InvalidInput, match=word):
            flat_from_xgboost(json.dumps(xgboost_model(**parameters)))

    def test_categories_are_refused(self) -> None:
        values, outcomes = with_a_category()
        kinds = ["c"] + ["q"] * (WIDTH - 1)
        data = xgboost.DMatrix(values, label=outcomes, feature_types=kinds)
        booster = xgboost.train({"objective": "binary:logistic"}, data, num_boost_round=1)
        with pytest.raises(InvalidInput, match="categories"):
            flat_from_xgboost(booster.save_raw("json"))

    @pytest.mark.parametrize("written", ["2.5E-1", "[2.5E-1]", 0.25])
    def test_the_base_score_is_a_probability_in_any_spelling(self, written: object) -> None:
        model = xgboost_model(rounds=1, gamma=1e9)
        model["learner"]["learner_model_param"]["base_score"] = written
        leaf = tree(model, 0)["split_conditions"][0]
        margin = flat_from_xgboost(json.dumps(model)).margins(unlike_training())
        np.testing.assert_allclose(margin, np.log(0.25 / 0.75) + leaf)

    @settings(max_examples=60, deadline=None)
    @given(data=st.data())
    def test_no_damage_goes_further_than_a_word(self, data: st.DataObject) -> None:
        """One number anywhere in a tree is changed: there is a score, or a refusal."""
        model = json.loads(json.dumps(self.small()))
        chosen = data.draw(st.sampled_from(["left_children", "right_children", "split_indices"]))
        values = tree(model, data.draw(st.integers(0, 2)))[chosen]
        values[data.draw(st.integers(0, len(values) - 1))] = data.draw(
            st.integers(-3, 20) | st.sampled_from([2**31 - 1, 2**40, -(2**63), 2**64])
        )
        try:
            found = flat_from_xgboost(json.dumps(model))
        except InvalidInput:
            return
        assert np.isfinite(found.contributions(unlike_training())).all()

    made: dict[str, Any] | None = None

    @classmethod
    def small(cls) -> dict[str, Any]:
        cls.made = cls.made or xgboost_model()
        return cls.made
