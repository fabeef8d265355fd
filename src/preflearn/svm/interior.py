"""An interior-point method for sums of hinge losses of linear functions.

The solver multiplies by the matrix A of the hinges and never looks inside: each step solves one system of
as many unknowns as A has columns, however many rows there are.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy import linalg

from preflearn.checks import Floats

_MAX_STEPS = 200
_TO_THE_BOUNDARY = 0.995  # share of the longest step that keeps all variables positive
_AT_BOUND = 1e-3  # a dual weight, in units of its scale, this much below its slack is at its bound
_STALLED = 5  # steps without progress, in which rounding has taken over


class Operator(Protocol):
    """A matrix A by its products."""

    def times(self, u: Floats) -> Floats:
        """A u."""
        ...

    def adjoint(self, v: Floats) -> Floats:
        """A'v."""
        ...

    def gram(self, weights: Floats) -> Floats:
        """A' diag(weights) A, in an array of its own."""
        ...


class Hinges(NamedTuple):
    """Terms cost_i max(0, 1 - a_i·u - label_i beta) of an objective, with a_i the rows of A."""

    A: Operator
    cost: Floats  # positive
    label: Floats  # +1 or -1; all 0 where there is no beta

    def margins(self, u: Floats, bias: float) -> Floats:
        return self.A.times(u) + self.label * bias


class Solution(NamedTuple):
    """Primal and dual optimum of 1/2 u·u + sum of hinges."""

    u: Floats
    bias: float
    dual: Floats  # one weight a row, in [0, cost]
    gap: (
        float  # duality gap (with the violation of the dual's equation) of A' dual, relative to the objective
    )
    own_gap: float  # that of u, which rounding spoils later


class _State(NamedTuple):
    """An interior point, or a step from one to the next."""

    u: Floats
    bias: float
    positive: Floats  # (4, rows): v, dual of margin + xi - 1 = s; w = cost - v, dual of xi >= 0; s; xi

    def moved(self, step: _State, length: float) -> _State:
        return _State(
            self.u + length * step.u,
            self.bias + length * step.bias,
            self.positive + length * step.positive,
        )

    def longest(self, step: _State) -> float:
        """The longest step, at most 1, that keeps v, w, s, xi from becoming negative."""
        return 1.0 / max(1.0, float(np.max(-step.positive / self.positive)))

    def complementarity(self) -> float:
        v, w, s, xi = self.positive
        return float(s @ v + xi @ w) / (2 * len(v))


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # where rounding has taken over
def minimise(hinges: Hinges, tol: float) -> Solution:
    """Minimise 1/2 u·u + sum of hinges over u, and over beta if there are labels.

    Mehrotra's predictor-corrector method for eq. 15 of [Venuto2017]_ (eq. 3 without beta), until the
    relative duality gap is at most `tol` or rounding allows no progress. The result says which gap it has.

    Parameters
    ----------
    hinges : Hinges
    tol : float
        Relative duality gap to stop at.

    Returns
    -------
    Solution
    """
    half, one = hinges.cost / 2, np.ones(len(hinges.cost))
    state = _State(0.0 * hinges.A.adjoint(one), 0.0, np.stack([half, half, one, 2 * one]))
    best = own = _finished(hinges, state)
    least, since = np.inf, 0
    for _ in range(_MAX_STEPS):
        newton = _factored(hinges, state)
        if newton is None:
            break
        mu = state.complementarity()
        affine = newton.step(0.0)
        after = state.moved(affine, state.longest(affine)).complementarity()
        step = newton.step(mu * (after / mu) ** 3, affine.positive)
        state = state.moved(step, _TO_THE_BOUNDARY * state.longest(step))
        solution = _finished(hinges, state)
        progress = mu < 0.9 * least or solution.gap < 0.9 * best.gap
        since, least = 0 if progress else since + 1, min(mu, least)
        best = min(best, solution, key=lambda found: found.gap)
        own = min(own, solution, key=lambda found: found.own_gap)
        if best.gap <= tol or since > _STALLED:
            break
    return best._replace(u=own.u, bias=own.bias, own_gap=own.own_gap)


class _Newton(NamedTuple):
    """Newton's equations at a state, reduced to (u, beta) and factored."""

    hinges: Hinges
    state: _State
    weights: Floats  # of the rows in the reduced system
    factor: tuple
    border: Floats  # the column of beta
    solved_border: Floats
    gaps: tuple[Floats, float, Floats]  # residuals of stationarity in u and beta, and of feasibility

    def step(self, target: float, affine: Floats | None = None) -> _State:
        """The step towards s v = xi w = target, corrected for the second-order terms of `affine`."""
        (A, _, label), (v, w, s, xi) = self.hinges, self.state.positive
        of_s, of_xi = target - s * v, target - xi * w
        if affine is not None:
            dv, dw, ds, dxi = affine
            of_s, of_xi = of_s - ds * dv, of_xi - dxi * dw
        of_u, of_bias, feasibility = self.gaps
        right = feasibility - of_xi / w + of_s / v
        weighted = self.weights * right
        u = linalg.cho_solve(self.factor, of_u + A.adjoint(weighted))
        bias = float(label @ weighted - of_bias - self.border @ u)  # 0 without labels
        bias /= float(self.weights.sum() - self.border @ self.solved_border)
        u = u - bias * self.solved_border
        dv = self.weights * (right - self.hinges.margins(u, bias))
        return _State(u, bias, np.stack([dv, -dv, (of_s - s * dv) / v, (of_xi + xi * dv) / w]))


def _factored(hinges: Hinges, state: _State) -> _Newton | None:
    """Factor Newton's equations; None where rounding makes them indefinite."""
    A, label, (v, w, s, xi) = hinges.A, hinges.label, state.positive
    weights = 1.0 / (xi / w + s / v)
    system = A.gram(weights)
    if not np.isfinite(system).all():  # weights that overflow
        return None
    system[np.diag_indices_from(system)] += 1.0
    try:
        factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    border = A.adjoint(label * weights)
    solved = linalg.cho_solve(factor, border)
    if not weights.sum() > border @ solved:
        return None
    feasibility = s - hinges.margins(state.u, state.bias) - xi + 1
    gaps = A.adjoint(v) - state.u, -float(label @ v), feasibility
    return _Newton(hinges, state, weights, factor, border, solved, gaps)


def _finished(hinges: Hinges, state: _State) -> Solution:
    """A state with its dual weights put exactly at bounds that they tend to."""
    A, cost, label = hinges
    v, w, s, xi = state.positive
    dual = np.where(v < _AT_BOUND * v.max() * s, 0.0, v)  # v.max() is far below the cost if separable
    dual = np.where((w < _AT_BOUND * cost * xi) & (dual > 0), cost, dual)
    combined, bias = A.adjoint(dual), state.bias
    lower = float(dual.sum()) - float(combined @ combined) / 2 - (1 + abs(bias)) * abs(float(label @ dual))

    def gap(u: Floats) -> float:
        loss = np.maximum(0.0, 1.0 - hinges.margins(u, bias))
        objective = float(u @ u) / 2 + float(cost @ loss)
        return abs(objective - lower) / objective

    return Solution(state.u, bias, dual, gap(combined), gap(state.u))
