"""The margin set of a path with a factorization of its Gram matrix, compiled.

The Gram matrix of these pairs is U'DU with a unit upper triangle U, so L = U' of an
LDL' factorization. With bias, tau times the products of the signs is added to it. This
has no effect for weights of fixed signed sum, and makes the matrix positive definite if
and only if the system bordered by the signs is regular.

A pair is appended as a column of U. It is deleted by updating the rows below with a
positive multiple of its row. Both operations are backward stable, however
ill-conditioned the Gram matrix is. (An explicit inverse would not be: its residuals
grow with the condition number.) The right-hand sides are stored as two additional
columns of U, so that a solution takes one pass.

The pivot D of a pair is its squared distance from the span of the pairs before it. A
pivot below `MIN_PIVOT` times the pair's own square consists of rounding errors of the
data. The pair then counts as dependent on the others, and is not added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.compilation import njit, njit_inner, njit_inner_sums
from preflearn.core.gram import fixed
from preflearn.core.validation import Floats, Ids

MIN_PIVOT = 1e-14  # relative to the squared norm of the pair's difference


class GramFactor(NamedTuple):
    """The factor U'DU of a Gram matrix, in arrays that are filled up to `size`."""

    size: NDArray[np.int64]  # (1,)
    places: NDArray[np.int64]  # (capacity,): the position of each pair in its arrays
    factor: Floats  # (capacity, capacity): U, with D on the diagonal
    # (3, capacity): solutions b of U'D b = values, and of U'D b = signs; the signs
    right: Floats


class MarginSet(NamedTuple):
    """The pairs on the margin, and the changes per unit decrease of lambda."""

    gram: GramFactor
    rows: Floats  # (capacity, n): the differences of rows of K
    # the same array with the type of K, so that sums of rows are compiled only once
    fixed_rows: Floats
    slots: Ids  # (capacity,): row number of each pair
    moves: Floats  # (capacity,): changes of the weights
    dg: Floats  # (n,)
    slope_error: Floats  # (1,): slopes of margins up to this size are rounding errors


