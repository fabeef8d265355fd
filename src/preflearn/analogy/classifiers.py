"""Machines on a kernel between pairs, the choice of C by cross-validation, and chances
from their values.

References
----------
.. [Platt1999] J. C. Platt, "Probabilistic outputs for support vector machines and
   comparisons to regularized likelihood methods", Advances in Large Margin Classifiers,
   MIT Press, 1999.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from joblib import delayed
from scipy import linalg
from scipy.special import logit
from sklearn.exceptions import ConvergenceWarning

from preflearn.analogy.additive import Logistic
from preflearn.analogy.low_rank import AllFunctions
from preflearn.analogy.training import Fold
from preflearn.core.gram import DenseGram
from preflearn.core.validation import Floats, Ids, require, warn_user
from preflearn.pairs import Pairs
from preflearn.path.binary import BinaryPath, trusted_path
from preflearn.path.ranking import RankingPath, ranksvm_path
from preflearn.path.regularization import FoldCurve, Selection, merge_fold_curves
from preflearn.solvers.hinge_dual import HingeTerms, best_bias, maximise
from preflearn.solvers.newton import newton
from preflearn.solvers.search import in_parallel

# lambda per example where a path ends; the first breakpoint is below 1 per example
_LEAST = 1e-8
GRID = np.logspace(3, -6, 10)  # lambda of machines without a path
_ROUNDING = 1e-12  # of a breakpoint
_GAP = 1e-10  # of logistic regression, relative to its objective
_LEAST_GAP = 1e-12  # that the dual of the hinge is to reach, and
_MOST_GAP = 1e-8  # beyond which the path is followed instead
_MOST_NEWTON_STEPS = 100


class Problem(NamedTuple):
    """Examples of a binary problem: their kernel, their labels, and if the machine has
    a bias."""

    K: Floats  # (m, m)
    labels: Floats  # (m,), -1 and +1
    biased: bool

    def part(self, train: Ids) -> Problem:
        """The problem of some of the examples."""
        return Problem(self.block(train, train), self.labels[train], self.biased)

    def can_use(self, fold: Fold) -> bool:
        """Whether a fold has something to validate, and both labels to train a machine
        with bias."""
        kinds = len(np.unique(self.labels[fold.train]))
        return len(fold.valid) > 0 and kinds >= 1 + self.biased

    def block(self, rows: Ids, columns: Ids) -> Floats:
        return DenseGram(self.K).block(rows, columns)


class Machine(NamedTuple):
    """f = K coef + bias."""

    coef: Floats  # (m,)
    bias: float
    C: float  # that asked for, or where rounding ended a path before


def hinge(problem: Problem, C: float) -> Machine:
    """C sum (1 - y f)_+ + 1/2 |f|^2: the support vector machine."""
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
    coef, gap = maximise(gram, rows, np.zeros(len(K)), _LEAST_GAP)
    if gap > _MOST_GAP:
        return _by_path(problem, C)
    return Machine(
        coef, best_bias(rows, rows.slopes(gram.times(coef))) if biased else 0.0, C
    )


def _by_path(problem: Problem, C: float) -> Machine:
    """By the path down to lambda = 1/C, or to its end if it comes before."""
    path = _path(problem, 1 / C)
    lam = 1 / C
    if lam < path.lambda_end:
        lam = path.lambda_end
        text = f"rounding ends the path of the machine at C = {1 / lam:.3g}, taken in place of {C:.3g}"
        warn_user(text, ConvergenceWarning)
    bias = path.bias(lam) if isinstance(path, BinaryPath) else 0.0
    return Machine(problem.labels * path.alpha(lam) / lam, bias, 1 / lam)


def _path(problem: Problem, least: float) -> BinaryPath | RankingPath:
    """The machines of all lambda from the least one on."""
    K, labels, biased = problem
    if biased:
        return trusted_path(K, labels, least)
    # above it all weights are 1, and there is nothing to follow
    first = float((labels * (K @ labels)).max())
    least = min(least, max(first, 0.0) * (1 - _ROUNDING))
    return ranksvm_path(_against_null(K), labels, "precomputed", lambda_min=least)


def _against_null(K: Floats) -> Pairs:
    """Pairs of each example (a row of K) and a null item, whose kernel with all is 0."""
    m = len(K)
    return Pairs(np.pad(K, (0, 1)), np.column_stack([np.arange(m), np.full(m, m)]))


def logistic(problem: Problem, C: float) -> Machine:
    """C sum log(1 + exp(-y f)) + 1/2 |f|^2: kernel logistic regression."""
    K, labels, biased = problem
    functions = AllFunctions(K, biased)
    objective = Logistic(functions.gram.times, functions.inverse, labels, C, biased)
    found = newton(objective, np.zeros(len(labels)), _GAP, _MOST_NEWTON_STEPS).point
    return Machine(found.x, found.bias, C)


def squared(problem: Problem, C: float) -> Machine:
    """C sum (y - f)^2 / 2 + 1/2 |f|^2: kernel ridge regression on the labels, without
    bias."""
    ridge = problem.K + np.eye(len(problem.K)) / C
    return Machine(linalg.solve(ridge, problem.labels, assume_a="pos"), 0.0, C)


LOSSES: dict[str, Callable[[Problem, float], Machine]] = {
    "hinge": hinge,
    "logistic": logistic,
    "squared": squared,
}


def out_of_fold(
    problem: Problem, folds: list[Fold], loss: str, C: float
) -> tuple[Floats, Floats]:
    """Decision values of the validation examples of all folds, and their labels.

    A fold of m' of the m examples has C m / m', which keeps the weight of the mean
    loss.
    """
    values = []
    for train, valid in folds:
        machine = LOSSES[loss](
            problem.part(train), C * len(problem.labels) / len(train)
        )
        values.append(problem.block(valid, train) @ machine.coef + machine.bias)
    return np.concatenate(values), np.concatenate(
        [problem.labels[fold.valid] for fold in folds]
    )


def platt(f: Floats, labels: Floats, odd: bool = False) -> tuple[float, float]:
    """Slope a and offset b of P(label +1 | f) = 1 / (1 + exp(-a f - b)), [Platt1999]_.

    Minimises the cross-entropy to Platt's targets: (n+ + 1) / (n+ + 2) for the n+
    labels +1, 1 / (n- + 2) for the n- others. They are inside (0, 1), so that a minimum
    exists also where f separates the labels, or where there is one label only. Where
    all f are equal, a is 0. (Platt's A and B are -a and -b.)

    Parameters
    ----------
    f : ndarray of shape (m,)
        Decision values of points that the machine has not seen.
    labels : ndarray of shape (m,)
        -1 and +1.
    odd : bool
        Whether each point stands also for another one, of the opposite value and label.

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
    # A chance as target is both labels, with the chance and the rest of 1 as their
    # weights.
    twice = np.tile((f - centre) / size, 2)[:, None]
    both = np.repeat([1, 0], m)
    from sklearn.linear_model import LogisticRegression  # late: a twentieth of a second

    machine = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12)
    machine.fit(twice, both, sample_weight=np.append(target, 1 - target))
    a = float(machine.coef_.item())
    b = float(np.asarray(machine.intercept_).item())
    return a / size, b - a * centre / size


