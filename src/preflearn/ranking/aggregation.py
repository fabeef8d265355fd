"""From degrees of pairwise preference to one order: rank aggregation, section 5.2 of [AhmadiFahandar2019]_.

Each function takes the degrees P, with P[i, j] for "i is better than j", and returns worths of the items,
large is good. They may be shares or counts, and need not be reciprocal; the diagonal does not count.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference learning with kernels",
   KI 2019.
.. [Ford1957] L. R. Ford, "Solution of a ranking problem from binary comparisons", American Mathematical
   Monthly 64, 1957.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.special import expit

from preflearn.checks import LARGEST, Floats, Ids, check_array, refuse

_LEAST = 1e-9  # of the largest degree: what must be exceeded to count, and what all get if no maximum exists
_LONGEST = 5.0  # step of Newton's method: how far two neighbours in the order may move apart
_LONG, _SHORTER = 100, 0.5  # after so many steps, which may go to and fro for ever, no farther than this
_ROUNDED = 1e-3  # a step below it that does not fall any more is rounding
_MOST_STEPS = 500
_EQUAL = 1e-8  # log-worths closer than this are one
_ROUNDING = 1e-12  # of the largest row sum
_EXACT = 16  # items of one majority cycle whose Kemeny order is searched among all


def bradley_terry(P: ArrayLike) -> Floats:
    """Log-worths of most likelihood in the model of Bradley, Terry and Luce, eq. 11 of [AhmadiFahandar2019]_.

    Maximises, over theta > 0 with a product of 1 (section 5.2)::

        sum over i != j of p_ij log(theta_i / (theta_i + theta_j)).

    Parameters
    ----------
    P : array-like of shape (n, n)
        Degrees or counts, not negative. Their scale does not matter.

    Returns
    -------
    worths : ndarray of shape (n,)
        log theta, with mean 0. Neighbours in the order closer than 1e-8 are made equal, and so are chains of
        them, so that rounding orders nothing.

    Raises
    ------
    ValueError
        If P is not square, negative somewhere, or not finite.

    Notes
    -----
    The maximum exists if and only if the graph of the p_ij > 0 is strongly connected [Ford1957]_: there is
    no part of the items that never loses to the rest. Where that fails (degrees of 0 and 1, items that were
    never compared), or hangs on degrees below 1e-9 of the largest, this much is added to all p_ij with
    i != j. As the addition goes to 0, the worths of a and b grow apart without end if a chain of preferences
    leads from a to b, and none back: the chain decides. Without any preference all worths are 0.

    Where each p_ij + p_ji is the same, the order is that of the row sums, whatever is added: at the maximum
    the sum of p_ij over j is that of theta_i / (theta_i + theta_j), which grows with theta_i.

    Newton's method, in O(n^3) a step, and as a rule in 5 to 60 steps, for total orders as well; its steps
    are shortened where neighbours in the order would move far apart, and only there.

    Examples
    --------
    >>> bradley_terry([[0, 3], [1, 0]]).round(6).tolist()  # theta in the ratio 3 : 1
    [0.549306, -0.549306]
    >>> worths = bradley_terry([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    >>> bool(np.isfinite(worths).all()), np.argsort(-worths).tolist()
    (True, [0, 1, 2])
    """
    degrees = _check_degrees(P)
    if not degrees.any():
        return np.zeros(len(degrees))
    degrees /= degrees.max()
    if connected_components(np.greater(degrees, _LEAST), connection="strong")[0] > 1:
        degrees += _LEAST * ~np.eye(len(degrees), dtype=bool)
    return _merged(_maximum(degrees), _EQUAL)


def _maximum(P: Floats) -> Floats:
    """Newton's method. Far from the maximum, items whose comparisons are settled would be thrown anywhere.

    Such an item leaves its neighbours behind, while items of a long order move far with theirs.
    """
    worths, total, last = np.zeros(len(P)), P + P.T, np.inf
    for number in range(_MOST_STEPS):
        chance = expit(worths[:, None] - worths)
        slope = (P * chance.T - P.T * chance).sum(axis=1)
        weights = total * chance * chance.T
        hessian = np.diag(weights.sum(axis=1)) - weights + 1 / len(P)  # which keeps the mean
        step = np.linalg.solve(hessian, slope)
        length = float(np.ptp(step))
        apart = np.abs(np.diff(step[np.argsort(worths, kind="stable")])).max(initial=0.0)
        worths = worths + step / max(1.0, apart / (_LONGEST if number < _LONG else _SHORTER))
        if length < _EQUAL / 100 or last <= length < _ROUNDED:
            break
        last = length
    return worths - worths.mean()


def row_sums(P: ArrayLike) -> Floats:
    """The sum of p_ij over all j other than i; of votes it is the count of Borda.

    Parameters
    ----------
    P : array-like of shape (n, n)
        As in `bradley_terry`.

    Returns
    -------
    worths : ndarray of shape (n,)
        Values that differ by rounding only are made equal.

    Raises
    ------
    ValueError
        As in `bradley_terry`.

    Examples
    --------
    >>> row_sums([[0, 0.75, 0.5], [0.25, 0, 0.5], [0.5, 0.5, 0]]).tolist()
    [1.25, 0.75, 1.0]
    """
    sums = _check_degrees(P).sum(axis=1)
    return _merged(sums, _ROUNDING * float(sums.max()))


def copeland(P: ArrayLike) -> Floats:
    """How many items each one beats: the number of j with p_ij > p_ji, and half of those with equality.

    For reciprocal degrees, p_ij > p_ji says p_ij > 1/2. Two items that were never compared are equal.

    Parameters
    ----------
    P : array-like of shape (n, n)
        As in `bradley_terry`.

    Returns
    -------
    worths : ndarray of shape (n,)
        Between 0 and n - 1; they often coincide.

    Raises
    ------
    ValueError
        As in `bradley_terry`.

    Examples
    --------
    >>> copeland([[0, 0.75, 0.5], [0.25, 0, 0.5], [0.5, 0.5, 0]]).tolist()
    [1.5, 0.5, 1.0]
    """
    P = _check_degrees(P)
    return (np.sign(P - P.T).sum(axis=1) + len(P) - 1) / 2


def kemeny(P: ArrayLike) -> Floats:
    """An order with the least total degree against it: the sum of p_ji over all i that come before j.

    Items with a majority over all others come before them in some best order, so the order is searched
    within the cycles of the majority p_ij > p_ji only: exactly, by dynamic programming over subsets, in
    those of up to 16 items; a longer one starts in the order of row sums, and single items move as long as
    that lowers the sum, which may end above the least.

    Parameters
    ----------
    P : array-like of shape (n, n)
        As in `bradley_terry`.

    Returns
    -------
    worths : ndarray of shape (n,)
        n for the first item, 1 for the last; no two are equal. Where several orders are as good, row sums
        tend to decide, and then the place in P.

    Raises
    ------
    ValueError
        As in `bradley_terry`.

    Examples
    --------
    >>> kemeny([[0, 0.9, 0.4], [0.1, 0, 0.8], [0.6, 0.2, 0]]).tolist()  # a cycle, broken where it is weakest
    [3.0, 2.0, 1.0]
    """
    P = _check_degrees(P)
    by_sums = np.argsort(-row_sums(P), kind="stable")
    excess = (P - P.T)[np.ix_(by_sums, by_sums)]
    reach = np.isfinite(shortest_path(excess > 0, unweighted=True))  # by a chain of majorities, or itself
    cycle = connected_components(reach, connection="strong")[1]
    order = np.lexsort((cycle, -reach.sum(axis=1)))  # who is above a cycle reaches more than it does
    for part in np.split(order, np.flatnonzero(np.diff(cycle[order])) + 1):
        search = _best_order if len(part) <= _EXACT else _improved_order
        inner = np.sort(part)
        part[:] = inner[search(excess[np.ix_(inner, inner)])]
    worths = np.empty(len(P))
    worths[by_sums[order]] = np.arange(len(P), 0, -1)
    return worths


AGGREGATES: dict[str, Callable[[ArrayLike], Floats]] = {
    "bradley-terry": bradley_terry,
    "row sums": row_sums,
    "copeland": copeland,
    "kemeny": kemeny,
}


def _check_degrees(P: ArrayLike) -> Floats:
    """A copy with a diagonal of 0."""
    array = check_array(P, "P", ("n", "n"), "a degree for each ordered pair of items")
    refuse((array < 0) | (array > LARGEST), array, "P", "degrees from 0 to 1e100")
    return np.where(np.eye(len(array), dtype=bool), 0.0, array)


def _merged(worths: Floats, tolerance: float) -> Floats:
    """Neighbours no farther apart than this become equal."""
    order = np.argsort(worths, kind="stable")
    ascending = worths[order]
    first = np.append(True, np.diff(ascending) > tolerance)
    merged = np.empty(len(worths))
    merged[order] = ascending[first][np.cumsum(first) - 1]
    return merged


# ---- The search among orders behind `kemeny`


def _best_order(excess: Floats) -> Ids:
    """The order with the largest sum of excess[i, j] over all i before j, over all orders.

    Of each set of items, as bits of a number, the best order in which they can come first.
    """
    n = len(excess)
    sets, items = np.arange(1 << n), np.arange(n)
    inside = (sets[:, None] >> items & 1).astype(bool)
    gain = ~inside @ excess.T  # of the item that comes next
    best, last = np.where(sets > 0, -np.inf, 0.0), np.zeros(len(sets), np.int64)
    for size in range(n):
        of_size = inside.sum(axis=1) == size
        for i in items[::-1]:
            before = sets[of_size & ~inside[:, i]]
            after, value = before | 1 << i, best[before] + gain[before, i]
            better = value > best[after]
            best[after[better]], last[after[better]] = value[better], i
    order, chosen = np.empty(n, np.int64), len(sets) - 1
    for place in range(n - 1, -1, -1):
        order[place] = last[chosen]
        chosen ^= 1 << order[place]
    return order


def _improved_order(excess: Floats) -> Ids:
    """The order 0, 1, ... improved by moves of one item, until none raises the sum."""
    order, least, moved = np.arange(len(excess)), 1e-12 * np.abs(excess).max(), True
    while moved:  # the sum rises with each move, and orders are finite
        moved = False
        for start in range(len(order)):
            others = np.delete(order, start)
            ahead = np.append(0.0, np.cumsum(excess[order[start], others]))
            gain = ahead[start] - ahead
            if gain.max() > least:
                best = np.flatnonzero(gain == gain.max())
                place = best[np.abs(best - start).argmin()]  # the nearest
                moved, order = True, np.insert(others, place, order[start])
    return order
