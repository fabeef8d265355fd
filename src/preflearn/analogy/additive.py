"""Logistic regression with the analogy kernel on a million pairs, without a Gram
matrix.

The kernel of degree 1 is a mean over features, so its functions are sums of functions
of one difference each. One of those is piecewise linear, and a coarse one with some
dozen knots is already close.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from preflearn.analogy.gram_products import AnalogyOperator
from preflearn.analogy.kernel import check_differences
from preflearn.analogy.low_rank import AllFunctions, low_rank_functions
from preflearn.core.estimator import check_asked
from preflearn.core.validation import (
    Floats,
    as_real,
    check_count,
    check_labels,
    check_number,
    require,
)
from preflearn.solvers.newton import conjugate_gradients, newton, warn_about_gap

_MIN_C = 1e-12
_MAX_C = 1e6
# the smallest curvature of the loss in Newton's equations, which divide by it
_MIN_CURVATURE = 1e-10
_STEP_ACCURACY = 0.1  # relative to the length of the step in the metric of the Hessian
_MAX_NEWTON_STEPS = 100
_MAX_CG_STEPS = 1000


class _Point(NamedTuple):
    """Weights of the kernel functions, and what a Newton step and the gap need."""

    x: Floats  # (N,), the weights
    bias: float
    value: float
    slopes: Floats  # C times those of the losses; with a bias, their sum is 0
    gradient: Floats  # K times the residual x + slopes


class Logistic(NamedTuple):
    """1/2 x'Kx + C sum_i log(1 + exp(-y_i (K x + bias)_i)), at the best bias for each
    x, or a bias of 0.

    At a small cost the gap is small at x = 0, where f is constant and ranks nothing:
    take a step at least.
    """

    times: Callable[[Floats], Floats]  # K v
    # of the equations, or near; see `coarse`
    inverse: Callable[[Floats], Callable[[Floats], Floats]]
    y: Floats
    C: float
    biased: bool = True

    def at(self, x: Floats) -> _Point:
        scores = self.times(x)
        bias = 0.0
        if self.biased:
            # beyond the scores: losses of one kind outweigh all of the other
            wide = np.log(len(x)) + 1
            low = -float(scores.max()) - wide
            high = -float(scores.min()) + wide
            root: Any = brentq(
                lambda b: float(self._slopes(scores + b).sum()), low, high, xtol=1e-15
            )
            bias = float(root)
        slopes = self._slopes(scores + bias)
        loss = float(np.logaddexp(0.0, -self.y * (scores + bias)).sum())
        value = float(x @ scores) / 2 + self.C * loss
        return _Point(x, bias, value, slopes, self.times(x + slopes))

    def _slopes(self, f: Floats) -> Floats:
        return -self.C * self.y * expit(-self.y * f)

    def gap(self, point: _Point) -> float:
        """1/2 e'Ke of the residual e, relative."""
        gap = float((point.x + point.slopes) @ point.gradient) / 2
        return max(0.0, gap / point.value)

    def step(self, point: _Point) -> Floats:
        """About Newton's, from (W^-1 + K) step + 1 t = -e / W and 1'step = 0, by
        conjugate gradients."""
        p = np.abs(point.slopes) / self.C  # probability of the other label
        W = self.C * np.maximum(p * (1 - p), _MIN_CURVATURE)
        solve = self.inverse(W)
        right = -(point.x + point.slopes)
        # Newton's model of the objective is at most excess / 2 above its minimum, and
        # falls by some decrease / 2: the first is r'WK (1 + W K)^-1 Wr of the residual
        # r, which r'Wr bounds.

        def enough(step: Floats, residual: Floats, *sizes: float) -> bool:
            weighted = W * residual
            excess = float(residual @ weighted)
            excess -= self.biased * weighted.sum() ** 2 / W.sum()
            return excess <= -(_STEP_ACCURACY**2) * float(step @ point.gradient)

        step = solve(right)
        residual = (right - step) / W - self.times(step)
        conjugate_gradients(
            lambda v: v / W + self.times(v),
            lambda r: solve(W * r),
            step,
            residual,
            enough,
            _MAX_CG_STEPS,
        )
        return step


