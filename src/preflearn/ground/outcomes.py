"""Losses of paired comparisons with ties, with first and second derivatives in d and t.

d = r(first) - r(second); t is the parameter of ties: log(nu) of Davidson's model, or the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_ndtr

from preflearn.checks import Floats


class Loss(NamedTuple):
    """Minus log-likelihoods of the pairs, with derivatives in d and in the parameter of ties t."""

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


LINKS = {
    "logit": Link(log_expit, lambda x: log_expit(x) + log_expit(-x), lambda x: -np.tanh(x / 2)),
    "probit": Link(log_ndtr, lambda x: -(x**2 + math.log(2 * math.pi)) / 2, lambda x: -x),
}


def _log_softmax(d: Floats, t: float) -> Floats:
    """Log-probabilities of -1, 0, 1 in Davidson's model with nu = e^t, shape (m, 3)."""
    logits = np.stack([-d / 2, np.full_like(d, t), d / 2], axis=1)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def davidson_probabilities(d: Floats, nu: float) -> Floats:
    """Probabilities of -1, 0, 1 in Davidson's model, shape (m, 3)."""
    with np.errstate(divide="ignore"):  # nu = 0 has no ties
        return np.exp(_log_softmax(d, np.log(nu)))


def davidson_loss(d: Floats, t: float, y: NDArray) -> Loss:
    """Davidson's model, for labels y."""
    log_p = _log_softmax(d, t)
    second, tie, first = np.exp(log_p.T)
    mean, equal = (first - second) / 2, y == 0
    return Loss(
        value=-log_p[np.arange(len(y)), y + 1],
        d=mean - y / 2,
        t=tie - equal,
        dd=first * second + tie * (first + second) / 4,
        dt=-mean * tie,
        tt=tie * (first + second),
    )


def ordinal_loss(d: Floats, t: float, y: NDArray, link: Link) -> Loss:
    """P(first) = F(d - t), P(second) = F(-d - t), P(tie) = F(t - d) - F(-t - d), for labels y.

    Each is F(b) - F(a): after F is turned, since it is symmetric, so that the preferred or the one with the
    larger score comes first, b = d - t and a = -infinity for a preference; b = t - d, a = -t - d for a tie.
    """
    ties = y == 0
    turn = np.where(ties, np.where(d < 0, -1.0, 1.0), y)
    x, side = turn * d, np.where(ties, 1.0, -1.0)
    b = side * (t - x)
    a = np.where(ties, -t - x, b)  # of preferences: any finite number
    log_b = link.log_cdf(b)
    value = -log_b - np.log(-np.expm1(np.where(ties, link.log_cdf(a) - log_b, -np.inf)))
    upper = np.exp(link.log_pdf(b) + value)  # f(b) / (F(b) - F(a))
    lower = np.where(ties, np.exp(link.log_pdf(a) + value), 0.0)
    slope_upper, slope_lower = upper * link.pdf_slope(b), lower * link.pdf_slope(a)
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
    """log(F(t - d) - F(-t - d)), in the tail where F is small."""
    upper, lower = log_cdf(t - np.abs(d)), log_cdf(-t - np.abs(d))
    return upper + np.log(-np.expm1(lower - upper))
