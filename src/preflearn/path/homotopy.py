"""Piecewise linear solutions of a parametric quadratic program.

Weights alpha in [0, 1] with signs y and F = K (y alpha) + linear + offset are kept optimal while time runs:

    alpha_i = 0 and y_i F_i >= margin,   alpha_i = 1 and y_i F_i <= margin,   y_i F_i = margin,

where the margin falls at the rate `drop`, sum(y alpha) grows at the rate `inflow`, and the offset is its
multiplier. Between two events everything is linear in time. At an event the directions solve a
complementarity problem of the points on the margin, by pivots: it says what enters and leaves, however many
points arrive at once.

K is an operator (`preflearn.ground.gram.Gram`). Few points come near the margin during some eighty events, so
only these are watched (`preflearn.path.events`), on their block of K. Afterwards one block gives F of the
others at these events. (Most are too far away to be looked at: F moves by no more than the norm of the point
times that of the move of w.) Since F is linear in between, this proves that no other point crossed the
margin. If one did, time goes back to the event before, and it is watched too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids
from preflearn.ground.gram import Gram, fixed
from preflearn.path.elbow import Elbow, moved, new_elbow, solve
from preflearn.path.events import (
    BOUND,
    EMPTY,
    FULL,
    LOST,
    UNSURE,
    Law,
    Trace,
    Watch,
    follow,
    new_trace,
    screen,
)

_EVENTS = 80  # in one stretch
_MANY_EVENTS = 250  # in one stretch where everybody is watched
_FEW = 1000  # points who are all watched
_WATCHED = 200  # beside twice the elbow
_ROOM = 50  # of the elbow, for more points
_SETTLED = 1e-12  # relative to the largest F: smaller errors are left alone
_ON_MARGIN = 1e-11  # relative to the margin


class Stretch(NamedTuple):
    """Some events in turn, as the watched points saw them; what event k says holds from margin k to k + 1."""

    margins: Floats  # (events + 1,)
    offsets: Floats  # (events + 1,)
    start: Floats  # (m,): all weights before the first event
    ids: Ids  # (watched,), increasing; nobody else's weight moved
    before: NDArray[np.bool_]  # (watched,): the elbow before the first event
    inside: NDArray[np.bool_]  # (events, watched): the elbow
    alphas: Floats  # (events + 1, watched)
    moves: Floats  # (events, watched): change of the weights per unit of time

    def until(self, count: int) -> Stretch:
        """The first events only."""
        after, during = slice(count + 1), slice(count)
        return self._replace(
            margins=self.margins[after], offsets=self.offsets[after], alphas=self.alphas[after],
            inside=self.inside[during], moves=self.moves[during],
        )  # fmt: skip


class Homotopy:
    """Optimal weights as time runs; `advance` follows them over a stretch of events.

    Parameters
    ----------
    gram : Gram
    y, alpha : ndarray of shape (m,)
        Signs and weights; alpha is changed in place.
    linear : ndarray of shape (m,) or float
    offset, margin, drop, inflow
        See the module.
    elbow : ndarray of int
        Points on the margin whose weights may move; others are found.
    left, spare, least : float
        Time to the end; it is `done` where at most `least` is left. Directions are judged over left + spare;
        where the margin drops, it ends at `spare`.

    Attributes
    ----------
    F : ndarray of shape (m,)
    elbow : ndarray of int
        Empty where no point is left on the margin; whoever goes on chooses one.
    drift : float
        How far from the margin rounding had moved the elbow.
    lost : bool
        Rounding leaves open how to go on.
    """

    def __init__(
        self, gram: Gram, y: Floats, alpha: Floats, margin: float, *, elbow: Ids, left: float,
        spare: float = 0.0, least: float = 0.0, drop: float = 1.0, inflow: float = 0.0,
        offset: float = 0.0, linear: Floats | float = 0.0,
    ):  # fmt: skip
        diagonal = gram.diagonal()
        mean = float(np.mean(diagonal)) or 1.0
        self._norms, self._largest = np.sqrt(np.maximum(diagonal, 0.0)), float(np.abs(diagonal).max())
        self._law = Law(drop, inflow, mean, 1.0 if drop else mean, self._largest, 0.0)
        self._gram, self.y, self.alpha, self._linear = gram, y, alpha, linear
        self.offset, self.margin = offset, margin
        self.left, self._spare, self._least = left, spare, least
        self._missed: Ids = np.zeros(0, dtype=np.int64)  # crossed the margin unwatched
        self._room, self.drift, self.lost = _ROOM, 0.0, False
        self.elbow = self._told = np.sort(elbow)
        self._kept = self._missed, np.zeros((0, 0))  # who was watched last, if few events have passed since
        self._carried: tuple[Ids, Elbow] | None = None
        self._spread()

    @property
    def done(self) -> bool:
        return self.left <= self._least

    def advance(self) -> Stretch:
        """Follow the solution over some events."""
        law = self._law._replace(near=self._near())
        while True:
            ids, watch, trace = self._watch()
            start = self.offset, self.margin, self.left, self._spare, self._least
            count, left, status = follow(law, watch, trace, *start)
            self._carried = None
            if status == FULL:
                self._room *= 2
            if status == FULL and count == 0:
                continue
            sound = self._sound(law, ids, watch.block, trace, count)
            if sound == count or sound > 0:
                break
        if sound < count:
            left, status = self.left - float(trace.times[sound]), 0
        return self._commit(ids, watch.elbow, trace, count, sound, left, status)

    def refresh(self) -> float:
        """Compute F anew and put the elbow on the margin; return the violation before."""
        self._spread()
        self._carried = None
        excess, side = self.y * self.F - self.margin, self._side()
        violation = np.where(side == 0, np.abs(excess), -side * excess).max()
        self._settle()
        return float(violation)

    def _spread(self) -> None:
        self.F = self._gram.times(self.y * self.alpha) + self._linear + self.offset

    def _settle(self) -> None:
        """Remove what rounding left of the distance of the elbow from the margin, and of the sum of weights.

        Tiny errors stay: an ill-conditioned elbow would turn them into moves of weights past their bounds.
        """
        alpha, law = self.alpha[self.elbow], self._law
        index = self.elbow[(alpha > BOUND) & (alpha < 1 - BOUND)]
        y = self.y[index]
        error = y * self.margin - self.F[index]
        total = 0.0 if law.inflow else -float(np.sum(self.y * self.alpha))
        self.drift = float(np.abs(error).max(initial=0.0))
        if max(self.drift, abs(total)) <= _SETTLED * max(self.margin, float(np.abs(self.F).max())):
            return
        block = fixed(self._gram.block(index, index))
        elbow, delta = new_elbow(block, np.arange(len(index)), error, len(index), law.tau), error.copy()
        shift = solve(elbow, delta, total, law.tau)
        alpha, before = np.clip(self.alpha[index] + y * delta, 0.0, 1.0), self.alpha.copy()
        self.alpha[index] = alpha
        self.F += self._gram.times(self.y * (self.alpha - before)) + shift
        self.offset += shift

    def _side(self) -> Floats:
        side = np.where(self.alpha > 0.5, -1.0, 1.0)
        side[self.elbow] = 0.0
        return side

    def _near(self) -> float:
        """The distance from the margin that counts as none: never below the rounding of F."""
        rounding = 1e-16 * self._largest * float(self.alpha.sum())
        return max(_ON_MARGIN * (self.margin if self._law.drop else self._law.unit), rounding)

    def _watch(self) -> tuple[Ids, Watch, Trace]:
        """The elbow, the points nearest to the margin, and those that were missed; and room for a trace."""
        side, limit = self._side(), self._near()
        gaps = side * (self.y * self.F - self.margin)
        gaps[self._missed] = gaps[self._told] = gaps[self.elbow] = 0.0
        number = _WATCHED + 2 * len(self.elbow)
        if len(gaps) <= max(_FEW, 1.5 * number):
            ids = np.arange(len(gaps))
        else:
            number = min(len(gaps), max(number, int(np.count_nonzero(gaps <= limit))))
            ids = np.sort(np.argpartition(gaps, number - 1)[:number])
        known = self._kept[0]
        if len(known) == len(gaps) or (len(known) and np.isin(ids[gaps[ids] <= limit], known).all()):
            ids, block = self._kept
        else:
            block = fixed(self._gram.block(ids, ids))
        self._kept, places = (ids, block), np.searchsorted(ids, self.elbow)
        room, values = min(len(ids), len(places) + self._room), -self._law.drop * self.y[self.elbow]
        if self._carried is None:
            elbow = new_elbow(block, places, values, room, self._law.tau)
        else:
            known, elbow = self._carried
            elbow = moved(elbow, np.searchsorted(ids, known[elbow.places[: elbow.size[0]]]), room)
        nothing = np.zeros((2, len(ids)))
        watch = Watch(block, self.y[ids], self.alpha[ids], self.F[ids], side[ids], elbow, *nothing)
        return ids, watch, new_trace(_EVENTS if len(ids) < len(gaps) else _MANY_EVENTS, len(ids))

    def _sound(self, law: Law, ids: Ids, block: Floats, trace: Trace, count: int) -> int:
        """How many of the events stand although not everybody was watched; 0 or less if none does."""
        if len(ids) == len(self.y):
            return count
        change = (trace.alphas[: count + 1] - self.alpha[ids]) * self.y[ids]
        some = change.any(axis=0)
        change, moved = change[:, some], ids[some]
        steps = self._steps(law, block[np.ix_(some, some)], trace, change, moved)
        side = np.where(self.alpha > 0.5, -1.0, 1.0)
        doubtful = screen(self.F - self.offset, self.y, side, self._norms, steps, law.near)
        doubtful[ids] = False
        others = np.flatnonzero(doubtful)
        F = change @ self._gram.block(moved, others)
        F += (self.F - self.offset)[others] + steps[:, 1, None]
        crossed = side[others] * (self.y[others] * F - steps[:, 2, None]) < -law.near
        self._missed = np.union1d(self._missed, others[crossed.any(axis=0)])
        return int(np.argmax(crossed.any(axis=1))) - 1 if crossed.any() else count

    def _steps(self, law: Law, block: Floats, trace: Trace, change: Floats, moved: Ids) -> Floats:
        """What `screen` wants: w after each event as a multiple of w now, up to a remainder of known norm."""
        w = self.F - self.offset
        size = float((self.y * self.alpha) @ w) if law.drop else 0.0  # |w|^2
        along = change @ (w[moved] / size) if size > 0 else np.zeros(len(change))
        moves = np.einsum("ki,ki->k", change @ block, change)
        rounding = 1e-12 * moves + 1e-14 * self._largest * np.abs(change).sum(axis=1) ** 2
        margins = self.margin - law.drop * trace.times[: len(change)]
        radius = np.sqrt(np.maximum(moves - along**2 * size, 0.0) + rounding)
        return np.column_stack([1 + along, trace.offsets[: len(change)], margins, radius])

    def _commit(
        self, ids: Ids, elbow: Elbow, trace: Trace, count: int, sound: int, left: float, status: int
    ) -> Stretch:
        start, before = self.alpha.copy(), np.isin(ids, self._told)
        margins = self.margin - self._law.drop * trace.times[: sound + 1]
        if self._law.drop:
            margins = np.append(np.maximum(margins[:-1], self._spare + left), self._spare + left)
        inside, alphas, offsets = trace.inside[:sound], trace.alphas[: sound + 1], trace.offsets[: sound + 1]
        if sound > 0:
            self.elbow, self._told = ids[trace.inside[min(sound, count - 1)]], ids[inside[-1]]
        if status == EMPTY:
            self.elbow = self.elbow[:0]
        elif len(ids) < len(self.y):
            self._kept = self._kept[0][:0], self._kept[1]  # watch those who are near from here
        self.lost = status in (LOST, UNSURE)
        self.alpha[ids] = alphas[-1]
        self.F += self._gram.times(self.y * (self.alpha - start)) + (offsets[-1] - self.offset)
        self.offset, self.margin, self.left = float(offsets[-1]), float(margins[-1]), left
        self._carried = (ids, elbow) if sound == count and status == 0 else None
        if sound == count:
            self._missed = self._missed[:0]
        self._settle()
        return Stretch(margins, offsets, start, ids, before, inside, alphas, trace.moves[:sound])
