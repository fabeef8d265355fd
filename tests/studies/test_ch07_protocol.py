"""The protocol of the chapter on matches: scaling, the search on later matches, and
tests over seasons."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from preflearn.metrics import comparison_auc
from preflearn.pairs import Pairs
from preflearn.svm import SVMCompare
from preflearn_book.studies.ch07_histories import forward_splits
from preflearn_book.studies.ch07_protocol import (
    auc_scorer,
    forward_search,
    scaled_pairs,
    score_differences,
)


class RankByFirstFeature(BaseEstimator):
    """Rank by the first feature; fail, or return only rounding errors, where a test
    asks for it."""

    def __init__(self, fails=False, size=1.0, bias=None):
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
        return self.size * pairs.differences()[:, 0]


def simulated_matches(seed=0, n=40, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2, p)) * 10.0 ** np.arange(p) + 5
    y = np.sign(np.round((X[:, 0] - X[:, 1])[:, 0] + rng.normal(size=n))).astype(int)
    return X, y


def test_features_are_scaled_by_the_players_of_the_training_matches():
    X, _ = simulated_matches()
    # a constant feature of the training matches is centered, but not scaled
    X[5:25, :, 1] = 7.0
    by = np.arange(5, 25)
    rows = np.array([0, 30, 31])
    players = X[by].reshape(-1, 3)
    found = scaled_pairs(X, rows, by)
    expected = (X[rows] - players.mean(axis=0)) / [
        players[:, 0].std(),
        1,
        players[:, 2].std(),
    ]
    np.testing.assert_allclose(np.stack([found.first, found.second], axis=1), expected)
    degrees = abs(found.incidence()).sum(axis=0)
    # each appearance of a player is a separate item
    np.testing.assert_array_equal(degrees, np.ones(6))


@pytest.mark.parametrize(
    ("bias", "size", "kept"),
    [(None, 1e-12, True), (-1.0, 1e-12, False), (-1.0, 1.0, True)],
)
def test_only_scores_of_models_with_a_bias_can_be_rounding_errors(bias, size, kept):
    X, y = simulated_matches()
    pairs = Pairs.from_arrays(X[:, 0], X[:, 1])
    model = RankByFirstFeature(size=size, bias=bias).fit(pairs, y)
    expected = size * pairs.differences()[:, 0]
    np.testing.assert_array_equal(
        score_differences(model, pairs), expected if kept else 0 * expected
    )
    assert auc_scorer(model, pairs, y) == (comparison_auc(y, expected) if kept else -1)


@pytest.mark.parametrize("seed", range(3))
def test_the_search_takes_the_best_mean_over_later_matches(seed):
    X, y = simulated_matches(seed)
    pairs = scaled_pairs(X, np.arange(40), np.arange(40))
    weight = np.where(y == 0, 20.0, 1.0)  # without weights the SVM is degenerate
    shares = (0.5, 0.8)
    grid = [1e-3, 1e-1, 10.0]
    aucs = np.empty((len(grid), len(shares)))
    for k, C in enumerate(grid):
        for split, (train, rest) in enumerate(forward_splits(40, shares)):
            model = SVMCompare(C, "linear").fit(pairs[train], y[train], weight[train])
            aucs[k, split] = auc_scorer(model, pairs[rest], y[rest])
    model, failed = forward_search(
        SVMCompare(kernel="linear"),
        {"C": grid},
        pairs,
        y,
        shares=shares,
        sample_weight=weight,
    )
    assert grid[aucs.mean(axis=1).argmax()] == model.C
    assert failed == np.sum(aucs == -1)
    assert not hasattr(model, "coef_")


def test_the_search_counts_failures_and_never_chooses_them():
    X, y = simulated_matches()
    pairs = scaled_pairs(X, np.arange(40), np.arange(40))
    grid = {"fails": [True, False], "size": [1e-12, 1.0], "bias": [-1.0]}
    with warnings.catch_warnings():
        # ignores scikit-learn's warnings about failing fits
        warnings.simplefilter("ignore")
        model, failed = forward_search(
            RankByFirstFeature(), grid, pairs, y, shares=(0.5, 0.75, 0.8)
        )
    assert (model.fails, model.size) == (False, 1.0)
    assert failed == 9  # three of the four models fail on each of three splits
