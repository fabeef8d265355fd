"""The points on the margin whose weights move, with a factor of their Gram matrix: compiled loops.

With bias, a constant tau is added to the Gram matrix. It changes nothing for weights of fixed sum, and makes
the matrix positive definite exactly where the system bordered by the sum is regular.

The Gram matrix is U'DU with a unit upper triangle U. Points come as a column, and leave by an update of the
rows below theirs with a positive multiple of theirs; both are stable, and so are solutions, however
ill-conditioned the elbow is: what they leave of the equations is rounding. (An explicit inverse is not: its
residuals grow with the condition.) The pivot D of a point is its squared distance from the span of those
before. Below `_DEPENDENT` of its own square it is made of the rounding of the data, and the point stays out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats
from preflearn.compiled import njit

_DEPENDENT = 1e-14


class Elbow(NamedTuple):
    """Arrays filled up to the present size; `places` are positions in a block of a Gram matrix."""

    size: NDArray[np.int64]  # (1,)
    places: NDArray[np.int64]  # (capacity,)
    factor: Floats  # (capacity, capacity): U, with D on the diagonal
    mirror: Floats  # (capacity, capacity): U' below the diagonal, so that all loops run along rows


def new_elbow(block: Floats, places: NDArray[np.int64], capacity: int, tau: float) -> Elbow:
    """The elbow of these places of a block, with room for so many points."""
    filled, square = np.zeros(capacity, dtype=np.int64), (capacity, capacity)
    elbow = Elbow(np.zeros(1, dtype=np.int64), filled, np.zeros(square), np.zeros(square))
    for place in places:
        enter(elbow, block, int(place), tau, 2 * _DEPENDENT)
    return elbow


@njit
def enter(elbow, block, place, tau, least):
    """Take a point in, its pivot at the `least`; False, and nothing changes, if it depends on the others."""
    factor, n = elbow.factor, elbow.size[0]
    own = pivot = block[place, place] + tau
    column = np.empty(n)
    for k in range(n):
        column[k] = block[place, elbow.places[k]] + tau
    _forward(factor, column)
    for k in range(n):
        pivot -= column[k] * column[k] / factor[k, k]
    pivot = max(pivot, least * own)
    if pivot <= _DEPENDENT * own:
        return False
    for k in range(n):
        factor[k, n] = elbow.mirror[n, k] = column[k] / factor[k, k]
    factor[n, n], elbow.places[n] = pivot, place
    elbow.size[0] = n + 1
    return True


@njit
def leave(elbow, place):
    """Let a point go; those behind it move up."""
    factor, n, first = elbow.factor, elbow.size[0] - 1, 0
    while elbow.places[first] != place:
        first += 1
    share, gone = factor[first, first], np.empty(n)
    for j in range(first, n):
        elbow.places[j], gone[j] = elbow.places[j + 1], factor[first, j + 1]
    for i in range(first):
        for j in range(first, n):
            factor[i, j] = factor[i, j + 1]
    for i in range(first, n):
        own, weight = factor[i + 1, i + 1], gone[i]
        factor[i, i] = own + share * weight * weight
        ratio = share * weight / factor[i, i]
        share *= own / factor[i, i]
        for j in range(i + 1, n):
            gone[j] -= weight * factor[i + 1, j + 1]
            factor[i, j] = factor[i + 1, j + 1] + ratio * gone[j]
    for i in range(first, n):
        for j in range(i):
            elbow.mirror[i, j] = factor[j, i]
    elbow.size[0] = n


@njit
def solve(elbow, values, total, tau):
    """delta and delta_0 with K delta + delta_0 = values on these points and sum(delta) = total.

    Without bias (tau = 0) delta_0 is 0, and the sum is free.
    """
    delta, shift = _solved(elbow, values), 0.0
    if tau > 0 and len(delta) > 0:
        ones = _solved(elbow, np.ones(len(delta)))
        excess, unit = -total, 0.0
        for k in range(len(delta)):
            excess += delta[k]
            unit += ones[k]
        shift = excess / unit
        for k in range(len(delta)):
            delta[k] -= shift * ones[k]
    return delta, shift + tau * total


@njit
def _solved(elbow, values):
    x, n = values.copy(), len(values)
    _forward(elbow.factor, x)
    for i in range(n):
        x[i] /= elbow.factor[i, i]
    for i in range(n - 1, -1, -1):
        value = x[i]
        for j in range(i):
            x[j] -= value * elbow.mirror[i, j]
    return x


@njit
def _forward(factor, x):
    """Solve U' z = x in place."""
    for i in range(len(x)):
        value = x[i]
        for j in range(i + 1, len(x)):
            x[j] -= value * factor[i, j]
