"""Likelihoods as objects: outcomes, forecasts, densities, and the input that they
reject."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from dynamics.problems import LIKELIHOODS

from preflearn.core.compilation import njit_inside
from preflearn.dynamics import (
    Gaussian,
    Logit,
    OrdinalLogit,
    OrdinalProbit,
    Poisson,
    Probit,
    Skellam,
)
from preflearn.dynamics.likelihoods.likelihood import Results
from preflearn.dynamics.likelihoods.quadrature import averaged, tilted
from preflearn.dynamics.parametrized import Positive

ALL = [
    *(ours for ours, *_ in LIKELIHOODS.values()),
    Gaussian(variance=3.0, margin=0.5),
    Gaussian(140.0),
]
RESULTS = [ours for ours in ALL if isinstance(ours, Results)]


def integer_outcomes(likelihood):
    """Return the possible outcomes among the integers up to 400."""
    y = np.arange(-400.0, 401.0)
    impossible, _ = likelihood._impossible(y)
    return y[~impossible]


@pytest.mark.parametrize("likelihood", ALL, ids=repr)
def test_densities_add_to_one(likelihood):
    d = np.array([-30.0, -2.0, 0.0, 0.3, 5.0])
    if isinstance(likelihood, Gaussian):
        y = np.arange(-200, 200, 0.01)
        total = [
            np.exp(likelihood.log_density(y, np.full(len(y), at))).sum() * 0.01
            for at in d
        ]
    else:
        d = d if likelihood in RESULTS else d[1:]
        y = integer_outcomes(likelihood)
        total = [
            np.exp(likelihood.log_density(y, np.full(len(y), at))).sum() for at in d
        ]
    np.testing.assert_allclose(total, 1, rtol=1e-12)


@pytest.mark.parametrize("likelihood", ALL, ids=repr)
def test_forecasts_add_to_one_and_mirror(likelihood):
    rng = np.random.default_rng(0)
    mean = rng.uniform(-50, 50, 500)
    variance = 10 ** rng.uniform(-12, 6, 500)
    variance[:50] = 0
    found = likelihood.probabilities(mean, variance)
    assert found.shape == (500, 3 if likelihood.has_ties else 2)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(
        likelihood.probabilities(-mean, variance), found[:, ::-1], atol=1e-12
    )
    rising = likelihood.probabilities(np.linspace(-50, 50, 99), np.full(99, 0.3))
    assert (np.diff(rising[:, -1]) > -1e-12).all()


@pytest.mark.parametrize("likelihood", RESULTS, ids=repr)
def test_forecasts_are_partitions(likelihood):
    mean = np.array([0.0, -0.7, 3.0])
    variance = np.array([0.01, 2.0, 30.0])
    labels = integer_outcomes(likelihood)
    raw = np.exp(
        [likelihood.log_partition([y] * 3, mean, variance)[0] for y in labels]
    ).T
    np.testing.assert_allclose(raw.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(
        likelihood.probabilities(mean, variance), raw, rtol=1e-12
    )


@njit_inside
def _struck(a, b, y, u, x):
    """Density of the complementary log-log link, P(1 | u) = 1 - exp(-e^u)."""
    rate = math.exp(min(u + x, 700.0) if y > 0 else u + x)
    if y < 0:
        return -rate, -rate, -rate
    first = rate / math.expm1(rate) if rate < 700 else 0.0
    return math.log(-math.expm1(-rate)), first, first * (1 - rate - first)


def _log_partition(a, b, y, mean, variance):
    mode, value, first, second = tilted(
        _struck, (a, b, y, mean, variance), min(mean, 3.0), (0.0, 0.0, 1.0, 0.05)
    )
    return value + _struck(a, b, y, mode, 0.0)[0], first, second


def _expected(a, b, y, mean, variance):
    return averaged(_struck, a, b, y, mean, variance, (0.0, 0.0, 1.0, 0.05))


@dataclass(frozen=True)
class Struck(Results):
    integrals = _log_partition, _expected
    has_ties = False


def test_likelihoods_that_grow_like_an_exponential_keep_their_mass():
    """E e^u is e^{mean + variance/2}. Its mass is variance/deviation = 20 deviations
    from the mean."""
    mean = np.array([0.0, -3.0, 0.0])
    variance = np.array([4.0, 121.0, 400.0])
    found = Struck().expected([-1, -1, -1], mean, variance)
    np.testing.assert_allclose(found, -np.exp([mean + variance / 2] * 3), rtol=1e-12)
    # the mass is outside the range of the quadrature
    for mean, variance in ((-3.0, 900.0), (-1000.0, 2800.0)):
        with pytest.raises(ValueError, match=r"variance\[0\]"):
            Struck().expected([-1], [mean], [variance])


def test_likelihoods_have_at_most_two_parameters():
    @dataclass(frozen=True)
    class _Three(Struck):
        a: Positive = 1.0
        b: Positive = 1.0
        c: Positive = 1.0

    with pytest.raises(ValueError, match="parameters of _Three"):
        _Three().log_density([1], [0.0])


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        (OrdinalProbit, "margin", (0.0, -1)),
        (OrdinalLogit, "margin", (math.nan, "wide", None)),
        (Gaussian, "variance", (0, math.inf)),
        (Gaussian, "margin", (-0.5,)),
        (Skellam, "base_rate", (0, True)),
    ],
)
def test_bad_parameters_are_named(kind, name, values):
    for value in values:
        with pytest.raises(ValueError, match=name):
            kind(**{name: value})


@pytest.mark.parametrize(
    ("likelihood", "y", "wrong"),
    [
        (Probit(), [1, 0, -1], 1),
        (OrdinalLogit(1.0), [1, 0, 0.5], 2),
        (Poisson(), [1, 0, -1], 2),
        (Poisson(), [1, 1.5, 1], 1),
        (Skellam(), [1, 1.5, 1], 1),
        (Gaussian(), [1, 1e101, 1], 1),
        (Gaussian(), [1, math.nan, 1], 1),
        (Gaussian(), [1, "won", 1], 1),
        (OrdinalProbit(1.0), [True, True, False], 0),
        (Gaussian(), np.array([1, 0, False], dtype=object), 2),
    ],
)
def test_impossible_outcomes_are_named(likelihood, y, wrong):
    with pytest.raises(ValueError, match=rf"y\[{wrong}\]"):
        likelihood.check(y, 3)


@pytest.mark.parametrize(
    ("ask", "moments", "named"),
    [
        (Probit().probabilities, ([0.0, 0.0], [1.0, -1.0]), r"variance\[1\]"),
        (Probit().probabilities, ([0, 0], [1]), "variance"),
        (Logit().expected, ([1, 1], [0, 1e101], [1, 1]), r"mean\[1\]"),
        (Logit().probabilities, ([0], [1e101]), r"variance\[0\]"),
        (Probit().log_partition, ([1], [math.nan], [1]), r"mean\[0\]"),
        (Probit().log_partition, ([1, -1], [0, 0, 0], [1, 1, 1]), "y "),
    ],
)
def test_bad_moments_are_named(ask, moments, named):
    with pytest.raises(ValueError, match=named):
        ask(*moments)
