"""The normal distribution in its tails, compiled: what win and tie of the probit models are made of.

Everything rests on one function of x >= 0, the excess of the hazard rate of the normal distribution over x,

    q(x) = phi(x) / Phi(-x) - x,   which falls from sqrt(2/pi) at 0 to 1/x - 2/x³ + ...

From it follow log Phi(-x) = -x²/2 - log(sqrt(2 pi) (x + q)), its first derivative in -x, x + q, and its
second one, -(x + q) q, none with cancellation, for any x. SciPy has such functions, but compiled code cannot
call them; so q is kept as a polynomial in pieces.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx
from scipy.special import log_ndtr as log_ndtr_of_array

from preflearn.checks import Floats
from preflearn.compiled import njit

_PIECES, _DEGREE, _BEND = 64, 7, 3.0
_SMALL = 1e-3
_SQRT_2PI = math.sqrt(2 * math.pi)
_LOG_SQRT_2PI = math.log(_SQRT_2PI)


def _excess_exactly(x: Floats) -> Floats:
    """q by its continued fraction 1/(x + 2/(x + 3/(x + ...))), or from erfcx where that converges slowly."""
    fraction = np.array(x)
    for term in range(200, 1, -1):
        fraction = x + term / fraction
    hazard = math.sqrt(2 / math.pi) / erfcx(x / math.sqrt(2))
    return np.where(x > 3, 1 / fraction, hazard - x)


def _pieces() -> Floats:
    """Coefficients, the highest power first, of (bend + x) q(x) in each piece of bend / (bend + x).

    Interpolated at Chebyshev nodes; the relative error of q is below 1e-15.
    """
    nodes = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    t = (np.arange(_PIECES)[:, None] + (1 + nodes) / 2) / _PIECES
    x = _BEND * (1 - t) / t
    values = (_BEND + x) * _excess_exactly(x)
    return np.array(np.linalg.solve(np.vander(nodes), values.T).T, dtype=np.float64, order="C")


_COEFFICIENTS = _pieces()


def log_ndtr_table(z: Floats) -> Floats:
    """What `log_ndtr` gives, of an array, in columns."""
    hazard = math.sqrt(2 / math.pi) / erfcx(-z / math.sqrt(2))
    beyond = np.where(z < 0, _excess_exactly(np.maximum(-z, 1e-9)), z + hazard)
    return np.column_stack([log_ndtr_of_array(z), hazard, -hazard * beyond])


@njit
def excess(x):
    """q(x) for x >= 0."""
    shrink = 1 / (_BEND + x)
    place = _BEND * _PIECES * shrink
    piece = min(int(place), _PIECES - 1)
    row, t = _COEFFICIENTS[piece], 2 * (place - piece) - 1
    square, even, odd = t * t, row[_DEGREE % 2], row[1 - _DEGREE % 2]
    for power in range(2, _DEGREE, 2):  # two sums side by side: neither waits for the other
        even = even * square + row[power + _DEGREE % 2]
        odd = odd * square + row[power + 1 - _DEGREE % 2]
    return (even + t * odd) * shrink


@njit
def log_ndtr(z):
    """log Phi(z) and its first two derivatives."""
    if z <= 0:
        beyond = excess(-z)
        hazard = beyond - z
        return -0.5 * z * z - math.log(_SQRT_2PI * hazard), hazard, -hazard * beyond
    density = math.exp(-0.5 * z * z) / _SQRT_2PI
    other = density / (z + excess(z))  # Phi(-z)
    hazard = density / (1 - other)
    value = math.log(1 - other) if other > _SMALL else math.log1p(-other)  # which takes three times as long
    return value, hazard, -hazard * (z + hazard)


@njit
def log_interval(center, half):
    """log P(|Z + center| < half), Z standard normal, half > 0, and its first two derivatives in center.

    With Z cut to this interval these are -E Z' and Var Z - 1, where Z' = Z + center.
    """
    c = abs(center)
    if half * (c + 1) < 0.2:
        value, first, second = _narrow_interval(c, half)
    elif c <= half:
        value, first, second = _interval_around_0(c, half)
    else:
        value, first, second = _interval_in_tail(c, half)
    return value, math.copysign(first, -center), second


@njit
def _narrow_interval(c, h):
    """By the series of phi around c: P = 2 h phi(c) sum_j He_2j(c) h^2j / (2j+1)!; first is |first|."""
    total, slope, bend = 1.0, 0.0, 0.0
    below, hermite, scale = 1.0, c, 1.0  # He_{2j-2}, He_{2j-1}
    for j in range(1, 6):
        scale *= h * h / (2 * j * (2 * j + 1))
        above = c * hermite - (2 * j - 1) * below
        total += scale * above
        slope += scale * 2 * j * hermite
        bend += scale * 2 * j * (2 * j - 1) * below
        below, hermite = above, c * above - 2 * j * hermite
    slope /= total
    value = math.log(2 * h * total / _SQRT_2PI) - 0.5 * c * c
    return value, c - slope, min(bend / total - slope * slope - 1, 0.0)


@njit
def _interval_around_0(c, h):
    near, far = h - c, h + c
    density, density_far = math.exp(-0.5 * near * near) / _SQRT_2PI, math.exp(-0.5 * far * far) / _SQRT_2PI
    outside = density / (near + excess(near)) + density_far / (far + excess(far))
    first = (density - density_far) / (1 - outside)
    second = -(near * density + far * density_far) / (1 - outside) - first * first
    return math.log1p(-outside), first, second


@njit
def _interval_in_tail(c, h):
    """Relative to phi at the near end, so that nothing underflows; all terms with the far end are small."""
    near, far = c - h, c + h
    q, q_far = excess(near), excess(far)
    ratio = math.exp(-2 * c * h)  # of the densities
    mass, mass_far = 1 / (near + q), ratio / (far + q_far)
    total = mass - mass_far
    mean = (q * mass - (q_far + 2 * h) * mass_far) / total  # of Z - near
    square = (1 - near * q) * mass - (1 + 4 * h * h + (2 * h - near) * q_far) * mass_far
    value = math.log(total) - 0.5 * near * near - _LOG_SQRT_2PI
    return value, near + mean, min(square / total - mean * mean - 1, 0.0)
