"""The compiled event loop of regularization paths over the pairs of a graph.

See `preflearn.path.ranking` and `preflearn.path.binary` for the problems. The loop
updates the scores g = lambda f of the n items. An event needs one row of length n for
each pair on the margin, however many pairs there are. Pairs that are far from the
margin are not watched. As long as f differs from its start by less than `reach`, up to
a constant, no pair that was farther away has reached the margin. When f differs by
more, the loop stops.

References
----------
.. [Murty1974] K. G. Murty, "Note on a Bard-type scheme for solving the complementarity
   problem", Opsearch 11, pp. 123-130, 1974.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.compilation import njit, njit_inner, njit_inner_sums
from preflearn.core.gram import combine_into
from preflearn.core.validation import Floats, Ids
from preflearn.path.graph import BOUND_TOL
from preflearn.path.margin_set import add_pair, remove_pair, solve

# Reasons for stopping, see `follow_events`.
CONTINUES = 0
ENDED = 1
QUIET = 2
CALM = 3
SCALED = 4
REACHED = 5
FULL = 6
LOST = 7
EMPTY = 8
# an event where rounding errors of margins may exceed this ends the path
MARGIN_TOL = 1e-9
ON_MARGIN = 1e-11  # distance that counts as on the margin, relative to lambda
# g is recomputed after lambda has decreased to this fraction without events. If
# rounding errors require it, g is recomputed earlier, at a fraction of at most the
# second number.
_REFRESH_FRACTION = 0.1
_MAX_REFRESH_FRACTION = 0.99
_ROUNDING_SAFETY = 0.999
# if a step leaves less than this fraction of the remaining way, it goes to the end
_END_TOL = 1e-12
_SLOPE_TOL = 1e-10  # smaller slopes are rounding errors
# rounding error of a slope, relative to the largest Gram matrix entry times the moves
_SLOPE_EPS = 4e-16
# of violations that differ by less the first is chosen, not the one that rounding
# favors
_TIE_TOL = 1e-6
# if a pair that depends on the margin set leaves it faster, rounding errors dominate
_MAX_DEPARTURE = 1e-6
# Pivots at one event before the rule against cycles applies, plus four per pair on the
# margin. Ten times as many pivots mean that rounding errors dominate.
_PIVOTS_BEFORE_RULE = 20
_MAX_PIVOTS_FACTOR = 10
# changes of the margin set per event, which limits the length of the log
_CHANGES_PER_EVENT = 8
# Typed variables, since compiled code would be specialized to the value of a literal.
_ZERO = np.int64(0)
_ENTERED = np.int64(-1)


class EventRule(NamedTuple):
    """Rates of change per unit of time, and tolerances for rounding errors.

    Time is lambda. The margin equals lambda too, unless it is fixed at 0.
    """

    margin_rate: float  # 1, or 0 if the margin is fixed
    weight_rate: float  # rate of the signed sum of the weights
    slope_unit: float  # unit of slopes, and of scores if the margin is fixed
    # rounding errors are compared with the maximum of this score size and lambda
    score_size: float
    # tolerance of margins, in these units, until the first event; then `MARGIN_TOL`
    tolerance: float


class SegmentLimits(NamedTuple):
    """Limits up to which the watched pairs are followed."""

    reach: float  # change of f up to which no other pair reaches the margin
    end: float  # smallest lambda
    rounding: float  # rounding error of g
    inside: int  # number of pairs inside the margin that are not watched


class WatchedPairs(NamedTuple):
    """The watched pairs, their weights, and their distances from the margin.

    The side is 0 in the margin set, 1 at weight 0, -1 at the bound. Gaps are distances
    from the margin in terms of g, positive on the right side. `closing` is the
    decrease of a gap per unit decrease of lambda.
    """

    ids: NDArray[np.int32]  # (w,)
    first: NDArray[np.uint32]  # (w,)
    second: NDArray[np.uint32]  # (w,)
    bound: Floats  # (w,)
    alpha: Floats  # (w,)
    side: Floats  # (w,)
    gap: Floats  # (w,)
    closing: Floats  # (w,)


class EventLog(NamedTuple):
    """The events of a segment, whose piece k begins at knot k.

    A change (k, pair, weight) of the margin set happens at the start of piece k. The
    weight is -1 if the pair entered, 0 if it left at 0, and 1 if it left at its bound.
    """

    knots: Floats  # (events + 1,)
    changes: Ids  # (capacity, 3)
    used: Ids  # (2,): numbers of pieces and changes in use


def new_log(events: int) -> EventLog:
    """Return an empty log with room for this number of events."""
    capacity = _CHANGES_PER_EVENT * (events + _PIVOTS_BEFORE_RULE)
    return EventLog(
        np.zeros(events + 1),
        np.empty((capacity, 3), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@njit
def follow_events(graph, pairs, margin_set, g, log, rule, lam, limits):
    """Follow the watched pairs from lambda down to the end, or until the log is full.

    The pieces are written to the log. The function returns the reason for stopping:

    - ENDED: the end was reached
    - QUIET: no event is left, but the end is far away
    - CALM: lambda of the next event is so small that scores may become too small
      compared with rounding errors
    - SCALED: no pair is inside the margin any more, so f is constant and weights are
      proportional to lambda
    - REACHED: pairs that are not watched might reach the margin
    - FULL: the margin set or the log is full
    - LOST: rounding errors dominate
    - EMPTY: no pair is left whose weight could change the signed sum
    - CONTINUES: the log is full, or rounding errors require that g is recomputed
    """
    f_start = np.empty(len(g))
    for j in range(len(g)):
        f_start[j] = g[j] / lam
    rounding = limits.rounding
    _update_directions(graph, margin_set, rule)
    # size of f; as lambda decreases, scores grow at most about as fast
    largest = max(1.0, rule.score_size / lam)
    tolerated = rule.tolerance * largest * lam
    fraction = max(_REFRESH_FRACTION, min(rounding / tolerated, _MAX_REFRESH_FRACTION))
    least = lam * fraction
    log.used[1] = 0
    log.knots[0] = lam
    for k in range(len(pairs.ids)):
        margin = g[pairs.first[k]] - g[pairs.second[k]]
        pairs.gap[k] = pairs.side[k] * (margin - rule.margin_rate * lam)
    tolerance = rule.tolerance
    for piece in range(len(log.knots) - 1):
        log.used[0] = piece
        scale = rule.slope_unit
        if rule.margin_rate > 0:
            scale = lam
        near = max(ON_MARGIN * scale, rounding)
        if rounding > _ROUNDING_SAFETY * tolerance * largest * lam:
            return LOST if piece == 0 else CONTINUES
        tolerance = MARGIN_TOL
        status = _pivot(graph, pairs, margin_set, log, rule, lam, near, limits.inside)
        if status != CONTINUES:
            return status
        left = lam - limits.end
        step = _step_to_event(pairs, margin_set, rule, near, left)
        ended = step >= left * (1 - _END_TOL)
        stop = max(limits.end, least)
        short = ended or lam - step < stop
        if short:
            step = lam - stop
        if lam - step <= 0:
            return REACHED
        moved = _score_range(g, margin_set.dg, f_start, step, 1 / (lam - step))
        if moved >= limits.reach:
            return REACHED
        lam = stop if short else lam - step
        _take_step(pairs, margin_set, g, step)
        log.knots[piece + 1] = lam
        log.used[0] = piece + 1
        if ended:
            return ENDED if limits.end >= least else QUIET
        if short:
            return CALM
    return CONTINUES


@njit_inner
def _pivot(graph, pairs, margin_set, log, rule, lam, near, inside):
    """Find the margin set and its directions by pivots among pairs on the margin."""
    gram = margin_set.gram
    resting = np.empty(len(pairs.ids), dtype=np.int64)
    n = _ZERO
    for k in range(len(pairs.ids)):
        if pairs.gap[k] <= near and pairs.side[k] != 0:
            resting[n] = k
            n += 1
        inside += pairs.gap[k] > near and pairs.side[k] < 0
    # pairs that depend linearly on the margin set
    dependent = np.zeros(n + gram.size[0], dtype=np.bool_)
    limit = _PIVOTS_BEFORE_RULE + 4 * len(dependent)
    for count in range(_MAX_PIVOTS_FACTOR * limit):
        choice, violation = _largest_violation(
            graph, pairs, margin_set, rule, resting[:n], dependent, lam, count > limit
        )
        if choice < 0:
            return CONTINUES if inside > 0 else SCALED
        if log.used[1] == len(log.changes):
            return FULL
        if choice >= n:
            k = gram.places[choice - n]
            remove_pair(margin_set, choice - n)
            pairs.gap[k] = 0
            if pairs.alpha[k] > 0.5 * pairs.bound[k]:
                pairs.alpha[k] = pairs.bound[k]
                pairs.side[k] = -1
                _log_change(log, pairs.ids[k], 1)
            else:
                pairs.alpha[k] = 0
                pairs.side[k] = 1
                _log_change(log, pairs.ids[k], 0)
            if gram.size[0] == 0 and rule.weight_rate != 0:
                return EMPTY
            resting[n] = k
            dependent[n] = False
            n += 1
            _update_directions(graph, margin_set, rule)
            continue
        if gram.size[0] == len(gram.places):
            return FULL
        k = resting[choice]
        if add_pair(
            graph, pairs.first, pairs.second, margin_set, k, -rule.margin_rate, 0.0
        ):
            pairs.side[k] = 0
            pairs.gap[k] = 0
            _log_change(log, pairs.ids[k], _ENTERED)
            n -= 1
            resting[choice] = resting[n]
            for c in range(len(dependent)):
                dependent[c] = False
            _update_directions(graph, margin_set, rule)
        else:
            dependent[choice] = True
            if violation > _MAX_DEPARTURE:
                return LOST
    return LOST


@njit_inner
def _log_change(log, pair, weight):
    k = log.used[1]
    log.changes[k, 0] = log.used[0]
    log.changes[k, 1] = pair
    log.changes[k, 2] = weight
    log.used[1] += 1


@njit_inner
def _update_directions(graph, margin_set, rule):
    """Compute the changes of the weights and of g per unit decrease of lambda."""
    n = margin_set.gram.size[0]
    total = 0.0
    moves = margin_set.moves
    shift = solve(margin_set.gram, moves, rule.weight_rate, graph.tau)
    combine_into(margin_set.dg, margin_set.fixed_rows, margin_set.slots, moves[:n])
    for k in range(n):
        total += abs(moves[k])
    if graph.tau > 0:
        margin_set.dg[-1] = -shift
    rounding = _SLOPE_EPS * graph.largest * total
    margin_set.slope_error[0] = _SLOPE_TOL * rule.slope_unit + rounding


@njit_inner
def _closing(pairs, dg, rule, k):
    """Return the decrease of a pair's gap per unit decrease of lambda."""
    slope = dg[pairs.first[k]] - dg[pairs.second[k]]
    return -pairs.side[k] * (slope + rule.margin_rate)


