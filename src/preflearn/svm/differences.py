"""Differences of scores, as operators of the incidence matrix: what multiplies by B K B' and never solves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from preflearn.checks import Floats, Ids
from preflearn.ground.gram import block_of_differences
from preflearn.ground.kernels import gram_features
from preflearn.pairs import Incidence
from preflearn.svm.dual import Rows


class ItemDifferences(NamedTuple):
    """B L: differences of scores u·L of the items; no row of it is ever formed."""

    B: Incidence
    L: Floats  # (n, r)
    rounding: float = 0.0  # of a feature as it was given

    def times(self, u: Floats) -> Floats:
        return self.B.differences(self.L @ u)

    def adjoint(self, v: Floats) -> Floats:
        return self.B.adjoint(v) @ self.L

    def gram(self, weights: Floats) -> Floats:
        return self.L.T @ (self.B.laplacian(weights) @ self.L)

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
        return ItemDifferences(self.B, gram_features(self.K, self.rounding))

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
