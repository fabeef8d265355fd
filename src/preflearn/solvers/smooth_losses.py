"""Sums of smooth convex losses of differences, minimised through the incidence matrix.

The objective is alpha/2 w·w + sum_k weights_k loss(d_k, t, y_k) over w and one number
t, with d = B X w. For m pairs of n items with p features, its value, its gradient and
the product of its Hessian with a vector cost O(n p + m), since B works on scores of
items. So Newton's equations are solved by conjugate gradients. Where these take many
steps, a Hessian X'(B'WB)X is formed, with the Laplacian B'WB, and its factor
preconditions what follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from preflearn.core.outcome_losses import Loss
from preflearn.core.validation import Floats, Ids
from preflearn.pairs import Incidence
from preflearn.solvers.newton import conjugate_gradients, newton

_MAX_STEPS = 200  # of Newton's method
# conjugate gradients that cost as much as a Hessian; where none is formed
_FEW = 25
_MANY = 2000
DENSE = 5000  # features up to which a Hessian is formed
_BLOCK = 1 << 14  # pairs whose losses stay in the cache
# pairs, and pairs a feature, that are enough for a first fit
_COARSE = 10_000
_EACH = 10
_TINY = np.finfo(np.float64).tiny

Solve = Callable[[Floats], Floats]


class TieLaw(NamedTuple):
    """What is particular to one model: the loss of differences d, a parameter of ties
    t, and labels."""

    # jointly convex in (d, t), with the infimum 0
    loss: Callable[[Floats, float, NDArray], Loss]
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
    law: TieLaw,
    X: Any,
    B: Incidence,
    y: NDArray[np.int8],
    weights: Floats,
    alpha: float,
    tol: float,
) -> Minimum:
    """Minimise alpha/2 w·w + sum of weights * loss(B X w, t, y) over w, and over t
    where there are ties.

    Parameters
    ----------
    law : TieLaw
    X : ndarray or sparse array of shape (n, p)
        Features of the items; only B X matters.
    B : Incidence of shape (m, n)
    y, weights : ndarray of shape (m,)
        Labels, and weights, not negative.
    alpha : float
        Positive.
    tol : float
        Relative duality gap to stop at; the result says which one was reached.

    Notes
    -----
    **The gap.** A dual program maximises -sum_k weights_k loss*(a_k, b_k) -
    |X'B'(weights · a)|² / (2 alpha) over sum_k weights_k b_k = 0, with loss* the
    conjugate. The slopes (a, b) of the losses at (d, t) have -loss*(a, b) = loss - d a
    - t b. Preferences have b of one sign, ties of the other; where they do not yet add
    up to 0, the slopes of one kind are shortened: -loss*(c a, c b) >= -c loss*(a, b)
    for 0 <= c <= 1, since loss* is convex and loss*(0, 0) = 0.

    **Many pairs.** Fits to every 64th and to every eighth of them give the point to
    start from.
    """
    X, B, y, weights, _ = _laid_out(X, B, y, weights)
    free = bool((y == 0).any())
    x = np.append(np.zeros(X.shape[1]), law.start if free else law.least)
    solve = None
    for stride in (64, 8):
        part = slice(None, None, stride)
        # fewer can be separated: far from the minimum
        enough = stride * max(_COARSE, _EACH * X.shape[1])
        if len(y) >= enough and bool((y[part] == 0).any()) == free:
            problem = _Problem(
                law, X, B[part], y[part], stride * weights[part], alpha, free, solve
            )
            x = newton(problem, x, 1e-3, _MAX_STEPS).point.x
            solve = problem.solve
    problem = _Problem(law, X, B, y, weights, alpha, free, solve)
    best, gap, n_iter = newton(problem, x, tol, _MAX_STEPS)
    return Minimum(best.x[:-1], float(best.x[-1]), best.value, gap, n_iter)


def _laid_out(
    X: Any, B: Incidence, y: NDArray[np.int8], weights: Floats
) -> tuple[Any, Incidence, NDArray[np.int8], Floats, Ids]:
    """Items sparse or centred; the pairs of positive weight, preferences first; which
    pairs these are."""
    used = weights > 0
    order = np.concatenate(
        [np.flatnonzero(used & (y != 0)), np.flatnonzero(used & (y == 0))]
    )
    # no indicators
    if sparse.issparse(X) and X.nnz >= max(np.prod(X.shape) / 8, X.shape[0] + 1):
        X = X.toarray()
    if not sparse.issparse(X):
        filled = X != 0
        if np.count_nonzero(filled) < X.size / 8:
            # a fifth of the time of csr_array(X)
            places = np.divmod(np.flatnonzero(filled), X.shape[1])
            X = sparse.csr_array((X[places], places), shape=X.shape)
        else:
            X = X - X[0]  # exactly 0 where all items are equal
            X -= X.mean(axis=0)
    return (
        X,
        Incidence(np.asfortranarray(B.index[order]), B.shape[1]),
        y[order],
        weights[order],
        order,
    )


def problem_at(
    law: TieLaw,
    X: Any,
    B: Incidence,
    y: NDArray[np.int8],
    weights: Floats,
    alpha: float,
    x: Floats,
) -> tuple[_Problem, _Point, Ids]:
    """The problem of `minimise`, its point x = (w, t), and which pairs it has, for what
    follows a fit."""
    X, B, y, weights, order = _laid_out(X, B, y, weights)
    problem = _Problem(law, X, B, y, weights, alpha, bool((y == 0).any()), None)
    return problem, problem.at(x), order


class _Point(NamedTuple):
    x: Floats  # (p + 1,): w and t
    value: float
    gradient: Floats
    d: Floats  # (m,) slopes of the weighted losses in d, then their second derivatives
    dd: Floats
    dt: Floats
    # of losses, slopes in t, -loss*, second derivatives in t: of preferences, of ties
    sums: Floats


@dataclass
class _Problem:
    law: TieLaw
    X: Any  # (n, p), dense or sparse
    B: Incidence
    y: NDArray[np.int8]  # preferences first
    weights: Floats
    alpha: float
    free: bool  # whether t is; if not, its equation is that its step is 0
    solve: Solve | None  # by the factor of an earlier Hessian, if there is one

    def at(self, x: Floats) -> _Point:
        w = x[:-1]
        t = float(x[-1])
        differences = self.B.differences(self.X @ w)
        slopes = np.empty((3, len(differences)))
        sums = np.zeros((2, 4))
        for kind, part in self.blocks():
            d = differences[part]
            share = self.weights[part]
            loss = self.law.loss(d, t, self.y[part])
            conjugate = loss.value - d * loss.d - (t * loss.t if self.free else 0.0)
            slopes[:, part] = share * loss.d, share * loss.dd, share * loss.dt
            sums[kind] += (
                share @ loss.value,
                share @ loss.t,
                share @ conjugate,
                share @ loss.tt,
            )
        if not self.free:
            slopes[2] = 0.0
            sums[:, 1] = 0.0
            sums[:, 3] = 1.0
        value, of_t = sums[:, :2].sum(axis=0)
        value += self.alpha / 2 * (w @ w)
        return _Point(
            x, float(value), self.joined(slopes[0], w, of_t), *slopes, sums=sums
        )

    def blocks(self) -> Iterator[tuple[int, slice]]:
        """Kinds and rows of pairs."""
        preferences = int(np.count_nonzero(self.y))
        for kind, (start, end) in enumerate(
            ((0, preferences), (preferences, len(self.y)))
        ):
            for row in range(start, end, _BLOCK):
                yield kind, slice(row, min(end, row + _BLOCK))

    def joined(self, v: Floats, w: Floats, of_t: float) -> Floats:
        """X'B'v + alpha w, and the entry of t."""
        return np.append(self.X.T @ self.B.adjoint(v) + self.alpha * w, of_t)

    def gap(self, point: _Point) -> float:
        """What the dual bound of `minimise` leaves open, relative to the objective."""
        pulls = np.abs(point.sums[:, 1]) + _TINY
        short = pulls.min() / pulls
        pull = self.X.T @ self.B.adjoint(point.d * np.where(self.y, *short))
        bound = float(short @ point.sums[:, 2] - pull @ pull / (2 * self.alpha))
        return abs(point.value - bound) / max(point.value, _TINY)

    def step(self, point: _Point) -> Floats:
        """Newton's step, or its part that keeps t in its domain."""
        diagonal = self.diagonal(point)
        p = len(diagonal)
        first = self.solve or (lambda v: v / diagonal)
        step, done = self.solved(point, first, _FEW + p // 20 if p <= DENSE else _MANY)
        if p <= DENSE and not done:  # the old factor served badly, if there was one
            self.solve = _factored(self.hessian(point))
            step, _ = self.solved(point, self.solve, _FEW)
        if step[-1] < 0:
            step *= min(1.0, 0.9 * (self.law.least - point.x[-1]) / step[-1])
        return step

    def solved(self, point: _Point, solve: Solve, most: int) -> tuple[Floats, bool]:
        """The step where the gradient vanishes, better near the minimum, and if `most`
        rounds were enough."""

        def enough(x: Floats, residual: Floats, size: float, first: float) -> bool:
            return size <= first * min(0.01, math.sqrt(first / point.value))

        step = np.zeros_like(point.gradient)
        done = conjugate_gradients(
            lambda v: self.times(point, v), solve, step, -point.gradient, enough, most
        )
        return step, done

    def times(self, point: _Point, v: Floats) -> Floats:
        """The Hessian times a vector."""
        d = self.B.differences(self.X @ v[:-1])
        of_t = point.dt @ d + v[-1] * point.sums[:, 3].sum()
        return self.joined(point.dd * d + v[-1] * point.dt, v[:-1], of_t)

    def diagonal(self, point: _Point) -> Floats:
        """That of the Hessian: exact for indicators, else about so if no two items in a
        pair are alike."""
        n = self.B.shape[1]
        degree = np.bincount(self.B.first, point.dd, n) + np.bincount(
            self.B.second, point.dd, n
        )
        return np.append(
            (self.X * self.X).T @ degree + self.alpha, point.sums[:, 3].sum()
        )

    def inverse(self, point: _Point) -> Floats:
        """Of the Hessian, for differences: a constant in w that changes none has no
        large entry."""
        system = self.hessian(point)
        p = self.X.shape[1]
        system[:p, :p] += (
            (np.ptp(self.X.sum(axis=1)) == 0) * np.trace(system[:p, :p]) / p**2
        )
        return _factored(system)(np.eye(p + 1))

    def hessian(self, point: _Point) -> Floats:
        system = self.X.T @ (self.B.laplacian(point.dd) @ self.X)
        system = system.toarray() if sparse.issparse(system) else system
        system[np.diag_indices_from(system)] += self.alpha
        mixed = self.X.T @ self.B.adjoint(point.dt)
        return np.block(
            [[system, mixed[:, None]], [mixed[None], point.sums[:, 3].sum()]]
        )


def _factored(system: Floats) -> Solve:
    """The solution of a positive definite system, after its diagonal was scaled to 1."""
    scale = 1 / np.sqrt(np.diag(system))
    scaled = system * scale * scale[:, None]
    # against rounding
    scaled[np.diag_indices_from(scaled)] += 1e-14 * (10 + len(scaled))
    factor = linalg.cho_factor(scaled, overwrite_a=True)
    return lambda v: (scale * linalg.cho_solve(factor, (scale * v.T).T).T).T
