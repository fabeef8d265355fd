"""Losses of paired comparisons with ties, and their first two derivatives.

The variables are d = r(first) - r(second) and the tie parameter t: log(nu) in
Davidson's model, the threshold in ordinal models.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from preflearn.core.validation import Floats


class Loss(NamedTuple):
    """Negative log-likelihoods of the pairs, and their derivatives in d and t."""

    value: Floats  # all of shape (m,)
    d: Floats
    t: Floats
    dd: Floats
    dt: Floats
    tt: Floats


class Link(NamedTuple):
    """A symmetric distribution function F with a log-concave density f."""

    log_cdf: Callable[[Floats], Floats]
    log_pdf: Callable[[Floats], Floats]
    pdf_slope: Callable[[Floats], Floats]  # f'/f


def _log_logistic(x: Floats) -> Floats:
    """Return log(1 / (1 + exp(-x))), in a fifth of the time of scipy's log_expit."""
    return np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x)))


LINKS = {
    "logit": Link(
        _log_logistic,
        lambda x: -np.abs(x) - 2 * np.log1p(np.exp(-np.abs(x))),
        lambda x: -np.tanh(x / 2),
    ),
    "probit": Link(
        log_ndtr, lambda x: -(x**2 + math.log(2 * math.pi)) / 2, lambda x: -x
    ),
}


def davidson_probabilities(d: Floats, nu: float) -> Floats:
    """Return the probabilities of -1, 0, 1 in Davidson's model, shape (m, 3)."""
    with np.errstate(divide="ignore"):  # nu = 0 excludes ties
        _, tie, win, lose = _davidson(d, np.log(nu))
    return np.column_stack(
        [np.where(d < 0, win, lose), tie, np.where(d < 0, lose, win)]
    )


def _davidson(d: Floats, t: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return log(e^{d/2} + e^t + e^{-d/2}) and three outcome probabilities.

    These are the probabilities of a tie, a win of the item with the higher score, and a
    win of the other item.
    """
    half = np.abs(d) / 2
    top = np.maximum(half, t)
    win = np.exp(half - top)
    tie = np.exp(t - top)
    lose = np.exp(-half - top)
    total = win + tie + lose
    return top + np.log(total), tie / total, win / total, lose / total


def davidson_loss(d: Floats, t: float, y: NDArray) -> Loss:
    """Return the loss of Davidson's model for labels y."""
    size, tie, win, lose = _davidson(d, t)
    mean = np.copysign((win - lose) / 2, d)
    equal = y == 0
    return Loss(
        value=size - np.where(equal, t, y * d / 2),
        d=mean - y / 2,
        t=tie - equal,
        dd=win * lose + tie * (win + lose) / 4,
        dt=-mean * tie,
        tt=tie * (win + lose),
    )


def ordinal_loss(d: Floats, t: float, y: NDArray, link: Link) -> Loss:
    """Return the loss of an ordinal model with the distribution function F.

    P(first) = F(d - t), P(second) = F(-d - t), and P(tie) = F(t - d) - F(-t - d).

    Each probability is F(b) - F(a). Since F is symmetric, let the first item be the
    preferred one, or in a tie the one with the higher score. Then b = d - t and a =
    -infinity for a preference, b = t - d and a = -t - d for a tie.
    """
    ties = np.flatnonzero(y == 0)
    turn = np.where(y == 0, np.where(d < 0, -1.0, 1.0), y)
    side = np.where(y == 0, 1.0, -1.0)
    b = side * (t - turn * d)
    a = -t - np.abs(d[ties])
    value = -link.log_cdf(b)
    lower = np.zeros_like(b)
    slope_lower = np.zeros_like(b)
    value[ties] = -log_interval(d[ties], t, link.log_cdf)
    upper = np.exp(link.log_pdf(b) + value)  # f(b) / (F(b) - F(a))
    lower[ties] = np.exp(link.log_pdf(a) + value[ties])
    slope_upper = upper * link.pdf_slope(b)
    slope_lower[ties] = lower[ties] * link.pdf_slope(a)
    bend = slope_lower - slope_upper  # factored: for small t, upper and lower are large
    return Loss(
        value=value,
        d=turn * (side * upper - lower),
        t=-side * upper - lower,
        dd=(upper - lower) ** 2 + bend,
        dt=turn * ((lower - upper) * (lower + upper) + slope_lower + slope_upper),
        tt=(upper + lower) ** 2 + bend,
    )


def log_interval(d: Floats, t: float, log_cdf: Callable[[Floats], Floats]) -> Floats:
    """Return log(F(t - d) - F(-t - d)), computed from log F.

    If rounding makes both logarithms equal, their difference is set to 2t, its value in
    the tail of the logistic distribution. Other log-concave tails have a larger
    difference.
    """
    upper = log_cdf(t - np.abs(d))
    lower = log_cdf(-t - np.abs(d))
    apart = np.subtract(
        lower, upper, where=lower < upper, out=np.full_like(upper, -2.0 * t)
    )
    return upper + np.log(-np.expm1(apart))
