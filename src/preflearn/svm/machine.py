"""The pieces that kernel machines for comparisons are built of.

A fit goes through them in this order: the kernel problem (the distinct items and the incidence matrix over
them), its solution by the interior point, the dual, or both, and the ranking function as an expansion in
kernels, with the certificate of exactly this function.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from preflearn.checks import Floats, Ids, check_labels, check_scale, check_weights
from preflearn.ground.estimator import ComparisonEstimator
from preflearn.ground.gram import block_of_differences, centred
from preflearn.ground.kernels import (
    Kernel,
    NotPositiveSemidefiniteError,
    check_kernel,
    distinct_items,
    few_features,
    gram_features,
    indefinite,
    kernel_matrix,
    kernel_parameters,
)
from preflearn.pairs import Incidence, Pairs, as_pairs
from preflearn.svm.dual import Certificate, Rows, certificate, maximise
from preflearn.svm.interior import Hinges, minimise

_NOTHING = 1e-12  # of the sum of sizes: differences of scores that are rounding
_ON_MARGIN = 1e-6  # of 1: differences of support vectors are known to about the root of the gap
_NEGATIVE = -1e-8  # beta below this counts as negative; its unit is that of the margin
_INACCURATE = 1e-6  # a duality gap, in units of the objective, that is worth a warning
_USELESS = 1e-2  # one beyond which there is no answer
_LARGEST, _SMALLEST = 1e16, 1e-100  # costs that floats can tell from 0 and infinity beside 1/2 u·u
_SHIFTED = ("rbf", "laplacian")  # kernels of x - x' alone
_DEFINITE = (*_SHIFTED, "cosine", "chi2", "additive_chi2")  # positive semi-definite on differences
_FEW = 300  # features that are looked for before anything else
_DENSE = 1.2  # pairs per rank, beyond which most margins cannot be reached
_ENOUGH = 1e-9  # a gap for which no second method is tried
_HARD = 3000  # cost · k(x, x) · (pairs per rank)^4, from which on less is tried of the dual
_FIRST = 0.25  # share of it that shows whether the dual is on its way
_PROMISING, _NEAR = 0.5, 1e-2  # gaps after which the dual goes on, and on without this limit
_STEPS = 16  # of the interior point


def on_margin(z: Floats) -> Floats:
    """Differences of scores; those on the margin but for rounding, which would choose tau, are put on it."""
    return np.where(np.abs(np.abs(z) - 1) < _ON_MARGIN, np.sign(z), z)


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


class Solution(NamedTuple):
    """A machine that was found, and what proves how good it is."""

    dual_coef: Floats  # (m,) u = sum_i dual_coef[i] d_i over the pairs of the problem
    expansion: Expansion
    certificate: Certificate


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
        if choice.kernel in _SHIFTED:  # an offset would spoil the squares in |x - x'|²
            k = partial(_shifted, k, _origin(items))
        return cls(choice.kernel, k, ids, items, items, B)

    def gram(self) -> Floats:
        return self.k(self.items, self.centres)

    def solve(self, y: NDArray, cost: Floats, pairs: Ids, biased: bool, tol: float) -> Solution:
        """Minimise 1/2 u·u plus the hinges of some pairs, preferences first: eq. 15, or eq. 3."""
        cost = cost[pairs]
        exact, few = self._differences(pairs)
        size = exact.largest_square()
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
        rows = Rows.of(y[pairs], cost, biased)

        rank = min(exact.rank if few is None else few.rank, len(self.ids))
        whole = _effort(rank, len(self.ids), len(rows.sign))
        stages = [(whole, np.inf), (whole, _NEAR)]  # efforts, and the gap up to which they are worth it
        if len(pairs) > _DENSE * rank:  # the dual is quick only if C is small
            limit = whole / (1 + float(cost.mean()) * size * (len(pairs) / rank) ** 4 / _HARD)
            stages = [(_FIRST * limit, np.inf), (limit, _PROMISING), (whole, _NEAR)]
        s, gap = np.zeros(len(rows.sign)), np.inf
        for effort, worth in stages:
            if max(tol, _ENOUGH) < gap <= worth:
                s, gap = maximise(exact, rows, s, tol, effort)
        found = [self._judged(rows, exact, s)]
        if gap > max(tol, _ENOUGH):
            reduced = exact.reduced() if few is None else few
            hinges = Hinges(HingeMatrix(reduced, rows), rows.cost, rows.label if biased else 0 * rows.label)
            inner = minimise(hinges, tol)
            s = rows.feasible(rows.label * inner.dual)
            found.append(self._judged(rows, exact, s))
            if found[-1].certificate.gap > tol:
                polished = maximise(exact, rows, s, tol, whole)[0]
                found.append(self._judged(rows, exact, polished))
                if found[-1].certificate.gap > max(tol, _INACCURATE):  # then dual_coef is only nearly u
                    expansion, squared = self._of_features(reduced, inner.u), float(inner.u @ inner.u)
                    found += [self._judged(rows, exact, w, expansion, squared) for w in (s, polished)]
        best = min(found, key=lambda solution: solution.certificate.gap)
        dual_coef = np.zeros(self.B.shape[0])
        dual_coef[pairs] = best.dual_coef
        return best._replace(dual_coef=dual_coef)

    def _judged(
        self,
        rows: Rows,
        exact: ItemDifferences | KernelDifferences,
        s: Floats,
        expansion: Expansion | None = None,
        squared: float | None = None,
    ) -> Solution:
        """The function of dual weights, or another one with its u·u, and what they prove about it."""
        a = rows.summed(rows.sign * s)
        z = exact.gram_times(a)
        own = float(a @ z)
        if expansion is None:
            expansion = self.expansion(exact.B.adjoint(a))
        if squared is not None or self.kernel not in _SHIFTED:  # rounding of what is returned
            z = exact.B.differences(expansion(self.items))
        dual, squared = float(rows.label @ s) - own / 2, own if squared is None else squared
        if np.abs(z).max() <= _NOTHING * np.abs(a).sum() * exact.largest_square():
            # u is what rounding leaves of a sum that cancels; its order of the items would mean nothing.
            expansion, z, squared = expansion._replace(coef=0 * expansion.coef), 0 * z, 0.0
        size = expansion.centres if self.kernel == "linear" else expansion.coef
        noise = exact.rounding * float(np.linalg.norm(size))
        return Solution(a, expansion, certificate(rows, z, squared, dual, noise))

    def _of_features(self, reduced: ItemDifferences, u: Floats) -> Expansion:
        """r = u·L, as a function of the kernel."""
        if self.kernel == "linear":
            return Expansion(self.k, u[None], np.ones(1))
        return self.expansion(np.linalg.lstsq(reduced.L.T, u, rcond=None)[0].astype(np.float64))

    def _differences(self, pairs: Ids) -> tuple[ItemDifferences | KernelDifferences, ItemDifferences | None]:
        """The differences of some pairs, and by few features with the same inner products, if such exist."""
        B = self.B[pairs]
        if self.kernel == "linear":
            exact = ItemDifferences(B, self.items - _origin(self.items), _rounding(self.items))
            return exact, exact
        K = self.gram()
        check_scale(K, "the Gram matrix")
        rounding = _rounding(K)
        if self.kernel not in _SHIFTED:
            K = centred(K)
        try:
            L = few_features(K, _FEW, rounding, check=self.kernel not in _DEFINITE)
        except NotPositiveSemidefiniteError:
            raise indefinite(self.gram()) from None
        return KernelDifferences(B, K, rounding), None if L is None else ItemDifferences(B, L)

    def expansion(self, item_coef: Floats) -> Expansion:
        """r(x) = sum_j item_coef_j k(x, x_j); a linear one is r(x) = w·x, with the one centre w."""
        if self.kernel == "linear":
            origin = _origin(self.items)  # its part vanishes where the coefficients add up to 0
            w = item_coef @ (self.items - origin) + item_coef.sum() * origin
            return Expansion(self.k, w[None], np.ones(1))
        used = np.flatnonzero(item_coef)
        return Expansion(self.k, self.centres[used], item_coef[used])


def _origin(items: Floats) -> Floats:
    """A point among the items: 0 where their offset is less than their spread."""
    low, high = items.min(axis=0), items.max(axis=0)
    spread = np.where(high > low, high - low, np.where(low == 0, 1.0, np.abs(low)))
    return spread * np.round((low / 2 + high / 2) / spread)


def _rounding(values: Floats) -> float:
    """Of one of these values."""
    return float(np.finfo(np.float64).eps * np.abs(values).max())


def _shifted(k: Callable[[Floats, Floats], Floats], origin: Floats, X: Floats, Y: Floats) -> Floats:
    moved = X - origin
    return k(moved, moved if Y is X else Y - origin)


def _columns(rows_of_gram: Floats, ids: Ids) -> Floats:
    """The kernel of items that are given as rows of a Gram matrix, with those whose ids are given."""
    return rows_of_gram[:, ids]


# ---- Differences, as operators of the incidence matrix


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


def _effort(rank: int, n_items: int, n_rows: int) -> float:
    """Of the interior point, in nanoseconds: its steps, each a system of `rank` equations."""
    return _STEPS * (0.2 * n_items * rank**2 + 0.04 * rank**3 + 300.0 * n_rows)


# ---- Fitted machines


class ExpandedMachine(ComparisonEstimator):
    """A ranking function in the span of kernels at the items."""

    kernel: Kernel
    _expansion: Expansion

    def rank_function(self, X: ArrayLike) -> Floats:
        """Scores r(x) of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With ``kernel="precomputed"``: rows of the kernel between these items and all items of the fit.

        Raises
        ------
        ValueError
            If X has another number of columns than the items of the fit.
        """
        X = self._checked_features(X)
        return self._expansion(X)


class KernelMachine(ExpandedMachine):
    """One whose coefficients are sums of the pairs' dual weights, with its certificate."""

    def _keep(self, solution: Solution, pairs: Pairs, kept: NDArray, scale: float) -> None:
        """Remember r = scale · u·Phi; the solution is that of the pairs that were kept."""
        self.n_features_in_ = pairs.shape[2]
        self.objective_, self.dual_gap_, _ = solution.certificate
        self.dual_coef_ = np.zeros(len(pairs))
        self.dual_coef_[kept] = solution.dual_coef
        self.support_ = np.flatnonzero(self.dual_coef_)
        self._expansion = solution.expansion._replace(coef=scale * solution.expansion.coef)
        if self.kernel == "linear":
            self.coef_ = self._expansion.coef @ self._expansion.centres


def preferences_first(y: NDArray) -> Ids:
    """The ids of the pairs, ties last."""
    return np.append(np.flatnonzero(y), np.flatnonzero(y == 0))


def check_gap(owner: object, gap: float, remedy: str, tol: float = 0.0) -> None:
    """Say so where rounding spoils an answer: a warning of the caller's caller, or ValueError."""
    found, remedy = f"the duality gap is {gap:.1e}", f"{remedy}, or standardise the features"
    if not gap <= _USELESS:
        raise ValueError(f"no optimum was found ({found}): {remedy}")
    if gap > max(_INACCURATE, tol):
        message = f"{type(owner).__name__}: {found}; expected at most {_INACCURATE:g}: {remedy}"
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
