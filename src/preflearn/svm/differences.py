"""Feature differences B L: their Gram matrix, and products for the interior point.

Only the rows of B L in a block are ever formed.
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
    """B K B' where K = L L' (`preflearn.core.gram.Gram`)."""

    B: Incidence
    L: Floats  # (n, r)
    # (n,), if the items were reordered so that L is lower triangular
    order: Ids | None = None

    @classmethod
    def triangular(cls, B: Incidence, L: Floats, order: Ids) -> FeatureGram:
        """The differences B L, with items reordered so that L is lower triangular."""
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return cls(Incidence(place[B.index], len(order)), L[order], order)

    @property
    def rank(self) -> int:
        return self.L.shape[1]

    def diagonal(self) -> Floats:
        """Squared norms of the differences, shape (m,)."""
        return sum(
            (self.B.differences(column) ** 2 for column in self.L.T),
            np.zeros(self.B.shape[0]),
        )

    def block(self, rows: Ids, columns: Ids) -> Floats:
        """The entries of some pairs with others, shape (len(rows), len(columns))."""
        return self.B[rows].differences(self.L) @ self.B[columns].differences(self.L).T

    def times(self, v: Floats) -> Floats:
        """B K B'v, shape (m,)."""
        return self.B.differences(self.L @ (self.B.adjoint(v) @ self.L))

    def weighted_gram(self, weights: Floats) -> Floats:
        """L'B'WBL, as one half of the Laplacian plus its transpose.

        So each pair is used once.
        """
        half = _half_laplacian_times(*self.B.index.T, weights, self.L)
        if self.order is None:
            product = half.T @ self.L
        else:
            r = self.rank
            (trmm,) = linalg.get_blas_funcs(("trmm",), (half,))
            product = trmm(1.0, self.L[:r].T, half[:r].T, side=1, trans_a=1)
            product += half[r:].T @ self.L[r:]
        return np.add(product, product.T, order="F")  # as LAPACK takes it

    def item_coefficients(self, u: Floats, start: Floats) -> Floats:
        """Coefficients c of the items with L'c = u, near `start`; for triangular L."""
        order = np.asarray(self.order)
        used = slice(self.rank)
        c = start[order]
        for _ in range(2):  # the second time for the rounding of the first
            c[used] += linalg.solve_triangular(
                self.L[used], u - c @ self.L, trans=1, lower=True
            )
        result = np.empty(len(c))
        result[order] = c
        return result


class HingeMatrix(NamedTuple):
    """The hinges' rows label · sign · difference, as an operator."""

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
    """U L, with U + U' = B'WB: half of the degrees, and each pair in one row only.

    This is the row of its first item.
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
