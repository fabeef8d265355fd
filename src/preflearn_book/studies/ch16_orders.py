"""Kemeny's order of items by degrees of preference, which chapter 16 compares with
those of the package."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components, shortest_path

from preflearn.core.validation import Floats, Ids
from preflearn.ranking import AGGREGATES, row_sums

_EXACT = 16  # items of one majority cycle whose Kemeny order is searched among all


def kemeny(P: Floats) -> Floats:
    """An order with the least total degree against it: the sum of p_ji over all i that
    come before j.

    Items with a majority over all others come before them in some best order, so the
    order is searched within the cycles of the majority p_ij > p_ji only: exactly, by
    dynamic programming over subsets, in those of up to 16 items; a longer one starts in
    the order of row sums, and single items move as long as that lowers the sum, which
    may end above the least.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Degrees of preference, as in `bradley_terry`; the diagonal does not count.

    Returns
    -------
    worths : ndarray of shape (n,)
        n for the first item, 1 for the last; no two are equal. Where several orders are
        as good, row sums tend to decide, and then the place in P.

    Examples
    --------
    >>> P = np.array([[0, 0.9, 0.4], [0.1, 0, 0.8], [0.6, 0.2, 0]])
    >>> kemeny(P).tolist()  # a cycle, broken where it is weakest
    [3.0, 2.0, 1.0]
    """
    by_sums = np.argsort(-row_sums(P), kind="stable")
    excess = (P - P.T)[np.ix_(by_sums, by_sums)]
    # by a chain of majorities, or itself
    reach = np.isfinite(shortest_path(excess > 0, unweighted=True))
    cycle = connected_components(reach, connection="strong")[1]
    # who is above a cycle reaches more than it does
    order = np.lexsort((cycle, -reach.sum(axis=1)))
    for part in np.split(order, np.flatnonzero(np.diff(cycle[order])) + 1):
        search = _best_order if len(part) <= _EXACT else _improved_order
        inner = np.sort(part)
        part[:] = inner[search(excess[np.ix_(inner, inner)])]
    worths = np.empty(len(P))
    worths[by_sums[order]] = np.arange(len(P), 0, -1)
    return worths


ORDERS = AGGREGATES | {"kemeny": kemeny}


# ---- The search among orders behind `kemeny`


def _best_order(excess: Floats) -> Ids:
    """The order with the largest sum of excess[i, j] over all i before j, over all
    orders.

    Of each set of items, as bits of a number, the best order in which they can come
    first.
    """
    n = len(excess)
    sets = np.arange(1 << n)
    items = np.arange(n)
    inside = (sets[:, None] >> items & 1).astype(bool)
    gain = ~inside @ excess.T  # of the item that comes next
    best = np.where(sets > 0, -np.inf, 0.0)
    last = np.zeros(len(sets), np.int64)
    for size in range(n):
        of_size = inside.sum(axis=1) == size
        for i in items[::-1]:
            before = sets[of_size & ~inside[:, i]]
            after = before | 1 << i
            value = best[before] + gain[before, i]
            better = value > best[after]
            best[after[better]], last[after[better]] = value[better], i
    order = np.empty(n, np.int64)
    chosen = len(sets) - 1
    for place in range(n - 1, -1, -1):
        order[place] = last[chosen]
        chosen ^= 1 << order[place]
    return order


def _improved_order(excess: Floats) -> Ids:
    """The order 0, 1, ... improved by moves of one item, until none raises the sum."""
    order = np.arange(len(excess))
    least = 1e-12 * np.abs(excess).max()
    # the sum rises with each move: a few rounds, but for rounding
    for _ in range(len(excess) ** 2):
        before = order
        for start in range(len(order)):
            others = np.delete(order, start)
            ahead = np.append(0.0, np.cumsum(excess[order[start], others]))
            gain = ahead[start] - ahead
            if gain.max() > least:
                best = np.flatnonzero(gain == gain.max())
                place = best[np.abs(best - start).argmin()]  # the nearest
                order = np.insert(others, place, order[start])
        if order is before:
            break
    return order
