"""The threshold with the lowest zero-one loss on all pairs of items of a query, by
counts: eq. 6 of [Venuto2017]_ without a list of the pairs.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.compilation import njit
from preflearn.core.validation import Floats, Ids
from preflearn.svm.counted_pairs import CountedPairs, Queries, list_pairs

_SMALLEST = float(np.nextafter(0.0, 1.0))
_PARTS = 8  # of a cell that is divided
_MAX_ROUNDS = 20
_MAX_LISTED = 200_000  # pairs


class Cells(NamedTuple):
    """Cells low <= |z| < high of score differences, with the numbers of ties and of
    preferences in the right order from each end on."""

    ends: Floats  # (c, 2)
    hits: Floats  # (c, 2) with z >= low, and with z >= high
    ties: Floats  # (c, 2)

    def some(self, which: NDArray) -> Cells:
        """Some of the cells."""
        return Cells(self.ends[which], self.hits[which], self.ties[which])


class ThresholdPairs(NamedTuple):
    """Pairs with weights, as `preflearn.svm.base.clear_threshold` takes them."""

    y: NDArray
    z: Floats
    weights: Floats


def threshold_pairs(
    queries: Queries, f: Floats, undivided: tuple[float, float]
) -> ThresholdPairs:
    """Few weighted pairs whose best threshold is that of all pairs.

    With T(a) ties and H(a) preferences in the right order whose difference is at least
    a, a threshold just below a loses T(a) - H(a) and a constant, and one from a to b
    loses T(b) - H(a) at least. Where another threshold loses less, one tie and one
    preference with weights replace the pairs from a to b. The other cells are divided
    until they hold few pairs, which are listed.

    Parameters
    ----------
    queries : Queries
    f : ndarray of shape (n,)
        Scores of the items.
    undivided : tuple of float
        The ends of a cell that is not divided.
    """
    pairs = CountedPairs(queries, 1.0)
    order = pairs.order(f)
    starts = np.append(0, queries.ends[:-1])
    largest = float(np.max(f[order[queries.ends - 1]] - f[order[starts]]))

    def cells_between(ends: Floats) -> Cells:
        hits = pairs.counts_from(f, order, ends)
        ties = _count_tied(*_sort_tied(queries, f), ends)
        return Cells(*(np.column_stack([v[:-1], v[1:]]) for v in (ends, hits, ties)))

    # Equal scores are not a hit, and every threshold predicts a tie for them.
    ends = np.array([_SMALLEST, *undivided, max(undivided[1], largest), np.inf])
    cells = cells_between(ends)
    replaced = []
    best = np.inf
    for _ in range(_MAX_ROUNDS):
        best = min(best, float(np.min(cells.ties[:, 0] - cells.hits[:, 0])))
        is_open = cells.ties[:, 1] - cells.hits[:, 0] <= best
        replaced.append(cells.some(~is_open))
        cells = cells.some(is_open)
        n_pairs = -np.diff(cells.hits + cells.ties).ravel()
        divided = (n_pairs > 0) & np.isfinite(cells.ends[:, 1])
        divided &= cells.ends[:, 0] != undivided[0]
        if n_pairs.sum() <= _MAX_LISTED or not divided.any():
            break
        parts = [cells.some(~divided)]
        for low, high in cells.ends[divided]:
            parts.append(cells_between(np.linspace(low, high, 1 + _PARTS)))
        cells = Cells(*(np.vstack(values) for values in zip(*parts, strict=True)))
    # The largest difference bounds the thresholds, with any label.
    parts = [ThresholdPairs(np.array([-1]), np.array([largest]), np.ones(1))]
    parts += [_summary(part) for part in replaced]
    parts += _listed_cells(queries, f, order, cells)
    together = ThresholdPairs(*map(np.concatenate, zip(*parts, strict=True)))
    kept = together.weights > 0
    return ThresholdPairs(*(values[kept] for values in together))


def _summary(cells: Cells) -> ThresholdPairs:
    """A tie and a preference for each cell, the tie with the larger difference: so
    their losses are those at the ends of the cell, and a larger one."""
    low, high = cells.ends.T
    n_hits = cells.hits[:, 0] - cells.hits[:, 1]
    n_ties = cells.ties[:, 0] - cells.ties[:, 1]
    high = np.where(np.isfinite(high), high, low)  # the largest difference alone
    return ThresholdPairs(
        np.repeat([0, 1], len(low)),
        np.append(low + 0.75 * (high - low), low + 0.25 * (high - low)),
        np.append(n_ties, n_hits),
    )


def _listed_cells(
    queries: Queries, f: Floats, order: Ids, cells: Cells
) -> list[ThresholdPairs]:
    """The pairs of some cells."""
    parts = []
    tied = _sort_tied(queries, f)
    n_hits = (cells.hits[:, 0] - cells.hits[:, 1]).astype(np.int64)
    n_ties = (cells.ties[:, 0] - cells.ties[:, 1]).astype(np.int64)
    for k, (low, high) in enumerate(cells.ends):
        index = list_pairs(queries, f, order, low, high, n_hits[k])
        z = f[index[:, 0]] - f[index[:, 1]]
        ties = _list_tied(*tied, low, high, n_ties[k])
        y = np.repeat([1, 0], [len(z), len(ties)])
        parts.append(ThresholdPairs(y, np.append(z, ties), np.ones(len(y))))
    return parts


def _sort_tied(queries: Queries, f: Floats) -> tuple[Floats, Ids]:
    """The scores of items sorted by query, level and score, and the ends of the runs of
    equal level."""
    run = np.cumsum(queries.runs())
    order = np.lexsort([f, run])
    ends = np.append(np.flatnonzero(np.diff(run)) + 1, len(f))
    return f[order], ends


@njit
def _count_tied(values, ends, lows):
    """The number of pairs in a run whose difference is at least each of `lows`."""
    total = np.zeros(len(lows))
    for k in range(len(lows)):
        start = 0
        for end in ends:
            below = start
            for i in range(start, end):
                while below < i and values[i] - values[below] >= lows[k]:
                    below += 1
                total[k] += below - start
            start = end
    return total


@njit
def _list_tied(values, ends, low, high, total):
    """The differences of pairs in a run from `low` to below `high`, shape (total,)."""
    differences = np.empty(total)
    k = 0
    start = 0
    for end in ends:
        begin = start
        stop = start
        for i in range(start, end):
            while begin < i and values[i] - values[begin] >= high:
                begin += 1
            while stop < i and values[i] - values[stop] >= low:
                stop += 1
            for j in range(begin, stop):
                differences[k] = values[i] - values[j]
                k += 1
        start = end
    return differences
