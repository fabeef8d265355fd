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

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from preflearn.checks import check_labels, check_number, check_scale, check_weights
from preflearn.ground.kernels import distinct_items, kernel_matrix, kernel_parameters
from preflearn.pairs import Pairs
from preflearn.svm.machine import KernelExpansion

__all__ = ["LPCompare"]

Floats = NDArray[np.float64]

_INACCURATE = 1e-6  # a duality gap worth a warning; the optimum lies in [-1, 1]
_USELESS = 1e-2
_TOLERANCE = 1e-9  # of HiGHS, on rows of size 1


class _Centres(NamedTuple):
    """The distinct items of the pairs, at which kernels are centred."""

    ids: NDArray[np.int64]  # (n,) rows of pairs.items
    items: Floats  # (n, p)
    index: NDArray[np.int64]  # (m, 2), into these
    parameters: dict[str, float]  # of the kernel
    gram: Floats  # (n, n)


class LPCompare(KernelExpansion):
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
    kernel : str or callable
        A name of `sklearn.metrics.pairwise.pairwise_kernels`; a callable k(X, Y) that returns the
        (n_x, n_y) matrix; or "precomputed": then the items of the pairs are the (n, n) Gram matrix of all
        items, and `rank_function` takes (n_new, n) rows of the kernel. It need not be positive
        semi-definite.
    gamma : float or "scale"
        Width of the kernels rbf, laplacian, chi2, poly and sigmoid; "scale": 1 / (p · variance of the
        distinct items).
    degree : float
        Of the kernel poly.
    coef0 : float
        Constant of the kernels poly and sigmoid.

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

    support_items_: NDArray[np.int64]
    item_coef_: Floats
    coef_: Floats
    margin_: float
    slack_: Floats
    dual_coef_: Floats
    support_: NDArray[np.int64]
    objective_: float
    dual_gap_: float
    n_features_in_: int

    def __init__(
        self,
        nu: float = 0.5,
        radius: float = 10.0,
        kernel: str | Callable[[Floats, Floats], Floats] = "rbf",
        *,
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
    ) -> None:
        self.nu = nu
        self.radius = radius
        self.kernel = kernel
        self.gamma = gamma
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
        self._check_parameters()
        pairs = self._check_pairs(pairs)
        y = check_labels(y, len(pairs))
        weights = check_weights(sample_weight, len(y))
        kept = np.flatnonzero(weights)
        _check_kinds(y[kept])
        centres = self._centres(pairs[kept])
        cost = weights[kept] / (self.nu * weights.sum())
        rows = centres.gram[centres.index[:, 0]] - centres.gram[centres.index[:, 1]]
        dual, coef, margin = _solve_dual(rows, y[kept], cost, self.radius)
        coef *= min(1.0, self.radius / max(np.abs(coef).sum(), 1e-300))
        slack = np.maximum(0.0, margin - _margins(rows @ coef, y[kept]))
        self.objective_ = float(margin - cost @ slack)
        bound = 1 - 2 * np.abs(dual[y[kept] != 0]).sum() + self.radius * np.abs(dual @ rows).max()
        self.dual_gap_ = float(max(0.0, bound - self.objective_))
        self._check_gap()
        self.n_features_in_, self.margin_, self.tau_ = pairs.shape[2], margin, 1.0
        self.slack_, self.dual_coef_ = np.zeros(len(y)), np.zeros(len(y))
        self.slack_[kept], self.dual_coef_[kept] = slack, dual
        self.support_ = np.flatnonzero(self.dual_coef_)
        used = np.flatnonzero(coef)
        self.support_items_, self.item_coef_ = centres.ids[used], coef[used]
        self._item_coef, self._parameters = self.item_coef_, centres.parameters
        self._support_items = self.support_items_ if self.kernel == "precomputed" else centres.items[used]
        if self.kernel == "linear":
            self.coef_ = self.item_coef_ @ self._support_items
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.nu, Real) or not 0 < self.nu <= 1:
            raise ValueError(f"nu is {self.nu!r}; expected a positive number of at most 1")
        check_number(self, "radius", positive=True)

    def _centres(self, pairs: Pairs) -> _Centres:
        if self.kernel == "precomputed":
            ids, place = np.unique(pairs.index, return_inverse=True)
            index, items, parameters = place.reshape(-1, 2), pairs.items[ids], {}
            gram = items[:, ids]
        else:
            ids, index = distinct_items(pairs)
            items = pairs.items[ids]
            check_scale(items, "items")
            parameters = kernel_parameters(self.kernel, items, self.gamma, self.degree, self.coef0)
            gram = kernel_matrix(self.kernel, items, items, **parameters)
        check_scale(gram, "the Gram matrix")
        return _Centres(ids, items, index, parameters, gram)

    def _check_gap(self) -> None:
        remedy = f"lower radius = {self.radius:g}, or standardise the features"
        if not self.dual_gap_ <= _USELESS:
            raise ValueError(f"no optimum was found (the duality gap is {self.dual_gap_:.1e}): {remedy}")
        if self.dual_gap_ > _INACCURATE:
            warnings.warn(
                f"LPCompare: the duality gap is {self.dual_gap_:.1e}; expected at most {_INACCURATE:g}: "
                f"{remedy}",
                ConvergenceWarning,
                stacklevel=3,
            )


