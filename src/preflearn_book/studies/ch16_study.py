"""The experiment of section 6 of [AhmadiFahandar2019]_: rows of its Table 2 and
variations.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, RepeatedKFold

from preflearn.analogy import Able2Rank, AnKerRank, DomainScaler
from preflearn.core.validation import Floats, Ids, legacy_rng
from preflearn.metrics import ranking_loss
from preflearn.ranking import ExpectedRankRegression, RankingLearner, RankNet
from preflearn.ranking.aggregation import merge_close
from preflearn.svm import SVMRank
from preflearn_book.studies.ch16_orders import ORDERS

Kind = Literal["min-max", "standard"]
Grids = dict[str, tuple[dict[str, Any], int]]
_BINS = 10  # number of bins of predicted probabilities
_ROUNDING = 1e-9  # rounding error of scores of a ranking SVM, relative to their range


class Task(NamedTuple):
    """A row of Table 2: a training ranking and a ranking to predict.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Scores in the order of the ranking, such as minus its ranks; larger is better.
    Q : ndarray of shape (n', d)
        The items of the query.
    truth : ndarray of shape (n',)
        Their scores.
    """

    X: Floats
    y: Floats
    Q: Floats
    truth: Floats

    def scaled(self, kind: Kind = "min-max", **options: Any) -> Self:
        """A copy with normalized features. Options are those of `DomainScaler`.

        Examples
        --------
        >>> y = np.array([-2.0, -1.0])
        >>> task = Task(np.array([[0.0], [2.0]]), y, np.array([[1.0], [4.0]]), y)
        >>> task.scaled(decision="joint").Q.ravel().tolist()
        [0.25, 1.0]
        """
        X, Q = DomainScaler(kind, **options).fit(self.X).both(self.Q)
        return self._replace(X=X, Q=Q)

    def loss(self, learner: RankingLearner | SVMRank) -> float:
        """Fit a learner and return its ranking loss.

        The loss is the equation in section 2, where a pair with tied scores counts half.

        Examples
        --------
        >>> y = np.array([-2.0, -1.0])
        >>> task = Task(np.array([[0.0], [2.0]]), y, np.array([[1.0], [4.0]]), y)
        >>> task.loss(ExpectedRankRegression())
        0.0
        """
        return ranking_loss(-self.truth, -self.rank_function(learner))

    def rank_function(self, learner: RankingLearner | SVMRank) -> Floats:
        """Fit a learner and return its scores of the query items.

        A ranking SVM must be linear. If features are counts, its solution often assigns
        equal scores to different items. Scores that differ only by rounding are set
        equal, because otherwise rounding would decide their order.
        """
        if isinstance(learner, SVMRank):
            # the chapter reports choices at an end
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                w = learner.fit(self.X, self.y).coef_
            scores = (self.Q * w).sum(axis=1)  # a product may differ for equal rows
            return merge_close(scores, _ROUNDING * float(np.ptp(scores)))
        return learner.fit(self.X, self.y).rank_function(self.Q)


class Choices(NamedTuple):
    """Parameters that are chosen once per training set.

    Attributes
    ----------
    k : int
        Parameter k of able2rank.
    svm : SVMRank
        Fitted ranking SVM with its cost `C_`.
    net : RankNet
        RankNet with the chosen number of units, batch size, and learning rate.
    kind : {"standard", "min-max"}
        How features are normalized for ERR, Ranking SVM, and RankNet.
    """

    k: int
    svm: SVMRank
    net: RankNet
    kind: Kind


def choose(
    X: Floats,
    y: Floats,
    grids: Grids,
    kind: Kind = "standard",
    random_state: int = 0,
) -> Choices:
    """Choose parameters by 2-fold cross-validation over the items of a training set.

    The features are normalized by the training set only.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Scores; larger is better.
    kind : {"standard", "min-max"}
        See `Choices`. The analogy-based methods need "min-max".
    grids : dict of str to (dict, int)
        For "able2rank", "Ranking SVM", and "RankNet", a parameter grid and the number of
        repetitions of the cross-validation. Without a grid for the Ranking SVM, C is
        chosen on its path, with three repetitions.
    random_state : int
        Seed of the folds.
    """
    unit, scaled = (DomainScaler(one).fit(X).transform(X) for one in ("min-max", kind))
    scores = np.asarray(y, dtype=float)
    seed = legacy_rng(random_state)
    folds = list(
        RepeatedKFold(n_splits=2, n_repeats=3, random_state=seed).split(scaled)
    )
    voting = Able2Rank()
    svm = SVMRank("path", "linear", random_state=random_state)
    net = RankNet()
    learners: dict[str, Any] = {"able2rank": voting, "Ranking SVM": svm, "RankNet": net}
    for name, (grid, n_halvings) in grids.items():
        items = unit if name == "able2rank" else scaled
        options = searched(learners[name], grid, items, scores, folds[: 2 * n_halvings])
        learners[name].set_params(**options)
    chosen: Any = clone(net)
    return Choices(int(voting.k), svm.fit(scaled, scores), chosen, kind)


def searched(
    learner: Any,
    grid: dict[str, Any],
    X: Floats,
    y: Floats,
    folds: list[tuple[Ids, Ids]],
) -> dict[str, Any]:
    """The parameters of a grid with the lowest sum of losses on held-out items.

    If several points of the grid have this sum, the first one is returned. Afterwards,
    the learner has the last parameters of the grid.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(10, 2))
    >>> folds = [(np.arange(5), np.arange(5, 10))]
    >>> searched(RankNet(), {"n_hidden": [32, 64]}, X, X @ [-1.0, -2.0], folds)
    {'n_hidden': 32}
    """

    def loss(options: dict[str, Any]) -> float:
        learner.set_params(**options)
        return sum(
            Task(X[train], y[train], X[valid], y[valid]).loss(learner)
            for train, valid in folds
        )

    return min(ParameterGrid(grid), key=loss)


def losses_by_analogy(
    task: Task, chosen: Choices, random_state: int, **options: Any
) -> dict[str, float]:
    """The losses of AnKer-rank, with its chosen cost, and of able2rank.

    Features are scaled to [0, 1], with the options of `DomainScaler`. Of all methods in
    Table 2, only AnKer-rank (random signs and folds) and RankNet (initial weights and
    batches) depend on the seed.
    """
    task = task.scaled(**options)
    anker = AnKerRank(random_state=random_state)
    losses = {
        "AnKer-rank": task.loss(anker),
        "able2rank": task.loss(Able2Rank(chosen.k)),
    }
    return losses | {"C": anker.C_, "open": at_end(anker)}


def at_end(learner: AnKerRank) -> int:
    """1 if a longer path could change the chosen cost, otherwise 0.

    A longer path could matter if the best interval of the cross-validation reaches the
    end of the path and some coefficient is at its bound C. If no coefficient is at its
    bound, every larger C gives the same model.
    """
    curve: Any = learner.curve_
    bound = np.abs(learner.dual_coef_).max(initial=0) >= learner.C_ * (1 - _ROUNDING)
    return int(bound and curve.lam < curve.lambdas[-1])


def losses_by_utility(
    task: Task, chosen: Choices, random_state: int, **options: Any
) -> dict[str, float]:
    """The losses of ERR, Ranking SVM, and RankNet.

    Features are normalized in the same way as for the choice of parameters.
    """
    task = task.scaled(chosen.kind, **options)
    return {
        "ERR": task.loss(ExpectedRankRegression()),
        "Ranking SVM": task.loss(SVMRank(chosen.svm.C_, "linear")),
        "RankNet": task.loss(
            RankNet(**chosen.net.get_params() | {"random_state": random_state})
        ),
    }


def judged(task: Task, learner: AnKerRank) -> dict[str, float]:
    """Evaluate the degrees of preference P of a fitted AnKer-rank on a normalized query.

    Returns
    -------
    dict of str to float
        The loss of each aggregation of P, by its name, and these numbers:

        - "pairs": fraction of pairs whose larger degree is wrong.
        - "brier": mean of (p - truth)² over pairs, where truth is 1 or 0.
        - "one side": mean of the Brier scores of q_ij and of 1 - q_ji.
        - "miscalibration": mean over pairs of the distance between p and the fraction of
          wins among the pairs in the same one of ten bins.
        - "reciprocity": mean of abs(q_ij + q_ji - 1).
    """
    P = learner.preferences(task.Q)
    Q = support(learner, task.Q)
    found = {
        name: ranking_loss(-task.truth, -worths(P)) for name, worths in ORDERS.items()
    }
    better = np.greater.outer(task.truth, task.truth)
    first, second = np.nonzero(better | better.T)
    p = P[first, second]
    won = better[first, second].astype(np.float64)
    q = Q[first, second]
    other = 1 - Q[second, first]
    place = np.minimum((p * _BINS).astype(int), _BINS - 1)
    count = np.maximum(np.bincount(place, minlength=_BINS), 1)
    gaps = np.abs(np.bincount(place, p - won, _BINS) / count)
    return found | {
        "pairs": float(np.mean(np.where(p == 0.5, 0.5, (p < 0.5) == (won > 0)))),
        "brier": float(np.mean((p - won) ** 2)),
        "one side": float(np.mean(((q - won) ** 2 + (other - won) ** 2) / 2)),
        "miscalibration": float(np.mean(gaps[place])),
        "reciprocity": float(np.mean(np.abs(q - other))),
    }


def support(learner: AnKerRank, Q: Floats) -> Floats:
    """The degrees q_ij of support for "i is better than j" of section 5.1, shape (n,
    n)."""
    n = len(Q)
    (a, b) = learner.platt_
    U = (Q[:, None] - Q).reshape(n * n, -1)
    return expit(a * learner.decision_function(U) + b).reshape(n, n)
