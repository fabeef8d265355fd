"""Sums of v_j k(u, u_j) over sorted differences of features: the arithmetic of `AnalogyOperator`.

Write D = x - x_j for two differences of one sign. The kernel of one feature is linear on either side of x::

    1 - |D| = (1 + D) - 2 D [x_j <= x],

so that the sum of v_j (1 - |x - x_j|) over all j needs sum v_j and sum v_j x_j, over all j and over those
with x_j <= x: running sums in the order of x. The product of two features is bilinear on quadrants::

    (1 - |D|) (1 - |E|) = (1 + D) (1 + E) - 2 D (1 + E) [x_j <= x] - 2 (1 + D) E [y_j <= y]
                          + 4 D E [x_j <= x, y_j <= y].

The last term needs sums of v_j, v_j x_j, v_j y_j and v_j x_j y_j over the points that (x, y) dominates:
points come in the order of x, and enter a Fenwick tree over the order of y.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.analogy.kernel import Zero, njit_free, share
from preflearn.checks import Floats, Ids

HAT, HAT_OF_TWO = 5.0, 80.0  # nanoseconds a difference, about
_LANES = 8  # parts of a product, which are added in their order
_STRETCH = 1024  # of a running sum: n terms are off by some (1024 + n / 1024) roundings, not by n


class SortedFeature(NamedTuple):
    """The differences of one feature in ascending order."""

    order: NDArray[np.int32]
    """Ids of the pairs, shape (N,)."""
    values: Floats
    """Their differences, shape (N,)."""
    bounds: Ids
    """Those of sign c are at bounds[c]:bounds[c + 1]: negative, zero, positive; or negative, the others."""


def sorted_feature(u: Floats, zero: Zero) -> SortedFeature:
    """Equal differences stay in their order: products do not depend on the processor's way to sort."""
    order = np.argsort(u, kind="stable").astype(np.int32)
    return SortedFeature(order, u[order], _bounds(u[order], zero))


def joined(feature: SortedFeature, new: Floats, zero: Zero) -> SortedFeature:
    """With new differences, whose ids come after the others."""
    added = np.argsort(new, kind="stable")
    places = np.searchsorted(feature.values, new[added], side="right")
    order = np.insert(feature.order, places, len(feature.order) + added)
    values = np.insert(feature.values, places, new[added])
    return SortedFeature(order, values, _bounds(values, zero))


def _bounds(values: Floats, zero: Zero) -> Ids:
    first, last = np.searchsorted(values, 0.0, "left"), np.searchsorted(values, 0.0, "right")
    return np.array([0, first, last, len(values)] if zero == "apart" else [0, first, len(values)])


def product(features: list[SortedFeature], degree: int, v: Floats) -> Floats:
    """K v: the mean over features, or over pairs of features where degree is 2."""
    d = len(features)
    work = [(k, k) for k in range(d)]
    if degree == 2:
        work += [(k, other) for k in range(d) for other in range(k)]

    def lane(first: int) -> Floats:
        total, room = np.zeros(len(v)), np.empty(len(v))
        for k, other in work[first::_LANES]:
            if k != other:
                _add_pair(total, *features[k], *features[other], v)
            else:
                _add_feature(total, *features[k], v, degree, room)
        return total

    nanoseconds = len(v) * (HAT * d + HAT_OF_TWO * (len(work) - d))
    total, *others = share(lane, range(min(_LANES, len(work))), nanoseconds)
    for part in others:
        total += part
    return total / d**degree


# ---- Compiled loops


@njit_free
def _add_feature(total, order, values, bounds, v, degree, room):
    """Add the sums of v_j (1 - |u - u_j|)^degree over the differences of the same sign.

    room (N,) is written over. Only its first and last loop jump about in memory: half of the time is theirs.
    """
    for i in range(len(v)):
        room[i] = v[order[i]]
    for sign in range(len(bounds) - 1):
        _replace_by_sums(
            values[bounds[sign] : bounds[sign + 1]], room[bounds[sign] : bounds[sign + 1]], degree
        )
    for i in range(len(v)):
        total[order[i]] += room[i]


