"""Mehrotra's interior-point method, and the sums of hinge losses that it minimises.

`central_path` takes Newton steps from a function, which knows the problem and solves
its equations. For hinges each step solves one system with as many unknowns as their
matrix has columns, and uses this matrix only by its products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from scipy import linalg

from preflearn.core.validation import Floats

MOST_STEPS = 200
_STEP_FRACTION = 0.995  # of the longest step that keeps all variables positive
_BOUND_RATIO = 1e-3  # of a dual weight to its scale times its slack, to count as 0
# steps without progress after which rounding has taken over, above and below a gap
_MAX_STALLED = 30
_MAX_STALLED_NEAR = 5
_NEAR_GAP = 1e-6


class Interior(NamedTuple):
    """A point with its slacks and multipliers, both > 0; or a step between two points."""

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
        """The longest step, at most 1, with nonnegative slacks and multipliers."""
        slack = float(np.max(-step.slack / self.slack))
        dual = float(np.max(-step.dual / self.dual))
        return 1.0 / max(1.0, slack, dual)

    def gap(self) -> float:
        """The sum of complementary products: the duality gap, where all equations hold."""
        return float(self.slack @ self.dual)


# towards slack * dual + target, from Newton's equations at one point
Step = Callable[[Floats], Interior]


def central_path(
    start: Interior, newton: Callable[[Interior], Step | None]
) -> Iterator[Interior]:
    """Yield the start and points that approach an optimum, by Mehrotra's predictor and
    corrector.

    Parameters
    ----------
    start : Interior
    newton : callable
        Newton's equations at a point, factored: its steps, or None if rounding errors
        are too large, which ends the path. It has at most `MOST_STEPS` steps; callers
        stop earlier, usually after some fifteen.
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
    """A matrix A by its products A u, A'v, and A' diag(weights) A, a new array."""

    def times(self, u: Floats) -> Floats: ...
    def adjoint(self, v: Floats) -> Floats: ...
    def gram(self, weights: Floats) -> Floats: ...


class Hinges(NamedTuple):
    """Terms cost_i max(0, 1 - a_i·u - label_i beta) of an objective, with a_i the rows
    of A."""

    A: Operator
    cost: Floats  # positive
    label: Floats  # +1 or -1; all 0 without beta

    def margins(self, u: Floats, bias: float) -> Floats:
        return self.A.times(u) + self.label * bias


class Optimum(NamedTuple):
    """Primal and dual optimum of 1/2 u·u + sum of hinges."""

    u: Floats
    bias: float
    dual: Floats  # one weight per row, in [0, cost]
    # relative duality gap of A' dual, with the violation of the dual's equation
    gap: float
    primal_gap: float  # that of u, which rounding errors affect later


# near the optimum, when rounding has taken over
@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def minimise(hinges: Hinges, tol: float) -> Optimum:
    """Minimise 1/2 u·u + sum of hinges over u, and over beta if there are labels.

    Mehrotra's predictor-corrector method for eq. 15 of [Venuto2017]_ (eq. 3 without
    beta), until the relative duality gap is at most `tol` or rounding allows no
    progress. The result says which gap it has.

    Parameters
    ----------
    hinges : Hinges
    tol : float
        Relative duality gap to stop at.

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
    """Newton's equations at a point, reduced to (u, beta) and factored; None if
    indefinite.

    Slacks are s and xi of the constraints margin + xi - 1 = s and xi >= 0, and the
    multipliers v and w.
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
    """A point with the dual weights that tend to a bound put exactly on it."""
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
