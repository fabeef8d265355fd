"""What a covariance function says of the scores, in words (the end of section 4.1 of [Maystre2019]_).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

from scipy.optimize import brentq

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

_SECONDS = {
    "year": 31_557_600.0,  # of 365.25 days
    "week": 604_800.0,
    "day": 86_400.0,
    "hour": 3_600.0,
    "minute": 60.0,
    "second": 1.0,
}
_SHOWN = ("year", "day", "hour", "minute", "second")  # what lengths are told in
_GROWING = (Wiener, Linear, Affine)
_Lasting = Matern12 | Matern32 | Matern52 | SquaredExponential


def in_words(
    covariance: Covariance | Mapping[Hashable, Covariance], unit: str = "day", *, span: float | None = None
) -> str:
    """Say what each part of a covariance says of the scores, with numbers and units.

    Parameters
    ----------
    covariance : Covariance or mapping of feature name to Covariance
    unit : str
        Of time, in the singular: "day", as `Matches.from_frame` reads dates, "year" or another one.
        Lengths in seconds, minutes, hours, days, weeks or years are told in the largest of these (but for
        weeks) that they reach; a year has 365.25 days.
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
    meant = unit.strip().lower().removesuffix("s")
    require(unit in _SECONDS or meant not in _SECONDS, unit, "unit", f"{meant!r}, in the singular")
    clock = _Clock(unit)
    after = clock.year if span is None else check_real(span, "span", "a positive number", least=1e-100)
    if isinstance(covariance, Mapping):
        require(len(covariance) > 0, covariance, "covariance", "at least one covariance")
        whose = {name: "all other features" if name == "*" else str(name) for name in covariance}
        told = [f"{whose[name]}:\n{in_words(k, unit, span=span)}" for name, k in covariance.items()]
        return "\n".join(told)
    require(isinstance(covariance, Covariance), covariance, "covariance", "a Covariance")
    parts = covariance.parts if isinstance(covariance, Sum) else (covariance,)
    lines = [f"{label}: {_of(part, clock)}." for label, part in zip(_labels(parts), parts, strict=True)]
    return "\n".join([*lines, _together(parts, clock, after)])


class _Clock:
    """Lengths and rates in units that one can imagine."""

    def __init__(self, unit: str) -> None:
        self._unit, self._seconds = unit, _SECONDS.get(unit)
        self.year = _SECONDS["year"] / self._seconds if self._seconds else 10.0
        self.period = "year" if self._seconds else unit  # of rates
        self._rate = self.year if self._seconds else 1.0

    def length(self, amount: float) -> str:
        name = self._unit
        if self._seconds is not None:
            seconds = amount * self._seconds
            # what is 0.9999 years by rounding is a year
            name = next((name for name in _SHOWN if seconds >= _SECONDS[name] * (1 - 1e-3)), "second")
            amount = seconds / _SECONDS[name]
        text = _number(amount)
        return f"{text} {name}" + "s" * (text != "1")

    def a_period(self, rate: float) -> float:
        """A rate per unit of time, per year."""
        return rate * self._rate


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _labels(parts: tuple[Covariance, ...]) -> list[str]:
    """Classes, numbered where there are several of one."""
    names = [_label(part) for part in parts]
    counts = [names[: k + 1].count(name) for k, name in enumerate(names)]
    return [name + f" ({count})" * (names.count(name) > 1) for name, count in zip(names, counts, strict=True)]


def _label(part: Covariance) -> str:
    if isinstance(part, Product):
        return " x ".join(f"({_label(k)})" if isinstance(k, Sum) else _label(k) for k in part.parts)
    if isinstance(part, Sum):
        return " + ".join(map(_label, part.parts))
    return type(part).__name__


def _together(parts: tuple[Covariance, ...], clock: _Clock, after: float) -> str:
    variances = [variance_after(part, after) for part in parts]
    total = sum(variances)
    when = f"{clock.length(after)} after the origin, " if any(map(_grows, parts)) else ""
    told = f"Together: {when}a difference of two scores has standard deviation {_number(sqrt(2 * total))}"
    if len(parts) == 1:
        return told + "."
    shares = [
        f"{100 * v / total:.3g} % {'is ' * (k == 0)}from {label}"
        for k, (v, label) in enumerate(zip(variances, _labels(parts), strict=True))
    ]
    return f"{told}; of its variance {', '.join(shares[:-1])} and {shares[-1]}."


