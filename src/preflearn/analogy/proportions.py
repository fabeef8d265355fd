"""Analogical proportions of numbers in [0, 1], as degrees and as kernels on pairs; exact on Fractions.

References
----------
.. [AhmadiFahandar2018] M. Ahmadi Fahandar, E. Huellermeier, "Learning to rank based on analogical
   reasoning", AAAI 2018.
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Huellermeier, "Analogy-based preference learning with
   kernels", KI 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import as_array, as_floats, check_choice, check_real, check_shape, refuse, require

Degrees = NDArray[Any]  # floats, or Fractions in an array of objects
Zero = Literal["apart", "positive"]
Proportion = Callable[[Degrees, Degrees, Degrees, Degrees, Zero, Any], Degrees]  # of a, b, c, d


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

    With u = a - b, v = c - d, "signs agree" for sign(u) = sign(v), "near" for a distance of at most the
    tolerance t, and e(x, y) = max(0, 1 - |x - y| / t), these are eq. 5 of [AhmadiFahandar2019]_, the others
    of [AhmadiFahandar2018]_, and variants::

        arithmetic         1 - |u - v| where signs agree, else 0
        difference         1 - |u - v|, which goes down to -1
        clipped            max(0, 1 - |u - v|)
        softened           1 - |u - v| where signs agree, else 1 - max(|u|, |v|)
        geometric          min(ad, bc) / max(ad, bc) where signs agree, else 0; 0/0 counts as 0
        ratio              as geometric, but 0/0 counts as 1
        min-max            1 - max(|min(a, d) - min(b, c)|, |max(a, d) - max(b, c)|)
        signed min-max     as min-max where signs agree, else 0
        approximate        1 if a is near b and c near d, or a near c and b near d, else 0
        graded             max(min(e(a, b), e(c, d)), min(e(a, c), e(b, d)))
        graded as coded    as graded, but e(x, x) = 0, as in the code that came with [AhmadiFahandar2018]_

    Parameters
    ----------
    name : str
        One of `PROPORTIONS`.
    a, b, c, d : array-like
        Numbers in [0, 1] that broadcast. Integers and Fractions are taken exactly, also in arrays of objects.
    zero : {"apart", "positive"}
        Whether sign(0) is a class of its own or joins the positive ones.
    tolerance : number
        t of the last three; the graded ones need it positive.

    Returns
    -------
    number or ndarray
        The degrees.

    Raises
    ------
    ValueError
        On an unknown name or zero, values outside [0, 1], shapes that do not broadcast, or a tolerance that
        is negative (for the graded ones, not positive).

    Notes
    -----
    **Kernels** on pairs are arithmetic, difference, clipped, softened and geometric, by both conventions of
    sign(0); ratio with `zero` "apart"; and approximate with a tolerance of 0, or from 1 on. All others are
    refuted by two or three pairs.

    **Axioms.** The threshold of signs costs the central permutation, the degree of a, b, c, d is not that of
    a, c, b, d, unless a function of the differences is 0 wherever they differ. Clipped has it, as it depends
    on |a - b - c + d| only. It is reflexive and symmetric, stays in [0, 1], is 1 if and only if a - b = c -
    d, and is a kernel. It differs from arithmetic where signs do: there it is max(0, 1 - |u| - |v|) in place
    of 0, so that a small rise is like a small fall.

    Examples
    --------
    >>> third = Fraction(1, 3)
    >>> proportion("arithmetic", 1, third, third, 0), proportion("min-max", 1, third, third, 0)
    (Fraction(2, 3), Fraction(1, 3))
    >>> proportion("arithmetic", 0.5, 0.25, 0.25, [0.0, 0.25, 0.5]).tolist()
    [1.0, 0.0, 0.0]
    """
    check_choice(name, "name", PROPORTIONS)
    check_choice(zero, "zero", ("apart", "positive"))
    _check_tolerance(tolerance, positive=name.startswith("graded"))
    first, second = _check_values(a, "a"), _check_values(b, "b")
    third, fourth = _check_values(c, "c"), _check_values(d, "d")
    _check_broadcast(first, second, third, fourth)
    degrees = np.asarray(_FUNCTIONS[name](first, second, third, fourth, zero, tolerance))
    return degrees if degrees.ndim else degrees.item()


def proportion_gram(name: str, pairs: ArrayLike, *, zero: Zero = "apart", tolerance: Any = 0) -> Degrees:
    """The matrix of degrees k((a, b), (c, d)) = `proportion` of a, b, c, d between all pairs of numbers.

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
    >>> half = Fraction(1, 2)
    >>> proportion_gram("min-max", [[0, 0], [half, half], [0, 1]]).tolist()[2]
    [Fraction(0, 1), Fraction(1, 2), Fraction(1, 1)]
    """
    array = _check_values(pairs, "pairs")
    check_shape(array, "pairs", ("n", 2), "the two numbers of a pair")
    first, second = array[:, :1], array[:, 1:]
    return proportion(name, first, second, first.T, second.T, zero=zero, tolerance=tolerance)


# ---- Checks


