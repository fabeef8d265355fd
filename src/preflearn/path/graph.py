"""The pairs on the margin of the ranking path, and its replay, in the space of the
items: compiled.

See `preflearn.path.ranking` for the problem, and `preflearn.path.graph_events` for the
loop that finds the events. What is here costs one row of length n for each pair on the
margin, however many pairs there are.

The pairs on the margin whose weights move, the elbow, have a factor of their Gram
matrix. With bias, tau times the products of the signs is part of it. That changes
nothing for weights of fixed signed sum, and makes the matrix positive definite exactly
where the system bordered by the signs is regular.

The Gram matrix is U'DU with a unit upper triangle U. Points come as a column, and leave
by an update of the rows below theirs with a positive multiple of theirs; both are
stable, and so are solutions, however ill-conditioned the elbow is: what they leave of
the equations is rounding. (An explicit inverse is not: its residuals grow with the
condition.) The right sides are two more columns of U, so that a solution costs one
pass. The pivot D of a point is its squared distance from the span of those before.
Below `DEPENDENT` of its own square it is made of the rounding of the data, and the
point stays out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.compilation import njit, njit_inner, njit_part_sums
from preflearn.core.gram import combine, fixed
from preflearn.core.validation import Floats, Ids, require

SMALLEST = 1e-100  # entry of a Gram matrix whose square is above 0
BOUND = 1e-12  # a weight this near to 0 or to its bound is there
DEPENDENT = 1e-14


class Elbow(NamedTuple):
    """Arrays filled up to the present size; `places` are positions in a block of a Gram
    matrix."""

    size: NDArray[np.int64]  # (1,)
    places: NDArray[np.int64]  # (capacity,)
    factor: Floats  # (capacity, capacity): U, with D on the diagonal
    # (3, capacity): solutions b of U'D b = values, and of U'D b = signs; the signs
    right: Floats


@njit_inner
def enter(elbow, column, own, place, value, sign, least):
    """Take a point in; False, and nothing changes, if it depends on the others and no
    `least` pivot is given.

    `column` has its inner products with the others, in their order (it is used up), and
    `own` its square.
    """
    factor = elbow.factor
    right = elbow.right
    n = elbow.size[0]
    pivot = own
    one = sign
    for i in range(n):
        entry = column[i]
        for j in range(i + 1, n):
            column[j] -= entry * factor[i, j]
        pivot -= entry * entry / factor[i, i]
        value -= entry * right[0, i]
        one -= entry * right[1, i]
    if pivot <= DEPENDENT * own:
        if least == 0:
            return False
        pivot = least * own
    for k in range(n):
        factor[k, n] = column[k] / factor[k, k]
    factor[n, n], right[0, n], right[1, n] = pivot, value / pivot, one / pivot
    elbow.places[n], elbow.right[2, n] = place, sign
    elbow.size[0] = n + 1
    return True


@njit_inner
def leave(elbow, first):
    """Let the point at this position go; those behind it move up."""
    factor = elbow.factor
    right = elbow.right
    n = elbow.size[0] - 1
    share = factor[first, first]
    gone = np.empty(n)
    value = right[0, first]
    one = right[1, first]
    for j in range(first, n):
        elbow.places[j], elbow.right[2, j] = elbow.places[j + 1], elbow.right[2, j + 1]
        gone[j] = factor[first, j + 1]
    for i in range(first):
        for j in range(first, n):
            factor[i, j] = factor[i, j + 1]
    for i in range(first, n):
        own = factor[i + 1, i + 1]
        weight = gone[i]
        factor[i, i] = own + share * weight * weight
        ratio = share * weight / factor[i, i]
        share *= own / factor[i, i]
        for j in range(i + 1, n):
            gone[j] -= weight * factor[i + 1, j + 1]
            factor[i, j] = factor[i + 1, j + 1] + ratio * gone[j]
        value -= weight * right[0, i + 1]
        one -= weight * right[1, i + 1]
        right[0, i], right[1, i] = (
            right[0, i + 1] + ratio * value,
            right[1, i + 1] + ratio * one,
        )
    elbow.size[0] = n


@njit
def solve(elbow, delta, total, tau):
    """Write delta with K delta + shift * signs = values and signs·delta = total; return
    the shift.

    Without bias (tau = 0) the shift is 0, and the sum is free.
    """
    n = elbow.size[0]
    factor = elbow.factor
    excess = -total
    unit = 0.0
    ones = np.empty(n if tau > 0 else 0)
    for i in range(n - 1, -1, -1):
        delta[i] = elbow.right[0, i] - _behind(factor[i], delta, i, n)
        excess += elbow.right[2, i] * delta[i]
    if tau == 0 or n == 0:
        return tau * total
    for i in range(n - 1, -1, -1):
        ones[i] = elbow.right[1, i] - _behind(factor[i], ones, i, n)
        unit += elbow.right[2, i] * ones[i]
    for k in range(n):
        delta[k] -= excess / unit * ones[k]
    return excess / unit + tau * total


@njit_part_sums
def _behind(row, values, i, n):
    """The sum of the products of a row and these values, behind place i."""
    total = 0.0
    for j in range(i + 1, n):
        total += row[j] * values[j]
    return total


class Graph(NamedTuple):
    """Distinct pairs (better item, other item), how often each occurs, and the Gram
    matrix of the items."""

    # (n, n), or with bias (n - 1, n - 1): the last item's rows are 0, but for tau
    K: Floats
    items: int  # n
    largest: float  # entry of K
    # (m,), unsigned, since compiled code asks whether other ids are negative
    first: NDArray[np.uint32]
    second: NDArray[np.uint32]  # (m,)
    bound: Floats  # (m,)
    # above 0 the last item, with which all others are compared, has any score: minus
    # the bias
    tau: float


class Front(NamedTuple):
    """The elbow, and what moves while lambda falls by 1."""

    elbow: Elbow
    rows: Floats  # (capacity, n): the differences of rows of K
    fixed: Floats  # the same, of the type of K, so that sums of rows are compiled once
    slots: Ids  # (capacity,): which row is whose
    moves: Floats  # (capacity,): change of the weights
    dg: Floats  # (n,)


def check_entries(largest: float, name: str) -> None:
    """Raise ValueError where products of entries of a Gram matrix of this size would be
    0 or infinite."""
    sound = SMALLEST <= largest <= 1 / SMALLEST
    expected = f"0, or {SMALLEST:g} to {1 / SMALLEST:g}"
    require(
        largest == 0 or sound,
        largest,
        name,
        f"{expected}: rescale the features, or the kernel",
    )


def new_front(room: int, n: int) -> Front:
    """Nobody yet, and room for so many pairs of n items."""
    size = np.zeros(1, dtype=np.int64)
    places = np.zeros(room, dtype=np.int64)
    elbow = Elbow(size, places, np.zeros((room, room)), np.zeros((3, room)))
    rows = np.empty((room, n))
    return Front(elbow, rows, fixed(rows), np.arange(room), np.zeros(room), np.zeros(n))


@njit_inner
def admit(graph, first, second, front, pair, value, least):
    """Take a pair into the elbow, unless it depends on it and no `least` pivot is
    given."""
    K = graph.K
    tau = graph.tau
    elbow = front.elbow
    i = first[pair]
    j = second[pair]
    n = elbow.size[0]
    sign = 0.0 if tau == 0 else 1.0 if i < j else -1.0
    row = front.rows[front.slots[n]]
    column = np.empty(n)
    if tau > 0:
        one = K[i] if i < j else K[j]
        for k in range(len(one)):
            row[k] = sign * one[k]
        row[-1] = -sign * tau
    else:
        one = K[i]
        other = K[j]
        for k in range(len(row)):  # faster than as arrays
            row[k] = one[k] - other[k]
    for k in range(n):
        column[k] = row[first[elbow.places[k]]] - row[second[elbow.places[k]]]
    return enter(elbow, column, row[i] - row[j], pair, value, sign, least)


@njit_inner
def dismiss(front, k):
    """Let the pair at this place of the elbow go."""
    slot = front.slots[k]
    leave(front.elbow, k)
    for other in range(k, front.elbow.size[0]):
        front.slots[other] = front.slots[other + 1]
    front.slots[front.elbow.size[0]] = slot


@njit
def gather(graph, first, second, front, places, values):
    """Fill the elbow anew with these pairs."""
    front.elbow.size[0] = 0
    for k in range(len(places)):
        admit(graph, first, second, front, places[k], values[k], 2 * DEPENDENT)


def add(q: Floats, pairs: Any, ids: Any, v: Floats) -> None:
    """Add B'v to q, where v has the weights of these pairs only."""
    np.add.at(q, pairs.first[ids], v)
    np.subtract.at(q, pairs.second[ids], v)


