"""An interior-point method for support vector machines on differences of items.

The number of unknowns is the rank r of the item Gram matrix, not the number m of pairs: each step solves
one r x r system, and no m x m matrix is ever formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

__all__ = ["Differences", "HingeRows", "Solution", "solve"]

Floats = NDArray[np.float64]

_MAX_STEPS = 200
_BLOCK = 1 << 14  # rows of a temporary copy
_TO_THE_BOUNDARY = 0.995  # share of the longest step that keeps all variables positive
_AT_BOUND = 1e-3  # a dual weight, in units of its scale, this much below its slack is at its bound
_STALLED = 5  # steps without progress, in which rounding has taken over


class Differences:
    """The linear map u -> B L u from features to differences of scores, B the incidence matrix.

    Parameters
    ----------
    features : ndarray of shape (n, r)
        L: one row an item.
    index : ndarray of shape (m, 2)
        First and second item of each pair.
    """

    def __init__(self, features: Floats, index: NDArray) -> None:
        self.first, self.second = index.T
        self.direct = len(features) > len(index)  # fewer rows of differences than of items
        if self.direct:
            features = features[self.first] - features[self.second]
            if features.shape[1] > len(index):  # an orthogonal map of the features brings r down to m
                features = linalg.qr(features.T, mode="r", overwrite_a=True)[0][: len(index)].T
        self.features = np.ascontiguousarray(features)

    def values(self, u: Floats) -> Floats:
        """B L u, shape (m,)."""
        scores = self.features @ u
        return scores if self.direct else scores[self.first] - scores[self.second]

    def adjoint(self, weights: Floats) -> Floats:
        """L' B' weights, shape (r,)."""
        if not self.direct:
            n = len(self.features)
            weights = np.bincount(self.first, weights, n) - np.bincount(self.second, weights, n)
        return weights @ self.features

    def gram(self, weights: Floats) -> Floats:
        """L' B' diag(weights) B L, shape (r, r): for items, B' diag(weights) B is a graph Laplacian."""
        if self.direct:
            total = np.zeros((self.features.shape[1],) * 2)
            for start in range(0, len(weights), _BLOCK):
                rows = slice(start, start + _BLOCK)
                block = self.features[rows] * np.sqrt(weights[rows])[:, None]
                total += block.T @ block
            return total
        n = len(self.features)
        off = sparse.coo_array((-weights, (self.first, self.second)), shape=(n, n)).tocsr()
        degree = np.bincount(self.first, weights, n) + np.bincount(self.second, weights, n)
        laplacian = (off + off.T + sparse.diags_array(degree)).tocsr()
        return self.features.T @ (laplacian @ self.features)


@dataclass
class HingeRows:
    """Terms cost_i max(0, 1 - direction_i u·d[pair_i] - label_i beta) of an objective."""

    pair: NDArray[np.int64]
    direction: Floats  # +1 or -1
    cost: Floats  # positive
    label: Floats | None = None  # +1 or -1; None: there is no beta

    def fold(self, values: Floats, n_pairs: int) -> Floats:
        """Add up values of the rows of each pair."""
        return np.bincount(self.pair, values, n_pairs)

    def hinge(self, values: Floats, bias: float) -> Floats:
        """max(0, 1 - margin), from the values u·d of the pairs."""
        return np.maximum(0.0, 1.0 - self.margins(values, bias))

    def margins(self, values: Floats, bias: float) -> Floats:
        """direction u·d + label beta of each row, from the values u·d of the pairs."""
        margins = self.direction * values[self.pair]
        return margins if self.label is None else margins + self.label * bias


class Solution(NamedTuple):
    """Primal and dual optimum of 1/2 u·u + sum of hinge terms."""

    u: Floats
    bias: float
    dual: Floats  # one weight a row, in [0, cost]
    objective: float
    gap: float  # duality gap (with the violation of the dual's equation), relative to the objective


@dataclass
class _State:
    """An interior point: all of v, w = cost - v, s and xi are positive."""

    u: Floats
    bias: float
    v: Floats  # dual of: margin + xi - 1 = s
    w: Floats  # dual of: xi >= 0
    s: Floats
    xi: Floats

    def moved(self, step: _State, length: float) -> _State:
        return _State(
            self.u + length * step.u,
            self.bias + length * step.bias,
            *(getattr(self, k) + length * getattr(step, k) for k in ("v", "w", "s", "xi")),
        )

    def longest(self, step: _State) -> float:
        """The longest step, at most 1, that keeps v, w, s, xi from becoming negative."""
        ratios = [
            np.min(-getattr(self, k)[shrinks] / getattr(step, k)[shrinks], initial=np.inf)
            for k in ("v", "w", "s", "xi")
            for shrinks in [getattr(step, k) < 0]
        ]
        return float(min(1.0, *ratios))

    def complementarity(self) -> float:
        return float(self.s @ self.v + self.xi @ self.w) / (2 * len(self.v))


