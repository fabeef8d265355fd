"""Likelihoods with logistic noise.

With F(u) = 1 / (1 + e^-u) and the margin m, a win has the probability F(u - m) and a
tie sinh(m) / (cosh(m) + cosh(u)), which is (1 - e^-2m) F(m + u) F(m - u). The poles are
at the distance pi from the real line, so few quadrature nodes suffice. The derivatives
of log E P are E P' / E P and E P'' / E P - (E P' / E P)².

References
----------
.. [RaoKupper1967] P. V. Rao, L. L. Kupper, "Ties in paired-comparison experiments: a
   generalization of the Bradley-Terry model", Journal of the American Statistical
   Association 62, 1967.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from preflearn.core.compilation import njit_inside
from preflearn.dynamics.likelihoods.likelihood import Results
from preflearn.dynamics.likelihoods.quadrature import (
    GRID,
    GRID_STEP,
    MAX_STEP,
    SPACING,
    TINY,
    around,
    expected_win,
    nodes,
    tilted,
)
from preflearn.dynamics.parametrized import Positive

# the largest mean and margin for `_narrow`, where squares of e^328 do not overflow
_MAX_NARROW_MEAN = 200.0
_WIDE_VARIANCE = 8.0  # above this variance `_wide` has fewer nodes
_DECAY = np.exp(np.clip(-GRID, -300, 300))
_TABLE = np.column_stack(
    [-np.logaddexp(0, -GRID), expit(-GRID), -expit(GRID) * expit(-GRID)]
)


@njit_inside
def _log_logistic(u):
    """log F(u) and its first two derivatives."""
    decay = math.exp(-abs(u))
    larger = 1 / (1 + decay)
    smaller = decay * larger
    value = min(u, 0.0) - math.log1p(decay)
    return value, smaller if u > 0 else larger, -larger * smaller


@njit_inside
def _win_or_tie(a, b, y, u, x):
    """log p(y | u + x) and two derivatives; for ties without the constant factor."""
    u += x
    if y == 0:
        value_up, first_up, second_up = _log_logistic(a + u)
        value_down, first_down, second_down = _log_logistic(a - u)
        return value_up + value_down, first_up - first_down, second_up + second_down
    value, first, second = _log_logistic(y * u - a)
    return value, y * first, second


@njit_inside
def _log_factor(a, y):
    """The logarithm of the factor that `_win_or_tie` omits."""
    if y != 0:
        return 0.0
    return math.log(-math.expm1(-2 * a))


@njit_inside
def _narrow(lower, upper, mean, variance):
    """log E P and two derivatives in the mean, for narrow distributions.

    P = 1 / ((1 + lower e^-u) (1 + upper e^u)). The nodes have equal steps in u of at
    most 0.4, so that each weight and each e^-u follows from the previous one.
    """
    deviation = math.sqrt(variance)
    step = min(MAX_STEP, 0.4 / deviation)
    # the slope of log P is at most 1, which shifts the mass by up to one variance
    most = int((8 + deviation) / step)
    weight = math.exp(-0.5 * (most * step) ** 2)
    ratio = math.exp((most - 0.5) * step * step)
    change = math.exp(-step * step)
    # e^-u
    decay = math.exp(most * step * deviation - mean)
    factor = math.exp(-step * deviation)
    norm = total = slope = bend = 0.0
    for _ in range(2 * most + 1):
        left = lower * decay
        right = upper / decay
        chance = 1 / (1 + lower * upper + left + right)
        # (log P)', and P'' / P = 2 first² - (left + right) chance
        first = (left - right) * chance
        norm += weight
        total += weight * chance
        slope += weight * chance * first
        bend += weight * chance * (2 * first * first - (left + right) * chance)
        weight = weight * ratio
        ratio = ratio * change
        decay = decay * factor
    slope /= total
    return math.log(total / norm), slope, min(bend / total - slope * slope, 0.0)


@njit_inside
def _wide(lower, upper, mean, variance, center, begin, end, stride):
    """The integral of `_narrow` on GRID.

    The second derivative comes from the variance of u under P N(u; mean, variance).
    """
    total = slope = moment = square = 0.0
    for k in range(begin, end, stride):
        left = lower * _DECAY[k]
        right = upper / _DECAY[k]
        x = GRID[k] - center
        chance = 1 / (1 + lower * upper + left + right)
        weight = (
            math.exp(-0.5 * x * (x + 2 * (center - mean)) / variance)
            * SPACING[k]
            * chance
        )
        total += weight
        slope += weight * (left - right) * chance
        moment += weight * x
        square += weight * x * x
    x = moment / total
    offset = center - mean
    value = math.log(total * stride * GRID_STEP / math.sqrt(2 * math.pi * variance))
    # so that 1 + variance * second is positive
    spread = max((square / total - x * x) / variance, 4e-16)
    return (
        value - 0.5 * offset * offset / variance,
        slope / total,
        min(spread - 1, 0.0) / variance,
    )


def _log_partition(a, b, y, mean, variance):
    # Far from 0, P = 1 / ((1 + lower e^-u) (1 + upper e^u)) is e^u or e^-u, and shifts
    # the normal distribution by its variance.
    if y == 0:
        away = mean
        lower = math.exp(-a)
        upper = lower
        sign = 1.0
        center = min(max(0.0, away - variance), away + variance)
    else:
        away = y * mean - a
        lower = 1.0
        upper = 0.0
        sign = y
        center = min(max(0.0, away), away + variance)
    begin = 0
    end = 0
    stride = 0
    if variance > _WIDE_VARIANCE:
        begin, end, stride = nodes(center, math.sqrt(variance))
    if TINY <= variance <= _WIDE_VARIANCE and max(abs(away), a) < _MAX_NARROW_MEAN:
        value, first, second = _narrow(lower, upper, away, variance)
        first *= sign
    elif stride > 0 and max(abs(center), a) < _MAX_NARROW_MEAN:
        value, first, second = _wide(
            lower, upper, away, variance, center, begin, end, stride
        )
        first *= sign
    else:
        mode, value, first, second = tilted(
            _win_or_tie, (a, b, y, mean, variance), mean, around(a, y)
        )
        value += _win_or_tie(a, b, y, mode, 0.0)[0]
    return min(value + _log_factor(a, y), 0.0), first, second


def _log_partition_of_power(a, b, y, mean, variance, power):
    mode, value, first, second = tilted(
        _win_or_tie, (a, b, y, mean, variance), mean, around(a, y), power
    )
    value += power * (_win_or_tie(a, b, y, mode, 0.0)[0] + _log_factor(a, y))
    return min(value, 0.0), first, second


def _expected(a, b, y, mean, variance):
    if y == 0:
        value_up, first_up, second_up = expected_win(
            _win_or_tie, _TABLE, a + mean, variance
        )
        value_down, first_down, second_down = expected_win(
            _win_or_tie, _TABLE, a - mean, variance
        )
        value = value_up + value_down
        first = first_up - first_down
        second = second_up + second_down
    else:
        value, first, second = expected_win(_win_or_tie, _TABLE, y * mean - a, variance)
        first *= y
    return value + _log_factor(a, y), first, second


# ---- Likelihoods


@dataclass(frozen=True)
class Logit(Results):
    """Win or loss with logistic noise: P(y | d) = 1 / (1 + e^{-y d}), y = -1 or 1.

    Choose it for matches without ties. It is the model of Bradley and Terry.

    Examples
    --------
    >>> Logit().probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.5, 0.5], [0.3033, 0.6967]]
    """

    integrals = _log_partition, _expected, _log_partition_of_power
    has_ties = False


@dataclass(frozen=True)
class OrdinalLogit(Results):
    """Win, tie, or loss with logistic noise: P(±1 | d) = 1 / (1 + e^{margin ∓ d}).

    The remaining probability is that of a tie (y = 0). Choose it for matches with ties.
    It is the model of [RaoKupper1967]_.

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
    >>> OrdinalLogit(margin=0.5).probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.3775, 0.2449, 0.3775], [0.2215, 0.1765, 0.602]]
    """

    margin: Positive
    integrals = _log_partition, _expected, _log_partition_of_power