@njit_free
def _replace_by_sums(values, v, degree):
    """Write the sums of v_j (1 - |u - u_j|)^degree over ascending u in place of v."""
    weight = moment = squares = 0.0  # sums of v_j, v_j u_j and v_j u_j^2 over all
    for start in range(0, len(v), _STRETCH):
        a = b = c = 0.0
        for i in range(start, min(start + _STRETCH, len(v))):
            u, w = values[i], v[i]
            a += w
            b += w * u
            c += w * u * u
        weight, moment, squares = weight + a, moment + b, squares + c
    below = below_u = 0.0  # sums of v_j and v_j u_j up to a stretch
    for start in range(0, len(v), _STRETCH):
        a = b = 0.0
        for i in range(start, min(start + _STRETCH, len(v))):
            u, w = values[i], v[i]
            a += w
            b += w * u
            hat = (1 + u) * weight - moment - 2 * (u * (below + a) - (below_u + b))
            if degree == 2:  # (1 - |D|)^2 = 2 (1 - |D|) - 1 + D^2
                hat = 2 * hat - weight + (u * u * weight - 2 * u * moment + squares)
            v[i] = hat
        below, below_u = below + a, below_u + b


@njit_free
def _add_pair(total, x_order, x_values, x_bounds, y_order, y_values, y_bounds, v):
    """Add twice the sums of v_j (1 - |x - x_j|) (1 - |y - y_j|) over points of the same two signs."""
    n, signs = len(v), len(x_bounds) - 1
    points, group, place = np.empty((n, 2)), np.empty(n, np.int8), np.empty(n, np.int32)
    for sign in range(signs):
        for i in range(x_bounds[sign], x_bounds[sign + 1]):
            points[x_order[i], 0] = x_values[i]
            group[x_order[i]] = signs * sign
    # In the order of y: points of a group are numbered, and the third term of the sum.
    counts = np.zeros(signs * signs, np.int64)
    sums, recent = np.zeros((signs * signs, 4)), np.zeros((signs * signs, 4))
    for sign in range(signs):
        for i in range(y_bounds[sign], y_bounds[sign + 1]):
            j = y_order[i]
            x, y = points[j, 0], y_values[i]
            group[j] += sign
            g = group[j]
            points[j, 1], place[j] = y, counts[g]
            counts[g] += 1
            _enter(recent[g], v[j], x, y)
            total[j] -= 4 * (_moment(sums[g], 1 + x, y) + _moment(recent[g], 1 + x, y))
            if i % _STRETCH == 0:
                sums += recent
                recent[:] = 0
    sums += recent
    _add_ordered(total, x_order, points, group, place, counts, sums, v)


@njit_free
def _add_ordered(total, x_order, points, group, place, counts, totals, v):
    """Add the other terms in the order of x; those that a point dominates are in the tree of its group."""
    starts = np.cumsum(counts) - counts
    sums, recent = np.zeros_like(totals), np.zeros_like(totals)
    tree, dominated, entry = np.zeros((len(v), 8)), np.empty(8), np.empty(4)
    for i in range(len(v)):
        j = x_order[i]
        g, x, y = group[j], points[j, 0], points[j, 1]
        nodes = tree[starts[g] : starts[g] + counts[g]]
        dominated[:] = 0
        node = place[j]
        while node > 0:
            _include(dominated, nodes[node - 1])
            node &= node - 1
        entry[:] = 0
        _enter(entry, v[j], x, y)
        node = place[j] + 1
        while node <= len(nodes):
            _include_exactly(nodes[node - 1], entry)
            node += node & -node
        _include(recent[g], entry)
        left = _moment(sums[g], x, 1 + y) + _moment(recent[g], x, 1 + y)
        corner = _moment(dominated, x, y) + _moment(dominated[4:], x, y)
        total[j] += 2 * (_moment(totals[g], 1 + x, 1 + y) - 2 * left + 4 * corner)
        if i % _STRETCH == 0:
            sums += recent
            recent[:] = 0


@njit_free
def _enter(sums, w, x, y):
    """Count a point of weight w in the sums of w, w x, w y and w x y."""
    sums[0] += w
    sums[1] += w * x
    sums[2] += w * y
    sums[3] += w * x * y


@njit_free
def _include(sums, others):
    for k in range(len(others)):
        sums[k] += others[k]


@njit_free
def _include_exactly(sums, others):
    """Add to four sums, and what rounding takes away to four more: nodes at the top have n terms."""
    for k in range(4):
        new = sums[k] + others[k]
        added = new - sums[k]
        sums[k + 4] += (sums[k] - (new - added)) + (others[k] - added)
        sums[k] = new


@njit_free
def _moment(sums, a, b):
    """The sum of w_j (a - x_j) (b - y_j)."""
    return a * (b * sums[0] - sums[2]) - (b * sums[1] - sums[3])
