"""Boosted trees of any library as plain arrays: for quick scores and exact reasons."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss

from premortem.errors import InvalidInput
from premortem.models import flat_kernels as kernels
from premortem.models.flat_kernels import NODE, POINTS_AT_ONCE, SPLIT, TREES_AT_ONCE
from premortem.models.port import Array

# What LightGBM takes for zero where zero stands for missing.
_NEARLY_ZERO = np.float32(1e-35)
_MOST_COLUMNS = 1_000_000
# For fewer rows another thread costs more than it brings.
_SCORED_WORTH_A_THREAD = 4_000
_EXPLAINED_WORTH_A_THREAD = 100


@dataclass(frozen=True, eq=False)
class TreeTable:
    """The nodes of all trees one after the other, each tree's root first; one array a property.

    A row whose value in `column` is greater than `limit` goes right, any other left, and one whose
    value is missing as `missing_left` says. `left` and `right` count from the start of the tree; a
    leaf has -1 in both, and only its `value` counts. `cover` is the weight of the training rows
    that came by, `gain` what the split was worth. Nodes that no way leads to may be anything.
    """

    starts: Array
    left: Array
    right: Array
    column: Array
    limit: Array
    missing_left: Array
    cover: Array
    gain: Array
    value: Array


class FlatTrees:
    """A boosted model of binary outcomes as arrays: for quick scores and exact reasons.

    Made by the functions of `flat_readers`. Rows are matrices of float32, NaN for missing; numbers
    of more digits are rounded to that, and infinite ones are numbers like others, not missing. One
    row has the same scores alone as among others. Large batches are split among threads, as many
    as there are cores.
    """

    def __init__(
        self,
        table: TreeTable,
        *,
        width: int,
        base: float = 0.0,
        zero_is_missing: Array | None = None,
    ) -> None:
        if not 0 < width <= _MOST_COLUMNS:
            raise InvalidInput(f"expected 1 to {_MOST_COLUMNS:,} columns, not {width:,}")
        self.width = width
        self._base = base
        self._zeros = zero_is_missing if zero_is_missing is not None else np.empty(0, np.intp)
        _check_ways(table)
        nodes = _Ordered(table, width)
        self._nodes, self._values = nodes.for_scores()
        self._roots, self._steps = nodes.in_groups()
        self._splits, self._trees = nodes.for_reasons()
        self._points, self._weights = _rules(int(self._trees[:, 2].max()))
        self._room = int(np.diff(nodes.starts).max())
        self._expected = base + float(nodes.reach @ nodes.value)
        self._importance = nodes.importance()

    def margins(self, values: Array) -> Array:
        """The log odds of failure of each row."""
        rows = self._rows(values)
        out = np.empty(len(rows))

        def score(some: slice) -> None:
            kernels.score(
                self._nodes, self._values, self._roots, self._steps, self._base, rows[some],
                out[some],
            )  # fmt: skip

        _in_parts(score, len(rows), _SCORED_WORTH_A_THREAD)
        return out

    def risk(self, values: Array) -> Array:
        """The probability of failure of each row."""
        return as_risk(self.margins(values))

    def contributions(self, values: Array) -> Array:
        """What each column adds to each row's margin: exact path-dependent tree SHAP.

        There is one column more than a row has: the last is what the margin is expected to be when
        nothing is known. A row's sum is its margin.
        """
        rows = self._rows(values)
        out = np.empty((len(rows), self.width + 1))
        out[:, -1] = self._expected

        def explain(some: slice) -> None:
            kernels.explain(
                self._splits, self._trees, self._points, self._weights, self._room, rows[some],
                out[some],
            )  # fmt: skip

        _in_parts(explain, len(rows), _EXPLAINED_WORTH_A_THREAD)
        return out

    def importance(self) -> Array:
        """The total gain of each column's splits, as the library that trained the model counts it.

        Only the order and the proportions mean something, and only within one model.
        """
        return self._importance.copy()

    def _rows(self, values: Array) -> Array:
        """The rows as the kernels want them, and without a copy if they are so already."""
        if values.ndim != 2 or values.shape[1] != self.width:
            raise InvalidInput(
                f"expected a matrix of {self.width} columns as in training, not {values.shape}"
            )
        if len(self._zeros) or values.dtype != np.float32 or not values.flags.carray:
            with np.errstate(over="ignore"):
                values = np.array(values, dtype=np.float32, order="C")
            for column in self._zeros:
                part = values[:, column]
                part[np.abs(part) <= _NEARLY_ZERO] = np.nan
        return values


def _in_parts(work: Callable[[slice], None], rows: int, worth: int) -> None:
    """Do the work for all rows: in a part for each core, if each part has so many rows at least."""
    parts = min(_cores(), rows // worth)
    if parts < 2:
        work(slice(None))
        return
    edges = np.linspace(0, rows, parts + 1).astype(int)
    with ThreadPoolExecutor(parts) as threads:
        for done in [threads.submit(work, slice(*ends)) for ends in pairwise(edges)]:
            done.result()


def _cores() -> int:
    """Those this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def as_risk(margins: Array) -> Array:
    """The probabilities that log odds stand for."""
    found: Array = np.exp(-np.logaddexp(0.0, -margins))
    return found


