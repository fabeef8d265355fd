"""Decision rules for comparative claims: standard tests with margins that are fixed in
advance.

An answer is True, False, or None if the data do not decide. Chapter 01 explains the
rules.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from preflearn_book.runner.parameters import require, show

SELECTION_MIME = "application/vnd.preflearn.selection+json"

MARGIN_FRACTION = 0.1
"""Equivalence margin as a fraction of the distance from the trivial baseline to the
best method."""

MARGIN_FACTORS = (0.5, 1.0, 2.0)
"""A verdict that uses the margin must be the same at each of these multiples of it."""

MIN_REPLICATES = 5
"""Smallest number of independent replicates that can decide a claim."""


def _decide(holds: bool, fails: bool) -> bool | None:
    """Return True if a claim holds, False if it fails, None if neither is shown."""
    if holds:
        return True
    return False if fails else None


@functools.cache
def _t_quantile(probability: float, degrees_of_freedom: int) -> float:
    from scipy.stats import t  # imported late, so that --help does not need SciPy

    return float(t.ppf(probability, degrees_of_freedom))


class PairedDifference(NamedTuple):
    """The mean difference between two methods, from paired independent replicates.

    Intervals are t intervals with n - 1 degrees of freedom. With fewer than
    `MIN_REPLICATES` replicates, all answers are None.

    Attributes
    ----------
    mean : float
        Mean of the first method's values minus the second method's values; larger
        values are better.
    std_error : float
        Standard error of the mean.
    n : int
        Number of replicates.
    replicate : str
        Name of an independent replicate, such as "data set" or "season".
    margin : float or None
        Largest difference that does not matter in practice; see `equivalence_margin`.
    trivial : PairedDifference or None
        The trivial baseline minus the second method. If it passes the same test, the
        test has no power, and its answer is None.
    """

    mean: float
    std_error: float
    n: int
    replicate: str = "data set"
    margin: float | None = None
    trivial: PairedDifference | None = None

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the lower and the upper end of the t interval of the mean."""
        half_width = self.std_error * _t_quantile((1 + confidence) / 2, self.n - 1)
        return self.mean - half_width, self.mean + half_width

    @property
    def superior(self) -> bool | None:
        """Whether the first method is better: True if the 95 % interval lies above zero,
        False if it does not reach above zero."""
        low, high = self.interval()
        return self._with_replicates(_decide(low > 0, high <= 0))

    @property
    def inferior(self) -> bool | None:
        """Whether the second method is better."""
        low, high = self.interval()
        return self._with_replicates(_decide(high < 0, low >= 0))

    @property
    def equivalent(self) -> bool | None:
        """Whether the methods are equivalent: True if the 90 % interval lies within
        ±margin (two one-sided tests), False if it lies outside."""
        return self._at_all_margins(PairedDifference.equivalent_within)

    @property
    def non_inferior(self) -> bool | None:
        """Whether the first method is non-inferior: True if the 90 % interval lies above
        minus the margin, False if it lies below."""
        return self._at_all_margins(PairedDifference.non_inferior_within)

    @property
    def superior_by_margin(self) -> bool | None:
        """Whether the first method is better by more than the margin: True if the 95 %
        interval lies above the margin, False if it lies below."""
        return self._at_all_margins(PairedDifference.superior_beyond, control=False)

    def equivalent_within(self, margin: float) -> bool | None:
        """Return `equivalent` for one margin."""
        low, high = self.interval(0.9)
        within = -margin < low and high < margin
        return self._with_replicates(_decide(within, low > margin or high < -margin))

    def non_inferior_within(self, margin: float) -> bool | None:
        """Return `non_inferior` for one margin."""
        low, high = self.interval(0.9)
        return self._with_replicates(_decide(low > -margin, high < -margin))

    def superior_beyond(self, margin: float) -> bool | None:
        """Return `superior_by_margin` for one margin."""
        low, high = self.interval()
        return self._with_replicates(_decide(low > margin, high <= margin))

    def non_inferior_by_margin(self) -> dict[float, bool | None]:
        """Return the answer to `non_inferior` at each multiple of the margin separately."""
        return self._by_margin(PairedDifference.non_inferior_within)

    def _with_replicates(self, answer: bool | None) -> bool | None:
        return answer if self.n >= MIN_REPLICATES else None

    def _at_all_margins(
        self,
        test: Callable[[PairedDifference, float], bool | None],
        control: bool = True,
    ) -> bool | None:
        """Return the answer if it is the same at all multiples of the margin, else
        None."""
        answers = set(self._by_margin(test, control).values())
        return answers.pop() if len(answers) == 1 else None

    def _by_margin(
        self,
        test: Callable[[PairedDifference, float], bool | None],
        control: bool = True,
    ) -> dict[float, bool | None]:
        """Return the answer at each multiple of the margin; None if the trivial baseline
        passes the same test."""
        if self.margin is None:
            raise ValueError(
                "the margin is not set; pass margin or trivial to compare()"
            )
        answers = {}
        for factor in MARGIN_FACTORS:
            answer = test(self, factor * self.margin)
            if answer and control and self.trivial is not None:
                passes = test(self.trivial, factor * self.margin)
                answer = None if passes else True
            answers[factor] = answer
        return answers

    def to_text(self, *, percentage_points: bool = False) -> str:
        """Return the mean and its 95 % interval, such as "0.012 (0.004 to 0.020)"."""
        values = [self.mean, *self.interval()]
        digits = n_decimals(values)
        if percentage_points:
            values = [100 * value for value in values]
            digits = 1
        mean, low, high = (f"{value:.{digits}f}".replace("-", "−") for value in values)
        return f"{mean} ({low} to {high})"

    def describe(self, better: str, *, percentage_points: bool = False) -> str:
        """Return the difference in words, such as "lower by 0.012 (0.004 to 0.020)".

        Parameters
        ----------
        better : {"lower", "higher"}
            Whether lower or higher values of the measure are better: "lower" for a loss.
        """
        opposite = {"lower": "higher", "higher": "lower"}
        require(better in opposite, better, "better", "'lower' or 'higher'")
        if self.mean >= 0:
            word = better
            difference = self
        else:
            word = opposite[better]
            difference = self._replace(mean=-self.mean)
        text = difference.to_text(percentage_points=percentage_points)
        return f"{word} by {text}"

    def __str__(self) -> str:
        return self.to_text()


