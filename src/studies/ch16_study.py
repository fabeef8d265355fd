"""The experiment of section 6 of [AhmadiFahandar2019]_: a row of its Table 2, and what can be varied in it.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference learning with
   kernels", KI 2019.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.model_selection import GridSearchCV, KFold

from preflearn.analogy import Able2Rank, AnKerRank, DomainScaler
from preflearn.checks import Floats, legacy_rng
from preflearn.metrics import ranking_loss
from preflearn.ranking import ExpectedRankRegression, RankingLearner, RankNet
from preflearn.ranking.aggregation import merged
from preflearn.svm import SVMRank
from studies.ch16_orders import ORDERS

Kind = Literal["min-max", "standard"]
_BINS = 10  # of predicted chances
_ROUNDING = 1e-9  # of a score of a ranking SVM, relative to their range
_UNITS, _BATCHES, _RATES = (32, 64, 128, 256), (8, 16, 32), (0.001, 0.01, 0.1)  # the grid of section 6.2


class Task(NamedTuple):
    """A row of Table 2: a ranking to learn from, and one to predict.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    rank : ndarray of shape (n,)
        1 is best.
    Q : ndarray of shape (n', d)
        The items of the query.
    truth : ndarray of shape (n',)
        Their ranks.
    """

    X: Floats
    rank: Floats
    Q: Floats
    truth: Floats

    def scaled(self, kind: Kind = "min-max", **options: Any) -> Self:
        """With the features normalised, each part for the other; options as in `DomainScaler`.

        Examples
        --------
        >>> rank = np.array([2.0, 1.0])
        >>> task = Task(np.array([[0.0], [2.0]]), rank, np.array([[1.0], [4.0]]), rank)
        >>> task.scaled(decision="joint").Q.ravel().tolist()
        [0.25, 1.0]
        """
        X, Q = DomainScaler(kind, **options).fit(self.X).both(self.Q)
        return self._replace(X=X, Q=Q)

    def loss(self, learner: RankingLearner | SVMRank) -> float:
        """The ranking loss of a learner, which is fitted: eq. of section 2, a pair tied by it counts half.

        Examples
        --------
        >>> rank = np.array([2.0, 1.0])
        >>> task = Task(np.array([[0.0], [2.0]]), rank, np.array([[1.0], [4.0]]), rank)
        >>> task.loss(ExpectedRankRegression())
        0.0
        """
        return ranking_loss(self.truth, -self.worths(learner))

    def worths(self, learner: RankingLearner | SVMRank) -> Floats:
        """The scores of the query's items by a learner, which is fitted; a ranking SVM is linear.

        Where features are counts, its solution often ties items that differ: what rounding tells apart is
        made equal again, or it would decide who comes first.
        """
        if isinstance(learner, SVMRank):
            w = learner.fit(self.X, -self.rank).coef_
            scores = (self.Q * w).sum(axis=1)  # a product may differ for equal rows
            return merged(scores, _ROUNDING * float(np.ptp(scores)))
        return learner.fit(self.X, self.rank).worths(self.Q)


class Choices(NamedTuple):
    """What is chosen once a training set.

    Attributes
    ----------
    k : int
        Of able2rank.
    C : float
        Of the Ranking SVM.
    net : RankNet
        With the number of units, the size of batches, and the rate.
    kind : {"standard", "min-max"}
        How features are normalised for the learners of a utility: ERR, Ranking SVM and RankNet.
    """

    k: int
    C: float
    net: RankNet
    kind: Kind


def choose(
    X: ArrayLike, rank: ArrayLike, *, kind: Kind = "standard", grid: bool = True, random_state: int = 0
) -> Choices:
    """Choose by cross-validation within a training set, which is normalised by its own numbers.

    Parameters
    ----------
    X : array-like of shape (n, d)
    rank : array-like of shape (n,)
    kind : {"standard", "min-max"}
        See `Choices`; the methods of analogy need "min-max".
    grid : bool
        Whether RankNet goes through the paper's grid of 36, which takes longest; else it keeps its defaults.
    random_state : int
        Seed of the folds.
    """
    scale = DomainScaler("min-max").fit(X), DomainScaler(kind).fit(X)
    unit, scaled = (scaler.transform(X) for scaler in scale)
    k = Able2Rank("cv", random_state=random_state).fit(unit, rank).k_
    svm = SVMRank("path", "linear", random_state=random_state).fit(scaled, -np.asarray(rank, dtype=float))
    net = choose_rank_net(scaled, np.asarray(rank), random_state) if grid else RankNet()
    return Choices(k, svm.C_, net, kind)


def choose_rank_net(X: Floats, rank: Floats, random_state: int) -> RankNet:
    """Of the paper's grid the net of least loss on held-out halves of the items; the first of several.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(10, 2))
    >>> choose_rank_net(X, np.argsort(np.argsort(X @ [1.0, 2.0])), 0).n_hidden
    32
    """
    grid = [
        {"n_hidden": [units], "batch_size": [batch], "learning_rate": [rate]}
        for units, batch, rate in product(_UNITS, _BATCHES, _RATES)
    ]
    halves = KFold(2, shuffle=True, random_state=legacy_rng(random_state))
    search = GridSearchCV(RankNet(), grid, scoring=_accuracy, cv=halves, refit=False)
    search.set_params(error_score="raise")
    return RankNet(**search.fit(X, rank).best_params_)


def _accuracy(net: RankNet, X: Floats, rank: Floats) -> float:
    return -ranking_loss(rank, -net.worths(X))


def losses_of_all(task: Task, chosen: Choices, random_state: int, **options: Any) -> dict[str, float]:
    """The losses of the five methods of Table 2 in one repetition, and the cost that AnKer-rank chose.

    Options are those of `DomainScaler`. Only AnKer-rank (its coins and folds) and RankNet (its first weights
    and batches) depend on the seed.
    """
    return losses_by_analogy(task, chosen, random_state, **options) | losses_by_utility(
        task, chosen, random_state, **options
    )


def losses_by_analogy(task: Task, chosen: Choices, random_state: int, **options: Any) -> dict[str, float]:
    """As `losses_of_all`, of AnKer-rank and able2rank: features in [0, 1]."""
    task, anker = task.scaled(**options), AnKerRank(random_state=random_state)
    losses = {"AnKer-rank": task.loss(anker), "able2rank": task.loss(Able2Rank(chosen.k))}
    return losses | {"C": anker.C_}


def losses_by_utility(task: Task, chosen: Choices, random_state: int, **options: Any) -> dict[str, float]:
    """As `losses_of_all`, of ERR, Ranking SVM and RankNet: features as they were for the choice."""
    task = task.scaled(chosen.kind, **options)
    return {
        "ERR": task.loss(ExpectedRankRegression()),
        "Ranking SVM": task.loss(SVMRank(chosen.C, "linear")),
        "RankNet": task.loss(RankNet(**chosen.net.get_params() | {"random_state": random_state})),
    }


def judged(task: Task, learner: AnKerRank) -> dict[str, float]:
    """The degrees of preference P of a fitted AnKer-rank, on a query that is normalised for it.

    Returns
    -------
    dict of str to float
        The loss of each aggregation of this P, by its name; "pairs", the share of pairs whose larger degree
        is wrong; "brier", the mean of (p - truth)² over pairs, where truth is 1 or 0; "one side", the mean of
        it for q_ij alone and for 1 - q_ji; "miscalibration", the mean over pairs of the distance
        between p and the share of wins among the pairs of its bin of ten; "reciprocity", the mean of
        abs(q_ij + q_ji - 1).
    """
    P, Q = learner.preferences(task.Q), support(learner, task.Q)
    found = {name: ranking_loss(task.truth, -worths(P)) for name, worths in ORDERS.items()}
    better = np.less.outer(task.truth, task.truth)
    first, second = np.nonzero(better | better.T)
    p, won = P[first, second], better[first, second].astype(np.float64)
    q, other = Q[first, second], 1 - Q[second, first]
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
    """The degrees q_ij of support for "i is better than j" of section 5.1, shape (n, n)."""
    n, (a, b) = len(Q), learner.platt_
    U = (Q[:, None] - Q).reshape(n * n, -1)
    return expit(a * learner.decision_function(U) + b).reshape(n, n)
