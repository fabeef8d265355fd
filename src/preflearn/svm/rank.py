"""Support vector ranking with a threshold learned afterwards: the baselines of [Venuto2017]_, section 4.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from preflearn.checks import check_choice, check_kinds, check_number
from preflearn.ground.kernels import Kernel
from preflearn.pairs import Pairs
from preflearn.svm.machine import (
    KernelMachine,
    check_gap,
    check_input,
    clear_threshold,
    preferences_first,
)
from preflearn.svm.problem import KernelProblem


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
    The two copies of a tie in rank2 lose (1 - z)_+ + (1 + z)_+ = 2 + (|z| - 1)_+ at z = u·d. That is constant
    for |z| <= 1: a tie has no say until its difference exceeds the margin that preferences try to reach,
    and then it pulls with C, half as much as a preference that counts twice. So duplication makes the
    numbers of rows equal, not the pull. rank and rank2 differ through such ties only, and by the factor two
    on C.

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
        kernel: Kernel = "rbf",
        *,
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        ties: Literal["ignore", "duplicate"] = "ignore",
        tol: float = 1e-12,
    ) -> None:
        self.C = C
        self.kernel: Kernel = kernel
        self.gamma: float | Literal["scale"] = gamma
        self.degree = degree
        self.coef0 = coef0
        self.ties: Literal["ignore", "duplicate"] = ties
        self.tol = tol

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
        check_choice(self.ties, "ties", ("ignore", "duplicate"))
        C, tol = (check_number(self, name, positive=True) for name in ("C", "tol"))
        pairs, y, weights = check_input(pairs, y, sample_weight)
        kept = weights > 0
        labels, cost = y[kept], C * weights[kept]
        check_kinds(labels, "SVMRank", ties=False)
        problem = KernelProblem.of(self, pairs[kept], merge=self.kernel != "linear")
        used = preferences_first(labels)
        if self.ties == "ignore":
            used = np.flatnonzero(labels)
        else:  # of Table 2: a preference counts twice, a tie in both orders
            cost = np.where(labels != 0, 2.0, 1.0) * cost
        found = problem.solve(labels, cost, used, False, tol)
        check_gap(self, found.certificate.gap, f"lower C = {C:g}", tol)
        self._keep(found, pairs, kept, 1.0)
        self.tau_ = clear_threshold(y, self.decision_function(pairs), weights)
        return self
