"""Decision rules for comparative sentences: each word has one computable meaning.

An answer is True, False, or None if the data do not decide. The words and the margins
were fixed before any number was computed; chapter 01 states them in prose.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any, NamedTuple

from preflearn_book.runner.parameters import require, show

SELECTION_MIME = "application/vnd.preflearn.selection+json"

BANDS = {
    "error rate": 0.02,
    "AUC": 0.02,
    "nats": 0.01,
    "log squared error": 0.05,
    "log cost": math.log(1.25),
    "rank": 0.5,
}
"""Largest difference at which two values count as similar, by kind of measure."""

BAND = BANDS["error rate"]


def _decide(holds: bool, fails: bool) -> bool | None:
    """True if a sentence holds, False if it fails, None if neither is shown."""
    if holds:
        return True
    return False if fails else None


class Lead(NamedTuple):
    """The mean difference between two methods, and its standard error.

    Each word is judged on the interval of two standard errors about the mean.

    Attributes
    ----------
    mean, error : float
    n : int
        Number of differences.
    unit : str
        What was drawn independently, such as "data set"; each gives one difference.
    band : float
        Largest difference that counts as similar, one of `BANDS`.
    """

    mean: float
    error: float
    n: int
    unit: str = "data set"
    band: float = BAND

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.mean - 2 * self.error

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.mean + 2 * self.error

    @property
    def better(self) -> bool | None:
        """Whether the interval lies above zero; False if it lies at or below zero."""
        return _decide(self.low > 0, self.high <= 0)

    @property
    def worse(self) -> bool | None:
        """Whether the other method is better."""
        return _decide(self.high < 0, self.low >= 0)

    @property
    def similar(self) -> bool | None:
        """Similar, on a par: whether the interval lies within the band; False if it lies
        outside."""
        within = -self.band <= self.low and self.high <= self.band
        return _decide(within, abs(self.mean) - 2 * self.error > self.band)

    @property
    def as_good(self) -> bool | None:
        """As good as, competitive: whether the interval lies above minus the band; False
        if it lies below."""
        return _decide(self.low >= -self.band, self.high < -self.band)

    @property
    def notable(self) -> bool | None:
        """Whether the interval lies above the band; False if it lies at or below the
        band."""
        return _decide(self.low > self.band, self.high <= self.band)

    def told(self, rival: str = "", *, points: bool = False) -> str:
        """State the lead in words, such as "0.012 ± 0.004 ahead of Elo"; or in
        percentage points."""
        factor = 1
        digits = 3 if self.error >= 5e-4 else 4
        unit = ""
        if points:
            factor = 100
            digits = 1
            unit = " points"
        side = "ahead"
        if self.mean < 0:
            side = "behind"
        elif rival:
            side = "ahead of"
        mean = factor * abs(self.mean)
        error = factor * self.error
        return f"{mean:.{digits}f} ± {error:.{digits}f}{unit} {side} {rival}".strip()

    def __str__(self) -> str:
        return self.told()


def lead(
    ours: Iterable[float],
    theirs: Iterable[float],
    unit: str = "data set",
    band: str = "error rate",
) -> Lead:
    """The lead of one method over another, from values that are paired by what was
    drawn independently.

    Parameters
    ----------
    ours, theirs : iterable of float
        One value per unit, paired; larger is better, so take minus an error.
    unit : str
        What was drawn independently, such as "domain" or "season".
    band : str
        Kind of measure, one of `BANDS`.

    Returns
    -------
    Lead

    Raises
    ------
    ValueError
        If the values are not finite, not paired, or fewer than two pairs, or the band
        is unknown.

    Examples
    --------
    >>> compared = lead([0.80, 0.82, 0.84], [0.80, 0.81, 0.82], "domain")
    >>> str(compared), compared.better, compared.similar, compared.as_good
    ('0.010 ± 0.006 ahead', None, None, True)
    """
    first = _numbers(ours, "ours", f"values, one per {unit}")
    second = _numbers(theirs, "theirs", "as many values as ours", len(first))
    what = f"the number of differences, one per {unit},"
    require(len(first) > 1, len(first), what, "at least 2")
    require(band in BANDS, band, "the band", f"one of {list(BANDS)}")
    differences = (first - second).tolist()
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return Lead(
        statistics.fmean(differences), error, len(differences), unit, BANDS[band]
    )


def _answers(answers: Iterable[Any]) -> list[bool | None]:
    found = list(answers)
    good = all(
        type(answer).__name__ in ("bool", "bool_", "NoneType") for answer in found
    )
    require(good, found, "answers", "a sequence of True, False or None")
    # The answers of NumPy become those of Python.
    return [answer if answer is None else bool(answer) for answer in found]


def _numbers(
    values: Iterable[float], name: str, expected: str, length: int | str = "n"
) -> Any:
    # late, since the command's help comes without
    from preflearn.core.validation import check_array

    return check_array(list(values), name, (length,), expected)


def every(answers: Iterable[bool | None]) -> bool | None:
    """Whether all hold: False if one does not, None if one is not decided.

    Examples
    --------
    >>> every([True, None]), every([None, False]), every([])
    (None, False, True)
    """
    found = _answers(answers)
    return _decide(not {False, None} & set(found), False in found)


def some(answers: Iterable[bool | None]) -> bool | None:
    """Whether one holds: True if one does, else None if one is not decided."""
    found = _answers(answers)
    return _decide(True in found, None not in found)


def best(leads: Iterable[Lead]) -> bool | None:
    """The best: better than each baseline; False if a baseline is better."""
    return every(one.better for one in leads)


def near_optimal(over_best: Lead) -> bool | None:
    """Near-optimal: as good as the best of all that were tried, on data that did not
    choose it."""
    return over_best.as_good


def sparse(counts: Iterable[int], candidates: Iterable[int]) -> bool | None:
    """Sparse: on average over the draws, at most half of the candidates have a
    coefficient.

    None if the mean is within two standard errors of one half.

    Examples
    --------
    >>> sparse([8, 9, 10], [40, 40, 40]), sparse([16, 26, 18], [40, 40, 40])
    (True, None)
    """
    found = _numbers(counts, "counts", "one number of coefficients per draw")
    expected = "a positive number of candidates per draw"
    among = _numbers(candidates, "candidates", expected, len(found))
    require((among > 0).all(), among, "candidates", expected)
    fewer = lead([0.5] * len(found), found / among)
    return _decide(fewer.low >= 0, fewer.high < 0)


def typical(answers: Iterable[bool]) -> bool | None:
    """Typical, mainly, in general: in at least three of four draws; False if in fewer
    than half."""
    found = _answers(answers)
    good = len(found) > 0 and None not in found
    require(good, found, "answers", "True or False, one per draw")
    fraction = found.count(True) / len(found)
    return _decide(fraction >= 0.75, fraction < 0.5)


def selection(
    name: str,
    chosen: Iterable[float],
    grid: Iterable[float],
    *,
    ends: str = "both",
    said: str = "",
) -> str:
    """Note in the executed notebook how many choices are at an end of their range.

    A value at the edge of its grid, cap or path is not a result: the build warns, until
    the range is wider or the chapter says what its end did.

    Parameters
    ----------
    name : str
        Name of the parameter that was chosen, and its method.
    chosen : iterable of float
        The values that were chosen, one per search.
    grid : iterable of float
        The values among which one was chosen, or the two ends of a range.
    ends : {"both", "low", "high"}
        The ends that we chose; the other is where the parameter ends, such as one
        function.
    said : str
        A sentence that says what the end did, if the range can't be wider.

    Returns
    -------
    str
        Such as "3 of 30 at the top", for a table; "none of 30 at an end".

    Examples
    --------
    >>> selection("lambda of the ranking SVM", [0.1, 1.0, 10.0], [0.1, 1.0, 10.0, 100.0], ends="high")
    'none of 3 at an end'
    """
    values = _numbers(chosen, "chosen", "one value per search")
    searched = _numbers(grid, "grid", "two values or more")
    require(len(searched) > 1, grid, f"the grid of {name}", "at least two values")
    require(ends in ("both", "low", "high"), ends, "ends", "'both', 'low' or 'high'")
    counts = {"bottom": 0, "top": 0}
    if ends != "high":
        counts["bottom"] = int((values <= searched.min()).sum())
    if ends != "low":
        counts["top"] = int((values >= searched.max()).sum())
    phrases = [
        f"{count} of {len(values)} at the {end}"
        for end, count in counts.items()
        if count
    ]
    text = ", ".join(phrases) or f"none of {len(values)} at an end"
    note = {
        "name": name,
        "n": len(values),
        "at_end": sum(counts.values()),
        "text": text,
        "said": said,
    }
    show({SELECTION_MIME: note})
    return text
