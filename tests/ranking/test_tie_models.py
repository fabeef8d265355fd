"""Davidson's model and the ordinal ones against their definitions and their limits."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking.comparisons import MODELS, compared, every_model, objective, probabilities, tie_parameter
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict

from preflearn.metrics import log_loss
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison


@every_model
@pytest.mark.parametrize("seed", range(4))
def test_fit_is_the_optimum_of_the_likelihood_as_written(model, seed):
    pairs, y = compared(seed)
    weights = np.random.default_rng(seed).uniform(0.2, 3, len(y)) if seed else np.ones(len(y))
    fitted = clone(model).fit(pairs, y, weights if seed else None)
    point = np.append(fitted.coef_, tie_parameter(fitted))

    def value(point):
        return objective(model, pairs, y, point[:-1], point[-1], weights)

    assert fitted.objective_ == pytest.approx(value(point), rel=1e-12)
    best = minimize(value, [0.0, 0.0, 0.0, 0.5])
    assert fitted.objective_ == pytest.approx(best.fun, rel=1e-7)
    np.testing.assert_allclose(point, best.x, atol=2e-4)


@every_model
def test_probabilities_are_those_of_the_definition(model):
    pairs, y = compared(6)
    fitted = clone(model).fit(pairs, y)
    p = fitted.predict_proba(pairs)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    expected = probabilities(model, pairs.differences() @ fitted.coef_, tie_parameter(fitted))
    np.testing.assert_allclose(p, expected, rtol=1e-9)
    penalty = model.alpha / 2 * fitted.coef_ @ fitted.coef_
    assert log_loss(y, p) * len(y) + penalty == pytest.approx(fitted.objective_, rel=1e-10)


def test_logit_is_rao_and_kuppers_model():
    fitted = OrdinalComparison().fit(*compared(7))
    X = compared(7)[0].items[:2]
    one, two = np.exp(fitted.rank_function(X))
    theta = np.exp(fitted.threshold_)
    second, tie, first = fitted.predict_proba(Pairs(X, [[0, 1]]))[0]
    assert first == pytest.approx(one / (one + theta * two), rel=1e-12)
    assert second == pytest.approx(two / (two + theta * one), rel=1e-12)
    assert tie == pytest.approx((theta**2 - 1) * first * second, rel=1e-10)


@pytest.mark.parametrize("width", [0.1, 1.2, 3.0])
@every_model
def test_prediction_is_the_most_probable_outcome(model, width):
    pairs, y = compared(9, m=300, width=width)
    fitted = clone(model).fit(pairs, y)
    line = np.linspace(-4, 4, 400)[:, None] * fitted.coef_ / (fitted.coef_ @ fitted.coef_)
    dense = Pairs(np.vstack([np.zeros((1, 3)), line]), [(k, 0) for k in range(1, 401)])  # d from -4 to 4
    np.testing.assert_array_equal(fitted.predict(dense), fitted.predict_proba(dense).argmax(axis=1) - 1)
    assert (fitted.tau_ > 0) == (fitted.predict(dense) == 0).any()


@every_model
def test_tau_is_where_a_tie_and_a_preference_are_equally_probable(model):
    fitted = clone(model).fit(*compared(10, m=300, width=2.0))
    assert fitted.tau_ > 0
    _, tie, first = probabilities(model, np.array([fitted.tau_]), tie_parameter(fitted))[0]
    assert tie == pytest.approx(first, rel=1e-9)
    if isinstance(model, Davidson):
        assert fitted.tau_ == pytest.approx(2 * np.log(fitted.nu_))
    else:
        assert fitted.tau_ < fitted.threshold_
    if getattr(model, "link", None) == "logit":
        theta = np.exp(fitted.threshold_)
        assert fitted.tau_ == pytest.approx(np.log(theta - 2 / theta), rel=1e-9)


@every_model
def test_rare_ties_are_never_the_most_probable_but_between_equals(model):
    pairs, y = compared(11, m=300, width=0.05)
    fitted = clone(model).fit(pairs, y)
    assert fitted.tau_ == 0
    same = Pairs(np.ones((2, 3)), [[0, 1]])
    second, tie, first = fitted.predict_proba(same)[0]
    assert first == second > tie > 0
    assert fitted.predict(same) == 0


def test_without_ties_davidson_and_the_logit_are_bradley_and_terrys_model():
    pairs, y = compared(12)
    pairs, y = pairs[y != 0], y[y != 0]
    reference = LogisticRegression(C=10, fit_intercept=False, tol=1e-10, max_iter=1000)
    reference.fit(pairs.differences(), y)
    for model in MODELS[:2]:
        fitted = clone(model).fit(pairs, y)
        np.testing.assert_allclose(fitted.coef_, reference.coef_[0], atol=1e-5)
        p = fitted.predict_proba(pairs)
        assert (p[:, 1] == 0).all()
        np.testing.assert_allclose(p[:, [0, 2]], reference.predict_proba(pairs.differences()), atol=1e-5)
    assert Davidson(0.1).fit(pairs, y).nu_ == 0
    assert OrdinalComparison(alpha=0.1).fit(pairs, y).threshold_ == 0


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
@pytest.mark.parametrize("offset", [2.0**17, 2.0**27])
def test_a_large_offset_changes_nothing(model, offset):
    pairs, y = compared(15)
    items = np.round(pairs.items * 2**20) / 2**20  # so that the offset is added exactly
    near = clone(model).fit(Pairs(items, pairs.index), y)
    far = clone(model).fit(Pairs(items + offset, pairs.index), y)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-9)
    assert tie_parameter(far) == pytest.approx(tie_parameter(near), rel=1e-9)


@every_model
@pytest.mark.parametrize("kinds", [(-1, 1), (0, 1), (-1, 0, 1)])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
@pytest.mark.filterwarnings("ignore:Number of classes in training fold")
def test_labels_that_scikit_learn_encoded_are_refused(model, kinds, method):
    """Its cross_val_predict makes 0, 1, ... of them before it calls fit."""
    pairs, y = compared(22, m=200)
    kept = np.isin(y, kinds)
    with pytest.raises((IndexError, ValueError), match=r"arrays used as indices|is 2; expected one of"):
        cross_val_predict(clone(model), pairs[kept], y[kept], method=method, cv=3)
    predicted = cross_val_predict(clone(model), pairs[kept], y[kept], cv=3)  # not encoded
    assert np.mean(predicted == y[kept]) > 0.4


@every_model
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_unscaled_features_and_weak_penalties_are_fitted(model, scale):
    """With units changed and the penalty with them, the model stays the same."""
    pairs, y = compared(19)
    reference = clone(model).fit(pairs, y)
    scaled = clone(model).set_params(alpha=model.alpha * scale**2)
    scaled.fit(Pairs(scale * pairs.items, pairs.index), y)
    np.testing.assert_allclose(scaled.coef_ * scale, reference.coef_, rtol=1e-6)


@every_model
def test_separable_preferences_are_fitted(model):
    X = np.array([[0.0], [0.1], [5.0], [5.1], [10.0], [10.1]])
    pairs, y = Pairs.from_scores(X, np.arange(6) // 2, ties="keep")
    fitted = clone(model).set_params(alpha=1e-6).fit(pairs, y)
    assert np.isfinite(fitted.coef_).all()
    np.testing.assert_array_equal(fitted.predict(pairs), y)


@every_model
def test_estimators_follow_the_contract_of_scikit_learn(model):
    pairs, y = compared(20)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(clone(model), {"alpha": [0.01, 1.0]}, cv=3, scoring="neg_log_loss").fit(pairs, y)
    assert search.best_params_["alpha"] in (0.01, 1.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    fitted = clone(model).fit(np.asarray(pairs), y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(pairs), fitted.predict_proba(pairs))
    np.testing.assert_allclose(
        fitted.decision_function(pairs), pairs.differences() @ fitted.coef_, atol=1e-12
    )


@every_model
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_order_does_not_matter_and_weights_are_numbers_of_copies(model, seed):
    pairs, y = compared(seed, m=30)
    reference, rng = clone(model).fit(pairs, y), np.random.default_rng(seed)
    swapped = clone(model).fit(pairs.swapped(), -y)
    np.testing.assert_allclose(swapped.coef_, reference.coef_, atol=1e-8)
    turned = swapped.predict_proba(pairs.swapped())[:, ::-1]
    np.testing.assert_allclose(turned, reference.predict_proba(pairs), atol=1e-8)
    np.testing.assert_array_equal(reference.predict(pairs.swapped()), -reference.predict(pairs))
    counts = np.maximum(rng.integers(0, 4, len(y)), np.arange(len(y)) < 3)
    copies = rng.permutation(np.repeat(np.arange(len(y)), counts))
    weighted, repeated = clone(model).fit(pairs, y, counts), clone(model).fit(pairs[copies], y[copies])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    assert tie_parameter(weighted) == pytest.approx(tie_parameter(repeated), abs=1e-8)


@every_model
def test_strengths_of_items(model):
    """They sum to zero, are zero where items are equal, and give probabilities however far apart."""
    pairs, y = compared(16)
    assert clone(model).fit(Pairs(np.eye(8), pairs.index), y).coef_.sum() == pytest.approx(0, abs=1e-9)
    equal = clone(model).fit(Pairs(np.full((8, 2), 0.1), pairs.index), y)
    assert equal.coef_.tolist() == [0.0, 0.0]
    assert equal.dual_gap_ < 1e-12
    far = Pairs([[1e6, 0, 0], [0, 0, 0]], [[0, 1], [1, 0]])
    np.testing.assert_allclose(clone(model).fit(pairs, y).predict_proba(far).sum(axis=1), 1)


@every_model
def test_bad_input_is_named(model):
    pairs, y = compared(21)
    needs = f"y has only ties .*; {type(model).__name__} needs at least one preference"
    for labels, weights, message in (
        (np.zeros(60), None, needs),
        (y, (y == 0).astype(float), "y has only ties"),
        (np.full(60, 2), None, r"y\[0\] is 2"),
        (y[1:], None, r"y has shape \(59,\); expected \(60,\)"),
        (y, -np.ones(60), "sample_weight"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(pairs, labels, weights)
    for alpha in (0, -1.0, np.inf, np.nan, "much"):
        with pytest.raises(ValueError, match="alpha is"):
            clone(model).set_params(alpha=alpha).fit(pairs, y)
    with pytest.raises(NotFittedError):
        clone(model).predict_proba(pairs)
    with pytest.raises(ValueError, match="4 features; expected 3"):
        clone(model).fit(pairs, y).rank_function(np.ones((2, 4)))
    with pytest.raises(ValueError, match="link is 'cauchit'; expected 'logit' or 'probit'"):
        OrdinalComparison("cauchit").fit(pairs, y)
