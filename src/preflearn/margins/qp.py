"""The quadratic program of section 3.1 of [Venuto2017]_, for comparisons that some weights separate.

With s = min w·(y_i d_i) over preferences and t = max |w·d_j| over ties, it maximises (s - t) / |w|: the
distance between the hulls of preferences and ties.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from preflearn.checks import Floats, check_kinds
from preflearn.ground.estimator import ComparisonEstimator
from preflearn.margins.rows import Rows, Solution, extremes, grow_working_set
from preflearn.margins.separable import verified
from preflearn.pairs import Pairs

_EPS = np.finfo(np.float64).eps
(_GELSY,) = linalg.get_lapack_funcs(("gelsy",))
_INACCURATE = 1e-7  # a relative violation of the optimality conditions that is worth a warning


class MarginQP(ComparisonEstimator):
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
        rows = Rows.of(pairs, y)
        check_kinds(rows.y, "MarginQP")
        scale = rows.scales().max()
        scaled = rows.divided(scale)
        solution, work = nearest_points(scaled)
        s, t = extremes(scaled.values @ solution.coef, rows.ties)
        direction = verified(solution.coef / scale, rows)
        self.n_features_in_, self.u_ = len(direction), 2 * direction / (s - t)
        self.bias_ = -(s + t) / (s - t)
        self.coef_ = -self.u_ / self.bias_
        self.margin_ = -1 / self.bias_
        self.dual_coef_ = np.zeros(len(rows.y))
        self.dual_coef_[work] = solution.dual * rows.sign[work] * (2 / (s - t) / scale**2)
        self.support_ = np.flatnonzero(self.dual_coef_)
        self.kkt_residual_ = self._kkt_residual(rows)
        if self.kkt_residual_ > _INACCURATE:
            warnings.warn(
                f"MarginQP: the optimality conditions hold to {self.kkt_residual_:.1e} only; "
                "standardise the features",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def rank_function(self, X: ArrayLike) -> Floats:
        """Scores r(x) = w·x of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Raises
        ------
        ValueError
            If X has another number of features than the pairs of the fit.
        """
        X = self._checked_features(X)
        return X @ self.coef_

    def _kkt_residual(self, rows: Rows) -> float:
        values, ties = rows.values @ self.u_, rows.ties
        slack = np.where(ties, -1 - self.bias_ - np.abs(values), self.bias_ + values - 1)
        dual = self.dual_coef_
        stationarity = self.u_ - (dual * rows.sign) @ rows.values
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


def nearest_points(rows: Rows) -> tuple[Solution, NDArray[np.int64]]:
    """The vector from the hull of the ties, both ways, to the hull of the preferences.

    Wolfe's active-set method for the point of least norm in the hull of all y_i d_i - t_j, on a
    working set of pairs: its state is the corral of the differences that carry a dual weight.

    Returns
    -------
    solution : Solution
        `coef` the vector x; `dual` of the working set, signed so that its rows sum to x: positive
        for preferences, with sum 1. If the hulls meet, x is of the size of rounding errors.
    work : ndarray of int
        The working set.
    """

    def solve(work: NDArray, previous: Solution) -> Solution:
        ties = rows.ties[work]
        corral = _least_norm_point(rows.values, work[~ties], work[ties], previous)
        dual = np.zeros(len(rows.y))
        lam = _least_squares(corral.points.T, corral.x)  # less rounding than in the steps
        lam = lam / lam.sum() if lam.min() > 0 else corral.lam
        np.add.at(dual, corral.ids[:, 0], lam)
        np.add.at(dual, corral.ids[:, 1], -corral.signs * lam)
        return Solution(corral.x, dual[work], corral)

    return grow_working_set(rows, solve)


class _Corral(NamedTuple):
    """Independent differences y_i d_i - t_j, t_j = signs_j d_j, their convex weights, and the point x."""

    points: Floats
    ids: NDArray[np.int64]
    signs: Floats
    lam: Floats
    x: Floats

    def with_point(self, point: NDArray, ids: list[int], sign: float) -> _Corral:
        points, lam = np.vstack([self.points, point]), np.append(self.lam, 0.0)
        return _Corral(points, np.vstack([self.ids, ids]), np.append(self.signs, sign), lam, self.x)

    def kept(self, stays: NDArray, lam: NDArray) -> _Corral:
        return _Corral(self.points[stays], self.ids[stays], self.signs[stays], lam[stays], self.x)


def _least_norm_point(rows: NDArray, preferred: NDArray, tied: NDArray, previous: Solution) -> _Corral:
    """Wolfe's method: add the difference that lies lowest, go to the least point of the affine hull
    or as far towards it as the weights stay positive, drop what lost its weight, repeat."""
    preferences, equal = rows[preferred], rows[tied]
    reach = np.abs(preferences).max(axis=0) + np.abs(equal).max(axis=0)
    x, corral = previous.coef, previous.state
    while True:
        i, values = (preferences @ x).argmin(), equal @ x
        j = np.abs(values).argmax()
        sign = 1.0 if values[j] >= 0 else -1.0
        point, ids = preferences[i] - sign * equal[j], [preferred[i], tied[j]]
        if corral is None:
            corral = _Corral(point[None], np.array([ids]), np.array([sign]), np.ones(1), point)
        elif (x - point) @ x <= 4 * _EPS * (reach @ np.abs(x)):
            return corral
        else:
            grown = _affine_step(corral.with_point(point, ids, sign))
            if grown.x @ grown.x >= x @ x:  # rounding alone is left
                return corral
            corral = grown
        x = corral.x


def _affine_step(corral: _Corral) -> _Corral:
    """Move to the least point x of the affine hull, dropping points on the way.

    With the weights settled, x is computed anew from z·x = x·x for all points z: their weighted sum
    would cancel where the hulls are close to each other.
    """
    while True:
        base, lam = corral.points[0], corral.lam
        rest = _least_squares((corral.points[1:] - base).T, -base)
        goal = np.append(1 - rest.sum(), rest)
        if goal.min() > 0:
            u = _least_squares(corral.points, np.ones(len(goal)))
            if np.abs(corral.points @ u - 1).max() < 0.5:
                return corral._replace(lam=goal, x=u / (u @ u))
            return corral._replace(lam=goal, x=goal @ corral.points)  # the affine hull holds the origin
        falling = np.flatnonzero(goal <= 0)
        held = lam[falling]
        steps = np.divide(held, held - goal[falling], out=np.zeros(len(held)), where=held > 0)
        lam = np.maximum(lam + steps.min() * (goal - lam), 0.0)
        stays = np.ones(len(lam), dtype=bool)
        stays[falling[steps == steps.min()]] = False
        corral = corral.kept(stays, lam)


def _least_squares(A: NDArray, b: NDArray) -> Floats:
    """The least solution of A z = b, by a pivoted QR factorisation: columns may differ in size.

    LAPACK is called directly: scipy.linalg.lstsq takes longer to check its input than to solve.
    """
    m, n = A.shape
    if n == 0:
        return np.empty(0)
    padded = np.zeros((max(m, n), 1))
    padded[:m, 0] = b
    work = m * n + 64 * (m + n + 2)
    return _GELSY(A, padded, np.zeros(n, dtype=np.int32), _EPS, work)[1][:n, 0]
