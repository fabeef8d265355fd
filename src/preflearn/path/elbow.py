"""The points on the margin whose weights move, with a factor of their Gram matrix: compiled loops.

With bias, a constant tau is added to the Gram matrix. It changes nothing for weights of fixed sum, and makes
the matrix positive definite exactly where the system bordered by the sum is regular.

The Gram matrix is U'DU with a unit upper triangle U. Points come as a column, and leave by an update of the
rows below theirs with a positive multiple of theirs; both are stable, and so are solutions, however
ill-conditioned the elbow is: what they leave of the equations is rounding. (An explicit inverse is not: its
residuals grow with the condition.) The right sides are two more columns of U, so that a solution costs one
pass. The pivot D of a point is its squared distance from the span of those
before. Below `DEPENDENT` of its own square it is made of the rounding of the data, and the point stays out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids
from preflearn.compiled import njit, njit_sums

DEPENDENT = 1e-14


class Elbow(NamedTuple):
    """Arrays filled up to the present size; `places` are positions in a block of a Gram matrix."""

    size: NDArray[np.int64]  # (1,)
    places: NDArray[np.int64]  # (capacity,)
    factor: Floats  # (capacity, capacity): U, with D on the diagonal
    right: Floats  # (2, capacity): solutions b of U'D b = values, and of U'D b = ones


def empty_elbow(capacity: int) -> Elbow:
    """Nobody yet, and room for so many points."""
    filled, square = np.zeros(capacity, dtype=np.int64), (capacity, capacity)
    right = np.zeros((2, capacity))
    return Elbow(np.zeros(1, dtype=np.int64), filled, np.zeros(square), right)


def new_elbow(block: Floats, places: Ids, values: Floats, capacity: int, tau: float) -> Elbow:
    """The elbow of these places of a block, with room for so many points."""
    elbow = empty_elbow(capacity)
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        column = block[place, elbow.places[: elbow.size[0]]] + tau
        enter(elbow, column, block[place, place] + tau, place, value, 2 * DEPENDENT)
    return elbow


def moved(elbow: Elbow, places: Ids, capacity: int) -> Elbow:
    """The same points, at these places of another block, with room for so many."""
    n = len(places)
    other = empty_elbow(capacity)
    other.size[0], other.places[:n], other.right[:, :n] = n, places, elbow.right[:, :n]
    other.factor[:n, :n] = elbow.factor[:n, :n]
    return other


@njit
def enter(elbow, column, own, place, value, least):
    """Take a point in; False, and nothing changes, if it depends on the others and no `least` pivot is given.

    `column` has its inner products with the others, in their order (it is used up), and `own` its square.
    """
    factor, right, n = elbow.factor, elbow.right, elbow.size[0]
    pivot, one = own, 1.0
    for i in range(n):
        entry = column[i]
        for j in range(i + 1, n):
            column[j] -= entry * factor[i, j]
        pivot -= entry * entry / factor[i, i]
        value -= entry * right[0, i]
        one -= entry * right[1, i]
    if pivot <= DEPENDENT * own:
        if least == 0:
            return False
        pivot = least * own
    for k in range(n):
        factor[k, n] = column[k] / factor[k, k]
    factor[n, n], right[0, n], right[1, n] = pivot, value / pivot, one / pivot
    elbow.places[n] = place
    elbow.size[0] = n + 1
    return True


@njit
def leave(elbow, place):
    """Let a point go; those behind it move up."""
    factor, right, n, first = elbow.factor, elbow.right, elbow.size[0] - 1, 0
    while elbow.places[first] != place:
        first += 1
    share, gone, value, one = factor[first, first], np.empty(n), right[0, first], right[1, first]
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
        value -= weight * right[0, i + 1]
        one -= weight * right[1, i + 1]
        right[0, i], right[1, i] = right[0, i + 1] + ratio * value, right[1, i + 1] + ratio * one
    elbow.size[0] = n


@njit
def solve(elbow, delta, total, tau):
    """Write delta with K delta + shift = values and sum(delta) = total on these points; return the shift.

    Without bias (tau = 0) the shift is 0, and the sum is free.
    """
    n, factor, excess, unit = elbow.size[0], elbow.factor, -total, 0.0
    ones = np.empty(n if tau > 0 else 0)
    for i in range(n - 1, -1, -1):
        delta[i] = elbow.right[0, i] - _behind(factor[i], delta, i, n)
        excess += delta[i]
    if tau == 0 or n == 0:
        return tau * total
    for i in range(n - 1, -1, -1):
        ones[i] = elbow.right[1, i] - _behind(factor[i], ones, i, n)
        unit += ones[i]
    for k in range(n):
        delta[k] -= excess / unit * ones[k]
    return excess / unit + tau * total


@njit_sums
def _behind(row, values, i, n):
    """The sum of the products of a row and these values, behind place i."""
    total = 0.0
    for j in range(i + 1, n):
        total += row[j] * values[j]
    return total
