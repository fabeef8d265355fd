"""The fit of models of ties: a penalised likelihood, jointly concave, maximised by Newton's method."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from preflearn.checks import Floats
from preflearn.ground.outcomes import Loss
from preflearn.pairs import Incidence

MAX_ITERATIONS = 300
_CLOSE = 1e-12  # a Newton decrement, relative to the objective, after which one more step is enough


class TieLaw(NamedTuple):
    """What is particular to one model: the loss of differences d, a parameter of ties t, and labels."""

    loss: Callable[[Floats, float, NDArray], Loss]
    start: float  # of t
    least: float  # t stays above, and is this limit where there are no ties


class Maximum(NamedTuple):
    """The most likely weights of features and parameter of ties, and how they were found."""

    w: Floats
    t: float
    objective: float
    n_iter: int
    converged: bool


def most_likely(
    law: TieLaw, X: Floats, B: Incidence, y: NDArray[np.int8], weights: Floats, alpha: float
) -> Maximum:
    """Minimise alpha/2 w·w + sum of weights * loss(B X w, t, y) over w, and over t where there are ties."""
    p, free = X.shape[1], bool((y == 0).any())

    def losses(point: Floats) -> tuple[Floats, Loss]:
        w, t = point[:p], float(point[p]) if free else law.least
        return w, law.loss(B.differences(X @ w), t, y)

    def objective(point: Floats) -> float:
        w, loss = losses(point)
        return float(weights @ loss.value + alpha / 2 * (w @ w))

    def derivatives(point: Floats) -> tuple[Floats, Floats]:
        w, loss = losses(point)
        gradient = X.T @ B.adjoint(weights * loss.d) + alpha * w
        hessian = X.T @ (B.laplacian(weights * loss.dd) @ X) + alpha * np.eye(p)
        if not free:
            return gradient, hessian
        mixed = X.T @ B.adjoint(weights * loss.dt)
        return np.append(gradient, weights @ loss.t), np.block(
            [[hessian, mixed[:, None]], [mixed[None], weights @ loss.tt]]
        )

    start, least = np.zeros(p), np.full(p, -math.inf)
    if free:
        start, least = np.append(start, law.start), np.append(least, law.least)
    point, value, n_iter, converged = _newton(objective, derivatives, start, least)
    return Maximum(point[:p], float(point[p]) if free else law.least, value, n_iter, converged)


def _newton(
    objective: Callable[[Floats], float],
    derivatives: Callable[[Floats], tuple[Floats, Floats]],
    point: Floats,
    least: Floats,
) -> tuple[Floats, float, int, bool]:
    """Damped Newton steps for a convex objective above `least`: point, value, steps, and if it converged."""
    value = objective(point)
    for n_iter in range(1, MAX_ITERATIONS + 1):
        gradient, hessian = derivatives(point)
        step = -_solve(hessian, gradient)
        decrement = -float(gradient @ step)
        down = step < 0
        size = min(1.0, 0.9 * np.min((least - point)[down] / step[down], initial=math.inf))
        if decrement <= _CLOSE * value:  # where Newton steps square the error; values are rounded too much
            return point + size * step, objective(point + size * step), n_iter, True
        while (new := objective(point + size * step)) > value - 1e-4 * size * decrement and size > 1e-10:
            size /= 2
        point, value = point + size * step, new
    return point, value, MAX_ITERATIONS, False


def _solve(hessian: Floats, gradient: Floats) -> Floats:
    """Solve a positive definite system after scaling its diagonal to 1."""
    scale = 1 / np.sqrt(np.diag(hessian))
    scaled = hessian * scale * scale[:, None]
    scaled[np.diag_indices_from(scaled)] += 1e-14  # against rounding; a step need not be exact
    return scale * linalg.cho_solve(linalg.cho_factor(scaled), scale * gradient)
