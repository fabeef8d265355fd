"""The linear program for separable data, section 3.1 of [Venuto2017]_.

With s = min w·(y_i d_i) over preferences and t = max |w·d_j| over ties, it maximizes s
/ t. The program and the interior-point method are in
`preflearn.margins.interior_point`, the working set is in
`preflearn.margins.constraints`, and `MarginLP.fit` verifies and completes the solution.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import null_space

from preflearn.core.estimator import LinearComparison
from preflearn.core.validation import Floats, check_label_kinds
from preflearn.margins.constraints import (
    RANK_TOL,
    OrientedPairs,
    Solution,
    extremes,
    grow_working_set,
    least_squares,
    warn_about_residual,
)
from preflearn.margins.interior_point import (
    nonnegative_least_squares,
    solve_margin_lp,
)
from preflearn.margins.separable import check_separates
from preflearn.pairs import Pairs

# smaller slacks count as 0, where the decision boundary is at 1
_ACTIVE_TOL = 1e-9
_MARGIN_TOL = 1e-12  # margins that differ by less count as equal
_MIN_DUAL = 1e-13  # smaller dual weights, whose sum is 1, count as 0
# allowed violation of the constraints if no point satisfies all of them exactly
_FEASIBILITY_TOL = 1e-14


class MarginLP(LinearComparison):
    """Linear ranking function with the largest margin of its predicted differences.

    Choose it if the comparisons contain ties and are linearly separable, and the result
    should not depend on the scaling of the features. If they are not separable, `fit`
    raises NotSeparableError; use `SVMCompare` then.

    It solves the linear program, eq. 7 of [Venuto2017]_::

        maximize mu   s.t.   mu <= 1 - |w·d_j| (ties),   mu <= y_i w·d_i - 1 (preferences),

    with d = first - second. Invertible linear maps of the features do not change mu.
    Among several optimal w, the one of minimum Euclidean norm is returned, which is
    unique. It equals the w of `MarginQP` if that w is optimal here too.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        w, in 1 / (unit of the feature).
    margin_ : float
        mu, in (0, 1]: the smallest distance of a value w·d from the decision boundaries
        at -1 and 1.
    active_ : ndarray of int
        Ids of the pairs whose constraint holds with equality, to 1e-9.
    dual_coef_ : ndarray of shape (m,)
        Optimal dual weights: ``sum_i dual_coef_[i] d_i = 0``, ``sum |dual_coef_| = 1``
        (less if mu = 1), and mu = 1 - 2 (sum of ``|dual_coef_|`` over preferences).
        Only active pairs have nonzero weights.
    kkt_residual_ : float
        Bound on the difference between mu and the optimum, relative to mu, which
        follows from the dual weights. A value above 1e-7 gives a ConvergenceWarning; it
        occurs only if the margin is close to rounding errors.
    n_features_in_ : int

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> lp = MarginLP().fit(pairs, [0, 1])
    >>> lp.coef_.round(6).tolist(), round(lp.margin_, 6)
    ([0.5], 0.5)
    """

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike) -> MarginLP:
        """Find the weights with the largest margin.

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
        check_label_kinds(data.y, "MarginLP")
        scales = data.scales()
        ties = data.ties
        solution, working_set = solve_margin_lp(data, scales)
        coef = solution.coef / scales
        margin = _margin(data, coef)
        if margin > 0:
            shortest = minimum_norm_optimum(data, scales, solution, working_set)
            if _margin(data, shortest) > margin - _MARGIN_TOL:
                coef = shortest
        s, t = extremes(data.values @ coef, ties)
        if s > t:  # rescale so that the decision boundaries are at -1 and 1
            coef = 2 * coef / (s + t)
        check_separates(coef, data)
        self.coef_ = coef
        self.n_features_in_ = data.pairs.shape[2]
        self.margin_ = (s - t) / (s + t)
        values = data.values @ coef
        slack = np.where(ties, 1 - np.abs(values), values - 1) - self.margin_
        self.active_ = np.flatnonzero(slack <= _ACTIVE_TOL)
        dual = data.pair_multipliers(working_set, solution.dual)
        self.dual_coef_ = dual
        # Upper bound on mu from the dual weights, plus their violation of sum dual_i
        # d_i = 0.
        preferred = np.abs(dual[~ties]).sum()
        missed = (dual * data.sign) @ data.values
        bound = 1 - 2 * preferred + np.abs(missed) @ np.abs(coef)
        self.kkt_residual_ = max(
            abs(bound - self.margin_) / self.margin_, np.abs(dual).sum() - 1
        )
        warn_about_residual("MarginLP", self.kkt_residual_)
        return self


def _margin(data: OrientedPairs, coef: Floats) -> float:
    """Return mu for the best multiple of w; 0 if w is wrong on a preference."""
    s, t = extremes(data.values @ coef, data.ties)
    return (s - t) / (s + t) if s > 0 else 0.0


def minimum_norm_optimum(
    data: OrientedPairs, scales: Floats, solution: Solution, working_set: NDArray
) -> Floats:
    """Return the optimal w of minimum norm, from one optimum and its dual weights.

    By complementary slackness, w is optimal if it is feasible and each constraint with
    a positive dual weight holds with equality. These linear equations determine mu and,
    in most cases, all of w.

    Parameters
    ----------
    data : OrientedPairs
    scales : ndarray of shape (p,)
        Divisors of the columns, as in `solve_margin_lp`.
    solution, working_set
        The result of `solve_margin_lp`.
    """
    G, ties = data.constraint_rows(working_set)
    carries = solution.dual > _MIN_DUAL
    tight = G[carries]
    label = np.where(ties[carries], -1.0, 1.0)
    if solution.state > 1 - RANK_TOL:  # mu = 1, so w·d = 0 for each tie
        tight = np.vstack([tight, G[ties], 0 * G[:1]])
        label = np.append(label, np.full(sum(ties) + 1, -1.0))
    unit = scales.max()
    equations = np.column_stack([tight / unit, -np.ones(len(tight))])
    *shortest, mu = least_squares(equations, label, RANK_TOL)
    shortest = np.array(shortest)
    free = null_space(equations[:, :-1], RANK_TOL)
    size = max(1.0, float(np.linalg.norm(solution.coef / scales * unit)))

    def solve(G: Floats, ties: NDArray, *_: object) -> Solution:
        h = np.where(ties, mu - 1, 1 + mu)
        step = free @ _least_distance(G @ free, h - G @ shortest, size)
        return Solution(shortest + step, np.empty(0))

    return grow_working_set(data, unit, solve, working_set)[0].coef / unit


def _least_distance(G: NDArray, h: NDArray, size: float) -> Floats:
    """Return the z of minimum norm with G z >= h, by nonnegative least squares.

    The caller guarantees that z exists, with a norm of about `size`. The problem that
    is solved is the dual.
    """
    reach = np.abs(G).max(axis=1, initial=0.0)
    binding = reach > RANK_TOL * reach.max(initial=0.0)
    G = G[binding]
    h = h[binding] / size
    # Lawson and Hanson: min |(G', h)'x - (0, 1)| over x >= 0; x > 0 where G z = h.
    target = np.append(np.zeros(G.shape[1]), 1.0)
    x, _ = nonnegative_least_squares(np.vstack([G.T, h - _FEASIBILITY_TOL]), target)
    return size * least_squares(G[x > 0], h[x > 0], RANK_TOL)