def select(
    problem: Problem, folds: list[Fold], loss: str, n_jobs: int | None = None
) -> Selection:
    """The lambda = 1/C of least zero-one loss over the folds, on the scale of all
    examples.

    For the hinge it is exact over the continuum of lambda, by one path a fold; for
    other losses over `GRID`. An undecided example, f = 0, is wrong whichever way its
    pair is read, as in `RankingPath.select`; only the hinge with bias has +1 there, as
    in `BinaryPath.select`.
    """
    if loss == "hinge":
        curves = in_parallel((delayed(_curve)(problem, fold) for fold in folds), n_jobs)
        parts = [curve for curve in curves if curve is not None]
        expected = (
            "a number, or other items: in all folds every C gives the same machine"
        )
        require(len(parts) > 0, "path", "C", expected)
        return merge_fold_curves(parts, len(problem.labels), common=True)
    found = in_parallel(
        (delayed(out_of_fold)(problem, folds, loss, 1 / lam) for lam in GRID), n_jobs
    )
    losses = np.array([(labels * values <= 0).mean() for values, labels in found])
    best = int(np.argmin(losses))
    return Selection(float(GRID[best]), float(losses[best]), GRID, losses)


def _curve(problem: Problem, fold: Fold) -> FoldCurve | None:
    """None where every C gives the same weights, since the examples hardly differ."""
    size = len(fold.train)
    seen = problem.block(fold.valid, fold.train)
    path = _path(problem.part(fold.train), _LEAST * size)
    if len(path.breakpoints) == 0:
        return None
    asked = seen if problem.biased else _against_null(seen)
    curve = path.select(asked, problem.labels[fold.valid])  # pyright: ignore[reportArgumentType]  (each has its own)
    return FoldCurve(curve, path.lambda_end, size, len(fold.valid))
