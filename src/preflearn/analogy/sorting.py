"""Products with Gram matrices of the analogy kernel, without the matrices: by sorting.

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
from numpy.typing import ArrayLike, NDArray

from preflearn.analogy.kernel import analogy_kernel, blocks, check_differences, njit_free, share
from preflearn.checks import LARGEST, Floats, Ids, check_array, check_count, refuse, require
from preflearn.compiled import njit_part

_SORTING, _JOINING = 100.0, 15.0  # nanoseconds a difference, about
_HAT, _HAT_OF_TWO, _DEGREE = 5.0, 80.0, 0.15  # of a product by sorting, and of the kernel itself, a feature
_LANES = 8  # parts of a product, which are added in their order
_SIGNS = (-2.0, 0.0, np.nextafter(0.0, 1.0), 2.0)  # where negative, zero and positive numbers begin, and end
_STRETCH = 1024  # of a running sum: n terms are off by some (1024 + n / 1024) roundings, not by n


class AnalogyOperator:
    """The Gram matrix of the analogy kernel as an operator that is never written down.

    Multiplies by K = `analogy_kernel(U, degree=degree)`, eq. 8 of [AhmadiFahandar2019]_ or, of
    degree 2, eq. 9, from the sorted differences of each feature.

    Parameters
    ----------
    U : array-like of shape (N, d)
        Differences of pairs in [-1, 1], as in `analogy_kernel`.
    degree : {1, 2}

    Attributes
    ----------
    shape : tuple of int
        (N, N).
    features : list of SortedFeature
        Of each feature the order of its differences, these in that order, and where signs begin and end.

    Raises
    ------
    ValueError
        On differences that `analogy_kernel` refuses, or a degree other than 1 and 2.

    Notes
    -----
    Sorting takes O(d N log N), once, and keeps 12 bytes a difference. A product then takes O(d N) for degree
    1 and O(d^2 N log N) for degree 2, in memory of O(N). Of degree 2, few pairs are compared with each other,
    in blocks that are not kept; a Gram matrix that is kept is quicker where N is below some 100 d to 300 d.
    Sums are added in stretches, or with what rounding takes away, so that the error at N = 10^6 is some
    1e-14 ``sum |v|``. All threads of Numba are used; their number changes no bit.

    References
    ----------
    .. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference learning with
       kernels", 2019.

    Examples
    --------
    >>> K = AnalogyOperator([[0.5, 0.0], [0.25, -0.5]])
    >>> K.times([1.0, 2.0]).tolist()
    [1.75, 2.375]
    >>> K.cross([[0.25, 0.25]], [1.0, 2.0]).tolist()
    [1.375]
    """

    __slots__ = ("degree", "features", "shape")

    def __init__(self, U: ArrayLike, degree: int = 1) -> None:
        U = check_differences(U)
        self.degree = check_count(degree, "degree", 1)
        require(self.degree <= 2, degree, "degree", "1 or 2, whose products need no Gram: use analogy_kernel")
        self.shape = (len(U), len(U))
        self.features: list[SortedFeature] = share(
            lambda k: _sorted_feature(U[:, k]), range(U.shape[1]), _SORTING * U.size
        )

    def times(self, v: ArrayLike) -> Floats:
        """K v, shape (N,).

        Parameters
        ----------
        v : array-like of shape (N,)

        Raises
        ------
        ValueError
            On another shape, or values that are not finite or beyond 1e100.
        """
        v, (n, _) = self._checked(v), self.shape
        if self._comparing(n, n):
            return self._compared(None, v)
        return _product(self.features, self.degree, v)

    def cross(self, V: ArrayLike, v: ArrayLike) -> Floats:
        """K(V, U) v, shape (N2,): what a machine with weights v on the pairs of U says of the pairs of V.

        Takes as long as a product with N + N2 pairs, and the sorting of V; so ask for many pairs at once. Of
        degree 2, few pairs are compared with each one of U, where that is quicker.

        Parameters
        ----------
        V : array-like of shape (N2, d)
        v : array-like of shape (N,)

        Raises
        ------
        ValueError
            On differences that `analogy_kernel` refuses, or as in `times`.
        """
        n, d = self.shape[0], len(self.features)
        V, v = check_differences(V, "V", ("N2", d)), self._checked(v)
        if self._comparing(len(V), n + len(V)):
            return self._compared(V, v)
        work = (_SORTING * len(V) + _JOINING * n) * d
        both = share(lambda k: _joined(self.features[k], V[:, k]), range(d), work)
        return _product(both, self.degree, np.append(v, np.zeros(len(V))))[n:]  # new pairs have no weight

    def _comparing(self, rows: int, both: int) -> bool:
        """Whether kernel values of that many rows are made sooner than sums over both sorted sets."""
        by_sorting = _HAT_OF_TWO * both * (len(self.features) - 1) / 2
        return self.degree == 2 and _DEGREE * rows * self.shape[0] < by_sorting

    def _compared(self, V: Floats | None, v: Floats) -> Floats:
        """K(V, U) v in blocks of kernel values; None: K v."""
        U = np.empty((self.shape[0], len(self.features)))
        for k, feature in enumerate(self.features):
            U[feature.order, k] = feature.values
        parts = blocks(U if V is None else V, len(U))
        # Without BLAS, whose threads change the order of sums.
        return np.concatenate([(analogy_kernel(part, U, self.degree) * v).sum(axis=1) for part in parts])

    def _checked(self, v: ArrayLike) -> Floats:
        v = check_array(v, "v", (self.shape[0],), "one weight a pair")
        refuse(np.abs(v) > LARGEST, v, "v", "weights from -1e100 to 1e100, whose sums do not overflow")
        return v


class SortedFeature(NamedTuple):
    """The differences of one feature in ascending order."""

    order: NDArray[np.int32]
    """Ids of the pairs, shape (N,)."""
    values: Floats
    """Their differences, shape (N,)."""
    bounds: Ids
    """Those of sign c are at bounds[c]:bounds[c + 1]: negative, zero, positive."""


def _sorted_feature(u: Floats) -> SortedFeature:
    """Equal differences stay in their order: products do not depend on the processor's way to sort."""
    order = np.argsort(u, kind="stable").astype(np.int32)
    return SortedFeature(order, u[order], np.searchsorted(u[order], _SIGNS))


