"""Fixed nodes for averages over N(mean, variance): Gauss and Hermite for narrow ones, a grid for wide ones.

The grid is u_k = 6 sinh(0.08 k): dense around 0, where the logistic and probit likelihoods change within a
unit or two, and ever wider outside, where they are almost linear, quadratic or exponential. What is tabulated
there is averaged, by the trapezoid rule in k, at the cost of one exponential a node.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from preflearn.compiled import njit

_points, _weights = hermegauss(24)
POINTS = _points  # of a standard normal variable
WEIGHTS = _weights / _weights.sum()
NARROW = 0.5  # the largest variance for these: their error is below 1e-12

STRETCH, STEP, _HALF = 6.0, 0.08, 100
SHARE = 0.75  # the largest spacing, in standard deviations: exp(-2 pi² / 0.75²) = 6e-16
GRID = STRETCH * np.sinh(STEP * np.arange(-_HALF, _HALF + 1))
SPACING = STRETCH * STEP * np.cosh(STEP * np.arange(-_HALF, _HALF + 1)) / math.sqrt(2 * math.pi)


@njit
def resolves(mean, variance):
    """Whether the grid is dense enough for N(mean, variance), and reaches far enough."""
    deviation = math.sqrt(variance)
    return math.hypot(STRETCH, 1.5 * mean) * STEP < SHARE * deviation and abs(mean) + 9 * deviation < GRID[-1]


@njit
def nearest(mean):
    """Number of the grid's node next to the mean."""
    return _HALF + round(math.asinh(mean / STRETCH) / STEP)


@njit
def average(columns, mean, variance):
    """E f(u) for three functions f, u ~ N(mean, variance); columns holds their values on GRID."""
    start, scale = nearest(mean), -0.5 / variance
    total = first = second = third = 0.0
    for direction in (-1, 1):
        k = start + (direction + 1) // 2
        while 0 <= k < len(GRID):
            exponent = scale * (GRID[k] - mean) ** 2
            if exponent < -40:
                break
            weight = math.exp(exponent) * SPACING[k]
            total += weight
            first += weight * columns[k, 0]
            second += weight * columns[k, 1]
            third += weight * columns[k, 2]
            k += direction
    return first / total, second / total, third / total
