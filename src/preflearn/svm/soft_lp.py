"""The kernelised linear program with slack: future work of [Venuto2017]_, section 6, done.

Its unknowns are the coefficients of a kernel expansion over the n distinct items, whose sum of sizes is
limited. The linear program is solved through its dual, which has one variable a preference, two a tie.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
.. [Demiriz2002] A. Demiriz, K. P. Bennett, J. Shawe-Taylor, "Linear programming boosting via column
   generation", Machine Learning 46, 2002.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linprog

from preflearn.checks import Floats, as_real, check_kinds, check_number, check_scale, shown
from preflearn.ground.estimator import ComparisonEstimator
from preflearn.ground.kernels import Kernel
from preflearn.pairs import Pairs
from preflearn.svm.machine import KernelProblem, check_gap, check_input

_TOLERANCE = 1e-9  # of HiGHS, on rows of size 1


class LPCompare(ComparisonEstimator):
    """A ranking function with few kernels and a large margin in its own values, with slack.

    Solves eq. 7 of [Venuto2017]_ for r(x) = sum_j a_j k(x_j, x) over the n distinct items of the pairs,
    with z_i = r(first) - r(second) and a weight s_i of each pair, 1 unless given::

        maximise    mu - 1 / (nu sum_i s_i) · sum_i s_i xi_i    over a, mu <= 1 and xi >= 0
        subject to  |z_i| <= 1 - mu + xi_i (ties),   y_i z_i >= 1 + mu - xi_i (preferences),
                    sum_j |a_j| <= radius.

    Two items whose scores differ by at most 1 are predicted to be equal.

    Parameters
    ----------
    nu : float
        In (0, 1]: at most this share of the weight of pairs gets slack.
    radius : float
        Limit of sum_j |a_j|, in units of r over those of the kernel.
    kernel, gamma, degree, coef0
        As in `SVMCompare`, but the kernel need not be positive semi-definite.

    Attributes
    ----------
    support_items_ : ndarray of int
        Ids of the items with a coefficient; of equal items, the first.
    item_coef_ : ndarray
        Their coefficients a.
    coef_ : ndarray of shape (p,)
        sum_j a_j x_j, for the linear kernel only.
    margin_ : float
        mu, in [-1, 1].
    slack_ : ndarray of shape (m,)
        xi, in units of r.
    dual_coef_ : ndarray of shape (m,)
        Optimal dual weights g: see the notes.
    support_ : ndarray of int
        Ids of the pairs with a dual weight.
    tau_ : float
        1, the threshold of the comparison function.
    objective_, dual_gap_ : float
        The maximum, in [-1, 1], and the duality gap that proves it.
    n_features_in_ : int

    Notes
    -----
    **The dual.** With costs c_i = s_i / (nu sum_i s_i), the incidence matrix B and the Gram matrix K::

        minimise    1 - 2 (sum of |g_i| over preferences) + radius · max_j |(K B'g)_j|
        subject to  |g_i| <= c_i,   y_i g_i >= 0 (preferences),   sum_i |g_i| <= 1.

    The last sum is 1 unless mu = 1. With no slack and no radius it is the dual of `MarginLP`.

    **What nu says.** A pair with slack has |g_i| = c_i; one that keeps clear of its margin boundary has
    g_i = 0. So pairs with slack weigh at most a share nu, and, unless mu = 1, those with slack or on the
    boundary at least a share nu. A tie counts once: while mu < 1, only one of its two sides can be on the
    boundary.
    **If mu > 0, each pair that is predicted wrongly has slack, so the training error is at most nu.**

    **mu <= 0.** Then for each r within the radius and each mu' > 0 the mean slack is at least nu mu': nu
    is too small for this kernel and radius. The scores still serve, but the boundaries of preferences and
    ties overlap, and nu no longer limits the error: raise nu or the radius.

    **Extremes.** r = 0 has the value 1 - 2 (share of preferences) / nu for mu = 1, and -1 for mu = -1; it
    can be optimal, and `predict` is 0 then. If c_i > 1 for all pairs (nu < 1/m), no pair gets slack; where
    linear weights separate the pairs, mu is then that of `MarginLP` if and only if the radius reaches the
    least sum |a_j| of one of its optima sum_j a_j x_j.

    Only preferences would leave the threshold 1 without a meaning (the program is then LPBoost
    [Demiriz2002]_ on differences, whose r grows with the radius). Only ties are solved by r = 0.

    Time grows about as m n times the number of simplex steps, and memory as m n.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> lp = LPCompare(nu=0.1, kernel="linear").fit(pairs, [0, 1])
    >>> lp.coef_.round(6).tolist(), round(lp.margin_, 6), lp.support_items_.tolist()
    ([0.5], 0.5, [2])
    >>> lp.predict(pairs).tolist()
    [0, 1]
    """

    def __init__(
        self,
        nu: float = 0.5,
        radius: float = 10.0,
        kernel: Kernel = "rbf",
        *,
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
    ) -> None:
        self.nu = nu
        self.radius = radius
        self.kernel: Kernel = kernel
        self.gamma: float | Literal["scale"] = gamma
        self.degree = degree
        self.coef0 = coef0

    def fit(
        self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LPCompare:
        """Learn from labelled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and preferences.
        sample_weight : array-like of shape (m,), optional
            How often each pair counts, not negative.

        Raises
        ------
        ValueError
            On bad parameters, pairs or labels, only ties, or only preferences.
        """
        nu = as_real(self.nu)
        if not 0 < nu <= 1:
            raise ValueError(f"nu is {shown(self.nu)}; expected a positive number of at most 1")
        radius = check_number(self, "radius", positive=True)
        pairs, y, weights = check_input(pairs, y, sample_weight)
        kept = np.flatnonzero(weights)
        labels = y[kept]
        check_kinds(labels, "LPCompare")
        problem = KernelProblem.of(self, pairs[kept])
        gram = problem.gram()
        check_scale(gram, "the Gram matrix")
        rows = problem.B.differences(gram)  # B K: the scores of a are K a, and z = B K a
        cost = weights[kept] / (nu * weights.sum())
        dual, coef, margin = _solve_dual(rows, labels, cost, radius)
        coef *= min(1.0, radius / max(np.abs(coef).sum(), 1e-300))
        slack = np.maximum(0.0, margin - _margins(rows @ coef, labels))
        bound = 1 - 2 * np.abs(dual[labels != 0]).sum() + radius * np.abs(dual @ rows).max()
        self.objective_ = float(margin - cost @ slack)
        self.dual_gap_ = float(max(0.0, bound - self.objective_))
        check_gap(self, self.dual_gap_, f"lower radius = {radius:g}")
        self.n_features_in_, self.margin_, self.tau_ = pairs.shape[2], margin, 1.0
        self.slack_, self.dual_coef_ = np.zeros(len(y)), np.zeros(len(y))
        self.slack_[kept], self.dual_coef_[kept] = slack, dual
        self.support_ = np.flatnonzero(self.dual_coef_)
        used = np.flatnonzero(coef)
        self.support_items_, self.item_coef_ = problem.ids[used], coef[used]
        self._expansion = problem.expansion(coef)
        if self.kernel == "linear":
            self.coef_ = self._expansion.centres[0]
        return self

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


def _margins(z: Floats, y: NDArray) -> Floats:
    """The largest mu that each pair allows without slack."""
    return np.where(y == 0, 1 - np.abs(z), y * z - 1)


def _solve_dual(rows: Floats, y: NDArray, cost: Floats, radius: float) -> tuple[Floats, Floats, float]:
    """Dual weights g, coefficients a and margin mu of the program with z = rows @ a.

    Preferences have one dual variable, ties two, of which one is 0. The variables h = rows' g are free, so
    that each dense row is stored once, though |h| <= t takes two constraints.
    """
    preferred, tied = np.flatnonzero(y), np.flatnonzero(y == 0)
    pair = np.concatenate([preferred, tied, tied])
    sign = np.concatenate([y[preferred], np.ones(len(tied)), -np.ones(len(tied))])
    (m, n), v = rows.shape, len(pair)
    unit, size = cost.mean(), float(np.abs(rows).max()) or 1.0
    dense = sparse.csc_array((rows[pair] * sign[:, None]).T / size)
    one, minus_t = sparse.eye_array(n), np.full((n, 1), -1.0)
    limits = [[None, one, minus_t], [None, -one, minus_t], [np.ones((1, v)), None, None]]
    upper = cost[pair] / unit
    result = linprog(
        np.concatenate([np.where(y[pair] != 0, -2.0, 0.0), np.zeros(n), [radius * size]]),
        A_ub=sparse.block_array(limits, format="csc"),
        b_ub=np.concatenate([np.zeros(2 * n), [1 / unit]]),
        A_eq=sparse.hstack([dense, -one, sparse.csc_array((n, 1))], format="csc"),
        b_eq=np.zeros(n),
        bounds=[*zip(np.zeros(v), upper, strict=True), *[(None, None)] * n, (0, None)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
    )
    if result.status != 0:
        raise ValueError(
            f"no optimum was found ({result.message}): lower radius, or standardise the features"
        )
    weights = np.clip(result.x[:v], 0.0, upper) * unit
    weights /= max(1.0, weights.sum())
    dual = np.zeros(m)
    np.add.at(dual, pair, sign * weights)
    prices = result.ineqlin.marginals
    return dual, (prices[n : 2 * n] - prices[:n]) / size, float(1 + prices[-1])
