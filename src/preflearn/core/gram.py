"""Gram matrices: their interface for solvers, a dense version, and checks."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from preflearn.core.compilation import njit, njit_inner
from preflearn.core.validation import Floats, Ids, check_array

_ROUNDING = 1e-15  # smaller asymmetries, relative to the diagonal, are ignored
_TILE = 256


class Gram(Protocol):
    """Interface of a Gram matrix of m points, as the solvers use it.

    `preflearn.pairs.DifferenceGram` implements it for differences of items.
    """

    def block(self, rows: Ids, columns: Ids) -> Floats: ...
    def times(self, v: Floats) -> Floats: ...


class DenseGram:
    """A dense symmetric matrix that implements `Gram`.

    The order of summation in its products does not depend on the number of threads.
    """

    __slots__ = ("K",)

    def __init__(self, K: Floats) -> None:
        self.K = fixed(K)

    def block(self, rows: Ids, columns: Ids) -> Floats:
        """Return the entries of these rows and columns."""
        return _gather(self.K, rows, columns)

    def times(self, v: Floats) -> Floats:
        """Return K v, shape (m,); fast if v has few nonzero entries."""
        rows = np.flatnonzero(v)
        return combine(self.K, rows, v[rows])


def fixed(matrix: Floats) -> Floats:
    """Return a read-only, C-contiguous view, the type that loops are compiled for."""
    matrix = np.ascontiguousarray(matrix).view()
    matrix.setflags(write=False)
    return matrix


@njit
def _gather(matrix, rows, columns):
    """Return matrix[np.ix_(rows, columns)], five times as fast."""
    block = np.empty((len(rows), len(columns)))
    for i in range(len(rows)):
        for j in range(len(columns)):
            block[i, j] = matrix[rows[i], columns[j]]
    return block


@njit
def combine(matrix, rows, weights):
    """Return the weighted sum of the first len(weights) of these rows."""
    total = np.empty(matrix.shape[1])
    combine_into(total, matrix, rows, weights)
    return total


@njit_inner
def combine_into(total, matrix, rows, weights):
    """Write the result of `combine` to `total`.

    Four rows are added at a time, which reduces memory traffic.
    """
    columns = matrix.shape[1]
    n = len(weights)
    total[:] = 0
    for k in range(0, n - 3, 4):
        a = weights[k]
        b = weights[k + 1]
        c = weights[k + 2]
        d = weights[k + 3]
        first = matrix[rows[k]]
        second = matrix[rows[k + 1]]
        third = matrix[rows[k + 2]]
        fourth = matrix[rows[k + 3]]
        for j in range(columns):
            total[j] += (a * first[j] + b * second[j]) + (c * third[j] + d * fourth[j])
    for k in range(n - n % 4, n):
        row = matrix[rows[k]]
        for j in range(columns):
            total[j] += weights[k] * row[j]


def centred(K: Floats) -> Floats:
    """Return K without its row and column means: the Gram matrix of centered items.

    B K B' does not change, since row and column constants of K cancel in it.
    """
    means = (K.mean(axis=0) + K.mean(axis=1)) / 2
    means -= means.mean() / 2
    return K - (means[:, None] + means)


def check_gram(K: ArrayLike) -> Floats:
    """Return K as a square, finite, symmetric matrix."""
    K = check_array(K, "K", ("m", "m"), "a square matrix")
    gap = check_symmetric(K, "K")
    if gap > _ROUNDING * float(np.abs(np.diag(K)).max()):
        return (K + K.T) / 2
    return np.ascontiguousarray(K)


def check_symmetric(K: Floats, name: str, tolerance: float = 1e-10) -> float:
    """Return the largest asymmetry; raise ValueError if it exceeds the tolerance.

    The tolerance is relative to the diagonal and to the entry. The matrix is compared
    tile by tile, which needs no second matrix in memory.
    """
    gap = 0.0
    i = 0
    j = 0
    for top in range(0, len(K), _TILE):
        for left in range(0, top + 1, _TILE):
            rows = slice(top, top + _TILE)
            columns = slice(left, left + _TILE)
            gaps = np.abs(K[rows, columns] - K[columns, rows].T)
            row, column = np.unravel_index(np.argmax(gaps), gaps.shape)
            if gaps[row, column] > gap:
                gap = float(gaps[row, column])
                i = left + int(column)
                j = top + int(row)
    if gap > tolerance * max(float(np.abs(np.diag(K)).max()), abs(K[i, j])):
        raise ValueError(
            f"{name}[{i}, {j}] is {K[i, j]} but {name}[{j}, {i}] is {K[j, i]}; expected a symmetric {name}"
        )
    return gap
