"""The weights of a path from one lambda down to another, stretch by stretch of events.

`preflearn.path.graph_events` follows the pairs near the margin. Between two of its
stretches all others are looked at again, and the scores of the items are computed anew
from the weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.gram import combine
from preflearn.core.validation import Floats, Ids
from preflearn.path.graph import BOUND, Graph, add, gather, net, new_front, solve
from preflearn.path.graph_events import (
    CALM,
    ENDED,
    LOST,
    QUIET,
    REACHED,
    SCALED,
    TOLERANCE,
    Law,
    Trace,
    Watch,
    follow,
    gaps,
    new_trace,
)

# in one stretch, of pairs and of points, whose stretch is one product in `select`
_EVENTS = 400
_FEWER = 200
_ROOM = 50  # of the elbow at first
_REACH = 0.01  # of the first stretch
_FEW = 1000  # pairs who are all watched
LAST = 1e-9  # what happens below this part of the first breakpoint is rounding
# relative to the largest g: smaller errors of the elbow are left alone
_SETTLED = 1e-12
# relative to the largest score against the free one: violations that end the path
_WORST = 1e-8
_EPS = 1.1e-16  # the rounding of one number
# What decides how many pairs are watched, in nanoseconds: to pass over a pair, to watch
# one for an event.
_PASS = 1.6
_WATCH = 4.0
_SQUARE = 0.4
_BLURRED = 2e-7  # of margins with bias: their rounding where no event comes any more
_FALLING = Law(1.0, 0.0, 1.0, 0.0, TOLERANCE)


class Course(NamedTuple):
    """A path in arrays. Piece k holds from knot k down to knot k + 1.

    Stretch s begins with piece, change and noted weight ``marks[s]``, and with the
    margin set ``pairs[first[s] : first[s + 1]]``, at these weights; the last mark is
    the end.
    """

    start: Floats  # (m,): all weights at the first knot and above
    knots: Floats  # (pieces + 1,)
    # (c, 3): piece, pair, and its weight as a share of its bound, or -1 where it comes
    # in
    changes: Ids
    marks: Ids  # (stretches + 1, 3)
    first: Ids  # (stretches + 1,)
    pairs: Ids
    weights: Floats
    # from the last knot down to it f stays, and the weights fall in proportion to
    # lambda
    end: float
    # of points, the weights of the margin set where each piece ends; of pairs (0,)
    noted: Floats


def still(alpha: Floats, end: float) -> Course:
    """The course of weights that stay down to this lambda."""
    none = np.zeros(0, dtype=np.int64)
    floats = np.zeros(0)
    changes = none.reshape(0, 3)
    marks = np.zeros((1, 3), dtype=np.int64)
    return Course(
        alpha, np.array([end]), changes, marks, none, none, floats, end, floats
    )


class Walk:
    """Where a path is, and everything that has happened so far; it begins with weights
    of 0 or the bound."""

    def __init__(self, graph: Graph, alpha: Floats):
        m = len(graph.first)
        n = graph.items
        self._graph = graph
        self.alpha = alpha
        self.g = np.zeros(n)
        self._front = new_front(_ROOM, n)
        self._reach = np.inf if m <= _FEW else _REACH
        self._law = _FALLING
        self._events = _FEWER if graph.tau > 0 else _EVENTS
        self.rest(np.zeros(0, dtype=np.int64))
        self._start_at(0.0)
        self._spread()
        self.size = self._rounding / _EPS

    def rest(self, pairs: Ids) -> None:
        """These pairs are on the margin, and their weights may move."""
        self.elbow = pairs
        self._side = np.where(self.alpha > 0.5, -1.0, 1.0)
        self._side[pairs] = 0.0
        self._resting = net(self._graph, np.where(self._side == 0, 0.0, self.alpha))

    def grow(self, pairs: Ids, total: float, sign: float) -> None:
        """Raise the sum of these pairs' weights from 0 to a total, with the least norm
        of f at each sum.

        They are all of one sign, and stay on the side of a margin of 0 that suits their
        weight.

        Raises
        ------
        ArithmeticError
            If rounding leaves open how to go on.
        """
        self._law = Law(0.0, sign, self._graph.tau, np.inf, TOLERANCE)
        self.lam = total + 1.0
        ids = pairs.astype(np.int32)
        why = 0
        moved = self._events
        for _ in range(self._limit()):
            if moved >= self._events:
                self._spread()
                self._settle()
                moved = 0
            # the free score goes to where the next one can take weight
            if len(self.elbow) == 0:
                gain = np.where(self.alpha[pairs] > 0.5, np.inf, sign * self.g[pairs])
                self.rest(pairs[[np.argmin(gain)]])
                self.g[-1] = self.g[self.elbow[0]]
            count, why = self._follow(ids, self._events - moved, np.inf, 1.0, 1)
            moved += max(count, 1)
            if why in (ENDED, LOST):
                break
        if why != ENDED:
            raise ArithmeticError(
                "rounding hides the solution for large lambda; scale K, or remove near-duplicates"
            )
        self._spread()
        self._settle()
        self._law = _FALLING

    def down(
        self, lam: float, lambda_min: float, most: float = np.inf
    ) -> tuple[Course, str]:
        """The course of the weights from the first breakpoint on, and how it ended."""
        self._start_at(lam)
        end = max(lambda_min, LAST * lam)
        before = 0
        for _ in range(self._limit()):
            why = self._advance(
                end, int(min(self._events, most - self._mark[0])), before
            )
            if why == LOST:
                return (
                    self.course(),
                    "complete" if before == QUIET and lambda_min == 0 else "rounding",
                )
            if why == ENDED:
                return self.course(), "complete"
            if why == SCALED:
                return self.course()._replace(end=lambda_min), "complete"
            if self._mark[0] == most:
                return self.course(), "max_events"
            before = why
        raise ArithmeticError(
            f"the path did not end in {self._mark[0]} events; it came to {self.lam}"
        )

    def course(self) -> Course:
        """Everything so far."""
        sizes = [len(elbow) for elbow in self._elbows]
        marks = np.array([*self._marks, self._mark])
        return Course(
            self._start,
            np.concatenate(self._knots),
            np.concatenate(self._changes),
            marks,
            np.cumsum(sizes),
            np.concatenate(self._elbows),
            np.concatenate(self._alphas),
            self.lam,
            np.concatenate(self._weights),
        )

    def _start_at(self, lam: float) -> None:
        self.lam = lam
        self._start = self.alpha.copy()
        self._mark = (0, 0, 0)
        self._knots = [np.array([lam])]
        self._changes = [np.zeros((0, 3), dtype=np.int64)]
        self._marks = list[tuple[int, int, int]]()
        self._elbows = [np.zeros(0, dtype=np.int64)]
        self._alphas = [np.zeros(0)]
        self._weights = [np.zeros(0)]

    def _limit(self) -> int:
        """More stretches than a problem of this size ever takes."""
        return 1000 + 100 * len(self.alpha)

    def _advance(self, end: float, events: int, before: int) -> int:
        """Follow some events; returns what `follow` does."""
        graph = self._graph
        n = self._graph.items
        self._spread()
        left = self._settle()
        if graph.tau > 0:
            size = float(np.abs(self.g[:-1] - self.g[-1]).max())
            tolerance = _BLURRED if before in (QUIET, CALM) else TOLERANCE
            self._law = _FALLING._replace(size=size, tolerance=tolerance)
        ids, on, inside, worst = gaps(
            graph, self._side, self.g, self.lam, self._reach, self._rounding
        )
        if max(worst, left) > max(
            TOLERANCE * self.lam, _WORST * self._law.size, 2 * self._rounding
        ):
            return LOST
        self._marks.append(self._mark)
        self._elbows.append(self.elbow)
        self._alphas.append(self.alpha[self.elbow])
        count, why = self._follow(ids, events, self._reach, end, inside)
        # the next event is far away: look at all pairs for it
        if why == REACHED and count == 0:
            ids = np.arange(len(self._side), dtype=np.int32)
            count, why = self._follow(ids, 1, np.inf, end, 0)
        elif np.isfinite(self._reach):
            effort = (_PASS * len(self._side) + _SQUARE * n * n) / (
                _WATCH * (len(ids) - on + 1) * max(count, 1)
            )
            self._reach *= min(2.0, max(0.5, effort**0.5))
        return why

    def _follow(
        self, ids: NDArray[np.int32], events: int, reach: float, end: float, inside: int
    ) -> tuple[int, int]:
        """Follow these pairs, and note what happens."""
        graph = self._graph
        nothing = np.zeros((2, len(ids)))
        law = self._law
        # Of pairs the weights are made again where they are asked for, by `rerun`, and
        # take no memory.
        trace = new_trace(
            events, events * len(self._front.rows) if graph.tau > 0 else 0
        )
        watch = Watch(
            ids,
            graph.first[ids],
            graph.second[ids],
            graph.bound[ids],
            self.alpha[ids],
            self._side[ids],
            *nothing,
        )
        # of the margin: their weights are whole numbers, so that sums are exact
        off = watch.side != 0
        add(self._resting, watch, off, -watch.alpha[off])
        front = self._front
        values = np.full(len(self.elbow), -law.drop)
        places = np.searchsorted(ids, self.elbow)
        if not np.array_equal(ids[places[places < len(ids)]], self.elbow):
            raise ArithmeticError(
                "a pair on the margin is not among those that are followed"
            )
        gather(graph, watch.first, watch.second, front, places, values)
        count, why = follow(
            graph,
            watch,
            front,
            self.g,
            trace,
            law,
            reach,
            self.lam,
            end,
            self._rounding,
            inside,
        )
        off = watch.side != 0
        add(self._resting, watch, off, watch.alpha[off])
        self.alpha[ids], self._side[ids] = watch.alpha, watch.side
        self.elbow = ids[front.elbow.places[: front.elbow.size[0]]].astype(np.int64)
        if len(self.elbow) == len(self._front.rows):
            self._front = new_front(2 * len(front.rows), graph.items)
        self._note(trace, count)
        return count, why

    def _net(self) -> Floats:
        """B'alpha."""
        q = self._resting.copy()
        add(q, self._graph, self.elbow, self.alpha[self.elbow])
        return q

    def _spread(self) -> None:
        """Compute g anew from the weights, but for a free score, and a bound on its
        rounding."""
        graph = self._graph
        q = self._net()
        self._excess = float(q[-1])
        items = q[: len(graph.K)]
        self.g[: len(items)] = combine(
            graph.K, np.flatnonzero(items), items[items != 0]
        )
        # Of pairs with bias nothing cancels in B'alpha; of others, what is no whole
        # number.
        inner = 0.0 if graph.tau > 0 else float(self.alpha[self.elbow].sum())
        self._rounding = _EPS * (float(np.abs(items).sum()) + inner) * graph.largest

    def _settle(self) -> float:
        """Put the elbow on the margin again, from which rounding has moved it, and the
        signed sum at 0.

        An ill-conditioned elbow may turn a tiny error into moves of weights past their
        bounds: then it goes as far as they allow. Returns what is left of the error.
        """
        graph = self._graph
        alpha = self.alpha[self.elbow]
        law = self._law
        free = self.elbow[(alpha > BOUND) & (alpha < graph.bound[self.elbow] - BOUND)]
        margin = law.drop * self.lam
        error = margin - (self.g[graph.first[free]] - self.g[graph.second[free]])
        total = self._excess if graph.tau > 0 and law.inflow == 0 else 0.0
        wrong = max(float(np.abs(error).max(initial=0.0)), abs(total))
        if len(free) == 0 or wrong <= _SETTLED * max(
            margin, float(np.abs(self.g).max())
        ):
            return wrong
        front = new_front(len(free), graph.items)
        delta = error.copy()
        gather(graph, graph.first, graph.second, front, free, error)
        shift = solve(front.elbow, delta, total, graph.tau)
        weight = self.alpha[free]
        bound = graph.bound[free]
        room = np.where(delta > 0, bound - weight, weight) + BOUND
        share = 1 / float(np.max(np.abs(delta) / room, initial=1.0))
        self.g[-1] -= share * shift
        self.alpha[free] = np.clip(weight + share * delta, 0.0, bound)
        self._spread()
        return (1 - share) * wrong

    def _note(self, trace: Trace, count: int) -> None:
        piece, change, weight = self._mark
        changes = trace.changes[: trace.used[0]].copy()
        changes[:, 0] += piece
        self._knots.append(trace.knots[1 : count + 1].copy())
        self._changes.append(changes)
        self._weights.append(trace.weights[: trace.used[1]].copy())
        self.lam = float(trace.knots[count])
        self._mark = piece + count, change + len(changes), weight + int(trace.used[1])
