"""Kemeny's order of items by degrees of preference.

Chapter 16 compares it with the aggregation methods of the package.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components, shortest_path

from preflearn.core.validation import Floats, Ids
from preflearn.ranking import bradley_terry, copeland, row_sums

_MAX_EXACT_ITEMS = 16  # items of a majority cycle; with more items, the search is local


def kemeny(P: Floats) -> Floats:
    """An order with the smallest sum of p_ji over all i that come before j.

    If all items of a set have a majority over all other items, they come before the
    others in some best order. Therefore the order is searched only within the cycles of
    the majority relation p_ij > p_ji. In cycles of up to 16 items, the search is exact,
    by dynamic programming over subsets. In longer cycles, it starts with the order of
    row sums and moves single items as long as that lowers the sum. It may end in a local
    minimum.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Degrees of preference, as in `bradley_terry`. The diagonal is ignored.

    Returns
    -------
    worths : ndarray of shape (n,)
        n for the first item, 1 for the last; all values differ. If several orders are
        equally good, the order of row sums is preferred where possible, and then the
        order in P.

    Examples
    --------
    >>> P = np.array([[0, 0.9, 0.4], [0.1, 0, 0.8], [0.6, 0.2, 0]])
    >>> kemeny(P).tolist()  # a cycle, broken where it is weakest
    [3.0, 2.0, 1.0]
    """
    by_sums = np.argsort(-row_sums(P), kind="stable")
    excess = (P - P.T)[np.ix_(by_sums, by_sums)]
    # Whether a chain of majorities leads from i to j, or i = j.
    reach = np.isfinite(shortest_path(excess > 0, unweighted=True))
    cycle = connected_components(reach, connection="strong")[1]
    # An item before a cycle reaches more items than the items of the cycle reach.
    order = np.lexsort((cycle, -reach.sum(axis=1)))
    for part in np.split(order, np.flatnonzero(np.diff(cycle[order])) + 1):
        search = _improved_order
        if len(part) <= _MAX_EXACT_ITEMS:
            search = _best_order
        inner = np.sort(part)
        part[:] = inner[search(excess[np.ix_(inner, inner)])]
    worths = np.empty(len(P))
    worths[by_sums[order]] = np.arange(len(P), 0, -1)
    return worths


ORDERS = {
    "bradley-terry": bradley_terry,
    "row sums": row_sums,
    "copeland": copeland,
    "kemeny": kemeny,
}


# ---- The search among orders behind `kemeny`


def _best_order(excess: Floats) -> Ids:
    """The order with the largest sum of excess[i, j] over all i before j.

    For each set of items, encoded as bits of an integer, the function finds the best
    order of the set under the condition that its items come first.
    """
    n = len(excess)
    sets = np.arange(1 << n)
    items = np.arange(n)
    inside = (sets[:, None] >> items & 1).astype(bool)
    gain = ~inside @ excess.T  # if an item comes after the set
    best = np.where(sets > 0, -np.inf, 0.0)
    last = np.zeros(len(sets), np.int64)
    for size in range(n):
        of_size = inside.sum(axis=1) == size
        for i in items[::-1]:
            before = sets[of_size & ~inside[:, i]]
            after = before | 1 << i
            value = best[before] + gain[before, i]
            better = value > best[after]
            best[after[better]] = value[better]
            last[after[better]] = i
    order = np.empty(n, np.int64)
    chosen = len(sets) - 1
    for place in range(n - 1, -1, -1):
        order[place] = last[chosen]
        chosen ^= 1 << order[place]
    return order


def _improved_order(excess: Floats) -> Ids:
    """Improve the order 0, 1, ... by moves of one item until no move raises the sum."""
    order = np.arange(len(excess))
    min_gain = 1e-12 * np.abs(excess).max()
    # Each move raises the sum, so a few rounds suffice. The bound prevents endless
    # rounds due to rounding.
    for _ in range(len(excess) ** 2):
        before = order
        for start in range(len(order)):
            others = np.delete(order, start)
            ahead = np.append(0.0, np.cumsum(excess[order[start], others]))
            gain = ahead[start] - ahead
            if gain.max() > min_gain:
                best = np.flatnonzero(gain == gain.max())
                place = best[np.abs(best - start).argmin()]  # the nearest
                order = np.insert(others, place, order[start])
        if order is before:
            break
    return order
