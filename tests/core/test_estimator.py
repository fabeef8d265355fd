"""The comparison function of an estimator, and the use of estimators in
scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)

from preflearn.core.estimator import ComparisonEstimator, check_new_items
from preflearn.core.validation import check_labels
from preflearn.metrics import threshold
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
        self.coef_ = np.linalg.solve(
            D.T @ D + self.penalty * np.eye(D.shape[1]), D.T @ y
        )
        self.tau_ = self.tau
        return self

    def rank_function(self, X):
        return check_new_items(self, X) @ self.coef_


def simulated(m=120, n=40, seed=0):
    """Pairs with ties and preferences that a linear ranking function explains."""
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(n, 3))
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    pairs = Pairs(items, index)
    return pairs, threshold(pairs.differences() @ [1.0, -2.0, 0.5], 1.0)


@pytest.mark.parametrize("form", [as_pairs, np.asarray])
def test_decisions_labels_and_scores_follow_from_the_ranking_function(form):
    pairs, y = simulated()
    model = LeastSquares().fit(form(pairs), y)
    expected = [(pairs.items[i] - pairs.items[j]) @ model.coef_ for i, j in pairs.index]
    labels = threshold(expected, 0.5)
    np.testing.assert_allclose(
        model.decision_function(form(pairs)), expected, atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(form(pairs)), labels)
    np.testing.assert_array_equal(model.predict(pairs.swapped()), -labels)
    weights = np.arange(len(y)) % 4
    assert model.score(form(pairs), y) == pytest.approx(np.mean(labels == y))
    assert model.score(form(pairs), y, weights) == pytest.approx(
        np.average(labels == y, weights=weights)
    )


def test_each_item_is_scored_once():
    """An item in many pairs needs one evaluation of r, and an item in no pair needs
    none."""
    seen = []

    class Counting(LeastSquares):
        def rank_function(self, X):
            seen.append(len(X))
            return super().rank_function(X)

    pairs = Pairs(np.arange(10.0).reshape(-1, 1), [[9, 2], [2, 9], [2, 5]])
    differences = Counting().fit(pairs, [1, -1, -1]).decision_function(pairs)
    assert seen == [3]
    assert differences[0] == -differences[1]


def test_bad_input_to_a_fitted_estimator_is_named():
    pairs, y = simulated()
    model = LeastSquares()
    with pytest.raises(NotFittedError):
        model.predict(pairs)
    model.fit(pairs, y)
    for call, words in (
        (lambda: model.rank_function(np.zeros((4, 2))), "X has 2 features.* 3"),
        (lambda: model.predict(Pairs([[1.0], [2.0]], [[0, 1]])), "1 features.* 3"),
        (lambda: model.decision_function(np.zeros((4, 3))), "^pairs "),
        (lambda: model.score(pairs, [1, 0, 1]), "^y "),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_an_estimator_without_a_ranking_function_is_named():
    class Empty(ComparisonEstimator):
        def fit(self, pairs, y):
            self.n_features_in_ = as_pairs(pairs).shape[2]
            return self

    pairs, y = simulated(m=5)
    with pytest.raises(AttributeError, match="Empty"):
        Empty().fit(pairs, y).predict(pairs)


def test_a_saved_model_does_not_hold_the_pairs_of_its_fit():
    pairs, y = simulated(m=5000)
    model = LogisticCompare().fit(pairs, y)
    saved = pickle.dumps(model)
    assert len(saved) < pairs.index.nbytes / 10
    np.testing.assert_array_equal(
        pickle.loads(saved).predict(pairs), model.predict(pairs)
    )


def test_cross_val_predict_gives_labels_and_rejects_decisions():
    """For decision values, cross_val_predict replaces the labels by 0, 1, 2 before it
    fits."""
    pairs, y = simulated()
    assert LeastSquares().classes_.tolist() == [-1, 0, 1]
    folds = KFold(3)
    expected = np.concatenate(
        [
            LeastSquares().fit(pairs[train], y[train]).predict(pairs[test])
            for train, test in folds.split(y)
        ]
    )
    predicted = cross_val_predict(LeastSquares(), pairs, y, cv=folds)
    np.testing.assert_array_equal(predicted, expected)
    with pytest.raises(ValueError, match=r"y\[0\] is 2.*method='predict'"):
        cross_val_predict(
            LeastSquares(), pairs, y, cv=folds, method="decision_function"
        )
    strict = y != 0
    with (
        pytest.warns(RuntimeWarning, match="classes"),
        pytest.raises((IndexError, ValueError), match=r"indices|shape"),
    ):
        cross_val_predict(
            LeastSquares(),
            pairs[strict],
            y[strict],
            cv=folds,
            method="decision_function",
        )


@pytest.mark.parametrize("form", [as_pairs, np.asarray])
def test_it_is_a_classifier_for_clone_cross_validation_and_search(form):
    pairs, y = simulated()
    model = clone(LeastSquares(penalty=2.0).fit(pairs, y))
    assert model.get_params() == {"penalty": 2.0, "tau": 0.5}
    assert not hasattr(model, "coef_")
    assert is_classifier(model)
    expected = []
    for train, test in StratifiedKFold(3).split(np.zeros(len(y)), y):
        fitted = LeastSquares().fit(pairs[train], y[train])
        expected.append(np.mean(fitted.predict(pairs[test]) == y[test]))
    np.testing.assert_allclose(
        cross_val_score(LeastSquares(), form(pairs), y, cv=3), expected
    )
    grid = {"tau": [0.05, 0.5, 5.0], "penalty": [1e-3, 1e3]}
    search = GridSearchCV(LeastSquares(), grid, cv=KFold(3)).fit(form(pairs), y)
    best = LeastSquares(**search.best_params_)
    assert search.best_score_ == pytest.approx(
        cross_val_score(best, pairs, y, cv=KFold(3)).mean()
    )
    np.testing.assert_array_equal(
        search.predict(form(pairs)), best.fit(pairs, y).predict(pairs)
    )
