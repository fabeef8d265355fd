"""Hinge losses over all item pairs of each query, counted in O(n log n).

Item i is better than item j if both belong to the same query and y_i > y_j; they are
then partners. The sums needed for an item are over its partners whose score differences
are in an interval. One pass over the items in the order of scores computes them, with a
Fenwick tree over the levels of y, similar to [Joachims2006]_.

References
----------
.. [Joachims2006] T. Joachims, "Training linear SVMs in linear time", KDD 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.compilation import njit, njit_inner
from preflearn.core.validation import Floats, Ids
from preflearn.solvers.smoothed_hinge import SmoothedLoss, SplitPairs

_BETTER = 1  # role of an item in its pairs
_WORSE = -1


class Queries(NamedTuple):
    """Items sorted by query, with their levels.

    The level of an item is the rank of its y among the distinct y of its query.
    """

    ends: Ids  # (q,) position after the last item of each query
    level: Ids  # (n,) from 1 on, larger is better
    size: Ids  # (q,) number of levels

    @classmethod
    def of(cls, y: Floats, qid: NDArray | None) -> tuple[Queries, Ids]:
        """Return the queries of items, and the order of items by query and target y."""
        keys = np.zeros(len(y)) if qid is None else qid
        order = np.lexsort([y, keys])
        query = keys[order]
        starts = np.append(True, query[1:] != query[:-1])
        rises = starts | np.append(True, y[order][1:] != y[order][:-1])
        first = np.flatnonzero(starts)
        ends = np.append(first[1:], len(y))
        number = np.cumsum(rises)
        base = np.repeat(number[first] - 1, ends - first)
        level = number - base
        return cls(ends, level, level[ends - 1]), order

    def n_preferences(self) -> int:
        """Return the number of pairs of the same query with different y."""
        n_items = np.diff(self.ends, prepend=0)
        starts = np.flatnonzero(self.runs())
        n_tied = np.diff(np.append(starts, len(self.level)))
        return int((n_items @ n_items - n_tied @ n_tied) // 2)

    def runs(self) -> NDArray[np.bool_]:
        """Return a mask of the starts of runs of equal y, sorted by query and y."""
        starts = np.append(True, self.level[1:] != self.level[:-1])
        starts[self.ends[:-1]] = True
        return starts


class Partners(NamedTuple):
    """Sums over the partners of each item, separately for its two roles."""

    better: Floats  # (n, k) sums over worse partners
    worse: Floats  # (n, k) sums over better partners


@dataclass
class CountedPairs:
    """Hinges of cost C for all pairs of the same query with different y.

    The class implements `preflearn.solvers.smoothed_hinge.HingeLosses`.
    """

    queries: Queries
    C: float

    @property
    def costs(self) -> Floats:
        """Return the distinct costs of pairs."""
        return np.array([self.C])

    def sums(
        self, f: Floats, order: Ids, low: float, high: float, U: Floats
    ) -> Partners:
        """Return sums of U over partners with low <= f_better - f_worse < high."""
        return Partners(
            _partner_sums(self.queries, f, order, low, high, U, _BETTER),
            _partner_sums(self.queries, f, order, low, high, U, _WORSE),
        )

    def order(self, f: Floats) -> Ids:
        """Return the order of items by query and f."""
        order = np.empty(len(f), dtype=np.int64)
        start = 0
        for end in self.queries.ends:
            order[start:end] = start + np.argsort(f[start:end])
            start = end
        return order

    def counts_from(self, f: Floats, order: Ids, lows: Floats) -> Floats:
        """Return the number of pairs with z >= low, for each of `lows`."""
        ones = np.ones((len(f), 1))
        counts = np.empty(len(lows))
        for k, low in enumerate(lows):
            sums = _partner_sums(self.queries, f, order, low, np.inf, ones, _BETTER)
            counts[k] = sums.sum()
        return counts

    def loss(self, f: Floats) -> float:
        """Return the sum of hinges."""
        ones = np.ones((len(f), 1))
        count = self.sums(f, self.order(f), -np.inf, 1.0, ones)
        better = count.better[:, 0]
        return self.C * float(better.sum() - f @ (better - count.worse[:, 0]))

    def smoothed(self, f: Floats, width: float) -> SmoothedLoss:
        """Return the sum of smoothed hinges and its derivatives."""
        order = self.order(f)
        ones = np.ones((len(f), 1))
        low = 1 - width
        high = 1 + width
        count = self.sums(f, order, -np.inf, low, ones)
        inside = self.sums(f, order, low, high, np.column_stack([ones, f]))
        n_better, f_worse = inside.better.T
        n_worse, f_better = inside.worse.T
        # sums of 1 + e - z over the pairs in which an item is better, and in which it
        # is worse
        of_better = n_better * (high - f) + f_worse
        of_worse = n_worse * (high + f) - f_better
        beyond = count.better[:, 0]
        slope = of_worse - of_better
        gradient = count.worse[:, 0] - beyond + slope / (2 * width)
        # sum of (1 + e - z)² = (1 + e) sum of (1 + e - z) - sum of (1 + e - z) z
        squares = high * float(of_better.sum()) + float(f @ slope)
        value = float(beyond.sum() - f @ (beyond - count.worse[:, 0]))
        degree = n_better + n_worse
        weight = self.C / (2 * width)
        near = int(n_better.sum())

        def times(v: Floats) -> Floats:
            over = self.sums(f, order, low, high, np.ascontiguousarray(v[:, None]))
            return weight * (degree * v - over.better[:, 0] - over.worse[:, 0])

        return SmoothedLoss(
            self.C * (value + squares / (4 * width)),
            self.C * gradient,
            weight * degree,
            times,
            near,
            self.C * near * width / 4,
        )

    def split(self, f: Floats, width: float) -> SplitPairs:
        """Return the pairs near the margin, and sums over the pairs inside it."""
        order = self.order(f)
        ones = np.ones((len(f), 1))
        count = self.sums(f, order, -np.inf, 1 - width, ones)
        near = self.sums(f, order, 1 - width, 1 + width, ones)
        n_near = int(near.better.sum())
        index = list_pairs(self.queries, f, order, 1 - width, 1 + width, n_near)
        beyond = count.better[:, 0]
        pull = self.C * (beyond - count.worse[:, 0])
        total = self.C * float(beyond.sum())
        return SplitPairs(index, np.full(n_near, self.C), pull, total)


@njit
def _partner_sums(queries, f, order, low, high, U, role):
    """Return sums of U over the partners with low <= z < high, shape (n, k).

    With role 1 each item is the better one of its pairs, with role -1 the worse one. As
    the items are visited in order, partners enter the interval and later leave it. Row
    l of the tree is the sum over partners in the interval whose levels are from l - (l
    & -l) + 1 to l.
    """
    n, k = U.shape
    total = np.zeros((n, k))
    tree = np.zeros((queries.size.max() + 1, k))
    start = 0
    for q in range(len(queries.ends)):
        end = queries.ends[q]
        levels = queries.size[q]
        tree[: levels + 1] = 0.0
        last = start
        step = np.int64(1)
        if role > 0:
            last = end - 1
            step = np.int64(-1)
        enters = last
        leaves = last
        for count in range(end - start):
            i = order[last + step * count]
            while start <= enters < end and role * (f[i] - f[order[enters]]) < high:
                _add_to_tree(tree, queries.level, levels, role, order[enters], U, 1.0)
                enters += step
            while leaves != enters and role * (f[i] - f[order[leaves]]) < low:
                _add_to_tree(tree, queries.level, levels, role, order[leaves], U, -1.0)
                leaves += step
            own = queries.level[i]
            if role < 0:
                own = levels + 1 - own
            below = own - 1
            while below > 0:
                for c in range(k):
                    total[i, c] += tree[below, c]
                below &= below - 1
        start = end
    return total


@njit_inner
def _add_to_tree(tree, level, levels, role, item, U, sign):
    place = level[item]
    if role < 0:
        place = levels + 1 - place
    while place <= levels:
        for c in range(U.shape[1]):
            tree[place, c] += sign * U[item, c]
        place += place & -place


@njit
def list_pairs(queries, f, order, low, high, total):
    """List the pairs with low <= z < high, better item first, shape (total, 2)."""
    index = np.empty((total, 2), dtype=np.int64)
    k = 0
    start = 0
    for end in queries.ends:
        first = end - 1
        last = end - 1
        for place in range(end - 1, start - 1, -1):
            i = order[place]
            while last >= start and f[i] - f[order[last]] < high:
                last -= 1
            while first > last and f[i] - f[order[first]] < low:
                first -= 1
            for partner in range(last + 1, first + 1):
                j = order[partner]
                if queries.level[j] < queries.level[i]:
                    index[k, 0] = i
                    index[k, 1] = j
                    k += 1
        start = end
    return index
