"""Mehrotra's interior-point method, and its use for sums of hinge losses.

`central_path` gets the Newton steps from a function that sets up and solves the
equations of the problem. For hinges each step solves one system, with as many unknowns
as their matrix has columns. The matrix is used only in products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from scipy import linalg

from preflearn.core.validation import Floats

MOST_STEPS = 200
_STEP_FRACTION = 0.995  # fraction of the longest step that keeps all variables positive
_BOUND_RATIO = 1e-3  # a dual weight counts as 0 if its ratio to its scale times its slack is smaller
# steps without progress after which rounding errors dominate, for large and small gaps
_MAX_STALLED = 30
_MAX_STALLED_NEAR = 5
_NEAR_GAP = 1e-6


class Interior(NamedTuple):
    """A point with positive slacks and multipliers, or a step between two points."""

    z: Floats  # (q,)
    slack: Floats  # (k,)
    dual: Floats  # (k,)

    def moved(self, step: Interior, length: float) -> Interior:
        return Interior(
            self.z + length * step.z,
            self.slack + length * step.slack,
            self.dual + length * step.dual,
        )

    def longest(self, step: Interior) -> float:
        """Return the longest step, up to 1, with nonnegative slacks and multipliers."""
        slack = float(np.max(-step.slack / self.slack))
        dual = float(np.max(-step.dual / self.dual))
        return 1.0 / max(1.0, slack, dual)

    def gap(self) -> float:
        """Return the sum of complementary products.

        It is the duality gap if all equations hold.
        """
        return float(self.slack @ self.dual)


# maps a target for the complementary products to the step that Newton's equations give
Step = Callable[[Floats], Interior]


def central_path(
    start: Interior, newton: Callable[[Interior], Step | None]
) -> Iterator[Interior]:
    """Yield the start and points that approach an optimum.

    They are computed by Mehrotra's predictor-corrector method.

    Parameters
    ----------
    start : Interior
    newton : callable
        Function that factors Newton's equations at a point. It returns a function that
        computes steps, or None to end the path, for example if rounding errors are too
        large. There are at most `MOST_STEPS` steps; callers usually stop after about
        fifteen.
    """
    point = start
    for _ in range(MOST_STEPS):
        yield point
        step = newton(point)
        if step is None:
            return
        complementary = point.slack * point.dual
        gap = point.gap()
        affine = step(-complementary)
        after = point.moved(affine, point.longest(affine)).gap()
        target = (after / gap) ** 3 * gap / len(complementary)
        corrector = step(target - complementary - affine.slack * affine.dual)
        point = point.moved(corrector, _STEP_FRACTION * point.longest(corrector))
    yield point


class Operator(Protocol):
    """Interface of a matrix A: products A u, A'v, and A' diag(weights) A.

    The last one is returned as a new array.
    """

    def times(self, u: Floats) -> Floats: ...
    def adjoint(self, v: Floats) -> Floats: ...
    def gram(self, weights: Floats) -> Floats: ...


class Hinges(NamedTuple):
    """Hinges cost_i max(0, 1 - a_i·u - label_i beta), with a_i the rows of A."""

    A: Operator
    cost: Floats  # positive
    label: Floats  # +1 or -1; all 0 without beta

    def margins(self, u: Floats, bias: float) -> Floats:
        return self.A.times(u) + self.label * bias


class Optimum(NamedTuple):
    """Primal and dual optimum of 1/2 u·u + sum of hinges."""

    u: Floats
    bias: float
    dual: Floats  # weights of the rows, in [0, cost]
    # relative duality gap of A' dual, including the violation of the dual's equation
    gap: float
    primal_gap: float  # relative duality gap of u, which rounding errors affect later


# near the optimum, when rounding errors dominate
@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def minimise(hinges: Hinges, tol: float) -> Optimum:
    """Minimize 1/2 u·u + sum of hinges over u, and over beta if there are labels.

    This is Mehrotra's predictor-corrector method for eq. 15 of [Venuto2017]_ (eq. 3
    without beta). It stops if the relative duality gap is at most `tol`, or if rounding
    errors prevent further progress. The result contains the gap.

    Parameters
    ----------
    hinges : Hinges
    tol : float
        Relative duality gap at which to stop.

    Returns
    -------
    Optimum
    """
    cost = hinges.cost
    rows = len(hinges.cost)
    start = 0.0 * hinges.A.adjoint(np.ones(rows))
    slack = np.repeat([1.0, 2.0], rows)
    dual = np.tile(cost / 2, 2)
    path = central_path(
        Interior(np.append(start, 0.0), slack, dual), partial(_newton, hinges)
    )
    best = primal = _with_weights_at_bounds(hinges, next(path))
    lowest = np.inf
    stalled = 0
    for point in path:
        gap = point.gap()
        solution = _with_weights_at_bounds(hinges, point)
        stalled += 1
        if gap < 0.9 * lowest or solution.gap < 0.9 * best.gap:
            stalled = 0
        lowest = min(gap, lowest)
        best = min(best, solution, key=lambda optimum: optimum.gap)
        primal = min(primal, solution, key=lambda optimum: optimum.primal_gap)
        patience = _MAX_STALLED
        if min(best.gap, primal.primal_gap) <= _NEAR_GAP:
            patience = _MAX_STALLED_NEAR
        if best.gap <= tol or stalled > patience:
            break
    return best._replace(u=primal.u, bias=primal.bias, primal_gap=primal.primal_gap)


def _newton(hinges: Hinges, point: Interior) -> Step | None:
    """Factor Newton's equations at a point, reduced to (u, beta).

    The result is None if the system is indefinite.

    The slacks are s and xi of the constraints margin + xi - 1 = s and xi >= 0, and the
    multipliers are v and w.
    """
    A = hinges.A
    label = hinges.label
    u = point.z[:-1]
    bias = float(point.z[-1])
    (s, xi), (v, w) = point.slack.reshape(2, -1), point.dual.reshape(2, -1)
    weights = 1.0 / (xi / w + s / v)
    system = A.gram(weights)
    if not np.isfinite(system).all():  # the weights overflow
        return None
    system[np.diag_indices_from(system)] += 1.0
    try:
        factor = linalg.cho_factor(
            system, lower=True, overwrite_a=True, check_finite=False
        )
    except linalg.LinAlgError:
        return None
    border = A.adjoint(label * weights)
    solved_border = linalg.cho_solve(factor, border)
    bend = float(weights.sum() - border @ solved_border)
    if not bend > 0:
        return None
    of_u = A.adjoint(v) - u
    of_bias = -float(label @ v)
    feasibility = s - hinges.margins(u, bias) - xi + 1

    def step(target: Floats) -> Interior:
        of_s, of_xi = target.reshape(2, -1)
        right = feasibility - of_xi / w + of_s / v
        weighted = weights * right
        du = linalg.cho_solve(factor, of_u + A.adjoint(weighted))
        db = float(label @ weighted - of_bias - border @ du) / bend  # 0 without labels
        du = du - db * solved_border
        dv = weights * (right - hinges.margins(du, db))
        slack = np.concatenate([(of_s - s * dv) / v, (of_xi + xi * dv) / w])
        return Interior(np.append(du, db), slack, np.concatenate([dv, -dv]))

    return step


def _with_weights_at_bounds(hinges: Hinges, point: Interior) -> Optimum:
    """Return the optimum after moving dual weights that tend to a bound exactly to it."""
    A, cost, label = hinges
    u = point.z[:-1]
    bias = float(point.z[-1])
    (s, xi), (v, w) = point.slack.reshape(2, -1), point.dual.reshape(2, -1)
    # relative to v.max(), which is far below the cost if the pairs are separable
    dual = np.where(v < _BOUND_RATIO * v.max() * s, 0.0, v)
    dual = np.where((w < _BOUND_RATIO * cost * xi) & (dual > 0), cost, dual)
    combined = A.adjoint(dual)
    lower = (
        float(dual.sum())
        - float(combined @ combined) / 2
        - (1 + abs(bias)) * abs(float(label @ dual))
    )

    def gap(u: Floats) -> float:
        loss = np.maximum(0.0, 1.0 - hinges.margins(u, bias))
        objective = float(u @ u) / 2 + float(cost @ loss)
        return abs(objective - lower) / objective

    return Optimum(u, bias, dual, gap(combined), gap(u))
