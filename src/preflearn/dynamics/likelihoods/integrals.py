"""What EP and reverse-KL need of a likelihood, a match at a time, compiled (appendix A of [Maystre2019]_).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math

import numpy as np

from preflearn.compiled import njit
from preflearn.dynamics.likelihoods.density import (
    GAUSSIAN,
    LOGIT,
    ORDINAL_LOGIT,
    ORDINAL_PROBIT,
    POISSON,
    PROBIT,
    SKELLAM,
    bounded_exp,
    density,
    log_constant,
)
from preflearn.dynamics.likelihoods.logit import logistic_expected, logistic_partition
from preflearn.dynamics.likelihoods.nodes import GRID, NARROW, average, resolves
from preflearn.dynamics.likelihoods.normal import log_interval, log_ndtr, log_ndtr_table
from preflearn.dynamics.likelihoods.quadrature import averaged, narrow_average, tilted

_WIN_ON_GRID = log_ndtr_table(GRID)


@njit
def log_partition(kind, a, b, y, mean, variance):
    """log E p(y | u), u ~ N(mean, variance), and its first two derivatives in the mean, for EP.

    In closed form for the probit and Gaussian kinds. For the others by quadrature, whose error is below 1e-10
    (relative, or absolute for values below 1) for means up to ±50 and variances from 1e-12 to 1e6; measured,
    3e-11. The second derivative d2 is at most 0, and 1 + variance * d2 is positive.

    Parameters
    ----------
    kind : int
        The likelihood, as `density` numbers them.
    a, b : float
        Its parameters.
    y : float
        An outcome that it can have.
    mean, variance : float
        Of the difference of scores without this match (the cavity), in the unit of the scores.
    """
    if kind in (PROBIT, ORDINAL_PROBIT):
        scale = 1 / math.sqrt(1 + variance)
        if y == 0:
            value, first, second = log_interval(mean * scale, a * scale)
            return value, first * scale, second * scale * scale
        value, first, second = log_ndtr((y * mean - a) * scale)
        return value, y * first * scale, second * scale * scale
    if kind == GAUSSIAN:
        value, first, second = density(kind, a + variance, b, y, mean)
        return value + log_constant(kind, a + variance, y), first, second
    if variance == 0:
        value, first, second = density(kind, a, b, y, mean)
    elif kind in (LOGIT, ORDINAL_LOGIT):
        value, first, second = logistic_partition(y, a, mean, variance)
    else:
        value, first, second = tilted(kind, a, b, y, mean, variance)
    return value + log_constant(kind, a, y), first, second


@njit
def expected(kind, a, b, y, mean, variance):
    """E log p(y | u), u ~ N(mean, variance), and its first two derivatives in the mean, for reverse-KL.

    In closed form but for the logistic and probit kinds. Those by quadrature, with the error bound of
    `log_partition`. Expected rates of points are at most 1e100. Parameters are those of `log_partition`; mean
    and variance are the posterior's.
    """
    if kind == GAUSSIAN:
        value, first, second = density(kind, a, b, y, mean)
        value -= 0.5 * variance / a
    elif kind == POISSON:
        rate = bounded_exp(mean + 0.5 * variance)
        value, first, second = y * mean - rate, y - rate, -rate
    elif kind == SKELLAM:
        up = a * bounded_exp(0.5 * mean + 0.125 * variance)
        down = a * bounded_exp(-0.5 * mean + 0.125 * variance)
        value, first, second = 0.5 * y * mean - up - down, 0.5 * (y - up + down), -0.25 * (up + down)
    elif variance == 0:
        value, first, second = density(kind, a, b, y, mean)
    elif kind in (LOGIT, ORDINAL_LOGIT):
        value, first, second = logistic_expected(y, a, mean, variance)
    else:
        value, first, second = _probit_expected(kind, a, b, y, mean, variance)
    return value + log_constant(kind, a, y), first, second


@njit
def _probit_expected(kind, a, b, y, mean, variance):
    if variance <= NARROW:
        return narrow_average(kind, a, b, y, mean, variance)
    if y != 0 and resolves(y * mean - a, variance):
        value, first, second = average(_WIN_ON_GRID, y * mean - a, variance)
        return value, y * first, second
    return averaged(kind, a, b, y, mean, variance)


@njit
def each_row(ep, kind, a, b, y, mean, variance):
    """`log_partition`, or else `expected`, of arrays: shape (3, n)."""
    result = np.empty((3, len(y)))
    for n in range(len(y)):
        if ep:
            terms = log_partition(kind, a, b, y[n], mean[n], variance[n])
        else:
            terms = expected(kind, a, b, y[n], mean[n], variance[n])
        result[0, n], result[1, n], result[2, n] = terms
    return result
