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

from preflearn.compiled import njit
from preflearn.dynamics.normal import log_interval, log_ndtr

PROBIT, LOGIT, ORDINAL_PROBIT, ORDINAL_LOGIT, POISSON, GAUSSIAN, SKELLAM = range(7)
LARGEST_EXPONENT = 230.0  # rates of points are at most e^230 = 1e100, so that products of two are finite


@njit
def density(kind, a, b, y, u):
    """log p(y | u) and its first two derivatives in u."""
    if kind == PROBIT or kind == ORDINAL_PROBIT:
        if y == 0:
            return log_interval(u, a)
        value, first, second = log_ndtr(y * u - a)
        return value, y * first, second
    if kind == LOGIT or kind == ORDINAL_LOGIT:
        if y == 0:
            return _logistic_tie(a, u)
        value, first, second = log_logistic(y * u - a)
        return value, y * first, second
    if kind == POISSON:
        rate = math.exp(min(u, LARGEST_EXPONENT))
        return y * u - rate - math.lgamma(y + 1), y - rate, -rate
    if kind == GAUSSIAN:
        first = (y - u) / a
        return -0.5 * (math.log(2 * math.pi * a) + first * (y - u)), first, -1 / a
    up = a * math.exp(min(u / 2, LARGEST_EXPONENT))
    down = a * math.exp(min(-u / 2, LARGEST_EXPONENT))
    value = 0.5 * y * u - up - down + log_bessel(abs(y), 2 * a)
    return value, 0.5 * (y - up + down), -0.25 * (up + down)


@njit
def log_logistic(u):
    """log of 1 / (1 + e^-u), and its first two derivatives."""
    decay = math.exp(-abs(u))
    larger = 1 / (1 + decay)
    smaller = decay * larger
    value = min(u, 0.0) - math.log1p(decay)
    return value, smaller if u > 0 else larger, -larger * smaller


@njit
def _logistic_tie(margin, u):
    """P = (1 - e^{-2 margin}) / ((1 + e^{-(margin + u)}) (1 + e^{-(margin - u)}))."""
    value_up, first_up, second_up = log_logistic(margin + u)
    value_down, first_down, second_down = log_logistic(margin - u)
    value = math.log(-math.expm1(-2 * margin)) + value_up + value_down
    return value, first_up - first_down, second_up + second_down


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
