"""The experiment of section 6 of [AhmadiFahandar2019]_: a row of its Table 2, and what
can be varied in it.

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
from preflearn.ranking.aggregation import merged
from preflearn.svm import SVMRank
from preflearn_book.studies.ch16_orders import ORDERS

Kind = Literal["min-max", "standard"]
Grids = dict[str, tuple[dict[str, Any], int]]
_BINS = 10  # of predicted chances
_ROUNDING = 1e-9  # of a score of a ranking SVM, relative to their range


class Task(NamedTuple):
    """A row of Table 2: a ranking to learn from, and one to predict.

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
        """With the features normalised, each part for the other; options as in
        `DomainScaler`.

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
        """The ranking loss of a learner, which is fitted: eq. of section 2, a pair tied
        by it counts half.

        Examples
        --------
        >>> y = np.array([-2.0, -1.0])
        >>> task = Task(np.array([[0.0], [2.0]]), y, np.array([[1.0], [4.0]]), y)
        >>> task.loss(ExpectedRankRegression())
        0.0
        """
        return ranking_loss(-self.truth, -self.rank_function(learner))

    def rank_function(self, learner: RankingLearner | SVMRank) -> Floats:
        """The scores of the query's items by a learner, which is fitted; a ranking SVM
        is linear.

        Where features are counts, its solution often ties items that differ: what
        rounding tells apart is made equal again, or it would decide who comes first.
        """
        if isinstance(learner, SVMRank):
            # the chapter tells of ends
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                w = learner.fit(self.X, self.y).coef_
            scores = (self.Q * w).sum(axis=1)  # a product may differ for equal rows
            return merged(scores, _ROUNDING * float(np.ptp(scores)))
        return learner.fit(self.X, self.y).rank_function(self.Q)


class Choices(NamedTuple):
    """What is chosen once a training set.

    Attributes
    ----------
    k : int
        Of able2rank.
    svm : SVMRank
        With C_, fitted.
    net : RankNet
        With the number of units, the size of batches, and the rate.
    kind : {"standard", "min-max"}
        How features are normalised for the learners of a utility: ERR, Ranking SVM and
        RankNet.
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
    """Choose by 2-fold cross-validation of the items of a training set, normalised by
    its own numbers.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Scores; larger is better.
    kind : {"standard", "min-max"}
        See `Choices`; the methods of analogy need "min-max".
    grids : dict of str to (dict, int)
        For "able2rank", "Ranking SVM" and "RankNet" a grid of their parameters, and how
        often the items are halved. Without one for the Ranking SVM, it chooses C on its
        path, by three halvings.
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
    """The parameters of a grid with the least sum of losses on held-out items; the
    first of several.

    The learner is left with the last ones.

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
    """The losses of AnKer-rank, with the cost that it chose, and of able2rank: features
    in [0, 1].

    Options are those of `DomainScaler`. Of all methods of Table 2 only AnKer-rank (its
    coins and folds) and RankNet (its first weights and batches) depend on the seed.
    """
    task = task.scaled(**options)
    anker = AnKerRank(random_state=random_state)
    losses = {
        "AnKer-rank": task.loss(anker),
        "able2rank": task.loss(Able2Rank(chosen.k)),
    }
    return losses | {"C": anker.C_, "open": at_end(anker)}


def at_end(learner: AnKerRank) -> int:
    """Whether the end of the path decides the cost: 0 where it does not, 1 where a
    wider one could matter.

    It can if the best interval of the cross-validation goes down to the end of the
    path, and some coefficient is at its bound C; if none is, every larger C gives the
    same machine.
    """
    curve: Any = learner.curve_
    bound = np.abs(learner.dual_coef_).max(initial=0) >= learner.C_ * (1 - _ROUNDING)
    return int(bound and curve.lam < curve.lambdas[-1])


def losses_by_utility(
    task: Task, chosen: Choices, random_state: int, **options: Any
) -> dict[str, float]:
    """The losses of ERR, Ranking SVM and RankNet: features normalised as they were for
    the choice."""
    task = task.scaled(chosen.kind, **options)
    return {
        "ERR": task.loss(ExpectedRankRegression()),
        "Ranking SVM": task.loss(SVMRank(chosen.svm.C_, "linear")),
        "RankNet": task.loss(
            RankNet(**chosen.net.get_params() | {"random_state": random_state})
        ),
    }


def judged(task: Task, learner: AnKerRank) -> dict[str, float]:
    """The degrees of preference P of a fitted AnKer-rank, on a query that is normalised
    for it.

    Returns
    -------
    dict of str to float
        The loss of each aggregation of this P, by its name; "pairs", the share of pairs
        whose larger degree is wrong; "brier", the mean of (p - truth)² over pairs,
        where truth is 1 or 0; "one side", the mean of it for q_ij alone and for 1 -
        q_ji; "miscalibration", the mean over pairs of the distance between p and the
        share of wins among the pairs of its bin of ten; "reciprocity", the mean of
        abs(q_ij + q_ji - 1).
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
