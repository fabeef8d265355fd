"""What EP and reverse-KL need of a likelihood, one match at a time, compiled (appendix A of [Maystre2019]_).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math

from preflearn.compiled import njit
from preflearn.dynamics.density import (
    GAUSSIAN,
    LARGEST_EXPONENT,
    LOGIT,
    ORDINAL_LOGIT,
    ORDINAL_PROBIT,
    POISSON,
    PROBIT,
    SKELLAM,
    density,
    log_bessel,
)
from preflearn.dynamics.logistic import logistic_expected, logistic_partition
from preflearn.dynamics.nodes import GRID, NARROW, average, resolves
from preflearn.dynamics.normal import log_interval, log_ndtr, log_ndtr_table
from preflearn.dynamics.quadrature import averaged, narrow_average, tilted

_WIN_ON_GRID = log_ndtr_table(GRID)


@njit
def log_partition(kind, a, b, y, mean, variance):
    """log E p(y | u), u ~ N(mean, variance), and its first two derivatives in the mean."""
    if kind == PROBIT or kind == ORDINAL_PROBIT:
        scale = 1 / math.sqrt(1 + variance)
        if y == 0:
            value, first, second = log_interval(mean * scale, a * scale)
            return value, first * scale, second * scale * scale
        value, first, second = log_ndtr((y * mean - a) * scale)
        return value, y * first * scale, second * scale * scale
    if kind == GAUSSIAN:
        return density(GAUSSIAN, a + variance, b, y, mean)
    if variance == 0:
        return density(kind, a, b, y, mean)
    if kind == LOGIT or kind == ORDINAL_LOGIT:
        return logistic_partition(y, a, mean, variance)
    return tilted(kind, a, b, y, mean, variance)


@njit
def expected(kind, a, b, y, mean, variance):
    """E log p(y | u), u ~ N(mean, variance), and its first two derivatives in the mean."""
    if kind == GAUSSIAN:
        value, first, second = density(kind, a, b, y, mean)
        return value - 0.5 * variance / a, first, second
    if kind == POISSON:
        rate = math.exp(min(mean + 0.5 * variance, LARGEST_EXPONENT))
        return y * mean - rate - math.lgamma(y + 1), y - rate, -rate
    if kind == SKELLAM:  # E e^{u/2} = e^{mean/2 + variance/8}, and E e^{-u/2} likewise
        up = a * math.exp(min(0.5 * mean + 0.125 * variance, LARGEST_EXPONENT))
        down = a * math.exp(min(-0.5 * mean + 0.125 * variance, LARGEST_EXPONENT))
        value = 0.5 * y * mean - up - down + log_bessel(abs(y), 2 * a)
        return value, 0.5 * (y - up + down), -0.25 * (up + down)
    if variance == 0:
        return density(kind, a, b, y, mean)
    if kind == LOGIT or kind == ORDINAL_LOGIT:
        return logistic_expected(y, a, mean, variance)
    if variance <= NARROW:
        return narrow_average(kind, a, b, y, mean, variance)
    if y != 0 and resolves(y * mean - a, variance):
        value, first, second = average(_WIN_ON_GRID, y * mean - a, variance)
        return value, y * first, second
    return averaged(kind, a, b, y, mean, variance)
