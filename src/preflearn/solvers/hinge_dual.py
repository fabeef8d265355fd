"""Block solver for the dual of sums of hinge losses.

Row i of the hinges has a label_i = +1 or -1 and a signed weight s_i between bounds. Let
d be the differences of the pairs, a_k the sum of sign_i s_i over the rows of pair k, u
= sum a_k d_k and z = B K B'a. The solver computes::

    maximize  sum_i label_i s_i - 1/2 a'B K B'a,    and where there is a beta:  sum_i s_i = 0,

At the optimum the slopes h_i = label_i - sign_i z_i are at most beta if s_i can grow,
and at least beta if it can shrink (beta = 0 without a bias). The pairs that violate
this most form a block, whose Gram matrix is small. Steps in two weights, chosen by
their second-order gain [Fan2005]_, find the weights at bounds. If these steps are slow,
a Newton step in the weights between their bounds replaces thousands of them. Every step
increases the dual.

References
----------
.. [Fan2005] R.-E. Fan, P.-H. Chen, C.-J. Lin, "Working set selection using second order
   information for training support vector machines", Journal of Machine Learning
   Research 6, 2005.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from preflearn.core.compilation import njit, njit_inner
from preflearn.core.gram import DenseGram, Gram
from preflearn.core.validation import Floats, Ids

# Number of pairs in a block: twice the number of weights between bounds, within these
# limits. The upper limit grows with this number, so that a block can contain all of
# them.
_MIN_BLOCK = 500
_MAX_BLOCK = 2000
_MAX_GROWN_BLOCK = 4000
_BLOCK_GROWTH = 1.1
_BLOCK_TOLERANCE = 0.1  # violation at the end of a block, relative to its start
# steps in two weights before a Newton step, plus one per weight between its bounds
_MIN_STEPS = 200
_MAX_NEWTON_STEPS = 5  # Newton steps per block
_MAX_ROUNDS = 20  # rounds of a Newton step, each of which moves weights to their bounds
_RIDGE = 1e-13  # added to the diagonal, relative to the trace, for linearly dependent differences
_MAX_DRIFT = 1e-12  # allowed sum of moves, relative to the sum of their absolute values
_REFRESH = 10  # blocks between two recomputations of z
_ROUNDING = (
    16 * np.finfo(np.float64).eps
)  # violation that is a rounding error, relative to the largest slope
# after this number of blocks without progress, only rounding errors change
_MAX_STALLED = 10
# a literal -1 has another type in numba, for which functions would be recompiled
_NONE = np.int64(-1)
_MIN_BLOCKS = 30  # blocks that are allowed, plus one per `_PAIRS_PER_BLOCK` pairs
_PAIRS_PER_BLOCK = 100


class HingeTerms(NamedTuple):
    """Hinges cost_i max(0, label_i (h_i - beta)), with two rows per tie.

    There is one row per pair, followed by the second rows of ties, which have the
    opposite differences. Ties are the last pairs.
    """

    n_pairs: int
    sign: Floats  # (rows,)
    label: Floats  # (rows,)
    low: Floats  # (rows,) lower and upper bounds of s: 0 and label · cost, in order
    high: Floats
    biased: bool

    @classmethod
    def from_labels(cls, y: NDArray, cost: Floats, biased: bool) -> HingeTerms:
        """Return the rows of eq. 8 for labels with ties last.

        Without a bias, ties are treated as preferences in both orders.
        """
        n_ties = np.count_nonzero(y == 0)
        direction = np.append(np.where(y == 0, -1.0, y), np.ones(n_ties))
        label = np.ones(len(direction))
        if biased:
            label[len(y) - n_ties :] = -1.0
        bound = label * np.append(cost, cost[len(y) - n_ties :])
        low = np.minimum(bound, 0)
        high = np.maximum(bound, 0)
        return cls(len(y), label * direction, label, low, high, biased)

    @property
    def cost(self) -> Floats:
        return self.high - self.low

    def expanded(self, values: NDArray) -> NDArray:
        """Return for each row the value of its pair."""
        return np.append(values, values[2 * self.n_pairs - len(self.sign) :])

    def summed(self, values: Floats) -> Floats:
        """Return for each pair the sum of the values of its rows."""
        total = values[: self.n_pairs].copy()
        total[2 * self.n_pairs - len(values) :] += values[self.n_pairs :]
        return total

    def slopes(self, z: Floats) -> Floats:
        return self.label - self.sign * self.expanded(z)

    def of_block(self, pairs: Ids) -> tuple[Ids, HingeTerms]:
        """Return the positions of the rows of some pairs, and these rows."""
        n_ties = len(self.sign) - self.n_pairs
        rows = np.append(pairs, pairs[pairs >= self.n_pairs - n_ties] + n_ties)
        sign, label, low, high = (
            values[rows] for values in (self.sign, self.label, self.low, self.high)
        )
        return rows, HingeTerms(len(pairs), sign, label, low, high, self.biased)

    def feasible(self, s: Floats) -> Floats:
        """Return the weights after scaling one sign down, so that the sum is 0."""
        if not self.biased:
            return s
        up = s[s > 0].sum()
        down = -s[s < 0].sum()
        if up > down:
            return s * np.where(s > 0, down / up, 1.0)
        if down > up:
            return s * np.where(s > 0, 1.0, up / down)
        return s


class Certificate(NamedTuple):
    """The objective at u = sum a_k d_k, and a bound on its distance from the optimum."""

    objective: float
    gap: float  # bound, relative to the objective
    bias: float


def certificate(
    rows: HingeTerms, z: Floats, squared: float, dual: float, noise: float
) -> Certificate:
    """Certify a function by a dual value.

    `z` are its score differences, and `squared` is its u·u.

    beta is chosen to minimize the loss. Rounding errors of z, of about `noise`, are
    added to the gap.
    """
    h = rows.slopes(z)
    bias = best_bias(rows, h) if rows.biased else 0.0
    loss = rows.label * (h - bias)
    objective = squared / 2 + float(rows.cost @ np.maximum(0.0, loss))
    doubt = noise * float(np.linalg.norm(rows.cost[loss > -noise]))
    return Certificate(objective, (abs(objective - dual) + doubt) / objective, bias)


def best_bias(rows: HingeTerms, h: Floats) -> float:
    """Return the beta of lowest loss; the midpoint if an interval is optimal.

    The loss is convex and piecewise linear in beta; its slope rises by cost_i at h_i.
    """
    order = np.argsort(h)
    slope = np.cumsum(rows.cost[order]) - rows.high.sum()
    zero = 1e-12 * rows.cost.sum()
    low, high = np.searchsorted(slope, [-zero, zero])
    return float((h[order[low]] + h[order[min(high, len(h) - 1)]]) / 2)


def maximise(
    gram: Gram,
    rows: HingeTerms,
    s: Floats,
    tol: float,
    patience: float = np.inf,
) -> tuple[Floats, float]:
    """Improve feasible weights s until the duality gap is at most `tol`.

    The best weights and their gap are returned.

    Parameters
    ----------
    gram : Gram
        Gram matrix B K B' of the pairs.
    rows : HingeTerms
    s : ndarray of shape (rows,)
        Feasible initial weights, such as zeros.
    tol : float
        Duality gap, relative to the objective, at which to stop. Rounding errors may
        stop the solver earlier.
    patience : float
        Limit on the work of Newton steps: the sum of the cubed numbers of unknowns of
        their systems.
    """
    # several times the number that is usually needed
    most = _MIN_BLOCKS + rows.n_pairs // _PAIRS_PER_BLOCK
    s = s.copy()
    best = s.copy()
    best_gap = np.inf  # gap of `best`, relative to its objective
    bound = np.inf  # lowest primal value minus the current dual, at the last progress
    primal = np.inf
    z = gram.times(rows.summed(rows.sign * s))
    pairs = np.zeros(0, dtype=np.int64)
    Q = np.zeros((0, 0))
    stalled = 0
    repeats = 0
    work = 0.0
    edge = 0.0
    if rows.biased:
        edge = np.inf
    for count in range(1, most + 1):
        h = rows.slopes(z)
        up = s < rows.high
        down = s > rows.low
        top = np.max(h[up], initial=-edge)
        bottom = np.min(h[down], initial=edge)
        bias = 0.0
        if rows.biased:
            bias = (top + bottom) / 2
        squared = float(rows.summed(rows.sign * s) @ z)
        loss = np.maximum(0.0, rows.label * (h - bias))
        value = squared / 2 + float(rows.cost @ loss)
        dual = float(rows.label @ s) - squared / 2
        if value - dual < best_gap * value:
            best = s.copy()
            best_gap = (value - dual) / value
        primal = min(primal, value)
        stalled += 1
        if primal - dual < 0.99 * bound:
            bound = primal - dual
            stalled = 0
        rounding = _ROUNDING * float(np.abs(h).max())
        if best_gap <= tol or top - bottom <= rounding:
            break
        if stalled >= _MAX_STALLED or work > patience:
            break
        chosen = _violators(rows, h - bias, up, down)
        if np.array_equal(chosen, pairs):
            repeats += 1  # the block is solved to a lower violation
        else:
            repeats = 0
            pairs = chosen
            Q = gram.block(chosen, chosen)
        places, part = rows.of_block(pairs)
        weights = s[places]
        target = _BLOCK_TOLERANCE ** (1 + repeats) * float(top - bottom)
        work += _solve_block(Q, part, weights, h[places], max(rounding, target))
        change = np.zeros(len(s))
        change[places] = weights - s[places]
        s[places] = weights
        if count % _REFRESH:
            z = z + gram.times(rows.summed(rows.sign * change))
        else:
            z = gram.times(rows.summed(rows.sign * s))
    return rows.feasible(best), best_gap


def _violators(rows: HingeTerms, h: Floats, up: NDArray, down: NDArray) -> Ids:
    """Choose the pairs of the next block.

    These are the pairs between their bounds, and at least as many pairs of largest
    violation.
    """
    n_ties = len(h) - rows.n_pairs
    wrong = np.maximum(np.where(up, h, 0.0), np.where(down, -h, 0.0))
    free = (up & down).astype(np.float64)
    for values in (wrong, free):
        tied = values[rows.n_pairs - n_ties : rows.n_pairs]
        np.maximum(tied, values[rows.n_pairs :], out=tied)
    wrong = wrong[: rows.n_pairs]
    free = free[: rows.n_pairs]
    n_free = free.sum()
    largest = max(_MAX_BLOCK, min(_BLOCK_GROWTH * n_free, _MAX_GROWN_BLOCK))
    size = int(np.clip(2 * n_free, _MIN_BLOCK, largest))
    if size >= rows.n_pairs:
        return np.arange(rows.n_pairs)
    most = np.argpartition(wrong, -(size // 2))[-(size // 2) :]
    wanted = wrong + np.where(free > 0, wrong.max(), 0.0)
    wanted[most] = 3 * wrong.max()
    return np.sort(np.argpartition(wanted, -size)[-size:])


def _solve_block(
    Q: Floats, rows: HingeTerms, s: Floats, h: Floats, target: float
) -> float:
    """Improve s and h until the violation is below the target, or no steps are left.

    The work of the Newton steps is returned.
    """
    work = 0.0
    for _ in range(_MAX_NEWTON_STEPS):
        most = _MIN_STEPS + np.count_nonzero((s > rows.low) & (s < rows.high))
        steps = _descend(
            Q, rows.sign, (rows.low, rows.high), s, h, target, most, rows.biased
        )
        if steps < most:
            break
        work += _newton(Q, rows, s, h)
    return work


def _newton(Q: Floats, rows: HingeTerms, s: Floats, h: Floats) -> float:
    """Take a Newton step in the weights between their bounds, in place.

    Weights that would exceed their bounds are set to them, and the system of the others
    is solved again. A line search within the bounds follows. The sum of the cubed
    numbers of unknowns of the systems is returned.
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
    if rows.biased:
        # moves have the sum 0, so a constant affects rounding errors only
        slope = slope - slope.mean()
    move = np.zeros(len(free))
    inner = np.ones(len(free), dtype=np.bool_)
    for count in range(_MAX_ROUNDS):
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
        if rows.biased:
            for _ in range(2):  # the second iteration corrects rounding errors
                x = x - level * ((x.sum() + move[~inner].sum()) / level.sum())
        move[inner] = x
        out = inner & ((move < low) | (move > high))
        if not out.any() or out[inner].all() or count == _MAX_ROUNDS - 1:
            break
        inner = inner & ~out
        move[out] = np.clip(move, low, high)[out]
    curvature = float(move @ (A @ move))
    rise = float(slope @ move)
    drifts = rows.biased and abs(move.sum()) > _MAX_DRIFT * np.abs(move).sum()
    if rise <= 0 or drifts:
        return work
    ends = np.where(move > 0, high, low)
    moves = move != 0
    with np.errstate(over="ignore"):  # tiny moves allow an infinite step
        length = float(np.min(ends[moves] / move[moves], initial=1.0))
    if curvature > 0:
        length = min(length, rise / curvature)
    move *= length
    s[free] = np.clip(s[free] + move, rows.low[free], rows.high[free])
    # set exactly to the bound, without the rounding error of the sum
    at_high = free[move >= high]
    s[at_high] = rows.high[at_high]
    at_low = free[move <= low]
    s[at_low] = rows.low[at_low]
    h -= rows.sign * rows.expanded(
        np.bincount(place, rows.sign[free] * move, len(Q)) @ Q
    )
    return work


