"""The pairs on the margin of the ranking path, and its replay, in the space of the items: compiled.

See `preflearn.path.ranking` for the problem, and `preflearn.path.graph_events` for the loop that finds the
events. What is here costs one row of length n for each pair on the margin, however many pairs there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids, require
from preflearn.compiled import njit
from preflearn.ground.gram import combine
from preflearn.path.elbow import DEPENDENT, Elbow, empty_elbow, enter, leave, solve

SMALLEST = 1e-100  # entry of a Gram matrix whose square is above 0
BOUND = 1e-12  # a weight this near to 0 or to its bound is there


class Graph(NamedTuple):
    """Distinct pairs (better item, other item), how often each occurs, and the Gram matrix of the items."""

    K: Floats  # (n, n)
    largest: float  # entry of K
    first: NDArray[np.uint32]  # (m,), unsigned, since compiled code asks whether other ids are negative
    second: NDArray[np.uint32]  # (m,)
    bound: Floats  # (m,)
    tau: float  # above 0 the last item, with which all others are compared, has any score: minus the bias


class Front(NamedTuple):
    """The elbow, and what moves while lambda falls by 1."""

    elbow: Elbow
    rows: Floats  # (capacity, n): the differences of rows of K
    slots: Ids  # (capacity,): which row is whose
    moves: Floats  # (capacity,): change of the weights
    dg: Floats  # (n,)


def check_entries(largest: float, name: str) -> None:
    """Raise ValueError where products of entries of a Gram matrix of this size would be 0 or infinite."""
    sound, expected = SMALLEST <= largest <= 1 / SMALLEST, f"0, or {SMALLEST:g} to {1 / SMALLEST:g}"
    require(largest == 0 or sound, largest, name, f"{expected}: rescale the features, or the kernel")


def new_front(room: int, n: int) -> Front:
    """Nobody yet, and room for so many pairs of n items."""
    rows = np.empty((room, n))
    return Front(empty_elbow(room), rows, np.arange(room), np.zeros(room), np.zeros(n))


@njit
def admit(K, tau, pairs, front, pair, value, least):
    """Take a pair into the elbow, unless it depends on it and no `least` pivot is given."""
    elbow, i, j = front.elbow, pairs.first[pair], pairs.second[pair]
    n = elbow.size[0]
    row, column, one, other = front.rows[front.slots[n]], np.empty(n), K[i], K[j]
    for k in range(len(row)):
        row[k] = one[k] - other[k]
    for k in range(n):
        column[k] = row[pairs.first[elbow.places[k]]] - row[pairs.second[elbow.places[k]]]
    sign = 0.0 if tau == 0 else 1.0 if j == len(K) - 1 else -1.0
    return enter(elbow, column, row[i] - row[j], pair, value, sign, least)


@njit
def dismiss(front, k):
    """Let the pair at this place of the elbow go."""
    slot = front.slots[k]
    leave(front.elbow, front.elbow.places[k])
    for other in range(k, front.elbow.size[0]):
        front.slots[other] = front.slots[other + 1]
    front.slots[front.elbow.size[0]] = slot


@njit
def gather(graph, pairs, front, places, values):
    """Fill the elbow anew with these pairs."""
    front.elbow.size[0] = 0
    for k in range(len(places)):
        admit(graph.K, graph.tau, pairs, front, places[k], values[k], 2 * DEPENDENT)


@njit
def net(graph, v):
    """B'v; whole weights first, whose sums are exact."""
    q = np.zeros(len(graph.K))
    for part in range(2):
        for pair in range(len(v)):
            whole = v[pair] == 0 or v[pair] == graph.bound[pair]
            if whole == (part == 0):
                q[graph.first[pair]] += v[pair]
                q[graph.second[pair]] -= v[pair]
    return q


@njit
def residual(graph, alpha, lam):
    """max |share - clip(share + 1 - margin, 0, 1)|, the share of its bound that a weight has; f is anew."""
    q, worst = net(graph, alpha), 0.0
    rows = np.flatnonzero(q)
    g = combine(graph.K, rows, q[rows])
    for pair in range(len(alpha)):
        share = alpha[pair] / graph.bound[pair]
        excess = 1 - (g[graph.first[pair]] - g[graph.second[pair]]) / lam
        worst = max(worst, abs(share - min(max(share + excess, 0.0), 1.0)))
    return worst


@njit
def _move(pairs, alpha, nets, knot, pair, weight):
    """Give a pair this weight, also in B'alpha at a knot, if there is one."""
    if len(nets):
        nets[knot, pairs.first[pair]] += weight - alpha[pair]
        nets[knot, pairs.second[pair]] -= weight - alpha[pair]
    alpha[pair] = weight


@njit
def rerun(graph, front, alpha, knots, changes, lam, nets):
    """Carry the weights from the first of these knots down to lambda, by the changes that were noted.

    Rows of `nets`, if there are any, become B'alpha at the knots; the first has to be given.
    """
    elbow, used = front.elbow, 0
    for piece in range(len(knots) - 1):
        while used < len(changes) and changes[used, 0] == piece:
            pair, weight = changes[used, 1], changes[used, 2]
            if weight < 0:
                admit(graph.K, graph.tau, graph, front, pair, -1.0, 2 * DEPENDENT)
            else:
                dismiss(front, np.argmax(elbow.places[: elbow.size[0]] == pair))
                _move(graph, alpha, nets, piece, pair, weight * graph.bound[pair])
            used += 1
        solve(elbow, front.moves, 0.0, graph.tau)
        passed = knots[piece] - max(lam, knots[piece + 1])
        if len(nets):
            nets[piece + 1] = nets[piece]
        for k in range(elbow.size[0]):
            pair = elbow.places[k]
            weight = min(max(alpha[pair] + passed * front.moves[k], 0.0), graph.bound[pair])
            _move(graph, alpha, nets, piece + 1, pair, weight)
        if lam >= knots[piece + 1]:
            return


@njit
def retrace(graph, elbow, size, changes, weights, nets):
    """Write B'alpha of points at the knots, given that at the first, from the weights of the elbow there.

    The elbow begins with so many points, and has room for those that come. Point i is pair i, with item i.
    """
    used = noted = 0
    for piece in range(len(nets) - 1):
        while used < len(changes) and changes[used, 0] == piece:
            point, weight = changes[used, 1], changes[used, 2]
            if weight < 0:
                elbow[size] = point
                size += 1
            else:
                size -= 1
                for k in range(np.argmax(elbow == point), size):
                    elbow[k] = elbow[k + 1]
                nets[piece, point] = weight if graph.first[point] == point else -weight
            used += 1
        nets[piece + 1] = nets[piece]
        for k in range(size):
            point, weight = elbow[k], weights[noted + k]
            nets[piece + 1, point] = weight if graph.first[point] == point else -weight
        noted += size
