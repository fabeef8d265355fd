"""Text for variances and lengths of time in descriptions of covariances."""

from __future__ import annotations

import math

YEAR = 365.25  # days, the unit of times that were read from dates


def length(days: float) -> str:
    """A length of time as text, in days or years.

    A length within rounding of one year is a year.

    Examples
    --------
    >>> length(30), length(731)
    ('30 days', '2 years')
    """
    text = number(days)
    unit = "day"
    if days >= YEAR * (1 - 1e-3):
        text = number(days / YEAR)
        unit = "year"
    if text == "1":
        return f"1 {unit}"
    return f"{text} {unit}s"


def beginning(origin: float | str) -> str:
    """The start time of a process as text."""
    if origin == "first":
        return "each feature's first match"
    return f"time {origin:g}"


def number(value: float) -> str:
    """A number with three digits, or with all digits before the decimal point."""
    if value >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def deviation(variance: float) -> str:
    """The standard deviation of scores as text."""
    return f"standard deviation {number(math.sqrt(variance))}"


def curve(look: str, left: str, half: float, variance: float, days: float) -> str:
    """Description of a stationary process around 0.

    `look` describes its curves, `left` is its correlation over the length `days`, and
    `half` times this length is where the correlation is one half.
    """
    return (
        f"a {look} curve around 0, of {deviation(variance)}; its correlation falls to {left} "
        f"over {length(days)} and to one half over {length(half * days)}"
    )
