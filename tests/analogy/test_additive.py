"""AdditiveAnalogy against dense twins: scikit-learn on a factor of the Gram matrix, and both programs."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit, xlogy
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from toy_rankings import differences

from preflearn.analogy import AdditiveAnalogy, AnalogyOperator, analogy_kernel


def compared(seed, n, d, kind="any"):
    """Differences, and labels of a noisy utility; both labels occur."""
    U, rng = differences(seed, n, d, kind), np.random.default_rng(seed)
    y = np.where(np.sin(3 * U).sum(axis=1) + rng.normal(0, 0.5, n) > 0, 1, -1)
    y[:2] = [1, -1]
    return U, y


def dense(K, y, C, bias=True):
    """Values f at the pairs and the bias, by scikit-learn on features whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0))
    machine = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=500, fit_intercept=bias)
    machine.fit(features, y)
    return machine.decision_function(features), machine.intercept_


def primal_and_dual(machine, K, y, C):
    """The objective, and the dual one of the weights that belong to the slopes of the loss."""
    c, f = machine.dual_coef_, K @ machine.dual_coef_ + machine.bias_
    share = expit(-y * f)  # dual weights, in units of C
    entropy = -(xlogy(share, share) + xlogy(1 - share, 1 - share)).sum()
    primal = c @ K @ c / 2 + C * np.logaddexp(0, -y * f).sum()
    return primal, C * entropy - C**2 * (y * share) @ K @ (y * share) / 2, float(y @ share)


# ---- The solution


def test_the_machine_on_the_gram_matrix_is_the_same():
    U, y = compared(0, 1000, 4, "mixed")
    f, bias = dense(analogy_kernel(U), y, 1.0)
    machine = AdditiveAnalogy(1.0, tol=1e-14).fit(U, y)
    np.testing.assert_allclose(machine.decision_function(U), f, atol=1e-6)
    assert machine.bias_ == pytest.approx(bias[0], abs=1e-6)


@settings(max_examples=60, deadline=None)
@example(3, 200, 3, "any", -12.0)
@example(4, 200, 4, "coarse", 6.0)  # copies of both labels
@given(
    st.integers(0, 2**31),
    st.integers(2, 40),
    st.integers(1, 4),
    st.sampled_from(["any", "coarse", "mixed"]),
    st.floats(-12, 6),
)
def test_the_gap_bounds_the_distance_to_the_minimum(seed, n, d, kind, power):
    """Both sides are written out on the Gram matrix, at the end and after a few steps."""
    U, y = compared(seed, n, d, kind)
    K, C = analogy_kernel(U), 10**power
    machines = [AdditiveAnalogy(C, tol=1e-9)]
    machines += [AdditiveAnalogy(C, tol=tol) for tol in (1e300, 1e-2)]  # one step, some steps
    best = -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for machine in machines:
            machine.fit(U, y)
            primal, lower, balance = primal_and_dual(machine, K, y, C)
            assert machine.objective_ == pytest.approx(primal, rel=1e-9)
            assert machine.dual_gap_ * primal == pytest.approx(primal - lower, rel=1e-5, abs=1e-9 * primal)
            assert balance == pytest.approx(0, abs=1e-9 * n)
            assert abs(machine.dual_coef_.sum()) <= 1e-9 * C * n
            best = max(best, lower)
            assert primal >= best * (1 - 1e-9)
    assert machines[0].dual_gap_ <= 1e-9


# ---- Both orders of a pair


def test_trained_on_both_orders_it_is_the_antisymmetric_machine_without_bias():
    U, y = compared(5, 300, 3, "mixed")
    machine = AdditiveAnalogy(0.7, tol=1e-15).fit(np.concatenate([U, -U]), np.concatenate([y, -y]))
    f = machine.decision_function(U)
    assert machine.bias_ == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(machine.decision_function(-U), -f, atol=1e-9)
    K = (analogy_kernel(U) - analogy_kernel(U, -U)) / 2
    np.testing.assert_allclose(f, dense(K, y, 2 * 0.7, bias=False)[0], atol=1e-6)


# ---- Its functions


def test_components_add_up_and_are_linear_between_knots_of_a_sign():
    U, y = compared(7, 80, 3, "mixed")
    machine = AdditiveAnalogy(5.0, tol=1e-9).fit(U, y)
    V, _ = compared(8, 40, 3, "mixed")
    total = machine.bias_ + sum(machine.component(k, V[:, k]) for k in range(3))
    np.testing.assert_allclose(total, machine.decision_function(V), atol=1e-12)
    for k in range(2):
        knots = np.unique(U[:, k])
        low, high = knots[:-1], knots[1:]
        one_sign = (low > 0) | (high < 0)
        low, high = low[one_sign], high[one_sign]
        middle = machine.component(k, (low + high) / 2)
        ends = machine.component(k, low) + machine.component(k, high)
        np.testing.assert_allclose(middle, ends / 2, atol=1e-12)


