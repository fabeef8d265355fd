"""The likelihoods as objects: outcomes, forecasts, densities, and what they refuse."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from dynamics import dense
from dynamics.problems import LIKELIHOODS
from scipy import stats

from preflearn.compiled import njit_inside
from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Likelihood,
    Logit,
    Matern12,
    OrdinalLogit,
    OrdinalProbit,
    Poisson,
    Probit,
    Skellam,
)
from preflearn.dynamics.described import Positive
from preflearn.dynamics.likelihoods.likelihood import Results
from preflearn.dynamics.likelihoods.quadrature import averaged, tilted
from preflearn.matches import Matches

ALL = [*(ours for ours, *_ in LIKELIHOODS.values()), Gaussian(variance=3.0, margin=0.5), Gaussian(140.0)]
RESULTS = [ours for ours in ALL if isinstance(ours, Results)]
OUTCOMES = {Poisson: np.arange(401.0), Skellam: np.arange(-400.0, 401.0)}
OUTCOMES |= {kind: np.array([-1.0, 0.0, 1.0]) for kind in (OrdinalProbit, OrdinalLogit)}
OUTCOMES |= {kind: np.array([-1.0, 1.0]) for kind in (Probit, Logit)}


def test_the_order_of_parameters():
    np.testing.assert_array_equal(Gaussian(variance=3.0, margin=0.5).parameters, [3, 0.5])
    np.testing.assert_array_equal(OrdinalProbit(0.4).parameters, [0.4, 0])


@pytest.mark.parametrize("likelihood", ALL, ids=repr)
def test_densities_add_to_one(likelihood):
    d = np.array([-30.0, -2.0, 0.0, 0.3, 5.0])
    if isinstance(likelihood, Gaussian):
        y = np.arange(-200, 200, 0.01)
        total = [np.exp(likelihood.log_density(y, np.full(len(y), at))).sum() * 0.01 for at in d]
    else:
        d = d if likelihood in RESULTS else d[1:]
        y = OUTCOMES[type(likelihood)]
        total = [np.exp(likelihood.log_density(y, np.full(len(y), at))).sum() for at in d]
    np.testing.assert_allclose(total, 1, rtol=1e-12)


def test_densities_are_those_of_scipy():
    d, points = np.linspace(-3, 3, 25), np.arange(25.0)
    up, down = 1.4 * np.exp(d / 2), 1.4 * np.exp(-d / 2)
    for found, expected in (
        (Probit().log_density(np.ones(25), d), stats.norm.logcdf(d)),
        (Logit().log_density(-np.ones(25), d), stats.logistic.logsf(d)),
        (OrdinalProbit(0.4).log_density(-np.ones(25), d), stats.norm.logcdf(-d - 0.4)),
        (OrdinalLogit(0.7).log_density(np.ones(25), d), stats.logistic.logcdf(d - 0.7)),
        (Poisson().log_density(points, d), stats.poisson.logpmf(points, np.exp(d))),
        (Gaussian(3.0).log_density(points, d), stats.norm.logpdf(points, d, math.sqrt(3))),
        (Skellam(1.4).log_density(points - 12, d), stats.skellam.logpmf(points - 12, up, down)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("likelihood", ALL, ids=repr)
def test_forecasts_add_to_one_and_mirror(likelihood):
    rng = np.random.default_rng(0)
    mean, variance = rng.uniform(-50, 50, 500), 10 ** rng.uniform(-12, 6, 500)
    variance[:50] = 0
    found = likelihood.probabilities(mean, variance)
    assert found.shape == (500, 3 if likelihood.has_ties else 2)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(likelihood.probabilities(-mean, variance), found[:, ::-1], atol=1e-12)
    rising = likelihood.probabilities(np.linspace(-50, 50, 99), np.full(99, 0.3))
    assert (np.diff(rising[:, -1]) > -1e-12).all()


@pytest.mark.parametrize("likelihood", RESULTS, ids=repr)
def test_forecasts_are_partitions(likelihood):
    mean, variance = np.array([0.0, -0.7, 3.0]), np.array([0.01, 2.0, 30.0])
    labels = OUTCOMES[type(likelihood)]
    raw = np.exp([likelihood.log_partition([y] * 3, mean, variance)[0] for y in labels]).T
    np.testing.assert_allclose(raw.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(likelihood.probabilities(mean, variance), raw, rtol=1e-12)


@njit_inside
def _struck(a, b, y, u, x):
    """Of the complementary log-log link, P(1 | u) = 1 - exp(-e^u)."""
    rate = math.exp(min(u + x, 700.0) if y > 0 else u + x)
    if y < 0:
        return -rate, -rate, -rate
    first = rate / math.expm1(rate) if rate < 700 else 0.0
    return math.log(-math.expm1(-rate)), first, first * (1 - rate - first)


def _log_partition(a, b, y, mean, variance):
    mode, value, first, second = tilted(
        _struck, a, b, y, mean, variance, min(mean, 3.0), (0.0, 0.0, 1.0, 0.05)
    )
    return value + _struck(a, b, y, mode, 0.0)[0], first, second


def _expected(a, b, y, mean, variance):
    return averaged(_struck, a, b, y, mean, variance, (0.0, 0.0, 1.0, 0.05))


@dataclass(frozen=True)
class Struck(Results):
    laws = _log_partition, _expected
    has_ties = False


def test_laws_that_grow_like_an_exponential_keep_their_mass():
    """E e^u is e^{mean + variance/2}, with its mass variance/deviation = 20 deviations from the mean."""
    mean, variance = np.array([0.0, -3.0, 0.0]), np.array([4.0, 121.0, 400.0])
    found = Struck().expected([-1, -1, -1], mean, variance)
    np.testing.assert_allclose(found, -np.exp([mean + variance / 2] * 3), rtol=1e-12)
    for mean, variance in ((-3.0, 900.0), (-1000.0, 2800.0)):  # out of reach
        with pytest.raises(ValueError, match=rf"variance\[0\] is {variance}; expected .* of Struck"):
            Struck().expected([-1], [mean], [variance])


def test_laws_have_at_most_two_parameters():
    @dataclass(frozen=True)
    class _Three(Struck):
        a: Positive = 1.0
        b: Positive = 1.0
        c: Positive = 1.0

    with pytest.raises(ValueError, match="parameters of _Three is 3; expected at most 2"):
        _Three().log_density([1], [0.0])


@pytest.mark.parametrize(("method", "rate"), [("ep", 1.0), ("kl", 0.5)])
def test_a_new_likelihood_is_a_class_and_two_laws(method, rate):
    """The engine takes them as they are, and finds what the dense twin finds."""
    matches = Matches([[1, -1, 0], [0, 1, -1], [1, 0, -1], [-1, 1, 0]], [0.0, 1.0, 1.0, 3.0], ["a", "b", "c"])
    covariance, y = Constant(0.3) + Matern12(0.5, 2.0), np.array([1, 1, -1, 1])
    model = DynamicComparisons(covariance, Struck(), method=method, tol=1e-10).fit(matches, y)

    def density(y, d):
        return np.where(y > 0, np.log(-np.expm1(-np.exp(d))), -np.exp(d))

    found = dense.fixed_point(dense.Problem(matches, covariance), density, y, method, rate)
    assert model.log_marginal_likelihood_ == pytest.approx(found.log_evidence, rel=1e-9)
    assert Likelihood.read(Struck().describe()) == Struck()
    np.testing.assert_allclose(Struck().probabilities([0.0], [0.0]), [[math.exp(-1), 1 - math.exp(-1)]])


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (OrdinalProbit, {"margin": 0.0}, r"margin is 0\.0; expected a positive number"),
        (OrdinalProbit, {"margin": -1}, "margin is -1; expected a positive number"),
        (OrdinalLogit, {"margin": math.nan}, "margin is nan; expected a positive number"),
        (OrdinalLogit, {"margin": "wide"}, "margin is 'wide'; expected a positive number"),
        (OrdinalLogit, {"margin": None}, "margin is None; expected a positive number"),
        (Gaussian, {"variance": 0}, "variance is 0; expected a positive number"),
        (Gaussian, {"margin": -0.5}, r"margin is -0\.5; expected a number of at least 0"),
        (Gaussian, {"variance": math.inf}, "variance is inf; expected a positive number"),
        (Skellam, {"base_rate": 0}, "base_rate is 0; expected a number from 1e-06 to"),
        (Skellam, {"base_rate": True}, "base_rate is True"),
    ],
)
def test_bad_parameters_are_named(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        kind(**parameters)


@pytest.mark.parametrize(
    ("likelihood", "y", "message"),
    [
        (Probit(), [1, 0, -1], r"y\[1\] is 0\.0; expected one of \[-1, 1\], for Probit"),
        (Logit(), [1, -1, 2], r"y\[2\] is 2\.0; expected one of \[-1, 1\], for Logit"),
        (OrdinalProbit(1.0), [1, 0, 0.5], r"y\[2\] is 0\.5; expected one of \[-1, 0, 1\]"),
        (OrdinalLogit(1.0), [3, 0, 0], r"y\[0\] is 3\.0; expected one of \[-1, 0, 1\]"),
        (Poisson(), [1, 0, -1], r"y\[2\] is -1\.0; expected numbers of points \(whole, from 0 to 1e\+09\)"),
        (Poisson(), [1, 1.5, 1], r"y\[1\] is 1\.5; expected numbers of points"),
        (Skellam(), [1, 1.5, 1], r"y\[1\] is 1\.5; expected whole differences of points"),
        (Gaussian(), [1, 1e101, 1], r"y\[1\] is 1e\+101; expected differences of points"),
        (Gaussian(), [1, math.nan, 1], r"y\[1\] is nan; expected finite numbers"),
        (Gaussian(), [1, "won", 1], r"y\[1\] is 'won'"),
        (OrdinalLogit(0.3), [1, 0, -2], r"y\[2\] is -2\.0; expected one of \[-1, 0, 1\]"),
        (OrdinalProbit(1.0), [True, True, False], r"y\[0\] is True; expected one of \[-1, 0, 1\], for Ord"),
        (Gaussian(), np.array([1, 0, False], dtype=object), r"y\[2\] is False; expected differences of p"),
        (Probit(), [1, -1], r"y has shape \(2,\); expected \(3,\): one outcome a match"),
    ],
)
def test_impossible_outcomes_are_named(likelihood, y, message):
    with pytest.raises(ValueError, match=message):
        likelihood.check(y, 3)


@pytest.mark.parametrize(
    ("ask", "moments", "message"),
    [
        (
            Probit().probabilities,
            ([0.0, 0.0], [1.0, -1.0]),
            r"variance\[1\] is -1\.0; expected a variance of at",
        ),
        (Probit().probabilities, ([0, 0], [1]), r"variance has shape \(1,\); expected \(2,\)"),
        (
            Logit().expected,
            ([1, 1], [0, 1e101], [1, 1]),
            r"mean\[1\] is 1e\+101; expected means up to 1e\+100",
        ),
        (Logit().probabilities, ([0], [1e101]), r"variance\[0\] is 1e\+101; expected variances up to 1e\+"),
        (Probit().log_partition, ([1], [math.nan], [1]), r"mean\[0\] is nan"),
    ],
)
def test_moments_are_checked(ask, moments, message):
    with pytest.raises(ValueError, match=message):
        ask(*moments)


def test_the_method_of_a_law_is_named():
    with pytest.raises(ValueError, match="ep is <NA>; expected True or False"):
        Probit().law(ep=pd.NA)  # pyright: ignore[reportArgumentType]
