"""What a covariance function says of the scores, in words (the end of section 4.1 of [Maystre2019]_).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

from preflearn.checks import check_real, require
from preflearn.dynamics.covariances.approximations import Periodic, SquaredExponential
from preflearn.dynamics.covariances.composite import Covariance, Product, Sum
from preflearn.dynamics.covariances.elementary import (
    Affine,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    PiecewiseConstant,
    Wiener,
)

_A_YEAR = {"year": 1.0, "week": 365.25 / 7, "day": 365.25, "hour": 8766.0, "second": 31_557_600.0}
_CURVES = {  # how they look, the correlation over one length scale, lengths until it is one half
    Matern12: ("rough", "0.37", 0.693147),
    Matern32: ("smooth", "0.48", 0.968994),
    Matern52: ("very smooth", "0.52", 1.042122),
    SquaredExponential: ("perfectly smooth", "0.61", 1.177410),
}


def in_words(
    covariance: Covariance | Mapping[Hashable, Covariance], unit: str = "day", *, span: float | None = None
) -> str:
    """Say what each part of a covariance says of the scores, with numbers and units.

    Parameters
    ----------
    covariance : Covariance or mapping of feature name to Covariance
    unit : str
        Of time, in the singular: "day", as `Matches.from_frame` reads dates, "year" or another one.
        Rates of seconds, hours, days, weeks and years are told per year of 365.25 days, and lengths from one
        year on in years.
    span : float, optional
        How long after their origins parts that grow are compared with the others, in the unit of time; one
        year if None, or ten units where the unit is none of these.

    Returns
    -------
    str
        A line for each part of a sum, and one for the sum.

    Raises
    ------
    ValueError
        If `covariance` is none, the unit is no word or in the plural, or the span is not positive.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
       time-dynamics", KDD 2019.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, Matern12
    >>> print(in_words(Constant(0.04) + Matern12(0.36, lengthscale=1461.0)))
    Constant: a level that does not change, of standard deviation 0.2.
    Matern12: a rough curve around 0, of standard deviation 0.6; its correlation falls to 0.37 over 4 years and to one half over 2.77 years.
    Together: a difference of two scores has standard deviation 0.894; of its variance 10 % is from Constant and 90 % from Matern12.
    """  # noqa: E501
    require(isinstance(unit, str) and unit.strip() != "", unit, "unit", "a word, such as 'day'")
    require(not unit.endswith("s"), unit, "unit", "a word in the singular")
    year = _A_YEAR.get(unit, 10.0)
    after = year if span is None else check_real(span, "span", "a positive number", least=1e-100)
    if isinstance(covariance, Mapping):
        require(len(covariance) > 0, covariance, "covariance", "at least one covariance")
        whose = {name: "all other features" if name == "*" else str(name) for name in covariance}
        told = [f"{whose[name]}:\n{in_words(k, unit, span=span)}" for name, k in covariance.items()]
        return "\n".join(told)
    require(isinstance(covariance, Covariance), covariance, "covariance", "a Covariance")
    parts = covariance.parts if isinstance(covariance, Sum) else (covariance,)
    names = list(map(_label, parts))
    counts = [names[: k + 1].count(name) for k, name in enumerate(names)]
    labels = [name + f" ({k})" * (names.count(name) > 1) for name, k in zip(names, counts, strict=True)]
    lines = [f"{label}: {_told(part, unit)}." for label, part in zip(labels, parts, strict=True)]
    variances = [variance_after(part, after) for part in parts]
    when = f"{_length(after, unit)} after the origin, " if _from_zero(covariance) is not covariance else ""
    together = _number(sqrt(2 * sum(variances)))
    last = f"Together: {when}a difference of two scores has standard deviation {together}"
    if len(parts) > 1:
        shares = [f"{100 * v / sum(variances):.3g} % " for v in variances]
        shares = [share + "is " * (k == 0) + f"from {labels[k]}" for k, share in enumerate(shares)]
        last += f"; of its variance {', '.join(shares[:-1])} and {shares[-1]}"
    return "\n".join([*lines, last + "."])


def _length(amount: float, unit: str) -> str:
    """A length of time; what is 0.9999 years by rounding is a year."""
    if amount >= _A_YEAR.get(unit, math.inf) * (1 - 1e-3):
        unit, amount = "year", amount / _A_YEAR[unit]
    text = _number(amount)
    return f"{text} {unit}" + "s" * (text != "1")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _label(part: Covariance) -> str:
    if isinstance(part, Product):
        return " x ".join(f"({_label(k)})" if isinstance(k, Sum) else _label(k) for k in part.parts)
    if isinstance(part, Sum):
        return " + ".join(map(_label, part.parts))
    return type(part).__name__


def variance_after(k: Covariance, after: float) -> float:
    """Of the score, so long after the origin of parts that grow."""
    return float(_from_zero(k).gram([0.0, after])[1, 1])


def _from_zero(k: Any) -> Any:
    """With the origin 0 of all parts that grow; the same object where there are none."""
    if isinstance(k, Sum | Product):
        parts = tuple(map(_from_zero, k.parts))
        return type(k)(parts) if any(new is not old for new, old in zip(parts, k.parts, strict=True)) else k
    return replace(k, origin=0.0) if isinstance(k, Wiener | Linear | Affine) else k


def _told(part: Any, unit: str) -> str:
    """One part."""
    if isinstance(part, Sum | Product):
        parts = "; ".join(f"{_label(k)}, {_told(k, unit)}" for k in part.parts)
        what = "sum" if isinstance(part, Sum) else "product"
        how = ", whose covariances are multiplied" * (what == "product")
        return f"a {what} of {len(part.parts)} parts{how} [{parts}]"
    deviation = f"of standard deviation {_number(sqrt(part.variance))}"
    year, rate = ("year", _A_YEAR[unit]) if unit in _A_YEAR else (unit, 1.0)
    origin = getattr(part, "origin", 0.0)
    start = "each feature's first match" if origin == "first" else f"time {origin:g}"
    match part:
        case Constant():
            return f"a level that does not change, {deviation}"
        case PiecewiseConstant():
            return f"a level that is drawn anew at each of its boundaries, {deviation}"
        case Wiener():
            growth = rate * part.variance
            return (
                f"a random walk from 0 at {start}; its variance grows by {_number(growth)} a {year}, so a "
                f"change has standard deviation {_number(sqrt(growth))} over one {year} and twice that over 4"
            )
        case Linear() | Affine():
            line = f", {deviation} at" if isinstance(part, Affine) else " through 0 at"
            slope = rate * sqrt(getattr(part, "slope_variance", part.variance))
            slopes = f"its slope has standard deviation {_number(slope)} a {year}"
            return f"a straight line{line} {start}; {slopes}"
        case Periodic():
            lowest = float(part.gram([0.0], [part.period / 2])[0, 0]) / part.variance
            return (
                f"a pattern that comes back every {_length(part.period, unit)}, {deviation}; its correlation "
                f"over half a period is {lowest:.2g}"
            )
    look, left, half = _CURVES[type(part)]
    return (
        f"a {look} curve around 0, {deviation}; its correlation falls to {left} over "
        f"{_length(part.lengthscale, unit)} and to one half over {_length(half * part.lengthscale, unit)}"
    )
