"""The comparison function of an estimator, and its life inside scikit-learn."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)

from preflearn.checks import check_labels
from preflearn.ground.estimator import ComparisonEstimator, check_asked
from preflearn.metrics import comparison_loss, threshold
from preflearn.pairs import Pairs, as_pairs
from preflearn.svm import LogisticCompare


class LeastSquares(ComparisonEstimator):
    """r(x) = w'x with w fitted to the labels by ridge regression on the differences."""

    def __init__(self, penalty: float = 1e-3, tau: float = 0.5) -> None:
        self.penalty = penalty
        self.tau = tau

    def fit(self, pairs, y):
        pairs = as_pairs(pairs)
        y = check_labels(y, len(pairs))
        D = pairs.differences()
        self.n_features_in_ = D.shape[1]
        self.coef_ = np.linalg.solve(D.T @ D + self.penalty * np.eye(D.shape[1]), D.T @ y)
        self.tau_ = self.tau
        return self

    def rank_function(self, X):
        return check_asked(self, X) @ self.coef_


def simulated(m=120, n=40, seed=0):
    """Pairs with ties and preferences that a linear ranking function explains."""
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(n, 3))
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    pairs = Pairs(items, index)
    return pairs, threshold(pairs.differences() @ [1.0, -2.0, 0.5], 1.0)


@pytest.fixture(params=[as_pairs, np.asarray])
def form(request):
    """The same comparisons as Pairs and as an (m, 2, p) array."""
    return request.param


# ---- The estimator


def test_decision_is_the_difference_of_scores(form):
    pairs, y = simulated()
    model = LeastSquares().fit(form(pairs), y)
    expected = [(pairs.items[i] - pairs.items[j]) @ model.coef_ for i, j in pairs.index]
    np.testing.assert_allclose(model.decision_function(form(pairs)), expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict(form(pairs)), threshold(expected, 0.5))
    np.testing.assert_array_equal(model.predict(pairs.swapped()), -model.predict(pairs))


def test_each_item_is_scored_once():
    """An item in many pairs, or in none, costs one evaluation of r, or none."""
    seen = []

    class Counting(LeastSquares):
        def rank_function(self, X):
            seen.append(len(X))
            return super().rank_function(X)

    pairs = Pairs(np.arange(10.0).reshape(-1, 1), [[9, 2], [2, 9], [2, 5]])
    differences = Counting().fit(pairs, [1, -1, -1]).decision_function(pairs)
    assert seen == [3]
    assert differences[0] == -differences[1]


def test_score_is_one_minus_the_weighted_loss(form):
    pairs, y = simulated()
    model = LeastSquares().fit(pairs, y)
    weights = np.arange(len(y)) % 4
    predicted = model.predict(pairs)
    assert model.score(form(pairs), y) == pytest.approx(np.mean(predicted == y))
    expected = 1 - comparison_loss(y, predicted, weights)
    assert model.score(form(pairs), y, weights) == expected
    repeated = np.repeat(np.arange(len(y)), weights)
    assert model.score(pairs[repeated], y[repeated]) == pytest.approx(expected, abs=1e-12)


def test_bad_input_to_a_fitted_estimator_is_named():
    pairs, y = simulated()
    model = LeastSquares()
    with pytest.raises(NotFittedError):
        model.predict(pairs)
    model.fit(pairs, y)
    with pytest.raises(ValueError, match="X has 2 features; expected 3, the features of the fit"):
        model.rank_function(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="X has 1 features; expected 3"):
        model.predict(Pairs([[1.0], [2.0]], [[0, 1]]))
    with pytest.raises(ValueError, match=r"X\[0, 2\] is nan; expected finite"):
        model.rank_function([[0.0, 1.0, math.nan]])
    with pytest.raises(ValueError, match=r"pairs has shape \(4, 3\); expected .*, or Pairs"):
        model.decision_function(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="there are no pairs"):
        model.predict(pairs[[]])
    with pytest.raises(ValueError, match=r"y has shape \(3,\); expected \(120,\): one label a pair"):
        model.score(pairs, [1, 0, 1])
    with pytest.raises(ValueError, match=r"y\[0\] is 7; expected"):
        model.score(pairs, np.full(len(pairs), 7))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(1,\); expected \(120,\)"):
        model.score(pairs, y, [1.0])


def test_an_estimator_without_a_ranking_function_says_so():
    class Empty(ComparisonEstimator):
        def fit(self, pairs, y):
            self.n_features_in_ = as_pairs(pairs).shape[2]
            return self

    pairs, y = simulated(m=5)
    with pytest.raises(AttributeError, match="Empty defines no ranking function"):
        Empty().fit(pairs, y).predict(pairs)


def test_a_saved_model_does_not_hold_the_pairs_of_its_fit():
    pairs, y = simulated(m=5000)
    model = LogisticCompare().fit(pairs, y)
    saved = pickle.dumps(model)
    assert len(saved) < pairs.index.nbytes / 10
    np.testing.assert_array_equal(pickle.loads(saved).predict(pairs), model.predict(pairs))


# ---- Inside scikit-learn


def test_it_is_a_classifier_with_its_parameters():
    model = clone(LeastSquares(penalty=2.0).fit(*simulated())).set_params(tau=0.25)
    assert model.get_params() == {"penalty": 2.0, "tau": 0.25}
    assert not hasattr(model, "coef_")
    assert is_classifier(model)
    assert model.classes_.tolist() == [-1, 0, 1]


@pytest.mark.parametrize("cv", [3, KFold(4), StratifiedKFold(3, shuffle=True, random_state=0)])
def test_cross_validation_is_the_loop_over_its_folds(form, cv):
    pairs, y = simulated()
    scores = cross_val_score(LeastSquares(), form(pairs), y, cv=cv)
    splitter = StratifiedKFold(3) if cv == 3 else cv
    expected = []
    for train, test in splitter.split(np.zeros(len(y)), y):
        model = LeastSquares().fit(pairs[train], y[train])
        expected.append(np.mean(model.predict(pairs[test]) == y[test]))
    np.testing.assert_allclose(scores, expected)
    assert scores.mean() > 0.7


def test_grid_search_finds_and_refits_the_best(form):
    pairs, y = simulated()
    grid = {"tau": [0.05, 0.5, 5.0], "penalty": [1e-3, 1e3]}
    search = GridSearchCV(LeastSquares(), grid, cv=KFold(3), n_jobs=1).fit(form(pairs), y)
    best = LeastSquares(**search.best_params_)
    assert search.best_score_ == pytest.approx(cross_val_score(best, pairs, y, cv=KFold(3)).mean())
    refitted = best.fit(pairs, y)
    np.testing.assert_allclose(search.best_estimator_.coef_, refitted.coef_, atol=1e-12)
    np.testing.assert_array_equal(search.predict(form(pairs)), refitted.predict(pairs))
    assert search.score(form(pairs), y) == refitted.score(pairs, y)


def test_splitting_keeps_comparisons_and_labels_together():
    pairs, y = simulated()
    train, test, y_train, y_test = train_test_split(pairs, y, test_size=0.25, random_state=0, stratify=y)
    assert isinstance(train, Pairs)
    assert (len(train), len(test)) == (90, 30)
    w = [1.0, -2.0, 0.5]  # the labels of `simulated` follow from the features
    np.testing.assert_array_equal(threshold(train.differences() @ w, 1.0), y_train)
    np.testing.assert_array_equal(threshold(test.differences() @ w, 1.0), y_test)
