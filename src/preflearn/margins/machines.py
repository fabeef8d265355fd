"""Maximum-margin comparison functions for separable data: section 3.1 of [Venuto2017]_.

With s = min w·(y_i d_i) over preferences and t = max |w·d_j| over ties, the linear program maximises
s / t, and the quadratic program (s - t) / |w|: the distance between the hulls of preferences and ties.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from preflearn.checks import check_labels
from preflearn.ground.estimator import ComparisonEstimator
from preflearn.margins.optima import (
    column_scales,
    extremes,
    largest_ratio,
    nearest_points,
    optimum_of_least_norm,
    oriented_differences,
)
from preflearn.margins.separable import NotSeparableError, separability, separates
from preflearn.pairs import Pairs, as_pairs

__all__ = ["MarginLP", "MarginQP", "cone_distance"]

_INACCURATE = 1e-7  # a relative violation of the optimality conditions that is worth a warning
_ACTIVE = 1e-9  # a slack of this size, where the decision boundary is at 1, counts as none
_ROUNDING = 1e-12  # margins that differ by less are equal


class _LinearComparison(ComparisonEstimator):
    """A linear ranking function r(x) = w·x, learned from preferences and ties that w separates."""

    coef_: NDArray[np.float64]

    def rank_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores r(x) = w·x of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Raises
        ------
        ValueError
            If X has another number of features than the pairs of the fit.
        """
        return self._checked_features(X) @ self.coef_

    def _load(self, pairs: Pairs | ArrayLike, y: ArrayLike) -> tuple[Pairs, NDArray, NDArray, NDArray]:
        pairs = as_pairs(pairs)
        y = check_labels(y, len(pairs))
        kinds = {0: "only ties (label 0)", len(y): "only preferences (labels +1 and -1), no ties"}
        if (found := kinds.get(int(np.count_nonzero(y)))) is not None:
            raise ValueError(
                f"y has {found}; {type(self).__name__} needs both, since its margin lies between them"
            )
        return pairs, y, *oriented_differences(pairs, y)


class MarginLP(_LinearComparison):
    """The linear ranking function with the largest margin in its own values.

    Solves the linear program, eq. 7 of [Venuto2017]_::

        maximise mu   s.t.   mu <= 1 - |w·d_j| (ties),   mu <= y_i w·d_i - 1 (preferences),

    with d = first - second. Invertible linear maps of the features leave mu as it is. Of several
    optimal w, the one of least Euclidean norm is taken: it is unique, and it is that of `MarginQP`
    whenever that is optimal here too.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        w, in 1 / (unit of the feature).
    margin_ : float
        mu, in (0, 1]: the least distance of a value w·d from the decision boundaries at -1 and 1.
    active_ : ndarray of int
        Ids of the pairs whose constraint holds with equality, to 1e-9.
    dual_coef_ : ndarray of shape (m,)
        Optimal dual weights: sum_i dual_coef_[i] d_i = 0, sum |dual_coef_| = 1 (less if mu = 1), and
        mu = 1 - 2 (sum of |dual_coef_| over preferences). Not zero for active pairs only.
    n_features_in_ : int

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> lp = MarginLP().fit(pairs, [0, 1])
    >>> lp.coef_.round(6).tolist(), round(lp.margin_, 6)
    ([0.5], 0.5)
    """

    coef_: NDArray[np.float64]
    margin_: float
    active_: NDArray[np.int64]
    dual_coef_: NDArray[np.float64]

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike) -> MarginLP:
        """Find the weights of the largest margin.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and preferences.

        Raises
        ------
        NotSeparableError
            If no linear ranking function is right on all pairs.
        ValueError
            On bad pairs or labels, only ties, or only preferences.
        """
        pairs, y, rows, ties = self._load(pairs, y)
        scales = column_scales(rows)
        solution, work = largest_ratio(rows / scales, ties)
        coef = solution.coef / scales
        s, t = extremes(rows @ coef, ties)
        if s > t:
            polished = optimum_of_least_norm(rows, scales, ties, solution, work)
            s_polished, t_polished = extremes(rows @ polished, ties)
            polished_margin = (s_polished - t_polished) / (s_polished + t_polished) if s_polished > 0 else 0.0
            if polished_margin > (s - t) / (s + t) - _ROUNDING:
                coef, s, t = polished, s_polished, t_polished
        self.coef_ = _verified(2 * coef / (s + t) if s > t else coef, pairs, y, rows, ties)
        self.n_features_in_, self.margin_ = rows.shape[1], (s - t) / (s + t)
        values = rows @ self.coef_
        slack = np.where(ties, 1 - np.abs(values), values - 1) - self.margin_
        self.active_ = np.flatnonzero(slack <= _ACTIVE)
        self.dual_coef_ = np.zeros(len(y))
        self.dual_coef_[work] = solution.dual * np.where(y[work] == -1, -1, 1)
        return self


