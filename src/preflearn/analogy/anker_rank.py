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
from preflearn.core.estimator import check_asked
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
    """AnKer-rank: a support vector machine on pairs in analogy.

    Section 5 of [AhmadiFahandar2019]_.

    With the analogy kernel k between differences of pairs, it minimises ::

        C sum over training pairs of (1 - y f(u))_+ + 1/2 |f|^2,    f(u) = b + sum_i coef_i k(u, u_i),

    turns f into q = 1 / (1 + exp(-a f - b')) (Platt), takes p_ij = (1 + q_ij - q_ji) /
    2 for the items i, j of a query, and orders them by the worths of `bradley_terry(P)`.

    Parameters
    ----------
    C : float or "path"
        The cost, from 1e-6 to 1e6.
        "path": that of lowest zero-one loss in 2-fold cross-validation, over all C; a
        path takes as long as ten to twenty fits.
    degree : int
        Degree of the kernel: 1 is eq. 8, 2 is eq. 9. At some hundreds the kernel is 0
        except for equal pairs, and other items are not ranked.
    orientation : {"coin", "both", "antisymmetric"}
        Which example a pair makes. "coin": (a, b) or (b, a), by a fair coin; if all
        coins fall on one side, one of them is turned over. "both": (a, b) with label +1
        and (b, a) with -1. "antisymmetric": the kernel (k(u, v) - k(u, -v)) / 2 without
        bias, so that f(-u) = -f(u) whichever way a pair is read. With zero="apart" the
        last two are the same classifier, where "both" has half the C; it has four times
        the memory.
    n_repeats : int
        Repetitions of the 2-fold cross-validation.
    split : {"pairs", "objects"}
        What the folds halve. "objects": a pair trains, or validates, if both of its
        items are in that half; the others are left out.
    loss : {"hinge", "logistic", "squared"}
        A support vector machine; or kernel logistic regression, with log(1 + exp(-y f))
        in place of the hinge; or kernel ridge regression, with (y - f)^2 / 2, without
        bias. The last two choose C from 0.001, 0.01, ..., 1e6.
    zero : {"apart", "positive"}
        As in `analogy_kernel`; "antisymmetric" needs "apart", where k(-u, -v) = k(u,
        v).
    random_state : int, numpy Generator or None
        Seed of the coins, then of the folds. A Generator goes on from fit to fit.
    n_jobs : int, optional
        Processes for the folds; None: one, or as `joblib.parallel_config` says.

    Attributes
    ----------
    C_ : float
        The C chosen or given.
    curve_ : Selection or None
        Zero-one loss over lambda = 1/C of the cross-validation, with C="path". A pair
        with f = 0 is wrong, except for the hinge with bias, which decides it for the first
        item.
    support_ : ndarray of int, shape (s,)
        Numbers of the training examples that take part in f. Examples are in the order
        of `Pairs.from_scores`; with "both", the other orientations follow behind.
    differences_ : ndarray of shape (s, d)
        The differences u_i of these examples.
    dual_coef_ : ndarray of shape (s,)
    intercept_ : float
    platt_ : tuple of float
        a and b', from decision values of pairs that did not train: those of the folds,
        with the cost `C_` m / m' for m' of the m examples. Where there are no folds, or
        a is not positive, which is chance among few pairs and would turn f around: from
        the training pairs. If a is not positive there, either, it is 0.
    n_features_in_ : int

    Notes
    -----
    Features are in [0, 1], as `DomainScaler` makes them; then differences are in [-1,
    1]. Outside by at most 1e-9 they are clipped.

    Folds without a pair to validate, or (with bias) without both labels to train, are
    left out. The choice of C needs one that is left.

    Threads of BLAS may change the last digits; on busy cores they slow the logistic
    loss down tenfold (OPENBLAS_NUM_THREADS=1 avoids it).

    The memory is that of the Gram matrix of the examples (twice for "antisymmetric")
    and of two blocks of a quarter of its size, for a pair of halves.

    References
    ----------
    .. [AhmadiFahandar2019] See the module.

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
        """Learn from scored items.

        Parameters
        ----------
        X : array-like of shape (n, d)
            In [0, 1].
        y : array-like of shape (n,)
            Scores; larger is better, see `RankingLearner.fit`. Items of one query with
            equal scores make no pair.
        qid : array-like of shape (n,), optional
            Query ids: only items of one query are compared. None: one query.

        Raises
        ------
        ValueError
            On bad parameters, features outside [0, 1], where no pair is left, one pair
            and orientation="coin" (there is one class), or too few pairs for
            cross-validation.
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
                f"a number, or more pairs or queries: no fold of the {len(pairs)} pairs "
                "has two kinds of examples to train and any to validate"
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
        """f at differences a - b of pairs, shape (m,): positive where a is better.

        Parameters
        ----------
        U : array-like of shape (m, d)
            In [-1, 1].
        """
        U = check_differences(check_asked(self, U, "U"))
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
        require(good, self.zero, "zero", "'apart' with orientation 'antisymmetric'")
        return generator(self.random_state, fresh=True)


class _Kernel(NamedTuple):
    """The kernel of a fit, which later parameters do not change."""

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
    """Differences and labels -1, +1 of examples, from better item minus worse item."""
    m = len(better)
    if orientation == "antisymmetric":
        return better, np.ones(m)
    if orientation == "both":
        return np.vstack([better, -better]), np.repeat([1.0, -1.0], m)
    expected = "more, as one pair makes one class of examples, or orientation 'both' or 'antisymmetric'"
    require(m > 1, m, "the number of pairs", expected)
    coins = rng.choice([-1.0, 1.0], m)
    if np.all(coins == coins[0]):
        coins[rng.integers(m)] *= -1
    return better * coins[:, None], coins