def empty_margin_set(capacity: int, n: int) -> MarginSet:
    """Return an empty set with room for `capacity` pairs of n items."""
    gram = GramFactor(
        np.zeros(1, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros((capacity, capacity)),
        np.zeros((3, capacity)),
    )
    rows = np.empty((capacity, n))
    return MarginSet(
        gram,
        rows,
        fixed(rows),
        np.arange(capacity),
        np.zeros(capacity),
        np.zeros(n),
        np.zeros(1),
    )


@njit_inner
def append_to_factor(gram, column, square, place, value, sign, min_pivot):
    """Append a point; return False, without a change, if it depends on the others.

    `column` has its inner products with the other points; it is overwritten. With a
    positive `min_pivot`, a dependent point is appended with that pivot.
    """
    factor = gram.factor
    right = gram.right
    n = gram.size[0]
    pivot = square
    sign_entry = sign
    # Solve U'z = column; the new column of U is z / D, the new pivot square - z'z / D.
    for i in range(n):
        entry = column[i]
        for j in range(i + 1, n):
            column[j] -= entry * factor[i, j]
        pivot -= entry * entry / factor[i, i]
        value -= entry * right[0, i]
        sign_entry -= entry * right[1, i]
    if pivot <= MIN_PIVOT * square:
        if min_pivot == 0:
            return False
        pivot = min_pivot * square
    for k in range(n):
        factor[k, n] = column[k] / factor[k, k]
    factor[n, n] = pivot
    gram.places[n] = place
    right[0, n] = value / pivot
    right[1, n] = sign_entry / pivot
    right[2, n] = sign
    gram.size[0] = n + 1
    return True


@njit_inner
def delete_from_factor(gram, first):
    """Delete the point at this position; later points move up.

    Without row and column `first`, the trailing block of the Gram matrix is
    U2'D2U2 + d u'u, where u is the deleted row of U behind the diagonal and d its
    pivot. This rank-one update of the factor is method C1 of Gill, Golub, Murray and
    Saunders (Mathematics of Computation 28, 1974). Since d > 0 it is stable.
    """
    factor = gram.factor
    right = gram.right
    n = gram.size[0] - 1
    d = factor[first, first]
    u = np.empty(n)
    # the entries of u in the two right-hand sides
    value = right[0, first]
    sign_entry = right[1, first]
    for j in range(first, n):
        gram.places[j] = gram.places[j + 1]
        right[2, j] = right[2, j + 1]
        u[j] = factor[first, j + 1]
    for i in range(first):
        for j in range(first, n):
            factor[i, j] = factor[i, j + 1]
    for i in range(first, n):
        old_pivot = factor[i + 1, i + 1]
        head = u[i]
        factor[i, i] = old_pivot + d * head * head
        ratio = d * head / factor[i, i]
        d *= old_pivot / factor[i, i]
        for j in range(i + 1, n):
            u[j] -= head * factor[i + 1, j + 1]
            factor[i, j] = factor[i + 1, j + 1] + ratio * u[j]
        value -= head * right[0, i + 1]
        sign_entry -= head * right[1, i + 1]
        right[0, i] = right[0, i + 1] + ratio * value
        right[1, i] = right[1, i + 1] + ratio * sign_entry
    gram.size[0] = n


@njit
def solve(gram, delta, total, tau):
    """Solve K delta + shift * signs = values, signs·delta = total; return the shift.

    The solution is written to delta.

    Without bias (tau = 0), the shift is 0 and the sum is not constrained.
    """
    n = gram.size[0]
    factor = gram.factor
    excess = -total
    unit = 0.0
    ones = np.empty(n if tau > 0 else 0)
    for i in range(n - 1, -1, -1):
        delta[i] = gram.right[0, i] - _dot_behind(factor[i], delta, i, n)
        excess += gram.right[2, i] * delta[i]
    if tau == 0 or n == 0:
        return tau * total
    for i in range(n - 1, -1, -1):
        ones[i] = gram.right[1, i] - _dot_behind(factor[i], ones, i, n)
        unit += gram.right[2, i] * ones[i]
    for k in range(n):
        delta[k] -= excess / unit * ones[k]
    return excess / unit + tau * total


@njit_inner_sums
def _dot_behind(row, values, i, n):
    """Return the inner product of a row and these values after position i."""
    total = 0.0
    for j in range(i + 1, n):
        total += row[j] * values[j]
    return total


@njit_inner
def add_pair(graph, first, second, margin_set, place, value, min_pivot):
    """Add the pair at this place; return False if it depends on the others."""
    K = graph.K
    tau = graph.tau
    gram = margin_set.gram
    i = first[place]
    j = second[place]
    n = gram.size[0]
    row = margin_set.rows[margin_set.slots[n]]
    sign = 0.0
    if tau > 0:
        # One of the items is the last one, whose row of K is 0 except for tau.
        sign = 1.0 if i < j else -1.0
        point = K[min(i, j)]
        for k in range(len(point)):
            row[k] = sign * point[k]
        row[-1] = -sign * tau
    else:
        better = K[i]
        worse = K[j]
        for k in range(len(row)):  # faster than array operations
            row[k] = better[k] - worse[k]
    column = np.empty(n)
    for k in range(n):
        other = gram.places[k]
        column[k] = row[first[other]] - row[second[other]]
    return append_to_factor(
        gram, column, row[i] - row[j], place, value, sign, min_pivot
    )


@njit_inner
def remove_pair(margin_set, k):
    """Remove the pair at this position of the set."""
    slots = margin_set.slots
    slot = slots[k]
    delete_from_factor(margin_set.gram, k)
    n = margin_set.gram.size[0]
    for other in range(k, n):
        slots[other] = slots[other + 1]
    slots[n] = slot


@njit
def fill(graph, first, second, margin_set, places, values):
    """Fill the set with the pairs at these places, and factor their Gram matrix."""
    margin_set.gram.size[0] = 0
    for k in range(len(places)):
        add_pair(graph, first, second, margin_set, places[k], values[k], 2 * MIN_PIVOT)