@njit_inner
def _largest_violation(
    graph, pairs, margin_set, rule, resting, dependent, lam, by_index
):
    """Return the position of the pair that violates the direction conditions most.

    Positions from len(resting) on refer to the margin set; -1 means that there is none.

    After many pivots the violating pair with the smallest index is chosen. Choosing the
    largest violation may lead to a cycle, choosing the smallest index does not
    ([Murty1974]_, for P-matrices, which include positive definite ones).
    """
    choice = -1
    least = len(pairs.ids)
    largest = 0.0
    n = len(resting)
    movable = margin_set.gram.size[0]
    # With bias the last pair in the set determines the free score; its weight is fixed.
    if movable == 1 and graph.tau > 0 and rule.weight_rate == 0:
        movable = 0
    for c in range(n + movable):
        violation = 0.0
        if c < n:
            k = resting[c]
            if not dependent[c]:
                closing = _closing(pairs, margin_set.dg, rule, k)
                if closing > margin_set.slope_error[0]:
                    violation = closing / rule.slope_unit
        else:
            k = margin_set.gram.places[c - n]
            outward = 0.0
            if pairs.alpha[k] <= BOUND_TOL:
                outward = -lam * margin_set.moves[c - n]
            elif pairs.alpha[k] >= pairs.bound[k] - BOUND_TOL:
                outward = lam * margin_set.moves[c - n]
            if outward > BOUND_TOL:
                violation = outward
        better = violation > largest * (1 + _TIE_TOL)
        if by_index:
            better = violation > 0 and k < least
        if better:
            choice = c
            least = k
            largest = violation
    return choice, largest