def _joined(feature: SortedFeature, new: Floats) -> SortedFeature:
    """With new differences, whose ids come after the others."""
    added = np.argsort(new, kind="stable")
    places = np.searchsorted(feature.values, new[added], side="right")
    order = np.insert(feature.order, places, len(feature.order) + added)
    values = np.insert(feature.values, places, new[added])
    return SortedFeature(order, values, np.searchsorted(values, _SIGNS))


def _product(features: list[SortedFeature], degree: int, v: Floats) -> Floats:
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

    nanoseconds = len(v) * (_HAT * d + _HAT_OF_TWO * (len(work) - d))
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


@njit_part
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
    counts, sums = np.zeros(signs * signs, np.int64), np.zeros((signs * signs, 8))
    for sign in range(signs):
        for i in range(y_bounds[sign], y_bounds[sign + 1]):
            j = y_order[i]
            x, y = points[j, 0], y_values[i]
            group[j] += sign
            g = group[j]
            points[j, 1], place[j] = y, counts[g]
            counts[g] += 1
            _enter(sums[g], v[j], x, y)
            total[j] -= 4 * _moment(sums[g], 1 + x, y)
    _add_ordered(total, x_order, points, group, place, counts, sums, v)


@njit_part
def _add_ordered(total, x_order, points, group, place, counts, totals, v):
    """Add the other terms in the order of x; those that a point dominates are in the tree of its group."""
    starts, sums = np.cumsum(counts) - counts, np.zeros_like(totals)
    tree, dominated = np.zeros((len(v), 8)), np.empty(8)
    for j in x_order:
        g, x, y = group[j], points[j, 0], points[j, 1]
        nodes = tree[starts[g] : starts[g] + counts[g]]
        dominated[:] = 0
        node = place[j]
        while node > 0:  # one bit less each time
            dominated += nodes[node - 1]
            node &= node - 1
        node = place[j] + 1
        while node <= len(nodes):  # from 1 on, each time by at least as much
            _enter(nodes[node - 1], v[j], x, y)
            node += node & -node
        _enter(sums[g], v[j], x, y)
        corner = 4 * _moment(dominated, x, y) - 2 * _moment(sums[g], x, 1 + y)
        total[j] += 2 * (_moment(totals[g], 1 + x, 1 + y) + corner)


@njit_part
def _enter(sums, w, x, y):
    """Count a point of weight w in the sums of w, w x, w y and w x y, and in four more what rounding took."""
    for k, part in enumerate((w, w * x, w * y, w * x * y)):
        new = sums[k] + part
        added = new - sums[k]
        sums[k + 4] += (sums[k] - (new - added)) + (part - added)
        sums[k] = new


@njit_part
def _moment(sums, a, b):
    """The sum of w_j (a - x_j) (b - y_j)."""
    w, x, y, xy = sums[0] + sums[4], sums[1] + sums[5], sums[2] + sums[6], sums[3] + sums[7]
    return a * (b * w - y) - (b * x - xy)
