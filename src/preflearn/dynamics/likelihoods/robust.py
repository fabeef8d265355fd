"""Robust likelihoods, for outcomes with errors or outliers.

Both are not log-concave. They are mixtures p(y | u) = E_h p(y | u, h) over a hidden
variable h: for `Lapse`, whether the outcome is noise; for `StudentT`, the precision of
the noise. The integrals for EP follow from those of p(y | u, h). For reverse-KL there
is a lower bound. With u ~ N(mean, variance), for any distribution q of h,

    E log p(y | u) >= E_q [E log p(y | u, h)] - KL(q || p(h)),

whose maximum over q is log E_h exp E log p(y | u, h). At the best q its derivatives are
means over q of the derivatives of E log p(y | u, h). Each pseudo-observation of
reverse-KL is therefore a weighted one of a log-concave likelihood: no precision is
negative, and the bound increases with each step that is short enough [Jaakkola2000]_.

References
----------
.. [Jaakkola2000] T. S. Jaakkola, M. I. Jordan, "Bayesian parameter estimation via
   variational methods", Statistics and Computing 10, 2000.
.. [Jylanki2011] P. Jylänki, J. Vanhatalo, A. Vehtari, "Robust Gaussian process regression
   with a Student-t likelihood", JMLR 12, 2011.
.. [WichmannHill2001] F. A. Wichmann, N. J. Hill, "The psychometric function: I. Fitting,
   sampling, and goodness of fit", Perception & Psychophysics 63, 2001.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from preflearn.core.compilation import njit_inside
from preflearn.core.validation import Floats, require
from preflearn.dynamics.likelihoods.likelihood import (
    Likelihood,
    PointDifferences,
    Results,
)
from preflearn.dynamics.likelihoods.logit import Logit, OrdinalLogit
from preflearn.dynamics.likelihoods.normal import OrdinalProbit, Probit
from preflearn.dynamics.likelihoods.quadrature import TINY, around, tilted_from_mean
from preflearn.dynamics.parametrized import Positive

# ---- Lapses: a is the margin, or 0 without ties; b is the rate

_FINE_STEP = 0.12
_probit, _expected_probit, _ = map(njit_inside, Probit.integrals)
_logit, _expected_logit, _ = map(njit_inside, Logit.integrals)


@njit_inside
def _mixed(a, b, log_p, first, second):
    """log((1 - b) p + b / n), two derivatives, and the probability of no lapse.

    n is the number of possible outcomes. The arguments are log p and its derivatives.
    """
    log_lapse = math.log(b / (3.0 if a > 0 else 2.0))
    log_rest = math.log1p(-b) + log_p
    largest = max(log_lapse, log_rest)
    value = largest + math.log(
        math.exp(log_lapse - largest) + math.exp(log_rest - largest)
    )
    r = math.exp(log_rest - value)
    lapse = math.exp(log_lapse - value)
    return value, r * first, r * (second + lapse * first * first), r


def _lapsing_probit(a, b, y, mean, variance):
    return _mixed(a, b, *_probit(a, 0.0, y, mean, variance))[:3]


def _lapsing_logit(a, b, y, mean, variance):
    return _mixed(a, b, *_logit(a, 0.0, y, mean, variance))[:3]


def _bound_of_lapsing_probit(a, b, y, mean, variance):
    log_p, first, second = _expected_probit(a, 0.0, y, mean, variance)
    value, first, _, r = _mixed(a, b, log_p, first, second)
    return value, first, r * second


def _bound_of_lapsing_logit(a, b, y, mean, variance):
    log_p, first, second = _expected_logit(a, 0.0, y, mean, variance)
    value, first, _, r = _mixed(a, b, log_p, first, second)
    return value, first, r * second


@njit_inside
def _density_of_lapsing_probit(a, b, y, u, x):
    return _mixed(a, b, *_probit(a, 0.0, y, u + x, 0.0))[:3]


@njit_inside
def _density_of_lapsing_logit(a, b, y, u, x):
    return _mixed(a, b, *_logit(a, 0.0, y, u + x, 0.0))[:3]


@njit_inside
def _fine_rule(a, y):
    """`around` with steps that resolve the zeros of the mixture.

    If Phi(u) is minus a tiny rate, u is 0.6 from the real line.
    """
    low, high, stretch, _ = around(a, y)
    return low, high, stretch, _FINE_STEP / stretch


def _power_of_lapsing_probit(a, b, y, mean, variance, power):
    density = _density_of_lapsing_probit
    return tilted_from_mean(density, a, b, y, mean, variance, _fine_rule(a, y), power)


def _power_of_lapsing_logit(a, b, y, mean, variance, power):
    density = _density_of_lapsing_logit
    return tilted_from_mean(density, a, b, y, mean, variance, _fine_rule(a, y), power)


_PROBIT = _lapsing_probit, _bound_of_lapsing_probit, _power_of_lapsing_probit
_LOGIT = _lapsing_logit, _bound_of_lapsing_logit, _power_of_lapsing_logit
_LAPSING: dict[type, tuple[Callable[..., Any], ...]] = {
    Probit: _PROBIT,
    OrdinalProbit: _PROBIT,
    Logit: _LOGIT,
    OrdinalLogit: _LOGIT,
}


# ---- Student's t distribution: a is the scale, b the degrees of freedom

_NEGLIGIBLE = 40.0  # e^-40 = 4e-18
_LARGEST_STEP = 0.3  # for e^{kt - e^t}; the error is e^{-pi²/0.3} = 5e-15
_STEP = 0.7  # in standard deviations of a normal distribution with this peak


@njit_inside
def _log_constant(a, df):
    """log p(y | y)."""
    gammas = math.lgamma(0.5 * (df + 1.0)) - math.lgamma(0.5 * df)
    return gammas - 0.5 * math.log(math.pi * df) - math.log(a)


@njit_inside
def _log_student(a, df, z, variance):
    """log p with (y - u)² replaced by its mean z² + variance."""
    square = (z * z + variance) / (df * a * a)
    return _log_constant(a, df) - 0.5 * (df + 1.0) * math.log1p(square)


@njit_inside
def _log_weight(t, k, df, square, spread):
    """Logarithm of the integrand of `_power_of_student` in t.

    The second result is a bound on minus its second derivative.
    """
    h = math.exp(t)
    rest = 1.0 / (1.0 + spread * h)
    value = 0.5 * (k * t - df * h - square * h * rest + math.log(rest))
    return value, 0.5 * h * (df + square * rest * rest) + 0.125


@njit_inside
def _trapezoid_rule(k, df, square, spread):
    """Quadrature rule for `_log_weight`: maximum (approximate), both ends, and step.

    Modes are between log(k / (df + square)) and log(k / df), beyond which the function
    decreases; and it is at most k t / 2.
    """
    high = math.log(k / df)
    low = math.log(k / (df + square))
    n = 8 + int(high - low)
    top = -math.inf
    for i in range(n + 1):
        value, _ = _log_weight(low + (high - low) * i / n, k, df, square, spread)
        top = max(top, value)
    low = min(low, 2.0 * (top - _NEGLIGIBLE) / k)
    beyond = min(1.0, 4.0 / math.sqrt(k))
    while _log_weight(high, k, df, square, spread)[0] > top - _NEGLIGIBLE:
        high += beyond
    n = 16 + int(high - low)
    step = (high - low) / n
    begin = high
    end = low
    bend = 0.0
    for i in range(n + 1):
        t = low + i * step
        value, curvature = _log_weight(t, k, df, square, spread)
        if value > top - _NEGLIGIBLE:
            begin = min(begin, t - step)
            end = max(end, t + step)
            bend = max(bend, min(curvature, _NEGLIGIBLE + curvature - (top - value)))
    return top, begin, end, min(_LARGEST_STEP, _STEP / math.sqrt(bend))


@njit_inside
def _power_of_student(a, df, y, mean, variance, power):
    """log E p^power and its derivatives, as an integral over the noise precision.

    With z = (y - u) / a and k = power (df + 1), p^power is p(y | y)^power times

        (1 + z²/df)^{-k/2} = (df/2)^{k/2} / Gamma(k/2) ∫ h^{k/2 - 1} e^{-h (df + z²)/2} dh,

    and E e^{-h z²/2} = (1 + h V)^{-1/2} exp(-h R / (2 (1 + h V))), V = variance / a²
    and R = (y - mean)² / a². Given h, the derivatives are those of N(y; mean, variance
    + a²/h). The integral is computed by the trapezoid rule in t = log h.
    """
    z = y - mean
    if variance < TINY:
        total = df * a * a + z * z
        second = (df + 1.0) * (z * z - df * a * a) / (total * total)
        value = _log_student(a, df, z, 0.0)
        return power * value, power * (df + 1.0) * z / total, power * second
    k = power * (df + 1.0)
    square = z * z / (a * a)
    spread = variance / (a * a)
    top, begin, end, step = _trapezoid_rule(k, df, square, spread)
    middle = k / (df * a * a + z * z + k * variance)
    total = first = second = 0.0
    for i in range(int((end - begin) / step) + 2):
        t = begin + i * step
        h = math.exp(t)
        weight = math.exp(_log_weight(t, k, df, square, spread)[0] - top)
        # relative to an average precision, so that a small variance keeps its digits
        precision = h / (a * a + h * variance) - middle
        total += weight
        first += weight * precision
        second += weight * precision * precision
    first /= total
    second = second / total - first * first
    first += middle
    constant = 0.5 * k * math.log(0.5 * df) - math.lgamma(0.5 * k)
    value = constant + top + math.log(total * step) + power * _log_constant(a, df)
    return value, z * first, z * z * second - first


def _log_partition_of_student(a, b, y, mean, variance):
    return _power_of_student(a, b, y, mean, variance, 1.0)


def _log_partition_of_power_of_student(a, b, y, mean, variance, power):
    return _power_of_student(a, b, y, mean, variance, power)


def _bound_of_student(a, b, y, mean, variance):
    z = y - mean
    precision = (b + 1.0) / (b * a * a + z * z + variance)
    return _log_student(a, b, z, variance), precision * z, -precision


# ---- Likelihoods


@dataclass(frozen=True)
class Lapse(Results):
    """Mixture of a likelihood and random results, for careless or wrong judgments.

    P(y | d) = (1 - rate) P0(y | d) + rate / n for n possible results. Choose it for
    judgments of which some are careless, and for data with misclicks or wrong entries.
    A few surprising results then change scores less: if P0 of a result is far below
    rate / n, the result is treated as a lapse. Psychometric functions have such a lapse
    rate [WichmannHill2001]_.

    Parameters
    ----------
    likelihood : Probit, OrdinalProbit, Logit or OrdinalLogit
        Likelihood P0 of an outcome that is not a lapse.
    rate : float
        Fraction of the outcomes that are lapses, for which each result has equal
        probability; from 1e-6 to 0.9.

    Raises
    ------
    ValueError
        If the likelihood is not one of these four, or the rate is out of range.

    Notes
    -----
    The likelihood is not log-concave. EP is damped; its integral has a closed form if
    the integral of P0 has one. With method "kl" the bound contains a responsibility r
    for each match: the probability that the outcome is not a lapse. The match counts
    with weight r.

    Examples
    --------
    >>> from preflearn.dynamics import Lapse, Probit
    >>> Lapse(Probit(), rate=0.1).probabilities([0.0, 3.0], [0.0, 0.0]).round(4).tolist()
    [[0.5, 0.5], [0.0512, 0.9488]]
    """

    likelihood: Likelihood
    rate: Positive = 0.05
    ranges = {"rate": (1e-6, 0.9)}  # noqa: RUF012
    log_concave = False

    def __post_init__(self) -> None:
        super().__post_init__()
        names = sorted(kind.__name__ for kind in _LAPSING)
        expected = f"an instance of {', '.join(names[:-1])} or {names[-1]}"
        require(
            type(self.likelihood) in _LAPSING, self.likelihood, "likelihood", expected
        )

    @property
    def integrals(self) -> tuple[Callable[..., Any], ...]:
        """Integrals of the likelihood, mixed with lapses."""
        return _LAPSING[type(self.likelihood)]

    @property
    def has_ties(self) -> bool:
        return self.likelihood.has_ties

    @property
    def parameters(self) -> Floats:
        """Margin of the inner likelihood, or 0, and rate."""
        return np.array([self.likelihood.parameters[0], self.rate])

    def positive(self) -> dict[str, float]:
        """Positive parameters of the inner likelihood, and the rate."""
        return {**self.likelihood.positive(), **super().positive()}

    def changed(self, **values: Any) -> Lapse:
        """A copy with other parameters, also those of the inner likelihood."""
        inner = {
            name: values.pop(name)
            for name in self.likelihood.positive()
            if name in values
        }
        likelihood = values.pop("likelihood", self.likelihood).changed(**inner)
        return Lapse(likelihood, values.pop("rate", self.rate), **values)


@dataclass(frozen=True)
class StudentT(PointDifferences):
    """Point differences with the noise of Student's t distribution.

    (y - d) / scale has Student's t density with df degrees of freedom. Choose it for
    point differences with blowouts or wrong entries: an outcome far from d has little
    effect, while with `Gaussian` scores follow y no matter how extreme it is.

    Parameters
    ----------
    scale : float
        Scale of the noise, in points; its variance is scale² df / (df - 2) if df > 2.
    df : float
        Degrees of freedom, from 0.5 to 1e4: 1 is the Cauchy distribution, and 1e4 is
        practically `Gaussian`.
    margin : float
        Largest size of a point difference that counts as a tie in forecasts, as for
        `Gaussian`; 0 for no ties.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The likelihood is not log-concave. EP is damped, as in [Jylanki2011]_; the integral
    that EP needs is over the precision of the noise. With method "kl" the bound has a
    closed form: log p(y | d), in which the expectation of (y - d)² replaces (y - d)².

    Examples
    --------
    >>> from preflearn.dynamics import StudentT
    >>> StudentT(scale=1.5, df=4, margin=0.5).probabilities([0.0, 1.0], [0.0, 1.0]).round(4).tolist()
    [[0.3778, 0.2444, 0.3778], [0.2262, 0.1731, 0.6006]]
    """

    scale: Positive = 1.0
    df: Positive = 4.0
    margin: float = 0.0
    ranges = {"df": (0.5, 1e4)}  # noqa: RUF012
    log_concave = False
    integrals = (
        _log_partition_of_student,
        _bound_of_student,
        _log_partition_of_power_of_student,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "noise", self.scale)

    @property
    def parameters(self) -> Floats:
        """Scale and degrees of freedom; the margin is for forecasts only."""
        return np.array([self.scale, self.df])

    def draw(self, d: Floats, rng: np.random.Generator) -> Floats:
        return d + self.scale * rng.standard_t(self.df, np.shape(d))

    def _results(self, mean: Floats, variance: Floats) -> Floats:
        """Means over the noise precision of the results with Gaussian noise."""
        log_precision, weights = _precisions(self.df)
        loss = np.zeros(len(mean))
        win = np.zeros(len(mean))
        for t, weight in zip(log_precision, weights, strict=True):
            deviation = np.sqrt(variance + self.scale**2 * np.exp(-t))
            loss += weight * ndtr((-self.margin - mean) / deviation)
            win += weight * ndtr((mean - self.margin) / deviation)
        if not self.has_ties:
            return np.column_stack([loss, win]) / (loss + win)[:, None]
        return np.column_stack([loss, np.maximum(1 - loss - win, 0.0), win])


def _precisions(df: float) -> tuple[Floats, Floats]:
    """Logarithms of the noise precision, and their weights.

    The precision has the distribution Gamma(df/2, df/2); the nodes are those of a
    trapezoid rule.
    """
    step = min(_LARGEST_STEP, _STEP * math.sqrt(2 / df))
    low = -2 * _NEGLIGIBLE / df - 10 / math.sqrt(df)
    t = np.arange(low, math.log1p(2 * _NEGLIGIBLE / df) + 10 / math.sqrt(df), step)
    log_weights = 0.5 * df * (t - np.exp(t))
    weights = np.exp(log_weights - log_weights.max())
    return t, weights / weights.sum()
