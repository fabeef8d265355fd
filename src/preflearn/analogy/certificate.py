"""Exact proof or refutation that a matrix is positive semi-definite.

References
----------
.. [Bareiss1968] E. H. Bareiss, "Sylvester's identity and multistep integer-preserving
   Gaussian elimination", Mathematics of Computation 22, 1968.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.validation import as_array, check_shape, require

Exact = NDArray[Any]  # object array of Python integers
_MAX_ENTRY = 9  # a vector x with entries up to this size is tried first


class Certificate(NamedTuple):
    """Proof that a symmetric matrix K is, or is not, positive semi-definite.

    `psd_certificate` returns it, and `verify` checks it. It contains K as a sum of
    squares, or an x with x'Kx < 0.

    Attributes
    ----------
    psd : bool
        Whether K is positive semi-definite, exactly and without a tolerance.
    rank : int
        Number of positive pivots: the rank of K if it is positive semi-definite.
    order : tuple of int
        Rows of K that were chosen as pivots, in this order.
    pivots : tuple of Fraction
        Diagonal of D in K = L D L'. All are positive, since the elimination ends before
        a pivot that is not.
    rows : tuple of tuple of int
        Integer rows of the elimination, one per pivot: multiples of the columns of L.
    witness : tuple of Fraction or None
        Vector x with x'Kx < 0, of coprime integers; None if K is semi-definite.
    value : Fraction or None
        x'Kx.
    """

    psd: bool
    rank: int
    order: tuple[int, ...]
    pivots: tuple[Fraction, ...]
    rows: tuple[tuple[int, ...], ...]
    witness: tuple[Fraction, ...] | None = None
    value: Fraction | None = None

    def verify(self, K: ArrayLike) -> bool:
        """Return whether the certificate is right for K, without an elimination.

        A proof requires L D L' = K, with positive pivots and as many independent rows
        as the rank. A refutation requires that x'Kx equals `value` and is negative; the
        other fields then describe the elimination up to its end.
        """
        matrix, scale = _integers(K)
        vectors: list[Any] = list(self.rows)
        if self.witness is not None:
            vectors.append(self.witness)
        fitting = all(len(x) == len(matrix) for x in vectors)
        if not fitting or self.psd != (self.value is None):
            return False
        if self.value is not None:
            value = _quadratic(matrix, np.array(self.witness)) / scale
            return self.value < 0 and self.value == value
        if not len(self.rows) == len(self.order) == len(self.pivots) == self.rank:
            return False
        total = 0 * matrix
        for k, (entries, pivot) in enumerate(zip(self.rows, self.pivots, strict=True)):
            row = np.array(entries, dtype=object)
            diagonal = row[self.order[k]]
            # a row is 0 at earlier pivots, so rows are independent
            if pivot <= 0 or not diagonal or row[list(self.order[:k])].any():
                return False
            column = row / Fraction(diagonal)
            total = total + pivot * np.outer(column, column)
        return not (scale * total - matrix).any()


def psd_certificate(K: ArrayLike) -> Certificate:
    """Decide in exact arithmetic whether a symmetric matrix is positive semi-definite.

    The factorization K = L D L' is computed in integers, with the largest diagonal
    entry as the next pivot. K is scaled to integers, and each step divides by the
    previous pivot without a remainder ([Bareiss1968]_). K is positive semi-definite if
    and only if no diagonal entry becomes negative, and none becomes zero in a row that
    is not zero. Otherwise such an entry gives an x with x'Kx < 0.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric matrix of integers, Fractions, or floats. A float is taken as the
        binary fraction that it stores, so 0.1 is not 1/10.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If K is empty, not square, not symmetric, or contains values that are not finite
        real numbers.

    Notes
    -----
    The function computes O(n^3) products of integers, whose number of digits grows to n
    times that of the entries. It takes about a second for 60 rows of floats from [0,
    1].

    Examples
    --------
    >>> psd_certificate([[2, 1], [1, 2]]).pivots
    (Fraction(2, 1), Fraction(3, 2))
    >>> refuted = psd_certificate([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    >>> [int(entry) for entry in refuted.witness], int(refuted.value)
    ([1, -1, 1], -1)
    >>> refuted.verify([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    True
    """
    matrix, scale = _integers(K)
    rows: list[Exact] = []
    order: list[int] = []
    # leading minors of the scaled, permuted matrix; pivots are their ratios
    minors = [1]
    rest = matrix
    direction = _negative_direction(matrix)
    while direction is None and rest.any():  # each step makes one more row 0
        # The pivot is positive: if the whole diagonal were 0, a direction would have
        # been found.
        place = int(np.argmax(rest.diagonal()))
        row = rest[place]
        rest = (rest * row[place] - np.outer(row, row)) // minors[-1]
        rows.append(row)
        order.append(place)
        minors.append(row[place])
        direction = _negative_direction(rest)
    pivots = tuple(
        Fraction(m, before * scale) for before, m in itertools.pairwise(minors)
    )
    eliminated = tuple(tuple(row.tolist()) for row in rows)
    common = (len(rows), tuple(order), pivots, eliminated)
    if direction is None:
        return Certificate(True, *common)
    x = _witness(matrix, rows, order, direction)
    return Certificate(False, *common, tuple(x.tolist()), _quadratic(matrix, x) / scale)


# ---- The matrix in integers


def _integers(K: ArrayLike) -> tuple[Exact, int]:
    """Return K times an integer as Python integers, and that integer."""
    if hasattr(K, "dtype"):
        array = as_array(K, "K")
    else:
        array = np.array(K, dtype=object)  # keeps integers exact
    check_shape(array, "K", ("n", "n"), "a symmetric matrix")
    require(array.size > 0, array.tolist(), "K", "at least one row")
    K_exact = as_fractions(array, "K")
    entries = array.tolist()
    for i, j in np.argwhere(K_exact != K_exact.T).tolist():
        expected = f"K[{j}, {i}] = {entries[j][i]}, since K must be symmetric"
        require(False, entries[i][j], f"K[{i}, {j}]", expected)
    scale = math.lcm(*(entry.denominator for entry in K_exact.flat))
    whole = [entry.numerator * (scale // entry.denominator) for entry in K_exact.flat]
    return np.array(whole, dtype=object).reshape(array.shape), scale


def as_fractions(array: NDArray[Any], name: str) -> Exact:
    """Return the entries as Fractions; a float is taken as its binary fraction."""
    exact = np.empty(array.shape, dtype=object)
    for place in np.ndindex(array.shape):
        entry: Any = array[place]
        if isinstance(entry, np.generic):
            entry = entry.item()  # Python integers do not overflow
        finite = isinstance(entry, float) and math.isfinite(entry)
        where = name
        if place:
            where += f"[{', '.join(map(str, place))}]"
        good = finite or isinstance(entry, Rational)
        require(good, entry, where, "a finite integer, Fraction or float")
        exact[place] = Fraction(entry)
    return exact


# ---- A direction in which x'Kx is negative


def _negative_direction(rest: Exact) -> tuple[list[int], list[int]] | None:
    """Return positions and values of one or two entries of x with x'(rest)x < 0.

    The result is None if no diagonal entry is negative, and none is 0 in a nonzero row.
    """
    diagonal = rest.diagonal()
    for i in np.flatnonzero(diagonal < 0).tolist():
        return [i], [1]
    for i in np.flatnonzero(diagonal == 0).tolist():
        for j in np.flatnonzero(rest[i] != 0).tolist():
            # for x = (s, t) at these positions the form is 2 s t a + t^2 b
            a = rest[i, j]
            b = rest[j, j]
            if b:
                return [i, j], [-b, a]
            if a > 0:
                return [i, j], [-1, 1]
            return [i, j], [1, 1]
    return None


def _witness(
    matrix: Exact,
    rows: list[Exact],
    order: list[int],
    direction: tuple[list[int], list[int]],
) -> Exact:
    """Extend the direction to x, with entries at the pivots that make Kx 0 there."""
    x = np.full(len(matrix), Fraction(0), dtype=object)
    x[direction[0]] = [Fraction(entry) for entry in direction[1]]
    for row, place in zip(reversed(rows), reversed(order), strict=True):
        x[place] = -(row @ x) / row[place]
    largest = max(abs(entry) for entry in x)
    for size in range(1, _MAX_ENTRY + 1):
        entries = [Fraction(round(size * entry / largest)) for entry in x]
        rounded = np.array(entries, dtype=object)
        if _quadratic(matrix, rounded) < 0:
            return _with_positive_start(rounded)
    numerator = math.gcd(*(entry.numerator for entry in x))
    denominator = math.lcm(*(entry.denominator for entry in x))
    return _with_positive_start(x / Fraction(numerator, denominator))


def _with_positive_start(x: Exact) -> Exact:
    """Return x or -x, such that the first nonzero entry is positive."""
    if x[np.flatnonzero(x)[0]] > 0:
        return x
    return -x


def _quadratic(matrix: Exact, x: Exact) -> Fraction:
    return sum(x * (matrix @ x), Fraction(0))
