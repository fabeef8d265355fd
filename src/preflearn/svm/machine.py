"""What SVMCompare and SVMRank share: the kernel, the distinct items, and the function of a solution."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from preflearn.checks import check_labels, check_number, check_scale, check_weights
from preflearn.ground.estimator import ComparisonEstimator
from preflearn.ground.kernels import (
    check_kernel,
    distinct_items,
    gram_features,
    kernel_matrix,
    kernel_parameters,
)
from preflearn.pairs import Pairs, as_pairs
from preflearn.svm.solver import Differences, HingeRows, Solution, solve

__all__ = ["NEGATIVE_BIAS", "DegenerateBiasError", "KernelExpansion", "KernelMachine", "Problem"]

Floats = NDArray[np.float64]

_INACCURATE = 1e-6  # a relative duality gap that is worth a warning
_USELESS = 1e-2  # one beyond which there is no answer
_LARGEST, _SMALLEST = 1e16, 1e-100  # costs that floats can tell from 0 and infinity beside 1/2 u·u


NEGATIVE_BIAS = -1e-8  # beta below this counts as negative; its unit is that of the margin


class DegenerateBiasError(ValueError):
    """beta >= 0: every pair counts as a significant difference, and -u / beta is no ranking function."""


class Problem(NamedTuple):
    """The distinct items of the pairs, with features whose inner products are the kernel."""

    items: NDArray  # (n, p); ids of the items (n,) where the Gram matrix is given
    index: NDArray[np.int64]  # (m, 2), into these items
    features: Floats  # (n, r)
    parameters: dict[str, float]  # of the kernel


class KernelExpansion(ComparisonEstimator):
    """A ranking function r(x) = sum_j c_j k(x_j, x) over items of the fit."""

    kernel: str | Callable[[Floats, Floats], Floats]

    coef_: Floats  # of a linear kernel
    _item_coef: Floats  # c
    _support_items: NDArray  # (n, p); ids of the items (n,) where the Gram matrix is given
    _parameters: dict[str, float]  # of the kernel

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
        if self.kernel == "linear":
            return X @ self.coef_
        if len(self._item_coef) == 0:
            return np.zeros(len(X))
        if self.kernel == "precomputed":
            return X[:, self._support_items] @ self._item_coef
        return kernel_matrix(self.kernel, X, self._support_items, **self._parameters) @ self._item_coef

    def _check_pairs(self, pairs: Pairs | ArrayLike) -> Pairs:
        """Pairs whose items are what the kernel takes."""
        check_kernel(self.kernel)
        pairs = as_pairs(pairs)
        n, columns = pairs.items.shape
        if self.kernel == "precomputed" and n != columns:
            raise ValueError(
                f"the items of the pairs have shape {n, columns}; with kernel='precomputed' they are the "
                "(n, n) Gram matrix of all items"
            )
        return pairs


class KernelMachine(KernelExpansion):
    """What both machines share: the problem, and the expansion of a solution."""

    C: float
    gamma: float | Literal["scale"]
    degree: float
    coef0: float
    tol: float

    coef_: Floats
    support_: NDArray[np.int64]
    dual_coef_: Floats
    objective_: float
    dual_gap_: float
    n_features_in_: int

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | Callable[[Floats, Floats], Floats] = "rbf",
        *,
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        tol: float = 1e-12,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol

    def _load(
        self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Pairs, NDArray, Floats]:
        """Check parameters and data; the last result is the cost C · weight of each pair."""
        for name in ("C", "tol"):
            check_number(self, name, positive=True)
        pairs = self._check_pairs(pairs)
        y = check_labels(y, len(pairs))
        return pairs, y, self.C * check_weights(sample_weight, len(y))

    def _problem(self, pairs: Pairs) -> Problem:
        """The distinct items that occur in the pairs, and features of them that the kernel stands for."""
        if self.kernel not in ("precomputed", "linear"):
            ids, index = distinct_items(pairs)
            items = pairs.items[ids]
            parameters = kernel_parameters(self.kernel, items, self.gamma, self.degree, self.coef0)
            features = gram_features(kernel_matrix(self.kernel, items, items, **parameters))
            return Problem(items, index, features, parameters)
        ids, place = np.unique(pairs.index, return_inverse=True)
        items = pairs.items if len(ids) == len(pairs.items) else pairs.items[ids]
        if self.kernel == "precomputed":
            return Problem(ids, place.reshape(-1, 2), gram_features(items[:, ids]), {})
        check_scale(items, "items")
        return Problem(items, place.reshape(-1, 2), items, {})

    def _solve(self, pairs: Pairs, rows: HingeRows) -> tuple[Problem, Solution]:
        problem = self._problem(pairs)
        size = float(np.einsum("ij,ij->i", problem.features, problem.features).max())
        for name, value in (("cost C · weight", rows.cost.max()), ("cost · k(x, x)", rows.cost.max() * size)):
            if value > _LARGEST:
                raise ValueError(
                    f"the largest {name} is {value:.3g}; expected at most {_LARGEST:g}, since beyond 1/2 u·u "
                    "is lost in rounding: lower C, or standardise the features"
                )
        if rows.cost.min() < _SMALLEST:
            raise ValueError(
                f"the smallest cost C · weight is {rows.cost.min():.3g}; expected at least {_SMALLEST:g}"
            )
        solution = solve(Differences(problem.features, problem.index), rows, self.tol)
        if not solution.gap <= _USELESS:
            raise ValueError(
                f"no optimum was found (the duality gap is {solution.gap:.1e} of the objective): "
                f"C = {self.C:g} is too large for these features; lower C, or standardise the features"
            )
        return problem, solution

    def _store(
        self, problem: Problem, solution: Solution, rows: HingeRows, kept: NDArray, scale: float
    ) -> None:
        """Set the fitted attributes, for the ranking function scale · u·Phi(x)."""
        dual_coef = rows.fold(rows.direction * solution.dual, len(problem.index))
        self.dual_coef_ = np.zeros(len(kept))
        self.dual_coef_[kept] = dual_coef
        self.support_ = np.flatnonzero(self.dual_coef_)
        self.objective_, self.dual_gap_ = solution.objective, solution.gap
        first, second = problem.index.T
        n = len(problem.items)
        item_coef = scale * (np.bincount(first, dual_coef, n) - np.bincount(second, dual_coef, n))
        if self.kernel == "linear":
            self.coef_ = item_coef @ problem.items
        else:
            used = np.flatnonzero(item_coef)
            self._item_coef, self._support_items = item_coef[used], problem.items[used]
            self._parameters = problem.parameters
        if solution.gap > max(_INACCURATE, self.tol):
            warnings.warn(
                f"{type(self).__name__}: the duality gap is {solution.gap:.1e} of the objective; expected "
                f"at most {_INACCURATE:g}: lower C = {self.C:g}, or standardise the features",
                ConvergenceWarning,
                stacklevel=3,
            )
