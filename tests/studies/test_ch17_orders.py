"""Learners of an order: what each must get right, and that a turned order turns the forecast."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from preflearn.metrics import ranking_loss
from studies import ch17_objects, ch17_ratings
from studies.ch17_orders import FITS, Scored, learners, ordered, seed_of
from studies.ch17_protocol import BUDGET, CONSTANT

CONFIGURED = {one.name: one for one in ch17_ratings.LEARNERS + ch17_objects.LEARNERS}
OF_ONE_USER = [name for name in CONFIGURED if name not in ("popularity", "Bradley-Terry")]


@pytest.fixture(scope="module")
def toy():
    """Items of two features of use and one without, in [0, 1], and others to rank."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 3))
    y = X @ [2.0, 1.0, 0.0]
    return Scored(X[:30], y[:30], 5), X[30:], y[30:]


def fit_of(name):
    return FITS.get(name) or CONFIGURED[name].fit  # those of ratings are fitted to lists of users


@pytest.mark.parametrize("name", OF_ONE_USER)
def test_an_order_is_learned_and_a_turned_one_turns_the_forecast(name, toy):
    train, Q, y = toy
    least = []
    for options in CONFIGURED[name].configurations:
        losses = [
            ranking_loss(-y, -ordered(fit_of(name)(train._replace(y=sign * train.y), **options)(Q)))
            for sign in (1, -1)
        ]
        least.append(losses)
    loss, turned = min(least)
    if name == CONSTANT:
        assert (loss, turned) == (0.5, 0.5)
    elif name == "random":
        assert loss == turned  # it does not look
    else:
        assert loss < 0.3
        assert abs(loss + turned - 1) < 0.1


def test_each_learner_has_the_budget_or_nothing_to_choose():
    for learner in ch17_objects.LEARNERS + ch17_ratings.LEARNERS:
        found = [tuple(sorted(one.items())) for one in learner.configurations]
        assert len(found) in (1, BUDGET)
        assert len(set(found)) == len(found)
    for arena in (ch17_objects, ch17_ratings):
        assert set(arena.GRIDS) <= {one.name for one in arena.LEARNERS}
        assert {CONSTANT, "random"} <= {one.name for one in arena.LEARNERS}


def test_widths_alternate_along_a_grid_whose_middle_comes_first():
    (learner,) = learners({"some": {"a": [1, 2, 3, 4, 5, 6, 7, 8], "b": [-1, 1]}}, {"some": len})
    assert [one["a"] * one["b"] for one in learner.configurations] == [4, -5, -3, 6, 2, -7, -1, 8]


def test_units_of_features_change_nothing_but_for_methods_by_analogy(toy):
    train, Q, _ = toy
    for name, fit in FITS.items():
        options = CONFIGURED[name].configurations[0]
        as_is = fit(train, **options)(Q)
        moved = fit(train._replace(X=8 * train.X + 3), **options)(8 * Q + 3)
        assert np.array_equal(np.argsort(as_is, kind="stable"), np.argsort(moved, kind="stable")), name


def test_logistic_regression_is_that_on_the_differences_of_all_pairs(toy):
    train, Q, _ = toy
    scores = FITS["logistic regression"](train, C=50.0)(Q)
    X = (train.X - train.X.mean(axis=0)) / (train.X - train.X.mean(axis=0)).std()
    i, j = np.nonzero(np.greater.outer(train.y, train.y))
    U, labels = np.vstack([X[i] - X[j], X[j] - X[i]]), np.repeat([1, -1], len(i))  # each pair twice
    w = LogisticRegression(C=50.0 / len(labels), fit_intercept=False, tol=1e-10).fit(U, labels).coef_[0]
    expected = Q @ w / (train.X - train.X.mean(axis=0)).std()
    assert np.allclose(np.diff(scores), np.diff(expected), rtol=1e-3, atol=1e-5)


def test_the_best_feature_may_be_one_that_is_better_small():
    X = np.column_stack([[0.0, 1, 3, 2], [9.0, 7, 2, 1]])
    assert FITS["best feature"](Scored(X, np.arange(4.0), 0))(X).tolist() == [-9, -7, -2, -1]


def test_draws_depend_on_the_name_alone():
    names = [f"{a}/{b}" for a in ("D1-D2", "D2-D1") for b in range(3)]
    assert len({seed_of(name) for name in names}) == len(names)
    assert seed_of("D1-D2/0") == seed_of("D1-D2/0")