def solve(differences: Differences, rows: HingeRows, tol: float) -> Solution:
    """Minimise 1/2 u·u + sum of hinge terms over u, and over beta if the rows have labels.

    Mehrotra's predictor-corrector method for eq. 15 of [Venuto2017]_ (eq. 3 without beta), until the
    relative duality gap is at most `tol` or rounding allows no progress. The result says which gap it has.

    Parameters
    ----------
    differences : Differences
    rows : HingeRows
    tol : float
        Relative duality gap to stop at.

    Returns
    -------
    Solution
    """
    state = _start(differences, rows)
    best, least, since = _finished(differences, rows, state), np.inf, 0
    for _ in range(_MAX_STEPS):
        newton = _factored(differences, rows, state)
        if newton is None:
            break
        mu = state.complementarity()
        affine = newton.step(0.0)
        after = state.moved(affine, state.longest(affine)).complementarity()
        step = newton.step(mu * (after / mu) ** 3, affine)
        state = state.moved(step, _TO_THE_BOUNDARY * state.longest(step))
        solution = _finished(differences, rows, state)
        progress = mu < 0.9 * least or solution.gap < 0.9 * best.gap
        since, least = 0 if progress else since + 1, min(mu, least)
        best = min(best, solution, key=lambda found: found.gap)
        if best.gap <= tol or since > _STALLED:
            break
    return best


def _start(differences: Differences, rows: HingeRows) -> _State:
    half = rows.cost / 2
    one = np.ones(len(half))
    return _State(np.zeros(differences.features.shape[1]), 0.0, half, half.copy(), one, 2 * one)


class _Newton(NamedTuple):
    """Newton's equations at a state, reduced to (u, beta) and factored."""

    differences: Differences
    rows: HingeRows
    state: _State
    weights: Floats  # of the rows in the reduced system
    factor: tuple
    border: Floats  # the column of beta
    solved_border: Floats
    gaps: tuple[Floats, float, Floats]  # residuals of stationarity in u and beta, and of feasibility

    def step(self, target: float, affine: _State | None = None) -> _State:
        """The step towards s v = xi w = target, corrected for the second-order terms of `affine`."""
        rows, state, m = self.rows, self.state, len(self.differences.first)
        of_s, of_xi = target - state.s * state.v, target - state.xi * state.w
        if affine is not None:
            of_s, of_xi = of_s - affine.s * affine.v, of_xi - affine.xi * affine.w
        of_u, of_bias, feasibility = self.gaps
        right = feasibility - of_xi / state.w + of_s / state.v
        weighted = self.weights * right
        u = linalg.cho_solve(
            self.factor, of_u + self.differences.adjoint(rows.fold(rows.direction * weighted, m))
        )
        bias = 0.0
        if rows.label is not None:
            bias = (rows.label @ weighted - of_bias - self.border @ u) / (
                self.weights.sum() - self.border @ self.solved_border
            )
            u = u - bias * self.solved_border
        v = self.weights * (right - rows.margins(self.differences.values(u), bias))
        return _State(u, bias, v, -v, (of_s - state.s * v) / state.v, (of_xi + state.xi * v) / state.w)


def _factored(differences: Differences, rows: HingeRows, state: _State) -> _Newton | None:
    """Factor Newton's equations; None where rounding makes them indefinite."""
    m = len(differences.first)
    weights = 1.0 / (state.xi / state.w + state.s / state.v)
    system = differences.gram(rows.fold(weights, m))
    system[np.diag_indices_from(system)] += 1.0
    try:
        factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    labels = np.zeros(len(weights)) if rows.label is None else rows.label
    border = differences.adjoint(rows.fold(rows.direction * labels * weights, m))
    solved = linalg.cho_solve(factor, border)
    if rows.label is not None and not weights.sum() > border @ solved:
        return None
    of_u = differences.adjoint(rows.fold(rows.direction * state.v, m)) - state.u
    feasibility = state.s - rows.margins(differences.values(state.u), state.bias) - state.xi + 1
    gaps = of_u, -float(labels @ state.v), feasibility
    return _Newton(differences, rows, state, weights, factor, border, solved, gaps)


def _finished(differences: Differences, rows: HingeRows, state: _State) -> Solution:
    """A state with the best beta for its u, with dual weights put exactly at bounds that they tend to."""
    largest = state.v.max()  # far below the cost where the data are separable
    dual = np.where(state.v < _AT_BOUND * largest * state.s, 0.0, state.v)
    dual = np.where((state.w < _AT_BOUND * rows.cost * state.xi) & (dual > 0), rows.cost, dual)
    values = differences.values(state.u)
    bias = 0.0 if rows.label is None else _best_bias(rows, values)
    objective = float(state.u @ state.u) / 2 + float(rows.cost @ rows.hinge(values, bias))
    combined = differences.adjoint(rows.fold(rows.direction * dual, len(differences.first)))
    gap = abs(objective - float(dual.sum()) + float(combined @ combined) / 2)
    if rows.label is not None:
        gap += (1 + abs(bias)) * abs(float(rows.label @ dual))
    return Solution(state.u, bias, dual, objective, gap / objective)


def _best_bias(rows: HingeRows, values: Floats) -> float:
    """The beta of least loss for fixed u, by complementary slackness: the middle of all minimisers.

    The loss is convex and piecewise linear in beta; its slope rises by cost_i at the point where row i
    has margin 1, from minus the cost of all rows with label +1.
    """
    points = rows.label * (1.0 - rows.direction * values[rows.pair])
    order = np.argsort(points)
    slope = np.cumsum(rows.cost[order]) - rows.cost[rows.label > 0].sum()
    zero = 1e-12 * rows.cost.sum()
    low, high = np.searchsorted(slope, [-zero, zero])
    return float((points[order[low]] + points[order[min(high, len(order) - 1)]]) / 2)
