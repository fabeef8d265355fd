"""Computation of a path from large to small lambda, segment by segment.

`preflearn.path.graph_events` follows the pairs near the margin through a segment of
events. Between two segments all other pairs are checked, and the scores of the items
are recomputed from the weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.gram import combine
from preflearn.core.validation import Floats, Ids
from preflearn.path.graph import (
    BOUND_TOL,
    PairGraph,
    add_adjoint,
    item_coefficients,
)
from preflearn.path.graph_events import (
    CALM,
    ENDED,
    LOST,
    MARGIN_TOL,
    QUIET,
    REACHED,
    SCALED,
    EventLog,
    EventRule,
    SegmentLimits,
    WatchedPairs,
    follow_events,
    new_log,
    pairs_near_margin,
)
from preflearn.path.margin_set import empty_margin_set, fill, solve

# events in one segment; with bias, `select` takes one matrix product per segment
_EVENTS = 400
_EVENTS_WITH_BIAS = 200
_INITIAL_CAPACITY = 50  # pairs in the margin set before its arrays grow
_INITIAL_REACH = 0.01  # reach of the first segment
_ALL_WATCHED = 1000  # up to this number of pairs, all are watched
# events below this fraction of the first breakpoint are rounding errors
MIN_LAMBDA_RATIO = 1e-9
# smaller errors of margins, relative to the largest g, are not corrected
_MARGIN_ERROR = 1e-12
# larger violations, relative to the largest score minus the free score, end the path
_MAX_VIOLATION = 1e-8
_UNIT_ROUNDOFF = 1.1e-16
# Costs in nanoseconds, from which the number of watched pairs is chosen: to check a
# pair between segments, to watch a pair during an event, and per entry of the Gram
# matrix.
_CHECK_COST = 1.6
_WATCH_COST = 4.0
_ENTRY_COST = 0.4
# allowed rounding errors of margins with bias after the last event
_FINAL_MARGIN_TOL = 2e-7
_FALLING_LAMBDA = EventRule(1.0, 0.0, 1.0, 0.0, MARGIN_TOL)


class PathSegment(NamedTuple):
    """Part of a path, whose piece k goes from knot k down to knot k + 1."""

    knots: Floats  # (pieces + 1,), decreasing
    # (c, 3): piece, pair, and its weight: 0, 1 for its bound, or -1 if it enters
    changes: Ids
    pairs: Ids  # pairs on the margin at the first knot
    weights: Floats  # weights of these pairs at the first knot

    @classmethod
    def empty(cls, lam: float) -> PathSegment:
        """Return a segment without pieces at this lambda."""
        ids = np.zeros(0, dtype=np.int64)
        return cls(np.array([lam]), ids.reshape(0, 3), ids, np.zeros(0))


class WeightPath(NamedTuple):
    """Weights of all pairs for every lambda down to the end of the path."""

    start: Floats  # (m,): all weights at the first knot and above
    segments: list[PathSegment]  # each segment begins where the previous one ends
    # between the last knot and this lambda f is constant, and weights are proportional
    # to lambda
    end: float

    @property
    def last_knot(self) -> float:
        return self.segments[-1].knots[-1]


def constant_path(alpha: Floats, end: float) -> WeightPath:
    """Return a path whose weights are constant down to this lambda."""
    return WeightPath(alpha, [PathSegment.empty(end)], end)


class PathFollower:
    """Follows the weights along a path, starting from weights at 0 or at their bounds."""

    def __init__(self, graph: PairGraph, alpha: Floats):
        m = len(graph.first)
        n = graph.items
        self._graph = graph
        self._has_bias = graph.tau > 0
        self.alpha = alpha
        self.g = np.zeros(n)
        self._margin_set = empty_margin_set(_INITIAL_CAPACITY, n)
        self._reach = _INITIAL_REACH
        if m <= _ALL_WATCHED:
            self._reach = np.inf
        self._rule = _FALLING_LAMBDA
        self._events = _EVENTS_WITH_BIAS if self._has_bias else _EVENTS
        self.set_margin(np.zeros(0, dtype=np.int64))
        self._recompute_scores()
        self.size = self._rounding / _UNIT_ROUNDOFF

    def set_margin(self, pairs: Ids) -> None:
        """Set the pairs on the margin, whose weights may change."""
        self.on_margin = pairs
        self._side = np.where(self.alpha > 0.5, -1.0, 1.0)
        self._side[pairs] = 0.0
        resting = np.where(self._side == 0, 0.0, self.alpha)
        self._resting = item_coefficients(self._graph, resting)

    def grow_sum(self, pairs: Ids, total: float, sign: float) -> None:
        """Raise the weight sum of some pairs from 0 to `total`, at minimum norm of f.

        The pairs all have the same sign. Each pair stays on the side of a zero margin
        that its weight requires.

        Raises
        ------
        ArithmeticError
            If rounding errors leave the next step undetermined.
        """
        self._rule = EventRule(0.0, sign, self._graph.tau, np.inf, MARGIN_TOL)
        self.lam = total + 1.0
        ids = pairs.astype(np.int32)
        status = 0
        moved = self._events
        for _ in range(self._max_segments()):
            if moved >= self._events:
                self._recompute_scores()
                self._correct_margins()
                moved = 0
            # move the free score until the next pair can increase its weight
            if len(self.on_margin) == 0:
                gain = np.where(self.alpha[pairs] > 0.5, np.inf, sign * self.g[pairs])
                self.set_margin(pairs[[np.argmin(gain)]])
                self.g[-1] = self.g[self.on_margin[0]]
            limits = SegmentLimits(np.inf, 1.0, self._rounding, 1)
            log, status = self._follow_pairs(ids, self._events - moved, limits)
            moved += max(log.used[0], 1)
            if status in (ENDED, LOST):
                break
        if status != ENDED:
            raise ArithmeticError(
                "rounding errors prevent a solution at large lambda; rescale K, or remove "
                "nearly equal points"
            )
        self._recompute_scores()
        self._correct_margins()
        self._rule = _FALLING_LAMBDA

    def follow(
        self, lam: float, lambda_min: float, max_events: float = np.inf
    ) -> tuple[WeightPath, str]:
        """Return the path of the weights from the first breakpoint on, and its status."""
        self.lam = lam
        start = self.alpha.copy()
        segments = [PathSegment.empty(lam)]
        n_events = 0
        end = max(lambda_min, MIN_LAMBDA_RATIO * lam)
        before = 0
        for _ in range(self._max_segments()):
            events = int(min(self._events, max_events - n_events))
            segment, status = self._follow_segment(end, events, before)
            if segment is not None:
                segments.append(segment)
                n_events += len(segment.knots) - 1
            path = WeightPath(start, segments, self.lam)
            if status == LOST:
                if before == QUIET and lambda_min == 0:
                    return path, "complete"
                return path, "rounding"
            if status == ENDED:
                return path, "complete"
            if status == SCALED:
                return path._replace(end=lambda_min), "complete"
            if n_events == max_events:
                return path, "max_events"
            before = status
        raise ArithmeticError(
            f"the path did not end within {n_events} events and stopped at lambda = "
            f"{self.lam}; pass a larger lambda_min"
        )

    def _max_segments(self) -> int:
        """Return a number of segments that no problem of this size should need."""
        return 1000 + 100 * len(self.alpha)

    def _follow_segment(
        self, end: float, events: int, before: int
    ) -> tuple[PathSegment | None, int]:
        """Follow some events; return the segment and the status of `follow_events`.

        The segment is None if the status is LOST: g violates the optimality conditions.
        """
        graph = self._graph
        n = graph.items
        self._recompute_scores()
        error = self._correct_margins()
        if self._has_bias:
            size = float(np.abs(self.g[:-1] - self.g[-1]).max())
            tolerance = _FINAL_MARGIN_TOL if before in (QUIET, CALM) else MARGIN_TOL
            self._rule = _FALLING_LAMBDA._replace(score_size=size, tolerance=tolerance)
        ids, n_on, n_inside, worst = pairs_near_margin(
            graph, self._side, self.g, self.lam, self._reach, self._rounding
        )
        if max(worst, error) > max(
            MARGIN_TOL * self.lam,
            _MAX_VIOLATION * self._rule.score_size,
            2 * self._rounding,
        ):
            return None, LOST
        pairs = self.on_margin
        weights = self.alpha[pairs]
        limits = SegmentLimits(self._reach, end, self._rounding, n_inside)
        log, status = self._follow_pairs(ids, events, limits)
        changes = log.changes[: log.used[1]]
        # If the next event is far away, watch all pairs.
        if status == REACHED and log.used[0] == 0:
            ids = np.arange(len(self._side), dtype=np.int32)
            limits = SegmentLimits(np.inf, end, self._rounding, 0)
            log, status = self._follow_pairs(ids, 1, limits)
            changes = np.vstack([changes, log.changes[: log.used[1]]])
        elif np.isfinite(self._reach):
            # Balance the costs between segments and within segments.
            effort = (_CHECK_COST * len(self._side) + _ENTRY_COST * n * n) / (
                _WATCH_COST * (len(ids) - n_on + 1) * max(log.used[0], 1)
            )
            self._reach *= min(2.0, max(0.5, effort**0.5))
        knots = log.knots[: log.used[0] + 1].copy()
        return PathSegment(knots, changes.copy(), pairs, weights), status

    def _follow_pairs(
        self, ids: NDArray[np.int32], events: int, limits: SegmentLimits
    ) -> tuple[EventLog, int]:
        """Follow these pairs; return the log and the status of `follow_events`."""
        graph = self._graph
        margin_set = self._margin_set
        log = new_log(events)
        pairs = WatchedPairs(
            ids,
            graph.first[ids],
            graph.second[ids],
            graph.bound[ids],
            self.alpha[ids],
            self._side[ids],
            *np.zeros((2, len(ids))),
        )
        # Weights of pairs off the margin are integers, so these sums are exact.
        off = pairs.side != 0
        add_adjoint(self._resting, pairs, off, -pairs.alpha[off])
        places = np.searchsorted(ids, self.on_margin)
        values = np.full(len(self.on_margin), -self._rule.margin_rate)
        fill(graph, pairs.first, pairs.second, margin_set, places, values)
        status = follow_events(
            graph, pairs, margin_set, self.g, log, self._rule, self.lam, limits
        )
        off = pairs.side != 0
        add_adjoint(self._resting, pairs, off, pairs.alpha[off])
        self.alpha[ids] = pairs.alpha
        self._side[ids] = pairs.side
        size = margin_set.gram.size[0]
        self.on_margin = ids[margin_set.gram.places[:size]].astype(np.int64)
        if size == len(margin_set.rows):
            self._margin_set = empty_margin_set(2 * size, graph.items)
        self.lam = float(log.knots[log.used[0]])
        return log, status

    def _recompute_scores(self) -> None:
        """Recompute g, except for a free score, and bound its rounding errors."""
        graph = self._graph
        on_margin = self.alpha[self.on_margin]
        q = self._resting.copy()  # B'alpha
        add_adjoint(q, graph, self.on_margin, on_margin)
        self._excess = float(q[-1])
        q = q[: len(graph.K)]
        self.g[: len(q)] = combine(graph.K, np.flatnonzero(q), q[q != 0])
        # Without bias, weights inside their bounds may cancel in B'alpha; with bias,
        # none do.
        inner = 0.0 if self._has_bias else float(on_margin.sum())
        total = float(np.abs(q).sum()) + inner
        self._rounding = _UNIT_ROUNDOFF * total * graph.largest

    def _correct_margins(self) -> float:
        """Correct the rounding errors of the margin set and of the signed weight sum.

        The pairs are moved back to the margin, and the sum to 0.

        If the set is ill-conditioned, a tiny error may require weights beyond their
        bounds; the correction is then limited by the bounds. The remaining error is
        returned.
        """
        graph = self._graph
        rule = self._rule
        alpha = self.alpha[self.on_margin]
        inner = (alpha > BOUND_TOL) & (alpha < graph.bound[self.on_margin] - BOUND_TOL)
        free = self.on_margin[inner]
        margin = rule.margin_rate * self.lam
        error = margin - (self.g[graph.first[free]] - self.g[graph.second[free]])
        total = 0.0
        if self._has_bias and rule.weight_rate == 0:
            total = self._excess
        wrong = max(float(np.abs(error).max(initial=0.0)), abs(total))
        size = max(margin, float(np.abs(self.g).max()))
        if len(free) == 0 or wrong <= _MARGIN_ERROR * size:
            return wrong
        margin_set = empty_margin_set(len(free), graph.items)
        delta = error.copy()
        fill(graph, graph.first, graph.second, margin_set, free, error)
        shift = solve(margin_set.gram, delta, total, graph.tau)
        weight = self.alpha[free]
        bound = graph.bound[free]
        room = np.where(delta > 0, bound - weight, weight) + BOUND_TOL
        fraction = 1 / float(np.max(np.abs(delta) / room, initial=1.0))
        self.g[-1] -= fraction * shift
        self.alpha[free] = np.clip(weight + fraction * delta, 0.0, bound)
        self._recompute_scores()
        return (1 - fraction) * wrong
