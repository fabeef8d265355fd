"""Covariance functions with approximate state-space models.

See section 3.2 of [Maystre2019]_.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
.. [SolinSarkka2014] A. Solin, S. Särkkä, "Explicit link between periodic covariance
   functions and state space models", AISTATS 2014.
.. [Hartikainen2010] J. Hartikainen, S. Särkkä, "Kalman filtering and smoothing
   solutions to temporal Gaussian process regression models", MLSP 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import factorial, pi, sqrt

import numpy as np
from scipy.special import ive

from preflearn.core.validation import Floats, check_count, require
from preflearn.dynamics.covariances.blocks import Block, Trend
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.state_space import StateSpace
from preflearn.dynamics.covariances.units import curve, deviation, length
from preflearn.dynamics.parametrized import Length, Positive


@dataclass(frozen=True)
class Periodic(Covariance):
    """Covariance of a pattern that repeats each period.

    k(t, t') = variance * exp(-2 sin²(π (t - t') / period) / lengthscale²). Choose it
    for seasonal effects, usually in a sum or product with another covariance.

    `gram` is exact. The state-space model has the first terms of the Fourier series of
    [SolinSarkka2014]_, whose weights are Bessel functions I_j(1/lengthscale²); its
    state has 2 order + 1 entries. Its covariance is too small by at most 2 Σ_{j >
    order} e^{-a} I_j(a), a = 1/lengthscale², as a fraction of the variance. At order 6
    this is at most 1.3e-6 for lengthscale 1, and 2.0e-3 for lengthscale 0.5.

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared.
    lengthscale : float
        Smoothness of the score within a period, a number without unit.
    period : float
        Time after which the pattern repeats.
    order : int
        Number of harmonics in the state-space model, from 1 to 50.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> season = Periodic(variance=2.0, period=365.25)
    >>> season.gram([0.0], [0.0, 730.5]).tolist()
    [[2.0, 2.0]]
    >>> season.state_space().size
    13
    """

    variance: Positive = 1.0
    lengthscale: Positive = 1.0
    period: Length = 1.0
    order: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_order(self, least=1, most=50)

    def _gram(self, t: Floats, t2: Floats, first: float) -> Floats:
        part = np.remainder(np.abs(t - t2), self.period) / self.period
        return self.variance * np.exp(-2 * (np.sin(pi * part) / self.lengthscale) ** 2)

    def state_space(self) -> StateSpace:
        fractions = ive(np.arange(self.order + 1), self.lengthscale**-2.0)
        weights = (self.variance * np.append(fractions[0], 2 * fractions[1:])).tolist()
        waves = [
            Rotation(weight, j, self.period) for j, weight in enumerate(weights[1:], 1)
        ]
        return StateSpace([Trend(weights[0]), *waves])

    def to_text(self) -> str:
        lowest = self.gram([0.0], [self.period / 2])[0, 0] / self.variance
        return (
            f"a pattern that comes back every {length(self.period)}, of {deviation(self.variance)}; "
            f"its correlation over half a period is {lowest:.2g}"
        )


@dataclass(frozen=True)
class SquaredExponential(Covariance):
    """Squared exponential (RBF) covariance: a score with derivatives of all orders.

    k(t, t') = variance * exp(-u²/2) with u = (t - t') / lengthscale. Choose it for
    comparison with other programs; `Matern52` is smooth too and has an exact
    state-space model.

    `gram` is exact. The state-space model is that of [Hartikainen2010]_. With z = (ω
    lengthscale)²/2 the spectrum is proportional to e^{-z} = 1 / (1 + z + z²/2 + ...),
    and the model truncates the denominator after z^order. The error of its covariance
    is largest at t = t', where the covariance is too large. As a fraction of the
    variance it is at most::

        order   2      4      6      8      10
        error   0.141  0.0171 3.0e-3 6.1e-4 1.3e-4

    Parameters
    ----------
    variance : float
        Variance of the score, in its unit squared.
    lengthscale : float
        Time over which the correlation falls to 0.61.
    order : int
        Size of the state, from 2 to 10.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> smooth = SquaredExponential(variance=2.0, lengthscale=10.0)
    >>> smooth.gram([0.0], [0.0, 10.0]).round(3).tolist()
    [[2.0, 1.213]]
    >>> smooth.state_space().initial(smooth.gram([0.0])[0]).round(3)[0, 0, 0].item()
    2.006
    """

    variance: Positive = 1.0
    lengthscale: Length = 1.0
    order: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_order(self, least=2, most=10)

    def _gram(self, t: Floats, t2: Floats, first: float) -> Floats:
        return self.variance * np.exp(-0.5 * (np.abs(t - t2) / self.lengthscale) ** 2)

    def state_space(self) -> StateSpace:
        return StateSpace([AllPole(self.variance, self.lengthscale, self.order)])

    def to_text(self) -> str:
        return curve(
            "perfectly smooth", "0.61", 1.177410, self.variance, self.lengthscale
        )


def _check_order(
    covariance: Periodic | SquaredExponential, least: int, most: int
) -> None:
    order = check_count(covariance.order, "order", least)
    require(order <= most, order, "order", f"an integer from {least} to {most}")
    object.__setattr__(covariance, "order", order)


# ---- Blocks


class Rotation(Block):
    """A random wave of covariance variance * cos(2π turns (t - t') / period).

    Its state is a vector that rotates without noise.
    """

    size = 2
    noisy = False

    def __init__(self, variance: float, turns: int, period: float) -> None:
        self.stationary = variance * np.eye(2)
        self._turns = turns
        self._period = period

    def transition(self, start: Floats, end: Floats) -> Floats:
        # the remainder keeps this accurate after many periods
        part = np.remainder(end - start, self._period) / self._period
        angle = 2 * pi * self._turns * part
        cosine = np.cos(angle)
        sine = np.sin(angle)
        return np.stack([cosine, sine, -sine, cosine], axis=-1).reshape(-1, 2, 2)


class AllPole(Block):
    """A score and its derivatives, for an all-pole spectrum.

    The spectrum is 1 / (1 + z + ... + z^size / size!).
    """

    def __init__(self, variance: float, lengthscale: float, size: int) -> None:
        self._variance = variance
        self._lengthscale = lengthscale
        self.size = size
        self.stationary = self.noise(np.zeros(1), np.full(1, np.inf), None)[0]

    def transition(self, start: Floats, end: Floats) -> Floats:
        return _discretised(self.size, (end - start) / self._lengthscale)[0]

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        return (
            self._variance
            * _discretised(self.size, (end - start) / self._lengthscale)[1]
        )


@cache
def _drift(size: int) -> tuple[Floats, float]:
    """Matrix F and spectral density q of dx = F x du + noise in the last entry.

    With z = -(d/du)²/2, each root z of the denominator gives two poles ±√(-2z), of
    which the left one is used. Derivatives are divided by √(1·3·5 ...), their standard
    deviations under the covariance e^{-u²/2}.
    """
    coefficients = [1 / factorial(n) for n in range(size, -1, -1)]
    poles = -np.sqrt(-2 * np.roots(coefficients).astype(complex))
    deviations = np.sqrt(np.cumprod([1.0, *range(1, 2 * size - 1, 2)]))
    F = np.eye(size, k=1)
    F[-1] = -np.poly(poles).real[:0:-1]
    density = sqrt(2 * pi) * 2.0**size * factorial(size)
    return F * deviations / deviations[:, None], density / deviations[-1] ** 2


def _discretised(size: int, gap: Floats) -> tuple[Floats, Floats]:
    """A = e^{F gap} and Q = ∫ e^{Fu} L q L' e^{F'u} du.

    Both are computed as power series over a short gap, which is then doubled. Each
    entry of Q starts with its own power of the gap, so short gaps lose no digits. The
    real parts of all poles are below -1.5, so everything is 0 after 1000 length scales.
    """
    F, density = _drift(size)
    gap = np.minimum(gap, 1e3)[:, None, None]
    doublings = np.ceil(
        np.log2(np.maximum(2 * np.linalg.norm(F, 2) * gap, 1.0))
    ).astype(np.int64)
    short = gap * 0.5**doublings
    A, Q = np.zeros((2, len(gap), size, size))
    carried = np.eye(size)
    spread = np.diag([0.0] * (size - 1) + [density])
    for n in range(1, 2 * size + 24):
        A += carried * short ** (n - 1)
        Q += spread * short**n
        carried = carried @ F / n
        spread = (F @ spread + spread @ F.T) / (n + 1)
    for n in range(doublings.max(initial=0)):
        again = (doublings > n)[:, 0, 0]
        step = A[again]
        Q[again] += step @ Q[again] @ np.swapaxes(step, 1, 2)
        A[again] = step @ step
    return A, Q
