"""The chance that one of two Poisson counts is the larger one, averaged over their rates."""

from __future__ import annotations

import numpy as np
from scipy.special import ive, ndtr

from preflearn.checks import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_PANELS = 12
_NEGLIGIBLE = 45.0  # e^-45 = 3e-20


def skellam_wins(base: float, mean: Floats, variance: Floats) -> Floats:
    """P(X > Y), X and Y Poisson with rates base e^{u/2} and base e^{-u/2}, u ~ N(mean, variance); shape (n,).

    One more point for X wins a match that is tied, one more for Y ties one that X leads by a point. So
    P(X > Y) given u has the derivative

        (base/2) (e^{u/2} P(X = Y) + e^{-u/2} P(X = Y + 1))
            = (base/2) exp(-2 base cosh(u/2)) (e^{u/2} I_0(2 base) + I_1(2 base)),

    and the average of a function that rises from 0 to 1 with the slope w is the integral of
    w(x) Phi((mean - x) / deviation). By Gauss and Legendre on panels; the error is below 1e-12.
    """
    deviation = np.sqrt(variance)
    reach = 0.0
    for _ in range(4):  # where the slope is negligible
        reach = 4 * np.arcsinh(np.sqrt((_NEGLIGIBLE + reach / 2) / (4 * base)))
    low = np.clip(mean - 9 * deviation, -reach, reach)  # Phi is 1 below
    high = np.clip(mean + 9 * deviation, -reach, reach)  # Phi is 0 above
    zeros = np.broadcast_to(-reach, low.shape)
    total = np.zeros(len(mean))
    for panel in range(_PANELS):
        for begin, end, certain in ((zeros, low, True), (low, high, False)):
            half = (end - begin) / (2 * _PANELS)
            x = (begin + (2 * panel + 1) * half)[:, None] + half[:, None] * _NODES
            slope = np.exp(x / 2 - 4 * base * np.sinh(x / 4) ** 2) * ive(0, 2 * base)
            slope += np.exp(-4 * base * np.sinh(x / 4) ** 2) * ive(1, 2 * base)
            if not certain:
                slope *= _above(mean[:, None] - x, deviation[:, None])
            total += base / 2 * half * (slope @ _WEIGHTS)
    return total


def _above(difference: Floats, deviation: Floats) -> Floats:
    """Phi(difference / deviation), also for a deviation of 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(ndtr(difference / deviation), nan=0.5)
