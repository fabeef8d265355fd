"""The event loop of regularization paths over a watch set of points, compiled.

See `preflearn.path.homotopy` for the problem. `follow` carries the watched points over many events as if
there were no others; whoever calls it verifies the others afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from preflearn.path.elbow import Elbow, add, remove, solve, weighted_rows

__all__ = ["BOUND", "FULL", "LOST", "Law", "Trace", "Watch", "follow", "new_trace", "screen"]

Floats = NDArray[np.float64]

BOUND = 1e-12  # a weight this near to 0 or 1 is there
FULL, LOST = -1, -2  # the elbow has no room; no direction was found
_SLOPE = 1e-10  # a slope below this part of its unit is rounding


class Law(NamedTuple):
    """What stays fixed: rates of the margin and of sum(y alpha), units, and the rounding of a margin."""

    drop: float
    inflow: float
    tau: float
    unit: float
    near: float


class Watch(NamedTuple):
    """The watched points: ids in increasing order, labels, weights, F, and the side of the margin.

    The side is 0 in the elbow, 1 at weight 0 and -1 at weight 1.
    """

    ids: NDArray[np.int64]
    y: Floats
    alpha: Floats
    F: Floats
    side: Floats
    elbow: Elbow


class Trace(NamedTuple):
    """What happened: row k holds from event k on; the weights have one row more, for the end."""

    times: Floats  # (events + 1,) since the start
    offsets: Floats  # (events + 1,)
    alphas: Floats  # (events + 1, watched)
    inside: NDArray[np.bool_]  # (events, watched): the elbow
    moves: Floats  # (events, watched): change of the weights per unit of time
    slopes: Floats  # (events,): of the offset


def new_trace(events: int, watched: int) -> Trace:
    """Room for so many events."""
    after, during = (events + 1, watched), (events, watched)
    return Trace(
        np.empty(events + 1),
        np.empty(events + 1),
        np.empty(after),
        np.zeros(during, dtype=np.bool_),
        np.zeros(during),
        np.empty(events),
    )


@njit(cache=True)
def follow(K, law, watch, trace, offset, margin, left, spare, least):
    """Follow events until the trace is full, or at most `least` of the time `left` remains.

    Directions are judged over the time left + spare. Returns the number of events, FULL or LOST, and the
    time that is left.
    """
    time = 0.0
    hit = np.zeros(len(watch.ids), dtype=np.bool_)
    resting = np.zeros(len(watch.ids), dtype=np.bool_)
    for count in range(len(trace.slopes)):
        status, offset, slope, moves = _turn(K, law, watch, hit, resting, offset, margin, left + spare)
        if status < 0:
            return status, left
        places = watch.elbow.places[: len(moves)]
        trace.times[count], trace.offsets[count], trace.slopes[count] = time, offset, slope
        trace.alphas[count] = watch.alpha
        for k in range(len(moves)):
            trace.inside[count, places[k]], trace.moves[count, places[k]] = True, moves[k]
        passed = _advance(law, watch, hit, resting, moves, slope, margin, left)
        time, offset = time + passed, offset + passed * slope
        margin, left = margin - passed * law.drop, left - passed
        trace.times[count + 1], trace.offsets[count + 1] = time, offset
        trace.alphas[count + 1] = watch.alpha
        if left <= least:
            return count + 1, left
    return len(trace.slopes), left


@njit(cache=True)
def _turn(K, law, watch, hit, resting, offset, margin, horizon):
    """Find the elbow and its directions from here on, by pivots; `resting` tells who stays on the margin."""
    elbow = watch.elbow
    weak = _outside_on_margin(law, watch, margin, hit)
    parked = np.zeros(len(weak), dtype=np.bool_)  # their rows depend on those of the elbow
    limit = 20 + 4 * (np.sum(weak) + elbow.size[0])
    moves, slope = _directions(law, watch)
    for count in range(10 * limit):
        choice = _violator(law, watch, weak & ~parked, moves, slope, horizon, count > limit)
        if choice < 0:
            resting[:] = weak
            return 0, offset, slope, moves
        if watch.side[choice] == 0:
            _leave(watch, choice)
            weak[choice] = True
            if elbow.size[0] == 0:
                offset = _jump(K, law, watch, offset, margin)
                hit[:] = False
                weak = _outside_on_margin(law, watch, margin, hit)
            moves, slope = _directions(law, watch)
        elif elbow.size[0] == len(elbow.places):
            return FULL, offset, slope, moves
        elif _enter(K, law, watch, choice):
            weak[choice] = False
            parked[:] = False
            moves, slope = _directions(law, watch)
        else:
            parked[choice] = True
    return LOST, offset, slope, moves


@njit(cache=True)
def _advance(law, watch, hit, resting, moves, slope, margin, left):
    """Go on to the next event, by at most `left`; returns the time that passed."""
    elbow, n, passed = watch.elbow, watch.elbow.size[0], left
    for k in range(n):
        alpha, speed = watch.alpha[elbow.places[k]], abs(moves[k])
        if speed * left > BOUND:
            passed = min(passed, (1 - alpha if moves[k] > 0 else alpha) / speed)
    dF = weighted_rows(elbow.rows, watch.y[elbow.places[:n]] * moves, len(watch.ids)) + slope
    wait = np.full(len(watch.ids), np.inf)
    for i in range(len(wait)):
        closing = -watch.side[i] * (watch.y[i] * dF[i] + law.drop)
        if closing > _SLOPE * law.unit and not resting[i]:
            wait[i] = max(watch.side[i] * (watch.y[i] * watch.F[i] - margin), 0.0) / closing
            passed = min(passed, wait[i])
    passed = max(passed, 0.0)
    for k in range(n):
        i = elbow.places[k]
        watch.alpha[i] = min(max(watch.alpha[i] + passed * moves[k], 0.0), 1.0)
    for i in range(len(wait)):
        watch.F[i] += passed * dF[i]
        hit[i] = wait[i] <= passed
    return passed


@njit(cache=True)
def _directions(law, watch):
    """Changes of the weights of the elbow, and of the offset, per unit of time."""
    y = watch.y[watch.elbow.places[: watch.elbow.size[0]]]
    signed, slope = solve(watch.elbow, -law.drop * y, law.inflow, law.tau)
    return y * signed, slope


@njit(cache=True)
def _violator(law, watch, candidates, moves, slope, horizon, first):
    """The point whose direction is wrong: by the most, or the first of them against cycles; -1: none."""
    elbow, n, choice, most = watch.elbow, watch.elbow.size[0], -1, 0.0
    for k in range(n):
        i = elbow.places[k]
        low, high = watch.alpha[i] <= BOUND, watch.alpha[i] >= 1 - BOUND
        wrong = horizon * (-moves[k] if low else moves[k] if high else 0.0)
        if wrong > BOUND and (choice < 0 or (i < choice if first else wrong > most)):
            choice, most = i, wrong
    for i in np.flatnonzero(candidates):
        dF = slope
        for k in range(n):
            dF += watch.y[elbow.places[k]] * moves[k] * elbow.rows[k, i]
        wrong = -watch.side[i] * (watch.y[i] * dF + law.drop) / law.unit
        if wrong > _SLOPE and (choice < 0 or (i < choice if first else wrong > most)):
            choice, most = i, wrong
    return choice


@njit(cache=True)
def _enter(K, law, watch, place):
    row = K[watch.ids[place]][watch.ids]
    if not add(watch.elbow, place, row, law.tau):
        return False
    watch.side[place] = 0.0
    return True


@njit(cache=True)
def _leave(watch, place):
    elbow = watch.elbow
    which = 0
    while elbow.places[which] != place:
        which += 1
    remove(elbow, which)
    at_one = watch.alpha[place] > 0.5
    watch.alpha[place], watch.side[place] = (1.0, -1.0) if at_one else (0.0, 1.0)


@njit(cache=True)
def _jump(K, law, watch, offset, margin):
    """With no point left on the margin the offset is free, up to the next that can take weight."""
    point, gap = -1, np.inf
    for i in range(len(watch.ids)):
        if watch.side[i] > 0 and watch.y[i] * watch.F[i] - margin < gap:
            point, gap = i, watch.y[i] * watch.F[i] - margin
    jump = watch.y[point] * gap
    watch.F[:] -= jump
    _enter(K, law, watch, point)
    return offset - jump


@njit(cache=True)
def _outside_on_margin(law, watch, margin, hit):
    weak = hit.copy()
    for i in range(len(weak)):
        weak[i] = watch.side[i] != 0 and (hit[i] or abs(watch.y[i] * watch.F[i] - margin) <= law.near)
    return weak


@njit(cache=True)
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
