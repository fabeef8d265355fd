"""The likelihoods as functions of the score difference u, compiled: log p(y | u) and two derivatives in u.

Each is log-concave in u (Table 1 of [Maystre2019]_, and the Skellam distribution). `kind` says which, a and b
are its parameters; b is free.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math

from preflearn.checks import LARGEST
from preflearn.compiled import njit
from preflearn.dynamics.likelihoods.normal import log_interval, log_ndtr

PROBIT, LOGIT, ORDINAL_PROBIT, ORDINAL_LOGIT, POISSON, GAUSSIAN, SKELLAM = range(7)
_LARGEST_EXPONENT = math.log(LARGEST)


@njit
def density(kind, a, b, y, u):
    """log p(y | u) but for `log_constant`, and its first two derivatives in u."""
    if kind in (PROBIT, ORDINAL_PROBIT):
        if y == 0:
            return log_interval(u, a)
        value, first, second = log_ndtr(y * u - a)
        return value, y * first, second
    if kind in (LOGIT, ORDINAL_LOGIT):
        if y == 0:  # (1 - e^{-2a}) / ((1 + e^{-(a + u)}) (1 + e^{-(a - u)}))
            value_up, first_up, second_up = log_logistic(a + u)
            value_down, first_down, second_down = log_logistic(a - u)
            return value_up + value_down, first_up - first_down, second_up + second_down
        value, first, second = log_logistic(y * u - a)
        return value, y * first, second
    if kind == POISSON:
        rate = bounded_exp(u)
        return y * u - rate, y - rate, -rate
    if kind == GAUSSIAN:
        first = (y - u) / a
        return -0.5 * first * (y - u), first, -1 / a
    up, down = a * bounded_exp(0.5 * u), a * bounded_exp(-0.5 * u)
    return 0.5 * y * u - up - down, 0.5 * (y - up + down), -0.25 * (up + down)


@njit
def density_beside(kind, a, b, y, u, x):
    """log p(y | u + x) - log p(y | u), the same of the first derivative, and the second one at u + x.

    Counts may have logarithms so large that their difference would be all rounding.
    """
    if kind == POISSON:
        more = _exp_beside(u, x)
        return y * x - more, -more, -bounded_exp(u + x)
    if kind == SKELLAM:
        more, less = a * _exp_beside(0.5 * u, 0.5 * x), a * _exp_beside(-0.5 * u, -0.5 * x)
        total = bounded_exp(0.5 * (u + x)) + bounded_exp(-0.5 * (u + x))
        return 0.5 * y * x - more - less, 0.5 * (less - more), -0.25 * a * total
    value, first, _ = density(kind, a, b, y, u)
    value_beside, first_beside, second = density(kind, a, b, y, u + x)
    return value_beside - value, first_beside - first, second


@njit
def log_constant(kind, a, y):
    """The part of log p(y | u) that does not depend on u."""
    if kind == ORDINAL_LOGIT and y == 0:
        return math.log(-math.expm1(-2 * a))
    if kind == POISSON:
        return -math.lgamma(y + 1)
    if kind == GAUSSIAN:
        return -0.5 * math.log(2 * math.pi * a)
    if kind == SKELLAM:
        return log_bessel(abs(y), 2 * a)
    return 0.0


@njit
def bounded_exp(x):
    """e^x, but at most 1e100: rates of points are bounded so that products of two are finite."""
    return math.exp(min(x, _LARGEST_EXPONENT))


@njit
def _exp_beside(u, x):
    """e^{u + x} - e^u, with all digits where x is small."""
    return bounded_exp(u) * math.expm1(x) if abs(x) < 1 else bounded_exp(u + x) - bounded_exp(u)


@njit
def log_logistic(u):
    """log of 1 / (1 + e^-u), and its first two derivatives."""
    decay = math.exp(-abs(u))
    larger = 1 / (1 + decay)
    smaller = decay * larger
    value = min(u, 0.0) - math.log1p(decay)
    return value, smaller if u > 0 else larger, -larger * smaller


@njit
def log_bessel(order, x):
    """log I_order(x), order = 0, 1, ..., x > 0: the series of positive terms, from its largest one."""
    half = 0.5 * x
    peak = math.floor(0.5 * (math.sqrt(order * order + x * x) - order))
    total, term, k = 1.0, 1.0, peak
    while k > 0 and term > 1e-17 * total:
        term *= k * (k + order) / (half * half)
        total += term
        k -= 1
    term, k = 1.0, peak
    while term > 1e-17 * total:
        k += 1
        term *= half * half / (k * (k + order))
        total += term
    largest = (2 * peak + order) * math.log(half) - math.lgamma(peak + 1) - math.lgamma(peak + order + 1)
    return largest + math.log(total)
