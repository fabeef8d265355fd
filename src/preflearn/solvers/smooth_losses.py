"""Newton's method for sums of smooth convex losses of score differences.

The objective is alpha/2 w·w + sum_k weights_k loss(d_k, t, y_k), a function of w and
one number t, with d = B X w. For m pairs of n items with p features, its value, its
gradient, and the product of its Hessian with a vector take O(n p + m) operations, since
B is applied to scores of items. Newton's equations are therefore solved by conjugate
gradients. If these take many steps, the Hessian X'(B'WB)X is formed, with the Laplacian
B'WB, and its factor is the preconditioner of later steps.
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
from preflearn.solvers.newton import (
    conjugate_gradient_columns,
    conjugate_gradients,
    newton,
)

_MAX_STEPS = 200  # steps of Newton's method
# Steps of conjugate gradients, with and without a factored Hessian. With one, more
# steps would take as long as a new factorization.
_CG_STEPS = 25
_CG_STEPS_WITHOUT_HESSIAN = 2000
DENSE = 5000  # largest number of features for which a Hessian is formed
_BLOCK = 1 << 14  # number of pairs whose losses fit into the processor's cache
# minimum numbers of pairs, and of pairs per feature, for an initial fit to a subset
_MIN_COARSE_PAIRS = 10_000
_MIN_PAIRS_PER_FEATURE = 10
_TINY = np.finfo(np.float64).tiny

Solve = Callable[[Floats], Floats]


class TieLoss(NamedTuple):
    """The loss of a model, a function of differences d, tie parameter t, and labels."""

    # jointly convex in (d, t), with infimum 0
    loss: Callable[[Floats, float, NDArray], Loss]
    start: float  # initial value of t
    least: float  # lower limit of t, and its value without ties


class Minimum(NamedTuple):
    """The optimal weights and tie parameter, with a certificate."""

    w: Floats
    t: float
    objective: float
    gap: float  # bound on objective - minimum, relative to the objective
    n_iter: int  # number of Newton steps on all pairs


def minimise(
    tie_loss: TieLoss,
    X: Any,
    B: Incidence,
    y: NDArray[np.int8],
    weights: Floats,
    alpha: float,
    tol: float,
) -> Minimum:
    """Minimize alpha/2 w·w + sum of weights * loss(B X w, t, y) over w and t.

    Without ties, t is fixed at its lower limit.

    Parameters
    ----------
    tie_loss : TieLoss
    X : ndarray or sparse array of shape (n, p)
        Features of the items; the objective depends on B X only.
    B : Incidence of shape (m, n)
    y, weights : ndarray of shape (m,)
        Labels and nonnegative weights.
    alpha : float
        Strength of the penalty, positive.
    tol : float
        Relative duality gap at which to stop; the result contains the gap that was
        reached.

    Notes
    -----
    **The gap.** The dual program maximizes -sum_k weights_k loss*(a_k, b_k) -
    |X'B'(weights · a)|² / (2 alpha) subject to sum_k weights_k b_k = 0, with loss* the
    conjugate of the loss. The slopes (a, b) of the losses at (d, t) satisfy -loss*(a,
    b) = loss - d a - t b. The signs of b for preferences and for ties are opposite. If
    their sum is not 0, the slopes of one kind are multiplied by some c in [0, 1], which
    gives a feasible point. Its value is bounded by -loss*(c a, c b) >= -c loss*(a, b),
    since loss* is convex and loss*(0, 0) = 0.

    **Many pairs.** Fits to every 64th and to every eighth pair give the initial point.
    """
    X, B, y, weights, _ = _sort_pairs(X, B, y, weights)
    free = bool((y == 0).any())
    t = tie_loss.least
    if free:
        t = tie_loss.start
    x = np.append(np.zeros(X.shape[1]), t)
    solve = None
    for stride in (64, 8):
        part = slice(None, None, stride)
        # fewer pairs may be separable, with a minimum far from that of all pairs
        coarse = max(_MIN_COARSE_PAIRS, _MIN_PAIRS_PER_FEATURE * X.shape[1])
        enough = stride * coarse
        if len(y) >= enough and bool((y[part] == 0).any()) == free:
            problem = _Problem(
                tie_loss,
                X,
                B[part],
                y[part],
                stride * weights[part],
                alpha,
                free,
                solve,
            )
            x = newton(problem, x, 1e-3, _MAX_STEPS).point.x
            solve = problem.solve
    problem = _Problem(tie_loss, X, B, y, weights, alpha, free, solve)
    best, gap, n_iter = newton(problem, x, tol, _MAX_STEPS)
    return Minimum(best.x[:-1], float(best.x[-1]), best.value, gap, n_iter)


def _sort_pairs(
    X: Any, B: Incidence, y: NDArray[np.int8], weights: Floats
) -> tuple[Any, Incidence, NDArray[np.int8], Floats, Ids]:
    """Prepare items and pairs for the solver.

    Items become sparse or centered. Pairs of positive weight are sorted with
    preferences first; their original numbers are also returned.
    """
    used = weights > 0
    order = np.concatenate(
        [np.flatnonzero(used & (y != 0)), np.flatnonzero(used & (y == 0))]
    )
    # sparse, but with many entries and not one-hot
    if sparse.issparse(X) and X.nnz >= max(np.prod(X.shape) / 8, X.shape[0] + 1):
        X = X.toarray()
    if not sparse.issparse(X):
        filled = X != 0
        if np.count_nonzero(filled) < X.size / 8:
            # in a fifth of the time of csr_array(X)
            places = np.divmod(np.flatnonzero(filled), X.shape[1])
            X = sparse.csr_array((X[places], places), shape=X.shape)
        else:
            X = X - X[0]  # exactly 0 if all items are equal
            X -= X.mean(axis=0)
    return (
        X,
        Incidence(np.asfortranarray(B.index[order]), B.shape[1]),
        y[order],
        weights[order],
        order,
    )


def problem_at(
    tie_loss: TieLoss,
    X: Any,
    B: Incidence,
    y: NDArray[np.int8],
    weights: Floats,
    alpha: float,
    x: Floats,
) -> tuple[_Problem, _Point, Ids]:
    """Return the problem of `minimise`, its point x = (w, t), and its pair numbers."""
    X, B, y, weights, order = _sort_pairs(X, B, y, weights)
    problem = _Problem(tie_loss, X, B, y, weights, alpha, bool((y == 0).any()), None)
    return problem, problem.at(x), order


class _Point(NamedTuple):
    x: Floats  # (p + 1,): w and t
    value: float
    gradient: Floats
    d: Floats  # (m,) first and second derivatives of the weighted losses in d
    dd: Floats
    dt: Floats
    # sums over preferences and over ties of losses, slopes in t, -loss*, and second
    # derivatives in t
    sums: Floats


@dataclass
class _Problem:
    tie_loss: TieLoss
    X: Any  # (n, p), dense or sparse
    B: Incidence
    y: NDArray[np.int8]  # labels, preferences first
    weights: Floats
    alpha: float
    free: bool  # whether t is a variable; otherwise its equation sets its step to 0
    solve: Solve | None  # solver with the factor of an earlier Hessian, if there is one

    def at(self, x: Floats) -> _Point:
        w = x[:-1]
        t = float(x[-1])
        differences = self.B.differences(self.X @ w)
        slopes = np.empty((3, len(differences)))
        sums = np.zeros((2, 4))
        for kind, part in self.blocks():
            d = differences[part]
            weights = self.weights[part]
            loss = self.tie_loss.loss(d, t, self.y[part])
            conjugate = loss.value - d * loss.d
            if self.free:
                conjugate = conjugate - t * loss.t
            for row, slope in enumerate((loss.d, loss.dd, loss.dt)):
                slopes[row, part] = weights * slope
            for column, values in enumerate((loss.value, loss.t, conjugate, loss.tt)):
                sums[kind, column] += weights @ values
        if not self.free:
            slopes[2] = 0.0
            sums[:, 1] = 0.0
            sums[:, 3] = 1.0
        value, of_t = sums[:, :2].sum(axis=0)
        value += self.alpha / 2 * (w @ w)
        gradient = self.stack(slopes[0], w, of_t)
        return _Point(x, float(value), gradient, *slopes, sums=sums)

    def blocks(self) -> Iterator[tuple[int, slice]]:
        """Yield blocks of pairs: their kind (preference or tie) and their rows."""
        preferences = int(np.count_nonzero(self.y))
        for kind, (start, end) in enumerate(
            ((0, preferences), (preferences, len(self.y)))
        ):
            for row in range(start, end, _BLOCK):
                yield kind, slice(row, min(end, row + _BLOCK))

    def stack(self, v: Floats, w: Floats, of_t: float) -> Floats:
        """Return the vector of X'B'v + alpha w and the entry of t."""
        return np.append(self.X.T @ self.B.adjoint(v) + self.alpha * w, of_t)

    def gap(self, point: _Point) -> float:
        """Return the distance from the dual bound of `minimise`, relative."""
        pulls = np.abs(point.sums[:, 1]) + _TINY
        short = pulls.min() / pulls
        pull = self.X.T @ self.B.adjoint(point.d * np.where(self.y, *short))
        bound = float(short @ point.sums[:, 2] - pull @ pull / (2 * self.alpha))
        return abs(point.value - bound) / max(point.value, _TINY)

    def step(self, point: _Point) -> Floats:
        """Return Newton's step, shortened if t would leave its domain."""
        diagonal = self.diagonal(point)
        p = len(diagonal)

        def divide(v: Floats) -> Floats:
            return v / diagonal

        solve = self.solve or divide
        most = _CG_STEPS_WITHOUT_HESSIAN
        if p <= DENSE:
            most = _CG_STEPS + p // 20
        step, done = self.solved(point, solve, most)
        if p <= DENSE and not done:  # compute a new factor
            self.solve = _factored(self.hessian(point))
            step, _ = self.solved(point, self.solve, _CG_STEPS)
        if step[-1] < 0:
            step *= min(1.0, 0.9 * (self.tie_loss.least - point.x[-1]) / step[-1])
        return step

    def solved(self, point: _Point, solve: Solve, most: int) -> tuple[Floats, bool]:
        """Return Newton's step, and whether `most` iterations were enough.

        The tolerance decreases near the minimum.
        """

        def enough(x: Floats, residual: Floats, size: float, first: float) -> bool:
            return size <= first * min(0.01, math.sqrt(first / point.value))

        step = np.zeros_like(point.gradient)
        done = conjugate_gradients(
            lambda v: self.times(point, v), solve, step, -point.gradient, enough, most
        )
        return step, done

    def times(self, point: _Point, v: Floats) -> Floats:
        """Return the product of the Hessian and a vector."""
        d = self.B.differences(self.X @ v[:-1])
        of_t = point.dt @ d + v[-1] * point.sums[:, 3].sum()
        return self.stack(point.dd * d + v[-1] * point.dt, v[:-1], of_t)

    def diagonal(self, point: _Point) -> Floats:
        """Return the diagonal of the Hessian without products of the items of a pair.

        It is exact for one-hot items.
        """
        n = self.B.shape[1]
        degree = np.bincount(self.B.first, point.dd, n)
        degree = degree + np.bincount(self.B.second, point.dd, n)
        of_w = (self.X * self.X).T @ degree + self.alpha
        return np.append(of_w, point.sums[:, 3].sum())

    def solver(self, point: _Point) -> Solve:
        """Return a function that solves the Hessian's equations.

        It maps rows v (k, p), sparse or dense, to the solutions (k, p + 1) for the
        right-hand sides (v, 0).
        """
        laplacian = self.B.laplacian(point.dd)
        mixed = self.X.T @ self.B.adjoint(point.dt)
        corner = point.sums[:, 3].sum()
        diagonal = self.diagonal(point)[:, None]

        def times(v: Floats) -> Floats:
            w = v[:-1]
            of_w = self.X.T @ (laplacian @ (self.X @ w)) + self.alpha * w
            of_w += np.outer(mixed, v[-1])
            return np.vstack([of_w, mixed @ w + corner * v[-1]])

        def solve(rows: Any) -> Floats:
            if sparse.issparse(rows):
                rows = rows.toarray()
            targets = np.vstack([rows.T, np.zeros(len(rows))])
            return conjugate_gradient_columns(times, diagonal, targets).T

        return solve

    def inverse(self, point: _Point) -> Floats:
        """Return the inverse of the Hessian, for score differences.

        A constant that can be added to w without changing differences does not get a
        large variance.
        """
        system = self.hessian(point)
        p = self.X.shape[1]
        if np.ptp(self.X.sum(axis=1)) == 0:
            system[:p, :p] += np.trace(system[:p, :p]) / p**2
        return _factored(system)(np.eye(p + 1))

    def hessian(self, point: _Point) -> Floats:
        system = self.X.T @ (self.B.laplacian(point.dd) @ self.X)
        if sparse.issparse(system):
            system = system.toarray()
        system[np.diag_indices_from(system)] += self.alpha
        mixed = self.X.T @ self.B.adjoint(point.dt)
        return np.block(
            [[system, mixed[:, None]], [mixed[None], point.sums[:, 3].sum()]]
        )


def _factored(system: Floats) -> Solve:
    """Return a solver of a positive definite system, scaled to a unit diagonal."""
    scale = 1 / np.sqrt(np.diag(system))
    scaled = system * scale * scale[:, None]
    # keeps the matrix positive definite despite rounding errors
    scaled[np.diag_indices_from(scaled)] += 1e-14 * (10 + len(scaled))
    factor = linalg.cho_factor(scaled, overwrite_a=True)
    return lambda v: (scale * linalg.cho_solve(factor, (scale * v.T).T).T).T