def net(graph: Graph, v: Floats) -> Floats:
    """B'v; whole weights first, whose sums are exact."""
    q = np.zeros(graph.items)
    whole = (v == 0) | (v == graph.bound)
    for part in (whole, ~whole):
        add(q, graph, part, v[part])
    return q


def residual(graph, alpha, lam):
    """max |share - clip(share + 1 - margin, 0, 1)|, the share of its bound that a
    weight has; f is anew."""
    q = net(graph, alpha)
    share = alpha / graph.bound
    rows = np.flatnonzero(q)
    g = combine(graph.K, rows, q[rows])
    excess = 1 - (g[graph.first] - g[graph.second]) / lam
    return np.max(np.abs(share - np.clip(share + excess, 0.0, 1.0)), initial=0.0)


@njit_inner
def _position(ids, one):
    """Where this id stands, which is there."""
    for k in range(len(ids)):
        if ids[k] == one:
            return k
    return -1


@njit_inner
def _move(pairs, alpha, nets, knot, pair, weight):
    """Give a pair this weight, also in B'alpha at a knot, if there is one."""
    if len(nets):
        nets[knot, pairs.first[pair]] += weight - alpha[pair]
        nets[knot, pairs.second[pair]] -= weight - alpha[pair]
    alpha[pair] = weight


