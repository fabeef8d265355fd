"""The points on the margin whose weights move, with the inverse of their Gram matrix: compiled loops.

A constant tau is added to the Gram matrix. It changes nothing for weights of fixed sum, and makes the matrix
positive definite exactly where the system bordered by the sum is regular.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["Elbow", "add", "new_elbow", "remove", "solve", "weighted_rows"]

Floats = NDArray[np.float64]

_DEPENDENT = 1e-12  # a row of which less than this share remains depends on the others
_RESIDUAL = 1e-9  # a solution with a larger one is refined
_ROUNDS = 3


class Elbow(NamedTuple):
    """Arrays that are filled up to the present size; `places` are positions of the points in a watch set."""

    size: NDArray[np.int64]  # (1,)
    places: NDArray[np.int64]  # (capacity,)
    rows: Floats  # (capacity, watched), of K
    gram: Floats  # (capacity, capacity), with tau added
    inverse: Floats  # (capacity, capacity)


def new_elbow(rows: Floats, places: NDArray[np.int64], capacity: int, tau: float) -> Elbow:
    """The elbow of these places with their rows of K, shape (size, watched), and room for more."""
    n = len(places)
    square = (capacity, capacity)
    elbow = Elbow(
        np.array([n]),
        np.empty(capacity, dtype=np.int64),
        np.empty((capacity, rows.shape[1])),
        np.empty(square),
        np.empty(square),
    )
    elbow.places[:n], elbow.rows[:n] = places, rows
    elbow.gram[:n, :n] = rows[:, places] + tau
    elbow.inverse[:n, :n] = np.linalg.inv(elbow.gram[:n, :n])
    return elbow


@njit(cache=True)
def weighted_rows(matrix, weights, columns):
    """The sum of the first rows, each times its weight; four at a time, for the sake of memory traffic."""
    total, rows = np.zeros(columns), len(weights)
    for i in range(0, rows - 3, 4):
        a, b, c, d = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(columns):
            low = a * matrix[i, j] + b * matrix[i + 1, j]
            total[j] += low + (c * matrix[i + 2, j] + d * matrix[i + 3, j])
    for i in range(rows - rows % 4, rows):
        for j in range(columns):
            total[j] += weights[i] * matrix[i, j]
    return total


@njit(cache=True)
def add(elbow, place, row, tau):
    """Take a point in; False, and nothing changes, if its row depends on those of the others."""
    n = elbow.size[0]
    cross, own = row[elbow.places[:n]] + tau, row[place] + tau
    weights = weighted_rows(elbow.inverse, cross, n)
    weights += weighted_rows(elbow.inverse, cross - weighted_rows(elbow.gram, weights, n), n)
    rest = own - np.sum(cross * weights)
    if rest <= _DEPENDENT * own:
        return False
    for i in range(n):
        share = weights[i] / rest
        for j in range(n):
            elbow.inverse[i, j] += share * weights[j]
        elbow.inverse[n, i] = elbow.inverse[i, n] = -share
        elbow.gram[n, i] = elbow.gram[i, n] = cross[i]
    elbow.inverse[n, n], elbow.gram[n, n] = 1 / rest, own
    elbow.places[n], elbow.rows[n] = place, row
    elbow.size[0] = n + 1
    return True


@njit(cache=True)
def remove(elbow, which):
    """Let the point at this position of the elbow go; the last point takes its position."""
    last = elbow.size[0] - 1
    for matrix in (elbow.gram, elbow.inverse):
        for j in range(last + 1):
            matrix[which, j], matrix[last, j] = matrix[last, j], matrix[which, j]
        for i in range(last + 1):
            matrix[i, which], matrix[i, last] = matrix[i, last], matrix[i, which]
    elbow.places[which], elbow.rows[which] = elbow.places[last], elbow.rows[last]
    for i in range(last):
        share = elbow.inverse[i, last] / elbow.inverse[last, last]
        for j in range(last):
            elbow.inverse[i, j] -= share * elbow.inverse[last, j]
    elbow.size[0] = last


@njit(cache=True)
def solve(elbow, values, total, tau):
    """delta and delta_0 with K delta + delta_0 = values on these points and sum(delta) = total."""
    n = elbow.size[0]
    delta, shift = _solve_once(elbow, values, total)
    limit = _RESIDUAL * max(np.max(np.abs(values)), abs(total) * tau)
    for _ in range(_ROUNDS):
        residual = values - shift - weighted_rows(elbow.gram, delta, n)
        change, more = _solve_once(elbow, residual, total - np.sum(delta))
        delta, shift = delta + change, shift + more
        if np.max(np.abs(residual)) <= limit:
            break
        elbow.inverse[:n, :n] = np.linalg.inv(np.ascontiguousarray(elbow.gram[:n, :n]))
    return delta, shift + tau * total


@njit(cache=True)
def _solve_once(elbow, values, total):
    n = elbow.size[0]
    ones = weighted_rows(elbow.inverse, np.ones(n), n)
    plain = weighted_rows(elbow.inverse, values, n)
    shift = (np.sum(plain) - total) / np.sum(ones)
    return plain - shift * ones, shift
