"""Flat trees from what XGBoost, LightGBM and CatBoost write themselves; none is imported here.

Each reader refuses what the flat trees cannot say: splits on categories, more than two outcomes,
trees that are weighted or hold formulas, and objectives whose scores are not log odds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from premortem.errors import InvalidInput
from premortem.models.flat import FlatTrees, TreeTable
from premortem.models.port import Array

_XGBOOST_OBJECTIVES = ("binary:logistic", "reg:logistic")
_CATBOOST_LOSSES = ("Logloss", "CrossEntropy")
_PROPERTIES = {
    "left": np.int64,
    "right": np.int64,
    "column": np.int64,
    "limit": np.float64,
    "missing_left": np.bool_,
    "cover": np.float64,
    "gain": np.float64,
    "value": np.float64,
}
_DOWN = np.float32(-np.inf)


def flat_from_xgboost(raw_json: bytes | str) -> FlatTrees:
    """The trees of `Booster.save_raw("json")`; all of them, even beyond the best round."""
    with _reading("XGBoost"):
        learner = json.loads(raw_json)["learner"]
        objective = learner["objective"]["name"]
        if objective not in _XGBOOST_OBJECTIVES:
            raise InvalidInput(f"expected a model of binary:logistic, not of {objective}")
        booster = learner["gradient_booster"]
        if booster["name"] != "gbtree":
            raise InvalidInput(f"expected a model of gbtree, not of {booster['name']}")
        about = learner["learner_model_param"]
        if int(about["num_class"]) > 1 or int(about.get("num_target", 1)) > 1:
            raise InvalidInput("expected a model of two outcomes, not of more")
        trees = [_xgboost_tree(tree) for tree in booster["model"]["trees"]]
        return FlatTrees(
            _table(trees), width=int(about["num_feature"]), base=_log_odds(about["base_score"])
        )


def _xgboost_tree(tree: Mapping[str, Any]) -> dict[str, Any]:
    if any(tree["split_type"]):
        raise InvalidInput("the model splits on categories: train it on numbers only")
    at = np.asarray(tree["split_conditions"], dtype=np.float32)
    return {
        "left": tree["left_children"],
        "right": tree["right_children"],
        "column": tree["split_indices"],
        # XGBoost sends what is less than this left: what is greater than the number before, right.
        "limit": np.nextafter(at, _DOWN),
        "missing_left": tree["default_left"],
        "cover": tree["sum_hessian"],
        "gain": tree["loss_changes"],
        "value": at,
    }


def _log_odds(base_score: Any) -> float:
    """Of a probability written as a number, as text, or as a list of one in text."""
    chances = str(base_score).strip("[] ").split(",")
    chance = float(chances[0])
    if len(chances) != 1 or not 0 < chance < 1:
        raise InvalidInput(f"expected a base_score that is one probability, not {base_score}")
    return math.log(chance / (1 - chance))


def flat_from_lightgbm(dumped: Mapping[str, Any]) -> FlatTrees:
    """The trees of `Booster.dump_model()`, whose rounds are those that it was asked for.

    Margins are log odds: if the objective has a `sigmoid` other than 1, they are LightGBM's raw
    scores times it.
    """
    with _reading("LightGBM"):
        name, _, options = str(dumped["objective"]).partition(" ")
        if name != "binary" or dumped["average_output"]:
            raise InvalidInput(f"expected a boosted model of binary, not {dumped['objective']}")
        slope = float(dict(option.split(":") for option in options.split())["sigmoid"])
        width = int(dumped["max_feature_idx"]) + 1
        zeros: dict[int, bool] = {}
        trees = [
            _lightgbm_tree(tree["tree_structure"], slope, zeros) for tree in dumped["tree_info"]
        ]
        with_zeros = np.flatnonzero([zeros.get(column, False) for column in range(width)])
        return FlatTrees(_table(trees), width=width, zero_is_missing=with_zeros)


def _lightgbm_tree(root: Mapping[str, Any], slope: float, zeros: dict[int, bool]) -> dict[str, Any]:
    """One tree; notes in `zeros` of which columns zero counts as missing."""
    tree: dict[str, list[Any]] = {name: [] for name in _PROPERTIES}
    nodes = [root]
    for node in nodes:  # It grows on the way.
        if "split_feature" not in node:
            if "leaf_coeff" in node:
                raise InvalidInput("the model has linear trees: train it without linear_tree")
            _append(tree, value=slope * node["leaf_value"], cover=node.get("leaf_count", 0))
            continue
        if node["decision_type"] != "<=":
            raise InvalidInput("the model splits on categories: train it on numbers only")
        column, limit, missing = node["split_feature"], node["threshold"], node["missing_type"]
        if zeros.setdefault(column, missing == "Zero") != (missing == "Zero"):
            raise InvalidInput(f"zero is missing for some splits on column {column} only")
        _append(
            tree,
            left=len(nodes),
            right=len(nodes) + 1,
            column=column,
            limit=limit,
            # If none was missing in training, a missing value counts as zero.
            missing_left=limit >= 0 if missing == "None" else node["default_left"],
            cover=node["internal_count"],
            gain=max(node["split_gain"], 0),
        )
        nodes += [node["left_child"], node["right_child"]]
    return tree


def _append(tree: dict[str, list[Any]], **properties: Any) -> None:
    for name, values in tree.items():
        values.append(properties.get(name, -1 if name in ("left", "right") else 0))


def flat_from_catboost(dumped: Mapping[str, Any]) -> FlatTrees:
    """The trees of `CatBoostClassifier.save_model(path, format="json")`, read back from there.

    CatBoost keeps no gains. The importance is what it calls PredictionValuesChange, not scaled to
    a sum of 100.
    """
    with _reading("CatBoost"):
        loss = dumped["model_info"]["params"]["loss_function"]["type"]
        if loss not in _CATBOOST_LOSSES:
            raise InvalidInput(f"expected a model of Logloss, not of {loss}")
        if "oblivious_trees" not in dumped:
            raise InvalidInput("expected symmetric trees: train it with grow_policy SymmetricTree")
        columns = {
            int(feature["feature_index"]): feature
            for feature in dumped["features_info"]["float_features"]
        }
        width = 1 + max(
            int(feature["flat_feature_index"])
            for kind in dumped["features_info"].values()
            for feature in kind
            if "flat_feature_index" in feature
        )
        scale, (base,) = dumped["scale_and_bias"]
        trees = [_catboost_tree(tree, columns, scale) for tree in dumped["oblivious_trees"]]
        return FlatTrees(_table(trees), width=width, base=float(base))


def _catboost_tree(
    tree: Mapping[str, Any], columns: Mapping[int, Mapping[str, Any]], scale: float
) -> dict[str, Any]:
    """One tree, whose splits each fill a level: the last at the root, as leaves are numbered."""
    splits = list(reversed(tree["splits"] or []))
    if any(split["split_type"] != "FloatFeature" for split in splits):
        raise InvalidInput("the model splits on categories: train it on numbers only")
    depth, leaves = len(splits), 2 ** len(splits)
    values = scale * np.asarray(tree["leaf_values"], dtype=np.float64)
    weights = np.asarray(tree["leaf_weights"], dtype=np.float64)
    if len(values) != leaves or len(weights) != leaves:
        raise InvalidInput(f"expected {leaves} leaves below {depth} splits, not {len(values)}")
    asked = [columns[int(split["float_feature_index"])] for split in splits]
    nodes, none = np.arange(leaves - 1), np.full(leaves, -1)
    levels = 2 ** np.arange(depth)

    def each_level(found: list[Any]) -> Array:
        return np.concatenate([np.repeat(found, levels), np.zeros(leaves)])

    return {
        "left": np.concatenate([2 * nodes + 1, none]),
        "right": np.concatenate([2 * nodes + 2, none]),
        "column": each_level([feature["flat_feature_index"] for feature in asked]),
        "limit": each_level([split["border"] for split in splits]),
        "missing_left": each_level([f["nan_value_treatment"] != "AsTrue" for f in asked]),
        "cover": np.concatenate([weights.reshape(2**n, -1).sum(axis=1) for n in range(depth + 1)]),
        "gain": np.concatenate(
            [_changes(values, weights, n) for n in range(depth)] + [0.0 * values]
        ),
        "value": np.concatenate([np.zeros(leaves - 1), values]),
    }


def _changes(values: Array, weights: Array, level: int) -> Array:
    """How far apart the leaves are that only differ in the split of a level; one number a node."""
    low, high = values.reshape(2**level, 2, -1).transpose(1, 0, 2)
    light, heavy = weights.reshape(2**level, 2, -1).transpose(1, 0, 2)
    total = light + heavy
    shared = np.divide(light * heavy, total, out=np.zeros_like(total), where=total > 0)
    found: Array = (shared * (high - low) ** 2).sum(axis=1)
    return found


def _table(trees: list[dict[str, Any]]) -> TreeTable:
    """All trees in one table; numbers of more digits than rows have are rounded down to theirs."""
    joined: dict[str, Array] = {}
    sizes = [len(tree["left"]) for tree in trees]
    for name, kind in _PROPERTIES.items():
        parts: list[Array] = [np.asarray(tree[name], dtype=kind) for tree in trees]
        for n, (part, size) in enumerate(zip(parts, sizes, strict=True)):
            if part.shape != (size,) or not size:
                raise InvalidInput(f"tree {n} does not tell the {name} of each of {size} nodes")
        joined[name] = np.concatenate(parts) if parts else np.empty(0, kind)
    limit = joined.pop("limit")
    with np.errstate(over="ignore"):
        rounded = limit.astype(np.float32)
        rounded = np.where(rounded > limit, np.nextafter(rounded, _DOWN), rounded)
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return TreeTable(starts=starts, limit=rounded, **joined)


@contextmanager
def _reading(library: str) -> Iterator[None]:
    """Whatever goes wrong on the way says that this is no such model, and where it is not."""
    try:
        yield
    except KeyError as error:
        raise InvalidInput(f"this is no {library} model: there is no {error} in it") from error
    except (
        AttributeError,
        IndexError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise InvalidInput(f"this is no {library} model that can be read: {error}") from error
