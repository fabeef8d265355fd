"""The event loop of the ranking path over the pairs of a graph, compiled.

See `preflearn.path.ranking` for the problem. All that the loop moves are the scores g = lambda f of the n
items: an event costs a few rows of their Gram matrix, however many pairs there are. Pairs that are far from
the margin are not looked at: where f differs from that of the start by less than `reach`, up to a constant,
no pair that was further away has come to the margin. Where it differs by more, the loop stops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids
from preflearn.compiled import njit
from preflearn.ground.gram import combine
from preflearn.path.elbow import DEPENDENT, Elbow, enter, leave, solve

BOUND = 1e-12  # a weight this near to 0 or to its bound is there
ENDED, REACHED, FULL, LOST = 1, 2, 3, 4  # why the loop stopped; see `follow`
ON_MARGIN = 1e-11  # relative to lambda
_SHORT = 1e-12  # an event so near to the end, in units of what is left, is not followed
_SLOPE = 1e-10  # a slope below it is rounding
_EPS = 4e-16  # of the largest entry of the Gram matrix: the rounding of a slope, for each unit of moves
_TIE = 1e-6  # of violations that differ by less, the first counts, or rounding would choose
_DEVIATION = 1e-6  # a pair that depends on the elbow, and departs from it faster: rounding decides
_PIVOTS = 8  # room for so many changes of the elbow an event


class Graph(NamedTuple):
    """Distinct pairs (better item, other item), how often each occurs, and the Gram matrix of the items."""

    K: Floats  # (n, n)
    largest: float  # entry of K
    first: NDArray[np.int32]  # (m,)
    second: NDArray[np.int32]  # (m,)
    bound: Floats  # (m,)


class State(NamedTuple):
    """Where the path is; changed in place. The side is 0 in the elbow, 1 at weight 0, -1 at the bound."""

    alpha: Floats  # (m,)
    side: NDArray[np.int8]  # (m,)
    g: Floats  # (n,): lambda times the scores
    elbow: Elbow  # its places are pairs
    moves: Floats  # (capacity,): change of the weights of the elbow while lambda falls by 1
    dg: Floats  # (n,)


class Trace(NamedTuple):
    """What happened: from knot k on piece k holds.

    It begins with the changes (k, pair, weight) of the elbow: the weight is -1 where a pair came in, and
    where it left 0, or 1 for its bound.
    """

    knots: Floats  # (events + 1,)
    changes: Ids  # (room, 3)
    used: Ids  # (1,)


def new_trace(events: int) -> Trace:
    """Room for so many events."""
    room = np.zeros((_PIVOTS * (events + 8), 3), dtype=np.int64)
    return Trace(np.zeros(events + 1), room, np.zeros(1, dtype=np.int64))


@njit
def follow(graph, state, trace, watched, reach, lam, end, rounding):
    """Follow the watched pairs from lambda on, until the trace is full, or down to the end.

    `rounding` is that of g. Returns the number of pieces, and why it stopped before: at the end (ENDED),
    since other pairs might come to the margin (REACHED), for want of room in the elbow (FULL), or since
    rounding decides (LOST).
    """
    resting = np.empty(len(watched), dtype=np.int64)
    base, slack = state.g / lam, directions(graph, state)
    trace.used[0], trace.knots[0] = 0, lam
    for piece in range(len(trace.knots) - 1):
        near = max(ON_MARGIN * lam, rounding)
        slack, status = _turn(graph, state, trace, watched, resting, lam, near, piece, slack)
        if status != 0:
            return piece, status
        passed = _wait(graph, state, watched, lam, slack, near, lam - end)
        ended = passed >= (lam - end) * (1 - _SHORT)
        if len(watched) < len(graph.first) and _range(state, base, lam, passed) >= reach:
            return piece, REACHED
        passed, lam = (lam - end, end) if ended else (passed, lam - passed)
        _advance(graph, state, passed)
        trace.knots[piece + 1] = lam
        if ended:
            return piece + 1, ENDED
    return len(trace.knots) - 1, 0


@njit
def _turn(graph, state, trace, watched, resting, lam, near, piece, slack):
    """Find the elbow and its directions from here on, by pivots among the pairs that are on the margin."""
    elbow, n = state.elbow, 0
    for k in range(len(watched)):
        pair = watched[k]
        if state.side[pair] != 0:
            gap = state.g[graph.first[pair]] - state.g[graph.second[pair]] - lam
            if state.side[pair] * gap <= near:
                resting[n] = pair
                n += 1
    parked = np.zeros(len(watched), dtype=np.bool_)  # they depend on the elbow
    limit = 20 + 4 * (n + elbow.size[0])
    for count in range(10 * limit):
        choice, most = _violator(graph, state, resting, n, parked, lam, slack, count > limit)
        if choice < 0:
            return slack, 0
        if trace.used[0] == len(trace.changes):
            return slack, LOST
        pair = resting[choice] if choice < n else elbow.places[choice - n]
        if choice >= n:
            full = state.alpha[pair] > 0.5 * graph.bound[pair]
            leave(elbow, pair)
            state.alpha[pair], state.side[pair] = (graph.bound[pair], -1) if full else (0.0, 1)
            _note(trace, piece, pair, 1 if full else 0)
            if n == len(resting):
                return slack, LOST
            resting[n], parked[n] = pair, False
            n += 1
        elif elbow.size[0] == len(elbow.places):
            return slack, FULL
        elif admit(graph, elbow, pair, -1.0, 0.0):
            state.side[pair] = 0
            _note(trace, piece, pair, -1)
            n -= 1
            resting[choice] = resting[n]
            parked[:] = False
        else:
            parked[choice] = True
            if most > _DEVIATION:
                return slack, LOST
            continue
        slack = directions(graph, state)
    return slack, LOST


@njit
def _note(trace, piece, pair, weight):
    row = trace.changes[trace.used[0]]
    row[0], row[1], row[2] = piece, pair, weight
    trace.used[0] += 1


@njit
def admit(graph, elbow, pair, value, least):
    """Take a pair into the elbow, its pivot at the `least`, unless it depends on it."""
    K, i, j = graph.K, graph.first[pair], graph.second[pair]
    column = np.empty(elbow.size[0])
    for k in range(len(column)):
        a, b = graph.first[elbow.places[k]], graph.second[elbow.places[k]]
        column[k] = (K[i, a] - K[i, b]) - (K[j, a] - K[j, b])
    return enter(elbow, column, (K[i, i] - K[i, j]) - (K[j, i] - K[j, j]), pair, value, least)


@njit
def directions(graph, state):
    """Write the changes of the elbow's weights, and of g, while lambda falls by 1; return their rounding."""
    elbow, total = state.elbow, 0.0
    solve(elbow, state.moves, 0.0, 0.0)
    gain, mark = np.zeros(len(graph.K)), np.zeros(len(graph.K), dtype=np.bool_)
    for k in range(elbow.size[0]):
        pair, move = elbow.places[k], state.moves[k]
        gain[graph.first[pair]] += move
        gain[graph.second[pair]] -= move
        mark[graph.first[pair]] = mark[graph.second[pair]] = True
        total += abs(move)
    rows = np.flatnonzero(mark)
    state.dg[:] = combine(graph.K, rows, gain[rows])
    return _SLOPE + _EPS * graph.largest * total


