"""The analogy kernel between pairs of items, eqs. 5-9 of [AhmadiFahandar2019]_.

The kernel depends on the differences u = a - b, in [-1, 1], of a pair (a, b). For one
feature, kappa(u, v) is 1 - |u - v| if u and v have the same sign, and 0 otherwise. This
is a hat function of shifted differences::

    kappa(u, v) = max(0, 1 - |s(u) - s(v)|),   s(u) = u + sign(u),

since shifted differences of different signs are at least 1 apart. The hat function
needs no comparison of signs, so that the loop can be vectorized.

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

Zero = Literal["apart", "positive"]  # meaning of sign(0)

_ROUNDING = 1e-9  # allowed rounding error of scaled differences at -1 and 1
# rows of a block, whose columns stay in the processor's cache
_ROWS = 256
_COLUMNS = 256
_BLOCK_VALUES = 1 << 22  # kernel values that are computed at a time


njit_nogil = partial(
    njit, nogil=True
)  # releases the GIL, so that threads run in parallel


def analogy_kernel(
    U: ArrayLike, V: ArrayLike | None = None, degree: int = 1, *, zero: Zero = "apart"
) -> Floats:
    """Compute the analogy kernel between pairs of items.

    It is eq. 8 of [AhmadiFahandar2019]_ to the power `degree`; degree 2 is eq. 9::

        k(u, v) = (1/d sum_k kappa(u_k, v_k))^degree,   kappa of eq. 5.

    Parameters
    ----------
    U : array-like of shape (N, d)
        Differences a - b of pairs of items with features in [0, 1], so from -1 to 1.
        Values outside by at most 1e-9 are clipped.
    V : array-like of shape (N2, d), optional
        Differences of other pairs; None: the same as U.
    degree : int
        Exponent, at least 1. For degrees of several hundred, K is close to the identity
        matrix, except for nearly equal pairs.
    zero : {"apart", "positive"}
        Meaning of sign(0). "apart": a separate sign, as in eq. 5, so that zero
        differences are similar only to each other. "positive": the sign of positive
        numbers, as in the proof of Theorem 1, so that zero differences are similar to
        small positive ones.

    Returns
    -------
    K : ndarray of shape (N, N2)
        Kernel matrix with entries in [0, 1]. Without V, or with V = U, it is exactly
        symmetric with a diagonal of exactly 1.

    Raises
    ------
    ValueError
        If differences are empty, not finite, or outside [-1, 1]; if V has another
        number of features than U; or if `degree` or `zero` is not valid.

    Notes
    -----
    Features are summed in their order, in double precision. s(u) has a rounding
    error of at most 2^-53, so kappa has an error of at most 2^-52, and is exactly 0
    between differences of different signs, however small they are. The error of the
    mean is at most (d + 2) 2^-53.

    Memory is that of K and of two copies of the differences. All threads of Numba
    (NUMBA_NUM_THREADS) are used; K does not depend on their number.

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
    """Return differences as an array in [-1, 1].

    Values outside by at most 1e-9 are clipped.

    Raises
    ------
    ValueError
        If a value is further outside or not finite, or the shape is wrong or empty.
    """
    meaning = "one row per pair"
    if len(shape) == 2:
        meaning += ", one column per feature"
    U = check_array(U, name, shape, meaning)
    expected = "differences from -1 to 1: scale the features to [0, 1]"
    return clipped(U, name, -1.0, expected)


def clipped(values: Floats, name: str, low: float, expected: str) -> Floats:
    """Clip values to [low, 1]; raise ValueError if they are far outside."""
    if low <= values.min() <= values.max() <= 1:
        return values
    outside = (values < low - _ROUNDING) | (values > 1 + _ROUNDING)
    raise_if_any(outside, values, name, expected)
    return np.clip(values, low, 1.0)


def stretched(U: Floats, zero: Zero) -> Floats:
    """Return the shifted differences s(u).

    Shifted differences of different signs are at least 1 apart.
    """
    check_choice(zero, "zero", ("apart", "positive"))
    if zero == "apart":
        return U + np.sign(U)
    return np.where(U < 0, U - 1, U)


def blocks(V: Floats, n: int) -> list[Floats]:
    """Split V into parts whose kernel with n pairs has about four million values."""
    return np.array_split(V, min(len(V), -(-len(V) * n // _BLOCK_VALUES)))


def map_on_threads(function: Callable[[Any], Any], parts: range) -> list:
    """Apply a function to each part, on several threads; return results in order."""
    threads = config.NUMBA_NUM_THREADS  # pyright: ignore[reportAttributeAccessIssue]
    if len(parts) == 1 or threads == 1:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, parts))


# ---- Compiled loops


@njit_nogil
def _fill(K, rows, columns, degree, top):
    """Compute _ROWS rows of K from `top` on."""
    for left in range(0, K.shape[1], _COLUMNS):
        right = min(left + _COLUMNS, K.shape[1])
        for i in range(top, min(top + _ROWS, len(rows))):
            row = K[i, left:right]
            _add_hats(row, rows[i], columns, left, right)
            _raise(row, degree)


@njit_inner
def _add_hats(row, x, columns, left, right):
    """Compute the mean of max(0, 1 - |x - column|) over features."""
    d = len(x)
    row[:] = 0.0
    for k in range(d):
        a = x[k]
        column = columns[k, left:right]
        for j in range(len(row)):
            row[j] += max(0.0, 1.0 - abs(a - column[j]))
    for j in range(len(row)):
        row[j] /= d  # division makes the mean of d ones exactly 1


@njit_inner
def _raise(row, degree):
    """Raise each entry to the power `degree`, by repeated squaring."""
    if degree == 1:
        return
    square = row.copy()
    row[:] = 1.0
    while degree:  # ends, since degree is positive and has 64 bits
        if degree % 2:
            row *= square
        square *= square
        degree //= 2
