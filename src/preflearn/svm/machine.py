"""The pieces that kernel machines for comparisons are built of.

A fit goes through them in this order: the kernel problem (the distinct items and the incidence matrix over
them), the rows of its hinges, their solution, and the ranking function as an expansion in kernels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from preflearn.checks import Floats, Ids, check_labels, check_scale, check_weights
from preflearn.ground.kernels import (
    Kernel,
    check_kernel,
    distinct_items,
    gram_features,
    kernel_matrix,
    kernel_parameters,
)
from preflearn.pairs import Incidence, Pairs, as_pairs
from preflearn.svm.solver import Hinges, Solution, minimise

_NEGATIVE = -1e-8  # beta below this counts as negative; its unit is that of the margin
_INACCURATE = 1e-6  # a duality gap, in units of the objective, that is worth a warning
_USELESS = 1e-2  # one beyond which there is no answer
_LARGEST, _SMALLEST = 1e16, 1e-100  # costs that floats can tell from 0 and infinity beside 1/2 u·u
_BLOCK = 1 << 14  # rows of a temporary copy


class DegenerateBiasError(ValueError):
    """beta >= 0: every pair counts as a significant difference, and -u / beta is no ranking function."""


def check_bias(bias: float, y: NDArray, setting: str, remedy: str) -> None:
    """Raise DegenerateBiasError unless beta is negative."""
    if not bias < _NEGATIVE:
        raise DegenerateBiasError(
            f"beta is {bias:.3g}, but the ranking function -u / beta needs a negative one: with {setting}, "
            f"{np.count_nonzero(y)} preferences against {np.count_nonzero(y == 0)} ties call every pair "
            f"significant. {remedy}"
        )


def check_input(
    pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Pairs, NDArray[np.int8], Floats]:
    """The arguments of a fit, checked: pairs, labels and weights."""
    pairs = as_pairs(pairs)
    return pairs, check_labels(y, len(pairs)), check_weights(sample_weight, len(pairs))


# ---- The kernel problem, and the ranking function that comes out of it


class KernelChoice(Protocol):
    """The parameters of an estimator that name its kernel; `SVMCompare` documents them."""

    kernel: Kernel
    gamma: float | Literal["scale"]
    degree: float
    coef0: float


class Expansion(NamedTuple):
    """A ranking function r(x) = sum_j coef_j k(x, centre_j)."""

    k: Callable[[Floats, NDArray], Floats]
    centres: NDArray
    coef: Floats

    def __call__(self, X: Floats) -> Floats:
        """r of the rows of X, shape (n,)."""
        return self.k(X, self.centres) @ self.coef if len(self.coef) else np.zeros(len(X))


class KernelProblem(NamedTuple):
    """The distinct items that occur in some pairs, their kernel, and the incidence matrix over them."""

    kernel: Kernel
    k: Callable[[Floats, NDArray], Floats]  # (X, centres) to the matrix between them
    ids: Ids  # (n,) rows of the pairs' items
    items: Floats  # (n, p)
    centres: NDArray  # the items as k takes them: their ids where the Gram matrix is given
    B: Incidence  # (m, n)

    @classmethod
    def of(cls, choice: KernelChoice, pairs: Pairs, merge: bool = True) -> KernelProblem:
        """The problem of some pairs; items with equal features become one if `merge`."""
        check_kernel(choice.kernel)
        if choice.kernel == "precomputed":
            if len(set(pairs.items.shape)) > 1:
                raise ValueError(
                    f"the items of the pairs have shape {pairs.items.shape}; with kernel='precomputed' "
                    "they are the (n, n) Gram matrix of all items"
                )
            ids, B = pairs.B.compacted()
            return cls(choice.kernel, _columns, ids, pairs.items[ids], ids, B)
        if merge:
            ids, index = distinct_items(pairs)
            B = Incidence(index, len(ids))
        else:
            ids, B = pairs.B.compacted()
        items = pairs.items[ids]
        check_scale(items, "items")
        parameters = kernel_parameters(choice.kernel, items, choice.gamma, choice.degree, choice.coef0)
        k = partial(kernel_matrix, choice.kernel, **parameters)
        return cls(choice.kernel, k, ids, items, items, B)

    def gram(self) -> Floats:
        return self.k(self.items, self.centres)

    def features(self) -> Floats:
        """L of shape (n, r), whose inner products L L' are the kernel."""
        return self.items if self.kernel == "linear" else gram_features(self.gram())

    def solve(self, rows: HingeRows, tol: float) -> tuple[Solution, Floats]:
        """Minimise 1/2 u·u plus the hinges.

        Returns
        -------
        solution : Solution
        dual_coef : ndarray of shape (m,)
            u = sum_i dual_coef[i] d_i over the pairs of the problem.
        """
        L, cost = self.features(), rows.cost
        size = float(np.einsum("ij,ij->i", L, L).max())
        for name, value in (("cost C · weight", cost.max()), ("cost · k(x, x)", cost.max() * size)):
            if value > _LARGEST:
                raise ValueError(
                    f"the largest {name} is {value:.3g}; expected at most {_LARGEST:g}, since beyond 1/2 u·u "
                    "is lost in rounding: lower C, or standardise the features"
                )
        if cost.min() < _SMALLEST:
            raise ValueError(
                f"the smallest cost C · weight is {cost.min():.3g}; expected at least {_SMALLEST:g}"
            )
        differences = feature_differences(self.B, L)
        A = _DirectedRows(differences, rows.pair, rows.direction, self.B.shape[0])
        solution = minimise(Hinges(A, cost, rows.label), tol)
        return solution, A.summed(rows.direction * solution.dual)

    def expansion(self, item_coef: Floats) -> Expansion:
        """r(x) = sum_j item_coef_j k(x, x_j); a linear one is r(x) = w·x, with the one centre w."""
        if self.kernel == "linear":
            return Expansion(self.k, (item_coef @ self.items)[None], np.ones(1))
        used = np.flatnonzero(item_coef)
        return Expansion(self.k, self.centres[used], item_coef[used])


