"""Amounts in words: what covariances say of the scores has numbers and units of time."""

from __future__ import annotations

import math
from typing import NamedTuple

from preflearn.checks import require

_A_YEAR = {"year": 1.0, "week": 365.25 / 7, "day": 365.25, "hour": 8766.0, "second": 31_557_600.0}


class Units:
    """The unit of time that a text has.

    Parameters
    ----------
    unit : str
        In the singular.

    Attributes
    ----------
    period : str
        The time that rates are told of: "year", or the unit where it is not known how many are a year.
    rate : float
        How many units the period has.
    """

    def __init__(self, unit: str) -> None:
        require(isinstance(unit, str) and unit.strip() != "", unit, "unit", "a word, such as 'day'")
        require(not unit.endswith("s"), unit, "unit", "a word in the singular")
        self._unit, self.known = unit, unit in _A_YEAR
        self.period, self.rate = ("year", _A_YEAR[unit]) if self.known else (unit, 1.0)

    def length(self, amount: float) -> str:
        """A length of time; what is 0.9999 years by rounding is a year.

        Examples
        --------
        >>> Units("day").length(30), Units("day").length(731)
        ('30 days', '2 years')
        """
        unit = self._unit
        if self.known and amount >= self.rate * (1 - 1e-3):
            unit, amount = self.period, amount / self.rate
        text = number(amount)
        return f"{text} {unit}" + "s" * (text != "1")

    @staticmethod
    def origin(origin: float | str) -> str:
        """The time at which a process begins."""
        return "each feature's first match" if origin == "first" else f"time {origin:g}"


def number(value: float) -> str:
    """Three digits, or all that are before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def deviation(variance: float) -> str:
    """How far scores are from their mean."""
    return f"standard deviation {number(math.sqrt(variance))}"


class Look(NamedTuple):
    """A stationary curve around 0: how it looks, its correlation over a length, lengths until one half."""

    look: str
    left: str
    half: float

    def told(self, units: Units, variance: float, length: float) -> str:
        return (
            f"a {self.look} curve around 0, of {deviation(variance)}; its correlation falls to {self.left} "
            f"over {units.length(length)} and to one half over {units.length(self.half * length)}"
        )
