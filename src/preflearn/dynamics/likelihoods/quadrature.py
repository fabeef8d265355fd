"""Integrals of a log-concave likelihood against a normal distribution, compiled.

By the trapezoid rule after u = center + stretch sinh(t): in t the integrands are analytic in a strip and fall
fast on both sides, so that the rule converges exponentially, and the number of nodes grows with the logarithm
of the standard deviation only.
"""

from __future__ import annotations

import math

from preflearn.compiled import njit
from preflearn.dynamics.likelihoods.density import POISSON, SKELLAM, density, density_beside
from preflearn.dynamics.likelihoods.nodes import POINTS, SHARE, STEP, STRETCH, WEIGHTS


@njit
def _mode(kind, a, b, y, mean, variance):
    """Where log p(y | u) - (u - mean)² / (2 variance) is largest, to a tenth of its width; with the width."""
    mode = mean
    if kind == POISSON:  # at the mode e^u = y - (u - mean) / variance
        mode = min(mean, math.log(y + 1 + max(mean, 0.0) / variance))
    elif kind == SKELLAM:
        most = 2 * math.log((abs(y) + 2 * abs(mean) / variance) / a + 2)
        mode = min(max(mean, -most), most)
    _, first, second = density(kind, a, b, y, mode)
    other = mean + variance * first  # since first falls
    low, high = min(mode, other), max(mode, other)
    before = math.inf
    for _ in range(500):
        slope = first - (mode - mean) / variance
        width = 1 / math.sqrt(1 / variance - second)
        if abs(slope) * width <= 0.1:
            break
        if slope > 0:
            low = mode
        else:
            high = mode
        newton = mode + slope * width * width
        mode = newton if low < newton < high and abs(slope) < 0.5 * before else 0.5 * (low + high)
        before = abs(slope)
        _, first, second = density(kind, a, b, y, mode)
    return mode, width


@njit
def _stretching(kind, a, y, mode):
    """Center, stretch and largest step of the map from t to u."""
    if kind == POISSON:
        return max(mode, 0.0), 1.0, 0.1
    if kind == SKELLAM:
        stretch = 8 + 2 * math.log1p(40 / a)  # where the rates are felt
        return mode, stretch, 0.32 / stretch
    stretch = STRETCH + (a if y == 0 else 0.0)
    return y * a, stretch, STEP * STRETCH / stretch


@njit
def _sums(kind, a, b, y, mean, variance, mode, width, tilt):
    """Sums of N(u; mean, variance) by itself, or times p(y | u), and of this times other functions of u.

    Relative to the mode and the values there: nothing overflows, and differences keep their digits where the
    variance is tiny.
    """
    center, stretch, step = _stretching(kind, a, y, mode)
    step = min(step, SHARE * width / math.hypot(stretch, 1.5 * (mode - center)))
    top, slope, _ = density(kind, a, b, y, mode)
    start = math.asinh((mode - center) / stretch)
    up, down = 0.5 * stretch * math.exp(start), 0.5 * stretch * math.exp(-start)
    total = sum_u = sum_uu = sum_0 = sum_1 = sum_11 = sum_2 = 0.0
    for direction in (-1, 1):
        more, less = math.expm1(direction * step), -math.expm1(-direction * step)
        rise, fall = (0.0, 0.0) if direction < 0 else (more, less)  # e^t - 1 and 1 - e^-t, t from the mode
        while True:
            u = up * rise + down * fall
            value, first, second = density_beside(kind, a, b, y, mode, u)
            exponent = -0.5 * u * (u + 2 * (mode - mean)) / variance
            weight = math.exp(exponent + value * tilt) * (up * (1 + rise) + down * (1 - fall))
            if not weight > 1e-17 * total:
                break
            total += weight
            sum_u += weight * u
            sum_uu += weight * u * u
            sum_0 += weight * value
            sum_1 += weight * first
            sum_11 += weight * first * first
            sum_2 += weight * second
            rise, fall = rise + more * (1 + rise), fall + less * (1 - fall)
    return (
        top,
        slope,
        total * step,
        sum_u / total,
        sum_uu / total,
        sum_0 / total,
        sum_1 / total,
        sum_11 / total,
        sum_2 / total,
    )


@njit
def tilted(kind, a, b, y, mean, variance):
    """log E p(y | u), u ~ N(mean, variance), but for `log_constant`, and two derivatives in the mean.

    With q the density that is proportional to p(y | u) N(u; mean, variance), and l = log p(y | u), they are
    E_q l' and E_q l'' + Var_q l'; equally (E_q u - mean) / variance and (Var_q u / variance - 1) / variance,
    which do not cancel where q is much narrower than the normal distribution.
    """
    mode, width = _mode(kind, a, b, y, mean, variance)
    top, slope, total, u, uu, _, first, square, second = _sums(
        kind, a, b, y, mean, variance, mode, width, 1.0
    )
    offset = mode - mean
    value = top - 0.5 * offset * offset / variance + math.log(total / math.sqrt(2 * math.pi * variance))
    spread = max((uu - u * u) / variance, 4e-16)  # so that 1 + variance * second is positive
    if spread < 0.5:
        return value, (offset + u) / variance, (spread - 1) / variance
    return value, slope + first, second + square - first * first


@njit
def averaged(kind, a, b, y, mean, variance):
    """E log p(y | u), u ~ N(mean, variance), but for `log_constant`, and two derivatives in the mean."""
    top, slope, _, _, _, value, first, _, second = _sums(
        kind, a, b, y, mean, variance, mean, math.sqrt(variance), 0.0
    )
    return top + value, slope + first, second


@njit
def narrow_average(kind, a, b, y, mean, variance):
    """`averaged` by Gauss and Hermite, for variances up to NARROW."""
    deviation = math.sqrt(variance)
    value = first = second = 0.0
    for k in range(len(POINTS)):
        terms = density(kind, a, b, y, mean + deviation * POINTS[k])
        value += WEIGHTS[k] * terms[0]
        first += WEIGHTS[k] * terms[1]
        second += WEIGHTS[k] * terms[2]
    return value, first, second