class AdditiveAnalogy(BaseEstimator):
    """Which item of a pair is better, by logistic regression with the analogy kernel of
    degree 1.

    With k of eq. 8 of [AhmadiFahandar2019]_, its function space H, and differences u =
    a - b::

        minimise over g in H and b:  1/2 |g|^2 + C sum_i log(1 + exp(-y_i f(u_i))),   f = g + b,

    by Newton's method, until a duality gap proves the minimum. It is reached by g =
    sum_i dual_coef_i k(·, u_i), a sum of functions g_k of the difference of one feature
    each. 1 / (1 + exp(-f)) is the probability that the first item is better: the
    predictor with values in [0, 1] that section 5.1 asks for, with no calibration
    afterwards.

    Parameters
    ----------
    C : float
        Weight of the loss, from 1e-12 to 1e6. Time grows with C: see Notes.
    tol : float
        Largest relative duality gap, positive. A ConvergenceWarning says so where
        rounding, or 100 steps of Newton, end it before.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (N,)
        One coefficient per pair, with a sum of 0; at the minimum y_i times a number
        between 0 and C.
    bias_ : float
        The constant b.
    objective_, dual_gap_ : float
        The objective, which exceeds its minimum by at most the fraction `dual_gap_`.
    differences_ : ndarray of shape (N, d)
        The differences of the fit.
    n_iter_ : int
        Number of Newton steps.
    n_features_in_ : int
        The number d of features.

    Notes
    -----
    **The functions.** g_k is continuous and piecewise linear on the differences of one
    sign, with knots at those of the fit, and has a value of its own at 0. With p = g_k
    on [0, 1] (the limit at 0), ``|g_k|^2`` has the part 1/2 int p'^2 + 1/2 (p(0) +
    p(1))^2, the same for [-1, 0], and the square of the value at 0. ``|g|^2 = d sum_k
    |g_k|^2`` for the g_k of `component`; for other ways to write g as such a sum, the
    right-hand side is larger.

    **The bias.** Constants are in H, but cost: ``|1|^2 = 5``. So one is added without
    penalty, as in the support vector machine that the paper trains on pairs in one
    order each. Trained on both orders, (u, y) and (-u, -y), the model has b = 0 and
    f(-u) = -f(u), since its minimum is the only one (kappa(-u, -v) = kappa(u, v)). That
    is the model on one order without bias, with the kernel (k(u, v) - k(u, -v)) / 2 and
    the cost 2C. To get it, pass both orders.

    **The gap.** With s_i the slope of the loss at f(u_i), times C, the weights -s are
    feasible in the dual program where b is the best for g, since then sum_i s_i = 0.
    The gap is 1/2 e'Ke, e = `dual_coef_` + s.

    **The steps.** Newton's equations (W^-1 + K) x + 1 t = r, 1'x = 0, W the curvatures
    of the losses, are solved by conjugate gradients with products by sorting. They are
    preconditioned by the same equations for functions with coarse knots: M unknowns, up
    to some 2,000, or 4 to 5 d where d > 250; for N <= M, by the equations themselves.
    What coarse knots at a distance h leave of K is of order N h^2 / d, so few gradients
    do where C N h^2 / d is small; else their number grows with its root, and d = 1 and
    N = 10^5 take seconds at C = 10^4, minutes at 10^6.

    A step costs O(N d^2 + M^3) for the coarse equations, in memory of two M x M
    matrices, and O(N d) a gradient. Threads of BLAS may change the last digits.

    Examples
    --------
    >>> model = AdditiveAnalogy(tol=1e-9).fit([[0.5], [0.25], [-0.5], [-0.25]], [1, 1, -1, -1])
    >>> model.decision_function([[0.5], [-0.5], [0.0]]).round(3).tolist()
    [0.614, -0.614, 0.0]
    >>> model.component(0, [0.25, 0.5, 1.0]).round(3).tolist()
    [0.614, 0.614, 0.263]
    """

    def __init__(self, C: float = 1.0, *, tol: float = 1e-3) -> None:
        self.C = C
        self.tol = tol

    def fit(self, U: ArrayLike, y: ArrayLike) -> Self:
        """Learn from labelled pairs.

        Parameters
        ----------
        U : array-like of shape (N, d)
            Differences of the features of first and second items, in [-1, 1].
        y : array-like of shape (N,)
            Labels: +1 first better, -1 second better; both.

        Raises
        ------
        ValueError
            On bad parameters, differences outside [-1, 1], or other labels, or if all
            labels are the same.
        """
        good = _MIN_C <= as_real(self.C) <= _MAX_C
        require(good, self.C, "C", f"a number from {_MIN_C:g} to {_MAX_C:g}")
        tol = check_number(self, "tol", positive=True)
        U = check_differences(U)
        y = check_labels(y, len(U), allow=(-1, 1)).astype(np.float64)
        if np.all(y == y[0]):
            raise ValueError(
                f"all {len(y)} labels are {y[0]:+.0f}; expected both -1 and +1"
            )
        operator = AnalogyOperator(U)
        functions = low_rank_functions(U)
        times = operator.times
        if isinstance(functions, AllFunctions):
            times = functions.gram.times
        problem = Logistic(times, functions.inverse, y, float(self.C))
        start = np.zeros(len(y))
        optimum, gap, self.n_iter_ = newton(problem, start, tol, _MAX_NEWTON_STEPS)
        warn_about_gap("AdditiveAnalogy", gap, tol, f"lower C = {self.C:g}")
        self.differences_ = U
        self.n_features_in_ = U.shape[1]
        self._operator = operator
        self.dual_coef_ = optimum.x
        self.bias_ = optimum.bias
        self.objective_ = optimum.value
        self.dual_gap_ = gap
        return self

    def decision_function(self, V: ArrayLike) -> Floats:
        """f of other pairs, shape (n,): positive where the first item is predicted to
        be better.

        Each call passes over all pairs of the fit, so ask for many pairs at once.

        Parameters
        ----------
        V : array-like of shape (n, d)
            Differences.
        """
        V = check_differences(check_asked(self, V, "V"), "V")
        return self._operator.cross(V, self.dual_coef_) + self.bias_

    def component(self, k: int, u: ArrayLike) -> Floats:
        """g_k at differences u of feature k (from 0), shape (n,): f = `bias_` + sum_k
        g_k.

        It is linear between neighbouring differences of the fit of one sign.
        """
        check_is_fitted(self, "dual_coef_")
        k = check_count(k, "k", 0)
        d = self.n_features_in_
        require(k < d, k, "k", f"the number of a feature, from 0 to {d - 1}")
        u = check_differences(u, "u", ("n",))
        feature = AnalogyOperator(self.differences_[:, [k]])
        return feature.cross(u[:, None], self.dual_coef_) / d
