"""Analogy-kernel-based object ranking, section 5 of [AhmadiFahandar2019]_.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from preflearn.analogy.classifiers import LOSSES, Problem, out_of_fold, platt, select
from preflearn.analogy.kernel import Zero, analogy_kernel, blocks, check_differences
from preflearn.analogy.training import PairwiseLearner, Split, halves
from preflearn.core.estimator import check_new_items
from preflearn.core.validation import (
    Floats,
    check_choice,
    check_count,
    generator,
    require,
)
from preflearn.ranking.base import check_size

Orientation = Literal["coin", "both", "antisymmetric"]


@dataclass(eq=False, repr=False)
class AnKerRank(PairwiseLearner):
    """AnKer-rank: rank items by a classifier of pairs with the analogy kernel.

    Choose it to rank items of new queries if preferences transfer by analogy: pairs
    with similar feature differences have the same better item.

    The method is described in section 5 of [AhmadiFahandar2019]_.

    With the analogy kernel k between differences of pairs, it minimizes ::

        C sum over training pairs of (1 - y f(u))_+ + 1/2 |f|^2,    f(u) = b + sum_i coef_i k(u, u_i),

    converts f to probabilities q = 1 / (1 + exp(-a f - b')) (Platt scaling), computes
    p_ij = (1 + q_ij - q_ji) / 2 for the items i, j of a query, and orders the items by
    the worths of `bradley_terry(P)`.

    Parameters
    ----------
    C : float or "path"
        Cost, from 1e-6 to 1e6. "path": the C of lowest zero-one loss in 2-fold
        cross-validation, over all C; a path takes as long as ten to twenty fits.
    degree : int
        Degree of the kernel: 1 is eq. 8, 2 is eq. 9. For degrees of several hundred, the
        kernel is 0 except between equal pairs, and new items cannot be ranked.
    orientation : {"coin", "both", "antisymmetric"}
        Training examples of a pair. "coin": (a, b) or (b, a), chosen by a fair coin; if
        all pairs get the same orientation, one of them is reversed. "both": (a, b) with
        label +1 and (b, a) with label -1. "antisymmetric": one example with the kernel
        (k(u, v) - k(u, -v)) / 2 and no bias, so that f(-u) = -f(u). If zero="apart",
        "both" gives the same classifier with half the C, but takes four times the
        memory.
    n_repeats : int
        Repetitions of the 2-fold cross-validation.
    split : {"pairs", "objects"}
        Units of the folds. "objects": a pair is used for training or validation if
        both of its items are in the corresponding half; other pairs are left out.
    loss : {"hinge", "logistic", "squared"}
        Loss of the classifier. "hinge": support vector machine. "logistic": kernel
        logistic regression, with log(1 + exp(-y f)) instead of the hinge. "squared":
        kernel ridge regression, with (y - f)^2 / 2 and no bias. With "logistic" or
        "squared", C="path" chooses C from 0.001, 0.01, ..., 1e6.
    zero : {"apart", "positive"}
        Sign of 0, as in `analogy_kernel`. "antisymmetric" needs "apart", for which
        k(-u, -v) = k(u, v).
    random_state : int, numpy Generator or None
        Source of randomness for the orientation, then for the folds. A Generator gives
        other values in each fit.
    n_jobs : int, optional
        Number of processes for the folds; None: one, or the setting of
        `joblib.parallel_config`.

    Attributes
    ----------
    C_ : float
        Value of C, given or chosen.
    curve_ : Selection or None
        Zero-one loss of the cross-validation as a function of lambda = 1/C, with
        C="path". A pair with f = 0 counts as wrong; for the hinge with bias it counts
        as a prediction that the first item is better.
    support_ : ndarray of int, shape (s,)
        Numbers of the training examples with nonzero coefficients. Examples are in the
        order of `Pairs.from_scores`; with "both", all reversed examples follow.
    differences_ : ndarray of shape (s, d)
        Differences u_i of these examples.
    dual_coef_ : ndarray of shape (s,)
        Coefficients of these examples.
    intercept_ : float
        Constant b of f.
    platt_ : tuple of float
        a and b', fitted to decision values of validation pairs. The classifier of a
        fold with m' of the m examples has the cost `C_` m / m'. If there are no folds,
        or a is not positive (which happens by chance with few pairs, and would reverse
        f), the training pairs are used. If a is not positive there either, it is set to
        0.
    n_features_in_ : int

    Notes
    -----
    Features must be in [0, 1], as scaled by `DomainScaler`, so that differences are in
    [-1, 1]. Values outside by at most 1e-9 are clipped.

    A fold is left out if it has no validation pairs or, for a classifier with a bias,
    if its training examples all have the same label. The choice of C needs at least one
    other fold.

    The last digits may depend on the number of BLAS threads. On busy processors these
    threads can make the logistic loss ten times slower (set OPENBLAS_NUM_THREADS=1).

    The fit stores the Gram matrix of the examples (two of them for "antisymmetric")
    and, for each pair of folds, two blocks of a quarter of its size.

    References
    ----------
    .. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based
       preference learning with kernels", KI 2019.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(20, 2))
    >>> learner = AnKerRank(random_state=0).fit(X, X @ [1.0, 2.0])
    >>> learner.rank([[0.1, 0.2], [0.9, 0.8], [0.5, 0.6]]).tolist()
    [3, 1, 2]
    """

    C: float | Literal["path"] = "path"
    _: KW_ONLY
    degree: int = 2
    orientation: Orientation = "coin"
    n_repeats: int = 3
    split: Split = "pairs"
    loss: Literal["hinge", "logistic", "squared"] = "hinge"
    zero: Zero = "apart"
    random_state: int | np.random.Generator | None = None
    n_jobs: int | None = None

    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Fit the model to scored items.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features in [0, 1].
        y : array-like of shape (n,)
            Scores; larger is better, see `RankingLearner.fit`. Items of the same query
            with equal scores give no pair.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.

        Raises
        ------
        ValueError
            If parameters are not valid, or features are outside [0, 1]. If no pair is
            left, or only one pair with orientation="coin", which gives only one class.
            If there are too few pairs for cross-validation.
        """
        rng = self._check_parameters()
        kernel = _Kernel(self.degree, self.zero, self.orientation == "antisymmetric")
        pairs, better = self._preferences(X, y, qid)
        U, labels = _oriented(better, self.orientation, rng)
        problem = Problem(kernel(U), labels, not kernel.odd)
        folds = halves(
            pairs, self.split, self.n_repeats, rng, copies=len(U) // len(pairs)
        )
        folds = [fold for fold in folds if problem.can_use(fold)]
        if self.C == "path":
            expected = (
                f"a number, since no fold of the {len(pairs)} pairs has training examples "
                "of both classes and a validation example; or pass more pairs"
            )
            require(len(folds) > 0, self.C, "C", expected)
            self.curve_ = select(problem, folds, self.loss, self.n_jobs)
            C = 1 / self.curve_.lam
        else:
            self.curve_ = None
            C = float(self.C)
        coef, self.intercept_ = LOSSES[self.loss](problem, C)
        a = 0.0
        b = 0.0
        if folds:
            a, b = platt(*out_of_fold(problem, folds, self.loss, C), kernel.odd)
        if a <= 0:
            a, b = platt(problem.K @ coef + self.intercept_, labels, kernel.odd)
        self.C_ = C
        self.platt_ = max(a, 0.0), b
        self.support_ = np.flatnonzero(coef)
        self.differences_ = U[self.support_]
        self.dual_coef_ = coef[self.support_]
        self.n_features_in_ = U.shape[1]
        self._kernel = kernel
        return self

    def decision_function(self, U: ArrayLike) -> Floats:
        """Return f at differences a - b of pairs, shape (m,).

        It is positive if a is predicted to be better.

        Parameters
        ----------
        U : array-like of shape (m, d)
            Feature differences in [-1, 1].
        """
        U = check_differences(check_new_items(self, U, "U"))
        if not len(self.support_):
            return np.full(len(U), self.intercept_)
        parts = blocks(U, len(self.support_))
        f = [self._kernel(part, self.differences_) @ self.dual_coef_ for part in parts]
        return np.concatenate(f) + self.intercept_

    def _degrees(self, U: Floats) -> Floats:
        a, b = self.platt_
        chance, other = (expit(a * self.decision_function(u) + b) for u in (U, -U))
        return 0.5 + (chance - other) / 2

    def _check_parameters(self) -> np.random.Generator:
        if self.C != "path":
            check_size(self.C, "C", 1e6, " or 'path'")
        check_choice(self.orientation, "orientation", ("coin", "both", "antisymmetric"))
        check_choice(self.split, "split", ("pairs", "objects"))
        check_choice(self.loss, "loss", tuple(LOSSES))
        check_count(self.n_repeats, "n_repeats", 1)
        odd = self.orientation == "antisymmetric"
        good = not odd or self.zero == "apart"
        require(
            good, self.zero, "zero", "'apart', which orientation='antisymmetric' needs"
        )
        return generator(self.random_state, allow_none=True)


class _Kernel(NamedTuple):
    """The kernel of a fit, independent of later changes of the parameters."""

    degree: int
    zero: Zero
    odd: bool

    def __call__(self, U: Floats, V: Floats | None = None) -> Floats:
        K = analogy_kernel(U, V, self.degree, zero=self.zero)
        if self.odd:
            other = U
            if V is not None:
                other = V
            K -= analogy_kernel(U, -other, self.degree, zero=self.zero)
            K /= 2
        return K


def _oriented(
    better: Floats, orientation: Orientation, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return differences and labels of examples, from better minus worse items."""
    m = len(better)
    if orientation == "antisymmetric":
        return better, np.ones(m)
    if orientation == "both":
        return np.vstack([better, -better]), np.repeat([1.0, -1.0], m)
    expected = (
        "at least 2, since one pair gives only one class of examples: pass more pairs, or "
        "orientation='both' or 'antisymmetric'"
    )
    require(m > 1, m, "the number of pairs", expected)
    coins = rng.choice([-1.0, 1.0], m)
    if np.all(coins == coins[0]):
        coins[rng.integers(m)] *= -1
    return better * coins[:, None], coins
