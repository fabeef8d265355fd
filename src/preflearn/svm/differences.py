"""Differences of scores, as operators of the incidence matrix: what multiplies by B K B' and never solves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from preflearn.checks import Floats, Ids
from preflearn.compiled import njit
from preflearn.ground.gram import block_of_differences
from preflearn.ground.kernels import pivoted_features
from preflearn.pairs import Incidence
from preflearn.svm.dual import Rows


class ItemDifferences(NamedTuple):
    """B L: differences of scores u·L of the items; no row of it is ever formed."""

    B: Incidence
    L: Floats  # (n, r)
    rounding: float = 0.0  # of a feature as it was given
    order: Ids | None = None  # (n,) if the items were put in this one, to make L lower triangular

    @classmethod
    def triangular(cls, B: Incidence, L: Floats, order: Ids) -> ItemDifferences:
        """The differences B L, with the items in another order, in which L is lower triangular."""
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return cls(Incidence(place[B.index], len(order)), L[order], order=order)

    def times(self, u: Floats) -> Floats:
        return self.B.differences(self.L @ u)

    def adjoint(self, v: Floats) -> Floats:
        return self.B.adjoint(v) @ self.L

    def gram(self, weights: Floats) -> Floats:
        """L'B'WBL: one half of the Laplacian, and its transpose, so that each pair is used once."""
        half = _half_laplacian_times(*self.B.index.T, weights, self.L)
        if self.order is None:
            product = half.T @ self.L
        else:
            r = self.rank
            (trmm,) = linalg.get_blas_funcs(("trmm",), (half,))
            product = trmm(1.0, self.L[:r].T, half[:r].T, side=1, trans_a=1)
            product += half[r:].T @ self.L[r:]
        return np.add(product, product.T, order="F")  # as LAPACK takes it

    def coefficients(self, u: Floats, start: Floats) -> Floats:
        """Of the items, with L'c = u, near those to start from; for features that are triangular."""
        order, used = np.asarray(self.order), slice(self.rank)
        c = start[order]
        for _ in range(2):  # again, for what rounding left
            c[used] += linalg.solve_triangular(self.L[used], u - c @ self.L, trans=1, lower=True)
        result = np.empty(len(c))
        result[order] = c
        return result

    def block(self, pairs: Ids) -> Floats:
        D = self.B[pairs].differences(self.L)
        return D @ D.T

    def gram_times(self, a: Floats) -> Floats:
        return self.times(self.adjoint(a))

    def largest_square(self) -> float:
        return float(np.einsum("ij,ij->i", self.L, self.L).max())

    @property
    def rank(self) -> int:
        return self.L.shape[1]

    def reduced(self) -> ItemDifferences:
        return self

    def block_effort(self, size: int) -> float:
        return 0.1 * size**2 * self.L.shape[1]

    def times_effort(self) -> float:
        return 2.0 * self.L.size


class KernelDifferences(NamedTuple):
    """B K B'."""

    B: Incidence
    K: Floats  # (n, n)
    rounding: float = 0.0  # of an entry of K

    def block(self, pairs: Ids) -> Floats:
        return block_of_differences(self.K, np.ascontiguousarray(self.B.index[pairs]))

    def gram_times(self, a: Floats) -> Floats:
        return self.B.differences(self.K @ self.B.adjoint(a))

    def largest_square(self) -> float:
        return float(self.K.diagonal().max())

    @property
    def rank(self) -> int:
        return len(self.K)

    def reduced(self) -> ItemDifferences:
        """The same by features, as many as the rank."""
        return ItemDifferences.triangular(self.B, *pivoted_features(self.K, self.rounding))

    def block_effort(self, size: int) -> float:
        return float(size * (len(self.K) + 2 * size))

    def times_effort(self) -> float:
        return 0.6 * self.K.size


class HingeMatrix(NamedTuple):
    """The hinges' rows label · sign · difference, as the interior point multiplies by them."""

    differences: ItemDifferences
    rows: Rows

    def times(self, u: Floats) -> Floats:
        return self.rows.label * self.rows.sign * self.rows.expanded(self.differences.times(u))

    def adjoint(self, v: Floats) -> Floats:
        return self.differences.adjoint(self.rows.summed(self.rows.label * self.rows.sign * v))

    def gram(self, weights: Floats) -> Floats:
        return self.differences.gram(self.rows.summed(weights))


@njit
def _half_laplacian_times(first, second, weights, L):
    """U L, with U + U' = B'WB: half of the degrees, and each pair in the row of its first item only."""
    n, r = L.shape
    product, degree = np.zeros((n, r)), np.zeros(n)
    for k in range(len(first)):
        i, j, w = first[k], second[k], weights[k]
        degree[i] += w
        degree[j] += w
        for c in range(r):
            product[i, c] -= w * L[j, c]
    for i in range(n):
        for c in range(r):
            product[i, c] += degree[i] / 2 * L[i, c]
    return product