def _columns(rows_of_gram: Floats, ids: Ids) -> Floats:
    """The kernel of items that are given as rows of a Gram matrix, with those whose ids are given."""
    return rows_of_gram[:, ids]


# ---- Differences of features, as operators of the incidence matrix


class ItemDifferences(NamedTuple):
    """B L: differences of scores u·L of the items; no row of it is ever formed."""

    B: Incidence
    L: Floats  # (n, r)

    def times(self, u: Floats) -> Floats:
        return self.B.differences(self.L @ u)

    def adjoint(self, v: Floats) -> Floats:
        return self.B.adjoint(v) @ self.L

    def gram(self, weights: Floats) -> Floats:
        return self.L.T @ (self.B.laplacian(weights) @ self.L)


class PairDifferences(NamedTuple):
    """B L as the matrix D: cheaper where there are fewer pairs than items."""

    D: Floats  # (m, r)

    def times(self, u: Floats) -> Floats:
        return self.D @ u

    def adjoint(self, v: Floats) -> Floats:
        return v @ self.D

    def gram(self, weights: Floats) -> Floats:
        total = np.zeros((self.D.shape[1],) * 2)
        for start in range(0, len(weights), _BLOCK):
            rows = slice(start, start + _BLOCK)
            block = self.D[rows] * np.sqrt(weights[rows])[:, None]
            total += block.T @ block
        return total


def feature_differences(B: Incidence, L: Floats) -> ItemDifferences | PairDifferences:
    """B L, up to an orthogonal map of the features, by whichever of the two operators has fewer rows."""
    m, n = B.shape
    if n <= m:
        return ItemDifferences(B, np.ascontiguousarray(L))
    D = B.differences(L)
    if D.shape[1] > m:  # an orthogonal map of the features brings r down to m
        D = np.asarray(linalg.qr(D.T, mode="r", overwrite_a=True)[0])[:m].T
    return PairDifferences(np.ascontiguousarray(D))


# ---- The hinges of a machine


class HingeRows(NamedTuple):
    """Terms cost_i max(0, 1 - direction_i u·d[pair_i] - label_i beta), before the differences d are known.

    The two copies of a tie have opposite differences; they are two rows here and share one difference.
    """

    pair: Ids
    direction: Floats  # +1 or -1
    cost: Floats  # positive
    label: Floats  # +1 or -1; all 0 where there is no beta


class _DirectedRows(NamedTuple):
    """The matrix of the rows: direction_i times row pair_i of the differences."""

    differences: ItemDifferences | PairDifferences
    pair: Ids
    direction: Floats
    n_pairs: int

    def times(self, u: Floats) -> Floats:
        return self.direction * self.differences.times(u)[self.pair]

    def adjoint(self, v: Floats) -> Floats:
        return self.differences.adjoint(self.summed(self.direction * v))

    def gram(self, weights: Floats) -> Floats:
        return self.differences.gram(self.summed(weights))

    def summed(self, values: Floats) -> Floats:
        """Values of the rows, added up for each pair."""
        return np.asarray(np.bincount(self.pair, values, self.n_pairs), dtype=np.float64)


def flipped_rows(y: NDArray) -> tuple[Ids, Floats]:
    """Pair and direction of the rows of eq. 8: each preference the right way, each tie in both orders."""
    preferred, tied = np.flatnonzero(y), np.flatnonzero(y == 0)
    one = np.ones(len(tied))
    return np.concatenate([preferred, tied, tied]), np.concatenate([y[preferred], -one, one])


def check_gap(owner: object, gap: float, remedy: str, tol: float = 0.0) -> None:
    """Say so where rounding spoils an answer: a warning of the caller's caller, or ValueError."""
    found, remedy = f"the duality gap is {gap:.1e}", f"{remedy}, or standardise the features"
    if not gap <= _USELESS:
        raise ValueError(f"no optimum was found ({found}): {remedy}")
    if gap > max(_INACCURATE, tol):
        message = f"{type(owner).__name__}: {found}; expected at most {_INACCURATE:g}: {remedy}"
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
