"""EP and reverse-KL for the logistic likelihoods, compiled: win and tie.

A win has the probability F(u) = 1 / (1 + e^-u), a tie T(u) = sinh(m) / (cosh(m) + cosh(u)), m the margin.
Their poles are at a distance pi from the real line, so that few nodes suffice, and their derivatives are
averaged as they are: log E P has the derivatives E P' / E P and E P'' / E P - (E P' / E P)².
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from preflearn.compiled import njit
from preflearn.dynamics.likelihoods.density import ORDINAL_LOGIT
from preflearn.dynamics.likelihoods.nodes import (
    GRID,
    NARROW,
    POINTS,
    SPACING,
    WEIGHTS,
    average,
    nearest,
    resolves,
)
from preflearn.dynamics.likelihoods.quadrature import averaged, narrow_average, tilted

_DECAY = np.exp(-np.abs(GRID))
_ON_GRID = np.column_stack([-np.logaddexp(0, -GRID), expit(-GRID), -_DECAY / (1 + _DECAY) ** 2])
_MOST = 300.0  # the largest mean: e^-300 is a normal number
_WIDEST = 3.0  # the largest margin whose ends the grid resolves


@njit
def logistic_partition(y, margin, mean, variance):
    """log E p(y | u), u ~ N(mean, variance), but for `log_constant`, and two derivatives in the mean.

    As F(u) = e^u F(-u) and e^u N(u; mean, variance) = e^{mean + variance/2} N(u; mean + variance, variance),

        log E F(u) = mean + variance/2 + log E F(v),   v ~ N(-mean - variance, variance).

    Of the two normal distributions the one with more wins is taken, so that nothing underflows.
    """
    if y != 0:
        mean = y * mean - margin
    reflected = y != 0 and mean < -0.5 * variance
    center = abs(mean) if y == 0 else -mean - variance if reflected else mean
    value, first, second = _partition(margin if y == 0 else 0.0, center, variance)
    if y == 0:
        return value, math.copysign(first, -mean), second
    if reflected:
        value, first = value + mean + 0.5 * variance, 1 - first
    return value, y * first, second


@njit
def _partition(margin, mean, variance):
    """The same of a win of the first with the margin 0, or of a tie, with |d/dmean|."""
    anchor = max(mean, 0.0)
    if mean > _MOST or margin > _WIDEST or not (variance <= NARROW or resolves(anchor, variance)):
        y = 0.0 if margin > 0 else 1.0
        value, first, second = tilted(ORDINAL_LOGIT, margin, 0.0, y, mean, variance)
        return value, abs(first), second
    growth, cosh_margin = (math.exp(margin), math.cosh(margin)) if margin > 0 else (0.0, 1.0)
    if variance <= NARROW:
        total, slope, bend = _averages(growth, cosh_margin, mean, math.sqrt(variance))
        value = math.log(total)
    else:
        total, slope, bend = _averages_on_grid(growth, cosh_margin, mean, anchor, variance)
        value = math.log(total) - 0.5 * ((anchor - mean) ** 2 / variance + math.log(variance))
    slope /= total
    return value, abs(slope), min(bend / total - slope * slope, 0.0)


@njit
def _averages(growth, cosh_margin, mean, deviation):
    """Of the chance and its two derivatives, by Gauss and Hermite."""
    total = slope = bend = 0.0
    for k in range(len(POINTS)):
        u = mean + deviation * POINTS[k]
        chance, change, turn = _chance(growth, cosh_margin, u, math.exp(-abs(u)))
        total += WEIGHTS[k] * chance
        slope += WEIGHTS[k] * change
        bend += WEIGHTS[k] * turn
    return total, slope, bend


@njit
def _averages_on_grid(growth, cosh_margin, mean, anchor, variance):
    """The same, but for the factor exp(-(anchor - mean)² / (2 variance)) / deviation."""
    start, scale = nearest(anchor), -0.5 / variance
    total = slope = bend = 0.0
    for direction in (-1, 1):
        k = start + (direction + 1) // 2
        while 0 <= k < len(GRID):
            u = GRID[k]
            weight = SPACING[k] * math.exp(scale * (u - anchor) * (u + anchor - 2 * mean))
            chance, change, turn = _chance(growth, cosh_margin, u, _DECAY[k])
            if not weight * chance > 1e-17 * total:
                break
            total += weight * chance
            slope += weight * change
            bend += weight * turn
            k += direction
    return total, slope, bend


@njit
def _chance(growth, cosh_margin, u, decay):
    """F(u), or T(u) / (1 - e^-2m) where growth = e^m is not 0, and two derivatives; decay is e^-|u|."""
    if growth == 0:
        even = 1 / (1 + decay)
        chance = even if u > 0 else decay * even
        change = decay * even * even
        return chance, change, change * (1 - 2 * chance)
    shrink = 1 / (1 + (2 * cosh_margin + decay) * decay)
    chance = growth * decay * shrink
    steep = math.copysign((1 - decay * decay) * shrink, -u)  # (log T)'
    return chance, chance * steep, chance * (2 * steep * steep - (1 + decay * decay) * shrink)


@njit
def logistic_expected(y, margin, mean, variance):
    """E log p(y | u), u ~ N(mean, variance), but for `log_constant`, and two derivatives in the mean.

    The probability of a tie is proportional to F(margin + u) F(margin - u). The error is below 1e-11.
    """
    if y == 0:
        value_up, first_up, second_up = _expected_win(margin + mean, variance)
        value_down, first_down, second_down = _expected_win(margin - mean, variance)
        return value_up + value_down, first_up - first_down, second_up + second_down
    value, first, second = _expected_win(y * mean - margin, variance)
    return value, y * first, second


@njit
def _expected_win(mean, variance):
    if variance <= NARROW:
        return narrow_average(ORDINAL_LOGIT, 0.0, 0.0, 1.0, mean, variance)
    if resolves(mean, variance):
        return average(_ON_GRID, mean, variance)
    return averaged(ORDINAL_LOGIT, 0.0, 0.0, 1.0, mean, variance)