@njit
def _descend(Q, sign, bounds, s, h, target, most, biased):
    """Take steps in two weights (one without a bias), in place; return their number."""
    low, high = bounds
    n = len(s)
    ties = n - len(Q)
    own = np.empty(n)
    row = np.zeros(n)
    for k in range(n):
        pair = k
        if k >= len(Q):
            pair = k - ties
        own[k] = Q[pair, pair]
    edge = 0.0
    if biased:
        edge = np.inf
    for step in range(most):
        i = _NONE
        top = -edge
        bottom = edge
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
        j = _NONE
        best_gain = 0.0
        curvature = 1.0
        for k in range(n):
            g = level - h[k]
            if (g > 0 and s[k] > low[k]) or (g < 0 and not biased and s[k] < high[k]):
                total = curve + own[k]
                along = max(total - row[k], 1e-12 * total, 1e-300)
                if g * g > best_gain * along:
                    j = k
                    best_gain = g * g / along
                    curvature = along
        if j < 0:
            return step
        t = (level - h[j]) / curvature
        end = high[j]
        if t > 0:
            end = low[j]
        room = abs(s[j] - end)
        reach = np.inf
        if biased:
            reach = high[i] - s[i]
        size = min(abs(t), room, reach)
        t = math.copysign(size, t)
        if size < room:
            s[j] = s[j] - t
        else:
            s[j] = end
        _add(h, sign, Q, j, t * sign[j], 1.0)
        if biased:
            if size < reach:
                s[i] = s[i] + t
            else:
                s[i] = high[i]
            _add(h, sign, Q, i, -t * sign[i], 1.0)
    return most


@njit_inner
def _add(values, sign, Q, k, factor, keep):
    """Compute values = keep · values + factor · sign · Q[k] over all rows of hinges."""
    q = len(Q)
    ties = len(values) - q
    pair = k
    if k >= q:
        pair = k - ties
    row = Q[pair]
    for i in range(q):
        values[i] = keep * values[i] + factor * sign[i] * row[i]
    for i in range(q, len(values)):
        values[i] = keep * values[i] + factor * sign[i] * row[i - ties]
