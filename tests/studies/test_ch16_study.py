"""The study of Table 2 of P5, on rankings of few items."""

from itertools import permutations, product

import numpy as np
import pytest
from sklearn.model_selection import KFold

from preflearn.analogy import Able2Rank, AnKerRank, DomainScaler
from preflearn.metrics import ranking_loss
from preflearn.ranking import ExpectedRankRegression, RankNet
from preflearn.svm import SVMRank
from studies.ch16_study import Task, choose, choose_rank_net, judged, losses_of_all, support


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(28, 3)) * [1, 10, 0.1]
    scores = X @ [1, 0.1, 10] + 0.05 * rng.normal(size=28)
    rank = np.empty(28)
    for part in (slice(0, 14), slice(14, 28)):
        rank[part] = np.argsort(np.argsort(-scores[part])) + 1
    return Task(X[:14], rank[:14], X[14:], rank[14:])


def test_items_that_a_ranking_svm_ties_count_half_whatever_rounding_says():
    X = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])  # w has three equal numbers
    Q = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2], [0.9, 0.9, 0.9]])
    task = Task(X, np.array([2.0, 1.0]), Q, np.array([2.0, 3.0, 4.0, 1.0]))
    rounded = (Q * SVMRank(1.0, "linear").fit(X, [1, 2]).coef_).sum(axis=1)
    assert len(np.unique(rounded)) > 2
    assert len(np.unique(task.worths(SVMRank(1.0, "linear")))) == 2
    assert task.loss(SVMRank(1.0, "linear")) == 3 / 2 / 6


def test_a_row_holds_the_losses_of_its_learners(task):
    chosen = choose(task.X, task.rank, grid=False)
    found = losses_of_all(task, chosen, 3)
    unit, standard = task.scaled(), task.scaled("standard")
    assert 0 <= unit.X.min() <= unit.Q.max() <= 1
    anker = AnKerRank(random_state=3).fit(unit.X, unit.rank)
    assert found["AnKer-rank"] == ranking_loss(task.truth, anker.rank(unit.Q))
    assert found["C"] == anker.C_
    voting = Able2Rank(chosen.k).fit(unit.X, unit.rank)
    assert found["able2rank"] == ranking_loss(task.truth, voting.rank(unit.Q))
    linear = ExpectedRankRegression().fit(standard.X, standard.rank)
    assert found["ERR"] == ranking_loss(task.truth, linear.rank(standard.Q))
    net = RankNet(random_state=3).fit(standard.X, standard.rank)
    assert found["RankNet"] == ranking_loss(task.truth, net.rank(standard.Q))


def test_the_net_has_the_least_loss_of_held_out_halves(task):
    """36 candidates, each anew on the same two folds."""
    X, rank = task.scaled("standard").X, task.rank
    folds, losses = list(KFold(2, shuffle=True, random_state=4).split(X)), {}
    for key in product((32, 64, 128, 256), (8, 16, 32), (0.001, 0.01, 0.1)):
        units, batch, rate = key
        net = RankNet(units, batch_size=batch, learning_rate=rate)
        found = [
            ranking_loss(rank[test], -net.fit(X[train], rank[train]).worths(X[test])) for train, test in folds
        ]
        losses[key] = np.mean(found)
    net = choose_rank_net(X, rank, 4)
    assert (net.n_hidden, net.batch_size, net.learning_rate) == min(losses, key=losses.__getitem__)
    assert not hasattr(net, "weights_")


def test_all_methods_can_have_one_normalisation(task):
    chosen = choose(task.X, task.rank, kind="min-max", grid=False)
    unit = DomainScaler().fit(task.X).transform(task.X)
    assert chosen.kind == "min-max"
    assert chosen.C == SVMRank("path", "linear").fit(unit, -task.rank).C_
    found = losses_of_all(task, chosen, 3, decision="apart")
    apart = task.scaled(decision="apart")
    assert apart.Q.min(axis=0).tolist() == [0, 0, 0]
    for name, learner in (("AnKer-rank", AnKerRank(random_state=3)), ("RankNet", RankNet(random_state=3))):
        rank = learner.fit(apart.X, apart.rank).rank(apart.Q)
        assert found[name] == ranking_loss(task.truth, rank)
    svm = SVMRank(chosen.C, "linear").fit(apart.X, -apart.rank)
    assert found["Ranking SVM"] == ranking_loss(task.truth, -svm.rank_function(apart.Q))


def test_degrees_are_judged_pair_by_pair(task):
    task = task.scaled()
    learner = AnKerRank(random_state=0).fit(task.X, task.rank)
    found, P = judged(task, learner), learner.preferences(task.Q)
    q = support(learner, task.Q)
    np.testing.assert_allclose((1 + q - q.T) / 2, P, atol=1e-12)
    i, j = np.array(list(permutations(range(14), 2))).T
    p, one, other, won, bins = P[i, j], q[i, j], q[j, i], task.truth[i] < task.truth[j], {}
    for degree, happened in zip(p, won, strict=True):
        bins.setdefault(min(int(10 * degree), 9), []).append(degree - happened)
    expected = {
        "pairs": np.mean((p > 0.5) != won),
        "brier": np.mean((p - won) ** 2),
        "one side": np.mean((one - won) ** 2),
        "reciprocity": np.mean(np.abs(one + other - 1)),
        "miscalibration": sum(abs(sum(part)) for part in bins.values()) / len(p),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["brier"] <= found["one side"]
    assert found["row sums"] == ranking_loss(task.truth, -P.sum(axis=1))
    assert found["bradley-terry"] == found["row sums"]