def test_the_value_at_zero_is_apart():
    U, y = compared(9, 80, 2, "mixed")
    values = AdditiveAnalogy().fit(U, y).component(0, [-1e-300, 0.0, 1e-300])
    assert (np.abs(np.diff(values)) > 1e-3).all()


def test_the_norm_is_that_of_the_components():
    """c'Kc = d sum_k |g_k|^2, with 1/2 int p'^2 + 1/2 (p(0) + p(1))^2 of each sign and the square at 0."""
    U, y = compared(10, 120, 3, "mixed")
    machine = AdditiveAnalogy(5.0, tol=1e-9).fit(U, y)
    norm = 0.0
    for k in range(3):
        knots = np.unique(U[:, k])
        for side in (1, -1):
            inner = np.abs(knots[side * knots > 0])
            z = np.unique(np.concatenate([[1e-300, 1.0], inner]))
            p = machine.component(k, side * z)
            norm += np.sum(np.diff(p) ** 2 / np.diff(z)) / 2 + (p[0] + p[-1]) ** 2 / 2
        norm += float(machine.component(k, [0.0])[0]) ** 2
    square = machine.dual_coef_ @ analogy_kernel(U) @ machine.dual_coef_
    assert 3 * norm == pytest.approx(square, rel=1e-10)


def test_few_products_at_many_pairs(monkeypatch):
    products = []
    plain = AnalogyOperator.times
    monkeypatch.setattr(AnalogyOperator, "times", lambda self, v: products.append(1) or plain(self, v))
    U, y = compared(11, 50_000, 5)
    machine = AdditiveAnalogy(1.0).fit(U, y)
    assert machine.dual_gap_ <= 1e-3
    assert len(products) <= 40  # without the preconditioner they are some hundreds


# ---- What is refused, and what is told


def test_an_impossible_tolerance_ends_with_the_rounding():
    U, y = compared(13, 60, 2, "mixed")
    with pytest.warns(ConvergenceWarning, match=r"gap is .*; expected at most 1e-300: lower C = 10"):
        machine = AdditiveAnalogy(10.0, tol=1e-300).fit(U, y)
    assert machine.dual_gap_ < 1e-14


@pytest.mark.parametrize(
    ("parameters", "U", "y", "message"),
    [
        ({}, [[0.5], [0.25]], [1, 1], "all 2 labels are"),
        ({}, [[0.5], [0.25]], [1, 0], r"y\[1\] is 0"),
        ({}, [[0.5], [0.25]], [1], r"y has shape \(1,\); expected \(2,\)"),
        ({}, [[0.5], [1.25]], [1, -1], r"U\[1, 0\] is 1.25"),
        ({}, np.zeros((0, 2)), [], "empty"),
        ({"C": 1e-13}, [[0.5], [0.25]], [1, -1], r"C is 1e-13; expected a number from 1e-12 to 1e\+06"),
        ({"C": 2e6}, [[0.5], [0.25]], [1, -1], "C is 2000000.0; expected a number from"),
        ({"tol": -1.0}, [[0.5], [0.25]], [1, -1], "tol is -1"),
    ],
)
def test_bad_input_to_the_fit(parameters, U, y, message):
    with pytest.raises(ValueError, match=message):
        AdditiveAnalogy(**parameters).fit(U, y)


def test_bad_input_to_the_machine():
    machine = AdditiveAnalogy(C=2.0)
    for call in (lambda: machine.decision_function([[0.5]]), lambda: machine.component(0, [0.5])):
        with pytest.raises(NotFittedError):
            call()
    machine.fit([[0.5, 0.0], [-0.25, 0.5]], [1, -1])
    with pytest.raises(ValueError, match="V has 1 features; expected 2"):
        machine.decision_function([[0.5]])
    with pytest.raises(ValueError, match=r"V\[0, 1\] is 2"):
        machine.decision_function([[0.5, 2.0]])
    for k in (2, -1, 0.5):
        with pytest.raises(ValueError, match=f"k is {k}"):
            machine.component(k, [0.5])
    with pytest.raises(ValueError, match=r"u\[0\] is 1.5"):
        machine.component(0, [1.5])


def test_it_is_an_estimator_that_can_be_copied_and_stored():
    U, y = compared(14, 50, 2)
    machine = AdditiveAnalogy(C=2.0, tol=1e-6)
    assert clone(machine).get_params() == machine.get_params()
    f = machine.fit(U, y).decision_function(U)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).decision_function(U), f)
    np.testing.assert_array_equal(clone(machine).fit(U, y).decision_function(U), f)