@njit
def _violator(graph, state, resting, n, parked, lam, slack, first):
    """The resting pair, or the place in the elbow behind them, whose direction is wrong; -1: none.

    It is that with the largest violation, or the first one, against cycles.
    """
    choice, most = -1, 0.0
    for c in range(n + state.elbow.size[0]):
        wrong = 0.0
        if c >= n:
            pair, move = state.elbow.places[c - n], state.moves[c - n]
            low, high = state.alpha[pair] <= BOUND, state.alpha[pair] >= graph.bound[pair] - BOUND
            wrong = lam * (-move if low else move if high else 0.0)
            wrong = wrong if wrong > BOUND else 0.0
        elif not parked[c]:
            pair = resting[c]
            wrong = -state.side[pair] * (state.dg[graph.first[pair]] - state.dg[graph.second[pair]] + 1)
            wrong = wrong if wrong > slack else 0.0
        if wrong > most * (1 + _TIE) and not (first and choice >= 0):
            choice, most = c, wrong
    return choice, most


@njit
def _wait(graph, state, watched, lam, slack, near, left):
    """How far lambda falls until the next event, at most by what is left."""
    elbow, passed = state.elbow, left
    for k in range(elbow.size[0]):
        alpha, move = state.alpha[elbow.places[k]], state.moves[k]
        if abs(move) * left > BOUND:
            room = graph.bound[elbow.places[k]] - alpha if move > 0 else alpha
            passed = min(passed, room / abs(move))
    g, dg = state.g, state.dg
    for k in range(len(watched)):
        pair = watched[k]
        i, j, side = graph.first[pair], graph.second[pair], state.side[pair]
        closing, gap = -side * (dg[i] - dg[j] + 1), side * (g[i] - g[j] - lam)
        if gap < passed * closing and closing > slack and gap > near:
            passed = gap / closing
    return max(passed, 0.0)