def _grows(k: Covariance) -> bool:
    return any(map(_grows, k.parts)) if isinstance(k, Sum | Product) else isinstance(k, _GROWING)


def variance_after(k: Covariance, after: float) -> float:
    """Of the score, so long after the origin of parts that grow."""
    return float(_from_zero(k).gram([0.0, after])[1, 1])


def _from_zero(k: Covariance) -> Covariance:
    if isinstance(k, Sum | Product):
        return type(k)(tuple(map(_from_zero, k.parts)))
    return replace(k, origin=0.0) if isinstance(k, _GROWING) else k


# ---- One part


def _of(part: Covariance, clock: _Clock) -> str:
    if isinstance(part, Sum):
        told = "; ".join(f"{_label(k)}, {_of(k, clock)}" for k in part.parts)
        return f"a sum of {len(part.parts)} parts [{told}]"
    if isinstance(part, Product):
        told = "; ".join(f"{_label(k)}, {_of(k, clock)}" for k in part.parts)
        return f"a product of {len(part.parts)} parts, whose covariances are multiplied [{told}]"
    for kind, tell in _TELLERS.items():
        if isinstance(part, kind):
            return tell(part, clock)
    return f"{part!r}, of which no more is known here"


def _constant(k: Constant, clock: _Clock) -> str:
    return f"a level that does not change, of standard deviation {_number(sqrt(k.variance))}"


def _piecewise(k: PiecewiseConstant, clock: _Clock) -> str:
    n = len(k.boundaries)
    how = "at the one boundary" if n == 1 else f"at each of {n} boundaries"
    return f"a level that is drawn anew {how}, of standard deviation {_number(sqrt(k.variance))}"


def _lasting(what: str, left: str) -> Callable[[_Lasting, _Clock], str]:
    def tell(k: _Lasting, clock: _Clock) -> str:
        half = brentq(lambda u: float(_correlation(k, u)) - 0.5, 0.0, 10.0)
        return (
            f"a {what} curve around 0, of standard deviation {_number(sqrt(k.variance))}; its correlation "
            f"falls to {left} over {clock.length(k.lengthscale)} and to one half over "
            f"{clock.length(float(half) * k.lengthscale)}"  # pyright: ignore[reportArgumentType]
        )

    return tell


def _correlation(k: _Lasting, lengths: float) -> float:
    return replace(k, variance=1.0, lengthscale=1.0).gram([0.0], [lengths])[0, 0]


def _wiener(k: Wiener, clock: _Clock) -> str:
    growth = clock.a_period(k.variance)
    return (
        f"a random walk from 0 at {_origin(k)}; its variance grows by {_number(growth)} a {clock.period}, "
        f"so a change has standard deviation {_number(sqrt(growth))} over one {clock.period} "
        "and twice that over 4"
    )


def _linear(k: Linear, clock: _Clock) -> str:
    slope = clock.a_period(sqrt(k.variance))
    return f"a straight line through 0 at {_origin(k)}; {_slope(slope, clock)}"


def _affine(k: Affine, clock: _Clock) -> str:
    slope, level = clock.a_period(sqrt(k.slope_variance)), _number(sqrt(k.variance))
    return f"a straight line, of standard deviation {level} at {_origin(k)}; {_slope(slope, clock)}"


def _slope(slope: float, clock: _Clock) -> str:
    return f"its slope has standard deviation {_number(slope)} a {clock.period}"


def _origin(k: Any) -> str:
    return "each feature's first match" if k.origin == "first" else f"time {k.origin:g}"


def _periodic(k: Periodic, clock: _Clock) -> str:
    lowest = float(k.gram([0.0], [k.period / 2])[0, 0]) / k.variance
    return (
        f"a pattern that comes back every {clock.length(k.period)}, of standard deviation "
        f"{_number(sqrt(k.variance))}; its correlation over half a period is {lowest:.2g}"
    )


_TELLERS: dict[type[Covariance], Callable[[Any, _Clock], str]] = {
    Constant: _constant,
    PiecewiseConstant: _piecewise,
    Wiener: _wiener,
    Linear: _linear,
    Affine: _affine,
    Periodic: _periodic,
    Matern12: _lasting("rough", "0.37"),
    Matern32: _lasting("smooth", "0.48"),
    Matern52: _lasting("very smooth", "0.52"),
    SquaredExponential: _lasting("perfectly smooth", "0.61"),
}
