"""AdditiveAnalogy compared with scikit-learn on a factor of the Gram matrix, and its
primal and dual objectives."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from property_examples import examples
from scipy.special import expit, xlogy
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from toy_rankings import differences

from preflearn.analogy import AdditiveAnalogy, AnalogyOperator, analogy_kernel


def compared(seed, n, d, kind="any"):
    """Return differences, and labels of a noisy utility. Both labels occur."""
    U = differences(seed, n, d, kind)
    rng = np.random.default_rng(seed)
    y = np.where(np.sin(3 * U).sum(axis=1) + rng.normal(0, 0.5, n) > 0, 1, -1)
    y[:2] = [1, -1]
    return U, y


def dense(K, y, C, bias=True):
    """Return the values f at the pairs and the bias, fitted by scikit-learn. The
    features have the inner products K."""
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0))
    model = LogisticRegression(
        C=C, solver="newton-cholesky", tol=1e-10, max_iter=500, fit_intercept=bias
    )
    model.fit(features, y)
    return model.decision_function(features), model.intercept_


def primal_and_dual(model, K, y, C):
    """Return the objective, the dual objective, and the sum of the signed dual weights.
    The dual weights are the slopes of the loss."""
    c = model.dual_coef_
    f = K @ model.dual_coef_ + model.bias_
    share = expit(-y * f)  # dual weights, in units of C
    entropy = -(xlogy(share, share) + xlogy(1 - share, 1 - share)).sum()
    primal = c @ K @ c / 2 + C * np.logaddexp(0, -y * f).sum()
    return (
        primal,
        C * entropy - C**2 * (y * share) @ K @ (y * share) / 2,
        float(y @ share),
    )


# ---- The solution


def test_it_is_logistic_regression_on_the_gram_matrix():
    U, y = compared(0, 500, 4, "mixed")
    f, bias = dense(analogy_kernel(U), y, 1.0)
    model = AdditiveAnalogy(1.0, tol=1e-14).fit(U, y)
    np.testing.assert_allclose(model.decision_function(U), f, atol=1e-6)
    assert model.bias_ == pytest.approx(bias[0], abs=1e-6)


@examples(60)
@example(3, 200, 3, "any", -12.0)
@example(4, 200, 4, "coarse", 6.0)  # equal rows with both labels
@given(
    st.integers(0, 2**31),
    st.integers(2, 40),
    st.integers(1, 4),
    st.sampled_from(["any", "coarse", "mixed"]),
    st.floats(-12, 6),
)
def test_the_gap_bounds_the_distance_to_the_minimum(seed, n, d, kind, power):
    """The bound holds at the end and after a few steps."""
    U, y = compared(seed, n, d, kind)
    K = analogy_kernel(U)
    C = 10**power
    models = [AdditiveAnalogy(C, tol=1e-9)]
    # tol=1e300 stops after one step, and tol=1e-2 after a few
    models += [AdditiveAnalogy(C, tol=tol) for tol in (1e300, 1e-2)]
    best = -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model in models:
            model.fit(U, y)
            primal, lower, balance = primal_and_dual(model, K, y, C)
            assert model.objective_ == pytest.approx(primal, rel=1e-9)
            assert model.dual_gap_ * primal == pytest.approx(
                primal - lower, rel=1e-5, abs=1e-9 * primal
            )
            assert balance == pytest.approx(0, abs=1e-9 * n)
            assert abs(model.dual_coef_.sum()) <= 1e-9 * C * n
            best = max(best, lower)
            assert primal >= best * (1 - 1e-9)
    assert models[0].dual_gap_ <= 1e-9


# ---- Both orders of a pair


def test_trained_on_both_orders_it_is_the_antisymmetric_model_without_bias():
    U, y = compared(5, 300, 3, "mixed")
    model = AdditiveAnalogy(0.7, tol=1e-15).fit(
        np.concatenate([U, -U]), np.concatenate([y, -y])
    )
    f = model.decision_function(U)
    assert model.bias_ == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(model.decision_function(-U), -f, atol=1e-9)
    K = (analogy_kernel(U) - analogy_kernel(U, -U)) / 2
    np.testing.assert_allclose(f, dense(K, y, 2 * 0.7, bias=False)[0], atol=1e-6)


# ---- The components


def test_components_are_those_of_the_definition_and_add_up():
    U, y = compared(7, 80, 3, "mixed")
    model = AdditiveAnalogy(5.0, tol=1e-9).fit(U, y)
    V, _ = compared(8, 40, 3, "mixed")
    components = [model.component(k, V[:, k]) for k in range(3)]
    expected = [
        analogy_kernel(V[:, [k]], U[:, [k]]) @ model.dual_coef_ / 3 for k in range(3)
    ]
    np.testing.assert_allclose(components, expected, atol=1e-12)
    np.testing.assert_allclose(
        model.bias_ + sum(components), model.decision_function(V), atol=1e-12
    )


def test_few_products_at_many_pairs(monkeypatch):
    products = []
    plain = AnalogyOperator.times
    monkeypatch.setattr(
        AnalogyOperator, "times", lambda self, v: products.append(1) or plain(self, v)
    )
    U, y = compared(11, 50_000, 5)
    model = AdditiveAnalogy(1.0).fit(U, y)
    assert model.dual_gap_ <= 1e-3
    # without the preconditioner there are several hundred products
    assert len(products) <= 40


# ---- Errors and warnings


def test_an_impossible_tolerance_ends_with_the_rounding():
    U, y = compared(13, 60, 2, "mixed")
    with pytest.warns(ConvergenceWarning, match=r"C \(now 10\)"):
        model = AdditiveAnalogy(10.0, tol=1e-300).fit(U, y)
    assert model.dual_gap_ < 1e-14


@pytest.mark.parametrize(
    ("parameters", "U", "y", "words"),
    [
        ({}, [[0.5], [0.25]], [1, 1], "labels"),
        ({}, [[0.5], [0.25]], [1, 0], r"y\[1\] is 0"),
        ({}, [[0.5], [0.25]], [1], "^y "),
        ({}, [[0.5], [1.25]], [1, -1], r"U\[1, 0\] is 1.25"),
        ({"C": 1e-13}, [[0.5], [0.25]], [1, -1], "C is 1e-13"),
        ({"C": 2e6}, [[0.5], [0.25]], [1, -1], "C is 2000000.0"),
        ({"tol": -1.0}, [[0.5], [0.25]], [1, -1], "tol is -1"),
    ],
)
def test_bad_input_to_the_fit_is_named(parameters, U, y, words):
    with pytest.raises(ValueError, match=words):
        AdditiveAnalogy(**parameters).fit(U, y)


def test_bad_input_to_the_fitted_model_is_named():
    model = AdditiveAnalogy(C=2.0)
    for call in (
        lambda: model.decision_function([[0.5]]),
        lambda: model.component(0, [0.5]),
    ):
        with pytest.raises(NotFittedError):
            call()
    model.fit([[0.5, 0.0], [-0.25, 0.5]], [1, -1])
    for V, words in (
        ([[0.5]], "V has 1 features.* 2"),
        ([[0.5, 2.0]], r"V\[0, 1\] is 2"),
    ):
        with pytest.raises(ValueError, match=words):
            model.decision_function(V)
    for k, u, words in (
        (2, 0.5, "k is 2"),
        (-1, 0.5, "k is -1"),
        (0, 1.5, r"u\[0\] is 1.5"),
    ):
        with pytest.raises(ValueError, match=words):
            model.component(k, [u])
