"""The study of Table 2 of P5, on rankings of few items."""

from itertools import permutations, product

import numpy as np
import pytest
from sklearn.model_selection import RepeatedKFold

from preflearn.analogy import Able2Rank, AnKerRank, DomainScaler
from preflearn.metrics import ranking_loss
from preflearn.path.regularization import Selection
from preflearn.ranking import ExpectedRankRegression, RankNet
from preflearn.svm import SVMRank
from studies.ch16_study import Task, at_end, choose, judged, losses_by_analogy, losses_by_utility, support


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
    chosen = choose(task.X, task.rank, {})
    found = losses_by_analogy(task, chosen, 3) | losses_by_utility(task, chosen, 3)
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


def test_choices_have_the_least_loss_of_held_out_halves(task):
    """Each candidate anew on the same folds: the nets on one halving, the others on three."""
    unit, X, rank = task.scaled(decision="apart").X, task.scaled("standard", decision="apart").X, task.rank
    folds = list(RepeatedKFold(n_splits=2, n_repeats=3, random_state=4).split(X))
    nets = {"n_hidden": (4, 32), "learning_rate": (0.001, 0.1)}
    grids = {"able2rank": ({"k": (1, 8)}, 3), "Ranking SVM": ({"C": (1e-4, 1.0)}, 3), "RankNet": (nets, 1)}
    chosen = choose(task.X, task.rank, grids, random_state=4)

    def loss(learner, items, folds):
        return sum(
            ranking_loss(rank[test], learner.fit(items[train], rank[train]).rank(items[test]))
            for train, test in folds
        )

    best = min(
        product(*nets.values()),
        key=lambda at: loss(RankNet(at[0], learning_rate=at[1]), X, folds[:2]),
    )
    assert (chosen.net.n_hidden, chosen.net.learning_rate) == best
    assert not hasattr(chosen.net, "weights_")
    assert chosen.k == min((1, 8), key=lambda k: loss(Able2Rank(k), unit, folds))
    costs = {
        C: sum(Task(X[a], rank[a], X[b], rank[b]).loss(SVMRank(C, "linear")) for a, b in folds)
        for C in (1e-4, 1.0)
    }
    assert min(costs, key=costs.__getitem__) == chosen.svm.C_


@pytest.mark.parametrize(("lam", "bound", "expected"), [(0.1, 10.0, 1), (0.1, 9.0, 0), (0.5, 2.0, 0)])
def test_a_longer_path_could_matter_where_its_end_is_best_and_a_coefficient_at_its_bound(
    lam, bound, expected
):
    learner = AnKerRank()
    learner.C_, learner.dual_coef_ = 1 / lam, np.array([-bound, 0.5])
    learner.curve_ = Selection(lam, 0.0, np.array([1.0, 0.2]), np.array([0.1, 0.0]))
    assert at_end(learner) == expected


def test_all_methods_can_have_one_normalisation(task):
    chosen = choose(task.X, task.rank, {}, kind="min-max")
    unit = DomainScaler().fit(task.X).transform(task.X)
    assert chosen.kind == "min-max"
    assert chosen.svm.C_ == SVMRank("path", "linear").fit(unit, -task.rank).C_
    found = losses_by_analogy(task, chosen, 3, decision="apart")
    found |= losses_by_utility(task, chosen, 3, decision="apart")
    apart = task.scaled(decision="apart")
    assert apart.Q.min(axis=0).tolist() == [0, 0, 0]
    for name, learner in (("AnKer-rank", AnKerRank(random_state=3)), ("RankNet", RankNet(random_state=3))):
        rank = learner.fit(apart.X, apart.rank).rank(apart.Q)
        assert found[name] == ranking_loss(task.truth, rank)
    svm = SVMRank(chosen.svm.C_, "linear").fit(apart.X, -apart.rank)
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
