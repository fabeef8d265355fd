"""Kernel classifiers of pairs, choice of C, and calibration.

References
----------
.. [Platt1999] J. C. Platt, "Probabilistic outputs for support vector machines and
   comparisons to regularized likelihood methods", Advances in Large Margin Classifiers,
   MIT Press, 1999.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from scipy import linalg
from scipy.special import logit

from preflearn.analogy.additive import Logistic
from preflearn.analogy.low_rank import AllFunctions
from preflearn.analogy.training import Fold
from preflearn.core.gram import DenseGram
from preflearn.core.validation import Floats, Ids, require
from preflearn.pairs import Pairs
from preflearn.path.binary import BinaryPath, trusted_path
from preflearn.path.ranking import RankingPath, ranksvm_path
from preflearn.path.regularization import FoldCurve, Selection, merge_fold_curves
from preflearn.solvers.hinge_dual import HingeTerms, best_bias, maximise
from preflearn.solvers.newton import newton, warn_about_gap
from preflearn.solvers.search import in_parallel

# smallest lambda of a path per example; the first breakpoint is below 1 per example
_MIN_LAMBDA = 1e-8
GRID = np.logspace(3, -6, 10)  # values of lambda for classifiers without a path
_ROUNDING = 1e-12  # relative rounding error of a breakpoint, or of decision values
_LOGISTIC_GAP = 1e-10
_TARGET_GAP = 1e-12  # for the dual of the hinge loss
_MAX_GAP = 1e-8  # a larger gap gives a warning
_MAX_NEWTON_STEPS = 100


class Problem(NamedTuple):
    """A binary problem: kernel matrix, labels, and whether there is a bias."""

    K: Floats  # (m, m)
    labels: Floats  # (m,), -1 and +1
    biased: bool

    def part(self, train: Ids) -> Problem:
        """Return the problem of some of the examples."""
        return Problem(self.block(train, train), self.labels[train], self.biased)

    def can_use(self, fold: Fold) -> bool:
        """Return whether a fold has validation examples and, with a bias, both labels."""
        kinds = len(np.unique(self.labels[fold.train]))
        return len(fold.valid) > 0 and kinds >= 1 + self.biased

    def block(self, rows: Ids, columns: Ids) -> Floats:
        return DenseGram(self.K).block(rows, columns)


class Classifier(NamedTuple):
    """The decision function f = K coef + bias."""

    coef: Floats  # (m,)
    bias: float


def hinge(problem: Problem, C: float) -> Classifier:
    """Fit a support vector machine: C sum (1 - y f)_+ + 1/2 |f|^2."""
    K, labels, biased = problem
    gram = DenseGram(K)
    bound = C * labels
    rows = HingeTerms(
        len(K),
        np.ones(len(K)),
        labels,
        np.minimum(bound, 0),
        np.maximum(bound, 0),
        biased,
    )
    coef, gap = maximise(gram, rows, np.zeros(len(K)), _TARGET_GAP)
    warn_about_gap("AnKerRank", gap, _MAX_GAP, f"lower C (now {C:g})")
    bias = 0.0
    if biased:
        bias = best_bias(rows, rows.slopes(gram.times(coef)))
    return Classifier(coef, bias)


def _path(problem: Problem, lambda_min: float) -> BinaryPath | RankingPath:
    """Return the regularization path down to lambda_min."""
    K, labels, biased = problem
    if biased:
        return trusted_path(K, labels, lambda_min)
    # above the first breakpoint all weights are 1, and the path is constant
    first = float((labels * (K @ labels)).max())
    lambda_min = min(lambda_min, max(first, 0.0) * (1 - _ROUNDING))
    return ranksvm_path(_against_null(K), labels, "precomputed", lambda_min=lambda_min)


def _against_null(K: Floats) -> Pairs:
    """Return pairs of each example and a null item, whose kernel values are all 0."""
    m = len(K)
    return Pairs(np.pad(K, (0, 1)), np.column_stack([np.arange(m), np.full(m, m)]))


def logistic(problem: Problem, C: float) -> Classifier:
    """Fit kernel logistic regression: C sum log(1 + exp(-y f)) + 1/2 |f|^2."""
    K, labels, biased = problem
    functions = AllFunctions(K, biased)
    objective = Logistic(functions.gram.times, functions.inverse, labels, C, biased)
    start = np.zeros(len(labels))
    optimum = newton(objective, start, _LOGISTIC_GAP, _MAX_NEWTON_STEPS).point
    return Classifier(optimum.x, optimum.bias)


def squared(problem: Problem, C: float) -> Classifier:
    """Fit kernel ridge regression to the labels: C sum (y - f)^2 / 2 + 1/2 |f|^2.

    The classifier has no bias.
    """
    ridge = problem.K + np.eye(len(problem.K)) / C
    return Classifier(linalg.solve(ridge, problem.labels, assume_a="pos"), 0.0)


LOSSES: dict[str, Callable[[Problem, float], Classifier]] = {
    "hinge": hinge,
    "logistic": logistic,
    "squared": squared,
}


def out_of_fold(
    problem: Problem, folds: list[Fold], loss: str, C: float
) -> tuple[Floats, Floats]:
    """Return decision values and labels of the validation examples of all folds.

    A fold with m' of the m examples uses C m / m', so that the weight of the mean loss
    is the same.
    """
    values = []
    for train, valid in folds:
        scaled = C * len(problem.labels) / len(train)
        fitted = LOSSES[loss](problem.part(train), scaled)
        values.append(problem.block(valid, train) @ fitted.coef + fitted.bias)
    labels = [problem.labels[fold.valid] for fold in folds]
    return np.concatenate(values), np.concatenate(labels)


def platt(f: Floats, labels: Floats, odd: bool = False) -> tuple[float, float]:
    """Fit a and b of P(label +1 | f) = 1 / (1 + exp(-a f - b)), [Platt1999]_.

    The cross-entropy to Platt's targets is minimized: (n+ + 1) / (n+ + 2) for the n+
    labels +1, 1 / (n- + 2) for the n- labels -1. The targets are inside (0, 1), so a
    minimum exists also if f separates the labels, or if there is only one label. If all
    f are equal, a is 0. (Platt's A and B are -a and -b.)

    Parameters
    ----------
    f : ndarray of shape (m,)
        Decision values of points that were not used for training.
    labels : ndarray of shape (m,)
        -1 and +1.
    odd : bool
        Whether each point also represents a second one with the opposite value and
        label.

    Examples
    --------
    >>> a, b = platt(np.array([-1.0, 1.0]), np.array([-1, 1]))  # targets 1/3 and 2/3
    >>> round(a, 6), abs(b) < 1e-12  # log 2, 0
    (0.693147, True)
    """
    if odd:
        f = np.append(f, -f)
        labels = np.append(labels, -labels)
    m = len(f)
    plus = np.count_nonzero(labels > 0)
    target = np.where(labels > 0, (plus + 1) / (plus + 2), 1 / (m - plus + 2))
    centre = float(f.mean())
    size = float(f.std())
    if size <= _ROUNDING * np.abs(f).max():
        return 0.0, float(logit(target.mean()))
    # A probability p as a target is the same as both labels with the weights p and 1 -
    # p.
    twice = np.tile((f - centre) / size, 2)[:, None]
    both = np.repeat([1, 0], m)
    from sklearn.linear_model import (
        LogisticRegression,
    )  # imported here, since its import is slow

    regression = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12)
    regression.fit(twice, both, sample_weight=np.append(target, 1 - target))
    a = float(regression.coef_.item())
    b = float(np.asarray(regression.intercept_).item())
    return a / size, b - a * centre / size


def select(
    problem: Problem, folds: list[Fold], loss: str, n_jobs: int | None = None
) -> Selection:
    """Select the lambda = 1/C of lowest zero-one loss over the folds.

    It is scaled for a fit to all examples.

    For the hinge, all lambda are compared, by one path per fold; for other losses, the
    values of `GRID`. An example with f = 0 counts as wrong, as in `RankingPath.select`.
    There is one exception: for the hinge with bias it counts as a prediction of +1, as
    in `BinaryPath.select`.
    """
    if loss == "hinge":
        curves = in_parallel((delayed(_curve)(problem, fold) for fold in folds), n_jobs)
        parts = [curve for curve in curves if curve is not None]
        expected = (
            "a number, since every C gives the same weights in all folds; or check that "
            "the items have different features"
        )
        require(len(parts) > 0, "path", "C", expected)
        return merge_fold_curves(parts, len(problem.labels), common=True)
    calls = (delayed(out_of_fold)(problem, folds, loss, 1 / lam) for lam in GRID)
    outcomes = in_parallel(calls, n_jobs)
    losses = np.array([(labels * values <= 0).mean() for values, labels in outcomes])
    best = int(np.argmin(losses))
    return Selection(float(GRID[best]), float(losses[best]), GRID, losses)


def _curve(problem: Problem, fold: Fold) -> FoldCurve | None:
    """Return the loss of a fold along its path; None if every C gives equal weights.

    The latter happens if the examples barely differ.
    """
    size = len(fold.train)
    path = _path(problem.part(fold.train), _MIN_LAMBDA * size)
    if len(path.breakpoints) == 0:
        return None
    validation: Any = problem.block(fold.valid, fold.train)
    if not problem.biased:
        validation = _against_null(validation)
    curve = path.select(validation, problem.labels[fold.valid])
    return FoldCurve(curve, path.lambda_end, size, len(fold.valid))
