"""The event loop of regularization paths over the pairs of a graph, compiled.

See `preflearn.path.ranking` and `preflearn.path.binary` for the problems. All that the
loop moves are the scores g = lambda f of the n items: an event costs one row of length
n for each pair on the margin, however many pairs there are. Pairs that are far from the
margin are not looked at: while f differs from that of the start by less than `reach`,
up to a constant, no pair that was further away has come to the margin. Where it differs
by more, the loop stops.

References
----------
.. [Murty1974] K. G. Murty, "Note on a Bard-type scheme for solving the complementarity
   problem", Opsearch 11, pp. 123-130, 1974.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.compilation import njit, njit_inner, njit_part_sums
from preflearn.core.gram import combine_into
from preflearn.core.validation import Floats, Ids
from preflearn.path.graph import BOUND, admit, dismiss, solve

# Why the loop stopped; see `follow`.
ENDED = 1
QUIET = 2
CALM = 3
SCALED = 4
REACHED = 5
FULL = 6
LOST = 7
EMPTY = 8
# of margins: an event that comes where their rounding may exceed it ends the path
TOLERANCE = 1e-9
ON_MARGIN = 1e-11  # relative to lambda
# of lambda is left after a stretch without events; then g is computed anew
_FALL = 0.1
_MOST = 0.99
_NEARLY = 0.999
_SHORT = 1e-12  # an event so near to the end, in units of what is left, is not followed
_SLOPE = 1e-10  # a slope below it is rounding
# of the largest entry of the Gram matrix: the rounding of a slope, for each unit of
# moves
_EPS = 4e-16
# of violations that differ by less, the first counts, or rounding would choose
_TIE = 1e-6
# a pair that depends on the elbow, and departs from it faster: rounding decides
_DEVIATION = 1e-6
# pivots at one event, and four for each pair on the margin, before the rule against
# cycles
_PATIENCE = 20
_LONGEST = 10  # times these pivots at one event: more, and rounding has gone wrong
# Of a type that says no value, or what is called with it would be compiled for this
# value and for others.
_NONE = np.int64(0)
_CAME = np.int64(-1)
_PIVOTS = 8  # changes of the elbow an event that there is room for


class Law(NamedTuple):
    """What a path follows: rates of its margin and of the signed sum of its weights,
    while time falls by 1.

    Time is lambda, and the margin too, unless the margin rests at 0.
    """

    drop: float  # of the margin: 1, or 0
    inflow: float
    unit: float  # of slopes, and of scores where the margin rests
    # of scores beside which rounding counts as nothing, if it is above lambda
    size: float
    # of margins in these units down to the first event, `TOLERANCE` from there on
    tolerance: float


class Watch(NamedTuple):
    """Some pairs, their weights, and how far from the margin they are.

    The side is 0 in the elbow, 1 at weight 0, -1 at the bound; gaps are those of g,
    positive on the right side, and `closing` is what they lose while lambda falls by 1.
    """

    ids: NDArray[np.int32]  # (w,)
    first: NDArray[np.uint32]  # (w,)
    second: NDArray[np.uint32]  # (w,)
    bound: Floats  # (w,)
    alpha: Floats  # (w,)
    side: Floats  # (w,)
    gap: Floats  # (w,)
    closing: Floats  # (w,)


class Trace(NamedTuple):
    """What happened: from knot k on piece k holds.

    It begins with the changes (k, pair, weight) of the elbow: the weight is -1 where a
    pair came in, and where it left 0, or 1 for its bound.
    """

    knots: Floats  # (events + 1,)
    changes: Ids  # (room, 3)
    used: Ids  # (2,): how many changes there are, and weights
    # of the elbow where each piece ends, in turn; (0,) if they are not wanted
    weights: Floats


def new_trace(events: int, room: int) -> Trace:
    """Room for so many events, and for weights."""
    changes = np.empty((_PIVOTS * (events + _PATIENCE), 3), dtype=np.int64)
    return Trace(
        np.zeros(events + 1), changes, np.zeros(2, dtype=np.int64), np.empty(room)
    )


@njit
def follow(graph, watch, front, g, trace, law, reach, lam, end, rounding, inside):
    """Follow the watched pairs from lambda on, until the trace is full, or down to the
    end.

    `rounding` is that of g, and so many other pairs are inside the margin. Returns the
    number of pieces, and why it stopped before: at the end (ENDED), far from it though
    no event comes before it (QUIET), or before the next event (CALM), since no pair is
    inside the margin any more (SCALED: f stays, and weights fall as lambda does), since
    other pairs might come to the margin (REACHED), for want of room (FULL), since
    rounding decides (LOST), since nobody is left who could take what flows in (EMPTY);
    or 0: the trace is full, or scores may have become so small that rounding is too
    much beside them.
    """
    base = np.empty(len(g))
    slack = _directions(graph, front, law)
    for j in range(len(g)):
        base[j] = g[j] / lam
    # of f; as lambda falls, so do scores, but hardly faster
    largest = max(1.0, law.size / lam)
    least = lam * max(_FALL, min(rounding / (law.tolerance * largest * lam), _MOST))
    trace.used[0], trace.used[1], trace.knots[0] = 0, 0, lam
    for k in range(len(watch.ids)):
        watch.gap[k] = watch.side[k] * (
            g[watch.first[k]] - g[watch.second[k]] - law.drop * lam
        )
    for piece in range(len(trace.knots) - 1):
        near = max(ON_MARGIN * (lam if law.drop > 0 else law.unit), rounding)
        if (
            rounding
            > _NEARLY * (TOLERANCE if piece > 0 else law.tolerance) * largest * lam
        ):
            return piece, LOST if piece == 0 else 0
        slack, status = _turn(
            graph, watch, front, trace, law, lam, near, piece, slack, inside
        )
        if status != 0:
            return piece, status
        passed = _wait(watch, front, law, slack, near, lam - end)
        ended = passed >= (lam - end) * (1 - _SHORT)
        stop = max(end, least)
        short = ended or lam - passed < stop
        if short:
            passed = lam - stop
        if (
            lam - passed <= 0
            or _range(g, front.dg, base, passed, 1 / (lam - passed)) >= reach
        ):
            return piece, REACHED
        lam = stop if short else lam - passed
        _advance(watch, front, g, passed)
        if len(trace.weights):
            _note_weights(trace, watch, front.elbow)
        trace.knots[piece + 1] = lam
        if ended:
            return piece + 1, ENDED if end >= least else QUIET
        if short:
            return piece + 1, CALM
    return len(trace.knots) - 1, 0


@njit_inner
def _turn(graph, watch, front, trace, law, lam, near, piece, slack, inside):
    """Find the elbow and its directions from here on, by pivots among the pairs that
    are on the margin."""
    elbow = front.elbow
    resting = np.empty(len(watch.ids), dtype=np.int64)
    n = _NONE
    for k in range(len(watch.ids)):
        if watch.gap[k] <= near and watch.side[k] != 0:
            resting[n] = k
            n += 1
        inside += watch.gap[k] > near and watch.side[k] < 0
    parked = np.zeros(n + elbow.size[0], dtype=np.bool_)  # they depend on the elbow
    limit = _PATIENCE + 4 * len(parked)
    pinned = graph.tau > 0 and law.inflow == 0
    for count in range(_LONGEST * limit):
        choice, most = _violator(
            watch, front, law, pinned, resting, n, parked, lam, slack, count > limit
        )
        if choice < 0:
            return slack, 0 if inside > 0 else SCALED
        if trace.used[0] == len(trace.changes):
            return slack, FULL
        if choice >= n:
            k = elbow.places[choice - n]
            full = watch.alpha[k] > 0.5 * watch.bound[k]
            dismiss(front, choice - n)
            watch.alpha[k], watch.side[k], watch.gap[k] = (
                (watch.bound[k], -1, 0) if full else (0, 1, 0)
            )
            _note(trace, piece, watch.ids[k], 1 if full else 0)
            if elbow.size[0] == 0 and law.inflow != 0:
                return slack, EMPTY
            resting[n] = k
            parked[n] = False
            n += 1
        elif elbow.size[0] == len(elbow.places):
            return slack, FULL
        elif admit(
            graph, watch.first, watch.second, front, resting[choice], -law.drop, 0.0
        ):
            watch.side[resting[choice]] = 0
            watch.gap[resting[choice]] = 0
            _note(trace, piece, watch.ids[resting[choice]], _CAME)
            n -= 1
            resting[choice] = resting[n]
            for c in range(len(parked)):
                parked[c] = False
        else:
            parked[choice] = True
            if most > _DEVIATION:
                return slack, LOST
            continue
        slack = _directions(graph, front, law)
    return slack, LOST


@njit_inner
def _note(trace, piece, pair, weight):
    k = trace.used[0]
    trace.changes[k, 0], trace.changes[k, 1], trace.changes[k, 2] = piece, pair, weight
    trace.used[0] += 1


@njit_inner
def _note_weights(trace, watch, elbow):
    for k in range(elbow.size[0]):
        trace.weights[trace.used[1] + k] = watch.alpha[elbow.places[k]]
    trace.used[1] += elbow.size[0]


@njit_inner
def _directions(graph, front, law):
    """Write the changes of the elbow's weights, and of g, while lambda falls by 1;
    return their rounding."""
    n = front.elbow.size[0]
    total = 0.0
    shift = solve(front.elbow, front.moves, law.inflow, graph.tau)
    combine_into(front.dg, front.fixed, front.slots, front.moves[:n])
    for k in range(n):
        total += abs(front.moves[k])
    if graph.tau > 0:
        front.dg[-1] = -shift
    return _SLOPE * law.unit + _EPS * graph.largest * total


@njit_inner
def _violator(watch, front, law, pinned, resting, n, parked, lam, slack, first):
    """The resting pair, or the place in the elbow behind them, whose direction is
    wrong; -1: none.

    It is that with the largest violation. After `_PATIENCE` it is the `first` in the
    order of the watched, whatever the size: largest violations may go round in a cycle,
    the least index does not ([Murty1974]_, for P-matrices, of which positive definite
    ones are some). If the score of an item is `pinned` by the last one in the elbow,
    whose weight does not move, it stays.
    """
    choice = -1
    least = len(watch.ids)
    most = 0.0
    size = front.elbow.size[0]
    for c in range(n + (0 if size == 1 and pinned else size)):
        wrong = 0.0
        k = resting[c] if c < n else front.elbow.places[c - n]
        if c >= n:
            move = front.moves[c - n]
            low = watch.alpha[k] <= BOUND
            high = watch.alpha[k] >= watch.bound[k] - BOUND
            wrong = lam * (-move if low else move if high else 0.0)
            wrong = wrong if wrong > BOUND else 0.0
        elif not parked[c]:
            wrong = -watch.side[k] * (
                front.dg[watch.first[k]] - front.dg[watch.second[k]] + law.drop
            )
            wrong = wrong / law.unit if wrong > slack else 0.0
        if k < least if first and wrong > 0 else wrong > most * (1 + _TIE):
            choice = c
            least = k
            most = wrong
    return choice, most


@njit_inner
def _wait(watch, front, law, slack, near, left):
    """How far lambda falls until the next event, at most by what is left."""
    passed = left
    dg = front.dg
    for k in range(front.elbow.size[0]):
        place = front.elbow.places[k]
        move = front.moves[k]
        if abs(move) * left > BOUND:
            room = (
                watch.bound[place] - watch.alpha[place]
                if move > 0
                else watch.alpha[place]
            )
            passed = min(passed, room / abs(move))
    for k in range(len(watch.ids)):
        gap = watch.gap[k]
        closing = -watch.side[k] * (dg[watch.first[k]] - dg[watch.second[k]] + law.drop)
        watch.closing[k] = closing
        if gap < passed * closing and closing > slack and gap > near:
            passed = gap / closing
    return max(passed, 0.0)


@njit_part_sums
def _range(g, dg, base, passed, inverse):
    """By how much the scores f will have moved against each other since the start."""
    low = high = (g[0] + passed * dg[0]) * inverse - base[0]
    for j in range(1, len(base)):
        moved = (g[j] + passed * dg[j]) * inverse - base[j]
        low = min(low, moved)
        high = max(high, moved)
    return high - low


@njit_inner
def _advance(watch, front, g, passed):
    for k in range(front.elbow.size[0]):
        place = front.elbow.places[k]
        watch.alpha[place] = min(
            max(watch.alpha[place] + passed * front.moves[k], 0.0), watch.bound[place]
        )
    for k in range(len(watch.gap)):
        watch.gap[k] -= passed * watch.closing[k]
    for j in range(len(g)):
        g[j] += passed * front.dg[j]


@njit
def gaps(graph, side, g, lam, reach, rounding):
    """Pairs on the margin, or within this reach of it in terms of f.

    Also how many of these are on it, how many of the others inside it, and the worst
    violation of g.
    """
    found = np.empty(len(side), dtype=np.int32)
    n = 0
    on = 0
    inside = 0
    worst = 0.0
    near = 2 * max(ON_MARGIN * lam, rounding)
    limit = max(reach * lam, near)
    for pair in range(len(side)):
        gap = side[pair] * (g[graph.first[pair]] - g[graph.second[pair]] - lam)
        if gap <= limit:  # as on the margin, where it is 0
            found[n] = pair
            n += 1
            on += gap <= near
            worst = max(worst, -gap)
        else:
            inside += side[pair] < 0
    return found[:n].copy(), on, inside, worst
