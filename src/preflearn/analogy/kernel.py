"""The analogy kernel between pairs of items, eq. 5 to 9 of [AhmadiFahandar2019]_.

A pair (a, b) enters by its differences u = a - b in [-1, 1]. On one feature, kappa(u,
v) = 1 - |u - v| where u and v have one sign, and 0 elsewhere, is a hat of differences
that are pulled apart at 0::

    kappa(u, v) = max(0, 1 - |s(u) - s(v)|),   s(u) = u + sign(u),

since differences of two signs are then at least 1 apart. The hat needs no comparison of
signs, so processors do several of them at once.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal

import numpy as np
from numba.core import config
from numpy.typing import ArrayLike

from preflearn.core.compilation import njit, njit_inner
from preflearn.core.validation import (
    Floats,
    check_array,
    check_choice,
    check_count,
    raise_if_any,
)

Zero = Literal["apart", "positive"]  # what sign(0) is

_ROUNDING = 1e-9  # of differences of scaled features, at -1 and 1
# of a block, whose columns stay in the cache
_ROWS = 256
_COLUMNS = 256
_BLOCK_VALUES = 1 << 22  # values of the kernel that are computed at a time


njit_nogil = partial(njit, nogil=True)  # for threads: other Python code runs meanwhile


def analogy_kernel(
    U: ArrayLike, V: ArrayLike | None = None, degree: int = 1, *, zero: Zero = "apart"
) -> Floats:
    """The kernel between pairs of items: how much they are in analogy, on the mean over
    features.

    Eq. 8 of [AhmadiFahandar2019]_ to the power `degree`; degree 2 is its eq. 9::

        k(u, v) = (1/d sum_k kappa(u_k, v_k))^degree,   kappa of eq. 5.

    Parameters
    ----------
    U : array-like of shape (N, d)
        Differences a - b of pairs of items whose features are in [0, 1]: no unit, in
        [-1, 1]. What is outside by at most 1e-9 is clipped.
    V : array-like of shape (N2, d), optional
        Differences of other pairs; None: those of U.
    degree : int
        Exponent, at least 1. At some hundreds K is the identity matrix, except for
        pairs that are almost equal.
    zero : {"apart", "positive"}
        Whether sign(0) is a sign of its own, as eq. 5 reads, or that of positive
        numbers, as in the proof of Theorem 1. Differences of 0 are then like each other
        only, or like small positive ones.

    Returns
    -------
    K : ndarray of shape (N, N2)
        In [0, 1]. Without V, or with V = U, exactly symmetric, with a diagonal of
        exactly 1.

    Raises
    ------
    ValueError
        If differences are outside [-1, 1], not finite, or none; if V has other features
        than U; if the degree is not an integer of at least 1; if `zero` is another
        word.

    Notes
    -----
    Features are added in their order, in double precision. s(u) has a rounding error of
    at most 2^-53, so kappa is off by at most 2^-52, and exactly 0 between differences
    of two signs, however small they are; the mean is off by at most (d + 2) 2^-53.

    The memory is that of K and of two copies of the differences. All threads of Numba
    (NUMBA_NUM_THREADS) are used; their number changes no bit of K.

    Examples
    --------
    >>> analogy_kernel([[0.5, 0.0], [0.25, -0.5]]).tolist()
    [[1.0, 0.375], [0.375, 1.0]]
    >>> analogy_kernel([[0.5, 0.0]], [[0.25, 0.25]], degree=2, zero="positive").tolist()
    [[0.5625]]
    """
    degree = check_count(degree, "degree", 1)
    S = stretched(check_differences(U), zero)
    other = S
    if V is not None:
        other = stretched(check_differences(V, "V", ("N2", S.shape[1])), zero)
    K = np.empty((len(S), len(other)))
    columns = np.ascontiguousarray(other.T)
    tops = range(0, len(S), _ROWS)
    map_on_threads(lambda top: _fill(K, S, columns, degree, top), tops)
    return K


def check_differences(
    U: ArrayLike, name: str = "U", shape: tuple[int | str, ...] = ("N", "d")
) -> Floats:
    """Return differences as an array in [-1, 1]; what is outside by at most 1e-9 is
    clipped.

    Raises
    ------
    ValueError
        If one is further outside, or not finite, or there is none, or the shape is
        another.
    """
    meaning = "one row per pair"
    if len(shape) == 2:
        meaning += ", one column per feature"
    U = check_array(U, name, shape, meaning)
    expected = "differences of features in [0, 1], so from -1 to 1; scale the features"
    return clipped(U, name, -1.0, expected)


def clipped(values: Floats, name: str, low: float, expected: str) -> Floats:
    """Clip values to [low, 1]; ValueError if one is outside by more than rounding."""
    if low <= values.min() <= values.max() <= 1:
        return values
    outside = (values < low - _ROUNDING) | (values > 1 + _ROUNDING)
    raise_if_any(outside, values, name, expected)
    return np.clip(values, low, 1.0)


def stretched(U: Floats, zero: Zero) -> Floats:
    """s(u): the signs are pulled apart, so that differences of two signs are at least 1
    from each other."""
    check_choice(zero, "zero", ("apart", "positive"))
    if zero == "apart":
        return U + np.sign(U)
    return np.where(U < 0, U - 1, U)


def blocks(V: Floats, n: int) -> list[Floats]:
    """V in parts: the kernel between one of them and n other pairs has some four
    million values."""
    return np.array_split(V, min(len(V), -(-len(V) * n // _BLOCK_VALUES)))


def map_on_threads(function: Callable[[Any], Any], parts: range) -> list:
    """The function of each part, in their order, on threads if there are several."""
    threads = config.NUMBA_NUM_THREADS  # pyright: ignore[reportAttributeAccessIssue]
    if len(parts) == 1 or threads == 1:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, parts))


# ---- Compiled loops


@njit_nogil
def _fill(K, rows, columns, degree, top):
    """Write _ROWS rows of K from `top` on."""
    for left in range(0, K.shape[1], _COLUMNS):
        right = min(left + _COLUMNS, K.shape[1])
        for i in range(top, min(top + _ROWS, len(rows))):
            row = K[i, left:right]
            _add_hats(row, rows[i], columns, left, right)
            _raise(row, degree)


@njit_inner
def _add_hats(row, x, columns, left, right):
    """The mean of max(0, 1 - |x - column|) over features."""
    d = len(x)
    row[:] = 0.0
    for k in range(d):
        a = x[k]
        column = columns[k, left:right]
        for j in range(len(row)):
            row[j] += max(0.0, 1.0 - abs(a - column[j]))
    for j in range(len(row)):
        row[j] /= d  # not times 1/d: the mean of d ones is 1


@njit_inner
def _raise(row, degree):
    """Each entry to the power `degree`, by squaring."""
    if degree == 1:
        return
    square = row.copy()
    row[:] = 1.0
    while degree:  # of 64 bits, and positive
        if degree % 2:
            row *= square
        square *= square
        degree //= 2
