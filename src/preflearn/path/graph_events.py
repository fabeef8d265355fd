"""The event loop of regularization paths over the pairs of a graph, compiled.

See `preflearn.path.ranking` and `preflearn.path.binary` for the problems. All that the
loop moves are the scores g = lambda f of the n items: an event costs one row of length
n for each pair on the margin, however many pairs there are. Pairs that are far from the
margin are not watched: while f differs from f at the start by less than `reach`, up to
a constant, no pair that was further away has come to the margin. Where f differs by
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

# Why the loop stopped; see `follow_events`.
CONTINUES = 0
ENDED = 1
QUIET = 2
CALM = 3
SCALED = 4
REACHED = 5
FULL = 6
LOST = 7
EMPTY = 8
# of margins: an event where the rounding of margins may exceed it ends the path
MARGIN_TOL = 1e-9
ON_MARGIN = 1e-11  # relative to lambda
# After a fall of lambda to this fraction without events g is computed anew; to a larger
# fraction, at most the second one, where rounding demands it.
_REFRESH_FRACTION = 0.1
_MAX_REFRESH_FRACTION = 0.99
_ROUNDING_SAFETY = 0.999
# a step that leaves less than this fraction of the way to the end goes to the end
_END_TOL = 1e-12
_SLOPE_TOL = 1e-10  # slopes below it are rounding
# rounding of a slope, relative to the largest entry of the Gram matrix and the moves
_SLOPE_EPS = 4e-16
# of violations that differ by less, the first counts, or rounding would choose
_TIE_TOL = 1e-6
# a pair that depends on the margin set, and departs from it faster: rounding decides
_MAX_DEPARTURE = 1e-6
# Pivots at one event before the rule against cycles, with four more for each pair on
# the margin; ten times as many mean that rounding has gone wrong.
_PIVOTS_BEFORE_RULE = 20
_MAX_PIVOTS_FACTOR = 10
_CHANGES_PER_EVENT = 8  # of the margin set, for which the log is long enough
# Typed as variables: compiled code would be specialized to the value of a literal.
_ZERO = np.int64(0)
_ENTERED = np.int64(-1)


class EventRule(NamedTuple):
    """What changes while time falls by 1, and when rounding counts.

    Time is lambda, and the margin too, unless the margin rests at 0.
    """

    margin_rate: float  # 1, or 0 where the margin rests
    weight_rate: float  # of the signed sum of the weights
    slope_unit: float  # of slopes, and of scores where the margin rests
    # rounding is compared with the larger one of this size of scores and lambda
    score_size: float
    # of margins in these units down to the first event, `MARGIN_TOL` from there on
    tolerance: float


class SegmentLimits(NamedTuple):
    """Up to where some pairs are followed."""

    reach: float  # change of f up to which no other pair comes to the margin
    end: float  # of lambda
    rounding: float  # of g
    inside: int  # how many pairs that are not watched are inside the margin


class WatchedPairs(NamedTuple):
    """Some pairs, their weights, and how far from the margin they are.

    The side is 0 in the margin set, 1 at weight 0, -1 at the bound; gaps are those of
    g, positive on the right side, and `closing` is what they lose while lambda falls by
    1.
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
    """The events of a segment: piece k holds from knot k on.

    It begins with the changes (k, pair, weight) of the margin set: the weight is -1
    where a pair entered, and where it left 0, or 1 for its bound.
    """

    knots: Floats  # (events + 1,)
    changes: Ids  # (capacity, 3)
    used: Ids  # (2,): the numbers of pieces and changes


def new_log(events: int) -> EventLog:
    """An empty log, with room for so many events."""
    capacity = _CHANGES_PER_EVENT * (events + _PIVOTS_BEFORE_RULE)
    return EventLog(
        np.zeros(events + 1),
        np.empty((capacity, 3), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@njit
def follow_events(graph, pairs, margin_set, g, log, rule, lam, limits):
    """Follow the watched pairs from lambda down to the end, or until the log is full.

    Writes the pieces to the log, and returns why it stopped:

    - ENDED: at the end
    - QUIET: far from the end, though no event comes before it
    - CALM: before the next event, since scores may have become so small that rounding
      is too much compared with them
    - SCALED: no pair is inside the margin any more: f stays, and weights fall as lambda
      does
    - REACHED: other pairs might come to the margin
    - FULL: the margin set or the log is full
    - LOST: rounding decides
    - EMPTY: no pair is left that could take the change of the signed sum
    - CONTINUES: the log is full, or the rounding of g needs a new computation
    """
    f_start = np.empty(len(g))
    for j in range(len(g)):
        f_start[j] = g[j] / lam
    rounding = limits.rounding
    _update_directions(graph, margin_set, rule)
    # of f; as lambda falls, scores grow at most about as fast
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
    # those that depend on the margin set
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
    """Write the changes of the weights and of g while lambda falls by 1."""
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
    """What the gap of a watched pair loses while lambda falls by 1."""
    slope = dg[pairs.first[k]] - dg[pairs.second[k]]
    return -pairs.side[k] * (slope + rule.margin_rate)


@njit_inner
def _largest_violation(
    graph, pairs, margin_set, rule, resting, dependent, lam, by_index
):
    """The resting pair or the pair in the margin set with the worst direction.

    Positions from len(resting) on are those in the margin set; -1: none.

    After many pivots the choice is by the least index of the watched pairs, regardless
    of the size: largest violations may go round in a cycle, the least index does not
    ([Murty1974]_, for P-matrices, and so for positive definite ones).
    """
    choice = -1
    least = len(pairs.ids)
    largest = 0.0
    n = len(resting)
    movable = margin_set.gram.size[0]
    # With bias the last pair in the set pins the free score, and its weight stays.
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
    """How far lambda falls until the next event, at most by what is left."""
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
    """By how much the scores f will have moved against each other since the start."""
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
    """Pairs on the margin, or within this reach of it in terms of f.

    Also how many of these are on it, how many of the others are inside it, and the
    largest violation of g.
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
        if gap <= limit:  # as on the margin, where it is 0
            ids[n] = pair
            n += 1
            n_on += gap <= near
            worst = max(worst, -gap)
        else:
            n_inside += side[pair] < 0
    return ids[:n].copy(), n_on, n_inside, worst
