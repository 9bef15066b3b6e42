"""Flat trees against XGBoost's own answers, and against Shapley values by their definition."""

from __future__ import annotations

import threading
from itertools import combinations
from math import factorial

import numpy as np
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from premortem.errors import InvalidInput
from premortem.models import flat as flat_module
from premortem.models import flat_kernels as kernels
from premortem.models.flat import FlatTrees, TreeTable
from premortem.models.flat_readers import flat_from_xgboost

WIDTH = 16
SHAPES = {
    "usual": {"max_depth": 6},
    "stumps": {"max_depth": 1},
    "deep": {"max_depth": 12, "min_child_weight": 0, "colsample_bytree": 0.5},
    "lopsided": {"grow_policy": "lossguide", "max_leaves": 40, "max_depth": 0},
    "pruned": {"max_depth": 6, "gamma": 1.0, "tree_method": "exact"},
    "leaves only": {"gamma": 1e9},
}


def sample(rows: int = 700, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Rows with many ties and gaps; the last column is constant, the one before is never filled."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, WIDTH)).astype(np.float32).round(1)
    scores = values[:, 0] * values[:, 1] + values[:, 2:8].sum(axis=1)
    outcomes = (scores + rng.normal(size=rows) > 0).astype(float)
    values[rng.random(values.shape) < 0.15] = np.nan
    values[:, -2] = np.nan
    values[:, -1] = 5.0
    return values, outcomes


def trained(rounds: int = 12, **parameters: object) -> xgboost.Booster:
    values, outcomes = sample()
    chosen = {"objective": "binary:logistic", "nthread": 1, "seed": 3, **parameters}
    return xgboost.train(chosen, xgboost.DMatrix(values, label=outcomes), num_boost_round=rounds)


def flat(booster: xgboost.Booster) -> FlatTrees:
    return flat_from_xgboost(booster.save_raw("json"))


@pytest.fixture(scope="module", params=SHAPES)
def booster(request: pytest.FixtureRequest) -> xgboost.Booster:
    return trained(**SHAPES[request.param])


@pytest.fixture(scope="module")
def usual() -> xgboost.Booster:
    return trained()


def unlike_training() -> np.ndarray:
    values, _ = sample(200, seed=2)
    values[0], values[1], values[2] = np.nan, 0.0, -0.0
    values[3], values[4] = np.finfo(np.float32).max, np.finfo(np.float32).min
    return values


class TestAgainstXgboost:
    def test_scores_are_the_same(self, booster: xgboost.Booster) -> None:
        rows, model = unlike_training(), flat(booster)
        data = xgboost.DMatrix(rows)
        np.testing.assert_allclose(
            model.margins(rows), booster.predict(data, output_margin=True), atol=1e-5
        )
        np.testing.assert_allclose(model.risk(rows), booster.predict(data), atol=1e-6)

    def test_reasons_are_the_same(self, booster: xgboost.Booster) -> None:
        rows, model = unlike_training(), flat(booster)
        theirs = booster.predict(xgboost.DMatrix(rows), pred_contribs=True)
        np.testing.assert_allclose(model.contributions(rows), theirs, atol=1e-5)

    def test_importance_is_the_total_gain(self, booster: xgboost.Booster) -> None:
        gains = booster.get_score(importance_type="total_gain")
        theirs = [gains.get(f"f{column}", 0.0) for column in range(WIDTH)]
        np.testing.assert_allclose(flat(booster).importance(), theirs, rtol=1e-5)

    def test_values_at_a_threshold_go_where_they_go(self, usual: xgboost.Booster) -> None:
        """Rows made of the thresholds themselves and their neighbours."""
        found = usual.trees_to_dataframe()
        at = found["Split"].dropna().to_numpy(dtype=np.float32)
        at = np.concatenate([at, np.nextafter(at, np.float32(9)), np.nextafter(at, np.float32(-9))])
        rows = np.repeat(at[:, None], WIDTH, axis=1)
        theirs = usual.predict(xgboost.DMatrix(rows), output_margin=True)
        np.testing.assert_allclose(flat(usual).margins(rows), theirs, atol=1e-5)

    def test_one_tree_with_a_base_score(self) -> None:
        booster = trained(rounds=1, base_score=0.1)
        rows = unlike_training()
        theirs = booster.predict(xgboost.DMatrix(rows), output_margin=True)
        np.testing.assert_allclose(flat(booster).margins(rows), theirs, atol=1e-6)

    @settings(max_examples=50, deadline=None)
    @given(arrays(np.float32, (3, WIDTH), elements=st.floats(width=32, allow_infinity=False)))
    def test_any_row_has_their_margin(self, usual: xgboost.Booster, rows: np.ndarray) -> None:
        theirs = usual.predict(xgboost.DMatrix(rows), output_margin=True)
        np.testing.assert_allclose(flat(usual).margins(rows), theirs, atol=1e-5)


class TestRows:
    def test_a_row_is_the_same_alone_and_among_others(self, usual: xgboost.Booster) -> None:
        rows, model = unlike_training(), flat(usual)
        assert model.margins(rows[7:8])[0] == model.margins(rows)[7]
        assert (model.contributions(rows[7:8])[0] == model.contributions(rows)[7]).all()

    def test_many_are_shared_among_threads_and_stay_the_same(
        self, usual: xgboost.Booster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows, model = unlike_training(), flat(usual)
        alone = model.margins(rows), model.contributions(rows)
        threads: list[int] = []
        score = kernels.score

        def watched(*given: object) -> None:
            threads.append(threading.get_ident())
            score(*given)

        monkeypatch.setattr(kernels, "score", watched)
        monkeypatch.setattr(flat_module, "_cores", lambda: 3)
        monkeypatch.setattr(flat_module, "_SCORED_WORTH_A_THREAD", 7)
        monkeypatch.setattr(flat_module, "_EXPLAINED_WORTH_A_THREAD", 7)
        assert (model.margins(rows) == alone[0]).all()
        assert (model.contributions(rows) == alone[1]).all()
        assert len(threads) == 3
        assert threading.get_ident() not in threads
        model.margins(rows[:6])
        assert threads[3:] == [threading.get_ident()]

    def test_no_rows_have_no_scores(self, usual: xgboost.Booster) -> None:
        none, model = unlike_training()[:0], flat(usual)
        assert model.risk(none).shape == (0,)
        assert model.contributions(none).shape == (0, WIDTH + 1)

    def test_any_layout_and_kind_of_numbers_will_do(self, usual: xgboost.Booster) -> None:
        rows, model = unlike_training(), flat(usual)
        locked = rows.copy()
        locked.flags.writeable = False
        wanted = model.margins(rows)
        for same in (np.asfortranarray(rows), rows.astype(np.float64), rows.astype(">f4"), locked):
            assert (model.margins(same) == wanted).all()

    def test_they_are_left_as_they_are(self, usual: xgboost.Booster) -> None:
        rows = unlike_training()
        flat(usual).contributions(rows)
        np.testing.assert_array_equal(rows, unlike_training())

    def test_numbers_too_large_for_a_row_count_as_the_largest(self, usual: xgboost.Booster) -> None:
        model, rows = flat(usual), np.full((1, WIDTH), 1e300)
        assert model.margins(rows) == model.margins(np.full((1, WIDTH), np.inf))

    @pytest.mark.parametrize("shape", [(3, WIDTH - 1), (3, WIDTH + 1), (WIDTH,), (1, 1, WIDTH)])
    def test_others_are_refused(self, usual: xgboost.Booster, shape: tuple[int, ...]) -> None:
        model = flat(usual)
        for ask in (model.margins, model.risk, model.contributions):
            with pytest.raises(InvalidInput, match=f"{WIDTH} columns"):
                ask(np.zeros(shape, np.float32))


class TestReasons:
    def test_their_sum_is_the_margin(self, booster: xgboost.Booster) -> None:
        rows, model = unlike_training(), flat(booster)
        np.testing.assert_allclose(
            model.contributions(rows).sum(axis=1), model.margins(rows), atol=1e-12
        )

    def test_a_column_that_no_tree_asks_for_adds_nothing(self, usual: xgboost.Booster) -> None:
        model = flat(usual)
        unused = model.importance() == 0
        assert unused[-2:].all()
        assert (model.contributions(unlike_training())[:, :-1][:, unused] == 0).all()


def at_random(seed: int, width: int, trees: int, depth: int) -> TreeTable:
    """Trees of any shape, with columns asked for again, and nodes that no training row reached."""
    rng = np.random.default_rng(seed)
    starts, nodes = [0], []
    for _ in range(trees):
        tree = [[-1, -1, 0]]
        for k, (_, _, level) in enumerate(tree):
            if level < depth and rng.random() < 0.8:
                tree[k] = [len(tree), len(tree) + 1, level]
                tree += [[-1, -1, level + 1], [-1, -1, level + 1]]
        nodes += tree
        starts.append(len(nodes))
    left, right, _ = np.array(nodes).T
    count = len(nodes)
    cover = rng.integers(0, 4, count).astype(float)
    return TreeTable(
        starts=np.array(starts),
        left=left,
        right=right,
        column=rng.integers(0, width, count),
        limit=rng.integers(-1, 2, count).astype(np.float32),
        missing_left=rng.random(count) < 0.5,
        cover=cover,
        gain=np.ones(count),
        value=rng.normal(size=count),
    )


def expected(table: TreeTable, row: np.ndarray, known: set[int]) -> float:
    """The margin to expect if only some columns are known: by shares at those that are not."""

    def below(start: int, k: int) -> float:
        k += start
        left, right = int(table.left[k]), int(table.right[k])
        if left < 0:
            return float(table.value[k])
        value = row[table.column[k]]
        if table.column[k] in known:
            goes_left = table.missing_left[k] if np.isnan(value) else not value > table.limit[k]
            return below(start, left if goes_left else right)
        light, heavy = table.cover[start + left], table.cover[start + right]
        share = light / (light + heavy) if light + heavy else 0.5
        return share * below(start, left) + (1 - share) * below(start, right)

    return sum(below(int(start), 0) for start in table.starts[:-1])


def by_definition(table: TreeTable, row: np.ndarray) -> list[float]:
    """Shapley values: what a column adds to every set of others, on average over all orders."""
    width = len(row)
    found = []
    for column in range(width):
        others = [other for other in range(width) if other != column]
        total = 0.0
        for size in range(width):
            weight = factorial(size) * factorial(width - size - 1) / factorial(width)
            for known in map(set, combinations(others, size)):
                gain = expected(table, row, known | {column}) - expected(table, row, known)
                total += weight * gain
        found.append(total)
    return [*found, expected(table, row, set())]


class TestByDefinition:
    @settings(max_examples=60, deadline=None)
    @given(
        seed=st.integers(0, 10**6),
        width=st.integers(1, 5),
        trees=st.integers(1, 3),
        depth=st.integers(0, 6),
        data=st.data(),
    )
    def test_reasons_are_shapley_values(
        self, seed: int, width: int, trees: int, depth: int, data: st.DataObject
    ) -> None:
        table = at_random(seed, width, trees, depth)
        value = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1.0, 2.0, np.inf, np.nan])
        row = data.draw(arrays(np.float32, width, elements=value))
        model = FlatTrees(table, width=width)
        np.testing.assert_allclose(
            model.contributions(row[None])[0], by_definition(table, row), atol=1e-12
        )
        assert model.margins(row[None])[0] == pytest.approx(expected(table, row, set(range(width))))

    def test_also_on_ways_that_ask_for_more_columns_than_one_round_of_points_serves(self) -> None:
        """One long way of nine columns: a leaf on every left, the next split on every right."""
        width = 9
        splits = np.arange(width)
        left = np.concatenate([2 * splits + 1, np.full(width + 1, -1)])
        order = np.argsort(np.concatenate([2 * splits, 2 * splits + 1, [2 * width]]), kind="stable")
        table = TreeTable(
            starts=np.array([0, 2 * width + 1]),
            left=left[order],
            right=np.where(left < 0, -1, left + 1)[order],
            column=np.concatenate([splits, np.zeros(width + 1, int)])[order],
            limit=np.zeros(2 * width + 1, np.float32),
            missing_left=np.ones(2 * width + 1, bool),
            cover=np.arange(2 * width + 1, 0, -1).astype(float),
            gain=np.ones(2 * width + 1),
            value=np.linspace(-1, 3, 2 * width + 1),
        )
        row = np.array([1, 1, 1, -1, 1, 1, 1, np.nan, 1], np.float32)
        found = FlatTrees(table, width=width).contributions(row[None])[0]
        np.testing.assert_allclose(found, by_definition(table, row), atol=1e-12)
