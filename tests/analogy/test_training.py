"""What both analogy rankers share: scores, errors, and the attributes that a later fit
replaces."""

import numpy as np
import pytest
from sklearn.base import clone
from toy_rankings import rankings

from preflearn.analogy import Able2Rank, AnKerRank
from preflearn.ranking import bradley_terry

LEARNERS = [AnKerRank(2.0, random_state=0), Able2Rank(3)]
EACH = pytest.mark.parametrize("learner", LEARNERS, ids=["ankerrank", "able2rank"])


@EACH
def test_scores_are_the_aggregated_preferences(learner):
    X, scores = rankings(0)
    model = clone(learner).fit(X, scores)
    np.testing.assert_array_equal(
        model.rank_function(X), bradley_terry(model.preferences(X))
    )


@EACH
def test_rounding_outside_the_unit_interval_is_clipped(learner):
    X, scores = rankings(1)
    X[0] = 1.0
    X[1] = 0.0
    model = clone(learner).fit(X, scores)
    near = X.copy()
    near[0] += 5e-10
    near[1] -= 5e-10
    again = clone(learner).fit(near, scores)
    np.testing.assert_array_equal(again.preferences(near), model.preferences(X))


@EACH
def test_the_size_of_blocks_does_not_matter(learner, monkeypatch):
    X, scores = rankings(5, n=12)
    model = clone(learner).fit(X, scores)
    P = model.preferences(X)
    monkeypatch.setattr("preflearn.analogy.kernel._BLOCK_VALUES", 100)
    np.testing.assert_allclose(model.preferences(X), P, rtol=0, atol=1e-12)


def test_the_same_seed_gives_the_same_model():
    X, scores = rankings(0, n=12)
    one, again, other = (AnKerRank(random_state=k).fit(X, scores) for k in (4, 4, 5))
    assert str(again.curve_) == str(one.curve_) != str(other.curve_)
    np.testing.assert_array_equal(again.preferences(X), one.preferences(X))


@EACH
def test_new_parameters_and_a_failed_fit_do_not_change_the_fitted_model(learner):
    bad = {"k": -1, "zero": "positive", "orientation": "antisymmetric"}
    model = clone(learner).fit(*rankings(8))
    Q = rankings(9)[0]
    before = model.preferences(Q)
    model.set_params(
        **{name: value for name, value in bad.items() if name in model.get_params()}
    )
    with pytest.raises(ValueError, match=r"^(k|zero) is "):
        model.fit(*rankings(10, n=3))
    np.testing.assert_array_equal(model.preferences(Q), before)


def test_a_later_fit_removes_the_results_of_an_earlier_choice():
    X, scores = rankings(6, n=12)
    model = AnKerRank()
    assert model.fit(X, scores).curve_
    assert model.set_params(C=1.0).fit(X, scores).curve_ is None


@EACH
@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[0.0], [1.5]], r"X\[1, 0\] is 1.5.*DomainScaler"),
        ([[0.0], [-0.1]], r"X\[1, 0\] is -0.1.*DomainScaler"),
    ],
)
def test_features_outside_the_unit_interval_are_named(learner, X, words):
    with pytest.raises(ValueError, match=words):
        clone(learner).fit(X, [0, 1])
    model = clone(learner).fit(*rankings(0, d=1))
    with pytest.raises(ValueError, match=words.replace("X", "Q", 1)):
        model.preferences(X)


def test_a_bad_seed_is_named():
    with pytest.raises(ValueError, match="random_state is -1"):
        AnKerRank(random_state=-1).fit(*rankings(0))
