"""The compiled heart of flat trees: laying them out, scoring rows, and giving exact reasons.

All of it is in this one file: what numba keeps on disk is found again by its text. Nothing here
checks its arguments or knows libraries; `flat` does the one, `flat_readers` the other. Places of
nodes and columns are unsigned, which spares the compiled code a test for negative ones.

How missing values go: a row is written twice, as it is and negated, and a node looks at one of the
two. Greater than the threshold goes to the second child, everything else to the first. A missing
value is never greater: it goes to the first child, which is where the model sends it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, np.dtype[Any]]

# The second child is beside the first. A leaf is its own first child and its threshold is out of
# reach, so that a step from it stays there.
NODE = np.dtype([("column", np.uint32), ("threshold", np.float32), ("first", np.uint32)])

# A node that asks, as the reasons want it. `share` of the training rows went to the first child.
# `first`, `second` and `earlier` are places in the scratch of a tree. `earlier` is the child by
# which the way here left the last node that asked for the same column, FIRST_TIME if none did;
# `before` is the share of rows that all such nodes on the way let through.
SPLIT = np.dtype(
    [
        ("share", np.float64),
        ("before", np.float64),
        ("first_value", np.float64),
        ("second_value", np.float64),
        ("column", np.uint32),
        ("threshold", np.float32),
        ("first", np.uint32),
        ("second", np.uint32),
        ("earlier", np.uint32),
    ],
    align=True,
)
FIRST_TIME = np.uint32(0xFFFFFFFF)

TREES_AT_ONCE = 8
POINTS_AT_ONCE = 3


@njit(cache=True, nogil=True)
def order_nodes(
    starts: Array, firsts: Array, seconds: Array, order: Array, places: Array, parents: Array
) -> None:
    """Put each tree's nodes in order from its root down, siblings side by side.

    `order` says which node is taken, `places` where its first child is put, `parents` where its
    parent is; a leaf is its own first child, a root its own parent. Nodes that no way leads to are
    left out. `starts` becomes where the ordered trees start.
    """
    end = 0
    for tree in range(len(starts) - 1):
        source = starts[tree]
        starts[tree] = at = end
        order[at] = source
        parents[at] = at
        end += 1
        while at < end:
            node = order[at]
            places[at] = at
            if firsts[node] >= 0:
                places[at] = end
                order[end] = source + firsts[node]
                order[end + 1] = source + seconds[node]
                parents[end] = parents[end + 1] = at
                end += 2
            at += 1
    starts[len(starts) - 1] = end


@njit(cache=True, nogil=True)
def trace_ways(
    firsts: Array,
    parents: Array,
    columns: Array,
    shares: Array,
    earlier: Array,
    before: Array,
    depth: Array,
    asked: Array,
    reach: Array,
) -> None:
    """Write what lies on the way to each node: for `earlier` (-1 for none) and `before` see SPLIT.

    `depth` is the steps of the way, `asked` the different columns asked for on it, and `reach` the
    share of the training rows that took it.
    """
    for k in range(len(firsts)):
        up = parents[k]
        if up == k:
            depth[k], asked[k], reach[k] = 0, 0, 1.0
        else:
            depth[k] = depth[up] + 1
            asked[k] = asked[up] + (1 if earlier[up] < 0 else 0)
            reach[k] = reach[up] * _part(firsts, shares, up, k)
        earlier[k], before[k] = -1, 1.0
        child = k
        while up != child:
            if columns[up] == columns[k]:
                earlier[k] = child
                before[k] = before[up] * _part(firsts, shares, up, child)
                break
            child, up = up, parents[up]


@njit()
def _part(firsts: Array, shares: Array, parent: int, child: int) -> float:
    share: float = shares[parent]
    return share if child == firsts[parent] else 1.0 - share


@njit(cache=True, nogil=True)
def score(
    nodes: Array, values: Array, roots: Array, steps: Array, base: float, rows: Array, out: Array
) -> None:
    """Write each row's margin: the sum of the leaves that it falls into, in the order of trees.

    Eight trees are walked side by side, so that the waits for memory overlap; `steps` is how many
    the deepest of each eight needs, and the number of roots is a multiple of eight.
    """
    row = np.empty(2 * rows.shape[1], np.float32)
    for i in range(len(rows)):
        _write_twice(rows[i], row)
        total = base
        for n in range(len(steps)):
            t = TREES_AT_ONCE * n
            a, b, c, d = roots[t], roots[t + 1], roots[t + 2], roots[t + 3]
            e, f, g, h = roots[t + 4], roots[t + 5], roots[t + 6], roots[t + 7]
            for _ in range(steps[n]):
                a, b = _step(nodes, a, row), _step(nodes, b, row)
                c, d = _step(nodes, c, row), _step(nodes, d, row)
                e, f = _step(nodes, e, row), _step(nodes, f, row)
                g, h = _step(nodes, g, row), _step(nodes, h, row)
            for leaf in (a, b, c, d, e, f, g, h):
                total += values[leaf]
        out[i] = total


@njit()
def _write_twice(values: Array, row: Array) -> None:
    width = len(values)
    for column in range(width):
        row[column] = values[column]
        row[width + column] = -values[column]


@njit()
def _step(nodes: Array, k: int, row: Array) -> Any:
    node = nodes[k]
    return node.first + np.uint32(row[node.column] > node.threshold)


@njit(cache=True, nogil=True)
def explain(
    splits: Array, trees: Array, points: Array, weights: Array, room: int, rows: Array, out: Array
) -> None:
    """Write what each column adds to each row's margin: exact path-dependent Shapley values.

    Let each column be known with a chance t; at a node whose column is not known a row goes both
    ways, by the shares of the training rows. A column's Shapley value is then the slope of the
    expected margin in that column's own chance, integrated over t from 0 to 1 (Owen, 1972). On a
    way that asks for d columns the slope is a polynomial in t of degree d - 1, for which the
    Gauss-Legendre rule of d / 2 points is no estimate but the integral itself.

    A row of `trees` is where a tree's splits begin, how many of them have a split below, and how
    many rounds of three points it needs; a last row tells where the splits end. Splits that have a
    split below come first, parents before children. `points` and `weights` hold the rule for one
    round, then that for two rounds, and so on; `room` is the size of the largest tree.
    """
    width = rows.shape[1]
    row = np.empty(2 * width, np.float32)
    found = np.empty(2 * width, np.float64)
    reach = np.empty((room, POINTS_AT_ONCE), np.float64)
    chance = np.empty((room, POINTS_AT_ONCE), np.float64)
    mean = np.empty((room, POINTS_AT_ONCE), np.float64)
    on_way = np.empty(room, np.bool_)
    for i in range(len(rows)):
        _write_twice(rows[i], row)
        found[:] = 0.0
        for n in range(len(trees) - 1):
            tree = splits[trees[n, 0] : trees[n + 1, 0]]
            upper, rounds = trees[n, 1], trees[n, 2]
            for at in range(rounds * (rounds - 1) // 2, rounds * (rounds + 1) // 2):
                for p in range(POINTS_AT_ONCE):
                    reach[0, p] = weights[at, p]
                _go_down(tree, upper, points[at], row, reach, chance, mean, on_way)
                _meet_leaves(tree, upper, points[at], row, reach, mean, on_way, found)
                _go_up(tree, upper, reach, chance, mean, found)
        for column in range(width):
            out[i, column] = found[column] + found[width + column]


@njit()
def _go_down(
    tree: Array,
    upper: int,
    points: Array,
    row: Array,
    reach: Array,
    chance: Array,
    mean: Array,
    on_way: Array,
) -> None:
    """From the root down: the chance to reach each child, and whether the row itself goes there.

    A node's own `reach` is multiplied by the slope, which is all that the way up needs of it. The
    `mean` of a child is set as if it were a leaf; if it is not, its own turn is still to come.
    """
    for k in range(upper):
        split = tree[k]
        goes_first = 0.0 if row[split.column] > split.threshold else 1.0
        again = split.earlier != FIRST_TIME
        matters = not again or on_way[split.earlier]
        share, before = split.share, split.before
        first, second = split.first, split.second
        first_value, second_value = split.first_value, split.second_value
        on_way[first] = matters and goes_first == 1.0
        on_way[second] = matters and goes_first == 0.0
        for p in range(POINTS_AT_ONCE):
            to_first, slope = _at_point(share, before, again, matters, goes_first, points[p])
            here = reach[k, p]
            there = here * to_first
            chance[k, p] = to_first
            reach[k, p] = here * slope
            reach[first, p] = there
            reach[second, p] = here - there
            mean[first, p] = first_value
            mean[second, p] = second_value


@njit()
def _meet_leaves(
    tree: Array,
    upper: int,
    points: Array,
    row: Array,
    reach: Array,
    mean: Array,
    on_way: Array,
    found: Array,
) -> None:
    """At the splits that end in two leaves: what they add, and what is expected of them."""
    for k in range(upper, len(tree)):
        split = tree[k]
        goes_first = 0.0 if row[split.column] > split.threshold else 1.0
        again = split.earlier != FIRST_TIME
        matters = not again or on_way[split.earlier]
        share, before, second_value = split.share, split.before, split.second_value
        gap = split.first_value - second_value
        added = 0.0
        for p in range(POINTS_AT_ONCE):
            to_first, slope = _at_point(share, before, again, matters, goes_first, points[p])
            added += reach[k, p] * slope
            mean[k, p] = second_value + to_first * gap
        found[split.column] += added * gap


@njit()
def _go_up(tree: Array, upper: int, reach: Array, chance: Array, mean: Array, found: Array) -> None:
    """Back up to the root: what is expected at each split, and what it adds."""
    for step in range(upper):
        k = np.uint64(upper - 1 - step)
        split = tree[k]
        first, second = split.first, split.second
        added = 0.0
        for p in range(POINTS_AT_ONCE):
            of_second = mean[second, p]
            gap = mean[first, p] - of_second
            added += reach[k, p] * gap
            mean[k, p] = of_second + chance[k, p] * gap
        found[split.column] += added


@njit(error_model="numpy")
def _at_point(
    share: float, before: float, again: bool, matters: bool, goes_first: float, t: float
) -> tuple[float, float]:
    """The chance of the first child when columns are known with chance t, and its slope.

    If the way here has asked for the column before, then those who come are more often those who
    know it; unless the row itself has gone another way: then nobody here knows it.
    """
    if not again:
        return share * (1.0 - t) + goes_first * t, goes_first - share
    if not matters:
        return share, 0.0
    less = 1.0 / (before * (1.0 - t) + t)
    to_first = (before * share * (1.0 - t) + goes_first * t) * less
    return to_first, (goes_first - share) * before * less * less
