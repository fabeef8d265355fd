"""Likelihoods of points: a Poisson count, and the difference of two counts.

Up to a constant, both have log p = c y u - up - down. For Poisson, c = 1 with the rates
up = e^u and down = 0. For Skellam, c = 1/2 with up = r e^{u/2} and down = r e^{-u/2},
where r is the base rate.

References
----------
.. [KarlisNtzoufras2009] D. Karlis, I. Ntzoufras, "Bayesian modelling of football
   outcomes: using the Skellam's distribution for the goal difference", IMA Journal of
   Management Mathematics 20, 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive, ndtr

from preflearn.core.compilation import njit_inside
from preflearn.core.validation import LARGEST, Floats
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.dynamics.likelihoods.quadrature import TINY, tilted
from preflearn.dynamics.parametrized import Positive

_MAX_POINTS = 1e9
_MAX_EXPONENT = math.log(LARGEST)
_MAX_TERMS = 1_000_000  # terms of a series; the largest parameters need ten thousand
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_PANELS = 12
_NEGLIGIBLE = 45.0  # e^-45 = 3e-20


# ---- Integrals of the likelihoods: a is the base rate, or 0 for Poisson


@njit_inside
def _rates(a, u, more):
    """c, and the rates times e^more.

    The rates are at most 1e100 or a 1e100, so that products do not overflow.
    """
    if a == 0:
        return 1.0, math.exp(min(u + more, _MAX_EXPONENT)), 0.0
    up = min(more + 0.5 * u, _MAX_EXPONENT)
    down = min(more - 0.5 * u, _MAX_EXPONENT)
    return 0.5, a * math.exp(up), a * math.exp(down)


@njit_inside
def _points(a, b, y, u, x):
    """log p(y | u + x) - log p(y | u), and two derivatives of log p at u + x.

    No digits are lost by cancellation.
    """
    c, up, down = _rates(a, u, 0.0)
    more = up * math.expm1(min(c * x, 700.0))
    less = down * math.expm1(min(-c * x, 700.0))
    first = c * (y - (up + more) + (down + less))
    return c * y * x - more - less, first, -c * c * (up + more + down + less)


@njit_inside
def _expectation(a, y, mean, variance):
    """E log p(y | u) and two derivatives in the mean, u ~ N(mean, variance)."""
    c = 1.0 if a == 0 else 0.5
    c, up, down = _rates(a, mean, 0.5 * c * c * variance)
    constant = -math.lgamma(y + 1) if a == 0 else log_bessel(abs(y), 2 * a)
    # the limit of the rate limits this term, too
    gain = min(c * y * mean, abs(y) * _MAX_EXPONENT)
    return (
        min(constant + gain - up - down, 0.0),
        c * (y - up + down),
        -c * c * (up + down),
    )


def _expected(a, b, y, mean, variance):
    return _expectation(a, y, mean, variance)


def _log_partition(a, b, y, mean, variance):
    return _tilted(a, b, y, mean, variance, 1.0)


def _log_partition_of_power(a, b, y, mean, variance, power):
    return _tilted(a, b, y, mean, variance, power)


@njit_inside
def _tilted(a, b, y, mean, variance, power):
    if variance < TINY:
        value, first, second = _expectation(a, y, mean, 0.0)
        return power * value, power * first, power * second
    if a == 0:  # at the mode e^u = y - (u - mean) / variance
        start = min(mean, math.log(y + 1 + max(mean, 0.0) / variance))
    else:
        most = 2 * math.log((abs(y) + 2 * abs(mean) / variance) / a + 2)
        start = min(max(mean, -most), most)
    stretch = (
        1.0 if a == 0 else 8 + 2 * math.log1p(40 / a)
    )  # width of the region where the rates matter
    sinh = (
        (0.0 if a == 0 else -math.inf),
        math.inf,
        stretch,
        (0.1 if a == 0 else 0.32 / stretch),
    )
    mode, value, first, second = tilted(
        _points, (a, b, y, mean, variance), start, sinh, power
    )
    value += power * _expectation(a, y, mode, 0.0)[0]
    return min(value, 0.0), first, second


@njit_inside
def log_bessel(order, x):
    """log I_order(x), order = 0, 1, ..., x > 0.

    The terms of the series are positive and are summed from the largest one.
    """
    square = 0.25 * x * x
    peak = math.floor(0.5 * (math.sqrt(order * order + x * x) - order))
    total = 1.0
    term = 1.0
    for k in range(peak, 0, -1):
        term *= k * (k + order) / square
        total += term
        if term < 1e-17 * total:
            break
    term = 1.0
    for k in range(peak + 1, peak + _MAX_TERMS):
        term *= square / (k * (k + order))
        total += term
        if term < 1e-17 * total:
            break
    largest = (
        (peak + 0.5 * order) * math.log(square)
        - math.lgamma(peak + 1)
        - math.lgamma(peak + order + 1)
    )
    return largest + math.log(total)


# ---- Likelihoods


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Points of one side, a Poisson count: p(y | d) = exp(y d - e^d) / y!.

    Choose it for low-scoring games if you want the points of each side, as in football.
    The outcome y = 0, 1, ... is the number of points of the first, with the rate e^d. A
    match with the points of both sides is two rows, with score differences d and -d.
    `probabilities` are those of the results when both sides' points are independent
    given d, with the rates e^d and e^-d.

    Examples
    --------
    >>> Poisson().probabilities([0.0, 1.0], [0.0, 0.1]).round(4).tolist()
    [[0.3457, 0.3085, 0.3457], [0.0463, 0.1141, 0.8396]]
    """

    integrals = _log_partition, _expected, _log_partition_of_power

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        wrong = (y < 0) | (y != np.floor(y)) | (y > _MAX_POINTS)
        return wrong, f"a number of points, an integer from 0 to {_MAX_POINTS:g}"

    def draw(self, d: Floats, rng: np.random.Generator) -> Floats:
        return _draw_points(1.0, d, rng)

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        return Skellam(1.0)._results(2 * mean, 4 * variance)


