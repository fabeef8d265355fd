"""Learners of an order: each must learn a simple order, and the reverse order from
reversed scores."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from preflearn.metrics import ranking_loss
from preflearn_book.studies.ch17_learners import LEARNERS
from preflearn_book.studies.ch17_orders import (
    Scored,
    fit_best_feature,
    fit_lambdamart,
    fit_logistic,
    merge_rounded,
)
from preflearn_book.studies.ch17_protocol import CONSTANT

# The learners of ratings are fitted to lists of users.
CONFIGURED = {
    learner.name: learner._replace(fit=learner.fit.args[0])
    for learner in LEARNERS["ratings"]
} | {learner.name: learner for learner in LEARNERS["objects"]}


@pytest.fixture(scope="module")
def toy():
    """Return items with three features in [0, 1], two of which are informative, and
    items to rank."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 3))
    y = X @ [2.0, 1.0, 0.0]
    return Scored(X[:30], y[:30], 5), X[30:], y[30:]


@pytest.mark.parametrize(
    "name", [name for name in CONFIGURED if name not in ("popularity", "Bradley-Terry")]
)
def test_an_order_and_its_reverse_are_learned(name, toy):
    train, Q, y = toy
    fit = CONFIGURED[name].fit
    losses = []
    for options in CONFIGURED[name].configurations:
        scores = [
            merge_rounded(fit(train._replace(y=sign * train.y), **options)(Q))
            for sign in (1, -1)
        ]
        losses.append([ranking_loss(-y, -found) for found in scores])
    loss, reversed_loss = min(losses)
    if name == CONSTANT:
        assert (loss, reversed_loss) == (0.5, 0.5)
    elif name == "random":
        assert loss == reversed_loss
    else:
        assert loss < 0.3
        assert abs(loss + reversed_loss - 1) < 0.1


def test_units_of_features_do_not_change_the_order(toy):
    train, Q, _ = toy
    by_analogy = ("AnKer-rank", "able2rank")  # these need features in [0, 1]
    for name, learner in CONFIGURED.items():
        if name in (*by_analogy, "popularity", "Bradley-Terry"):
            continue
        fit = learner.fit
        options = learner.configurations[0]
        scores = fit(train, **options)(Q)
        rescaled = fit(train._replace(X=8 * train.X + 3), **options)(8 * Q + 3)
        assert np.array_equal(
            np.argsort(scores, kind="stable"), np.argsort(rescaled, kind="stable")
        ), name


def test_logistic_regression_is_that_on_the_differences_of_all_pairs(toy):
    train, Q, _ = toy
    scores = fit_logistic(train, C=50.0)(Q)
    X = (train.X - train.X.mean(axis=0)) / (train.X - train.X.mean(axis=0)).std()
    i, j = np.nonzero(np.greater.outer(train.y, train.y))
    # each pair occurs in both orders
    U = np.vstack([X[i] - X[j], X[j] - X[i]])
    labels = np.repeat([1, -1], len(i))
    w = (
        LogisticRegression(C=50.0 / len(labels), fit_intercept=False, tol=1e-10)
        .fit(U, labels)
        .coef_[0]
    )
    expected = Q @ w / (train.X - train.X.mean(axis=0)).std()
    assert np.allclose(np.diff(scores), np.diff(expected), rtol=1e-3, atol=1e-5)


def test_items_of_different_queries_are_not_compared(toy):
    """Adding an offset to each query does not change what learners of pairs learn."""
    train, Q, _ = toy
    qid = np.arange(len(train.y)) % 3
    queries = train._replace(qid=qid, y=np.round(8 * train.y))
    shifted = queries._replace(y=queries.y + 100.0 * qid)
    of_pairs = (
        "ranking SVM",
        "RankRLS",
        "RankNet",
        "logistic regression",
        "LambdaMART",
        "best feature",
        "RLS, centered by query",
    )
    for learner in LEARNERS["queries"]:
        options = learner.configurations[0]
        scores, other = (learner.fit(data, **options)(Q) for data in (queries, shifted))
        same = np.allclose(scores - scores.mean(), other - other.mean(), atol=1e-4)
        if learner.name in of_pairs:
            assert same, learner.name
        elif learner.name in ("RLS", "boosted trees", "Gaussian process"):
            assert not same, learner.name


def test_lambdamart_takes_queries_in_any_order(toy):
    train, Q, _ = toy
    qid = np.repeat([0, 1, 2], 10)
    queries = train._replace(qid=qid)
    mixed = np.argsort(np.arange(30) % 10, kind="stable")
    shuffled = queries._replace(X=train.X[mixed], y=train.y[mixed], qid=qid[mixed])
    one, other = (fit_lambdamart(data, 3, 6)(Q) for data in (queries, shuffled))
    np.testing.assert_array_equal(one, other)


def test_the_best_feature_may_be_one_that_is_better_small():
    X = np.column_stack([[0.0, 1, 3, 2], [9.0, 7, 2, 1]])
    assert fit_best_feature(Scored(X, np.arange(4.0), 0))(X).tolist() == [
        -9,
        -7,
        -2,
        -1,
    ]
