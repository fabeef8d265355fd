"""Decision rules for comparative sentences: each word has one computable meaning.

Answers are True, False or None: that the data do not decide is not that the sentence is
false. The words and the bands were fixed before any number was looked at; chapter 01
states them in prose.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
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
"""By kind of measure, the difference up to which two values count as similar."""

BAND = BANDS["error rate"]


class Lead(NamedTuple):
    """How far one method is ahead of another: the mean of paired differences, and its
    standard error.

    Each word is judged on the interval of two standard errors about the mean.

    Attributes
    ----------
    mean, error : float
    n : int
        How many differences.
    unit : str
        What was drawn independently, one difference each.
    band : float
        One of `BANDS`.
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
        """Ahead by more than two errors; not so if behind by as much.

        What is level decides neither.
        """
        return True if self.low > 0 else False if self.high <= 0 else None

    @property
    def worse(self) -> bool | None:
        """Better, with the methods exchanged."""
        return True if self.high < 0 else False if self.low >= 0 else None

    @property
    def similar(self) -> bool | None:
        """Similar, on a par: the interval lies within the band; not so if it lies
        beyond it."""
        within = -self.band <= self.low and self.high <= self.band
        return (
            True
            if within
            else False
            if abs(self.mean) - 2 * self.error > self.band
            else None
        )

    @property
    def as_good(self) -> bool | None:
        """As good as, competitive: behind by no more than the band; not so if certainly
        by more."""
        return (
            True
            if self.low >= -self.band
            else False
            if self.high < -self.band
            else None
        )

    @property
    def notable(self) -> bool | None:
        """Ahead by more than the band; not so if certainly by no more."""
        return (
            True if self.low > self.band else False if self.high <= self.band else None
        )

    def told(self, rival: str = "", *, points: bool = False) -> str:
        """In words, never negative, such as "0.012 ± 0.004 ahead of Elo"; or in
        percentage points."""
        factor, digits, unit = (
            (100, 1, " points") if points else (1, 3 if self.error >= 5e-4 else 4, "")
        )
        side = "behind" if self.mean < 0 else "ahead of" if rival else "ahead"
        size = (
            f"{factor * abs(self.mean):.{digits}f} ± {factor * self.error:.{digits}f}"
        )
        return f"{size}{unit} {side} {rival}".strip()

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
        One value a unit, paired; larger is better, so take minus an error.
    unit : str
        The unit: what was drawn independently, such as "domain" or "season".
    band : str
        The kind of measure, one of `BANDS`.

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
    first = _numbers(ours, "ours", f"values, one a {unit}")
    second = _numbers(theirs, "theirs", "as many values as ours", len(first))
    require(
        len(first) > 1,
        len(first),
        f"the number of differences, one a {unit},",
        "at least 2",
    )
    require(band in BANDS, band, "the band", f"one of {list(BANDS)}")
    differences = (first - second).tolist()
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return Lead(
        statistics.fmean(differences), error, len(differences), unit, BANDS[band]
    )


def _listed(
    values: Any, name: str, expected: str, kinds: tuple[str, ...] = ()
) -> list[Any]:
    """The values as a list, or ValueError that shows them where one has a type of
    another name."""
    listed = (
        list(values)
        if isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0
        else None
    )
    good = listed is not None and (
        not kinds or all(type(value).__name__ in kinds for value in listed)
    )
    require(good, values, name, expected)
    return listed or []


def _answers(answers: Any) -> list[bool | None]:
    found = _listed(
        answers,
        "answers",
        "a sequence of True, False or None",
        ("bool", "bool_", "NoneType"),
    )
    return [None if answer is None else bool(answer) for answer in found]


def _leads(leads: Any) -> list[Lead]:
    return _listed(
        leads, "leads", "a sequence of Lead, as `lead` returns them", ("Lead",)
    )


def _numbers(values: Any, name: str, expected: str, length: int | str = "n") -> Any:
    from preflearn.core.validation import (
        check_array,  # late, since the command's help comes without
    )

    return check_array(_listed(values, name, expected), name, (length,), expected)


def every(answers: Iterable[bool | None]) -> bool | None:
    """Whether all hold: False where one does not, None where one is not decided.

    Examples
    --------
    >>> every([True, None]), every([None, False]), every([])
    (None, False, True)
    """
    found = _answers(answers)
    return False if False in found else None if None in found else True


