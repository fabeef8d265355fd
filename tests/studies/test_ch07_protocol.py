"""The protocol of the chapter on matches: scaling, the search on later matches, and tests over seasons."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.model_selection import ParameterGrid

from preflearn.metrics import comparison_auc
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson
from preflearn.svm import SVMCompare
from studies.ch07_histories import forward_splits
from studies.ch07_protocol import auc_scorer, forward_search, scaled_pairs, score_differences, season_tests


class Along(BaseEstimator):
    """Ranks along one feature; may fail, or be a machine that is nothing but rounding."""

    def __init__(self, feature=0, fails=False, size=1.0, bias=None):
        self.feature = feature
        self.fails = fails
        self.size = size
        self.bias = bias

    def fit(self, pairs, y, sample_weight=None):
        if self.fails:
            raise ValueError("no fit")
        if self.bias is not None:
            self.bias_ = self.bias
        return self

    def decision_function(self, pairs):
        return self.size * pairs.differences()[:, self.feature]


def some_matches(seed=0, n=40, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2, p)) * 10.0 ** np.arange(p) + 5
    y = np.sign(np.round((X[:, 0] - X[:, 1])[:, 0] + rng.normal(size=n))).astype(int)
    return X, y


def test_features_are_scaled_by_the_players_of_the_matches_learned_from():
    X, _ = some_matches()
    by, rows = np.arange(5, 25), np.array([0, 30, 31])
    seen = scaled_pairs(X, by, by)
    both = np.concatenate([seen.first, seen.second])
    np.testing.assert_allclose(both.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(both.std(axis=0), 1)
    players, found = X[by].reshape(-1, 3), scaled_pairs(X, rows, by)
    expected = (X[rows] - players.mean(axis=0)) / players.std(axis=0)
    np.testing.assert_allclose(np.stack([found.first, found.second], axis=1), expected)


def test_a_feature_without_spread_is_centred_only():
    X, _ = some_matches()
    X[:20, :, 1] = 7.0
    pairs = scaled_pairs(X, np.arange(40), np.arange(20))
    np.testing.assert_allclose(pairs.first[:, 1], X[:, 0, 1] - 7)


def test_each_appearance_is_an_item_of_its_own():
    X, _ = some_matches()
    degrees = abs(scaled_pairs(X, np.arange(8), np.arange(8)).incidence()).sum(axis=0)
    assert np.array_equal(degrees, np.ones(16))


def test_matches_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"X has shape \(4, 3, 2\); expected \(N, 2, p\)"):
        scaled_pairs(np.zeros((4, 3, 2)), [0], [0])


@pytest.mark.parametrize(
    ("bias", "size", "kept"), [(None, 1e-12, True), (-1.0, 1e-12, False), (-1.0, 1.0, True)]
)
def test_only_a_machine_can_be_nothing_but_rounding(bias, size, kept):
    X, y = some_matches()
    pairs = Pairs.from_arrays(X[:, 0], X[:, 1])
    model = Along(size=size, bias=bias).fit(pairs, y)
    expected = size * pairs.differences()[:, 0]
    np.testing.assert_array_equal(score_differences(model, pairs), expected if kept else 0 * expected)
    assert auc_scorer(model, pairs, y) == (comparison_auc(y, expected) if kept else -1)


def test_a_machine_that_is_0_scores_below_all_others():
    X, y = np.zeros((6, 2, 1)), np.array([1, -1, 0, 0, 1, -1])
    X[:, 0, 0] = [1, 1, 1, -1, 1, 1]  # contradictory results, and draws
    pairs = Pairs.from_arrays(X[:, 0], X[:, 1])
    machine = SVMCompare(1.0, "linear").fit(pairs, y, np.where(y == 0, 2.0, 1.0))
    assert not score_differences(machine, pairs).any()
    assert auc_scorer(machine, pairs, y) == -1


@pytest.mark.parametrize("seed", range(4))
def test_the_search_takes_the_best_mean_over_later_matches(seed):
    X, y = some_matches(seed)
    pairs, shares = scaled_pairs(X, np.arange(40), np.arange(40)), (0.5, 0.8)
    grid, means = {"alpha": [0.1, 10.0, 1000.0]}, {}
    for parameters in ParameterGrid(grid):
        aucs = []
        for train, rest in forward_splits(40, shares):
            model = Davidson(**parameters).fit(pairs[train], y[train])
            aucs.append(comparison_auc(y[rest], model.decision_function(pairs[rest])))
        means[parameters["alpha"]] = np.mean(aucs)
    found = forward_search(Davidson(), grid, pairs, y, shares=shares)
    assert found.model.alpha == max(means, key=means.get)
    assert found.failed == 0
    assert not hasattr(found.model, "coef_")


def test_the_search_counts_failures_and_never_chooses_them():
    X, y = some_matches()
    pairs = scaled_pairs(X, np.arange(40), np.arange(40))
    grid = {"fails": [True, False], "size": [1e-12, 1.0], "bias": [-1.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of the fits that fail
        found = forward_search(Along(), grid, pairs, y, shares=(0.5, 0.75, 0.8))
    assert (found.model.fails, found.model.size) == (False, 1.0)
    assert found.failed == 9  # of four machines on three splits


def test_weights_are_learned_with():
    X, y = some_matches(3)
    pairs = scaled_pairs(X, np.arange(40), np.arange(40))
    weight = np.where(y == 0, 20.0, 1.0)  # without them the machine is degenerate
    grid = {"C": [1e-3, 1e-1, 10.0]}
    aucs = []
    for C in grid["C"]:
        (train, rest), *_ = forward_splits(40, (0.6,))
        model = SVMCompare(C, "linear").fit(pairs[train], y[train], weight[train])
        aucs.append(auc_scorer(model, pairs[rest], y[rest]))
    found = forward_search(SVMCompare(kernel="linear"), grid, pairs, y, shares=(0.6,), sample_weight=weight)
    assert grid["C"][int(np.argmax(aucs))] == found.model.C


@pytest.mark.parametrize("seed", range(5))
def test_tests_over_seasons_are_those_of_the_books(seed):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(0.3, 1, 8), rng.normal(size=8)
    gap, tests = ours - theirs, season_tests(ours, theirs)
    assert tests.won == np.sum(gap > 0)
    assert tests.sign == pytest.approx(stats.binomtest(tests.won, 8).pvalue)
    assert tests.ranks == pytest.approx(stats.wilcoxon(gap, method="exact").pvalue)
    spread = 1.96 * gap.std() / np.sqrt(8)
    assert tests.low == pytest.approx(gap.mean() - spread, abs=0.25 * spread)
    assert tests.high == pytest.approx(gap.mean() + spread, abs=0.25 * spread)
    assert tests == season_tests(ours, theirs)


def test_equal_seasons_count_for_nobody():
    assert season_tests([0.5, 0.4], [0.5, 0.4]) == (0, 1.0, 1.0, 0.0, 0.0)
    some = season_tests([0.5, 0.6, 0.7], [0.5, 0.5, 0.5])
    assert (some.won, some.sign) == (2, 0.5)


def test_seasons_must_be_paired():
    with pytest.raises(ValueError, match=r"theirs has shape \(2,\); expected \(3,\)"):
        season_tests([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match=r"ours\[1\] is nan; expected finite numbers"):
        season_tests([1, np.nan], [1, 2])
