"""The study of Table 2 of P5, on rankings of few items."""

from itertools import permutations, product

import numpy as np
import pytest
from sklearn.model_selection import RepeatedKFold

from preflearn.analogy import Able2Rank, AnKerRank
from preflearn.metrics import ranking_loss
from preflearn.path.regularization import Selection
from preflearn.ranking import RankNet
from preflearn.svm import SVMRank
from preflearn_book.studies.ch16_study import (
    Task,
    at_end,
    choose,
    judged,
    support,
)


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(28, 3)) * [1, 10, 0.1]
    scores = X @ [1, 0.1, 10] + 0.05 * rng.normal(size=28)
    rank = np.empty(28)
    for part in (slice(0, 14), slice(14, 28)):
        rank[part] = np.argsort(np.argsort(-scores[part])) + 1
    return Task(X[:14], -rank[:14], X[14:], -rank[14:])


def test_items_that_a_ranking_svm_ties_count_half_whatever_rounding_gives():
    X = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])  # the three entries of w are equal
    Q = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2], [0.9, 0.9, 0.9]])
    task = Task(X, np.array([-2.0, -1.0]), Q, -np.array([2.0, 3.0, 4.0, 1.0]))
    assert len(np.unique(task.rank_function(SVMRank(1.0, "linear")))) == 2
    assert task.loss(SVMRank(1.0, "linear")) == 3 / 2 / 6


def test_choices_have_the_least_loss_of_held_out_halves(task):
    """Refit each candidate on the same folds: the nets on one division into halves, the
    others on three."""
    unit = task.scaled(decision="apart").X
    X = task.scaled("standard", decision="apart").X
    y = task.y
    folds = list(RepeatedKFold(n_splits=2, n_repeats=3, random_state=4).split(X))
    nets = {"n_hidden": (4, 32), "learning_rate": (0.001, 0.1)}
    grids = {
        "able2rank": ({"k": (1, 8)}, 3),
        "Ranking SVM": ({"C": (1e-4, 1.0)}, 3),
        "RankNet": (nets, 1),
    }
    chosen = choose(task.X, task.y, grids, random_state=4)

    def loss(learner, items, folds):
        return sum(
            ranking_loss(
                -y[test], learner.fit(items[train], y[train]).rank(items[test])
            )
            for train, test in folds
        )

    def net_loss(candidate):
        return loss(RankNet(candidate[0], learning_rate=candidate[1]), X, folds[:2])

    def svm_loss(C):
        return sum(
            Task(X[a], y[a], X[b], y[b]).loss(SVMRank(C, "linear")) for a, b in folds
        )

    assert (chosen.net.n_hidden, chosen.net.learning_rate) == min(
        product(*nets.values()), key=net_loss
    )
    assert chosen.k == min((1, 8), key=lambda k: loss(Able2Rank(k), unit, folds))
    assert min((1e-4, 1.0), key=svm_loss) == chosen.svm.C_


@pytest.mark.parametrize(
    ("lam", "bound", "expected"), [(0.1, 10.0, 1), (0.1, 9.0, 0), (0.5, 2.0, 0)]
)
def test_a_choice_is_at_the_end_of_the_path_where_a_coefficient_is_at_its_bound(
    lam, bound, expected
):
    learner = AnKerRank()
    learner.C_ = 1 / lam
    learner.dual_coef_ = np.array([-bound, 0.5])
    learner.curve_ = Selection(lam, 0.0, np.array([1.0, 0.2]), np.array([0.1, 0.0]))
    assert at_end(learner) == expected


def test_degrees_are_judged_pair_by_pair(task):
    task = task.scaled()
    learner = AnKerRank(random_state=0).fit(task.X, task.y)
    found = judged(task, learner)
    P = learner.preferences(task.Q)
    q = support(learner, task.Q)
    np.testing.assert_allclose((1 + q - q.T) / 2, P, atol=1e-12)
    i, j = np.array(list(permutations(range(14), 2))).T
    p = P[i, j]
    won = task.truth[i] > task.truth[j]
    bins = {}
    for degree, outcome in zip(p, won, strict=True):
        bins.setdefault(min(int(10 * degree), 9), []).append(degree - outcome)
    expected = {
        "pairs": np.mean((p > 0.5) != won),
        "brier": np.mean((p - won) ** 2),
        "one side": np.mean((q[i, j] - won) ** 2),
        "reciprocity": np.mean(np.abs(q[i, j] + q[j, i] - 1)),
        "miscalibration": sum(abs(sum(part)) for part in bins.values()) / len(p),
        "row sums": ranking_loss(-task.truth, -P.sum(axis=1)),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
