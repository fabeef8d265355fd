"""The quadratic program for separable data, section 3.1 of [Venuto2017]_.

With s = min w·(y_i d_i) over preferences and t = max |w·d_j| over ties, it maximizes
(s - t) / |w|, the distance between the convex hulls of preferences and ties.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.estimator import LinearComparison
from preflearn.core.validation import Floats, check_label_kinds
from preflearn.margins.constraints import (
    EXACT,
    OrientedPairs,
    Solution,
    extremes,
    grow_working_set,
    least_squares,
    warn_about_residual,
)
from preflearn.margins.interior_point import (
    interior_point,
    nonnegative_least_squares,
    solve_in_span,
    tight_constraints,
)
from preflearn.margins.separable import check_separates
from preflearn.pairs import Pairs
from preflearn.solvers.interior_point import Interior

_EPS = np.finfo(np.float64).eps
_TINY = np.finfo(np.float64).tiny
# changes of the set of active rows; usually none or one is needed
_MAX_CORRECTIONS = 30
# stationarity error, relative to |x|, that needs no further correction
_STATIONARITY_TOL = 1e-10


class MarginQP(LinearComparison):
    """Linear ranking function with the largest Euclidean margin.

    Choose it if the comparisons contain ties and are linearly separable, and the
    features have a common scale. `MarginLP` does not depend on the scale. If the
    comparisons are not separable, `fit` raises NotSeparableError; use `SVMCompare`
    then.

    It solves the quadratic program, eqs. 9 and 12 of [Venuto2017]_, a binary SVM without
    slack::

        minimize u·u   s.t.   beta + |u·d_j| <= -1 (ties),   beta + y_i u·d_i >= 1 (preferences),

    with d = first - second. The dual finds the nearest points of two convex hulls,
    one of the preferences y_i d_i and one of the ties in both orders; u points from one
    to the other. Lemma 3.1 converts (u, beta) to weights w that are feasible for the
    linear program of `MarginLP`.

    Attributes
    ----------
    u_ : ndarray of shape (p,)
        u; the distance between the hulls is ``2 / |u|``.
    bias_ : float
        beta, at most -1.
    coef_ : ndarray of shape (p,)
        w = -u / beta, in 1 / (unit of the feature).
    margin_ : float
        -1 / beta, in (0, 1]: the margin of w in the linear program.
    support_ : ndarray of int
        Ids of the pairs with a dual weight: the support vectors.
    dual_coef_ : ndarray of shape (m,)
        Optimal dual weights: ``u = sum_i dual_coef_[i] d_i``. The sum of
        ``|dual_coef_|`` over preferences is u·u/2, and so is the sum over ties (less if
        beta = -1).
    kkt_residual_ : float
        Largest relative violation of feasibility, stationarity, and complementarity. A
        value above 1e-7 gives a ConvergenceWarning; it occurs only if the scales of the
        features differ greatly.
    n_features_in_ : int

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> qp = MarginQP().fit(pairs, [0, 1])
    >>> qp.u_.tolist(), qp.bias_, qp.margin_, qp.coef_.tolist()
    ([1.0], -2.0, 0.5, [0.5])
    """

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike) -> MarginQP:
        """Find the direction with the largest distance between preferences and ties.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
            Pairs, or the features of both items of each pair.
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and
            preferences.

        Raises
        ------
        NotSeparableError
            If no linear ranking function is right on all pairs.
        ValueError
            If pairs or labels are not valid, or there are only ties or only
            preferences.
        """
        data = OrientedPairs.validate(pairs, y)
        check_label_kinds(data.y, "MarginQP")
        scale = data.scales().max()
        solution, working_set = solve_margin_qp(data, scale)
        direction = solution.coef / scale
        s, t = extremes(data.values @ direction, data.ties)
        rounding = _EPS * (data.largest() @ np.abs(direction))
        if s - t <= rounding:
            direction = 0 * direction
        check_separates(direction, data)
        self.n_features_in_ = data.pairs.shape[2]
        # Lemma 3.1 converts the vector between the hulls to (u, beta) and to w.
        self.u_ = 2 * direction / (s - t)
        self.bias_ = -(s + t) / (s - t)
        self.coef_ = -self.u_ / self.bias_
        self.margin_ = -1 / self.bias_
        multipliers = data.pair_multipliers(working_set, solution.dual)
        self.dual_coef_ = multipliers * (2 / (s - t) / scale**2)
        self.support_ = np.flatnonzero(self.dual_coef_)
        self.kkt_residual_ = self._kkt_residual(data)
        warn_about_residual("MarginQP", self.kkt_residual_)
        return self

    def _kkt_residual(self, data: OrientedPairs) -> float:
        """Return the largest relative violation of the optimality conditions.

        If stationarity holds, the error of u·u is the sum of the complementary
        products.
        """
        values = data.values @ self.u_
        ties = data.ties
        dual = self.dual_coef_
        slack = np.where(
            ties, -1 - self.bias_ - np.abs(values), self.bias_ + values - 1
        )
        missed = self.u_ - (dual * data.sign) @ data.values
        squared = self.u_ @ self.u_
        # less than over preferences if the two orders of a tie cancel
        preferred = np.abs(dual[~ties]).sum()
        tied = np.abs(dual[ties]).sum()
        gap = max(abs(2 * preferred - squared), tied - preferred) / squared
        return float(max(-slack.min(), np.sqrt(missed @ missed / squared), gap))


def solve_margin_qp(
    data: OrientedPairs, scale: float
) -> tuple[Solution, NDArray[np.int64]]:
    """Find the shortest vector from the hull of the ties to that of the preferences.

    Ties count in both orders; differences are divided by `scale`.

    The program minimizes x·x/2 - s + t, where G x is at least s for preferences and at
    least -t for ties. An interior-point method finds the active rows, and linear
    equations for these rows give x to full precision.

    Returns
    -------
    solution : Solution
        `coef` is the vector x. `dual` are the multipliers of the working set, with sum
        1 over preferences and over ties, and G' dual = x for its rows G. If the hulls
        intersect, x consists of rounding errors.
    working_set : ndarray of int
        Ids of the constraint rows of the working set.
    """

    def solve(G: Floats, ties: NDArray, tolerance: float, guess: Floats) -> Solution:
        kinds = np.column_stack([~ties, ties]).astype(np.float64)
        k, p = G.shape
        sizes = np.abs(G).max(axis=0)
        sizes[sizes == 0] = 1.0
        # The unknowns are z = (x * sizes, s, -t), since rounding errors differ by
        # feature.
        A = np.column_stack([G / sizes, -kinds])
        curvature = np.append(1 / sizes**2, [0.0, 0.0])
        c = np.repeat([0.0, -1.0], [p, 2])
        lam = kinds @ (1 / kinds.sum(axis=0))
        z = np.append(lam @ G * sizes, [0.0, 0.0])
        values = A @ z
        lowest = np.array([values[~ties].min(), values[ties].min()])
        z[p:] = lowest - 0.1 * np.ptp(values) - _TINY
        start = Interior(z, A @ z, lam)
        optimum = interior_point(A, np.zeros(k), c, curvature, start, tolerance)
        x = optimum.z[:p] / sizes
        rough = Solution(x, optimum.dual)
        if tolerance > EXACT:
            return rough
        return _polish(G, kinds, rough, tight_constraints(optimum, x @ x))

    return grow_working_set(data, scale, solve_in_span(solve))


def _polish(G: Floats, kinds: Floats, rough: Solution, active: NDArray) -> Solution:
    """Return the shortest x with equal values on active preferences and on ties.

    The value on the active ties may differ from that on the active preferences. Rows
    with a zero multiplier are removed from the active set, and rows that x violates are
    added, until x is optimal.
    """
    extended = np.column_stack([G, kinds])
    size = _EPS * np.abs(G).max(axis=0)
    ends = np.ones(2)
    for _ in range(_MAX_CORRECTIONS):
        preferred, tied = (np.flatnonzero(active & (kind > 0)) for kind in kinds.T)
        if len(preferred) == 0 or len(tied) == 0:
            break
        gaps = np.vstack([G[preferred] + G[tied[0]], G[preferred[0]] + G[tied[1:]]])
        u = least_squares(gaps, np.ones(len(gaps)))
        if not u.any():  # the hulls intersect
            break
        x = u / (u @ u)
        lam = np.zeros(len(G))
        lam[active], missed = nonnegative_least_squares(
            extended[active].T, np.append(x, ends)
        )
        values = G @ x
        short = kinds @ [values[preferred].min(), values[tied].min()] - values
        joins = short > 4 * (size @ np.abs(x))
        rounding = 64 * size.max()
        leaves = missed > _STATIONARITY_TOL * np.sqrt(x @ x) + rounding
        if not leaves and not joins.any():
            return Solution(x, lam)
        if leaves:
            active = lam > 0
        for kind in kinds.T:
            worst = np.where(kind > 0, short, -np.inf).argmax()
            active[worst] |= joins[worst]
    return rough
