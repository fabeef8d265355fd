"""Feature differences B L: Gram matrix, and products for the interior point.

The rows of B L are formed only for one block of pairs at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from preflearn.core.compilation import njit
from preflearn.core.validation import Floats, Ids
from preflearn.pairs import Incidence
from preflearn.solvers.hinge_dual import HingeTerms


class FeatureGram(NamedTuple):
    """The Gram matrix B K B' with K = L L', see `preflearn.core.gram.Gram`."""

    B: Incidence
    L: Floats  # (n, r)
    # (n,) order of items in which L is lower triangular, if there is one
    order: Ids | None = None

    @classmethod
    def triangular(cls, B: Incidence, L: Floats, order: Ids) -> FeatureGram:
        """Return the Gram matrix for reordered items, such that L is lower triangular."""
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return cls(Incidence(place[B.index], len(order)), L[order], order)

    @property
    def rank(self) -> int:
        return self.L.shape[1]

    def diagonal(self) -> Floats:
        """Return the squared norms of the differences, shape (m,)."""
        return sum(
            (self.B.differences(column) ** 2 for column in self.L.T),
            np.zeros(self.B.shape[0]),
        )

    def block(self, rows: Ids, columns: Ids) -> Floats:
        """Return the entries of some rows and columns."""
        return self.B[rows].differences(self.L) @ self.B[columns].differences(self.L).T

    def times(self, v: Floats) -> Floats:
        """Return B K B'v, shape (m,)."""
        return self.B.differences(self.L @ (self.B.adjoint(v) @ self.L))

    def weighted_gram(self, weights: Floats) -> Floats:
        """Return L'B'WBL.

        It is computed as the sum of a matrix and its transpose, so that each pair is
        used once.
        """
        half = _half_laplacian_times(*self.B.index.T, weights, self.L)
        if self.order is None:
            product = half.T @ self.L
        else:
            r = self.rank
            (trmm,) = linalg.get_blas_funcs(("trmm",), (half,))
            product = trmm(1.0, self.L[:r].T, half[:r].T, side=1, trans_a=1)
            product += half[r:].T @ self.L[r:]
        return np.add(product, product.T, order="F")  # column-major, as LAPACK needs it

    def item_coefficients(self, u: Floats, start: Floats) -> Floats:
        """Return item coefficients c with L'c = u, near `start`; L is triangular."""
        order = np.asarray(self.order)
        used = slice(self.rank)
        c = start[order]
        for _ in range(2):  # the second iteration corrects rounding errors
            c[used] += linalg.solve_triangular(
                self.L[used], u - c @ self.L, trans=1, lower=True
            )
        result = np.empty(len(c))
        result[order] = c
        return result


class HingeMatrix(NamedTuple):
    """The matrix with rows label · sign · difference of the hinges, as an operator."""

    features: FeatureGram
    rows: HingeTerms

    def times(self, u: Floats) -> Floats:
        z = self.features.B.differences(self.features.L @ u)
        return self.rows.label * self.rows.sign * self.rows.expanded(z)

    def adjoint(self, v: Floats) -> Floats:
        signed = self.rows.summed(self.rows.label * self.rows.sign * v)
        return self.features.B.adjoint(signed) @ self.features.L

    def gram(self, weights: Floats) -> Floats:
        return self.features.weighted_gram(self.rows.summed(weights))


@njit
def _half_laplacian_times(first, second, weights, L):
    """Return U L for a matrix U with U + U' = B'WB.

    U has half of the degrees on its diagonal, and an entry for each pair in the row of
    its first item.
    """
    n, r = L.shape
    product = np.zeros((n, r))
    degree = np.zeros(n)
    for k in range(len(first)):
        i = first[k]
        j = second[k]
        w = weights[k]
        degree[i] += w
        degree[j] += w
        for c in range(r):
            product[i, c] -= w * L[j, c]
    for i in range(n):
        for c in range(r):
            product[i, c] += degree[i] / 2 * L[i, c]
    return product
