"""The compiled integrals, against many digits, each other, and what must hold of them."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from dynamics import digits
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from preflearn.dynamics import (
    Gaussian,
    Logit,
    OrdinalLogit,
    OrdinalProbit,
    Poisson,
    Probit,
    Skellam,
    integrals,
)
from preflearn.dynamics.likelihoods.density import log_bessel
from preflearn.dynamics.likelihoods.normal import excess, log_interval, log_ndtr

CASES = [
    (Probit(), 1),
    (Logit(), -1),
    (OrdinalProbit(0.5), 1),
    (OrdinalProbit(0.1), 0),
    (OrdinalProbit(4.0), 0),
    (OrdinalLogit(0.5), -1),
    (OrdinalLogit(0.5), 0),
    (OrdinalLogit(4.0), 0),
    (Poisson(), 0),
    (Poisson(), 100),
    (Gaussian(3.0), -2.5),
    (Skellam(0.05), 1),
    (Skellam(50.0), -7),
]
# Means and variances within ±50 and 1e-12 to 1e6; at the variance 0.5 the rule of integration changes.
MOMENTS = [(0, 0.51), (-1.7, 1e-12), (4, 0.5), (50, 1e-12), (-50, 3), (23, 20), (-11, 150), (50, 1e6)]
TOLERANCE = (
    1e-10  # relative, or absolute below 1; all cases with all moments and more were measured once: 3e-11
)
COUNTS = (Poisson, Skellam)


def compiled(likelihood, y, mean, variance, ep):
    function = integrals.log_partition if ep else integrals.expected
    return function(likelihood.kind, *likelihood.parameters, float(y), float(mean), float(variance))


def arrays(likelihood, y, mean, variance, ep):
    n = len(mean)
    return integrals.each_row(
        ep, likelihood.kind, *likelihood.parameters, np.full(n, float(y)), mean, variance
    )


def some_moments(n, seed, mean=50.0, low=-12, high=6):
    rng = np.random.default_rng(seed)
    return rng.uniform(-mean, mean, n), 10 ** rng.uniform(low, high, n)


def near(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def two_of(moments, i):
    return [moments[i % len(moments)], moments[(i + 3) % len(moments)]]


@pytest.mark.parametrize(
    ("likelihood", "y", "mean", "variance"),
    [(*case, *moments) for i, case in enumerate(CASES) for moments in two_of(MOMENTS, i)],
)
def test_ep_equals_many_digits(likelihood, y, mean, variance):
    expected = digits.integrals(likelihood, y, mean, variance, ep=True)
    near(compiled(likelihood, y, mean, variance, ep=True), expected, TOLERANCE)


@pytest.mark.parametrize(
    ("likelihood", "y", "mean", "variance"),
    [(*case, *moments) for i, case in enumerate(CASES) for moments in two_of(MOMENTS[:6], i)],
)
def test_reverse_kl_equals_many_digits(likelihood, y, mean, variance):
    expected = digits.integrals(likelihood, y, mean, variance, ep=False)
    near(compiled(likelihood, y, mean, variance, ep=False), expected, TOLERANCE)


@pytest.mark.parametrize(("likelihood", "y"), [case for case in CASES if not isinstance(case[0], COUNTS)])
def test_reverse_kl_of_wide_distributions(likelihood, y):
    """One sum of 2 million nodes, where many digits take long."""
    x = np.linspace(-12, 12, 2_000_001)
    weights = np.exp(-(x**2) / 2)
    for mean, deviation in ((-11.0, 12.0), (50.0, 100.0)):
        values = arrays(likelihood, y, mean + deviation * x, np.zeros(len(x)), ep=False)
        near(compiled(likelihood, y, mean, deviation**2, ep=False), values @ weights / weights.sum(), 1e-9)


@pytest.mark.parametrize(("likelihood", "y"), CASES)
@pytest.mark.parametrize("ep", [True, False])
def test_derivatives_are_those_of_the_value(likelihood, y, ep):
    """By Richardson's differences, where the values are not too large for them."""
    mean, variance = some_moments(300, 1, mean=5, low=-3, high=2)
    step, between = 0.02, np.array([1, -8, 0, 8, -1]) / 12
    around = [arrays(likelihood, y, mean + k * step, variance, ep) for k in (-2, -1, 0, 1, 2)]
    value, first, second = around[2]
    scale = np.maximum(1, np.max(np.abs(around), axis=(0, 1)))
    for order, found in ((0, first), (1, second)):
        difference = sum(w * at[order] for w, at in zip(between, around, strict=True)) / step
        assert (abs(found - difference) < 3e-4 * scale).all()
    assert np.isfinite(value).all()


@pytest.mark.parametrize(("likelihood", "y"), CASES)
def test_curvature_and_bounds(likelihood, y):
    """EP's pseudo-observations have variances of at least 0, so has q; and Jensen's inequality."""
    mean, variance = some_moments(2000, 2)
    value, first, second = arrays(likelihood, y, mean, variance, ep=True)
    bound, kl_first, kl_second = arrays(likelihood, y, mean, variance, ep=False)
    assert np.isfinite([value, first, second, bound, kl_first, kl_second]).all()
    assert (second <= 0).all()
    assert (kl_second <= 0).all()
    assert (1 + variance * second > 0).all()
    assert (value >= bound - 1e-10 * np.maximum(1, abs(bound))).all()
    if not isinstance(likelihood, Gaussian):
        assert (value < 1e-11).all()


