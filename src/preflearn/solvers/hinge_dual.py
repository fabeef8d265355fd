"""The dual of sums of hinge losses, by blocks: small steps find the bounds, exact
equations the rest.

Row i of the hinges has label_i = +1 or -1 and a signed weight s_i between bounds. With
the differences d of the pairs, a_k = sum of sign_i s_i over the rows of pair k, u = sum
a_k d_k and z = B K B'a::

    maximise  sum_i label_i s_i - 1/2 a'B K B'a,    and where there is a beta:  sum_i s_i = 0,

whose slopes h_i = label_i - sign_i z_i are at most beta where s_i can grow, and at
least beta where it can shrink (beta = 0 where there is none). The pairs that violate
this most are a block, whose Gram matrix is small. Steps of two weights each, chosen by
their second-order gain [Fan2005]_, find who is at a bound. Where they are slow, a
Newton step on the weights between their bounds, by the equations of the margin, does
the work of thousands of them. Every step raises the dual.

References
----------
.. [Fan2005] R.-E. Fan, P.-H. Chen, C.-J. Lin, "Working set selection using second order
   information for training support vector machines", Journal of Machine Learning
   Research 6, 2005.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from preflearn.core.compilation import njit, njit_inner
from preflearn.core.gram import DenseGram, Gram
from preflearn.core.validation import Floats, Ids

# pairs of a block, at least and at most
_SMALL = 500
_LARGE = 2000
_LARGEST = 4000
_ALL = 1.1
_SHARE = 0.1  # of the violation of a block that is left to the next one
# of two weights before a Newton step, and one more for each weight between its bounds
_STEPS = 200
_NEWTON = 5  # steps in a block
_ROUNDS = 20  # in which a Newton step puts weights on their bounds
_RIDGE = 1e-13  # share of the trace, for equations of pairs that depend on each other
# share of the moves to which they add up to 0, unless the equations are beyond rounding
_LEVEL = 1e-12
_FRESH = 10  # blocks between two computations of z from scratch
# share of the largest slope that a violation of rounding is
_ROUNDED = 16 * np.finfo(np.float64).eps
_STALLED = 10  # blocks without progress, in which rounding has taken over
# a plain -1 is a type of its own, for which what it is given to is compiled anew
_NOBODY = np.int64(-1)
# at most so many blocks, and one more for each part of so many pairs
_BLOCKS = 30
_PART = 100


class Rows(NamedTuple):
    """Hinges cost_i max(0, label_i (h_i - beta)): one of each pair, then the second
    ones of the last pairs.

    The two copies of a tie have opposite differences: two rows, one difference.
    """

    n_pairs: int
    sign: Floats  # (rows,)
    label: Floats  # (rows,)
    low: Floats  # (rows,) bounds of s, from 0 to label · cost
    high: Floats
    biased: bool

    @classmethod
    def of(cls, y: NDArray, cost: Floats, biased: bool) -> Rows:
        """The rows of eq.

        8 for labels that are sorted, ties last; without beta, ties are preferences too.
        """
        ties = np.count_nonzero(y == 0)
        direction = np.append(np.where(y == 0, -1.0, y), np.ones(ties))
        label = np.append(
            np.where((y == 0) & biased, -1.0, 1.0),
            np.full(ties, -1.0 if biased else 1.0),
        )
        bound = label * np.append(cost, cost[len(y) - ties :])
        return cls(
            len(y),
            label * direction,
            label,
            np.minimum(bound, 0),
            np.maximum(bound, 0),
            biased,
        )

    @property
    def cost(self) -> Floats:
        return self.high - self.low

    def expanded(self, values: NDArray) -> NDArray:
        """Values of the pairs, for each row."""
        return np.append(values, values[2 * self.n_pairs - len(self.sign) :])

    def summed(self, values: Floats) -> Floats:
        """Values of the rows, added up for each pair."""
        total = values[: self.n_pairs].copy()
        total[2 * self.n_pairs - len(values) :] += values[self.n_pairs :]
        return total

    def slopes(self, z: Floats) -> Floats:
        return self.label - self.sign * self.expanded(z)

    def of_block(self, pairs: Ids) -> tuple[Ids, Rows]:
        """The rows of some pairs in order, and their places among all rows."""
        n_ties = len(self.sign) - self.n_pairs
        rows = np.append(pairs, pairs[pairs >= self.n_pairs - n_ties] + n_ties)
        sign = self.sign[rows]
        label = self.label[rows]
        low = self.low[rows]
        high = self.high[rows]
        return rows, Rows(len(pairs), sign, label, low, high, self.biased)

    def feasible(self, s: Floats) -> Floats:
        """The weights, with the heavier side scaled down until their sum is 0."""
        if not self.biased:
            return s
        up = s[s > 0].sum()
        down = -s[s < 0].sum()
        return s * np.where(
            s > 0,
            min(1.0, down / up if up else 1.0),
            min(1.0, up / down if down else 1.0),
        )


class Certificate(NamedTuple):
    """The value of the hinges at u = sum a_k d_k, and how far from the optimum it can
    be at most."""

    objective: float
    gap: float  # relative to the objective
    bias: float


def certificate(
    rows: Rows, z: Floats, squared: float, dual: float, noise: float
) -> Certificate:
    """Of a function: from its differences z of scores and u·u, with the beta of least
    loss, and a dual value.

    Of several such beta, the middle. The rounding of z, by about `noise`, counts as
    part of the gap.
    """
    h = rows.slopes(z)
    bias = best_bias(rows, h) if rows.biased else 0.0
    loss = rows.label * (h - bias)
    objective = squared / 2 + float(rows.cost @ np.maximum(0.0, loss))
    doubt = noise * float(np.linalg.norm(rows.cost[loss > -noise]))
    return Certificate(objective, (abs(objective - dual) + doubt) / objective, bias)


def best_bias(rows: Rows, h: Floats) -> float:
    """The loss is convex and piecewise linear in beta: its slope rises by cost_i at
    h_i."""
    order = np.argsort(h)
    slope = np.cumsum(rows.cost[order]) - rows.high.sum()
    zero = 1e-12 * rows.cost.sum()
    low, high = np.searchsorted(slope, [-zero, zero])
    return float((h[order[low]] + h[order[min(high, len(h) - 1)]]) / 2)


def maximise(
    gram: Gram,
    rows: Rows,
    s: Floats,
    tol: float,
    patience: float = np.inf,
    most: int | None = None,
) -> tuple[Floats, float]:
    """The weights s of the optimum from feasible ones, or the best ones that were met,
    and their gap.

    Parameters
    ----------
    gram : Gram
        B K B' of the pairs.
    rows : Rows
    s : ndarray of shape (rows,)
        Where to start, such as zeros.
    tol : float
        Duality gap, relative to the objective, to stop at; rounding may stop before.
    patience : float
        The systems that Newton steps solve, each counted by its unknowns cubed, may add
        up to this.
    most : int, optional
        Blocks to stop after; None: several times what is needed where there is
        progress.
    """
    s, best, least, bound, primal = s.copy(), s.copy(), np.inf, np.inf, np.inf
    z = gram.times(rows.summed(rows.sign * s))
    pairs = np.zeros(0, dtype=np.int64)
    Q = np.zeros((0, 0))
    since = 0
    again = 0
    work = 0.0
    edge = np.inf if rows.biased else 0.0
    for count in range(1, (most or _BLOCKS + rows.n_pairs // _PART) + 1):
        h = rows.slopes(z)
        up = s < rows.high
        down = s > rows.low
        top = np.max(h[up], initial=-edge)
        bottom = np.min(h[down], initial=edge)
        bias = (top + bottom) / 2 if rows.biased else 0.0
        squared = float(rows.summed(rows.sign * s) @ z)
        value = squared / 2 + float(
            rows.cost @ np.maximum(0.0, rows.label * (h - bias))
        )
        dual = float(rows.label @ s) - squared / 2
        if value - dual < least * value:
            best = s.copy()
            least = (value - dual) / value
        primal = min(primal, value)
        since = since + 1
        if primal - dual < 0.99 * bound:
            bound = primal - dual
            since = 0
        rounded = _ROUNDED * float(np.abs(h).max())
        if (
            least <= tol
            or top - bottom <= rounded
            or since >= _STALLED
            or work > patience
        ):
            break
        chosen = _violators(rows, h - bias, up, down)
        again = again + 1 if np.array_equal(chosen, pairs) else 0
        if not again:
            pairs = chosen
            Q = gram.block(chosen, chosen)
        places, part = rows.of_block(pairs)
        weights = s[places]
        # a block that comes again is solved better
        target = _SHARE ** (1 + again) * float(top - bottom)
        work += _solve_block(Q, part, weights, h[places], max(rounded, target))
        change = np.zeros(len(s))
        change[places] = weights - s[places]
        s[places] = weights
        if count % _FRESH:
            z = z + gram.times(rows.summed(rows.sign * change))
        else:
            z = gram.times(rows.summed(rows.sign * s))
    return rows.feasible(best), least


def _violators(rows: Rows, h: Floats, up: NDArray, down: NDArray) -> Ids:
    """The pairs of the next block: those between their bounds, and at least as many
    that violate most."""
    n_ties = len(h) - rows.n_pairs
    wrong = np.maximum(np.where(up, h, 0.0), np.where(down, -h, 0.0))
    free = (up & down).astype(np.float64)
    for values in (wrong, free):
        tied = values[rows.n_pairs - n_ties : rows.n_pairs]
        np.maximum(tied, values[rows.n_pairs :], out=tied)
    wrong = wrong[: rows.n_pairs]
    free = free[: rows.n_pairs]
    size = int(
        np.clip(2 * free.sum(), _SMALL, max(_LARGE, min(_ALL * free.sum(), _LARGEST)))
    )
    if size >= rows.n_pairs:
        return np.arange(rows.n_pairs)
    most = np.argpartition(wrong, -(size // 2))[-(size // 2) :]
    wanted = wrong + np.where(free > 0, wrong.max(), 0.0)
    wanted[most] = 3 * wrong.max()
    return np.sort(np.argpartition(wanted, -size)[-size:])


def _solve_block(Q: Floats, rows: Rows, s: Floats, h: Floats, target: float) -> float:
    """Change s and h until they violate their conditions by less than the target.

    It may be too far for that. Returns the work of the Newton steps.
    """
    work = 0.0
    for _ in range(_NEWTON):
        steps = _STEPS + np.count_nonzero((s > rows.low) & (s < rows.high))
        if (
            _descend(
                Q, rows.sign, rows.low, rows.high, s, h, target, steps, rows.biased
            )
            < steps
        ):
            break
        work += _newton(Q, rows, s, h)
    return work


def _newton(Q: Floats, rows: Rows, s: Floats, h: Floats) -> float:
    """Move the weights between their bounds towards the solution of their equations, in
    place.

    Those that would leave their bounds are put there, and the others solved again. Then
    the way to this point is followed as far as the dual grows and the bounds allow.
    Returns the cubes of the unknowns of the systems that were solved, added up.
    """
    free = np.flatnonzero((s > rows.low) & (s < rows.high))
    work = 0.0
    if not len(free):
        return work
    place = rows.expanded(np.arange(rows.n_pairs))[free]
    A = DenseGram(Q).block(place, place) * np.multiply.outer(
        rows.sign[free], rows.sign[free]
    )
    A[np.diag_indices_from(A)] += _RIDGE * np.trace(A)
    low = rows.low[free] - s[free]
    high = rows.high[free] - s[free]
    slope = h[free]
    # a level changes nothing, but for rounding
    slope = slope - slope.mean() * rows.biased
    move = np.zeros(len(free))
    inner = np.ones(len(free), dtype=np.bool_)
    for count in range(_ROUNDS):
        work += float(np.count_nonzero(inner)) ** 3
        try:
            factor = linalg.cho_factor(
                A[np.ix_(inner, inner)], lower=True, check_finite=False
            )
        except linalg.LinAlgError:
            return work
        right = slope[inner] - A[np.ix_(inner, ~inner)] @ move[~inner]
        right = np.column_stack([right, np.ones(len(right))])
        x, level = linalg.cho_solve(factor, right, check_finite=False).T
        for _ in range(2 * rows.biased):  # again, for what rounding left
            x = x - level * ((x.sum() + move[~inner].sum()) / level.sum())
        move[inner] = x
        out = inner & ((move < low) | (move > high))
        if not out.any() or out[inner].all() or count == _ROUNDS - 1:
            break
        inner = inner & ~out
        move[out] = np.clip(move, low, high)[out]
    curvature = float(move @ (A @ move))
    rise = float(slope @ move)
    if rise <= 0 or (rows.biased and abs(move.sum()) > _LEVEL * np.abs(move).sum()):
        return work
    ends = np.where(move > 0, high, low)
    ahead = move != 0
    with np.errstate(over="ignore"):  # tiny moves go any length
        room = float(np.min(ends[ahead] / move[ahead], initial=1.0))
    move *= min(room, rise / curvature) if curvature > 0 else room
    s[free] = np.clip(s[free] + move, rows.low[free], rows.high[free])
    s[free[move >= high]], s[free[move <= low]] = (
        rows.high[free[move >= high]],
        rows.low[free[move <= low]],
    )
    h -= rows.sign * rows.expanded(
        np.bincount(place, rows.sign[free] * move, len(Q)) @ Q
    )
    return work


@njit
def _descend(Q, sign, low, high, s, h, target, steps, biased):
    """Steps of two weights (of one without beta), in place; returns how many it took."""
    n = len(s)
    ties = n - len(Q)
    own = np.empty(n)
    row = np.zeros(n)
    for k in range(n):
        own[k] = Q[k, k] if k < len(Q) else Q[k - ties, k - ties]
    for step in range(steps):
        i = _NOBODY
        top = -np.inf if biased else 0.0
        bottom = np.inf if biased else 0.0
        for k in range(n):
            if s[k] < high[k] and h[k] > top:
                i = k
                top = h[k]
            if s[k] > low[k] and h[k] < bottom:
                bottom = h[k]
        if not top - bottom > target:
            return step
        level = 0.0
        curve = 0.0
        if biased:
            level = top
            curve = own[i]
            _add(row, sign, Q, i, 2 * sign[i], 0.0)
        j = _NOBODY
        most = 0.0
        curvature = 1.0
        for k in range(n):
            g = level - h[k]
            if (g > 0 and s[k] > low[k]) or (g < 0 and not biased and s[k] < high[k]):
                total = curve + own[k]
                along = max(total - row[k], 1e-12 * total, 1e-300)
                if g * g > most * along:
                    j = k
                    most = g * g / along
                    curvature = along
        if j < 0:
            return step
        t = (level - h[j]) / curvature
        room = s[j] - low[j] if t > 0 else s[j] - high[j]
        reach = high[i] - s[i] if biased else np.inf
        size = min(abs(t), abs(room), reach)
        t = size if t > 0 else -size
        s[j] = s[j] - t if size < abs(room) else (low[j] if t > 0 else high[j])
        _add(h, sign, Q, j, t * sign[j], 1.0)
        if biased:
            s[i] = s[i] + t if size < reach else high[i]
            _add(h, sign, Q, i, -t * sign[i], 1.0)
    return steps


@njit_inner
def _add(values, sign, Q, k, factor, keep):
    """values = keep · values + factor · sign · row k of Q, over all rows of hinges."""
    q = len(Q)
    ties = len(values) - q
    row = Q[k] if k < q else Q[k - ties]
    for i in range(q):
        values[i] = keep * values[i] + factor * sign[i] * row[i]
    for i in range(q, len(values)):
        values[i] = keep * values[i] + factor * sign[i] * row[i - ties]
