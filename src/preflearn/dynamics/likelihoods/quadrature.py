"""Compiled integrals of a log-concave likelihood times a normal density.

All integrals use the trapezoid rule, which converges exponentially for analytic
functions that vanish on both sides. Steps are equal in t, with u = center + stretch
sinh(t), so the number of nodes grows only with the logarithm of the standard deviation.
`tilted`, for log E p, and `averaged`, for E log p, choose their center. `expected_win`
has fixed nodes, for which it reads the function values from a table. For narrow
distributions the steps of averages are equal in u.

The integrand is an argument: `density(a, b, y, u, x)` returns log p(y | u + x) and two
derivatives in u, for parameters a and b. The logarithm may omit terms that do not
depend on x. This avoids cancellation for counts, whose logarithms are very large. The
rules are compiled together with each likelihood that calls them.
"""

from __future__ import annotations

import math

import numpy as np

from preflearn.core.compilation import njit_inside

TINY = 1e-300  # smaller variances are treated as 0, since their inverses may overflow
# largest step, in standard deviations; the error is exp(-2 pi² / 0.7²) = 3e-18
MAX_STEP = 0.7
# smallest and largest end of a sum, in standard deviations; exp(-38²/2) does not underflow
_MIN_REACH = 9
_MAX_REACH = 38
# per side; sinh(t) overflows for t > 710, and steps are at least 0.02
_MAX_NODES = 50_000

_POINTS = MAX_STEP * np.arange(-12, 13)  # in standard deviations
_WEIGHTS = np.exp(-0.5 * _POINTS**2) / np.exp(-0.5 * _POINTS**2).sum()
# up to this standard deviation, steps are at most 0.4, which resolve functions
# without singularities within 2.8 of the real line
_MAX_NARROW_STD = 0.4 / MAX_STEP

# the largest step is that of every 64th node
_STRETCH = 6.0
_STEP = 0.08
_FINE = 64
GRID_STEP = _STEP / _FINE
_HALF = 100 * _FINE
GRID = _STRETCH * np.sinh(GRID_STEP * np.arange(-_HALF, _HALF + 1))
SPACING = np.hypot(_STRETCH, GRID)  # du/dt


@njit_inside
def nodes(center, deviation):
    """First node on GRID for a normal distribution, last node, and stride.

    The stride is 0 if the grid is not fine or not wide enough.
    """
    stride = int(
        _FINE
        * min(1.0, MAX_STEP * deviation / (_STEP * math.hypot(_STRETCH, 1.5 * center)))
    )
    reach = 9 * deviation
    if not abs(center) + reach < GRID[-1]:
        return 0, 0, 0
    first = math.asinh((center - reach) / _STRETCH)
    last = math.asinh((center + reach) / _STRETCH)
    return _HALF + int(first / GRID_STEP), _HALF + int(last / GRID_STEP) + 1, stride


@njit_inside
def expected_win(density, table, mean, variance):
    """E log p(1 | u) and two derivatives in the mean, without a margin.

    The table has the values of the function and its derivatives on GRID.
    """
    begin, end, stride = nodes(mean, math.sqrt(variance))
    if stride == 0:
        return averaged(density, 0.0, 0.0, 1.0, mean, variance, around(0.0, 1.0))
    scale = -0.5 / variance
    total = value = first = second = 0.0
    for k in range(begin, end, stride):
        weight = math.exp(scale * (GRID[k] - mean) ** 2) * SPACING[k]
        total += weight
        value += weight * table[k, 0]
        first += weight * table[k, 1]
        second += weight * table[k, 2]
    return value / total, first / total, second / total


@njit_inside
def around(a, y):
    """Argument `sinh` of the integrals for p that changes at the margins.

    It changes at y times the margin a; for y = 0 at both margins.
    """
    stretch = 6.0
    if y == 0:
        stretch = 6.0 + a
    return y * a, y * a, stretch, 0.48 / stretch


