"""Sums of smooth convex losses of differences, minimised through the incidence matrix.

The objective is alpha/2 w·w + sum_k weights_k loss(d_k, t, y_k) over w and one number t, with d = B X w. For m pairs
of n items with p features, its value, its gradient and the product of its Hessian with a vector cost O(n p + m),
since B works on scores of items. So Newton's equations are solved by conjugate gradients. Where these take many
steps, a Hessian X'(B'WB)X is formed, with the Laplacian B'WB, and its factor preconditions what follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from preflearn.checks import Floats
from preflearn.ground.outcomes import Loss
from preflearn.pairs import Incidence

_BLOCK = 1 << 14
_MAX_STEPS = 200  # of Newton's method
_FEW, _MANY = 25, 2000  # conjugate gradients that cost as much as a Hessian; where none is formed
_DENSE = 5000  # features up to which a Hessian is formed
_COARSE = 10_000  # pairs that are enough for a first fit
_TINY = np.finfo(np.float64).tiny
_STALLED = 3  # small steps without a smaller gap, in which rounding has taken over

Solve = Callable[[Floats], Floats]


class TieLaw(NamedTuple):
    """What is particular to one model: the loss of differences d, a parameter of ties t, and labels."""

    loss: Callable[[Floats, float, NDArray], Loss]  # jointly convex in (d, t), with the infimum 0
    start: float  # of t
    least: float  # t stays above, and is this limit where there are no ties


class Minimum(NamedTuple):
    """The best weights of features and parameter of ties, and what proves them."""

    w: Floats
    t: float
    objective: float
    gap: float  # the objective exceeds its minimum by at most this share of it
    n_iter: int  # Newton steps on all pairs


def minimise(
    law: TieLaw, X: Floats, B: Incidence, y: NDArray[np.int8], weights: Floats, alpha: float, tol: float
) -> Minimum:
    """Minimise alpha/2 w·w + sum of weights * loss(B X w, t, y) over w, and over t where there are ties.

    Parameters
    ----------
    law : TieLaw
    X : ndarray of shape (n, p)
        Features of the items; only B X matters.
    B : Incidence of shape (m, n)
    y, weights : ndarray of shape (m,)
        Labels, and positive weights.
    alpha : float
        Positive.
    tol : float
        Relative duality gap to stop at; the result says which one was reached.

    Notes
    -----
    **The gap.** A dual program maximises -sum_k weights_k loss*(a_k, b_k) - |X'B'(weights · a)|² / (2 alpha) over
    sum_k weights_k b_k = 0, with loss* the conjugate. The slopes (a, b) of the losses at (d, t) have
    -loss*(a, b) = loss - d a - t b. Where their b do not yet sum to 0, those with the prevailing sign are shortened:
    -loss*(c a, c b) >= -c loss*(a, b) for 0 <= c <= 1, since loss* is convex and loss*(0, 0) = 0.

    **Many pairs.** A fit to every fourth of them, and so on down to some ten thousand, is the point to start from.
    """
    X = X - np.median(X, axis=0)  # which leaves indicators sparse
    features = sparse.csr_array(X) if np.count_nonzero(X) < X.size / 8 else X
    B, y, weights = _sorted(B, y, weights)
    free = bool((y == 0).any())
    x, solve = np.append(np.zeros(X.shape[1]), [law.start] * free), None
    for stride in (256, 64, 16, 4):
        part = slice(None, None, stride)
        if len(y) >= stride * _COARSE and bool((y[part] == 0).any()) == free:
            problem = _Problem(law, features, B[part], y[part], stride * weights[part], alpha, free)
            best, solve = _newton(problem, x, solve, 1e-3)[:2]
            x = best.x
    best, _, gap, n_iter = _newton(_Problem(law, features, B, y, weights, alpha, free), x, solve, tol)
    return Minimum(best.x[: X.shape[1]], best.t, best.value, gap, n_iter)


def _sorted(B: Incidence, y: NDArray[np.int8], weights: Floats) -> tuple[Incidence, NDArray[np.int8], Floats]:
    """The same comparisons, preferences first: losses are quick where a kind of pairs stands together."""
    order = np.concatenate([np.flatnonzero(y), np.flatnonzero(y == 0)])
    return Incidence(np.asfortranarray(B.index[order]), B.shape[1]), y[order], weights[order]


class _Point(NamedTuple):
    x: Floats  # w, and t where it is free
    t: float
    value: float
    gradient: Floats
    d: Floats  # (m,) slopes of the weighted losses in d, and below second derivatives
    dd: Floats
    dt: Floats
    sums: Floats  # of loss, slope in t, -loss* and its second derivative in t, for preferences and for ties


class _Problem(NamedTuple):
    law: TieLaw
    X: Floats | sparse.csr_array
    B: Incidence
    y: NDArray[np.int8]  # first those that are not 0
    weights: Floats
    alpha: float
    free: bool  # whether t is

    def at(self, x: Floats) -> _Point:
        w, t = x[: self.X.shape[1]], float(x[-1]) if self.free else self.law.least
        differences = self.B.differences(self.X @ w)
        slopes, sums = np.empty((3, len(differences))), np.zeros((2, 4))
        for kind, part in self.blocks():
            d, share = differences[part], self.weights[part]
            loss = self.law.loss(d, t, self.y[part])
            slopes[:, part] = share * loss.d, share * loss.dd, share * loss.dt
            conjugate = loss.value - d * loss.d - (t * loss.t if self.free else 0.0)
            sums[kind] += share @ loss.value, share @ loss.t, share @ conjugate, share @ loss.tt
        value, of_t = sums[:, :2].sum(axis=0)
        gradient = self.joined(slopes[0], w, of_t)
        return _Point(x, t, float(value + self.alpha / 2 * (w @ w)), gradient, *slopes, sums)

    def blocks(self) -> Iterator[tuple[int, slice]]:
        """Kinds and rows of pairs: few enough for the cache, and not one by one."""
        preferences = int(np.count_nonzero(self.y))
        for kind, (start, end) in enumerate(((0, preferences), (preferences, len(self.y)))):
            for row in range(start, end, _BLOCK):
                yield kind, slice(row, min(end, row + _BLOCK))

    def joined(self, v: Floats, w: Floats, of_t: float) -> Floats:
        """X'B'v + alpha w, and the entry of t where it is free."""
        of_w = self.X.T @ self.B.adjoint(v) + self.alpha * w
        return np.append(of_w, of_t) if self.free else of_w

    def gap(self, point: _Point) -> float:
        """What the dual bound in the notes of `minimise` leaves open, relative to the objective."""
        pulls, short = np.abs(point.sums[:, 1]), np.ones(2)
        if self.free:
            short = pulls.min() / np.maximum(pulls, _TINY)
        d = point.d * np.where(self.y, *short)
        pull = self.X.T @ self.B.adjoint(d)
        dual = float(short @ point.sums[:, 2] - pull @ pull / (2 * self.alpha))
        return max(0.0, point.value - dual) / max(point.value, _TINY)

    def curvature(self, point: _Point) -> Callable[[Floats], Floats]:
        """The Hessian times a vector."""
        p, tt = self.X.shape[1], point.sums[:, 3].sum()

        def times(v: Floats) -> Floats:
            d = self.B.differences(self.X @ v[:p])
            if not self.free:
                return self.joined(point.dd * d, v, 0.0)
            return self.joined(point.dd * d + v[p] * point.dt, v[:p], point.dt @ d + v[p] * tt)

        return times

    def diagonal(self, point: _Point) -> Floats:
        """That of the Hessian: exact for indicators, else about so if no two items in a pair are alike."""
        n = self.B.shape[1]
        degree = np.bincount(self.B.first, point.dd, n) + np.bincount(self.B.second, point.dd, n)
        squares = self.X.multiply(self.X) if sparse.issparse(self.X) else self.X * self.X
        diagonal = squares.T @ degree + self.alpha
        return np.append(diagonal, point.sums[:, 3].sum()) if self.free else diagonal

    def hessian(self, point: _Point) -> Floats:
        system = self.X.T @ (self.B.laplacian(point.dd) @ self.X)
        system = system.toarray() if sparse.issparse(system) else system
        system[np.diag_indices_from(system)] += self.alpha
        if not self.free:
            return system
        mixed = self.X.T @ self.B.adjoint(point.dt)
        return np.block([[system, mixed[:, None]], [mixed[None], point.sums[:, 3].sum()]])


def _newton(problem: _Problem, x: Floats, solve: Solve | None, tol: float) -> tuple[_Point, Solve, float, int]:
    """Damped Newton steps from x: the point of least gap, how to solve near it, its gap, and their number."""
    here, best, least, since, n_iter = problem.at(x), None, math.inf, 0, 0
    decrement = math.inf
    while True:
        if decrement <= math.sqrt(tol) * here.value:  # before the step that led here
            gap = problem.gap(here)
            since = 0 if gap < least / 2 else since + 1
            if gap < least:
                best, least = here, gap
        if least <= tol or since >= _STALLED or n_iter == _MAX_STEPS:
            break
        step, solve = _step(problem, here, solve)
        decrement = -float(here.gradient @ step)
        here, n_iter = _moved(problem, here, step, decrement), n_iter + 1
    if best is None:
        best, least = here, problem.gap(here)
    return best, solve, least, n_iter


def _moved(problem: _Problem, here: _Point, step: Floats, decrement: float) -> _Point:
    """The point after as much of a step as decreases the objective and keeps t in its domain."""
    size = 1.0
    if problem.free and step[-1] < 0:
        size = min(1.0, 0.9 * (problem.law.least - here.t) / step[-1])
    while True:
        there = problem.at(here.x + size * step)
        if there.value <= here.value - 1e-4 * size * decrement + 1e-13 * here.value or size < 1e-10:
            return there
        size /= 2


def _step(problem: _Problem, here: _Point, solve: Solve | None) -> tuple[Floats, Solve]:
    """Newton's step and the preconditioner, which is a new one where the old one served badly."""
    times, p = problem.curvature(here), len(here.x)
    dense = p <= _DENSE
    if solve is None:
        diagonal = problem.diagonal(here)
        solve = lambda v: v / diagonal
    most = _FEW + p // 20 if dense else _MANY
    step, done = _conjugate_gradients(times, here.gradient, solve, most, here.value)
    if dense and not done:
        solve = _factored(problem.hessian(here))
        step, _ = _conjugate_gradients(times, here.gradient, solve, most, here.value)
    return step, solve


def _conjugate_gradients(
    times: Solve, gradient: Floats, solve: Solve, most: int, scale: float
) -> tuple[Floats, bool]:
    """Where H x = -gradient, better if this is small, for `times` = H, and whether `most` steps were enough."""
    x, residual = np.zeros_like(gradient), -gradient
    z = direction = solve(residual)
    first = size = float(residual @ z)
    goal = first * min(0.01, first / scale)  # so that errors of Newton's method are squared in the end
    for _ in range(most):
        if size <= goal:
            return x, True
        image = times(direction)
        length = size / float(direction @ image)
        x, residual = x + length * direction, residual - length * image
        z = solve(residual)
        before, size = size, float(residual @ z)
        direction = z + size / before * direction
    return x, False


def _factored(system: Floats) -> Solve:
    """The solution of a positive definite system, after its diagonal was scaled to 1."""
    scale = 1 / np.sqrt(np.diag(system))
    scaled = system * scale * scale[:, None]
    scaled[np.diag_indices_from(scaled)] += 1e-15 * (10 + len(scaled))  # against rounding
    factor = linalg.cho_factor(scaled, overwrite_a=True)
    return lambda v: scale * linalg.cho_solve(factor, scale * v)
