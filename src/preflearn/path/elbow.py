"""The points on the margin whose weights move, with a factor of their Gram matrix: compiled loops.

With bias, tau times the products of the signs is part of the Gram matrix. It changes nothing for weights of
fixed signed sum, and makes the matrix positive definite exactly where the system bordered by the signs is
regular.

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

from preflearn.checks import Floats
from preflearn.compiled import njit, njit_sums

DEPENDENT = 1e-14


class Elbow(NamedTuple):
    """Arrays filled up to the present size; `places` are positions in a block of a Gram matrix."""

    size: NDArray[np.int64]  # (1,)
    places: NDArray[np.int64]  # (capacity,)
    factor: Floats  # (capacity, capacity): U, with D on the diagonal
    right: Floats  # (2, capacity): solutions b of U'D b = values, and of U'D b = signs
    signs: Floats  # (capacity,)


def empty_elbow(capacity: int) -> Elbow:
    """Nobody yet, and room for so many points."""
    places, factor = np.zeros(capacity, dtype=np.int64), np.zeros((capacity, capacity))
    return Elbow(np.zeros(1, dtype=np.int64), places, factor, np.zeros((2, capacity)), np.zeros(capacity))


@njit
def enter(elbow, column, own, place, value, sign, least):
    """Take a point in; False, and nothing changes, if it depends on the others and no `least` pivot is given.

    `column` has its inner products with the others, in their order (it is used up), and `own` its square.
    """
    factor, right, n = elbow.factor, elbow.right, elbow.size[0]
    pivot, one = own, sign
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
    elbow.places[n], elbow.signs[n] = place, sign
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
        elbow.places[j], elbow.signs[j] = elbow.places[j + 1], elbow.signs[j + 1]
        gone[j] = factor[first, j + 1]
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
    """Write delta with K delta + shift * signs = values and signs·delta = total; return the shift.

    Without bias (tau = 0) the shift is 0, and the sum is free.
    """
    n, factor, excess, unit = elbow.size[0], elbow.factor, -total, 0.0
    ones = np.empty(n if tau > 0 else 0)
    for i in range(n - 1, -1, -1):
        delta[i] = elbow.right[0, i] - _behind(factor[i], delta, i, n)
        excess += elbow.signs[i] * delta[i]
    if tau == 0 or n == 0:
        return tau * total
    for i in range(n - 1, -1, -1):
        ones[i] = elbow.right[1, i] - _behind(factor[i], ones, i, n)
        unit += elbow.signs[i] * ones[i]
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
