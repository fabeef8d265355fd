"""Likelihoods with normal noise, and the tails of the normal distribution.

All functions here use the excess of the hazard rate of the normal distribution over x,

    q(x) = phi(x) / Phi(-x) - x,   which falls from sqrt(2/pi) at 0 to 1/x - 2/x³ + ...

It gives log Phi(-x) = -x²/2 - log(sqrt(2 pi) (x + q)), its first derivative x + q in
-x, and its second derivative -(x + q) q, without cancellation for all x > 0. SciPy has
such functions, but compiled code cannot call them.

References
----------
.. [GlennDavid1960] W. A. Glenn, H. A. David, "Ties in paired-comparison experiments
   using a modified Thurstone-Mosteller model", Biometrics 16, 1960.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx
from scipy.special import log_ndtr as log_ndtr_of_array

from preflearn.core.compilation import njit_inside
from preflearn.core.validation import Floats
from preflearn.dynamics.likelihoods.likelihood import (
    Likelihood,
    PointDifferences,
    Results,
)
from preflearn.dynamics.likelihoods.quadrature import (
    GRID,
    around,
    averaged,
    expected_win,
    tilted,
)
from preflearn.dynamics.parametrized import Positive

_SQRT_2PI = math.sqrt(2 * math.pi)
# Power series around 32 points per unit, from _LOW to _HIGH.
_DEGREE = 8
_DENSE = 32
_LOW = -16.0
_HIGH = 4.0
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(6)


# ---- The normal distribution


def _series(z: Floats) -> Floats:
    """Coefficients of log Phi(z + x) in powers of x, by columns.

    Its slope s has the derivative s' = -s (z + x + s).
    """
    fraction = np.maximum(-z, 3.0)
    for term in range(60, 1, -1):
        fraction = term / fraction + np.maximum(-z, 3.0)
    hazard = math.sqrt(2 / math.pi) / erfcx(-z / math.sqrt(2))
    slope = [hazard]
    excess = [np.where(z < -3, 1 / fraction, z + hazard)]
    for n in range(1, _DEGREE):
        slope.append(-sum(map(np.multiply, slope, excess[::-1])) / n)
        excess.append(slope[n] + (n == 1))
    return np.column_stack(
        [log_ndtr_of_array(z), *(s / (n + 1) for n, s in enumerate(slope))]
    )


_SERIES = _series(np.arange(_LOW, _HIGH + 1 / _DENSE, 1 / _DENSE))
_TABLE = _series(GRID)[:, :3] * [1, 1, 2]


@njit_inside
def _log_ndtr(z):
    """log Phi(z) and two derivatives.

    For very negative z, q is the continued fraction 1/(x + 2/(x + 3/(x + ...))).
    """
    if z > _HIGH:
        other = 0.5 * math.erfc(z / math.sqrt(2))
        hazard = math.exp(-0.5 * z * z) / (_SQRT_2PI * (1 - other))
        return math.log1p(-other), hazard, -hazard * (z + hazard)
    if z < _LOW:
        fraction = -z
        for term in range(12, 1, -1):
            fraction = term / fraction - z
        hazard = 1 / fraction - z
        return -0.5 * z * z - math.log(_SQRT_2PI * hazard), hazard, -hazard / fraction
    k = int(_DENSE * (z - _LOW) + 0.5)
    x = z - _LOW - k / _DENSE
    value = 0.0
    first = 0.0
    second = 0.0
    for n in range(_DEGREE, -1, -1):
        second = second * x + first
        first = first * x + value
        value = value * x + _SERIES[k, n]
    return value, first, 2 * second


@njit_inside
def _log_interval(center, half):
    """log P(|Z + center| < half) and its first two derivatives in center.

    Z is standard normal, half > 0, and P = Phi(half - c) - Phi(-half - c), c =
    |center|, is computed from the logarithms of both terms.
    """
    c = abs(center)
    if half * (c + 1) < 0.2:
        value, first, second = _narrow_interval(c, half)
        return value, math.copysign(first, -center), min(second, 0.0)
    value, slope, bend = _log_ndtr(half - c)
    _, slope_far, bend_far = _log_ndtr(-half - c)
    # density at the far end, relative to the near end
    density = math.exp(-2 * c * half)
    ratio = density * slope / slope_far  # ratio of the two values of Phi
    rest = 1 - ratio
    first = slope * (1 - density) / rest
    second = (bend - ratio * bend_far) / rest - ratio * (
        (slope - slope_far) / rest
    ) ** 2
    return value + math.log(rest), math.copysign(first, -center), min(second, 0.0)


@njit_inside
def _narrow_interval(c, h):
    """`_log_interval` for narrow intervals, by Gauss-Legendre quadrature.

    It uses the mean and variance of Z truncated to the interval; the second result is
    the absolute value of the first derivative.
    """
    total = mean = square = 0.0
    for k in range(len(_POINTS)):
        t = h * _POINTS[k]
        weight = _WEIGHTS[k] * math.exp(-t * (c + 0.5 * t))
        total += weight
        mean += weight * t
        square += weight * t * t
    mean /= total
    return (
        math.log(h * total / _SQRT_2PI) - 0.5 * c * c,
        c + mean,
        square / total - mean * mean - 1,
    )


# ---- Integrals of the likelihoods


@njit_inside
def _win_or_tie(a, b, y, u, x):
    """log p(y | u + x) and two derivatives; the margin a may be 0 without ties."""
    if y == 0:
        return _log_interval(u + x, a)
    value, first, second = _log_ndtr(y * (u + x) - a)
    return value, y * first, second


def _log_partition(a, b, y, mean, variance):
    scale = 1 / math.sqrt(1 + variance)
    value, first, second = _win_or_tie(a * scale, b, y, mean * scale, 0.0)
    return value, first * scale, second * scale * scale


def _expected(a, b, y, mean, variance):
    if y == 0:
        return averaged(_win_or_tie, a, b, y, mean, variance, around(a, y))
    value, first, second = expected_win(_win_or_tie, _TABLE, y * mean - a, variance)
    return value, y * first, second


def _log_partition_of_power(a, b, y, mean, variance, power):
    mode, value, first, second = tilted(
        _win_or_tie, (a, b, y, mean, variance), mean, around(a, y), power
    )
    value += power * _win_or_tie(a, b, y, mode, 0.0)[0]
    return min(value, 0.0), first, second


def _log_partition_of_points(a, b, y, mean, variance):
    first = (y - mean) / (a + variance)
    return (
        -0.5 * (first * (y - mean) + math.log(2 * math.pi * (a + variance))),
        first,
        -1 / (a + variance),
    )


def _log_partition_of_power_of_points(a, b, y, mean, variance, power):
    """`log_partition_of_power` of point differences.

    N(y; u, a)^power is N(y; u, a / power) times a constant.
    """
    first = (y - mean) / (a / power + variance)
    size = power * math.log(2 * math.pi * a) + math.log1p(power * variance / a)
    return (
        -0.5 * (first * (y - mean) + size),
        first,
        -1 / (a / power + variance),
    )


def _expected_of_points(a, b, y, mean, variance):
    first = (y - mean) / a
    return (
        -0.5 * (first * (y - mean) + variance / a + math.log(2 * math.pi * a)),
        first,
        -1 / a,
    )


# ---- Likelihoods


@dataclass(frozen=True)
class Probit(Results):
    """Win or loss with standard normal noise: P(y | d) = Phi(y d), y = -1 or 1.

    Choose it for matches without ties. It is the model of Thurstone, case V: the first
    wins if d exceeds the noise.

    Notes
    -----
    EP has the closed form log Phi(y mean / sqrt(1 + variance)).

    Examples
    --------
    >>> Probit().probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.5, 0.5], [0.2398, 0.7602]]
    """

    integrals = _log_partition, _expected, _log_partition_of_power
    has_ties = False


@dataclass(frozen=True)
class OrdinalProbit(Results):
    """Win, tie, or loss with standard normal noise: P(±1 | d) = Phi(±d - margin).

    The remaining probability is that of a tie (y = 0). Choose it for matches with ties.
    It is the model of [GlennDavid1960]_.

    Parameters
    ----------
    margin : float
        Half the width of the interval of d plus noise in which a match is a tie, in the
        unit of the scores; positive.

    Raises
    ------
    ValueError
        If the margin is not positive.

    Examples
    --------
    >>> OrdinalProbit(margin=0.5).probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.3085, 0.3829, 0.3085], [0.1444, 0.2174, 0.6382]]
    """

    margin: Positive
    integrals = _log_partition, _expected, _log_partition_of_power


@dataclass(frozen=True)
class Gaussian(PointDifferences):
    """Point differences with normal noise: p(y | d) = N(y; d, variance).

    Choose it if the outcome is a difference of many points, as in basketball, without
    outliers. `StudentT` is robust to outliers, and `Skellam` suits small integers.

    Parameters
    ----------
    variance : float
        Variance of the point difference around d, in points squared; positive.
    margin : float
        Largest size of a point difference that counts as a tie in forecasts: 0.5 if
        points are integers; 0 for no ties. Observed differences y are not affected.

    Raises
    ------
    ValueError
        If the variance is not positive, or the margin is negative.

    Examples
    --------
    >>> Gaussian(variance=3.0, margin=0.5).probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.3864, 0.2272, 0.3864], [0.2266, 0.1747, 0.5987]]
    """

    variance: Positive = 1.0
    margin: float = 0.0
    integrals = (
        _log_partition_of_points,
        _expected_of_points,
        _log_partition_of_power_of_points,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "noise", math.sqrt(self.variance))

    def draw(self, d: Floats, rng: np.random.Generator) -> Floats:
        return rng.normal(d, math.sqrt(self.variance))

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        deviation = math.sqrt(self.variance)
        likelihood: Likelihood = Probit()
        if self.has_ties:
            likelihood = OrdinalProbit(self.margin / deviation)
        return likelihood._results(mean / deviation, variance / self.variance)
