"""The likelihoods of points: a Poisson count, and the difference of two.

Both have log p = c y u - up - down but for a constant: c = 1 and the rates up = e^u,
down = 0 for Poisson, c = 1/2 and up = r e^{u/2}, down = r e^{-u/2} for Skellam, r the
base rate.

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

_MOST_POINTS = 1e9
_LARGEST_EXPONENT = math.log(LARGEST)
_MOST_TERMS = 1_000_000  # of a series: at the largest parameters it has ten thousand
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_PANELS = 12
_NEGLIGIBLE = 45.0  # e^-45 = 3e-20


# ---- Laws: a is the base rate, or 0 for Poisson


@njit_inside
def _rates(a, u, more):
    """c, and the rates, e^more times as large; at most 1e100 or a 1e100, so that
    products are numbers."""
    if a == 0:
        return 1.0, math.exp(min(u + more, _LARGEST_EXPONENT)), 0.0
    up = min(more + 0.5 * u, _LARGEST_EXPONENT)
    down = min(more - 0.5 * u, _LARGEST_EXPONENT)
    return 0.5, a * math.exp(up), a * math.exp(down)


@njit_inside
def _points(a, b, y, u, x):
    """log p(y | u + x) - log p(y | u), without cancellation, and two derivatives of log
    p at u + x."""
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
    # where the rate that outweighs it has its limit
    gain = min(c * y * mean, abs(y) * _LARGEST_EXPONENT)
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
    stretch = 1.0 if a == 0 else 8 + 2 * math.log1p(40 / a)  # where the rates are felt
    sinh = (
        (0.0 if a == 0 else -math.inf),
        math.inf,
        stretch,
        (0.1 if a == 0 else 0.32 / stretch),
    )
    mode, value, first, second = tilted(
        _points, a, b, y, mean, variance, start, sinh, power
    )
    value += power * _expectation(a, y, mode, 0.0)[0]
    return min(value, 0.0), first, second


@njit_inside
def log_bessel(order, x):
    """log I_order(x), order = 0, 1, ..., x > 0: the series of positive terms, from its
    largest one."""
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
    for k in range(peak + 1, peak + _MOST_TERMS):
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
    """p(y | d) = exp(y d - e^d) / y!, y = 0, 1, ...: the points of the first have the
    rate e^d.

    A match with the points of both sides is two rows, of d and of -d. `probabilities`
    are those of the joint points of both sides, which are independent given d, with the
    rates e^d and e^-d.

    Examples
    --------
    >>> Poisson().probabilities([0.0, 1.0], [0.0, 0.1]).round(4).tolist()
    [[0.3457, 0.3085, 0.3457], [0.0463, 0.1141, 0.8396]]
    """

    integrals = _log_partition, _expected, _log_partition_of_power

    def _impossible(self, y: Floats) -> tuple[NDArray[np.bool_], str]:
        wrong = (y < 0) | (y != np.floor(y)) | (y > _MOST_POINTS)
        return wrong, f"numbers of points (whole, from 0 to {_MOST_POINTS:g})"

    def draw(self, d: Floats, rng: np.random.Generator) -> Floats:
        return _draw_points(1.0, d, rng)

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        return Skellam(1.0)._results(2 * mean, 4 * variance)


@dataclass(frozen=True)
class Skellam(Likelihood):
    """The difference of two Poisson counts of points, any integer, as in
    [KarlisNtzoufras2009]_.

    With the rates r e^{d/2} and r e^{-d/2}, r the base rate, and I the modified Bessel
    function, p(y | d) = exp(y d/2 - 2 r cosh(d/2)) I_|y|(2 r).

    Parameters
    ----------
    base_rate : float
        Points that each of two equal sides makes on average; from 1e-6 to 1e6.

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
        wrong = (y != np.floor(y)) | (abs(y) > _MOST_POINTS)
        return wrong, f"whole differences of points, of at most {_MOST_POINTS:g}"

    def draw(self, d: Floats, rng: np.random.Generator) -> Floats:
        first, second = (
            _draw_points(self.base_rate, sign * d / 2, rng) for sign in (1, -1)
        )
        return first - second

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        # p(0 | d) <= exp(-4 r sinh(d/4)^2), which is below e^-800, no number, beyond
        # this reach. So is the chance of 40 deviations; and so far out, quadrature may
        # overflow.
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
    """Poisson counts with the rates base e^d, which are cut where points end."""
    rates = base * np.exp(np.minimum(d, math.log(_MOST_POINTS / base)))
    return rng.poisson(rates).astype(np.float64)


def _wins(base: float, mean: Floats, variance: Floats) -> Floats:
    """P(X > Y), X and Y Poisson with rates base e^{u/2} and base e^{-u/2}, u ~ N(mean,
    variance); shape (n,).

    One more point for X wins a match that is tied, one more for Y ties one that X leads
    by a point. So P(X > Y) given u has the derivative

        (base/2) (e^{u/2} P(X = Y) + e^{-u/2} P(X = Y + 1))
            = (base/2) exp(-2 base cosh(u/2)) (e^{u/2} I_0(2 base) + I_1(2 base)),

    and the average of a function that rises from 0 to 1 with the slope w is the
    integral of w(x) Phi((mean - x) / deviation). By Gauss and Legendre on panels; the
    error is below 1e-12.
    """
    deviation = np.sqrt(variance)
    reach = 0.0
    for _ in range(4):  # where the slope is negligible
        reach = 4 * np.arcsinh(np.sqrt((_NEGLIGIBLE + reach / 2) / (4 * base)))
    cuts = [
        np.full(len(mean), -reach),
        *np.clip(mean + 9 * np.outer([-1, 1], deviation), -reach, reach),
    ]
    total = np.zeros(len(mean))
    # Phi is 1 up to the first cut, and 0 from the second one on
    for begin, end in pairwise(cuts):
        for panel in range(_PANELS):
            half = (end - begin) / (2 * _PANELS)
            x = (begin + (2 * panel + 1) * half)[:, None] + half[:, None] * _NODES
            slope = np.exp(x / 2 - 4 * base * np.sinh(x / 4) ** 2) * ive(0, 2 * base)
            slope += np.exp(-4 * base * np.sinh(x / 4) ** 2) * ive(1, 2 * base)
            with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 has no width
                slope *= np.nan_to_num(ndtr((mean[:, None] - x) / deviation[:, None]))
            total += base / 2 * half * (slope @ _WEIGHTS)
    return total