@dataclass(frozen=True)
class Skellam(Likelihood):
    """Difference of two Poisson counts of points, any integer.

    Choose it for goal differences and other small integers, as in
    [KarlisNtzoufras2009]_. With the rates r e^{d/2} and r e^{-d/2}, r the base rate,
    and I the modified Bessel function, p(y | d) = exp(y d/2 - 2 r cosh(d/2)) I_|y|(2
    r).

    Parameters
    ----------
    base_rate : float
        Mean number of points of each of two equal sides; from 1e-6 to 1e6.

    Raises
    ------
    ValueError
        If the base rate is out of range.

    Examples
    --------
    >>> Skellam(base_rate=1.4).probabilities([0.0, 1.0], [0.0, 0.1]).round(4).tolist()
    [[0.3736, 0.2528, 0.3736], [0.1298, 0.1746, 0.6956]]
    """

    base_rate: Positive = 1.0
    ranges = {"base_rate": (1e-6, 1e6)}  # noqa: RUF012
    integrals = _log_partition, _expected, _log_partition_of_power

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        wrong = (y != np.floor(y)) | (abs(y) > _MAX_POINTS)
        return (
            wrong,
            f"a point difference, an integer from -{_MAX_POINTS:g} to {_MAX_POINTS:g}",
        )

    def draw(self, d: Floats, rng: np.random.Generator) -> Floats:
        first, second = (
            _draw_points(self.base_rate, sign * d / 2, rng) for sign in (1, -1)
        )
        return first - second

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        # p(0 | d) <= exp(-4 r sinh(d/4)^2) is below e^-800 and underflows beyond this
        # reach, as does the probability of 40 standard deviations. Quadrature may overflow
        # there.
        reach = 4 * math.asinh(math.sqrt(200 / self.base_rate))
        near = np.abs(mean) <= reach + 40 * np.sqrt(variance)
        log_tie = self._each(
            True, np.zeros(len(mean)), np.where(near, mean, 0.0), variance
        )[0]
        tie = np.where(near, np.exp(log_tie), 0.0)
        losses, wins = (
            _wins(self.base_rate, sign * mean, variance) for sign in (-1, 1)
        )
        chances = np.column_stack([losses, tie, wins])
        return chances / chances.sum(axis=1, keepdims=True)


def _draw_points(base: float, d: Floats, rng: np.random.Generator) -> Floats:
    """Draw Poisson counts with rates base e^d, limited to the largest count."""
    rates = base * np.exp(np.minimum(d, math.log(_MAX_POINTS / base)))
    return rng.poisson(rates).astype(np.float64)


def _wins(base: float, mean: Floats, variance: Floats) -> Floats:
    """P(X > Y) for Poisson counts X and Y with log rates that depend on u.

    The rates are base e^{u/2} and base e^{-u/2}, with u ~ N(mean, variance); the result
    has shape (n,). A further point for X wins a tied match, and a further point for Y
    ties a match in which X leads by one point. Therefore P(X > Y) given u has the
    derivative

        (base/2) (e^{u/2} P(X = Y) + e^{-u/2} P(X = Y + 1))
            = (base/2) exp(-2 base cosh(u/2)) (e^{u/2} I_0(2 base) + I_1(2 base)).

    The mean of a function that rises from 0 to 1 with the slope w is the integral of
    w(x) Phi((mean - x) / deviation). It is computed by Gauss-Legendre quadrature on
    panels, with an error below 1e-12.
    """
    deviation = np.sqrt(variance)
    reach = 0.0
    for _ in range(4):  # beyond this the slope is negligible
        reach = 4 * np.arcsinh(np.sqrt((_NEGLIGIBLE + reach / 2) / (4 * base)))
    cuts = [
        np.full(len(mean), -reach),
        *np.clip(mean + 9 * np.outer([-1, 1], deviation), -reach, reach),
    ]
    total = np.zeros(len(mean))
    # Phi is 1 below the second cut and 0 above the third
    for begin, end in pairwise(cuts):
        for panel in range(_PANELS):
            half = (end - begin) / (2 * _PANELS)
            x = (begin + (2 * panel + 1) * half)[:, None] + half[:, None] * _NODES
            slope = np.exp(x / 2 - 4 * base * np.sinh(x / 4) ** 2) * ive(0, 2 * base)
            slope += np.exp(-4 * base * np.sinh(x / 4) ** 2) * ive(1, 2 * base)
            with np.errstate(
                divide="ignore", invalid="ignore"
            ):  # 0 / 0 occurs only in panels of width 0
                slope *= np.nan_to_num(ndtr((mean[:, None] - x) / deviation[:, None]))
            total += base / 2 * half * (slope @ _WEIGHTS)
    return total