@njit
def _range(state, base, lam, passed):
    """By how much the scores f will have moved against each other since the start."""
    left = lam - passed
    if left <= 0:
        return np.inf
    low = high = (state.g[0] + passed * state.dg[0]) / left - base[0]
    for j in range(1, len(base)):
        moved = (state.g[j] + passed * state.dg[j]) / left - base[j]
        low, high = min(low, moved), max(high, moved)
    return high - low


@njit
def _advance(graph, state, passed):
    for k in range(state.elbow.size[0]):
        pair = state.elbow.places[k]
        state.alpha[pair] = min(max(state.alpha[pair] + passed * state.moves[k], 0.0), graph.bound[pair])
    for j in range(len(state.g)):
        state.g[j] += passed * state.dg[j]


@njit
def gaps(graph, side, g, lam, reach, rounding):
    """Pairs out of the elbow within this reach of the margin, in terms of f, and the worst violation."""
    found, n, worst = np.empty(len(side), dtype=np.int32), 0, 0.0
    limit = max(reach * lam, 2 * max(ON_MARGIN * lam, rounding))
    for pair in range(len(side)):
        gap = side[pair] * (g[graph.first[pair]] - g[graph.second[pair]] - lam)
        if side[pair] == 0 or gap <= limit:
            found[n] = pair
            n += 1
            worst = max(worst, -gap)
    return found[:n].copy(), worst / lam


@njit
def elbow_of(graph, elbow, pairs, values):
    """Fill an empty elbow with these pairs."""
    for k in range(len(pairs)):
        admit(graph, elbow, pairs[k], values[k], 2 * DEPENDENT)


@njit
def net(graph, v):
    """B'v."""
    q = np.zeros(len(graph.K))
    for pair in range(len(v)):
        q[graph.first[pair]] += v[pair]
        q[graph.second[pair]] -= v[pair]
    return q


@njit
def rerun(graph, state, knots, changes, lam, nets):
    """Carry the weights from the first of these knots down to lambda, by the changes that were noted.

    Rows of `nets`, if there are any, become B'alpha at the knots; the first has to be given.
    """
    used = 0
    for piece in range(len(knots) - 1):
        while used < len(changes) and changes[used, 0] == piece:
            pair, weight = changes[used, 1], changes[used, 2]
            if weight < 0:
                admit(graph, state.elbow, pair, -1.0, 2 * DEPENDENT)
            else:
                leave(state.elbow, pair)
                state.alpha[pair] = weight * graph.bound[pair]
            used += 1
        solve(state.elbow, state.moves, 0.0, 0.0)
        passed = knots[piece] - max(lam, knots[piece + 1])
        for k in range(state.elbow.size[0]):
            pair = state.elbow.places[k]
            state.alpha[pair] = min(max(state.alpha[pair] + passed * state.moves[k], 0.0), graph.bound[pair])
        if len(nets):
            nets[piece + 1] = nets[piece]
            for k in range(state.elbow.size[0]):
                pair, moved = state.elbow.places[k], passed * state.moves[k]
                nets[piece + 1, graph.first[pair]] += moved
                nets[piece + 1, graph.second[pair]] -= moved
        if lam >= knots[piece + 1]:
            return