def n_decimals(values: Iterable[float]) -> int:
    """Return the number of decimals in a text: 3, or 4 if all values are very small."""
    return 3 if max(map(abs, values)) >= 0.005 else 4


def equivalence_margin(trivial: Iterable[float], best: Iterable[float]) -> float:
    """Return a tenth of the distance from the trivial baseline to the best method.

    Parameters
    ----------
    trivial, best : iterable of float
        Values of the trivial baseline and of the best method on one data set, one per
        replicate.

    Examples
    --------
    >>> f"{equivalence_margin([0.5, 0.5], [0.8, 0.9]):.3f}"
    '0.035'
    """
    distance = statistics.fmean(best) - statistics.fmean(trivial)
    return MARGIN_FRACTION * abs(distance)


def compare(
    first: Iterable[float],
    second: Iterable[float],
    replicate: str = "data set",
    *,
    trivial: Iterable[float] | None = None,
    best: Iterable[float] | None = None,
    margin: float | None = None,
) -> PairedDifference:
    """Compare two methods by their values on the same independent replicates.

    Parameters
    ----------
    first, second : iterable of float
        One value per replicate, paired. Larger values are better, so negate an error.
    replicate : str
        Name of an independent replicate, such as "domain" or "season".
    trivial : iterable of float, optional
        Values of the trivial baseline on the same replicates. The baseline determines
        the margin and is the negative control of each answer that uses the margin.
    best : iterable of float, optional
        Values of the best method; by default the better of the two.
    margin : float, optional
        Margin to use instead, such as 0.1 for values that were divided by the distance
        from the trivial baseline to the best method.

    Returns
    -------
    PairedDifference

    Raises
    ------
    ValueError
        If there are fewer than two values, or values are not finite or not paired.

    Examples
    --------
    >>> auc = [0.81, 0.79, 0.84, 0.80, 0.82]
    >>> found = compare(auc, [0.80, 0.77, 0.82, 0.79, 0.81], "season", trivial=[0.5] * 5)
    >>> str(found), found.superior, found.equivalent, found.non_inferior
    ('0.014 (0.007 to 0.021)', True, None, True)
    """
    ours = _numbers(first, "first", f"values, one per {replicate}")
    theirs = _numbers(second, "second", "as many values as first", len(ours))
    require(
        len(ours) > 1,
        len(ours),
        f"the number of differences, one per {replicate},",
        "at least 2",
    )
    control = None
    if trivial is not None:
        baseline = _numbers(trivial, "trivial", "as many values as first", len(ours))
        control = _paired(baseline - theirs, replicate)
        if margin is None:
            better = max(ours, theirs, key=statistics.fmean)
            margin = equivalence_margin(baseline, better if best is None else best)
    return _paired(ours - theirs, replicate)._replace(margin=margin, trivial=control)


