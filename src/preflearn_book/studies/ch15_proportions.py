"""Analogical proportions of numbers in [0, 1], as degrees and as kernels on pairs;
exact on Fractions.

References
----------
.. [AhmadiFahandar2018] M. Ahmadi Fahandar, E. Huellermeier, "Learning to rank based on
   analogical reasoning", AAAI 2018.
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Huellermeier, "Analogy-based preference
   learning with kernels", KI 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.analogy.certificate import as_fractions
from preflearn.analogy.kernel import Zero
from preflearn.core.validation import require

Degrees = NDArray[Any]  # floats, or Fractions in an array of objects

PROPORTIONS = (
    "arithmetic",
    "difference",
    "clipped",
    "softened",
    "geometric",
    "min-max",
    "signed min-max",
    "approximate",
    "graded",
)


def proportion(
    name: str,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    d: ArrayLike,
    *,
    zero: Zero = "apart",
    tolerance: Any = 0,
) -> Any:
    """The degree to which a relates to b as c relates to d, for one feature.

    With u = a - b, v = c - d, "signs agree" for sign(u) = sign(v), "near" for a
    distance of at most the tolerance t, and e(x, y) = max(0, 1 - |x - y| / t), these
    are eq. 5 of [AhmadiFahandar2019]_, the others of [AhmadiFahandar2018]_, and
    variants::

        arithmetic         1 - |u - v| where signs agree, else 0
        difference         1 - |u - v|, which goes down to -1
        clipped            max(0, 1 - |u - v|)
        softened           1 - |u - v| where signs agree, else 1 - max(|u|, |v|)
        geometric          min(ad, bc) / max(ad, bc) where signs agree, else 0; 0/0 counts as 0
        min-max            1 - max(|min(a, d) - min(b, c)|, |max(a, d) - max(b, c)|)
        signed min-max     as min-max where signs agree, else 0
        approximate        1 if a is near b and c near d, or a near c and b near d, else 0
        graded             max(min(e(a, b), e(c, d)), min(e(a, c), e(b, d)))

    Parameters
    ----------
    name : str
        One of `PROPORTIONS`.
    a, b, c, d : array-like
        Numbers in [0, 1] that broadcast. Integers and Fractions are taken exactly, also
        in arrays of objects.
    zero : {"apart", "positive"}
        Whether sign(0) is a class of its own or joins the positive ones.
    tolerance : number
        t of the last two; the graded one needs it positive.

    Returns
    -------
    number or ndarray
        The degrees.

    Notes
    -----
    **Kernels** on pairs are arithmetic, difference, clipped, softened and geometric, by
    both conventions of sign(0), and approximate with a tolerance of 0, or from 1 on.
    All others are refuted by three pairs.

    **Axioms.** The threshold of signs costs the central permutation, the degree of a,
    b, c, d is not that of a, c, b, d, unless a function of the differences is 0
    wherever they differ. Clipped has it, as it depends on |a - b - c + d| only. It is
    reflexive and symmetric, stays in [0, 1], is 1 if and only if a - b = c - d, and is
    a kernel. It differs from arithmetic where signs do: there it is max(0, 1 - |u| -
    |v|) in place of 0, so that a small rise is like a small fall.

    Examples
    --------
    >>> from fractions import Fraction
    >>> third = Fraction(1, 3)
    >>> proportion("arithmetic", 1, third, third, 0), proportion("min-max", 1, third, third, 0)
    (Fraction(2, 3), Fraction(1, 3))
    >>> proportion("arithmetic", 0.5, 0.25, 0.25, [0.0, 0.25, 0.5]).tolist()
    [1.0, 0.0, 0.0]
    """
    require(name in PROPORTIONS, name, "name", f"one of {PROPORTIONS}")
    numbers = [_exact_or_float(values) for values in (a, b, c, d)]
    first, second, third, fourth = np.broadcast_arrays(*numbers)
    degrees = _same_direction(name, first, second, third, fourth, tolerance)
    if name in ("arithmetic", "softened", "geometric", "signed min-max"):
        u = first - second
        v = third - fourth
        agree = (u >= 0) == (v >= 0)
        if zero == "apart":
            agree &= (u <= 0) == (v <= 0)
        otherwise = 0 * first
        if name == "softened":
            otherwise = 1 - np.maximum(abs(u), abs(v))
        degrees = np.where(agree, degrees, otherwise)
    degrees = np.asarray(degrees)
    return degrees.item() if degrees.ndim == 0 else degrees


def _same_direction(
    name: str, a: Degrees, b: Degrees, c: Degrees, d: Degrees, tolerance: Any
) -> Degrees:
    """The degrees if the signs of a - b and c - d agree or do not matter."""
    zero = 0 * a  # of the same kind
    if name == "geometric":
        low = np.minimum(a * d, b * c)
        high = np.maximum(a * d, b * c)
        is_zero = np.asarray(high == 0, dtype=bool)
        return low / np.where(is_zero, 1 + zero, high)
    if name in ("min-max", "signed min-max"):
        low = abs(np.minimum(a, d) - np.minimum(b, c))
        return 1 - np.maximum(low, abs(np.maximum(a, d) - np.maximum(b, c)))
    if name in ("approximate", "graded"):
        within = np.maximum(abs(a - b), abs(c - d))
        between = np.maximum(abs(a - c), abs(b - d))
        distance = np.minimum(within, between)  # e(x, y) decreases with it
        if name == "approximate":
            return zero + (distance <= tolerance)
        return np.maximum(zero, 1 - distance / tolerance)
    difference = 1 - abs((a - b) - (c - d))
    if name == "clipped":
        return np.maximum(difference, zero)
    return difference


def proportion_gram(
    name: str, pairs: ArrayLike, *, zero: Zero = "apart", tolerance: Any = 0
) -> Degrees:
    """The matrix of degrees k((a, b), (c, d)) between all pairs of numbers.

    Parameters
    ----------
    pairs : array-like of shape (n, 2)
        Numbers in [0, 1]; Fractions are taken exactly, as `psd_certificate` wants them.
    name, zero, tolerance
        As in `proportion`.

    Returns
    -------
    ndarray of shape (n, n)

    Examples
    --------
    >>> from fractions import Fraction
    >>> half = Fraction(1, 2)
    >>> proportion_gram("min-max", [[0, 0], [half, half], [0, 1]]).tolist()[2]
    [Fraction(0, 1), Fraction(1, 2), Fraction(1, 1)]
    """
    array = _exact_or_float(pairs)
    first = array[:, :1]
    second = array[:, 1:]
    return proportion(
        name, first, second, first.T, second.T, zero=zero, tolerance=tolerance
    )


def _exact_or_float(values: ArrayLike) -> Degrees:
    """Floats stay floats, integers and Fractions become Fractions."""
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    return as_fractions(array, "values")
