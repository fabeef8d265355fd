"""The linear program with kernels and slack.

Section 6 of [Venuto2017]_ mentions this as future work.

The unknowns are the coefficients of a kernel expansion over the n distinct items; the
sum of their absolute values is limited. Since few items and few pairs determine the
solution, columns (items) and rows (pairs) are generated as needed. A duality gap over
all items and pairs proves the optimum.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
.. [Demiriz2002] A. Demiriz, K. P. Bennett, J. Shawe-Taylor, "Linear programming
   boosting via column generation", Machine Learning 46, 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from preflearn.core.kernels import Kernel
from preflearn.core.validation import (
    Floats,
    Ids,
    as_real,
    check_number,
    check_scale,
    require,
)
from preflearn.pairs import Incidence, Pairs, as_pairs
from preflearn.svm.base import ExpansionRanker, Training, check_gap
from preflearn.svm.kernel_problem import KernelProblem

_TOLERANCE = 1e-9  # tolerance of HiGHS, for rows of size 1, and largest allowed gap
_OPTIONS = {
    "primal_feasibility_tolerance": _TOLERANCE,
    "dual_feasibility_tolerance": _TOLERANCE,
    "presolve": False,  # takes longer than the solution
}
_NEW_ITEMS = 20  # minimum number of items that are added at a time
# In each round the objective grows, a pair is freed, or items are added.
_MAX_ROUNDS = 10_000
# Number of pairs that are freed at a time. If there are at most twice as many pairs,
# all of them are free from the start.
_MAX_FREED = 1000


@dataclass(eq=False, repr=False)
class LPCompare(ExpansionRanker):
    """Linear program with slack: sparse kernel expansion from preferences and ties.

    Choose it if the ranking function should be a sum of few kernel functions, if the
    kernel is not positive semi-definite, or if the fraction of training errors should
    be limited by a parameter.

    It solves eq. 7 of [Venuto2017]_ for r(x) = sum_j a_j k(x_j, x) over the n distinct
    items of the pairs, with z_i = r(first) - r(second) and a weight s_i of each pair,
    by default 1::

        maximize    mu - 1 / (nu sum_i s_i) · sum_i s_i xi_i    over a, mu <= 1 and xi >= 0
        subject to  |z_i| <= 1 - mu + xi_i (ties),   y_i z_i >= 1 + mu - xi_i (preferences),
                    sum_j |a_j| <= radius.

    Two items whose scores differ by at most 1 are predicted to be a tie.

    Parameters
    ----------
    nu : float
        Upper bound on the weighted fraction of pairs with slack, in (0, 1].
    radius : float
        Upper bound on ``sum_j |a_j|``.
    kernel, gamma, degree, coef0
        Kernel and its parameters, as in `SVMCompare`. The kernel need not be positive
        semi-definite.

    Attributes
    ----------
    support_items_ : ndarray of int
        Ids of the items with a coefficient; of equal items, the first.
    item_coef_ : ndarray
        Coefficients a of these items.
    coef_ : ndarray of shape (p,)
        sum_j a_j x_j, for the linear kernel only.
    margin_ : float
        mu, in [-1, 1].
    slack_ : ndarray of shape (m,)
        xi, in units of r.
    dual_coef_ : ndarray of shape (m,)
        Optimal dual weights g, see the notes.
    support_ : ndarray of int
        Ids of the pairs with a dual weight.
    tau_ : float
        1, the threshold of the comparison function.
    objective_, dual_gap_ : float
        Maximum, in [-1, 1], and the duality gap that proves it.
    n_features_in_ : int

    Notes
    -----
    **The dual.** With costs c_i = s_i / (nu sum_i s_i), the incidence matrix B and the
    Gram matrix K::

        minimize    1 - 2 (sum of |g_i| over preferences) + radius · max_j |(K B'g)_j|
        subject to  |g_i| <= c_i,   y_i g_i >= 0 (preferences),   sum_i |g_i| <= 1.

    The last sum is 1 unless mu = 1. Without slack and radius it is the dual of
    `MarginLP`.

    **Meaning of nu.** A pair with slack has ``|g_i| = c_i``; a pair beyond its margin
    boundary has g_i = 0. The weighted fraction of pairs with slack is therefore at most
    nu. Unless mu = 1, the fraction of pairs with slack or on the boundary is at least
    nu. A tie counts once: if mu < 1, only one of its two sides can be on the boundary.
    **If mu > 0, each wrongly predicted training pair has slack, so the training error
    is at most nu.**

    **If mu <= 0**, nu is too small for this kernel and radius: for each r within the
    radius and each mu' > 0, the mean slack is at least nu mu'. The scores can still be
    used, but the regions of preferences and ties overlap, and nu does not limit the
    error. Raise nu or the radius.

    **Extreme cases.** r = 0 has the value 1 - 2 (fraction of preferences) / nu for mu =
    1, and -1 for mu = -1. It can be optimal; `predict` then returns 0. If c_i > 1 for
    all pairs (nu < 1/m), no pair has slack. If linear weights separate the pairs, mu
    then equals that of `MarginLP` if and only if the radius is at least the minimum of
    ``sum |a_j|`` over its optima sum_j a_j x_j.

    Ties and preferences are both required. Without ties the threshold 1 has no meaning:
    the program is then LPBoost ([Demiriz2002]_) on differences, and r grows with the
    radius. Without preferences, r = 0 is optimal.

    **Method.** A small program with some items and pairs is solved repeatedly. Items
    are added if ``|(K B'g)_j|`` exceeds its maximum over the current items, and pairs
    if their slack was assumed wrongly to be zero or positive. A solution for an
    eighth of the pairs gives the starting point. Memory is O(n²).

    **Centering.** Adding a constant to a column of K does not change any score
    difference. A linear kernel is computed between the centered items and the original
    items. The functions sum_j a_j x_j·x, and with them the bound on ``sum_j |a_j|``,
    depend on the origin of the features.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> lp = LPCompare(nu=0.1, kernel="linear").fit(pairs, [0, 1])
    >>> lp.coef_.round(6).tolist(), round(lp.margin_, 6), lp.support_items_.tolist()
    ([0.5], 0.5, [2])
    >>> lp.predict(pairs).tolist()
    [0, 1]
    """

    nu: float = 0.5
    radius: float = 10.0
    kernel: Kernel = "rbf"

    def fit(
        self,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> LPCompare:
        """Fit the model to labeled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
            Pairs, or the features of both items of each pair.
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and
            preferences.
        sample_weight : array-like of shape (m,), optional
            Nonnegative weight of each pair; weight 2 counts the pair twice.

        Raises
        ------
        ValueError
            If parameters, pairs, or labels are not valid, or there are only ties or
            only preferences.
        """
        nu = as_real(self.nu)
        require(0 < nu <= 1, self.nu, "nu", "a positive number of at most 1")
        radius = check_number(self, "radius", positive=True)
        training = Training.validate(self, as_pairs(pairs), y, sample_weight)
        problem = KernelProblem.of(self, training.pairs)
        items = problem.items
        if self.kernel == "linear":
            items = items - items.mean(axis=0)
        K = problem.functions.k(items, problem.functions.centres)
        check_scale(K, "the Gram matrix")
        cost = training.weights / (nu * training.weights.sum())
        program = _LinearProgram(K, problem.B, training.y, cost, radius)
        optimum = program.solve()
        self.objective_ = program.objective(optimum)
        self.dual_gap_ = abs(program.bound(optimum) - self.objective_)
        check_gap(self, self.dual_gap_, f"lower radius (now {radius:g})")
        self.n_features_in_ = training.pairs.shape[2]
        self.margin_ = optimum.margin
        self.tau_ = 1.0
        slack = np.maximum(0.0, -program.clearance(optimum)[0])
        self.slack_ = training.for_all_pairs(slack)
        self.dual_coef_ = training.for_all_pairs(optimum.dual)
        self.support_ = np.flatnonzero(self.dual_coef_)
        used = np.flatnonzero(optimum.coef)
        self.support_items_ = problem.ids[used]
        self.item_coef_ = optimum.coef[used]
        self._expansion = problem.expansion(optimum.coef)
        if self.kernel == "linear":
            self.coef_ = self._expansion.centres[0]
        return self


class _Point(NamedTuple):
    """A primal point, feasible with its slack, and a feasible point of the dual."""

    coef: Floats  # (n,) a
    margin: float
    dual: Floats  # (m,) g


class _WorkingSet(NamedTuple):
    """Items and pairs of the current subproblem; weights of these pairs are variables."""

    items: Ids
    free: NDArray[np.bool_]  # (m,)
    bounded: Floats  # (m,): dual weights of the other pairs, up to a common factor


class _LinearProgram(NamedTuple):
    """The linear program with the kernel functions of n items, for m pairs."""

    K: Floats
    B: Incidence
    y: NDArray[np.int8]
    cost: Floats
    radius: float

    def clearance(self, point: _Point) -> tuple[Floats, Floats]:
        """Return distances beyond margin boundaries, and signs of the duals."""
        z = self.B.differences(self.K @ point.coef)
        reached = np.where(self.y == 0, 1 - np.abs(z), self.y * z - 1)
        return reached - point.margin, np.where(self.y == 0, -np.sign(z), self.y)

    def prices(self, dual: Floats) -> Floats:
        """Return |(K B'g)_j| for each item."""
        return np.abs(self.B.adjoint(dual) @ self.K)

    def objective(self, point: _Point) -> float:
        slack = np.maximum(0.0, -self.clearance(point)[0])
        return float(point.margin - self.cost @ slack)

    def bound(self, point: _Point) -> float:
        """Return the value of the dual program, an upper bound on the objective."""
        preferred = np.abs(point.dual[self.y != 0]).sum()
        return float(1 - 2 * preferred + self.radius * self.prices(point.dual).max())

    def solve(self, tol: float = _TOLERANCE) -> _Point:
        """Return the optimum, by adding items and pairs until the duality gap is small."""
        items, free, bounded = self._first_working_set()
        best = -np.inf
        for _ in range(_MAX_ROUNDS):
            point = self.restricted(_WorkingSet(items, free, bounded))
            prices = self.prices(point.dual)
            clearance, side = self.clearance(point)
            objective = self.objective(point)
            # items whose columns would improve the dual bound
            missing = prices > prices[items].max() * (1 + _TOLERANCE)
            n_new = max(_NEW_ITEMS, len(items) // 2)
            new = _largest(np.where(missing, prices, 0.0), n_new)
            if abs(self.bound(point) - objective) <= tol:
                return point
            if free.all() and not len(new):
                return point
            # If the objective has grown, items without a coefficient can be removed.
            if objective > best:
                items = np.flatnonzero(point.coef != 0)
                best = objective
            # a pair has slack if and only if its dual weight is at its bound
            right = (clearance < 0) == (bounded * side > 0)
            wrong = np.where(free | right, 0.0, np.abs(clearance))
            freed = _largest(wrong, _MAX_FREED)
            # the remaining violations are pairs exactly on their boundary
            if not len(new) and not len(freed):
                freed = np.flatnonzero(~free)
            free[freed] = True
            bounded[freed] = 0.0
            items = np.append(items, new)
            if not len(items):
                items = np.zeros(1, dtype=np.int64)
        raise ValueError(f"no optimum was found in {_MAX_ROUNDS} rounds; lower radius")

    def _first_working_set(self) -> _WorkingSet:
        """Return the items of highest prices, and all pairs if there are few.

        If there are many pairs, the pairs near the boundary of a solution for an
        eighth of them are chosen.
        """
        m = len(self.y)
        items = np.argsort(-self.prices(self.y * self.cost))[:_NEW_ITEMS]
        free = np.ones(m, dtype=bool)
        if m <= 2 * _MAX_FREED:
            return _WorkingSet(items, free, np.zeros(m))
        part = slice(None, None, 8)
        cost = self.cost[part] * (self.cost.sum() / self.cost[part].sum())
        program = _LinearProgram(self.K, self.B[part], self.y[part], cost, self.radius)
        guess = program.solve(1e-2)
        clearance, side = self.clearance(guess)
        free[np.argsort(np.abs(clearance))[_MAX_FREED:]] = False
        bounded = np.where(free | (clearance > 0), 0.0, side * self.cost)
        return _WorkingSet(np.union1d(items, np.flatnonzero(guess.coef)), free, bounded)

    def restricted(self, working_set: _WorkingSet) -> _Point:
        """Return the optimum over the working set.

        Only free pairs have a separate dual variable.

        The dual weights of the other pairs are a common multiple of `bounded`.
        Preferences have one dual variable, and ties have two, of which one is 0.
        """
        items, free, bounded = working_set
        preferred = np.flatnonzero(free & (self.y != 0))
        tied = np.flatnonzero(free & (self.y == 0))
        pair = np.concatenate([preferred, tied, tied])
        sign = np.concatenate(
            [self.y[preferred], np.ones(len(tied)), -np.ones(len(tied))]
        )
        K = self.K[:, items]
        total = float(np.abs(bounded).sum()) or 1.0
        together = self.B.adjoint(bounded / total) @ K
        rows = np.vstack([self.B[pair].differences(K) * sign[:, None], together])
        v, n = rows.shape
        unit = self.cost.mean()
        size = float(np.abs(rows).max()) or 1.0
        preferred_fraction = np.abs(bounded[self.y != 0]).sum() / total
        upper = np.append(self.cost[pair], np.abs(bounded).sum()) / unit
        gain = np.append(
            np.where(self.y[pair] != 0, -2.0, 0.0), -2.0 * preferred_fraction
        )
        # The unknowns are g and t = max_j |(K B'g)_j|, in the units above: t >= rows'g,
        # t >= -rows'g, and sum g <= 1. With free variables for rows'g, HiGHS may never
        # end.
        limits = np.zeros((2 * n + 1, v + 1))
        limits[:n, :v] = rows.T / size
        limits[n:-1, :v] = -rows.T / size
        limits[:-1, v] = -1.0
        limits[-1, :v] = 1.0
        result = linprog(
            np.append(gain, self.radius * size),
            A_ub=limits,
            b_ub=np.append(np.zeros(2 * n), 1 / unit),
            bounds=[*zip(np.zeros(v), upper, strict=True), (0, None)],
            method="highs-ds",
            options=_OPTIONS,
        )
        expected = "an optimal solution; lower radius, or standardize the features"
        outcome = "the result of the linear program"
        require(result.status == 0, result.message, outcome, expected)
        weights = np.clip(result.x[:v], 0.0, upper) * unit
        weights /= max(1.0, weights.sum())
        dual = bounded * (weights[-1] / total)
        np.add.at(dual, pair, sign * weights[:-1])
        # The multipliers of the two constraints |(K B'g)_j| <= t give the coefficients
        # a.
        prices = result.ineqlin.marginals
        coef = np.zeros(len(self.K))
        coef[items] = (prices[n : 2 * n] - prices[:n]) / size
        coef *= min(1.0, self.radius / max(np.abs(coef).sum(), 1e-300))
        return _Point(coef, min(1.0, float(1 + prices[-1])), dual)


def _largest(values: Floats, most: int) -> Ids:
    """Return the ids of the largest positive values."""
    ids = np.argsort(-values)[:most]
    return ids[values[ids] > 0]
