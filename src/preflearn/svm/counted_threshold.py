"""Threshold of lowest zero-one loss over all item pairs of each query.

It solves eq. 6 of [Venuto2017]_ by counting the pairs instead of listing them.

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
_PARTS = 8  # into which a cell is divided
_MAX_ROUNDS = 20
_MAX_LISTED = 200_000  # pairs


class Cells(NamedTuple):
    """Cells low <= |z| < high of score differences, with counts of pairs.

    For each end, the counts are the ties and the correctly ordered preferences whose
    difference is at least as large.
    """

    ends: Floats  # (c, 2)
    hits: Floats  # (c, 2) preferences with z >= low, and with z >= high
    ties: Floats  # (c, 2)

    def some(self, which: NDArray) -> Cells:
        """Return some of the cells."""
        return Cells(self.ends[which], self.hits[which], self.ties[which])


class ThresholdPairs(NamedTuple):
    """Weighted pairs, the arguments of `preflearn.svm.base.clear_threshold`."""

    y: NDArray
    z: Floats
    weights: Floats


def threshold_pairs(
    queries: Queries, f: Floats, undivided: tuple[float, float]
) -> ThresholdPairs:
    """Return few weighted pairs that have the same best threshold as all pairs.

    Let T(a) be the number of ties, and H(a) the number of correctly ordered
    preferences, whose difference is at least a. Up to a constant, a threshold just
    below a has the loss T(a) - H(a), and a threshold between a and b has at least the
    loss T(b) - H(a). If another threshold is known to have a lower loss, the pairs
    between a and b are replaced by one weighted tie and one weighted preference. The
    other cells are divided until they contain few pairs, which are listed.

    Parameters
    ----------
    queries : Queries
    f : ndarray of shape (n,)
        Scores of the items.
    undivided : tuple of float
        Ends of a cell that is not divided.
    """
    pairs = CountedPairs(queries, 1.0)
    order = pairs.order(f)
    starts = np.append(0, queries.ends[:-1])
    largest = float(np.max(f[order[queries.ends - 1]] - f[order[starts]]))

    def cells_between(ends: Floats) -> Cells:
        hits = pairs.counts_from(f, order, ends)
        ties = _count_tied(*_sort_tied(queries, f), ends)
        return Cells(*(np.column_stack([v[:-1], v[1:]]) for v in (ends, hits, ties)))

    # Pairs with equal scores are never correctly ordered; every threshold predicts a
    # tie.
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
    # The pair with the largest difference bounds the thresholds; its label does not
    # matter.
    parts = [ThresholdPairs(np.array([-1]), np.array([largest]), np.ones(1))]
    parts += [_summary(part) for part in replaced]
    parts += _listed_cells(queries, f, order, cells)
    together = ThresholdPairs(*map(np.concatenate, zip(*parts, strict=True)))
    kept = together.weights > 0
    return ThresholdPairs(*(values[kept] for values in together))


def _summary(cells: Cells) -> ThresholdPairs:
    """Return one weighted tie and one weighted preference for each cell.

    The tie has the larger difference. The losses are therefore exact at the ends of the
    cell, and larger between the two differences.
    """
    low, high = cells.ends.T
    n_hits = cells.hits[:, 0] - cells.hits[:, 1]
    n_ties = cells.ties[:, 0] - cells.ties[:, 1]
    high = np.where(
        np.isfinite(high), high, low
    )  # the last cell contains the largest difference only
    return ThresholdPairs(
        np.repeat([0, 1], len(low)),
        np.append(low + 0.75 * (high - low), low + 0.25 * (high - low)),
        np.append(n_ties, n_hits),
    )


def _listed_cells(
    queries: Queries, f: Floats, order: Ids, cells: Cells
) -> list[ThresholdPairs]:
    """List the pairs of some cells."""
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
    """Return scores sorted by query, level, and score, and the ends of level runs."""
    run = np.cumsum(queries.runs())
    order = np.lexsort([f, run])
    ends = np.append(np.flatnonzero(np.diff(run)) + 1, len(f))
    return f[order], ends


@njit
def _count_tied(values, ends, lows):
    """Count the pairs within runs whose difference is at least each of `lows`."""
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
    """List the differences of pairs within runs in [low, high), shape (total,)."""
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