class _Ordered:
    """The nodes in the order of the kernels: from each root down, siblings side by side.

    The first of two siblings is the one that rows with a missing value go to.
    """

    def __init__(self, table: TreeTable, width: int) -> None:
        missing_left = table.missing_left.astype(bool)
        firsts = np.where(missing_left, table.left, table.right).astype(np.int64)
        seconds = np.where(missing_left, table.right, table.left).astype(np.int64)
        self.starts = table.starts.astype(np.int64)
        order, places, parents = (np.empty(len(firsts), np.int64) for _ in range(3))
        kernels.order_nodes(self.starts, firsts, seconds, order, places, parents)
        count = self.starts[-1]
        order, self.first, parents = order[:count], places[:count], parents[:count]
        self.leaf = self.first == np.arange(count)
        self.second = np.where(self.leaf, self.first, self.first + 1)
        self.tree = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        self.width = width
        self.column = np.where(self.leaf, 0, table.column[order])
        self.gain = np.where(self.leaf, 0.0, table.gain[order])
        self.value = np.where(self.leaf, table.value[order], 0.0)
        self.cover = table.cover[order]
        limit = table.limit[order]
        self._check(limit)
        with np.errstate(over="ignore"):
            negated = np.nextafter(-limit, np.float32(-np.inf))
        self.as_it_is = missing_left[order] | self.leaf
        self.threshold = np.where(self.as_it_is, limit, negated)
        self.threshold[self.leaf] = np.inf
        covers = self.cover[self.first] + self.cover[self.second]
        self.share = np.full(count, 0.5)
        np.divide(self.cover[self.first], covers, out=self.share, where=covers > 0)
        self.earlier, self.depth, self.asked = (np.empty(count, np.int64) for _ in range(3))
        self.before, self.reach = np.empty(count), np.empty(count)
        kernels.trace_ways(
            self.first,
            parents,
            self.column,
            self.share,
            self.earlier,
            self.before,
            self.depth,
            self.asked,
            self.reach,
        )

    def for_scores(self) -> tuple[Array, Array]:
        """Nodes and their values; behind them a leaf of no value, for groups that are not full."""
        count = len(self.leaf)
        nodes = np.zeros(count + 1, NODE)
        nodes["column"][:count] = self._places_in_row()
        nodes["threshold"][:count] = self.threshold
        nodes["first"][:count] = self.first
        nodes[count] = (0, np.inf, count)
        return nodes, np.append(self.value, 0.0)

    def in_groups(self) -> tuple[Array, Array]:
        """Roots, and how many steps each group of trees that is walked at once needs."""
        roots, deepest = self.starts[:-1], np.maximum.reduceat(self.depth, self.starts[:-1])
        lacking = -len(roots) % TREES_AT_ONCE
        roots = np.pad(roots, (0, lacking), constant_values=len(self.leaf))
        deepest = np.pad(deepest, (0, lacking))
        return roots.astype(np.uint32), deepest.reshape(-1, TREES_AT_ONCE).max(axis=1)

    def for_reasons(self) -> tuple[Array, Array]:
        """Splits, and what there is of each tree; see `flat_kernels.explain`."""
        trees = len(self.starts) - 1
        ends = self.leaf[self.first] & self.leaf[self.second]
        kind = np.where(self.leaf, 2, np.where(ends, 1, 0))
        order = np.lexsort((kind, self.tree))
        slot = np.empty(len(order), np.int64)
        slot[order] = np.arange(len(order)) - self.starts[self.tree[order]]
        splits = np.zeros(len(order), SPLIT)
        splits["share"], splits["before"] = self.share, self.before
        splits["first_value"], splits["second_value"] = (
            self.value[self.first],
            self.value[self.second],
        )
        splits["column"], splits["threshold"] = self._places_in_row(), self.threshold
        splits["first"], splits["second"] = slot[self.first], slot[self.second]
        splits["earlier"] = np.where(self.earlier < 0, kernels.FIRST_TIME, slot[self.earlier])
        table = np.zeros((trees + 1, 3), np.uint64)
        table[1:, 0] = np.cumsum(np.bincount(self.tree[~self.leaf], minlength=trees))
        table[:-1, 1] = np.bincount(self.tree[kind == 0], minlength=trees)
        most_asked = np.maximum.reduceat(self.asked, self.starts[:-1])
        table[:-1, 2] = np.ceil(most_asked / (2 * POINTS_AT_ONCE))
        return splits[order[kind[order] < 2]], table

    def importance(self) -> Array:
        return np.bincount(self.column, weights=self.gain, minlength=self.width)

    def _places_in_row(self) -> Array:
        """Where the kernels find a column: the second half of a row is the first half negated."""
        return np.where(self.as_it_is, self.column, self.column + self.width)

    def _check(self, limit: Array) -> None:
        """Refuse what would make numbers that mean nothing; only nodes in use are looked at."""
        outside = (self.column < 0) | (self.column >= self.width)
        _refuse(outside, self.tree, f"asks for a column outside the model's {self.width}")
        _refuse(~self.leaf & np.isnan(limit), self.tree, "has a split at no number")
        _refuse(~np.isfinite(self.value), self.tree, "has a leaf whose value is not a number")
        weightless = ~np.isfinite(self.cover) | (self.cover < 0)
        _refuse(weightless, self.tree, "has a node whose cover is not a weight")


