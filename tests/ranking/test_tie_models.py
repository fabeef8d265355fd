"""Davidson's model and the ordinal models, compared with their definitions and
limits."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from ranking.comparisons import (
    MODELS,
    compared,
    every_model,
    objective,
    probabilities,
    tie_parameter,
)
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison


@every_model
def test_the_fit_and_its_probabilities_are_those_of_the_likelihood_as_written(model):
    pairs, y = compared(1)
    weights = np.random.default_rng(1).uniform(0.2, 3, len(y))
    fitted = clone(model).fit(pairs, y, weights)
    point = np.append(fitted.coef_, tie_parameter(fitted))

    def value(point):
        return objective(model, pairs, y, point[:-1], point[-1], weights)

    assert fitted.objective_ == pytest.approx(value(point), rel=1e-12)
    best = minimize(value, [0.0, 0.0, 0.0, 0.5])
    assert fitted.objective_ == pytest.approx(best.fun, rel=1e-7)
    np.testing.assert_allclose(point, best.x, atol=2e-4)
    expected = probabilities(
        model, pairs.differences() @ fitted.coef_, tie_parameter(fitted)
    )
    np.testing.assert_allclose(fitted.predict_proba(pairs), expected, rtol=1e-9)


@pytest.mark.parametrize("width", [0.05, 1.2, 3.0])
@every_model
def test_the_prediction_is_the_most_probable_outcome(model, width):
    fitted = clone(model).fit(*compared(11, m=300, width=width))
    line = (
        np.linspace(-4, 4, 400)[:, None] * fitted.coef_ / (fitted.coef_ @ fitted.coef_)
    )
    # the differences d are from -4 to 4
    dense = Pairs(np.vstack([np.zeros((1, 3)), line]), [(k, 0) for k in range(1, 401)])
    np.testing.assert_array_equal(
        fitted.predict(dense), fitted.predict_proba(dense).argmax(axis=1) - 1
    )
    assert (fitted.tau_ > 0) == (fitted.predict(dense) == 0).any() == (width > 1)
    _, tie, first = probabilities(
        model, np.array([fitted.tau_]), tie_parameter(fitted)
    )[0]
    if fitted.tau_ > 0:
        assert tie == pytest.approx(first, rel=1e-9)
    else:
        assert first > tie > 0
    assert fitted.predict(Pairs(np.ones((2, 3)), [[0, 1]])) == 0


def test_without_ties_davidson_and_the_logit_are_the_bradley_terry_model():
    pairs, y = compared(12)
    pairs = pairs[y != 0]
    y = y[y != 0]
    reference = LogisticRegression(C=10, fit_intercept=False, tol=1e-10, max_iter=1000)
    reference.fit(pairs.differences(), y)
    for model in MODELS[:2]:
        fitted = clone(model).fit(pairs, y)
        np.testing.assert_allclose(fitted.coef_, reference.coef_[0], atol=1e-5)
        p = fitted.predict_proba(pairs)
        assert (p[:, 1] == 0).all()
        np.testing.assert_allclose(
            p[:, [0, 2]], reference.predict_proba(pairs.differences()), atol=1e-5
        )


@every_model
def test_one_tie_among_many_approaches_the_limit_without_ties(model):
    pairs, y = compared(13, m=200)
    y[y == 0] = 1
    limit = clone(model).fit(pairs, y)
    y[0] = 0
    weights = np.ones(len(y))
    weights[0] = 1e-7
    near = clone(model).fit(pairs, y, weights)
    weights[0] = 0
    without = clone(model).fit(pairs, y, weights)
    np.testing.assert_allclose(near.coef_, without.coef_, atol=1e-5)
    assert 0 < near.predict_proba(pairs)[:, 1].max() < 1e-6
    assert without.tau_ == limit.tau_ == 0


@every_model
def test_a_large_offset_of_features_does_not_change_the_fit(model):
    pairs, y = compared(15)
    items = np.round(pairs.items * 2**20) / 2**20  # makes the sum with the offset exact
    near = clone(model).fit(Pairs(items, pairs.index), y)
    far = clone(model).fit(Pairs(items + 2.0**27, pairs.index), y)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-9)
    assert tie_parameter(far) == pytest.approx(tie_parameter(near), rel=1e-9)


@pytest.mark.parametrize("kinds", [(-1, 1), (0, 1), (-1, 0, 1)])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
@pytest.mark.filterwarnings("ignore:Number of classes in training fold")
def test_labels_that_scikit_learn_encoded_are_rejected(kinds, method):
    """cross_val_predict replaces the labels by 0, 1, ... before it calls fit."""
    pairs, y = compared(22, m=200)
    kept = np.isin(y, kinds)
    with pytest.raises((IndexError, ValueError), match=r"arrays used as indices|is 2"):
        cross_val_predict(Davidson(), pairs[kept], y[kept], method=method, cv=3)


@every_model
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_features_does_not_matter_if_the_penalty_has_the_same_unit(
    model, scale
):
    pairs, y = compared(19)
    reference = clone(model).fit(pairs, y)
    scaled = clone(model).set_params(alpha=model.alpha * scale**2)
    scaled.fit(Pairs(scale * pairs.items, pairs.index), y)
    np.testing.assert_allclose(scaled.coef_ * scale, reference.coef_, rtol=1e-6)


@every_model
def test_separable_preferences_are_fitted_and_a_saved_model_predicts_the_same(model):
    X = np.array([[0.0], [0.1], [5.0], [5.1], [10.0], [10.1]])
    pairs, y = Pairs.from_scores(X, np.arange(6) // 2, ties="keep")
    fitted = clone(model).set_params(alpha=1e-6).fit(np.asarray(pairs), y)
    np.testing.assert_array_equal(fitted.predict(pairs), y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        again.predict_proba(pairs), fitted.predict_proba(pairs)
    )


@every_model
@examples(10)
@given(seed=st.integers(0, 10**6))
def test_order_does_not_matter_and_weights_are_numbers_of_copies(model, seed):
    pairs, y = compared(seed, m=30)
    reference = clone(model).fit(pairs, y)
    rng = np.random.default_rng(seed)
    swapped = clone(model).fit(pairs.swapped(), -y)
    np.testing.assert_allclose(swapped.coef_, reference.coef_, atol=1e-8)
    turned = swapped.predict_proba(pairs.swapped())[:, ::-1]
    np.testing.assert_allclose(turned, reference.predict_proba(pairs), atol=1e-8)
    np.testing.assert_array_equal(
        reference.predict(pairs.swapped()), -reference.predict(pairs)
    )
    counts = np.maximum(rng.integers(0, 4, len(y)), np.arange(len(y)) < 3)
    copies = rng.permutation(np.repeat(np.arange(len(y)), counts))
    weighted = clone(model).fit(pairs, y, counts)
    repeated = clone(model).fit(pairs[copies], y[copies])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    assert tie_parameter(weighted) == pytest.approx(tie_parameter(repeated), abs=1e-8)


@every_model
def test_strengths_sum_to_zero_and_those_of_equal_items_are_zero(model):
    pairs, y = compared(16)
    assert clone(model).fit(
        Pairs(np.eye(8), pairs.index), y
    ).coef_.sum() == pytest.approx(0, abs=1e-9)
    equal = clone(model).fit(Pairs(np.full((8, 2), 0.1), pairs.index), y)
    assert equal.coef_.tolist() == [0.0, 0.0]
    assert equal.dual_gap_ < 1e-12
    # the probabilities neither overflow nor become 0
    far = Pairs([[1e6, 0, 0], [0, 0, 0]], [[0, 1], [1, 0]])
    np.testing.assert_allclose(
        clone(model).fit(pairs, y).predict_proba(far).sum(axis=1), 1
    )


@every_model
def test_bad_input_is_named(model):
    pairs, y = compared(21)
    for labels, weights, words in (
        (np.zeros(60), None, f"y .*ties.*{type(model).__name__}"),
        (y, (y == 0).astype(float), "y .*ties"),
        (np.full(60, 2), None, r"y\[0\] is 2.*np\.where"),
        (y[1:], None, "^y "),
        (y, -np.ones(60), "sample_weight"),
    ):
        with pytest.raises(ValueError, match=words):
            clone(model).fit(pairs, labels, weights)
    names = np.array([["Ann", "Bob"], ["Bob", "Cy"]])
    for named in (names, names.tolist(), names.astype(object)):
        with pytest.raises(ValueError, match=r"pairs\[0\] is.*'Ann'.*factorize"):
            clone(model).fit(named, [1, -1])
    with pytest.raises(ValueError, match="alpha is 0"):
        clone(model).set_params(alpha=0).fit(pairs, y)
    with pytest.raises(NotFittedError):
        clone(model).predict_proba(pairs)
    with pytest.raises(ValueError, match=r"link is 'cauchit'.*'probit'"):
        OrdinalComparison("cauchit").fit(pairs, y)
