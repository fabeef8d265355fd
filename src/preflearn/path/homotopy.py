"""Piecewise linear solutions of a parametric quadratic program.

Weights alpha in [0, 1] with signs y and F = K (y alpha) + linear + offset are kept optimal while time runs:

    alpha_i = 0 and y_i F_i >= margin,   alpha_i = 1 and y_i F_i <= margin,   y_i F_i = margin,

where the margin falls at the rate `drop` and sum(y alpha) grows at the rate `inflow`. Between two events
everything is linear in time. At an event the directions solve a complementarity problem of the points on
the margin, by pivots: it says what enters and leaves, however many points arrive at once.

Few points come near the margin during some fifty events, so only these are watched (`preflearn.path.events`).
Afterwards one matrix product gives F of the others at these events. (Most are too far away to be looked at:
F moves by no more than the norm of the point times that of the move of w.) Since F is linear in between, this
proves that no other point crossed the margin. If one did, time goes back to the event before, and it is
watched too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.path.elbow import add, new_elbow, solve
from preflearn.path.events import BOUND, FULL, LOST, Law, Trace, Watch, follow, new_trace, screen

__all__ = ["BOUND", "Homotopy", "Middle", "Stretch"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_EVENTS = 80  # in one stretch
_WATCHED = 200  # beside twice the elbow
_ROOM = 50  # of the elbow, for more points
_SETTLED = 1e-12  # relative to the largest F: smaller errors are left alone
_ON_MARGIN = 1e-11  # relative to the margin


class Middle(NamedTuple):
    """Extreme y_i (K y alpha)_i of the points at weight 1 and 0, which bound the offset where it is free.

    max(one_minus - lambda, lambda - zero_plus) <= offset <= min(lambda - one_plus, zero_minus - lambda)
    """

    one_plus: float
    one_minus: float
    zero_plus: float
    zero_minus: float

    @classmethod
    def of(cls, y: Floats, alpha: Floats, w: Floats) -> Middle:
        values, one, plus = y * w, alpha > 0.5, y > 0
        return cls(
            np.max(values[one & plus]),
            np.max(values[one & ~plus]),
            np.min(values[~one & plus], initial=np.inf),
            np.min(values[~one & ~plus], initial=np.inf),
        )

    def at(self, lam: float) -> float:
        low = max(self.one_minus - lam, lam - self.zero_plus)
        return (low + min(lam - self.one_plus, self.zero_minus - lam)) / 2

    def kinks(self) -> list[float]:
        return sorted({(self.one_minus + self.zero_plus) / 2, (self.one_plus + self.zero_minus) / 2})[::-1]


class Stretch(NamedTuple):
    """Some events in turn; what event k says holds between the margins k and k + 1.

    The weights of the elbow are listed event by event: points, weights there, changes per unit of time. So
    are the points that came to it or left it. `free` lists events with all weights at 0 or 1.
    """

    margins: Floats  # (events + 1,)
    offsets: Floats  # (events + 1,)
    sizes: NDArray[np.int64]  # (events,) of the elbow
    index: Ids
    values: Floats
    moves: Floats
    changes: tuple[Ids, Ids, NDArray[np.int64]]  # event, point, and its weight if it left, or -1
    free: list[tuple[int, Middle]]


class Homotopy:
    """Optimal weights as time runs; `advance` follows them over a stretch of events.

    Attributes
    ----------
    alpha, F : ndarray of shape (m,)
    offset, margin : float
    elbow : ndarray of int
        The points on the margin whose weights move.
    drift : float
        How far from the margin rounding had moved the elbow.
    left : float
        Time to the end; it is `done` where at most `least` is left. Directions are judged over left + spare;
        where the margin drops, it ends at `spare`.
    """

    def __init__(
        self,
        K: Floats,
        y: Floats,
        alpha: Floats,
        linear: Floats,
        offset: float,
        margin: float,
        *,
        elbow: Ids,
        drop: float,
        inflow: float,
        left: float,
        spare: float,
        least: float,
    ):
        diagonal = np.diag(K)
        mean = float(np.mean(diagonal)) or 1.0
        self._law = Law(drop, inflow, mean, 1.0 if drop else mean, 0.0)
        self._norms, self._largest = np.sqrt(np.maximum(diagonal, 0.0)), float(np.abs(diagonal).max())
        self.K, self.y, self.alpha, self.linear = K.view(), y, alpha, linear
        self.K.setflags(write=False)  # or loops are compiled again for a K that may not be written
        self.offset, self.margin = offset, margin
        self.left, self._spare, self._least = left, spare, least
        self._missed: Ids = np.zeros(0, dtype=np.int64)  # crossed the margin unwatched
        self._room, self._watched, self.drift = _ROOM, 0, 0.0
        self._spread()
        self.elbow = self._told = self._independent(elbow)

    @property
    def done(self) -> bool:
        return self.left <= self._least

    def advance(self) -> Stretch:
        """Follow the solution over one or more events."""
        law, sound = self._law._replace(near=self._near()), 0
        while sound <= 0:
            watch, trace = self._watch(), new_trace(_EVENTS, self._watched)
            start = self.offset, self.margin, self.left, self._spare, self._least
            count, left = follow(self.K, law, watch, trace, *start)
            if count == LOST:
                raise ArithmeticError(f"no direction was found by pivots at margin {self.margin}")
            if count == FULL:
                self._room *= 2
            else:
                sound = self._sound(law, watch.ids, trace, count)
        self.left = left if sound == count else self.left - float(trace.times[sound])
        return self._commit(law, watch.ids, trace, count, sound)

    def refresh(self) -> float:
        """Compute F anew and put the elbow on the margin; return the violation before."""
        self._spread()
        excess, side = self.y * self.F - self.margin, self._side()
        violation = np.where(side == 0, np.abs(excess), -side * excess).max()
        self._settle()
        return float(violation)

    def _spread(self) -> None:
        some = np.flatnonzero(self.alpha)
        signed = (self.y * self.alpha)[some]
        product = self.K @ (self.y * self.alpha) if 2 * len(some) > len(self.y) else signed @ self.K[some]
        self.F = product + self.linear + self.offset

    def _settle(self) -> None:
        """Remove what rounding left of the distance of the elbow from the margin, and of the sum of weights.

        Tiny errors stay: an ill-conditioned elbow would turn them into moves of weights past their bounds.
        """
        index, y = self.elbow, self.y[self.elbow]
        error = y * self.margin - self.F[index]
        total = 0.0 if self._law.inflow else -float(self.y @ self.alpha)
        self.drift = float(np.abs(error).max())
        if max(self.drift, abs(total)) <= _SETTLED * max(self.margin, float(np.abs(self.F).max())):
            return
        rows = self.K[index]
        elbow = new_elbow(rows[:, index], np.arange(len(index)), len(index), self._law.tau)
        delta, shift = solve(elbow, error, total, self._law.tau)
        alpha = np.clip(self.alpha[index] + y * delta, 0.0, 1.0)
        self.F += (y * (alpha - self.alpha[index])) @ rows + shift
        self.alpha[index], self.offset = alpha, self.offset + shift

    def _independent(self, points: Ids) -> Ids:
        elbow = new_elbow(self.K[np.ix_(points[:0], points)], points[:0], len(points), self._law.tau)
        rows = np.ascontiguousarray(self.K[np.ix_(points, points)])
        return points[[k for k in range(len(points)) if add(elbow, k, rows[k], self._law.tau)]]

    def _side(self) -> Floats:
        side = np.where(self.alpha > 0.5, -1.0, 1.0)
        side[self.elbow] = 0.0
        return side

    def _near(self) -> float:
        """The distance from the margin that counts as none: never below the rounding of F."""
        rounding = 1e-16 * self._largest * float(self.alpha.sum())
        return max(_ON_MARGIN * (self.margin if self._law.drop else self._law.unit), rounding)

    def _watch(self) -> Watch:
        """The elbow, the points nearest to the margin, and those that were missed."""
        side, limit = self._side(), self._near()
        gaps = side * (self.y * self.F - self.margin)
        gaps[self._missed] = gaps[self._told] = 0.0
        number = max(_WATCHED + 2 * len(self.elbow), np.count_nonzero(gaps <= limit))
        number = self._watched = min(number, len(gaps))
        ids = np.sort(np.argpartition(gaps, number - 1)[:number])
        capacity = min(number, len(self.elbow) + self._room)
        rows, places = self.K[np.ix_(self.elbow, ids)], np.searchsorted(ids, self.elbow)
        elbow = new_elbow(rows, places, capacity, self._law.tau)
        return Watch(ids, self.y[ids], self.alpha[ids], self.F[ids], side[ids], elbow)

    def _sound(self, law: Law, ids: Ids, trace: Trace, count: int) -> int:
        """How many of the events stand although not everybody was watched; 0 or less if none does."""
        change, moved = self._change(ids, trace.alphas[: count + 1])
        steps, side = self._steps(law, trace, change, moved), np.where(self.alpha > 0.5, -1.0, 1.0)
        doubtful = screen(self.F - self.offset, self.y, side, self._norms, steps, law.near)
        doubtful[ids] = False
        others = np.flatnonzero(doubtful)
        F = change @ self.K[np.ix_(moved, others)]
        F += (self.F - self.offset)[others] + steps[:, 1, None]
        crossed = side[others] * (self.y[others] * F - steps[:, 2, None]) < -law.near
        self._missed = np.union1d(self._missed, others[crossed.any(axis=0)])
        return int(np.argmax(crossed.any(axis=1))) - 1 if crossed.any() else count

    def _change(self, ids: Ids, alphas: Floats) -> tuple[Floats, Ids]:
        """Changes of y alpha since the first row, and the points of the columns."""
        change = (alphas - alphas[0]) * self.y[ids]
        moved = np.flatnonzero(change.any(axis=0))
        return change[:, moved], ids[moved]

    def _steps(self, law: Law, trace: Trace, change: Floats, moved: Ids) -> Floats:
        """What `screen` wants: w after each event as a multiple of w now, up to a remainder of known norm."""
        w = self.F - self.offset
        size = float((self.y * self.alpha) @ w) if law.drop else 0.0  # |w|^2
        along = change @ (w[moved] / size) if size > 0 else np.zeros(len(change))
        moves = np.einsum("ki,ki->k", change @ self.K[np.ix_(moved, moved)], change)
        rounding = 1e-12 * moves + 1e-14 * self._largest * np.abs(change).sum(axis=1) ** 2
        margins = self.margin - law.drop * trace.times[: len(change)]
        radius = np.sqrt(np.maximum(moves - along**2 * size, 0.0) + rounding)
        return np.column_stack([1 + along, trace.offsets[: len(change)], margins, radius])

    def _commit(self, law: Law, ids: Ids, trace: Trace, count: int, sound: int) -> Stretch:
        change, moved = self._change(ids, trace.alphas[: sound + 1])
        margins = self.margin - law.drop * trace.times[: sound + 1]
        if law.drop:
            margins = np.maximum(margins, self._spare + self.left)  # rounding must not pass the end
        inside, alphas, moves = trace.inside[:sound], trace.alphas[:sound], trace.moves[:sound]
        rows, places = np.nonzero(inside)
        free = self._free(ids, alphas, inside, moves * margins[:-1, None], change, moved) if law.drop else []
        changes = self._changes(ids, inside, alphas)
        self.elbow, self._told = ids[trace.inside[min(sound, count - 1)]], ids[inside[-1]]
        self.alpha[ids] = trace.alphas[sound]
        self.F += change[-1] @ self.K[moved] + (trace.offsets[sound] - self.offset)
        self.offset, self.margin = float(trace.offsets[sound]), float(margins[-1])
        if sound == count:
            self._missed = self._missed[:0]
        self._settle()
        return Stretch(margins, trace.offsets[: sound + 1], inside.sum(axis=1), ids[places],
                       alphas[rows, places], moves[rows, places], changes, free)  # fmt: skip

    def _changes(self, ids: Ids, inside: NDArray, alphas: Floats) -> tuple[Ids, Ids, NDArray[np.int64]]:
        before = np.vstack([np.isin(ids, self._told), inside[:-1]])
        event, place = np.nonzero(inside != before)
        left = np.where(inside[event, place], -1, np.round(alphas[event, place]))
        return event, ids[place], left.astype(np.int64)

    def _free(self, ids: Ids, alphas: Floats, inside: NDArray, moves: Floats, change: Floats, moved: Ids) \
            -> list[tuple[int, Middle]]:  # fmt: skip
        """Events of which all weights rest at 0 or 1."""
        inner = (alphas > BOUND) & (alphas < 1 - BOUND)
        free = np.flatnonzero(~(inside & (inner | (np.abs(moves) > BOUND))).any(axis=1))
        found, alpha, w = [], self.alpha.copy(), self.F - self.offset
        for event in free:
            alpha[ids] = alphas[event]
            found.append((int(event), Middle.of(self.y, alpha, w + change[event] @ self.K[moved])))
        return found