@njit_inside
def _mode(density, integrand, start, power):
    """Mode of power log p(y | u) - (u - mean)² / (2 variance), and its width.

    The mode is accurate to a tenth of the width. The integrand is (a, b, y, mean,
    variance).
    """
    a, b, y, mean, variance = integrand
    mode = start
    before = math.inf
    _, first, second = density(a, b, y, mode, 0.0)
    first *= power
    second *= power
    other = mean + variance * first  # since first decreases
    low = min(mode, other)
    high = max(mode, other)
    # the interval is halved at least every other time, and floats have 2^11 exponents
    for _ in range(1100):
        slope = first - (mode - mean) / variance
        width = 1 / math.sqrt(1 / variance - second)
        if abs(slope) * width <= 0.1:
            break
        if slope > 0:
            low = mode
        else:
            high = mode
        newton = mode + slope * width * width
        mode = 0.5 * (low + high)
        if low < newton < high and abs(slope) < 0.5 * before:
            mode = newton
        before = abs(slope)
        _, first, second = density(a, b, y, mode, 0.0)
        first *= power
        second *= power
    return mode, width


@njit_inside
def _sums(density, integrand, mode, width, sinh, power, least=1e-17):
    """Sums of N(u; mean, variance) p(y | u)^power, and of this times functions of u.

    The integrand is (a, b, y, mean, variance). Sums end if a term is a smaller
    fraction of the sum than `least`. Values are relative to the mode and the values
    there, so that nothing overflows and differences keep their digits if the variance
    is tiny.
    """
    a, b, y, mean, variance = integrand
    low, high, stretch, step = sinh
    center = min(max(mode, low), high)
    step = min(step, MAX_STEP * width / math.hypot(stretch, 1.5 * (mode - center)))
    top, slope, _ = density(a, b, y, mode, 0.0)
    start = math.asinh((mode - center) / stretch)
    up = 0.5 * stretch * math.exp(start)
    down = 0.5 * stretch * math.exp(-start)
    total = sum_x = sum_xx = sum_0 = sum_1 = sum_11 = sum_2 = 0.0
    for direction in (-1, 1):
        more = math.expm1(direction * step)
        less = -math.expm1(-direction * step)
        # e^t - 1 and 1 - e^-t, t from the mode; the mode is a node of one side only
        rise = 0.0
        fall = 0.0
        if direction > 0:
            rise = more
            fall = less
        for _ in range(_MAX_NODES):
            x = up * rise + down * fall
            value, first, second = density(a, b, y, mode, x)
            value = value - top
            first = first - slope
            exponent = -0.5 * x * (x + 2 * (mode - mean)) / variance
            weight = math.exp(exponent + value * power) * (
                up * (1 + rise) + down * (1 - fall)
            )
            if not weight > least * total:
                break
            total += weight
            sum_x += weight * x
            sum_xx += weight * x * x
            sum_0 += weight * value
            sum_1 += weight * first
            sum_11 += weight * first * first
            sum_2 += weight * second
            rise = rise + more * (1 + rise)
            fall = fall + less * (1 - fall)
    moments = (
        sum_x / total,
        sum_xx / total,
        sum_0 / total,
        sum_1 / total,
        sum_11 / total,
        sum_2 / total,
    )
    return top, slope, total * step, moments


@njit_inside
def tilted(density, integrand, start, sinh, power=1.0):
    """Mode of p(y | u)^power N(u; mean, variance), and log E p(y | u)^power.

    The expectation is over u ~ N(mean, variance); its logarithm is relative to power
    times log p at the mode, and is followed by two derivatives in the mean. With q the
    density that is proportional to p(y | u)^power N(u; mean, variance), and l = power
    log p(y | u), the derivatives are E_q l' and E_q l'' + Var_q l'. Equivalently, they
    are (E_q u - mean) / variance and (Var_q u / variance - 1) / variance, which do not
    cancel if q is much narrower than the normal distribution. `integrand` is (a, b, y,
    mean, variance). The search for the mode starts at `start`. `sinh` is (low, high,
    stretch, largest step); the center is the point between low and high that is closest
    to the mode.
    """
    a, b, y, mean, variance = integrand
    if variance < TINY:
        _, first, second = density(a, b, y, mean, 0.0)
        return mean, 0.0, power * first, power * second
    mode, width = _mode(density, integrand, start, power)
    _, slope, total, (x, xx, _, first, square, second) = _sums(
        density, integrand, mode, width, sinh, power
    )
    slope *= power
    first *= power
    square *= power * power
    second *= power
    offset = mode - mean
    # rounding prevents finding the mode; q is normal there
    if not total < math.inf:
        shrink = width * width / variance
        value = 0.5 * (math.log(shrink) - offset / variance * offset)
        return (
            mode,
            value,
            offset / variance,
            min((max(shrink, 4e-16) - 1) / variance, 0.0),
        )
    value = (
        math.log(total / math.sqrt(2 * math.pi * variance))
        - 0.5 * offset * offset / variance
    )
    # so that 1 + variance * second is positive
    spread = max((xx - x * x) / variance, 4e-16)
    if spread < 0.5:
        return mode, value, (offset + x) / variance, (spread - 1) / variance
    return mode, value, slope + first, min(second + square - first * first, 0.0)


