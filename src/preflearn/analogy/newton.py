"""Logistic regression on a kernel matrix, by Newton's method, until a duality gap proves the minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from preflearn.checks import Floats

_FLAT = 1e-10  # the least curvature of the loss in Newton's equations, whose unknowns are divided by it
_ACCURACY = 0.1  # of a step, relative to its length in the metric of the Hessian
_MOST_GRADIENTS = 1000
_LEAST_STEP = 1e-8


class Point(NamedTuple):
    """Weights of the kernel functions, and all that a step and its judgement need of them."""

    c: Floats  # (N,), the weights of the kernel functions
    scores: Floats  # K c
    bias: float
    objective: float
    slopes: Floats  # C times those of the losses; with a bias, their sum is 0
    field: Floats  # K e of the residual e = c + slopes
    gap: float  # relative


class Logistic(NamedTuple):
    """1/2 c'Kc + C sum_i log(1 + exp(-y_i (K c + bias)_i)), at the best bias for each c, or a bias of 0."""

    times: Callable[[Floats], Floats]  # K v
    inverse: Callable[[Floats], Callable[[Floats], Floats]]  # of the equations, or near; see `functions`
    y: Floats
    C: float
    biased: bool = True

    def at(self, c: Floats) -> Point:
        scores = self.times(c)
        objective, bias = self.value(scores, float(c @ scores))
        slopes = self._slopes(scores + bias)
        residual = c + slopes
        field = self.times(residual)
        gap = max(0.0, float(residual @ field) / 2 / objective)
        return Point(c, scores, bias, objective, slopes, field, gap)

    def value(self, scores: Floats, square: float) -> tuple[float, float]:
        """The objective where |g|^2 = square, and the best bias."""
        bias = 0.0
        if self.biased:
            wide = np.log(len(scores)) + 1  # beyond the scores: losses of one kind outweigh all of the other
            low, high = -float(scores.max()) - wide, -float(scores.min()) + wide
            bias = float(brentq(lambda b: float(self._slopes(scores + b).sum()), low, high, xtol=1e-15))  # pyright: ignore[reportArgumentType]
        return square / 2 + self.C * float(np.logaddexp(0.0, -self.y * (scores + bias)).sum()), bias

    def _slopes(self, f: Floats) -> Floats:
        return -self.C * self.y * expit(-self.y * f)

    def direction(self, point: Point) -> tuple[Floats, Floats]:
        """A step x of c from Newton's equations, and K x, by conjugate gradients.

        The residual is kept as W times that of (W^-1 + K) x + 1 t. After the first solution it is W times
        a difference of functions, so what follows may divide it by a W of almost 0.
        """
        share = np.abs(point.slopes) / self.C
        W = self.C * np.maximum(share * (1 - share), _FLAT)
        solve, right = self.inverse(W), -(point.c + point.slopes)
        x = solve(right)
        Kx = self.times(x)
        residual = right - x - W * Kx
        p = z = solve(residual)
        size = float(residual @ (z / W))
        for _ in range(_MOST_GRADIENTS):
            # Newton's model of the objective is at most excess / 2 above its minimum, and falls by some
            # decrease / 2: the first is r'K (1 + W K)^-1 r of the residual r, which r'W^-1 r bounds.
            excess = float(residual @ (residual / W)) - self.biased * residual.sum() ** 2 / W.sum()
            decrease = -float(x @ point.field)
            if excess <= _ACCURACY**2 * decrease:
                break
            Kp = self.times(p)
            image = p + W * Kp
            curve = float(p @ (image / W))
            if not (size > 0 and curve > 0):  # all that is left is rounding
                break
            length = size / curve
            x += length * p
            Kx += length * Kp
            residual -= length * image
            z = solve(residual)
            size, before = float(residual @ (z / W)), size
            p = z + size / before * p
        return x, Kx


def minimise(problem: Logistic, start: Floats, tol: float, max_iter: int) -> tuple[Point, int]:
    """The first point after a step whose gap is at most tol, or else the last one, and the number of steps.

    From weights `start` on. At a small cost the gap is small at 0, where f is constant and ranks nothing.
    """
    point = problem.at(start)
    for step in range(1, max_iter + 1):
        x, Kx = problem.direction(point)
        slope, t = float(x @ point.field), 1.0
        squares = [float(a @ b) for a, b in ((point.c, point.scores), (point.c, Kx), (x, Kx))]
        limit = point.objective * (1 + 1e-14)  # rounding
        while t > _LEAST_STEP:
            square = squares[0] + 2 * t * squares[1] + t * t * squares[2]
            if problem.value(point.scores + t * Kx, square)[0] <= limit + 1e-4 * t * slope:
                break
            t /= 2
        point = problem.at(point.c + t * x)
        if point.gap <= tol:
            return point, step
    return point, max_iter
