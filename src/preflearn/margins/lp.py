"""The linear program of [Venuto2017]_, section 3.1, for separable data.

With s = min w·(y_i d_i) over preferences and t = max |w·d_j| over ties, it maximises s
/ t. `MarginLP.fit` checks and finishes the solution; the program and its interior point
are in `preflearn.margins.interior_point`, the working set in
`preflearn.margins.constraints`.

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
from preflearn.core.validation import Floats, check_kinds
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

# a slack of this size, where the decision boundary is at 1, counts as none
_ACTIVE_TOL = 1e-9
_MARGIN_TOL = 1e-12  # margins that differ by less are equal
_MIN_DUAL = 1e-13  # a dual weight above this counts; they sum to 1
# by which constraints may be violated where nothing else is feasible
_FEASIBILITY_TOL = 1e-14


class MarginLP(LinearComparison):
    """The linear ranking function with the largest margin in its own values.

    Solves the linear program, eq. 7 of [Venuto2017]_::

        maximise mu   s.t.   mu <= 1 - |w·d_j| (ties),   mu <= y_i w·d_i - 1 (preferences),

    with d = first - second. Invertible linear maps of the features leave mu as it is.
    Among several optimal w, the one of minimum Euclidean norm is taken: it is unique,
    and it is that of `MarginQP` whenever that is optimal here too.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        w, in 1 / (unit of the feature).
    margin_ : float
        mu, in (0, 1]: the least distance of a value w·d from the decision boundaries at
        -1 and 1.
    active_ : ndarray of int
        Ids of the pairs whose constraint holds with equality, to 1e-9.
    dual_coef_ : ndarray of shape (m,)
        Optimal dual weights: ``sum_i dual_coef_[i] d_i = 0``, ``sum |dual_coef_| = 1``
        (less if mu = 1), and mu = 1 - 2 (sum of ``|dual_coef_|`` over preferences). Not
        zero for active pairs only.
    kkt_residual_ : float
        By how much mu may lie below the optimum that its dual weights allow, relative
        to mu; a ConvergenceWarning is given above 1e-7, which takes a margin near the
        rounding of floats.
    n_features_in_ : int

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> lp = MarginLP().fit(pairs, [0, 1])
    >>> lp.coef_.round(6).tolist(), round(lp.margin_, 6)
    ([0.5], 0.5)
    """

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike) -> MarginLP:
        """Find the weights of the largest margin.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and
            preferences.

        Raises
        ------
        NotSeparableError
            If no linear ranking function is right on all pairs.
        ValueError
            On bad pairs or labels, only ties, or only preferences.
        """
        data = OrientedPairs.validate(pairs, y)
        check_kinds(data.y, "MarginLP")
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
        if s > t:  # the multiple whose boundaries are at -1 and 1
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
        # The dual weights bound mu, plus what they miss of sum dual_i d_i = 0.
        preferred = np.abs(dual[~ties]).sum()
        missed = (dual * data.sign) @ data.values
        bound = 1 - 2 * preferred + np.abs(missed) @ np.abs(coef)
        self.kkt_residual_ = max(
            abs(bound - self.margin_) / self.margin_, np.abs(dual).sum() - 1
        )
        warn_about_residual("MarginLP", self.kkt_residual_)
        return self


def _margin(data: OrientedPairs, coef: Floats) -> float:
    """mu of the best multiple of these weights; 0 if they are wrong on a preference."""
    s, t = extremes(data.values @ coef, data.ties)
    return (s - t) / (s + t) if s > 0 else 0.0


def minimum_norm_optimum(
    data: OrientedPairs, scales: Floats, solution: Solution, working_set: NDArray
) -> Floats:
    """The shortest optimal w of the LP, from one optimum and its dual weights.

    By complementary slackness the optimal w are the feasible ones at which each
    constraint with a dual weight is tight. These linear equations give mu and, more
    often than not, all of w.

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
    if solution.state > 1 - RANK_TOL:  # then mu = 1, and w·d = 0 for each tie
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
    """The shortest z with G z >= h, by nonnegative least squares on its dual.

    It exists and its norm is about `size`.
    """
    reach = np.abs(G).max(axis=1, initial=0.0)
    binding = reach > RANK_TOL * reach.max(initial=0.0)
    G = G[binding]
    h = h[binding] / size
    # Lawson and Hanson: min |(G', h)'x - (0, 1)| over x >= 0; x > 0 where G z = h.
    target = np.append(np.zeros(G.shape[1]), 1.0)
    x, _ = nonnegative_least_squares(np.vstack([G.T, h - _FEASIBILITY_TOL]), target)
    return size * least_squares(G[x > 0], h[x > 0], RANK_TOL)
