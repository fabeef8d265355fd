"""Integrals of likelihoods, compared with high precision, with each other, and with
known properties."""

import itertools

import numpy as np
import pytest
from dynamics import digits
from dynamics.digits import (
    CASES,
    arrays,
    assert_equals_plain_sum,
    assert_near,
    integral_at,
    random_moments,
)

from preflearn.dynamics import Gaussian, OrdinalLogit, OrdinalProbit, Poisson, Skellam

# Means within ±50 and variances from 1e-12 to 1e6, on both sides of the change of the
# integration rule.
MOMENTS = [
    (0, 0.51),
    (-1.7, 1e-12),
    (4, 0.5),
    (50, 1e-12),
    (-50, 3),
    (23, 20),
    (-11, 150),
    (50, 1e6),
]
MOMENTS += [(-20, 63.5), (0.3, 4e-3)]
# The tolerance is relative, or absolute below 1. The largest error over all cases and
# moments was once measured as 1e-12.
TOLERANCE = 1e-10

every_case = pytest.mark.parametrize(("likelihood", "y"), CASES, ids=repr)
both_ways = pytest.mark.parametrize("ep", [True, False])


@pytest.mark.parametrize(
    ("likelihood", "y", "mean", "variance", "ep"),
    [
        (*case, *known[(i + more) % len(known)], ep)
        for ep, known in ((True, MOMENTS), (False, MOMENTS[:6]))
        for i, case in enumerate(CASES)
        for more in (0, 3)
    ],
    ids=repr,
)
def test_integrals_equal_high_precision(likelihood, y, mean, variance, ep):
    expected = digits.integrals(likelihood, y, mean, variance, ep)
    assert_near(integral_at(likelihood, y, mean, variance, ep), expected, TOLERANCE)


@pytest.mark.parametrize(
    ("mean", "variance"),
    [(-11, 144), (50, 1e4), (3, 7.99), (3, 8.01), (199, 1), (201, 1), (-30, 63.9)],
)
@pytest.mark.parametrize(
    ("likelihood", "y"),
    [case for case in CASES if not isinstance(case[0], Poisson | Skellam)],
    ids=repr,
)
def test_expectations_of_wide_and_narrow_distributions(likelihood, y, mean, variance):
    assert_equals_plain_sum(likelihood, y, mean, variance)


@every_case
@both_ways
def test_derivatives_are_those_of_the_value(likelihood, y, ep):
    """Compare with Richardson's differences for moderate values."""
    mean, variance = random_moments(300, 1, mean=5, low=-3, high=2)
    step = 0.02
    between = np.array([1, -8, 0, 8, -1]) / 12
    around = [
        arrays(likelihood, y, mean + k * step, variance, ep) for k in (-2, -1, 0, 1, 2)
    ]
    value, first, second = around[2]
    scale = np.maximum(1, np.max(np.abs(around), axis=(0, 1)))
    for order, found in ((0, first), (1, second)):
        difference = (
            sum(w * at[order] for w, at in zip(between, around, strict=True)) / step
        )
        assert (abs(found - difference) < 3e-4 * scale).all()
    assert np.isfinite(value).all()


@every_case
def test_curvature_and_bounds(likelihood, y):
    """The variances of EP's pseudo-observations and of q are at least 0, and Jensen's
    inequality holds."""
    mean, variance = random_moments(2000, 2)
    value, first, second = arrays(likelihood, y, mean, variance, ep=True)
    bound, kl_first, kl_second = arrays(likelihood, y, mean, variance, ep=False)
    assert np.isfinite([value, first, second, bound, kl_first, kl_second]).all()
    assert (second <= 0).all()
    assert (kl_second <= 0).all()
    assert (1 + variance * second > 0).all()
    assert (value >= bound - 1e-10 * np.maximum(1, abs(bound))).all()
    if not isinstance(likelihood, Gaussian):
        assert (value < 1e-11).all()


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [case for case in CASES if not isinstance(case[0], Poisson)],
    ids=repr,
)
@both_ways
def test_exchanging_the_sides_mirrors(likelihood, y, ep):
    mean, variance = random_moments(2000, 3)
    value, first, second = arrays(likelihood, y, mean, variance, ep)
    mirrored, mirrored_first, mirrored_second = arrays(
        likelihood, -y, -mean, variance, ep
    )
    assert_near(mirrored, value, 1e-12)
    assert_near(-mirrored_first, first, 1e-12)
    assert_near(mirrored_second, second, 1e-12)


@every_case
@both_ways
def test_no_jump_where_the_rule_changes(likelihood, y, ep):
    for mean, variance in itertools.product(
        (-20.0, -2.0, 0.3, 7.0), (1e-9, 1 / 256, 0.327, 64.0)
    ):
        here, there = (
            integral_at(likelihood, y, mean, variance * (1 + e), ep) for e in (0, 1e-13)
        )
        assert_near(here, there, 1e-10)


@every_case
def test_without_variance_both_are_the_density(likelihood, y):
    for mean in (-3.0, 0.0, 0.4, 11.0):
        sure = integral_at(likelihood, y, mean, 0, ep=True)
        assert sure == pytest.approx(
            integral_at(likelihood, y, mean, 0, ep=False), rel=1e-14
        )
        assert sure[0] == pytest.approx(
            float(digits.log_density(likelihood, y)(mean)), rel=1e-13
        )
        for tiny in (9e-318, 1e-299, 1e-22):
            assert_near(integral_at(likelihood, y, mean, tiny, ep=True), sure, 1e-11)


EXTREME = [0.0, 5e-324, 1e-305, 1e-299, 1e-60, 1e-3, 63.9, 64.1, 9e5, 1e60, 1e100]
EXTREME_LIKELIHOODS = [likelihood for likelihood, _ in CASES] + [
    OrdinalLogit(1e100),
    OrdinalProbit(1e-100),
    Skellam(1e6),
]


@pytest.mark.parametrize("likelihood", EXTREME_LIKELIHOODS, ids=repr)
def test_extreme_moments_stay_finite(likelihood):
    """For all variances, also subnormal ones, the loops end, nothing is NaN, and log p
    is at most 0."""
    means = [0.0, 0.3, -50.0, 700.0, 1e6, -1e18, 1.8e19, 1e80, -1e100]
    mean, variance = (part.ravel() for part in np.meshgrid(means, EXTREME))
    chances = likelihood.probabilities(mean, variance)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-14)
    counts = isinstance(likelihood, Poisson | Skellam)
    for y in (0, 1, 1e9 if counts else 1) if likelihood.has_ties else (1,):
        for ep in (True, False):
            value, first, second = arrays(likelihood, y, mean, variance, ep)
            assert np.isfinite([value, first, second]).all()
            assert (second <= 0).all()
            assert isinstance(likelihood, Gaussian) or (value <= 0).all()