@njit_inner
def _step_to_event(pairs, margin_set, rule, near, left):
    """Return the decrease of lambda until the next event, limited to `left`."""
    step = left
    gram = margin_set.gram
    for k in range(gram.size[0]):
        place = gram.places[k]
        move = margin_set.moves[k]
        if abs(move) * left > BOUND_TOL:
            room = pairs.alpha[place]
            if move > 0:
                room = pairs.bound[place] - room
            step = min(step, room / abs(move))
    for k in range(len(pairs.ids)):
        gap = pairs.gap[k]
        closing = _closing(pairs, margin_set.dg, rule, k)
        pairs.closing[k] = closing
        if gap < step * closing and closing > margin_set.slope_error[0] and gap > near:
            step = gap / closing
    return max(step, 0.0)


@njit_inner_sums
def _score_range(g, dg, f_start, step, inverse):
    """Return the range of the changes of the scores f since the start."""
    low = high = (g[0] + step * dg[0]) * inverse - f_start[0]
    for j in range(1, len(f_start)):
        moved = (g[j] + step * dg[j]) * inverse - f_start[j]
        low = min(low, moved)
        high = max(high, moved)
    return high - low


@njit_inner
def _take_step(pairs, margin_set, g, step):
    gram = margin_set.gram
    for k in range(gram.size[0]):
        place = gram.places[k]
        weight = max(pairs.alpha[place] + step * margin_set.moves[k], 0.0)
        pairs.alpha[place] = min(weight, pairs.bound[place])
    for k in range(len(pairs.gap)):
        pairs.gap[k] -= step * pairs.closing[k]
    for j in range(len(g)):
        g[j] += step * margin_set.dg[j]


@njit
def pairs_near_margin(graph, side, g, lam, reach, rounding):
    """Return the pairs on the margin, and those within `reach` of it, measured in f.

    Also return how many of these pairs are on the margin, how many other pairs are
    inside it, and the largest violation of g.
    """
    ids = np.empty(len(side), dtype=np.int32)
    n = 0
    n_on = 0
    n_inside = 0
    worst = 0.0
    near = 2 * max(ON_MARGIN * lam, rounding)
    limit = max(reach * lam, near)
    for pair in range(len(side)):
        gap = side[pair] * (g[graph.first[pair]] - g[graph.second[pair]] - lam)
        if gap <= limit:  # also for pairs on the margin, whose gap is 0
            ids[n] = pair
            n += 1
            n_on += gap <= near
            worst = max(worst, -gap)
        else:
            n_inside += side[pair] < 0
    return ids[:n].copy(), n_on, n_inside, worst