@pytest.mark.parametrize(("likelihood", "y"), [case for case in CASES if not isinstance(case[0], Poisson)])
@pytest.mark.parametrize("ep", [True, False])
def test_exchanging_the_teams_mirrors(likelihood, y, ep):
    mean, variance = some_moments(2000, 3)
    value, first, second = arrays(likelihood, y, mean, variance, ep)
    twin, twin_first, twin_second = arrays(likelihood, -y, -mean, variance, ep)
    near(twin, value, 1e-12)
    near(-twin_first, first, 1e-12)
    near(twin_second, second, 1e-12)


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_signs_of_derivatives(sign):
    mean, variance = some_moments(2000, 4)
    for likelihood, ep in itertools.product(
        (Probit(), Logit(), OrdinalProbit(2.0), OrdinalLogit(2.0)), (True, False)
    ):
        assert (sign * arrays(likelihood, sign, mean, variance, ep)[1] >= 0).all()
        if likelihood.has_ties:
            tie = arrays(likelihood, 0, sign * abs(mean), variance, ep)[1]
            assert (sign * tie <= 1e-12).all()


@pytest.mark.parametrize(("likelihood", "y"), CASES)
@pytest.mark.parametrize("ep", [True, False])
def test_no_jump_where_the_rule_changes(likelihood, y, ep):
    for mean, variance in itertools.product((-20.0, -2.0, 0.3, 7.0), (1e-9, 0.5, 4.0, 4e4)):
        here, there = (compiled(likelihood, y, mean, variance * (1 + e), ep) for e in (0, 1e-13))
        near(here, there, 1e-10)


@pytest.mark.parametrize(("likelihood", "y"), CASES)
def test_without_variance_both_are_the_density(likelihood, y):
    for mean in (-3.0, 0.0, 0.4, 11.0):
        sure = compiled(likelihood, y, mean, 0, ep=True)
        assert sure == pytest.approx(compiled(likelihood, y, mean, 0, ep=False), rel=1e-14)
        assert sure[0] == pytest.approx(float(digits.log_density(likelihood, y)(mean)), rel=1e-13)
        near(compiled(likelihood, y, mean, 1e-22, ep=True), sure, 1e-11)


@given(st.floats(-1e6, 1e6), st.floats(-15, 12), st.sampled_from(CASES), st.booleans())
def test_far_out_it_stays_finite(mean, log_variance, case, ep):
    variance = 10**log_variance
    value, first, second = compiled(*case, mean, variance, ep)
    assert math.isfinite(value + first + second)
    assert second <= 0
    if ep:
        assert 1 + variance * second > 0


def test_rates_of_points_are_bounded():
    """E e^u is e^500050 here; the engine's products of two stay finite."""
    for likelihood, outcome, slope in ((Poisson(), 3.0, 1.0), (Skellam(2.0), 3.0, 0.0)):
        value, first, second = compiled(likelihood, outcome, 50, 1e6, ep=False)
        assert -1e101 < value <= -1e100
        assert abs(first) <= slope * 1e101 + 2
        assert -1e101 < second < 0


def test_the_excess_and_what_rests_on_it():
    """Against SciPy, which has the functions but not for compiled code."""
    x = np.concatenate([[0.0], 10.0 ** np.linspace(-300, 300, 601), np.linspace(0, 40, 401)])
    hazard = math.sqrt(2 / math.pi) / special.erfcx(x / math.sqrt(2))
    np.testing.assert_allclose([z + excess(z) for z in x], hazard, rtol=2e-15)
    large = x[(x > 1e3) & (x < 1e100)]
    np.testing.assert_allclose([excess(z) for z in large], 1 / large - 2 / large**3, rtol=1e-11)
    z = np.concatenate([-x, x])[np.abs(np.concatenate([-x, x])) < 1e100]
    np.testing.assert_allclose([log_ndtr(v)[0] for v in z], special.log_ndtr(z), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("half", [1e-9, 0.003, 0.01, 0.05, 0.19, 0.21, 0.7, 2.0, 30.0])
def test_intervals(half):
    """Where the three formulas meet too: half (|center| + 1) = 0.2, and |center| = half."""
    for center in (
        0.0,
        1e-9,
        0.3,
        half * (1 - 1e-12),
        half * (1 + 1e-12),
        0.2001 / half,
        abs(0.2 / half - 1),
        5.0,
        1e4,
    ):
        found = log_interval(center, half)
        with mp.workdps(400):
            near_end, far_end = mp.mpf(center) - half, mp.mpf(center) + half
            mass = digits.upper_tail(near_end) - digits.upper_tail(far_end)
            first = (mp.npdf(far_end) - mp.npdf(near_end)) / mass
            second = (near_end * mp.npdf(near_end) - far_end * mp.npdf(far_end)) / mass - first**2
            near(found, [float(mp.log(mass)), float(first), float(second)], 1e-12)
        value, first, second = log_interval(-center, half)
        assert (value, -first, second) == found


@pytest.mark.parametrize("order", [0, 1, 7, 300])
def test_log_bessel(order):
    for x in (1e-3, 0.5, 4.0, 100.0, 5000.0):
        with np.errstate(divide="ignore"):
            expected = np.log(special.ive(order, x)) + x
        if np.isfinite(expected):
            assert log_bessel(float(order), x) == pytest.approx(expected, rel=1e-12, abs=1e-12)