def _check_ways(table: TreeTable) -> None:
    """Refuse tables in which the kernels would get lost."""
    if len(table.starts) < 2:
        raise InvalidInput("the model has no trees: train it for one round at least")
    sizes = np.diff(table.starts)
    tree = np.repeat(np.arange(len(sizes)), sizes)
    left, right, size = table.left, table.right, sizes[tree]
    leaf = (left == -1) & (right == -1)
    inside = (left > 0) & (right > 0) & (left < size) & (right < size)
    _refuse(~leaf & ~inside, tree, "has a node whose children are not in it")
    start = table.starts[tree]
    children = np.concatenate([(start + left)[~leaf], (start + right)[~leaf]])
    _refuse(np.bincount(children, minlength=len(left)) > 1, tree, "has a node with two parents")


def _refuse(bad: Array, tree: Array, why: str) -> None:
    if bad.any():
        raise InvalidInput(f"tree {tree[int(np.argmax(bad))]} {why}: the model is damaged")


def _rules(most_rounds: int) -> tuple[Array, Array]:
    """Points and weights between 0 and 1: of the rule for one round, for two rounds, and so on."""
    rules = [leggauss(POINTS_AT_ONCE * rounds) for rounds in range(1, most_rounds + 1)]
    points = [(np.empty(0), np.empty(0)), *rules]
    at, weights = (
        np.concatenate(part).reshape(-1, POINTS_AT_ONCE) for part in zip(*points, strict=True)
    )
    return (at + 1) / 2, weights / 2
