"""Analogical proportions of numbers in [0, 1], as degrees and as kernels on pairs.

Computations with Fractions are exact.

References
----------
.. [AhmadiFahandar2018] M. Ahmadi Fahandar, E. Hüllermeier, "Learning to rank based on
   analogical reasoning", AAAI 2018.
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.analogy.certificate import as_fractions
from preflearn.analogy.kernel import Zero
from preflearn.core.validation import require

Degrees = NDArray[Any]  # floats, or Fractions in an object array

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

    Let u = a - b and v = c - d. "Signs agree" means sign(u) = sign(v), and "near" means a
    distance of at most the tolerance t. Let e(x, y) = max(0, 1 - |x - y| / t). The
    following degrees are eq. 5 of [AhmadiFahandar2019]_, the degrees of
    [AhmadiFahandar2018]_, and variants::

        arithmetic         1 - |u - v| if signs agree, else 0
        difference         1 - |u - v|, which goes down to -1
        clipped            max(0, 1 - |u - v|)
        softened           1 - |u - v| if signs agree, else 1 - max(|u|, |v|)
        geometric          min(ad, bc) / max(ad, bc) if signs agree, else 0; 0/0 counts as 0
        min-max            1 - max(|min(a, d) - min(b, c)|, |max(a, d) - max(b, c)|)
        signed min-max     as min-max if signs agree, else 0
        approximate        1 if a is near b and c near d, or a near c and b near d, else 0
        graded             max(min(e(a, b), e(c, d)), min(e(a, c), e(b, d)))

    Parameters
    ----------
    name : str
        One of `PROPORTIONS`.
    a, b, c, d : array-like
        Numbers in [0, 1] with shapes that broadcast. Integers and Fractions are used
        exactly, also in object arrays.
    zero : {"apart", "positive"}
        Whether 0 has a sign of its own ("apart") or counts as positive.
    tolerance : number
        The tolerance t of the last two degrees. It must be positive for "graded".

    Returns
    -------
    number or ndarray
        The degrees.

    Notes
    -----
    **Kernels.** Arithmetic, difference, clipped, softened, and geometric are kernels on
    pairs, with both conventions for sign(0). Approximate is a kernel if the tolerance is
    0 or at least 1. For each of the others, three pairs show that it is not a kernel.

    **Axioms.** Central permutation means that the degree of a, b, c, d equals that of
    a, c, b, d. If the degree depends on whether signs agree, this axiom fails, except for
    a function of the differences that is 0 wherever the two signs differ. The clipped
    degree satisfies the axiom, because it depends on |a - b - c + d| only. It is
    reflexive and symmetric, is in [0, 1], equals 1 if and only if a - b = c - d, and is a
    kernel. It differs from the arithmetic degree only if the signs differ. There it is
    max(0, 1 - |u| - |v|) instead of 0, so a small rise is similar to a small fall.

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
    """The degrees if the signs of a - b and c - d agree or are not used."""
    zero = 0 * a  # zero of the same type as a
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
        Numbers in [0, 1]. Fractions are used exactly, as `psd_certificate` requires.
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