@njit
def rerun(graph, front, alpha, knots, changes, lam, nets):
    """Carry the weights from the first of these knots down to lambda, by the changes
    that were noted.

    Rows of `nets`, if there are any, become B'alpha at the knots; the first has to be
    given.
    """
    elbow = front.elbow
    used = 0
    for piece in range(len(knots) - 1):
        while used < len(changes) and changes[used, 0] == piece:
            pair = changes[used, 1]
            weight = changes[used, 2]
            if weight < 0:
                admit(
                    graph, graph.first, graph.second, front, pair, -1.0, 2 * DEPENDENT
                )
            else:
                dismiss(front, _position(elbow.places, pair))
                _move(graph, alpha, nets, piece, pair, weight * graph.bound[pair])
            used += 1
        solve(elbow, front.moves, 0.0, graph.tau)
        passed = knots[piece] - max(lam, knots[piece + 1])
        if len(nets):
            _copy(nets, piece)
        for k in range(elbow.size[0]):
            pair = elbow.places[k]
            weight = min(
                max(alpha[pair] + passed * front.moves[k], 0.0), graph.bound[pair]
            )
            _move(graph, alpha, nets, piece + 1, pair, weight)
        if lam >= knots[piece + 1]:
            return


@njit
def retrace(graph, elbow, size, changes, weights, nets):
    """Write B'alpha of points at the knots, given that at the first, from the weights
    of the elbow there.

    The elbow begins with so many points, and has room for those that come. Point i is
    pair i, with item i.
    """
    used = noted = 0
    for piece in range(len(nets) - 1):
        while used < len(changes) and changes[used, 0] == piece:
            point = changes[used, 1]
            weight = changes[used, 2]
            if weight < 0:
                elbow[size] = point
                size += 1
            else:
                size -= 1
                for k in range(_position(elbow, point), size):
                    elbow[k] = elbow[k + 1]
                nets[piece, point] = weight if graph.first[point] == point else -weight
            used += 1
        _copy(nets, piece)
        for k in range(size):
            point = elbow[k]
            weight = weights[noted + k]
            nets[piece + 1, point] = weight if graph.first[point] == point else -weight
        noted += size


@njit_inner
def _copy(nets, knot):
    """Begin the next row with this one; assignments of arrays take long to compile."""
    for j in range(nets.shape[1]):
        nets[knot + 1, j] = nets[knot, j]
