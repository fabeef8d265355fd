"""Logistic regression with the analogy kernel, for up to a million pairs.

The kernel of degree 1 is a mean over features, so its functions are sums of functions
of one difference. These are piecewise linear, and functions with a few dozen knots
approximate them well. No Gram matrix is formed.

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
from preflearn.core.estimator import check_new_items
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
# lower bound on the curvature of the loss, by which Newton's equations divide
_MIN_CURVATURE = 1e-10
# accuracy of a step, relative to its length in the metric of the Hessian
_STEP_ACCURACY = 0.1
_MAX_NEWTON_STEPS = 100
_MAX_CG_STEPS = 1000


class _Point(NamedTuple):
    """Weights of the kernel functions, and quantities for a Newton step and the gap."""

    x: Floats  # (N,), the weights
    bias: float
    value: float
    slopes: Floats  # C times the slopes of the losses; with a bias, their sum is 0
    gradient: Floats  # K times the residual x + slopes


class Logistic(NamedTuple):
    """The objective 1/2 x'Kx + C sum_i log(1 + exp(-y_i (K x + bias)_i)).

    The bias is optimal for x, or 0.

    If C is small, the gap is small at x = 0, where f is constant and gives no order.
    Take at least one step.
    """

    times: Callable[[Floats], Floats]  # K v
    # exact or approximate inverse of the matrix of the equations
    inverse: Callable[[Floats], Callable[[Floats], Floats]]
    y: Floats
    C: float
    biased: bool = True

    def at(self, x: Floats) -> _Point:
        scores = self.times(x)
        bias = 0.0
        if self.biased:
            # outside of the range of the scores, where one label's losses dominate
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
        """Return 1/2 e'Ke for the residual e, relative to the objective."""
        gap = float((point.x + point.slopes) @ point.gradient) / 2
        return max(0.0, gap / point.value)

    def step(self, point: _Point) -> Floats:
        """Return an approximate Newton step, by conjugate gradients.

        It solves (W^-1 + K) step + 1 t = -e / W and 1'step = 0.
        """
        p = np.abs(point.slopes) / self.C  # probability of the other label
        W = self.C * np.maximum(p * (1 - p), _MIN_CURVATURE)
        solve = self.inverse(W)
        right = -(point.x + point.slopes)
        # Newton's model of the objective is at most excess / 2 above its minimum, and
        # decreases by about decrease / 2. The excess is r'WK (1 + W K)^-1 Wr for the
        # residual r, and at most r'Wr.

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
    """Kernel logistic regression on pairs, with the analogy kernel of degree 1.

    Choose it instead of `AnKerRank` if there are too many pairs for a Gram matrix, or
    if you need probabilities or the effect of each feature.

    With k of eq. 8 of [AhmadiFahandar2019]_, its function space H, and differences u =
    a - b::

        minimize over g in H and b:  1/2 |g|^2 + C sum_i log(1 + exp(-y_i f(u_i))),   f = g + b,

    by Newton's method, until a duality gap proves the minimum. The minimizer is g =
    sum_i dual_coef_i k(·, u_i), a sum of functions g_k of the difference in one
    feature. The probability that the first item is better is 1 / (1 + exp(-f)). This is
    a predictor with values in [0, 1], as section 5.1 requires, and needs no
    calibration.

    Parameters
    ----------
    C : float
        Weight of the loss, from 1e-12 to 1e6. A fit takes longer for larger C, see
        Notes.
    tol : float
        Largest allowed relative duality gap, positive. If rounding errors or the
        limit of 100 Newton steps end the fit earlier, there is a ConvergenceWarning.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (N,)
        Coefficients of the pairs, with sum 0; at the minimum, y_i times a number
        between 0 and C.
    bias_ : float
        Constant b.
    objective_, dual_gap_ : float
        Objective, and a bound on its relative distance from the minimum.
    differences_ : ndarray of shape (N, d)
        Differences of the training pairs.
    n_iter_ : int
        Number of Newton steps.
    n_features_in_ : int
        Number d of features.

    Notes
    -----
    **The functions.** g_k is continuous and piecewise linear on the differences of one
    sign, with knots at the training differences, and has a separate value at 0. Let p
    be g_k on [0, 1], with the limit at 0. ``|g_k|^2`` is the sum of 1/2 int p'^2 + 1/2
    (p(0) + p(1))^2, the same expression for [-1, 0], and the square of the value at 0.
    ``|g|^2 = d sum_k |g_k|^2`` holds for the g_k of `component`; for any other
    decomposition of g into such functions, the right-hand side is larger.

    **The bias.** Constants are in H, but are penalized: ``|1|^2 = 5``. A constant is
    therefore added without penalty, as in the support vector machine of the paper,
    which is trained on pairs in one order. If the model is trained on both orders, (u,
    y) and (-u, -y), it has b = 0 and f(-u) = -f(u), since the minimum is unique and
    kappa(-u, -v) = kappa(u, v). This is the same as the model on one order without
    bias, with the kernel (k(u, v) - k(u, -v)) / 2 and the cost 2C. To fit it, pass both
    orders.

    **The gap.** Let s_i be C times the slope of the loss at f(u_i). If b is optimal for
    g, then sum_i s_i = 0, and the weights -s are feasible in the dual program. The gap
    is 1/2 e'Ke with e = `dual_coef_` + s.

    **The steps.** Newton's equations (W^-1 + K) x + 1 t = r, 1'x = 0, where W are the
    curvatures of the losses, are solved by conjugate gradients with products by
    sorting. The preconditioner is the same system for functions with coarse knots. It
    has M unknowns, where M is at most about 2,000, or 4 d to 5 d if d > 250. If N <= M,
    the exact system is used instead. With coarse knots at a distance h, the approximation error of K is of
    order N h^2 / d. Few iterations suffice if C N h^2 / d is small; otherwise their
    number grows with its square root. For d = 1 and N = 10^5, a fit takes seconds with
    C = 10^4, and minutes with C = 10^6.

    A Newton step takes O(N d^2 + M^3) operations and the memory of two M x M matrices
    for the preconditioner, and O(N d) operations per iteration. The last digits may
    depend on the number of BLAS threads.

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
        """Fit the model to labeled pairs.

        Parameters
        ----------
        U : array-like of shape (N, d)
            Feature differences, first minus second item, in [-1, 1].
        y : array-like of shape (N,)
            Labels: +1 first better, -1 second better; both must occur.

        Raises
        ------
        ValueError
            If parameters are not valid, differences are outside [-1, 1], or labels are
            not -1 and +1 or all the same.
        """
        good = _MIN_C <= as_real(self.C) <= _MAX_C
        require(good, self.C, "C", f"a number from {_MIN_C:g} to {_MAX_C:g}")
        tol = check_number(self, "tol", positive=True)
        U = check_differences(U)
        y = check_labels(y, len(U), allow=(-1, 1)).astype(np.float64)
        if np.all(y == y[0]):
            raise ValueError(
                f"all {len(y)} labels in y are {y[0]:+.0f}; expected both -1 and +1"
            )
        operator = AnalogyOperator(U)
        functions = low_rank_functions(U)
        times = operator.times
        if isinstance(functions, AllFunctions):
            times = functions.gram.times
        problem = Logistic(times, functions.inverse, y, float(self.C))
        start = np.zeros(len(y))
        optimum, gap, self.n_iter_ = newton(problem, start, tol, _MAX_NEWTON_STEPS)
        warn_about_gap("AdditiveAnalogy", gap, tol, f"lower C (now {self.C:g})")
        self.differences_ = U
        self.n_features_in_ = U.shape[1]
        self._operator = operator
        self.dual_coef_ = optimum.x
        self.bias_ = optimum.bias
        self.objective_ = optimum.value
        self.dual_gap_ = gap
        return self

    def decision_function(self, V: ArrayLike) -> Floats:
        """Return f for pairs, shape (n,).

        It is positive if the first item is predicted to be better.

        Each call passes over all training pairs, so predict many pairs at once.

        Parameters
        ----------
        V : array-like of shape (n, d)
            Feature differences of the pairs, first minus second item.
        """
        V = check_differences(check_new_items(self, V, "V"), "V")
        return self._operator.cross(V, self.dual_coef_) + self.bias_

    def component(self, k: int, u: ArrayLike) -> Floats:
        """Return g_k at differences u of feature k (from 0), shape (n,).

        f is `bias_` + sum_k g_k.

        g_k is linear between neighboring training differences of the same sign.
        """
        check_is_fitted(self, "dual_coef_")
        k = check_count(k, "k", 0)
        d = self.n_features_in_
        require(k < d, k, "k", f"a feature number from 0 to {d - 1}")
        u = check_differences(u, "u", ("n",))
        feature = AnalogyOperator(self.differences_[:, [k]])
        return feature.cross(u[:, None], self.dual_coef_) / d
