"""To the fixed point of the update map in few evaluations, and never downhill.

Where many players share few matches, what moves all their scores together takes
hundreds of plain sweeps. It lies in a few directions, so Anderson's mixing
[Anderson1965]_ finds it from the last evaluations: with residuals r = f(x) - x, and
differences dx, dr of the last iterates and residuals,

    x <- x + rate r - sum_j gamma_j (dx_j + rate dr_j),

and gamma such that |w (r - sum_j gamma_j dr_j)| is least. Here x holds alpha and log
beta, so that no beta becomes negative, and the weights w turn changes of both into
units of the posterior standard deviation. The plain part, x + rate r, is taken in alpha
and beta, where it is a natural gradient of the bound of reverse-KL: if it is short
enough, the bound rises.

Differences are kept in single precision: they say where to go, and the residual, in
double precision, whether it is there.

References
----------
.. [Anderson1965] D. G. Anderson, "Iterative procedures for nonlinear integral
  equations", JACM 12, 1965.
.. [Walker2011] H. F. Walker, P. Ni, "Anderson acceleration for fixed-point iterations",
   SIAM Journal on Numerical Analysis 49, 2011.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from preflearn.core.validation import Floats
from preflearn.dynamics.engine.algorithm import Plain, Sweep, Update
from preflearn.dynamics.engine.threads import njit_free_sums, njit_nogil_inner

_DEPTH = 12  # how many differences are kept
_HISTORY = 700_000_000  # bytes of them, at most
_REACH = 10.0  # posterior standard deviations that a step of reverse-KL may take
_PATIENCE = 30  # sweeps of EP without a new least residual, which must be
_PROGRESS = 0.98  # of the last one
_LEAST_STEADY = 1 / 8  # where EP goes on at a smaller rate
# nats, and share of itself, by which EP's evidence may fall
_SLACK = 5.0
_FALL = 0.5
_LEAST_RATE = 1 / 64
_GROWTH = 10.0  # of the residual, at which a step counts as failed: over the least
_MEMORY = 6  # of so many accepted sweeps
_ROUNDING = 1e-12  # of a bound, relative
_RIDGE = 1e-14
_RECOVERY = 1.25  # of the rate, a step that succeeds
_BLOCK = 512  # entries of one turn that stay in the fastest cache
_TINY = 1e-300  # stands for a beta of 0, which has no logarithm
_CLOSE = 1e-3


class Mixing(Plain):
    """Anderson's mixing, with a rate that falls where a step fails."""

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(sweep, sweep.calm)
        size = 2 * len(sweep.entries)
        depth = int(np.clip(_HISTORY // (8 * size), 2, _DEPTH))
        self._steps = np.zeros((depth, size), dtype=np.float32)  # dx + rate dr
        self._turns = np.zeros((depth, size), dtype=np.float32)  # w dr
        # of the last accepted sweep
        self._x = np.zeros(size)
        self._r = np.zeros(size)
        self._gram = np.zeros((depth, depth))  # of the turns
        self._n_steps = -1  # since the last failure; the first sweep has none before it
        self._residuals: deque[float] = deque(maxlen=_MEMORY)
        self._evidences: deque[float] = deque(maxlen=_MEMORY)
        # residuals
        self._first = math.inf
        self._least = math.inf
        # sweeps since the least
        self._since = 0
        self._patience = _PATIENCE
        self._anew = False
        self._most_rate = 1.0
        # the rate is cut to it: a leap would end where the bound is rounding
        self._reach = 1.0

    def accepts(self, found: Update) -> bool:
        """Uphill in the bound of reverse-KL; for EP, which has none, without a leap."""
        good = super().accepts(found)
        if good and self._residuals:
            before = self._evidences[-1]
            rises = found.evidence >= before - _ROUNDING * abs(before)
            good = self._leaps_not(found) if self._sweep.ep else rises
        if good:
            self._residuals.append(found.residual)
            self._evidences.append(found.evidence)
            if self._sweep.ep:
                self._watch(found.residual)
            else:
                self._reach = _REACH / max(found.residual, _REACH)
        return good

    def _leaps_not(self, found: Update) -> bool:
        """Neither the largest change, nor the evidence: a leap of many
        pseudo-observations in step."""
        calm = (
            found.residual <= _GROWTH * min(self._residuals) or self.rate <= _LEAST_RATE
        )
        best = max(self._evidences)
        return calm and (
            self.rate <= _LEAST_STEADY
            or found.evidence >= best - _SLACK - _FALL * abs(best)
        )

    def _watch(self, residual: float) -> None:
        """Where EP goes round in a circle, make smaller steps; from the start, if it is
        worse than there."""
        self._first = residual if self._first == math.inf else self._first
        self._since = 0 if residual < _PROGRESS * self._least else self._since + 1
        self._least = min(self._least, residual)
        if self._since > self._patience:
            self._most_rate = max(self._most_rate / 2, _LEAST_STEADY)
            self._patience *= 2
            self.rate = self._most_rate
            self._n_steps = -1
            self._since = 0
            self._least = math.inf
            self._anew = residual > self._first

    def advance(self) -> None:
        """Note the difference to the sweep before, and make the mixed step."""
        if self._anew:
            self._sweep.entries[:, :2] = 0.0
            self._anew = False
            self._residuals.clear()
            self._evidences.clear()
            return
        rate = min(self.rate, self._reach)
        gamma = self._noted(rate)
        self._sweep.move(rate, gamma, self._steps)
        self.rate = min(self._most_rate, _RECOVERY * self.rate)

    def _noted(self, rate: float) -> Floats:
        """gamma of the module's formula, after the present sweep took its place among
        the last ones."""
        depth = len(self._gram)
        slot = max(self._n_steps, 0) % depth
        count = min(self._n_steps + 1, depth)

        def note(part: slice) -> Floats:
            now = self._sweep.ep, rate, self._sweep.entries, self._sweep.updated
            memory = self._x, self._r, self._steps, self._turns
            return _note(*now, *memory, slot, count, part.start, part.stop)

        products = np.sum(self._sweep.share(note, self._sweep.parts), axis=0)
        self._gram[slot, :count] = self._gram[:count, slot] = products[0, :count]
        # a leap beyond single precision: begin anew
        if not np.isfinite(products).all():
            self._n_steps = -1
            return np.zeros(0)
        self._n_steps += 1
        return _least_squares(self._gram[:count, :count], products[1, :count])

    def restore(self) -> None:
        """Back to the last accepted sweep."""
        self._sweep.entries[:, :2] = self._x.reshape(-1, 2)

    def retreat(self) -> None:
        """A plain step from the last accepted sweep; if one from there failed, at half
        its rate."""
        if self._n_steps <= 0:
            self.rate /= 2
        self._n_steps = -1
        self.restore()
        alpha, beta = self._sweep.entries[:, :2].T
        self._sweep.updated[:, 0] = alpha + self._r[::2]
        self._sweep.updated[:, 1] = np.exp(
            np.log(np.maximum(beta, _TINY)) + self._r[1::2]
        )
        self._sweep.move(min(self.rate, self._reach))


def _least_squares(gram: Floats, target: Floats) -> Floats:
    """gamma of the module's formula; directions that rounding cannot tell apart count
    as one."""
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    ridge = _RIDGE * np.eye(len(gram))
    return (
        np.linalg.lstsq(
            gram / np.outer(scale, scale) + ridge, target / scale, rcond=None
        )[0]
        / scale
    )


@njit_free_sums
def _note(ep, rate, entries, updated, x, r, steps, turns, slot, count, begin, end):
    """Move x and r to the present evaluation; products of the new turn, and of w r,
    with all turns."""
    products = np.zeros((2, len(turns)))
    weighted = np.empty(2 * _BLOCK)
    for low in range(begin, end, _BLOCK):
        high = min(low + _BLOCK, end)
        for e in range(low, high):
            alpha = entries[e, 0]
            beta = entries[e, 1]
            v = entries[e, 3]
            if ep:
                v /= 1.0 + beta * v
            to_alpha = updated[e, 0] - alpha
            to_z = _log_ratio(updated[e, 1], beta)
            w_alpha = math.sqrt(v)
            w_z = v * beta
            i = 2 * e
            if count > 0:
                d_alpha = to_alpha - r[i]
                d_z = to_z - r[i + 1]
                s_alpha = alpha - x[i] + rate * d_alpha
                s_z = _log_ratio(beta, x[i + 1]) + rate * d_z
                # a beta of 0 before tells nothing of its logarithm
                if x[i + 1] < 2 * _TINY:
                    d_z = 0.0
                    s_z = 0.0
                steps[slot, i], steps[slot, i + 1] = s_alpha, s_z
                turns[slot, i], turns[slot, i + 1] = w_alpha * d_alpha, w_z * d_z
            x[i], x[i + 1], r[i], r[i + 1] = alpha, beta, to_alpha, to_z
            weighted[i - 2 * low], weighted[i - 2 * low + 1] = (
                w_alpha * to_alpha,
                w_z * to_z,
            )
        for j in range(count):
            with_turn = 0.0
            with_residual = 0.0
            for i in range(2 * (high - low)):
                turn = np.float64(turns[j, 2 * low + i])
                with_turn += turn * turns[slot, 2 * low + i]
                with_residual += turn * weighted[i]
            products[0, j] += with_turn
            products[1, j] += with_residual
    return products


@njit_nogil_inner
def _log_ratio(a, b):
    """log(a/b), by a series where they are close, as most are: the next term is below
    1e-24."""
    a = max(a, _TINY)
    b = max(b, _TINY)
    t = (a - b) / (a + b)
    if abs(t) < _CLOSE:
        s = t * t
        return 2.0 * t * (1.0 + s * (1.0 / 3.0 + s * (0.2 + s / 7.0)))
    return math.log(a) - math.log(b)
