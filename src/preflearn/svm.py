"""Support vector machines for comparisons: sections 3.2 and 4 of [Venuto2017]_.

Both machines minimise 1/2 u·u plus hinge losses of differences u·(Phi(first) - Phi(second)). They need the
Gram matrix of the n distinct items and the incidence matrix only, never a matrix over pairs.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from preflearn._counting import check_weights
from preflearn._pair_kernels import (
    NotPositiveSemidefiniteError,
    check_kernel,
    check_scale,
    gram_features,
    kernel_matrix,
    scale_gamma,
)
from preflearn._svm_solver import Differences, HingeRows, Solution, solve
from preflearn.base import ComparisonEstimator
from preflearn.metrics import best_threshold
from preflearn.pairs import Pairs, as_pairs, check_labels

__all__ = ["DegenerateBiasError", "NotPositiveSemidefiniteError", "SVMCompare", "SVMRank"]

Floats = NDArray[np.float64]

_INACCURATE = 1e-6  # a relative duality gap that is worth a warning
_USELESS = 1e-2  # one beyond which there is no answer
_LARGEST, _SMALLEST = 1e16, 1e-100  # costs that floats can tell from 0 and infinity beside 1/2 u·u
_NEGATIVE_BIAS = -1e-8  # beta is in units of the margin


class DegenerateBiasError(ValueError):
    """beta >= 0: every pair counts as a significant difference, and -u / beta is no ranking function."""


class _Problem(NamedTuple):
    """The distinct items of the pairs, with features whose inner products are the kernel."""

    items: NDArray  # (n, p); ids of the items (n,) where the Gram matrix is given
    index: NDArray[np.int64]  # (m, 2), into these items
    features: Floats  # (n, r)
    parameters: dict[str, float]  # of the kernel


class _KernelComparison(ComparisonEstimator):
    """What both machines share: the kernel, the problem, and the ranking function of a solution."""

    C: float
    kernel: str | Callable[[Floats, Floats], Floats]
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

    def _load(
        self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Pairs, NDArray, Floats]:
        """Check parameters and data; the last result is the cost C · weight of each pair."""
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 < value < np.inf:
                raise ValueError(f"{name} is {value!r}; expected a positive number")
        check_kernel(self.kernel)
        pairs = as_pairs(pairs)
        y = check_labels(y, len(pairs))
        n, columns = pairs.items.shape
        if self.kernel == "precomputed" and n != columns:
            raise ValueError(
                f"the items of the pairs have shape {n, columns}; with kernel='precomputed' they are the "
                "(n, n) Gram matrix of all items"
            )
        return pairs, y, self.C * check_weights(sample_weight, len(y))

    def _problem(self, pairs: Pairs) -> _Problem:
        """The distinct items that occur in the pairs, and features of them that the kernel stands for."""
        ids, place = np.unique(pairs.index, return_inverse=True)
        items = pairs.items if len(ids) == len(pairs.items) else pairs.items[ids]
        if self.kernel == "precomputed":
            return _Problem(ids, place.reshape(-1, 2), gram_features(items[:, ids]), {})
        if self.kernel == "linear":
            check_scale(items, "items")
            return _Problem(items, place.reshape(-1, 2), items, {})
        items, merged = np.unique(items, axis=0, return_inverse=True)
        parameters = {}
        if not callable(self.kernel):
            gamma = scale_gamma(self.gamma, items)
            parameters = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        features = gram_features(kernel_matrix(self.kernel, items, items, **parameters))
        return _Problem(items, merged.ravel()[place].reshape(-1, 2), features, parameters)

    def _solve(self, pairs: Pairs, rows: HingeRows) -> tuple[_Problem, Solution]:
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
        self, problem: _Problem, solution: Solution, rows: HingeRows, kept: NDArray, scale: float
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


class SVMCompare(_KernelComparison):
    """A ranking function learned from preferences and ties at once, in one quadratic program.

    Solves eq. 15 of [Venuto2017]_, whose dual is eq. 18, with d = Phi(first) - Phi(second)::

        minimise 1/2 u·u + C ( sum over preferences of (1 - beta - y_i u·d_i)_+
                               + sum over ties of (1 + beta + u·d_j)_+ + (1 + beta - u·d_j)_+ ),

    a binary SVM that tells preferences from ties taken both ways. The ranking function of eq. 19 is
    r(x) = -u·Phi(x) / beta, and two items whose scores differ by at most 1 are predicted to be equal.

    Parameters
    ----------
    C : float
        Cost of a unit of slack; one over the strength of the regularisation.
    kernel : str or callable
        A name of `sklearn.metrics.pairwise.pairwise_kernels`; a callable k(X, Y) that returns the
        (n_x, n_y) matrix; or "precomputed": then the items of the pairs are the (n, n) Gram matrix of all
        items, and `rank_function` takes (n_new, n) rows of the kernel.
    gamma : float or "scale"
        Width of the kernels rbf, laplacian, chi2, poly and sigmoid; "scale": 1 / (p · variance of the
        distinct items).
    degree : float
        Of the kernel poly.
    coef0 : float
        Constant of the kernels poly and sigmoid.
    tol : float
        Duality gap, relative to the objective, at which to stop; rounding may stop the solver before, and
        a gap above 1e-6 gives a ConvergenceWarning.

    Attributes
    ----------
    support_ : ndarray of int
        Ids of the pairs with a dual weight.
    dual_coef_ : ndarray of shape (m,)
        u = sum_i dual_coef_[i] d_i; at most C in absolute value. In eq. 18 it is v_i y_i for a preference,
        and the difference of its two v for a tie.
    bias_ : float
        beta, negative; of several optimal ones, the middle.
    coef_ : ndarray of shape (p,)
        -u / beta, for the linear kernel only.
    tau_ : float
        1, the threshold of the comparison function.
    objective_, dual_gap_ : float
        The minimum, and the relative duality gap that proves it.
    n_features_in_ : int

    Notes
    -----
    The two copies of a tie have opposite differences. They share a row here, so the solver works with m
    differences of features whose number is the rank of the Gram matrix of the n distinct items. Time and
    memory grow linearly in m.

    At the optimum the dual weights of preferences and of ties have equal sums. Where beta > -1, each tie
    has a copy with slack, whose weight is C; so **if ties outweigh preferences, beta <= -1**. Otherwise
    beta can become positive: a constant u (C -> 0, or contradictory labels) leaves beta = -1 where
    preferences weigh less than twice the ties, but beta = +1 where they weigh more. Then -u / beta would
    rank backwards, and `fit` raises DegenerateBiasError instead.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> machine = SVMCompare(C=100, kernel="linear").fit(pairs, [0, 1])
    >>> machine.coef_.round(6).tolist(), round(machine.bias_, 6)
    ([0.5], -2.0)
    >>> machine.predict(pairs).tolist()
    [0, 1]
    """

    bias_: float

    def fit(
        self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SVMCompare:
        """Learn from labelled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and preferences.
        sample_weight : array-like of shape (m,), optional
            Multiplies C for each pair, not negative.

        Raises
        ------
        DegenerateBiasError
            If beta is not negative at the optimum (see the notes of the class).
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the items.
        ValueError
            On bad parameters, pairs or labels, only ties, or only preferences.
        """
        pairs, y, cost = self._load(pairs, y, sample_weight)
        kept = cost > 0
        rows = self._rows(y[kept], cost[kept])
        problem, solution = self._solve(pairs[kept], rows)
        if not solution.bias < _NEGATIVE_BIAS:
            raise DegenerateBiasError(
                f"beta is {solution.bias:.3g}, but the ranking function -u / beta needs a negative one: with "
                f"C = {self.C:g}, {np.count_nonzero(y[kept])} preferences against "
                f"{np.count_nonzero(y[kept] == 0)} ties call every pair significant. Raise C, give ties a "
                "larger sample_weight (where ties outweigh preferences, beta is at most -1), or use SVMRank"
            )
        self.n_features_in_, self.bias_, self.tau_ = pairs.shape[2], solution.bias, 1.0
        self._store(problem, solution, rows, kept, scale=-1 / solution.bias)
        return self

    @staticmethod
    def _rows(y: NDArray, cost: Floats) -> HingeRows:
        """The flipped problem of eq. 8: preferences have label +1, both copies of a tie -1."""
        preferred, tied = np.flatnonzero(y), np.flatnonzero(y == 0)
        if len(tied) == 0:
            raise ValueError(
                "y has only preferences (labels +1 and -1), no ties; SVMCompare needs both, to learn which "
                "differences count: use SVMRank, which needs no ties"
            )
        if len(preferred) == 0:
            raise ValueError(
                "y has only ties (label 0); SVMCompare needs both ties and preferences: "
                "with ties alone, predict 0 for each pair"
            )
        pair = np.concatenate([preferred, tied, tied])
        one = np.ones(len(tied))
        direction = np.concatenate([y[preferred], -one, one])
        return HingeRows(pair, direction, cost[pair], np.concatenate([np.ones(len(preferred)), -one, -one]))


class SVMRank(_KernelComparison):
    """A ranking function learned from preferences, with a threshold learned afterwards.

    Solves eq. 3 of [Venuto2017]_, with d = Phi(first) - Phi(second)::

        minimise 1/2 u·u + C sum over preferences of (1 - y_i u·d_i)_+ ,

    so r(x) = u·Phi(x), and then eq. 6: the threshold tau of least zero-one loss on all training pairs.
    These are the baselines rank and rank2 of its Table 2.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, tol
        As in `SVMCompare`.
    ties : {"ignore", "duplicate"}
        "ignore" (rank): ties take part in the choice of tau only. "duplicate" (rank2): each tie becomes two
        opposite preferences, and each preference counts twice.

    Attributes
    ----------
    support_ : ndarray of int
        Ids of the pairs with a dual weight.
    dual_coef_ : ndarray of shape (m,)
        u = sum_i dual_coef_[i] d_i.
    coef_ : ndarray of shape (p,)
        u, for the linear kernel only.
    tau_ : float
        The largest difference of scores that does not count.
    objective_, dual_gap_ : float
        The minimum, and the relative duality gap that proves it.
    n_features_in_ : int

    Notes
    -----
    The two copies of a tie in rank2 lose (1 - z)_+ + (1 + z)_+ = 2 max(1, |z|) at z = u·d. That is constant
    for |z| <= 1: a tie has no say until its difference exceeds the margin that preferences try to reach,
    and then it counts like two preferences. rank and rank2 differ through such ties only, and by the
    factor two on C.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> machine = SVMRank(C=100, kernel="linear").fit(pairs, [0, 1])
    >>> machine.coef_.round(6).tolist(), round(machine.tau_, 6)
    ([0.333333], 0.666667)
    >>> machine.predict(pairs).tolist()
    [0, 1]
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | Callable[[Floats, Floats], Floats] = "rbf",
        *,
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        ties: Literal["ignore", "duplicate"] = "ignore",
        tol: float = 1e-12,
    ) -> None:
        super().__init__(C, kernel, gamma=gamma, degree=degree, coef0=coef0, tol=tol)
        self.ties = ties

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SVMRank:
        """Learn from labelled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; at least one preference.
        sample_weight : array-like of shape (m,), optional
            Multiplies C, and the loss of eq. 6, for each pair; not negative.

        Raises
        ------
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the items.
        ValueError
            On bad parameters, pairs or labels, or only ties.
        """
        if self.ties not in ("ignore", "duplicate"):
            raise ValueError(f"ties is {self.ties!r}; expected 'ignore' or 'duplicate'")
        pairs, y, cost = self._load(pairs, y, sample_weight)
        kept = cost > 0
        rows = self._rows(y[kept], cost[kept])
        problem, solution = self._solve(pairs[kept], rows)
        self.n_features_in_ = pairs.shape[2]
        self._store(problem, solution, rows, kept, scale=1.0)
        self.tau_ = best_threshold(y, self.decision_function(pairs), sample_weight)[0]
        return self

    def _rows(self, y: NDArray, cost: Floats) -> HingeRows:
        """The preferences of Table 2; a preference that counts twice has twice the cost."""
        preferred, tied = np.flatnonzero(y), np.flatnonzero(y == 0)
        if len(preferred) == 0:
            raise ValueError(
                "y has only ties (label 0); SVMRank needs at least one preference (label +1 or -1): "
                "with ties alone, predict 0 for each pair"
            )
        if self.ties == "ignore":
            return HingeRows(preferred, y[preferred].astype(np.float64), cost[preferred])
        pair = np.concatenate([preferred, tied, tied])
        one = np.ones(len(tied))
        cost = np.concatenate([2 * cost[preferred], cost[tied], cost[tied]])
        return HingeRows(pair, np.concatenate([y[preferred], -one, one]), cost)
