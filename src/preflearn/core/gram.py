"""Gram matrices: the operator that solvers see, its dense form, and checks of what
callers hand over."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from preflearn.core.compilation import njit, njit_inner
from preflearn.core.validation import Floats, Ids, check_array

_ROUNDING = 1e-15  # smaller asymmetry, relative to the diagonal, is left as it is
_TILE = 256


class Gram(Protocol):
    """Inner products of m points, by what solvers ask for;
    `preflearn.pairs.DifferenceGram` is those of B."""

    def block(self, rows: Ids, columns: Ids) -> Floats: ...
    def times(self, v: Floats) -> Floats: ...


class DenseGram:
    """A symmetric matrix as an operator.

    Its products add in the same order on any number of threads.
    """

    __slots__ = ("K",)

    def __init__(self, K: Floats) -> None:
        self.K = fixed(K)

    def block(self, rows: Ids, columns: Ids) -> Floats:
        """The entries of these rows and columns, shape (len(rows), len(columns))."""
        return _gather(self.K, rows, columns)

    def times(self, v: Floats) -> Floats:
        """K v, shape (m,); quick where v is sparse."""
        rows = np.flatnonzero(v)
        return combine(self.K, rows, v[rows])


def fixed(matrix: Floats) -> Floats:
    """The same numbers, as the one kind of array that loops are compiled for."""
    matrix = np.ascontiguousarray(matrix).view()
    matrix.setflags(write=False)
    return matrix


@njit
def _gather(matrix, rows, columns):
    """Five times as fast as matrix[np.ix_(rows, columns)]."""
    block = np.empty((len(rows), len(columns)))
    for i in range(len(rows)):
        for j in range(len(columns)):
            block[i, j] = matrix[rows[i], columns[j]]
    return block


@njit
def combine(matrix, rows, weights):
    """The sum of the first of these rows, each times its weight."""
    total = np.empty(matrix.shape[1])
    combine_into(total, matrix, rows, weights)
    return total


@njit_inner
def combine_into(total, matrix, rows, weights):
    """Write `combine`; four rows at a time, for memory traffic."""
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
    """K without its row means and column means: the inner products of centred items.

    B K B' does not change, since B takes off constants of rows and columns of K.
    """
    means = (K.mean(axis=0) + K.mean(axis=1)) / 2
    means -= means.mean() / 2
    return K - (means[:, None] + means)


def check_gram(K: ArrayLike) -> Floats:
    """Return K as a square, finite, symmetric matrix, or say which entry is wrong."""
    K = check_array(K, "K", ("m", "m"), "a square matrix")
    gap = check_symmetric(K, "K")
    if gap > _ROUNDING * float(np.abs(np.diag(K)).max()):
        return (K + K.T) / 2
    return np.ascontiguousarray(K)


def check_symmetric(K: Floats, name: str, tolerance: float = 1e-10) -> float:
    """The largest difference across the diagonal, or a ValueError that says where it
    exceeds the tolerance.

    The tolerance is relative to the diagonal and to the entry. Works tile by tile,
    without a second matrix.
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