class MarginQP(_LinearComparison):
    """The linear ranking function with the largest Euclidean margin between preferences and ties.

    Solves the quadratic program, eqs. 9 and 12 of [Venuto2017]_, a binary SVM without slack::

        minimise u·u   s.t.   beta + |u·d_j| <= -1 (ties),   beta + y_i u·d_i >= 1 (preferences),

    with d = first - second. Its dual finds the nearest points of the hull of the preferences
    y_i d_i and that of the ties, taken both ways; u points from one to the other. Lemma 3.1 turns
    (u, beta) into weights w that are feasible for the linear program of `MarginLP`.

    Attributes
    ----------
    u_ : ndarray of shape (p,)
        u; the hulls are 2 / |u| apart.
    bias_ : float
        beta, at most -1.
    coef_ : ndarray of shape (p,)
        w = -u / beta, in 1 / (unit of the feature).
    margin_ : float
        -1 / beta, in (0, 1]: the margin of w in the linear program.
    support_ : ndarray of int
        Ids of the pairs with a dual weight: the support vectors.
    dual_coef_ : ndarray of shape (m,)
        Optimal dual weights: u = sum_i dual_coef_[i] d_i; the sum of |dual_coef_| is u·u/2 over
        preferences, and as much over ties (or less if beta = -1).
    kkt_residual_ : float
        The largest relative violation of feasibility, stationarity and complementarity; a
        ConvergenceWarning is given above 1e-7, which takes features that differ greatly in scale.
    n_features_in_ : int

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> qp = MarginQP().fit(pairs, [0, 1])
    >>> qp.u_.tolist(), qp.bias_, qp.margin_, qp.coef_.tolist()
    ([1.0], -2.0, 0.5, [0.5])
    """

    u_: NDArray[np.float64]
    bias_: float
    coef_: NDArray[np.float64]
    margin_: float
    support_: NDArray[np.int64]
    dual_coef_: NDArray[np.float64]
    kkt_residual_: float

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike) -> MarginQP:
        """Find the direction in which preferences and ties lie farthest apart.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and preferences.

        Raises
        ------
        NotSeparableError
            If no linear ranking function is right on all pairs.
        ValueError
            On bad pairs or labels, only ties, or only preferences.
        """
        pairs, y, rows, ties = self._load(pairs, y)
        scale = column_scales(rows).max()
        rows /= scale
        solution, work = nearest_points(rows, ties)
        s, t = extremes(rows @ solution.coef, ties)
        direction = _verified(solution.coef / scale, pairs, y, rows * scale, ties)
        self.n_features_in_, self.u_ = rows.shape[1], 2 * direction / (s - t)
        self.bias_ = -(s + t) / (s - t)
        self.coef_ = -self.u_ / self.bias_
        self.margin_ = -1 / self.bias_
        self.dual_coef_ = np.zeros(len(y))
        self.dual_coef_[work] = solution.dual * np.where(y[work] == -1, -1, 1) * (2 / (s - t) / scale**2)
        self.support_ = np.flatnonzero(self.dual_coef_)
        self.kkt_residual_ = self._kkt_residual(rows * scale, y)
        if self.kkt_residual_ > _INACCURATE:
            warnings.warn(
                f"MarginQP: the optimality conditions hold to {self.kkt_residual_:.1e} only; "
                "standardise the features",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _kkt_residual(self, rows: NDArray, y: NDArray) -> float:
        values, ties = rows @ self.u_, y == 0
        slack = np.where(ties, -1 - self.bias_ - np.abs(values), self.bias_ + values - 1)
        dual = self.dual_coef_
        stationarity = self.u_ - (dual * np.where(y == -1, -1, 1)) @ rows
        norm = np.sqrt(self.u_ @ self.u_)
        preferred, tied = np.abs(dual[~ties]).sum(), np.abs(dual[ties]).sum()
        rest = preferred - tied  # of a tie in both orders, which cancels: only at beta = -1
        complementarity = np.abs(dual) @ np.abs(slack) + abs(rest) * (-1 - self.bias_)
        return float(
            max(
                max(0.0, -slack.min()),
                np.sqrt(stationarity @ stationarity) / norm,
                max(-rest, complementarity, abs(2 * preferred - norm**2)) / norm**2,
            )
        )


def cone_distance(lp: MarginLP, pairs: Pairs | ArrayLike, y: ArrayLike) -> float:
    """How far the optimum of the LP is from being that of the QP: 0 if and only if they coincide.

    The weights w of the LP are those of the QP exactly if w = sum c_ij (y_i d_i - t_j) with c >= 0, over
    the preferences i and the ties t_j = d_j or -d_j that are active at w: this is stationarity of
    eq. 12 of [Venuto2017]_ at w / mu, whose dual weights must vanish elsewhere.

    Parameters
    ----------
    lp : MarginLP
        Fitted to these pairs.
    pairs : Pairs or array-like of shape (m, 2, p)
    y : array-like of shape (m,)

    Raises
    ------
    NotFittedError
        If `lp` was not fitted.
    ValueError
        On bad pairs or labels.

    Returns
    -------
    float
        The sine of the angle between w and this cone, in [0, 1].

    Examples
    --------
    >>> pairs = Pairs([[0, 0], [4, 0], [0, 3], [1, 0]], [[1, 0], [2, 0], [3, 0]])
    >>> round(cone_distance(MarginLP().fit(pairs, [1, 1, 0]), pairs, [1, 1, 0]), 6)
    0.0
    """
    check_is_fitted(lp)
    pairs = as_pairs(pairs)
    y = check_labels(y, len(pairs))
    rows, ties = oriented_differences(pairs, y)
    preferences = np.unique(rows[lp.active_][~ties[lp.active_]], axis=0)
    equal = rows[lp.active_][ties[lp.active_]]
    values = equal @ lp.coef_
    equal = np.unique(np.vstack([equal[values >= -_ACTIVE], -equal[values <= _ACTIVE]]), axis=0)
    scale = column_scales(rows).max()
    generators = (preferences[:, None] - equal[None]).reshape(-1, rows.shape[1]) / scale
    target = lp.coef_ / np.sqrt(lp.coef_ @ lp.coef_)
    return float(nnls(generators.T, target)[1])


def _verified(coef: NDArray, pairs: Pairs, y: NDArray, rows: NDArray, ties: NDArray) -> NDArray:
    """Return the weights if they separate without any rounding; else say why there are none."""
    s, t = extremes(rows @ coef, ties)
    if s > t and separates(coef, pairs, y, rows, ties):
        return coef
    answer = separability(pairs, y)
    if not answer.separable:
        raise NotSeparableError(answer, y)
    raise ValueError(
        "no weight vector was found, though the comparisons are separable: by a margin near the rounding of "
        "floats, or with features of very different scale; expected wider margins or standardised features"
    )