def some(answers: Iterable[bool | None]) -> bool | None:
    """Whether one holds: True where one does, None where else one is not decided."""
    opposite = every(
        None if answer is None else not answer for answer in _answers(answers)
    )
    return None if opposite is None else not opposite


def best(leads: Iterable[Lead]) -> bool | None:
    """The best: better than each rival; not so where one is better."""
    return every(one.better for one in _leads(leads))


def robust(leads: Iterable[Lead]) -> bool | None:
    """Robust: as good with a change, of each kind that was tried, as without."""
    return every(one.as_good for one in _leads(leads))


def near_optimal(over_best: Lead) -> bool | None:
    """Near-optimal: as good as the best of all that were tried, judged on other data
    than chose it."""
    return over_best.as_good


def sparse(
    counts: Sequence[int], candidates: Sequence[int], cap: int | None = None
) -> bool | None:
    """Sparse: at most one half of the candidates have a coefficient, on average over
    the draws.

    None where that is within two standard errors of one half, or where a cap of ours
    decided a count.

    Examples
    --------
    >>> sparse([8, 9, 10], [40, 40, 40]), sparse([16, 16, 12], [40, 40, 40], cap=16)
    (True, None)
    """
    found = _numbers(counts, "counts", "one number of coefficients a draw")
    among = _numbers(
        candidates, "candidates", "a positive number of candidates a draw", len(found)
    )
    require(
        (among > 0).all(),
        candidates,
        "candidates",
        "a positive number of candidates a draw",
    )
    fewer = lead([0.5] * len(found), found / among)
    capped = (
        cap is not None
        and found.max()
        >= _numbers([cap], "cap", "None, or a number of coefficients")[0]
    )
    return (
        None
        if capped
        else True
        if fewer.low >= 0
        else False
        if fewer.high < 0
        else None
    )


def typical(answers: Sequence[bool]) -> bool | None:
    """Typical, mainly, in general: so in three of four draws or more; not so in fewer
    than one half."""
    found = _answers(answers)
    require(
        len(found) > 0 and None not in found,
        answers,
        "answers",
        "True or False, one a draw",
    )
    share = found.count(True) / len(found)
    return True if share >= 0.75 else False if share < 0.5 else None


def selection(
    name: str,
    chosen: Iterable[float],
    grid: Iterable[float],
    *,
    ends: str = "both",
    said: str = "",
) -> str:
    """Note in the executed notebook how many choices sit at an end of what was
    searched.

    A value at the edge of its grid, cap or path is no result: the build warns, until
    the range is wider or the chapter says what its end did.

    Parameters
    ----------
    name : str
        Of the parameter that was chosen, and of what for.
    chosen : iterable of float
        The values that were chosen, one a search.
    grid : iterable of float
        The values among which one was chosen, or the two ends of a range.
    ends : {"both", "low", "high"}
        Which ends are of our own making; the other is where the parameter ends, such as
        one function.
    said : str
        What the end did, in a sentence, where the range can't be wider.

    Returns
    -------
    str
        Such as "3 of 30 at the top", for a table; "none of 30 at an end".

    Examples
    --------
    >>> selection("lambda of the ranking SVM", [0.1, 1.0, 10.0], [0.1, 1.0, 10.0, 100.0], ends="high")
    'none of 3 at an end'
    """
    values = _numbers(chosen, "chosen", "one value a search")
    searched = _numbers(grid, "grid", "two values or more")
    require(len(searched) > 1, grid, f"the grid of {name}", "at least two values")
    require(ends in ("both", "low", "high"), ends, "ends", "'both', 'low' or 'high'")
    low = 0 if ends == "high" else int((values <= searched.min()).sum())
    high = 0 if ends == "low" else int((values >= searched.max()).sum())
    told = [
        f"{k} of {len(values)} at the {end}"
        for k, end in ((low, "bottom"), (high, "top"))
        if k
    ]
    text = ", ".join(told) or f"none of {len(values)} at an end"
    note = {
        "name": name,
        "n": len(values),
        "at_end": low + high,
        "text": text,
        "said": said,
    }
    show({SELECTION_MIME: note})
    return text