def _paired(differences: Any, replicate: str) -> PairedDifference:
    values = differences.tolist()
    std_error = statistics.stdev(values) / math.sqrt(len(values))
    return PairedDifference(statistics.fmean(values), std_error, len(values), replicate)


def _listed(
    values: Any, name: str, expected: str, kinds: tuple[str, ...] = ()
) -> list[Any]:
    """Return values as a list; raise ValueError if the type of a value is not among
    `kinds`."""
    is_sequence = isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0
    require(is_sequence, values, name, expected)
    listed = list(values)
    good = not kinds or all(type(value).__name__ in kinds for value in listed)
    require(good, values, name, expected)
    return listed


def _answers(answers: Any) -> list[bool | None]:
    listed = _listed(
        answers,
        "answers",
        "a sequence of True, False or None",
        ("bool", "bool_", "NoneType"),
    )
    # Convert numpy.bool_ to bool.
    return [answer if answer is None else bool(answer) for answer in listed]


def _numbers(values: Any, name: str, expected: str, length: int | str = "n") -> Any:
    from preflearn.core.validation import (
        check_array,  # imported late, so that --help does not need NumPy
    )

    return check_array(_listed(values, name, expected), name, (length,), expected)


def every(answers: Iterable[bool | None]) -> bool | None:
    """Whether all answers are True: False if any is False, else None if any is None.

    Examples
    --------
    >>> every([True, None]), every([None, False]), every([])
    (None, False, True)
    """
    listed = _answers(answers)
    return _decide(not {False, None} & set(listed), False in listed)


def some(answers: Iterable[bool | None]) -> bool | None:
    """Whether any answer is True: True if any is, else None if any is None."""
    listed = _answers(answers)
    return _decide(True in listed, None not in listed)


def typical(answers: Sequence[bool]) -> bool | None:
    """Whether a claim is true in more than half of the replicates, by a two-sided sign
    test at 5 %; False if it is true in fewer than half.

    At least six replicates are necessary for a decision.

    Examples
    --------
    >>> typical([True] * 6), typical([True] * 5), typical([True] + [False] * 8)
    (True, None, False)
    """
    from scipy.stats import binomtest

    listed = _answers(answers)
    require(
        len(listed) > 0 and None not in listed,
        answers,
        "answers",
        "True or False, one per replicate",
    )
    count = listed.count(True)
    if binomtest(count, len(listed)).pvalue > 0.05:
        return None
    return count > len(listed) / 2


def sparse(counts: Sequence[int], candidates: Sequence[int]) -> bool | None:
    """Whether fewer than half of the candidates have a nonzero coefficient, on average
    over the replicates.

    The answer is None if the 95 % interval of the mean fraction contains one half.

    Examples
    --------
    >>> sparse([8, 9, 10, 9, 8], [40] * 5)
    True
    """
    coefficients = _numbers(
        counts, "counts", "one number of coefficients per replicate"
    )
    expected = "a positive number of candidates per replicate"
    available = _numbers(candidates, "candidates", expected, len(coefficients))
    require((available > 0).all(), candidates, "candidates", expected)
    return compare([0.5] * len(coefficients), coefficients / available).superior


def selection(
    name: str,
    chosen: Iterable[float],
    grid: Iterable[float],
    *,
    ends: str = "both",
    said: str = "",
) -> str:
    """Store in the executed notebook how many choices are at an end of their range.

    A value at the end of its grid, range or path is not a result. The build warns until
    the range is wider or the chapter describes the effect of the end.

    Parameters
    ----------
    name : str
        Name of the parameter, and of the method that it belongs to.
    chosen : iterable of float
        Chosen values, one per search.
    grid : iterable of float
        Values to choose from, or the two ends of a range.
    ends : {"both", "low", "high"}
        Ends of the range that were set by us. The other end is a natural limit of the
        parameter, such as a single function.
    said : str
        Sentence on the effect of the end, if the range cannot be wider.

    Returns
    -------
    str
        A text for a table, such as "3 of 30 at the top" or "none of 30 at an end".

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
