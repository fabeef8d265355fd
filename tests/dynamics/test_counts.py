"""Probabilities of counts and of count differences, compared with sums over the points
of both sides."""

import math

import numpy as np
import pytest
from dynamics.digits import integral_at, random_moments
from scipy import special, stats

from preflearn.dynamics import Poisson, Skellam


def difference_of_counts(base, mean, variance):
    """Return the probabilities of loss, tie, and win by sums over the points of both
    sides, and over u."""
    x = np.linspace(-9, 9, 61)
    weights = stats.norm.pdf(x) / stats.norm.pdf(x).sum()
    k = np.arange(250)
    results = np.zeros(3)
    for u, weight in zip(mean + math.sqrt(variance) * x, weights, strict=True):
        first = stats.poisson.pmf(k, base * math.exp(u / 2))
        second = stats.poisson.pmf(k, base * math.exp(-u / 2))
        less = first @ (1 - np.cumsum(second))
        more = second @ (1 - np.cumsum(first))
        results += weight * np.array([less, first @ second, more])
    return results


@pytest.mark.parametrize(
    ("mean", "variance"), [(0.0, 0.2), (0.8, 0.05), (-1.5, 0.0), (0.4, 1.0)]
)
def test_points_are_forecast_jointly(mean, variance):
    for base in (0.02, 1.4, 30.0):
        expected = difference_of_counts(base, mean, variance)
        found = Skellam(base).probabilities([mean], [variance])[0]
        np.testing.assert_allclose(found, expected, atol=1e-10)
    joint = Poisson().probabilities([mean / 2], [variance / 4])[0]  # rates e^u and e^-u
    np.testing.assert_allclose(
        joint, difference_of_counts(1.0, mean, variance), atol=1e-10
    )


@pytest.mark.parametrize("base_rate", [1e-6, 0.1, 1.4, 100.0, 1e6])
def test_the_chance_of_a_tie_is_kept_to_the_smallest_number(base_rate):
    """Scaling keeps the probability. It is left out far below e^-800, where the
    probability is 0 as a float."""
    line = np.linspace(0, 60, 241), np.full(241, 0.5)
    mean, variance = np.hstack([random_moments(300, 1), line])
    tie = Skellam(base_rate).probabilities(mean, variance)[:, 1]
    exact = np.exp(Skellam(base_rate).log_partition(np.zeros(541), mean, variance)[0])
    np.testing.assert_allclose(tie, exact, rtol=1e-11)
    np.testing.assert_allclose(tie[300:], exact[300:], rtol=1e-12)


@pytest.mark.parametrize(
    "likelihood", [Poisson(), Skellam(1e-6), Skellam(1.4), Skellam(1e6)], ids=repr
)
def test_results_that_are_certain(likelihood):
    """Ties are so rare that their probability underflows, and quadrature over them
    overflows."""
    mean = np.array([100.0, 300.0, -300.0, 1e4, -1e90])
    for variance in (0.0, 1e-30, 1e-6, 1.0):
        found = likelihood.probabilities(mean, np.full(len(mean), variance))
        np.testing.assert_allclose(found[:, 1], 0, atol=1e-300)
        np.testing.assert_allclose(found[:, 2], mean > 0, atol=1e-12)


def test_rates_of_points_are_bounded():
    """E e^u is e^500050 here. The products of two results in the engine must be
    finite."""
    for likelihood, outcome, slope in ((Poisson(), 3.0, 1.0), (Skellam(2.0), 3.0, 0.0)):
        value, first, second = integral_at(likelihood, outcome, 50, 1e6, ep=False)
        assert -1e101 < value <= -1e100
        assert abs(first) <= slope * 1e101 + 2
        assert -1e101 < second < 0


@pytest.mark.parametrize("base", [5e-4, 0.25, 2.0, 50.0, 2500.0])
def test_the_constant_of_counts(base):
    orders = np.array([0, 1, 7, 300])
    with np.errstate(divide="ignore"):
        expected = np.log(special.ive(orders, 2 * base))
    known = np.isfinite(expected)
    found = Skellam(base).log_density(orders, np.zeros(4))
    assert found[known] == pytest.approx(expected[known], rel=1e-12, abs=1e-12)
