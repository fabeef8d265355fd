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

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.analogy.certificate import as_fractions
from preflearn.analogy.kernel import Zero
from preflearn.core.validation import (
    as_array,
    as_floats,
    check_choice,
    check_real,
    check_shape,
    raise_if_any,
    require,
)

Degrees = NDArray[Any]  # floats, or Fractions in an array of objects
# of a, b, c, d and the tolerance
Proportion = Callable[[Degrees, Degrees, Degrees, Degrees, Any], Degrees]


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

    Raises
    ------
    ValueError
        On an unknown name or zero, values outside [0, 1], shapes that do not broadcast,
        or a tolerance that is negative (for the graded one, not positive).

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
    check_choice(name, "name", PROPORTIONS)
    check_choice(zero, "zero", ("apart", "positive"))
    check_real(tolerance, "tolerance", "a number of at least 0", least=0.0)
    require(
        tolerance > 0 or name != "graded", tolerance, "tolerance", "a positive number"
    )
    first, second, third, fourth = np.broadcast_arrays(
        _check_values(a, "a"),
        _check_values(b, "b"),
        _check_values(c, "c"),
        _check_values(d, "d"),
    )
    agreeing, others = _FUNCTIONS[name]
    degrees = np.asarray(agreeing(first, second, third, fourth, tolerance))
    if others is not None:
        u = first - second
        v = third - fourth
        agree = (u >= 0) == (v >= 0)
        if zero == "apart":
            agree &= (u <= 0) == (v <= 0)
        degrees = np.where(
            agree, degrees, others(first, second, third, fourth, tolerance)
        )
    if degrees.ndim == 0:
        return degrees.item()
    return degrees


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

    Raises
    ------
    ValueError
        As `proportion`, or if the pairs have another shape.

    Examples
    --------
    >>> from fractions import Fraction
    >>> half = Fraction(1, 2)
    >>> proportion_gram("min-max", [[0, 0], [half, half], [0, 1]]).tolist()[2]
    [Fraction(0, 1), Fraction(1, 2), Fraction(1, 1)]
    """
    array = _check_values(pairs, "pairs")
    check_shape(array, "pairs", ("n", 2), "the two numbers of a pair")
    first = array[:, :1]
    second = array[:, 1:]
    return proportion(
        name, first, second, first.T, second.T, zero=zero, tolerance=tolerance
    )


def _check_values(values: ArrayLike, name: str) -> Degrees:
    """Floats stay floats, integers and Fractions become Fractions."""
    array = as_array(values, name)
    convert = as_floats
    if array.dtype.kind in "biuO":
        convert = as_fractions
    array = convert(array, name)
    outside = ~np.asarray((array >= 0) & (array <= 1), dtype=bool)
    raise_if_any(outside, array, name, "a number in [0, 1]")
    return array


# ---- The proportions, on arrays, of a tolerance t


def _nothing(a: Degrees, b: Degrees, c: Degrees, d: Degrees, t: Any) -> Degrees:
    return 0 * a  # a zero of the same kind


def _difference(a: Degrees, b: Degrees, c: Degrees, d: Degrees, t: Any) -> Degrees:
    return 1 - abs((a - b) - (c - d))


def _clipped(a: Degrees, b: Degrees, c: Degrees, d: Degrees, t: Any) -> Degrees:
    return np.maximum(_difference(a, b, c, d, t), 0 * a)


def _smaller(a: Degrees, b: Degrees, c: Degrees, d: Degrees, t: Any) -> Degrees:
    return 1 - np.maximum(abs(a - b), abs(c - d))


def _quotient(a: Degrees, b: Degrees, c: Degrees, d: Degrees, t: Any) -> Degrees:
    low = np.minimum(a * d, b * c)
    high = np.maximum(a * d, b * c)
    zero = np.asarray(high == 0, dtype=bool)
    return low / np.where(zero, 1 + 0 * high, high)


def _min_max(a: Degrees, b: Degrees, c: Degrees, d: Degrees, t: Any) -> Degrees:
    low = abs(np.minimum(a, d) - np.minimum(b, c))
    return 1 - np.maximum(low, abs(np.maximum(a, d) - np.maximum(b, c)))


def _distance(a: Degrees, b: Degrees, c: Degrees, d: Degrees) -> Degrees:
    """The larger distance within the pairs or between them, whichever is smaller.

    The function e(x, y) decreases with it.
    """
    within = np.maximum(abs(a - b), abs(c - d))
    between = np.maximum(abs(a - c), abs(b - d))
    return np.minimum(within, between)


def _approximate(a: Degrees, b: Degrees, c: Degrees, d: Degrees, t: Any) -> Degrees:
    return 0 * a + (_distance(a, b, c, d) <= t)


def _graded(a: Degrees, b: Degrees, c: Degrees, d: Degrees, t: Any) -> Degrees:
    return np.maximum(0 * a, 1 - _distance(a, b, c, d) / t)


# One function if the signs of a - b and c - d agree, and one if not; None if the signs
# do not matter.
_FUNCTIONS: dict[str, tuple[Proportion, Proportion | None]] = {
    "arithmetic": (_difference, _nothing),
    "difference": (_difference, None),
    "clipped": (_clipped, None),
    "softened": (_difference, _smaller),
    "geometric": (_quotient, _nothing),
    "min-max": (_min_max, None),
    "signed min-max": (_min_max, _nothing),
    "approximate": (_approximate, None),
    "graded": (_graded, None),
}
PROPORTIONS = tuple(_FUNCTIONS)
