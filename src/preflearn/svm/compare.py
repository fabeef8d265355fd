"""Support vector machines for comparisons: sections 3.2 and 4 of [Venuto2017]_.

Both machines minimise 1/2 u·u plus hinge losses of differences u·(Phi(first) - Phi(second)). They need the
Gram matrix of the n distinct items and the incidence matrix only, never a matrix over pairs.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.metrics import best_threshold
from preflearn.pairs import Pairs
from preflearn.svm.machine import NEGATIVE_BIAS, DegenerateBiasError, KernelMachine
from preflearn.svm.solver import HingeRows

__all__ = ["SVMCompare", "SVMRank"]

Floats = NDArray[np.float64]


class SVMCompare(KernelMachine):
    """A ranking function learned from preferences and ties at once, in one quadratic program.

    Solves eq. 15 of [Venuto2017]_, whose dual is eq. 18, with d = Phi(first) - Phi(second)::

        minimise 1/2 u·u + C ( sum over preferences of (1 - beta - y_i u·d_i)_+
                               + sum over ties of (1 + beta + u·d_j)_+ + (1 + beta - u·d_j)_+ ),

    a binary SVM that tells preferences from ties taken both ways. The ranking function of eq. 19 is
    r(x) = -u·Phi(x) / beta, and two items whose scores differ by at most 1 are predicted to be equal.

    Parameters
    ----------
    C : float
        Cost of a unit of slack; one over the strength of the regularisation.
    kernel : str or callable
        A name of `sklearn.metrics.pairwise.pairwise_kernels`; a callable k(X, Y) that returns the
        (n_x, n_y) matrix; or "precomputed": then the items of the pairs are the (n, n) Gram matrix of all
        items, and `rank_function` takes (n_new, n) rows of the kernel.
    gamma : float or "scale"
        Width of the kernels rbf, laplacian, chi2, poly and sigmoid; "scale": 1 / (p · variance of the
        distinct items).
    degree : float
        Of the kernel poly.
    coef0 : float
        Constant of the kernels poly and sigmoid.
    tol : float
        Duality gap, relative to the objective, at which to stop; rounding may stop the solver before, and
        a gap above 1e-6 gives a ConvergenceWarning.

    Attributes
    ----------
    support_ : ndarray of int
        Ids of the pairs with a dual weight.
    dual_coef_ : ndarray of shape (m,)
        u = sum_i dual_coef_[i] d_i; at most C in absolute value. In eq. 18 it is v_i y_i for a preference,
        and the difference of its two v for a tie.
    bias_ : float
        beta, negative; of several optimal ones, the middle.
    coef_ : ndarray of shape (p,)
        -u / beta, for the linear kernel only.
    tau_ : float
        1, the threshold of the comparison function.
    objective_, dual_gap_ : float
        The minimum, and the relative duality gap that proves it.
    n_features_in_ : int

    Notes
    -----
    The two copies of a tie have opposite differences. They share a row here, so the solver works with m
    differences of features whose number is the rank of the Gram matrix of the n distinct items. Time and
    memory grow linearly in m.

    At the optimum the dual weights of preferences and of ties have equal sums. Where beta > -1, each tie
    has a copy with slack, whose weight is C; so **if ties outweigh preferences, beta <= -1**. Otherwise
    beta can become positive: a constant u (C -> 0, or contradictory labels) leaves beta = -1 where
    preferences weigh less than twice the ties, but beta = +1 where they weigh more. Then -u / beta would
    rank backwards, and `fit` raises DegenerateBiasError instead.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> machine = SVMCompare(C=100, kernel="linear").fit(pairs, [0, 1])
    >>> machine.coef_.round(6).tolist(), round(machine.bias_, 6)
    ([0.5], -2.0)
    >>> machine.predict(pairs).tolist()
    [0, 1]
    """

    bias_: float

    def fit(
        self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SVMCompare:
        """Learn from labelled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and preferences.
        sample_weight : array-like of shape (m,), optional
            Multiplies C for each pair, not negative.

        Raises
        ------
        DegenerateBiasError
            If beta is not negative at the optimum (see the notes of the class).
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the items.
        ValueError
            On bad parameters, pairs or labels, only ties, or only preferences.
        """
        pairs, y, cost = self._load(pairs, y, sample_weight)
        kept = cost > 0
        rows = self._rows(y[kept], cost[kept])
        problem, solution = self._solve(pairs[kept], rows)
        if not solution.bias < NEGATIVE_BIAS:
            raise DegenerateBiasError(
                f"beta is {solution.bias:.3g}, but the ranking function -u / beta needs a negative one: with "
                f"C = {self.C:g}, {np.count_nonzero(y[kept])} preferences against "
                f"{np.count_nonzero(y[kept] == 0)} ties call every pair significant. Raise C, give ties a "
                "larger sample_weight (where ties outweigh preferences, beta is at most -1), or use SVMRank"
            )
        self.n_features_in_, self.bias_, self.tau_ = pairs.shape[2], solution.bias, 1.0
        self._store(problem, solution, rows, kept, scale=-1 / solution.bias)
        return self

    @staticmethod
    def _rows(y: NDArray, cost: Floats) -> HingeRows:
        """The flipped problem of eq. 8: preferences have label +1, both copies of a tie -1."""
        preferred, tied = np.flatnonzero(y), np.flatnonzero(y == 0)
        if len(tied) == 0:
            raise ValueError(
                "y has only preferences (labels +1 and -1), no ties; SVMCompare needs both, to learn which "
                "differences count: use SVMRank, which needs no ties"
            )
        if len(preferred) == 0:
            raise ValueError(
                "y has only ties (label 0); SVMCompare needs both ties and preferences: "
                "with ties alone, predict 0 for each pair"
            )
        pair = np.concatenate([preferred, tied, tied])
        one = np.ones(len(tied))
        direction = np.concatenate([y[preferred], -one, one])
        return HingeRows(pair, direction, cost[pair], np.concatenate([np.ones(len(preferred)), -one, -one]))


class SVMRank(KernelMachine):
    """A ranking function learned from preferences, with a threshold learned afterwards.

    Solves eq. 3 of [Venuto2017]_, with d = Phi(first) - Phi(second)::

        minimise 1/2 u·u + C sum over preferences of (1 - y_i u·d_i)_+ ,

    so r(x) = u·Phi(x), and then eq. 6: the threshold tau of least zero-one loss on all training pairs.
    These are the baselines rank and rank2 of its Table 2.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, tol
        As in `SVMCompare`.
    ties : {"ignore", "duplicate"}
        "ignore" (rank): ties take part in the choice of tau only. "duplicate" (rank2): each tie becomes two
        opposite preferences, and each preference counts twice.

    Attributes
    ----------
    support_ : ndarray of int
        Ids of the pairs with a dual weight.
    dual_coef_ : ndarray of shape (m,)
        u = sum_i dual_coef_[i] d_i.
    coef_ : ndarray of shape (p,)
        u, for the linear kernel only.
    tau_ : float
        The largest difference of scores that does not count.
    objective_, dual_gap_ : float
        The minimum, and the relative duality gap that proves it.
    n_features_in_ : int

    Notes
    -----
    The two copies of a tie in rank2 lose (1 - z)_+ + (1 + z)_+ = 2 max(1, |z|) at z = u·d. That is constant
    for |z| <= 1: a tie has no say until its difference exceeds the margin that preferences try to reach,
    and then it counts like two preferences. rank and rank2 differ through such ties only, and by the
    factor two on C.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> machine = SVMRank(C=100, kernel="linear").fit(pairs, [0, 1])
    >>> machine.coef_.round(6).tolist(), round(machine.tau_, 6)
    ([0.333333], 0.666667)
    >>> machine.predict(pairs).tolist()
    [0, 1]
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | Callable[[Floats, Floats], Floats] = "rbf",
        *,
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        ties: Literal["ignore", "duplicate"] = "ignore",
        tol: float = 1e-12,
    ) -> None:
        super().__init__(C, kernel, gamma=gamma, degree=degree, coef0=coef0, tol=tol)
        self.ties = ties

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SVMRank:
        """Learn from labelled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; at least one preference.
        sample_weight : array-like of shape (m,), optional
            Multiplies C, and the loss of eq. 6, for each pair; not negative.

        Raises
        ------
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the items.
        ValueError
            On bad parameters, pairs or labels, or only ties.
        """
        if self.ties not in ("ignore", "duplicate"):
            raise ValueError(f"ties is {self.ties!r}; expected 'ignore' or 'duplicate'")
        pairs, y, cost = self._load(pairs, y, sample_weight)
        kept = cost > 0
        rows = self._rows(y[kept], cost[kept])
        problem, solution = self._solve(pairs[kept], rows)
        self.n_features_in_ = pairs.shape[2]
        self._store(problem, solution, rows, kept, scale=1.0)
        self.tau_ = best_threshold(y, self.decision_function(pairs), sample_weight)[0]
        return self

    def _rows(self, y: NDArray, cost: Floats) -> HingeRows:
        """The preferences of Table 2; a preference that counts twice has twice the cost."""
        preferred, tied = np.flatnonzero(y), np.flatnonzero(y == 0)
        if len(preferred) == 0:
            raise ValueError(
                "y has only ties (label 0); SVMRank needs at least one preference (label +1 or -1): "
                "with ties alone, predict 0 for each pair"
            )
        if self.ties == "ignore":
            return HingeRows(preferred, y[preferred].astype(np.float64), cost[preferred])
        pair = np.concatenate([preferred, tied, tied])
        one = np.ones(len(tied))
        cost = np.concatenate([2 * cost[preferred], cost[tied], cost[tied]])
        return HingeRows(pair, np.concatenate([y[preferred], -one, one]), cost)
