"""To the fixed point of the update map in few evaluations, and never downhill.

Where many players share few matches, what moves all their scores together takes hundreds of plain sweeps. It
lies in a few directions, so Anderson's mixing [Anderson1965]_ finds it from the last evaluations: with
residuals r = f(x) - x, and differences dx, dr of the last iterates and residuals,

    x <- x + rate r - sum_j gamma_j (dx_j + rate dr_j),   gamma = argmin |r - sum_j gamma_j dr_j|.

Differences are kept in single precision: they say where to go, and the residual, in double precision, whether
it is there.

References
----------
.. [Anderson1965] D. G. Anderson, "Iterative procedures for nonlinear integral equations", JACM 12, 1965.
.. [Walker2011] H. F. Walker, P. Ni, "Anderson acceleration for fixed-point iterations", SIAM Journal on
   Numerical Analysis 49, 2011.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from preflearn.checks import Floats
from preflearn.compiled import njit_free, njit_free_sums
from preflearn.dynamics.inference import Update, UpdateMap
from preflearn.dynamics.team import slices

_DEPTH = 12  # how many differences are kept
_HISTORY = 1_000_000_000  # bytes of them, at most
_LEAST_RATE = 1 / 64
_GROWTH = 10.0  # of the residual, at which a step counts as failed: over the least
_MEMORY = 6  # of so many accepted evaluations
_ROUNDING = 1e-12  # of a bound, relative
_RIDGE = 1e-14
_RECOVERY = 1.25  # of the rate, a step that succeeds
_BLOCK = 1024  # numbers of one turn that stay in the fastest cache


class Trace(NamedTuple):
    """What happened at each evaluation of the update map.

    Attributes
    ----------
    residual, evidence : list of float
        As of `Update`.
    rate : list of float
        Of the step that was made after it.
    accepted : list of bool
        False where the step before it was taken back.
    """

    residual: list[float]
    evidence: list[float]
    rate: list[float]
    accepted: list[bool]


def iterate(update_map: UpdateMap, *, rate: float | str, tol: float, max_iter: int) -> tuple[Trace, bool]:
    """Go to the fixed point from the pseudo-observations that `update_map.entries` holds.

    Parameters
    ----------
    update_map : UpdateMap
    rate : float or "auto"
        A number: plain sweeps with this learning rate, as Algorithm 1 has it. "auto": mixing, and a step that
        fails is taken back and made again at half the rate.
    tol : float
        Of the residual of `Update`.
    max_iter : int
        Evaluations.

    Returns
    -------
    trace : Trace
    converged : bool
        Whether the residual of the last evaluation is at most tol. `entries` are what it evaluated.
    """
    trace = Trace([], [], [], [])
    step = _Mixing(update_map) if rate == "auto" else _Plain(update_map, float(rate))
    for evaluation in range(max_iter):
        found = update_map.evaluate()
        good = step.accepts(found)
        if evaluation == 0 and not good:
            raise ValueError(
                f"the likelihood overflows before anything is learned (its logarithm is {found.evidence:g}); "
                "expected a prior variance at which outcomes of this size occur: a smaller one"
            )
        trace.residual.append(found.residual)
        trace.evidence.append(found.evidence)
        trace.accepted.append(good)
        trace.rate.append(step.rate)
        if good and found.residual <= tol:
            return trace, True
        if evaluation < max_iter - 1:
            step.advance() if good else step.retreat()
    return trace, False


class _Plain:
    """Algorithm 1 with a fixed learning rate."""

    def __init__(self, update_map: UpdateMap, rate: float) -> None:
        self._map, self.rate = update_map, rate

    def accepts(self, found: Update) -> bool:
        return math.isfinite(found.residual)

    def advance(self) -> None:
        sites = self._map.entries[:, :2]
        sites += self.rate * (self._map.updated - sites)

    def retreat(self) -> None:
        raise ValueError(
            f"the pseudo-observations overflow at rate {self.rate:g}; expected a rate at which sweeps converge: "
            "take a smaller one, or 'auto'"
        )


class _Mixing:
    """Anderson's mixing, with a rate that falls where a step fails."""

    def __init__(self, update_map: UpdateMap) -> None:
        self._map, self._parts = update_map, slices(len(update_map.entries))
        size = 2 * len(update_map.entries)
        depth = int(np.clip(_HISTORY // (8 * size), 2, _DEPTH))
        self._moves, self._turns = np.zeros((2, depth, size), dtype=np.float32)  # dx, dr
        self._x, self._r = np.zeros(size), np.zeros(size)  # of the last accepted evaluation
        self._gram = np.zeros((depth, depth))  # of the turns
        self._n_moves = -1  # since the last failure; the first evaluation has none before it
        self._bound = -math.inf
        self._residuals: deque[float] = deque(maxlen=_MEMORY)
        most = int(np.diff(update_map.schedule.rows).max())  # features in one match
        self.rate = min(1.0, 2 / most)  # enough for reverse-KL with a Gaussian likelihood: chapter 13

    def accepts(self, found: Update) -> bool:
        """Uphill in the bound of reverse-KL; for EP, which has none, without a leap of the residual."""
        if not math.isfinite(found.residual):
            return False
        if not self._residuals:  # the start
            good = True
        elif self._map.ep:
            good = found.residual <= _GROWTH * min(self._residuals) or self.rate <= _LEAST_RATE
        else:
            good = found.evidence >= self._bound - _ROUNDING * abs(self._bound)
        if good:
            self._bound = max(self._bound, found.evidence)
            self._residuals.append(found.residual)
        return good

    def advance(self) -> None:
        """Note the difference to the evaluation before, and make the mixed step."""
        entries, updated = self._map.entries, self._map.updated.reshape(-1)
        depth, slot = len(self._gram), max(self._n_moves, 0) % len(self._gram)
        count = min(self._n_moves + 1, depth)
        share = self._map.team.share

        def note(part: slice) -> Floats:
            return _note(
                entries,
                updated,
                self._x,
                self._r,
                self._moves,
                self._turns,
                slot,
                count,
                part.start,
                part.stop,
            )

        products = np.sum(share(note, self._parts), axis=0)
        self._gram[slot, :count] = self._gram[:count, slot] = products[0, :count]
        gamma = _least_squares(self._gram[:count, :count], products[1, :count])
        self._n_moves += 1

        def mix(part: slice) -> None:
            _mix(entries, updated, self._r, self._moves, self._turns, gamma, self.rate, part.start, part.stop)

        share(mix, self._parts)
        self.rate = min(1.0, _RECOVERY * self.rate)

    def retreat(self) -> None:
        """Back to the last accepted evaluation, and from there a plain step at half the rate."""
        self.rate /= 2
        self._n_moves = -1
        self._map.entries[:, :2] = (self._x + self.rate * self._r).reshape(-1, 2)


def _least_squares(gram: Floats, target: Floats) -> Floats:
    """gamma of the module's formula; directions that rounding cannot tell apart count as one."""
    if len(gram) == 0:
        return np.zeros(0)
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    ridge = _RIDGE * np.eye(len(gram))
    return np.linalg.lstsq(gram / np.outer(scale, scale) + ridge, target / scale, rcond=None)[0] / scale


@njit_free_sums
def _note(entries, updated, x, r, moves, turns, slot, count, begin, end):
    """Move x and r to the present evaluation; products of the new turn, and of r, with all turns."""
    products = np.zeros((2, len(turns)))
    begin, end = 2 * begin, 2 * end
    for i in range(begin, end):
        here = entries[i // 2, i % 2]
        residual = updated[i] - here
        if count > 0:
            moves[slot, i], turns[slot, i] = here - x[i], residual - r[i]
        x[i], r[i] = here, residual
    for low in range(begin, end, _BLOCK):
        high = min(low + _BLOCK, end)
        for j in range(count):
            with_turn, with_residual = 0.0, 0.0
            for i in range(low, high):
                turn = np.float64(turns[j, i])
                with_turn += turn * turns[slot, i]
                with_residual += turn * r[i]
            products[0, j] += with_turn
            products[1, j] += with_residual
    return products


@njit_free
def _mix(entries, updated, r, moves, turns, gamma, rate, begin, end):
    """The mixed step. A pseudo-observation whose beta would be negative takes the plain one."""
    for entry in range(begin, end):
        i = 2 * entry
        alpha, beta = entries[entry, 0] + rate * r[i], entries[entry, 1] + rate * r[i + 1]
        plain_alpha, plain_beta = alpha, beta
        for j in range(len(gamma)):
            alpha -= gamma[j] * (moves[j, i] + rate * turns[j, i])
            beta -= gamma[j] * (moves[j, i + 1] + rate * turns[j, i + 1])
        if beta < 0.0:
            alpha, beta = plain_alpha, plain_beta
        entries[entry, 0], entries[entry, 1] = alpha, beta