def _check_values(values: ArrayLike, name: str) -> Degrees:
    """Floats stay floats, integers and Fractions become Fractions."""
    array = as_array(values, name)
    array = _fractions(array, name) if array.dtype.kind in "biuO" else as_floats(array, name)
    refuse(~np.asarray((array >= 0) & (array <= 1), dtype=bool), array, name, "a number in [0, 1]")
    return array


def _fractions(array: NDArray[Any], name: str) -> Degrees:
    exact = np.empty(array.shape, dtype=object)
    for place in np.ndindex(array.shape):
        entry: Any = array[place]
        entry = entry.item() if isinstance(entry, np.generic) else entry
        good = isinstance(entry, Rational | float) and math.isfinite(entry)
        where = f"[{', '.join(map(str, place))}]" * bool(place)
        require(good, entry, name + where, "a finite integer, Fraction or float")
        exact[place] = Fraction(entry)
    return exact


def _check_broadcast(*values: Degrees) -> None:
    shapes = [value.shape for value in values]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        found = ", ".join(f"{name} {shape}" for name, shape in zip("abcd", shapes, strict=True))
        raise ValueError(f"the shapes are {found}; expected numbers or arrays that broadcast") from None


def _check_tolerance(tolerance: Any, positive: bool) -> None:
    check_real(tolerance, "tolerance", "a number of at least 0", least=0.0)
    require(not positive or tolerance > 0, tolerance, "tolerance", "a positive number")


# ---- The proportions, on arrays


def _agree(u: Degrees, v: Degrees, zero: Zero) -> NDArray[np.bool_]:
    if zero == "positive":
        return np.asarray((u >= 0) == (v >= 0), dtype=bool)
    return np.asarray(((u > 0) == (v > 0)) & ((u < 0) == (v < 0)), dtype=bool)


def _signed(unsigned: Proportion) -> Proportion:
    """A proportion where the signs of a - b and c - d agree, 0 elsewhere."""

    def function(a: Degrees, b: Degrees, c: Degrees, d: Degrees, zero: Zero, tolerance: Any) -> Degrees:
        degrees = unsigned(a, b, c, d, zero, tolerance)
        return np.where(_agree(a - b, c - d, zero), degrees, 0 * degrees)  # a zero of the same kind

    return function


def _difference(a: Degrees, b: Degrees, c: Degrees, d: Degrees, zero: Zero, tolerance: Any) -> Degrees:
    return 1 - abs((a - b) - (c - d))


def _clipped(a: Degrees, b: Degrees, c: Degrees, d: Degrees, zero: Zero, tolerance: Any) -> Degrees:
    degrees = _difference(a, b, c, d, zero, tolerance)
    return np.maximum(degrees, 0 * degrees)


def _softened(a: Degrees, b: Degrees, c: Degrees, d: Degrees, zero: Zero, tolerance: Any) -> Degrees:
    u, v = a - b, c - d
    return np.where(_agree(u, v, zero), 1 - abs(u - v), 1 - np.maximum(abs(u), abs(v)))


def _quotient(undefined: int) -> Proportion:
    """min(ad, bc) / max(ad, bc), and a given value for 0/0."""

    def function(a: Degrees, b: Degrees, c: Degrees, d: Degrees, zero: Zero, tolerance: Any) -> Degrees:
        low, high = np.minimum(a * d, b * c), np.maximum(a * d, b * c)
        degenerate = np.asarray(high == 0, dtype=bool)
        return np.where(degenerate, undefined + 0 * low, low / np.where(degenerate, 1 + 0 * high, high))

    return function


def _min_max(a: Degrees, b: Degrees, c: Degrees, d: Degrees, zero: Zero, tolerance: Any) -> Degrees:
    low = abs(np.minimum(a, d) - np.minimum(b, c))
    return 1 - np.maximum(low, abs(np.maximum(a, d) - np.maximum(b, c)))


def _near(nearness: Callable[[Degrees, Any], Degrees]) -> Proportion:
    """Near within both pairs, or from pair to pair; nearness as a function of |x - y| and the tolerance."""

    def function(a: Degrees, b: Degrees, c: Degrees, d: Degrees, zero: Zero, tolerance: Any) -> Degrees:
        def near(x: Degrees, y: Degrees) -> Degrees:
            return nearness(abs(x - y), tolerance)

        return np.maximum(np.minimum(near(a, b), near(c, d)), np.minimum(near(a, c), near(b, d)))

    return function


def _crisp(distance: Degrees, tolerance: Any) -> Degrees:
    return np.where(distance <= tolerance, 1 + 0 * distance, 0 * distance)


def _graded(distance: Degrees, tolerance: Any) -> Degrees:
    return np.maximum(0 * distance, 1 - distance / tolerance)


def _graded_as_coded(distance: Degrees, tolerance: Any) -> Degrees:
    return np.where(distance == 0, 0 * distance, _graded(distance, tolerance))


_FUNCTIONS: dict[str, Proportion] = {
    "arithmetic": _signed(_difference),
    "difference": _difference,
    "clipped": _clipped,
    "softened": _softened,
    "geometric": _signed(_quotient(0)),
    "ratio": _signed(_quotient(1)),
    "min-max": _min_max,
    "signed min-max": _signed(_min_max),
    "approximate": _near(_crisp),
    "graded": _near(_graded),
    "graded as coded": _near(_graded_as_coded),
}
PROPORTIONS = tuple(_FUNCTIONS)