@njit_inside
def tilted_from_mean(density, a, b, y, mean, variance, sinh, power):
    """log E p(y | u)^power, u ~ N(mean, variance), and two derivatives in the mean.

    It is for p that is not log-concave but bounded from below: far from the mean, the
    normal density determines where the sums end.
    """
    top, first, second = density(a, b, y, mean, 0.0)
    if variance < TINY:
        return power * top, power * first, power * second
    _, slope, total, (_, _, _, first, square, second) = _sums(
        density,
        (a, b, y, mean, variance),
        mean,
        math.sqrt(variance),
        sinh,
        power,
    )
    value = power * top + math.log(total / math.sqrt(2 * math.pi * variance))
    second = power * (second + power * (square - first * first))
    return value, power * (slope + first), second


@njit_inside
def _reach(density, a, b, y, mean, variance):
    """Distance from the mean up to which log p N(u; mean, variance) matters.

    The unit is one standard deviation.
    """
    reach = _MIN_REACH
    for side in (-1, 1):
        most = 1.0
        before = 0.0
        for k in range(_MIN_REACH - 1, _MAX_REACH + 1):
            second = density(a, b, y, mean, side * k * math.sqrt(variance))[2]
            part = -second * variance * math.exp(-0.5 * k * k)
            if part <= before and part <= 1e-17 * most and part < math.inf:
                break
            most = max(most, part)
            before = part
            reach = max(reach, k + 1)
    return reach


@njit_inside
def averaged(density, a, b, y, mean, variance, sinh):
    """E log p(y | u), u ~ N(mean, variance), and two derivatives in the mean.

    If log p grows like e^{cu}, the mass of the integral is s = c deviation standard
    deviations from the mean. The result is NaN if this is out of reach, more than 38
    standard deviations. However, up to a standard deviation of 0.57 the nodes are fixed
    and end at 8.4 standard deviations for any s, and mass beyond is lost without a
    warning. The lost fraction of E e^{cu} is 3e-12 at s = 2, 2e-9 at 3, 7e-5 at 5, and
    3e-3 at 6. Such a loss requires c > 3.5. The expectation of a term of this kind
    should be in closed form, e^{c mean + s²/2}, as in `Poisson`.
    """
    deviation = math.sqrt(variance)
    if deviation <= _MAX_NARROW_STD:
        total = slope = bend = 0.0
        for k in range(len(_POINTS)):
            value, first, second = density(a, b, y, mean, deviation * _POINTS[k])
            total += _WEIGHTS[k] * value
            slope += _WEIGHTS[k] * first
            bend += _WEIGHTS[k] * second
        return total, slope, bend
    low, high, stretch, step = sinh
    least = 1e-17
    reach = _reach(density, a, b, y, mean, variance)
    if reach > _MAX_REACH:
        return math.nan, math.nan, math.nan
    if reach > _MIN_REACH:
        far = reach * deviation + abs(mean - min(max(mean, low), high))
        least = math.exp(-0.5 * reach * reach)
        step = min(step, MAX_STEP * deviation / math.hypot(stretch, far))
    top, slope, _, (_, _, value, first, _, second) = _sums(
        density,
        (a, b, y, mean, variance),
        mean,
        deviation,
        (low, high, stretch, step),
        0.0,
        least,
    )
    return top + value, slope + first, second
