"""Products with Gram matrices of the analogy kernel, by sorting.

The Gram matrices are not formed. Let D = x - x_j for two differences of the same sign.
The kernel of one feature is linear on each side of x::

    1 - |D| = (1 + D) - 2 D [x_j <= x],

so that the sum of v_j (1 - |x - x_j|) over all j follows from the sums of v_j and of
v_j x_j, over all j and over the j with x_j <= x. The latter are running sums in the
order of x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.analogy.kernel import check_differences, map_on_threads, njit_nogil
from preflearn.core.compilation import njit_inner
from preflearn.core.validation import LARGEST, Floats, Ids, check_array, raise_if_any

# number of partial sums of a product, which are added in a fixed order
_N_PARTIAL_SUMS = 8
# bounds of the ranges of negative, zero, and positive numbers
_SIGNS = (-2.0, 0.0, np.nextafter(0.0, 1.0), 2.0)
# Running sums are formed in stretches of this length. The error of a sum of n terms is
# then about (1024 + n / 1024) rounding errors instead of n.
_STRETCH = 1024


class AnalogyOperator:
    """The Gram matrix of the analogy kernel of degree 1, as a linear operator.

    Use it for products with the Gram matrix of up to millions of pairs, which would not
    fit into memory.

    It multiplies by K = `analogy_kernel(U)`, eq. 8 of [AhmadiFahandar2019]_, using the
    sorted differences of each feature.

    Parameters
    ----------
    U : array-like of shape (N, d)
        Differences of pairs in [-1, 1], as in `analogy_kernel`.

    Attributes
    ----------
    shape : tuple of int
        (N, N).
    features : list of SortedFeature
        Sorted differences of each feature, with their order and the ranges of equal
        sign.

    Raises
    ------
    ValueError
        If differences are not valid for `analogy_kernel`.

    Notes
    -----
    Sorting takes O(d N log N) operations once, and 12 bytes per difference. A product
    then takes O(d N) operations and O(N) memory. Sums are formed in blocks, so that the
    error for N = 10^6 is about 1e-14 ``sum |v|``. All threads of Numba are used;
    results do not depend on their number.

    References
    ----------
    .. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based
       preference learning with kernels", 2019.

    Examples
    --------
    >>> K = AnalogyOperator([[0.5, 0.0], [0.25, -0.5]])
    >>> K.times([1.0, 2.0]).tolist()
    [1.75, 2.375]
    >>> K.cross([[0.25, 0.25]], [1.0, 2.0]).tolist()
    [1.375]
    """

    __slots__ = ("features", "shape")

    def __init__(self, U: ArrayLike) -> None:
        U = check_differences(U)
        self.shape = (len(U), len(U))
        self.features: list[SortedFeature] = map_on_threads(
            lambda k: _sorted_feature(U[:, k]), range(U.shape[1])
        )

    def times(self, v: ArrayLike) -> Floats:
        """Return K v, shape (N,).

        Parameters
        ----------
        v : array-like of shape (N,)

        Raises
        ------
        ValueError
            If v has a wrong shape, or values that are infinite, NaN, or above 1e100 in
            absolute value.
        """
        return _product(self.features, self._check_weights(v))

    def cross(self, V: ArrayLike, v: ArrayLike) -> Floats:
        """Return K(V, U) v, shape (N2,), for new pairs V.

        The call takes as long as sorting V and a product with N + N2 pairs, so pass
        many pairs at once.

        Parameters
        ----------
        V : array-like of shape (N2, d)
        v : array-like of shape (N,)

        Raises
        ------
        ValueError
            If differences are not valid for `analogy_kernel`, or v is not valid for
            `times`.
        """
        n = self.shape[0]
        d = len(self.features)
        V = check_differences(V, "V", ("N2", d))
        v = self._check_weights(v)
        both = map_on_threads(lambda k: _joined(self.features[k], V[:, k]), range(d))
        # new pairs have weight 0
        return _product(both, np.append(v, np.zeros(len(V))))[n:]

    def _check_weights(self, v: ArrayLike) -> Floats:
        v = check_array(v, "v", (self.shape[0],), "one weight per pair")
        expected = "weights from -1e100 to 1e100, so that sums do not overflow"
        raise_if_any(np.abs(v) > LARGEST, v, "v", expected)
        return v


class SortedFeature(NamedTuple):
    """The differences of one feature in ascending order."""

    order: NDArray[np.int32]
    """Ids of the pairs, shape (N,)."""
    values: Floats
    """Sorted differences, shape (N,)."""
    bounds: Ids
    """Ranges of the signs: negative, zero, positive values are at bounds[c]:bounds[c +
    1].
    """


def _sorted_feature(u: Floats) -> SortedFeature:
    """Sort the differences of a feature.

    The sort is stable, so that products do not depend on the processor.
    """
    order = np.argsort(u, kind="stable").astype(np.int32)
    return SortedFeature(order, u[order], np.searchsorted(u[order], _SIGNS))


def _joined(feature: SortedFeature, new: Floats) -> SortedFeature:
    """Add new differences, whose ids follow the existing ones."""
    added = np.argsort(new, kind="stable")
    places = np.searchsorted(feature.values, new[added], side="right")
    order = np.insert(feature.order, places, len(feature.order) + added)
    values = np.insert(feature.values, places, new[added])
    return SortedFeature(order, values, np.searchsorted(values, _SIGNS))


def _product(features: list[SortedFeature], v: Floats) -> Floats:
    """Return K v, the mean over features."""

    def partial_sum(first: int) -> Floats:
        total = np.zeros(len(v))
        work = np.empty(len(v))
        for feature in features[first::_N_PARTIAL_SUMS]:
            _add_feature(total, *feature, v, work)
        return total

    d = len(features)
    starts = range(min(_N_PARTIAL_SUMS, d))
    total, *others = map_on_threads(partial_sum, starts)
    for part in others:
        total += part
    return total / d


# ---- Compiled loops


@njit_nogil
def _add_feature(total, order, values, bounds, v, work):
    """Add the sums of v_j (1 - |u - u_j|) over the differences of the same sign.

    The array `work` (N,) is overwritten. The first and the last loop access memory
    out of order, and take half of the time.
    """
    for i in range(len(v)):
        work[i] = v[order[i]]
    for sign in range(len(bounds) - 1):
        _replace_by_sums(
            values[bounds[sign] : bounds[sign + 1]],
            work[bounds[sign] : bounds[sign + 1]],
        )
    for i in range(len(v)):
        total[order[i]] += work[i]


@njit_inner
def _replace_by_sums(values, v):
    """Replace v by the sums of v_j (1 - |u - u_j|), for ascending u."""
    weight = moment = 0.0  # sums of v_j and v_j u_j over all
    for start in range(0, len(v), _STRETCH):
        a = b = 0.0
        for i in range(start, min(start + _STRETCH, len(v))):
            a += v[i]
            b += v[i] * values[i]
        weight = weight + a
        moment = moment + b
    below = below_u = 0.0  # the same sums up to the current stretch
    for start in range(0, len(v), _STRETCH):
        a = b = 0.0
        for i in range(start, min(start + _STRETCH, len(v))):
            u = values[i]
            w = v[i]
            a += w
            b += w * u
            v[i] = (1 + u) * weight - moment - 2 * (u * (below + a) - (below_u + b))
        below = below + a
        below_u = below_u + b