def _check_kinds(y: NDArray) -> None:
    if not (y == 0).any():
        raise ValueError(
            "y has only preferences (labels +1 and -1), no ties; LPCompare needs both, since without ties "
            "the threshold 1 has no meaning: use SVMRank, which needs no ties"
        )
    if not y.any():
        raise ValueError(
            "y has only ties (label 0); LPCompare needs both ties and preferences: the best ranking "
            "function is then r = 0, with margin 1; with ties alone, predict 0 for each pair"
        )


def _margins(z: Floats, y: NDArray) -> Floats:
    """The largest mu that each pair allows without slack."""
    return np.where(y == 0, 1 - np.abs(z), y * z - 1)


def _solve_dual(rows: Floats, y: NDArray, cost: Floats, radius: float) -> tuple[Floats, Floats, float]:
    """Dual weights g, coefficients a and margin mu of the program with z = rows @ a.

    Preferences have one dual variable, ties two, of which one is 0. The variables h = rows' g are free, so
    that each dense row is stored once, though |h| <= t takes two constraints.
    """
    preferred, tied = np.flatnonzero(y), np.flatnonzero(y == 0)
    n, v = rows.shape[1], len(preferred) + 2 * len(tied)
    unit, size = cost.mean(), float(np.abs(rows).max()) or 1.0
    dense = np.vstack([rows[preferred] * y[preferred, None], rows[tied], -rows[tied]]).T / size
    one, none = sparse.eye_array(n), sparse.csc_array((n, v))
    minus_t = np.full((n, 1), -1.0)
    above = sparse.hstack([none, one, minus_t])
    below = sparse.hstack([none, -one, minus_t])
    total = sparse.csc_array(np.repeat([1.0, 0.0], [v, n + 1])[None])
    bounds = np.zeros((v + n + 1, 2))
    bounds[:v, 1] = np.concatenate([cost[preferred], cost[tied], cost[tied]]) / unit
    bounds[v:-1], bounds[-1, 1] = (-np.inf, np.inf), np.inf
    result = linprog(
        np.concatenate([np.repeat([-2.0, 0.0], [len(preferred), 2 * len(tied) + n]), [radius * size]]),
        A_ub=sparse.vstack([above, below, total], format="csc"),
        b_ub=np.concatenate([np.zeros(2 * n), [1 / unit]]),
        A_eq=sparse.hstack([sparse.csc_array(dense), -one, sparse.csc_array((n, 1))], format="csc"),
        b_eq=np.zeros(n),
        bounds=bounds,
        method="highs-ds",
        options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
    )
    if result.status != 0:
        raise ValueError(
            f"no optimum was found ({result.message}): lower radius, or standardise the features"
        )
    weights = np.clip(result.x[:v], 0.0, bounds[:v, 1]) * unit
    weights /= max(1.0, weights.sum())
    dual = np.zeros(len(y))
    dual[preferred] = weights[: len(preferred)] * y[preferred]
    dual[tied] = np.subtract(*np.split(weights[len(preferred) :], 2))
    prices = result.ineqlin.marginals
    return dual, (prices[n : 2 * n] - prices[:n]) / size, float(1 + prices[-1])
