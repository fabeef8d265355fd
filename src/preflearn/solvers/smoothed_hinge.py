"""Sums of hinge losses of many pairs, by Newton's method on smoothed hinges.

The smoothing is reduced until few pairs are near the margin.

With the scores f = X w and z_k = f_first - f_second for pair k, the objective is 1/2
w·w + sum_k cost_k (1 - z_k)_+. A hinge is smoothed over a width e around the margin::

    0 for z >= 1 + e,    (1 + e - z)² / 4e for |1 - z| < e,    1 - z for z <= 1 - e,

The smoothed hinge exceeds the hinge by at most e/4, and its slopes are a feasible point
of the dual. Slopes and curvatures are needed only as sums over the pairs of each item,
so pairs can be counted instead of listed (`preflearn.svm.counted_pairs`), as for the
squared hinges of [Lee2014]_.

References
----------
.. [Lee2014] C.-P. Lee, C.-J. Lin, "Large-scale linear RankSVM", Neural Computation 26,
   2014.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from preflearn.core.validation import Floats, Ids
from preflearn.pairs import Incidence
from preflearn.solvers.newton import conjugate_gradients, newton

_NARROWING = 4.0  # factor by which the width decreases after each minimum
_MIN_WIDTH = 1e-7
_MAX_STEPS = 30  # steps of Newton's method per width
_MAX_CG_STEPS = 500
# accuracy of a minimum, relative to the increase of the objective by smoothing
_ACCURACY = 0.1


class SmoothedLoss(NamedTuple):
    """The sum of smoothed hinges at some scores of n items, and its derivatives."""

    value: float
    gradient: Floats  # (n,)
    curvature: Floats  # (n,) diagonal of the Hessian
    times: Callable[[Floats], Floats]  # product with the Hessian, (n,) to (n,)
    near: int  # number of pairs with |1 - z| < width
    excess: float  # bound on the increase by smoothing


class SplitPairs(NamedTuple):
    """The pairs near the margin at some scores, and sums over pairs inside it."""

    index: Ids  # (k, 2) pairs with |1 - z| < width, the better item first
    cost: Floats  # (k,)
    pull: Floats  # (n,) sum of cost (e_first - e_second) over pairs with z <= 1 - width
    total: float  # sum of the costs of these pairs


class HingeLosses(Protocol):
    """Interface of hinges of pairs as functions of the scores of n items."""

    @property
    def costs(self) -> Floats: ...
    def loss(self, f: Floats) -> float: ...
    def smoothed(self, f: Floats, width: float) -> SmoothedLoss: ...
    def split(self, f: Floats, width: float) -> SplitPairs: ...


@dataclass
class ListedPairs:
    """Hinges of listed pairs, better item first."""

    B: Incidence  # (m, n)
    cost: Floats  # (m,)

    @property
    def costs(self) -> Floats:
        """Return the costs of pairs, in any order."""
        return self.cost

    def loss(self, f: Floats) -> float:
        """Return the sum of hinges."""
        return float(self.cost @ np.maximum(0.0, 1 - self.B.differences(f)))

    def smoothed(self, f: Floats, width: float) -> SmoothedLoss:
        """Return the sum of smoothed hinges and its derivatives."""
        room = 1 - self.B.differences(f)
        slope = np.clip((room + width) / (2 * width), 0.0, 1.0)
        # (1 + e - z)² / 4e = e slope² near the margin, and 1 - z inside it
        value = np.where(room < width, width * slope**2, room)
        near = np.flatnonzero(np.abs(room) < width)
        weights = self.cost[near] / (2 * width)
        B = self.B[near]
        n = len(f)
        diagonal: Floats = np.bincount(B.first, weights, n).astype(np.float64)
        diagonal += np.bincount(B.second, weights, n)
        return SmoothedLoss(
            float(self.cost @ value),
            -self.B.adjoint(self.cost * slope),
            diagonal,
            lambda v: B.adjoint(weights * B.differences(v)),
            len(near),
            width / 4 * float(self.cost[near].sum()),
        )

    def split(self, f: Floats, width: float) -> SplitPairs:
        """Return the pairs near the margin, and sums over the pairs inside it."""
        near, beyond = self.parts(f, width)
        outside = np.where(beyond, self.cost, 0.0)
        return SplitPairs(
            self.B.index[near],
            self.cost[near],
            self.B.adjoint(outside),
            float(outside.sum()),
        )

    def parts(self, f: Floats, width: float) -> tuple[Any, Any]:
        """Return masks of the pairs near the margin and inside it, shape (m,)."""
        room = 1 - self.B.differences(f)
        return np.abs(room) < width, room >= width


class Approach(NamedTuple):
    """A point near the minimum, and the smoothing width for which it is optimal."""

    w: Floats
    width: float


class _Point(NamedTuple):
    x: Floats
    value: float
    gradient: Floats
    loss: SmoothedLoss


@dataclass
class _Problem:
    """The objective 1/2 w·w plus smoothed hinges, for `newton`."""

    losses: HingeLosses
    X: Any  # (n, p), dense or sparse
    squares: Any  # X * X
    width: float

    def at(self, x: Floats) -> _Point:
        loss = self.losses.smoothed(self.X @ x, self.width)
        value = float(x @ x) / 2 + loss.value
        return _Point(x, value, x + self.X.T @ loss.gradient, loss)

    def gap(self, point: _Point) -> float:
        """Return the distance from the dual value of the slopes, relative.

        With h the sum of smoothed hinges, the gap of 1/2 w·w + h(w) at the dual point
        h'(w) is 1/2 |w + h'(w)|².
        """
        return float(point.gradient @ point.gradient) / (2 * point.value)

    def step(self, point: _Point) -> Floats:
        """Return Newton's step, by conjugate gradients."""
        diagonal = 1 + self.squares.T @ point.loss.curvature

        def times(v: Floats) -> Floats:
            return v + self.X.T @ point.loss.times(self.X @ v)

        def enough(x: Floats, residual: Floats, size: float, first: float) -> bool:
            return size <= 1e-4 * first

        step = np.zeros_like(point.x)
        residual = -point.gradient
        conjugate_gradients(
            times, lambda v: v / diagonal, step, residual, enough, _MAX_CG_STEPS
        )
        return step


def approach_minimum(losses: HingeLosses, X: Any, most: int) -> Approach:
    """Minimize 1/2 w·w plus smoothed hinges with decreasing width.

    The iteration ends if at most `most` pairs are near the margin.
    """
    w = np.zeros(X.shape[1])
    width = _NARROWING
    squares = X * X
    near = most + 1
    while near > most and width > _MIN_WIDTH:
        width /= _NARROWING
        problem = _Problem(losses, X, squares, width)
        point = problem.at(w)
        tol = _ACCURACY * point.loss.excess / point.value
        point = newton(problem, w, max(tol, 1e-15), _MAX_STEPS).point
        w = point.x
        near = point.loss.near
    return Approach(w, width)
