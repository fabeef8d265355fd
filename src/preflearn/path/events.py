"""The event loop of regularization paths over a watch set of points, compiled.

See `preflearn.path.homotopy` for the problem. `follow` carries the watched points over many events as if
there were no others; whoever calls it verifies the others afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats
from preflearn.compiled import njit
from preflearn.ground.gram import combine
from preflearn.path.elbow import Elbow, enter, leave, solve

BOUND = 1e-12  # a weight this near to 0 or 1 is there
EMPTY, FULL, LOST, UNSURE = 1, 2, 3, 4  # why the loop stopped; see `follow`
_SLOPE = 1e-10  # a slope below this part of its unit is rounding
_EPS = 4e-16  # of the largest entry of the Gram matrix: the rounding of a slope, for each unit of moves
_TIE = 1e-6  # of violations that differ by less, the first counts, or rounding would choose
_END = 1e-3  # an event nearer to the end than this part of `least` is rounding
_DEVIATION = 1e-6  # a point that depends on the elbow, and departs from it faster: rounding decides


class Law(NamedTuple):
    """What stays fixed: rates of the margin and of sum(y alpha), units, and the rounding of a margin.

    `unit` is one of slopes, `largest` the largest entry of the Gram matrix.
    tau is what is added to the Gram matrix (see `preflearn.path.elbow`).
    """

    drop: float
    inflow: float
    tau: float
    unit: float
    largest: float
    near: float


class Watch(NamedTuple):
    """The watched points: their block of the Gram matrix, labels, weights, F, and the side of the margin.

    The side is 0 in the elbow, 1 at weight 0 and -1 at weight 1.
    """

    block: Floats
    y: Floats
    alpha: Floats
    F: Floats
    side: Floats
    elbow: Elbow
    moves: Floats  # (capacity,): change of the weights of the elbow per unit of time
    dF: Floats  # noqa: N815


class Trace(NamedTuple):
    """What happened: row k holds from event k on; the weights have one row more, for the end."""

    times: Floats  # (events + 1,) since the start
    offsets: Floats  # (events + 1,)
    alphas: Floats  # (events + 1, watched)
    inside: NDArray[np.bool_]  # (events, watched): the elbow
    moves: Floats  # (events, watched): change of the weights per unit of time


def new_trace(events: int, watched: int) -> Trace:
    """Room for so many events."""
    after, during = (events + 1, watched), (events, watched)
    inside = np.zeros(during, dtype=np.bool_)
    return Trace(np.zeros(events + 1), np.zeros(events + 1), np.empty(after), inside, np.zeros(during))


@njit
def follow(law, watch, trace, offset, margin, left, spare, least):
    """Follow events until the trace is full, or at most `least` of the time `left` remains.

    Directions are judged over the time left + spare. Returns the number of events, the time that is left,
    and 0, or why it stopped before: no point is left in the elbow (EMPTY), there is
    no room for another (FULL), no direction was found (LOST), or it hangs on rounding (UNSURE).
    """
    time, watched = 0.0, len(watch.y)
    hit, resting = np.zeros(watched, dtype=np.bool_), np.zeros(watched, dtype=np.bool_)
    events, (slope, slack) = len(trace.moves), _directions(law, watch)
    for count in range(events + 1):
        trace.times[count], trace.offsets[count] = time, offset
        status, ended = 0, count == events or left <= least
        if not ended:
            status, slope, slack = _turn(law, watch, slope, slack, hit, resting, margin, left + spare)
        for i in range(watched):
            trace.alphas[count, i] = watch.alpha[i]
        if ended or status != 0:
            return count, left, status
        for k in range(watch.elbow.size[0]):
            place = watch.elbow.places[k]
            trace.inside[count, place], trace.moves[count, place] = True, watch.moves[k]
        passed = _advance(law, watch, slack, hit, resting, margin, left, least)
        time, offset = time + passed, offset + passed * slope
        margin, left = margin - passed * law.drop, left - passed
    return events, left, 0


@njit
def _turn(law, watch, slope, slack, hit, resting, margin, horizon):
    """Find the elbow and its directions from here on, by pivots; `resting` tells who stays on the margin."""
    elbow, watched = watch.elbow, len(watch.y)
    parked = np.zeros(watched, dtype=np.bool_)  # they depend on the elbow
    total = elbow.size[0]
    for i in range(watched):
        gap = abs(watch.y[i] * watch.F[i] - margin)
        resting[i] = watch.side[i] != 0 and (hit[i] or gap <= law.near)
        total += resting[i]
    limit = 20 + 4 * total
    for count in range(10 * limit):
        if elbow.size[0] == 0:
            return EMPTY, slope, slack
        choice, most = _violator(law, watch, slack, resting, parked, horizon, count > limit)
        if choice < 0:
            return 0, slope, slack
        if watch.side[choice] == 0:
            leave(elbow, choice)
            at_one = watch.alpha[choice] > 0.5
            watch.alpha[choice], watch.side[choice] = (1.0, -1.0) if at_one else (0.0, 1.0)
            resting[choice] = True
        elif elbow.size[0] == len(elbow.places):
            return FULL, slope, slack
        elif _enter(law, watch, choice):
            watch.side[choice] = 0.0
            resting[choice] = False
            for i in range(watched):
                parked[i] = False
        else:
            parked[choice] = True
            if most > _DEVIATION:
                return UNSURE, slope, slack
            continue
        slope, slack = _directions(law, watch)
    return LOST, slope, slack


@njit
def _enter(law, watch, choice):
    """Take a watched point into the elbow, unless it depends on it."""
    elbow, row = watch.elbow, watch.block[choice]
    column = np.empty(elbow.size[0])
    for k in range(len(column)):
        column[k] = row[elbow.places[k]] + law.tau
    return enter(elbow, column, row[choice] + law.tau, choice, -law.drop * watch.y[choice], 0.0)


@njit
def _directions(law, watch):
    """Write changes of the weights of the elbow, and of F, per unit of time.

    Returns that of the offset, and the slope of F below which it is rounding.
    """
    places, n, total = watch.elbow.places, watch.elbow.size[0], 0.0
    slope = solve(watch.elbow, watch.moves, law.inflow, law.tau)
    dF = combine(watch.block, places, watch.moves[:n])
    for i in range(len(dF)):
        watch.dF[i] = dF[i] + slope
    for k in range(n):
        watch.moves[k] *= watch.y[places[k]]
        total += abs(watch.moves[k])
    return slope, _SLOPE * law.unit + _EPS * law.largest * total


@njit
def _violator(law, watch, slack, resting, parked, horizon, first):
    """The point whose direction is wrong: by the most, or the first of them against cycles; -1: none."""
    choice, most = -1, 0.0
    wrong = np.zeros(len(watch.dF))
    for k in range(watch.elbow.size[0]):
        i, move = watch.elbow.places[k], watch.moves[k]
        low, high = watch.alpha[i] <= BOUND, watch.alpha[i] >= 1 - BOUND
        excess = horizon * (-move if low else move if high else 0.0)
        wrong[i] = excess if excess > BOUND else 0.0
    for i in range(len(wrong)):
        if resting[i] and not parked[i]:
            excess = -watch.side[i] * (watch.y[i] * watch.dF[i] + law.drop)
            wrong[i] = excess / law.unit if excess > slack else 0.0
        if wrong[i] > most * (1 + _TIE) and not (first and choice >= 0):
            choice, most = i, wrong[i]
    return choice, most


@njit
def _advance(law, watch, slack, hit, resting, margin, left, least):
    """Go on to the next event, by at most `left`; returns the time that passed."""
    places, moves, dF, passed = watch.elbow.places, watch.moves, watch.dF, left
    for k in range(watch.elbow.size[0]):
        alpha, speed = watch.alpha[places[k]], abs(moves[k])
        if speed * left > BOUND:
            passed = min(passed, (1 - alpha if moves[k] > 0 else alpha) / speed)
    wait = np.empty(len(dF))
    for i in range(len(dF)):
        wait[i], closing = np.inf, -watch.side[i] * (watch.y[i] * dF[i] + law.drop)
        if closing > slack and not resting[i]:
            wait[i] = max(watch.side[i] * (watch.y[i] * watch.F[i] - margin), 0.0) / closing
            passed = min(passed, wait[i])
    passed = left if left - passed <= _END * least else max(passed, 0.0)
    for k in range(watch.elbow.size[0]):
        i = places[k]
        watch.alpha[i] = min(max(watch.alpha[i] + passed * moves[k], 0.0), 1.0)
    for i in range(len(dF)):
        watch.F[i] += passed * dF[i]
        hit[i] = wait[i] <= passed
    return passed


@njit
def screen(w, y, side, norms, steps, slack):
    """Which points might cross the margin at one of these steps.

    A step (share, offset, margin, radius) says that F = share w + offset up to radius times the norm.
    """
    doubtful = np.zeros(len(y), dtype=np.bool_)
    for i in range(len(y)):
        for k in range(len(steps)):
            gap = side[i] * (y[i] * (steps[k, 0] * w[i] + steps[k, 1]) - steps[k, 2])
            if gap < norms[i] * steps[k, 3] + slack:
                doubtful[i] = True
                break
    return doubtful
