"""The blocks of a state in high precision, at extreme gaps and variances, and with all
origins."""

import mpmath as mp
import numpy as np
import pytest
from dynamics.digits import in_high_precision, relative
from hypothesis import given
from hypothesis import strategies as st

from preflearn.dynamics import (
    Affine,
    Constant,
    Matern12,
    Matern32,
    Matern52,
    SquaredExponential,
    Wiener,
)


@pytest.mark.parametrize("kind", [Matern12, Matern32, Matern52])
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-5, 3.0, 1e5, 1e9])
@pytest.mark.parametrize(("variance", "lengthscale"), [(1e-12, 1.0), (1e6, 1e5)])
def test_matern_transitions_keep_their_digits(kind, gap, variance, lengthscale):
    """The states are s, (d/du + 1) s, and so on, with u = rate * time. Each state is
    driven by the next one."""
    model = kind(variance, lengthscale).state_space()
    K = model.size
    rate = np.sqrt(2 * model.size - 1) / lengthscale
    A, Q = model.transitions(np.zeros(1), np.array([gap]))
    passed = min(mp.mpf(float(rate)) * gap, 500)
    F = -np.eye(K) + np.eye(K, k=1)
    # noise density for which Var(s) = variance
    density = variance * mp.mpf(2) ** (2 * K - 1) / mp.binomial(2 * K - 2, K - 1)
    expected = in_high_precision(F.tolist(), density, passed)
    if passed < 500:
        assert relative(A[0], expected[0]) < 1e-13
    else:
        np.testing.assert_allclose(A, 0, atol=1e-200)
    assert relative(Q[0], expected[1]) < 1e-13


@pytest.mark.parametrize("gap", [1e-12, 1e-5, 0.1, 3.0, 40.0])
def test_products_keep_their_digits(gap):
    """The product of Matérn 3/2 and 1/2 is (1 + a|t|) e^{-(a + b)|t|}. Here Q = P - A P
    A' is computed in high precision."""
    a = 1.5
    b = 0.4
    variance = 1e-6
    model = (Matern32(variance, np.sqrt(3) / a) * Matern12(1.0, 1 / b)).state_space()
    assert model.size == 2
    A, Q = model.transitions(np.zeros(1), np.array([gap]))
    with mp.workdps(120):
        rate = mp.mpf(a) + mp.mpf(b)
        ratio = mp.mpf(a) / (mp.mpf(a) + mp.mpf(b))
        P = variance * mp.matrix([[1, ratio], [ratio, 2 * ratio**2]])
        step = mp.exp(-rate * gap) * mp.matrix([[1, rate * gap], [0, 1]])
        for found, exact, tolerance in (
            (model.initial(np.zeros(1)), P, 1e-14),
            (A, step, 1e-14),
            (Q, P - step * P * step.T, 1e-13),
        ):
            assert relative(found[0], np.array(exact.tolist())) < tolerance


@given(
    st.sampled_from([Matern12, Matern32, Matern52, SquaredExponential]),
    st.floats(0, 1e9),
    st.floats(1e-12, 1e6),
    st.floats(1e-3, 1e6),
)
def test_stationary_processes_stay_stationary(kind, gap, variance, lengthscale):
    model = kind(variance, lengthscale).state_space()
    A, Q = model.transitions(np.zeros(1), np.array([gap]))
    P = model.initial(np.zeros(1))
    np.testing.assert_allclose(
        A @ P @ A.transpose(0, 2, 1) + Q, P, rtol=0, atol=1e-12 * np.abs(P).max()
    )


def test_long_gaps_of_a_trend_are_exact():
    model = (Affine(4.0, 1e-12, origin=0.0) + Wiener(1e-12, origin=0.0)).state_space()
    gap = np.array([0.0, 1e-12, 1e9])
    A, Q = model.transitions(np.zeros(3), gap)
    np.testing.assert_array_equal(A[:, 0, 1], gap)
    np.testing.assert_array_equal(Q[:, 0, 0], 1e-12 * gap)
    assert np.count_nonzero(Q) == 2


def test_an_origin_at_the_first_time_is_that_of_each_feature():
    model = (Constant(2.0) + Wiener(0.5, origin="first")).state_space()
    np.testing.assert_array_equal(
        model.initial(np.array([-7.0, 3.0, 1e6])), np.full((3, 1, 1), 2.0)
    )
    product = (Wiener(0.5, origin="first") * Wiener(2.0, origin="first")).state_space()
    start = np.array([3.0, 13.0, 13.0])
    first = np.array([0.0, 10.0, 0.0])
    _, Q = product.transitions(start, start + 1, first)
    np.testing.assert_allclose(Q.ravel(), [16 - 9, 16 - 9, 14**2 - 13**2], rtol=1e-15)
