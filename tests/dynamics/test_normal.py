"""Wins, ties, and points under normal noise, compared with SciPy and high-precision
results."""

import math

import mpmath as mp
import numpy as np
import pytest
from dynamics import digits
from dynamics.digits import arrays, assert_near, integral_at
from scipy import special, stats

from preflearn.dynamics import Gaussian, OrdinalProbit, Probit


def test_gaussian_points():
    """For integer points, a margin of half a point makes 0 a tie. Without a margin,
    there are no ties."""
    mean = np.array([0.0, 2.0])
    variance = np.array([1.0, 5.0])
    deviation = np.sqrt(variance + 140)
    found = Gaussian(140.0, margin=0.5).probabilities(mean, variance)
    np.testing.assert_allclose(
        found[:, 2], stats.norm.sf(0.5, mean, deviation), rtol=1e-12
    )
    np.testing.assert_allclose(
        found[:, 0], stats.norm.cdf(-0.5, mean, deviation), rtol=1e-12
    )
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)  # the rest is a tie
    two = Gaussian(140.0).probabilities(mean, variance)
    np.testing.assert_allclose(two[:, 1], stats.norm.cdf(mean / deviation), rtol=1e-12)


def test_wins_of_normal_noise():
    """Compare with SciPy. The hazard rate is the first derivative of log Phi."""
    x = np.concatenate(
        [[0.0], 10.0 ** np.linspace(-300, 99, 401), np.linspace(0, 40, 401)]
    )
    z = np.concatenate([-x, x])
    value, hazard, bend = arrays(Probit(), 1, z, np.zeros(len(z)), ep=True)
    np.testing.assert_allclose(value, special.log_ndtr(z), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(
        hazard[: len(x)],
        math.sqrt(2 / math.pi) / special.erfcx(x / math.sqrt(2)),
        rtol=2e-15,
    )
    # q = 1/x - 2/x³ + 10/x⁵, and the second derivative is -(x + q) q
    far = (x > 1e3) & (x < 1e7)
    q = 1 / x[far] - 2 / x[far] ** 3 + 10 / x[far] ** 5
    np.testing.assert_allclose(bend[: len(x)][far], -(x[far] + q) * q, rtol=1e-11)


@pytest.mark.parametrize("half", [1e-9, 0.003, 0.01, 0.05, 0.19, 0.21, 0.7, 2.0, 30.0])
def test_ties_of_normal_noise(half):
    """This includes the boundaries between the three formulas: half (|center| + 1) =
    0.2, and |center| - half = 4."""
    tie = OrdinalProbit(half)
    where_they_meet = (
        3.5 + half - 1e-9,
        3.5 + half + 1e-9,
        0.2001 / half,
        abs(0.2 / half - 1),
    )
    for center in (0.0, 1e-9, 0.3, half, *where_they_meet, 1e4):
        found = integral_at(tie, 0, center, 0.0, ep=True)
        with mp.workdps(400):
            near_end = mp.mpf(center) - half
            far_end = mp.mpf(center) + half
            mass = digits.upper_tail(near_end) - digits.upper_tail(far_end)
            first = (mp.npdf(far_end) - mp.npdf(near_end)) / mass
            second = (
                near_end * mp.npdf(near_end) - far_end * mp.npdf(far_end)
            ) / mass - first**2
            assert_near(
                found, [float(mp.log(mass)), float(first), float(second)], 1e-12
            )
        value, first, second = integral_at(tie, 0, -center, 0.0, ep=True)
        np.testing.assert_allclose(
            [value, -first, second], found, rtol=1e-15, atol=1e-17
        )
