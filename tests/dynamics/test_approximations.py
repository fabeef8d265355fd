"""Periodic and squared exponential covariances have the stated errors, and inference
adds none."""

import mpmath as mp
import numpy as np
import pytest
from dynamics import dense
from dynamics.digits import in_high_precision, relative
from dynamics.problems import assert_equals_dense, both_methods, fitted, random_matches

from preflearn.dynamics import Constant, Periodic, Probit, SquaredExponential
from preflearn.dynamics.covariances.approximations import _drift


@pytest.mark.parametrize(
    ("covariance", "stated"),
    [
        (SquaredExponential(4.0, 10.0, 2), 0.141),
        (SquaredExponential(4.0, 10.0, 4), 0.0171),
        (SquaredExponential(4.0, 10.0, 6), 3.0e-3),
        (SquaredExponential(4.0, 10.0, 8), 6.1e-4),
        (SquaredExponential(4.0, 10.0, 10), 1.3e-4),
        (Periodic(4.0, 1.0, 10.0, 6), 1.2e-6),
        (Periodic(4.0, 0.5, 10.0, 6), 1.9e-3),
    ],
    ids=repr,
)
def test_errors_are_the_stated_ones(covariance, stated):
    gaps = np.linspace(0, 100, 501)
    error = np.abs(from_zero(covariance, gaps) - covariance.gram([0.0], gaps)[0]) / 4.0
    assert error.max() == pytest.approx(error[0])
    assert error.max() == pytest.approx(
        stated, rel=0.05 if isinstance(covariance, Periodic) else 0.02
    )


def test_a_period_stays_in_step_over_centuries():
    covariance = Periodic(1.0, 1.0, 365.25, order=12)
    gap = np.array([100.0, 365.25e6 + 100.0])
    np.testing.assert_allclose(*from_zero(covariance, gap), rtol=1e-12)
    np.testing.assert_allclose(*covariance.gram([0.0], gap)[0], rtol=1e-12)


def from_zero(covariance, gaps):
    """Return the covariances of the score at time 0 with later scores."""
    model = covariance.state_space()
    A, _ = model.transitions(np.zeros(len(gaps)), gaps)
    return (
        A.transpose(0, 2, 1)
        @ model.measurement
        @ model.initial(np.zeros(1))[0]
        @ model.measurement
    )


@both_methods
@pytest.mark.parametrize(
    "covariance",
    [Periodic(0.5, 1.0, 2.0), SquaredExponential(0.5, 1.0) + Constant(0.2)],
)
def test_approximate_covariances(covariance, method):
    """Inference equals dense algebra for the state-space model, and is close to that
    for the covariance itself."""
    rng = np.random.default_rng(14)
    model = fitted(
        covariance, Probit(), random_matches(rng), rng.choice([1, -1], 9), method
    )
    assert_equals_dense(
        model,
        dense.probit,
        covariance=dense.ImpliedCovariance(covariance.state_space()),
    )
    assert_equals_dense(model, dense.probit, atol=1e-2)


@pytest.mark.parametrize("order", [2, 6, 10])
@pytest.mark.parametrize("gap", [1e-12, 1e-5, 0.1])
def test_squared_exponential_keeps_the_digits_of_short_gaps(order, gap):
    F, density = _drift(order)
    found = (
        SquaredExponential(1e-6, 10.0, order)
        .state_space()
        .transitions(np.zeros(1), np.array([10 * gap]))
    )
    passed = mp.mpf(float(np.float64(10 * gap) / 10))
    expected = in_high_precision(F.tolist(), mp.mpf(density) * mp.mpf(1e-6), passed)
    assert max(relative(a[0], b) for a, b in zip(found, expected, strict=True)) < 1e-12
