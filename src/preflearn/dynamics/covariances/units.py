"""Amounts in words: what covariances say of the scores has numbers and units of time."""

from __future__ import annotations

import math

YEAR = 365.25  # days, the unit of times that were read from dates


def length(days: float) -> str:
    """A length of time; what is 0.9999 years by rounding is a year.

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
    """The time at which a process begins."""
    if origin == "first":
        return "each feature's first match"
    return f"time {origin:g}"


def number(value: float) -> str:
    """Three digits, or all that are before the point."""
    if value >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def deviation(variance: float) -> str:
    """How far scores are from their mean."""
    return f"standard deviation {number(math.sqrt(variance))}"


def curve(look: str, left: str, half: float, variance: float, days: float) -> str:
    """A stationary curve around 0: how it looks, its correlation over a length, lengths
    until one half."""
    return (
        f"a {look} curve around 0, of {deviation(variance)}; its correlation falls to {left} "
        f"over {length(days)} and to one half over {length(half * days)}"
    )
