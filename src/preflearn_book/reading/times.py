"""Times of a user's file: dates in common formats, seconds since 1970, or numbers."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from preflearn.matches import reads_as_date
from preflearn_book.reading.columns import Column, UserTable, spaced_title, to_numbers
from preflearn_book.reading.labels import escape_markdown

FORMS = (
    *("ISO8601", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%Y/%m/%d", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d %b %Y", "%b %d, %Y"),
    *("%d %B %Y", "%B %d, %Y", "%Y.%m.%d"),
)
"""Date formats in the order in which they are tried."""

_DIGITS = ("%Y%m%d", "%Y%m")
_UNITS = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
_SEASON = re.compile(r"(?P<year>\d{4})\s*[-/–]\s*(?P<next>\d{4}|\d{2})")
_FIRST_YEAR = 1600
_LAST_YEAR = 2200
_NEARLY_ALL = 0.99
_PERIODS = {"month": "M", "year": "Y", "season": "Y"}
# Letters of other programs, also German, French, and Spanish ones.
_LETTERS = (
    (r"yyyy|jjjj|aaaa", "%Y"),
    (r"(?<![%a-z])(yy|jj|aa)(?![a-z])", "%y"),
    (r"(?<![%a-z])mm?(?![a-z])", "%m"),
    (r"(?<![%a-z])(dd?|tt?)(?![a-z])", "%d"),
)
_FEW_DAYS = pd.Timedelta(days=3)
_MANY_DATES = 10  # fewer dates cannot show that one is far from the others
_TIME_WORDS = (
    *("date", "day", "time", "timestamp", "tstamp", "datetime", "kickoff"),
    *("week", "month", "season", "year"),
)


@dataclass(frozen=True)
class TimeScale:
    """How the times of a file are read and shown.

    Attributes
    ----------
    resolution : {"number", "minute", "moment", "day", "month", "season", "year"}
        Precision of the values; "number" if times are not dates. "moment" is shown as a
        date, "minute" with the time of day.
    forms : tuple of str
        Formats of the values; "" for numbers and seasons.
    unit : str
        Unit of times since 1970, such as "ms", or "".
    """

    resolution: str = "number"
    forms: tuple[str, ...] = ()
    unit: str = ""

    @property
    def dated(self) -> bool:
        """Whether times are dates."""
        return self.resolution != "number"

    def moment(self, time: Any) -> str:
        """Format a time, given as a timestamp, days since 1970, or a number.

        Examples
        --------
        >>> TimeScale("day").moment(19753.0), TimeScale("season").moment(pd.Timestamp(2019, 1, 1))
        ('2024-01-31', '2019/20')
        """
        if not self.dated:
            return f"{time:,.0f}" if time == round(time) else f"{time:g}"
        unit = "D" if isinstance(time, float | int) else None
        date: Any = pd.Timestamp(time, unit=unit)
        if self.resolution == "month":
            return str(_first_start(date, "M").strftime("%Y-%m"))
        if self.resolution == "year":
            return str(_first_start(date, "Y").year)
        if self.resolution == "season":
            year = _first_start(date, "Y").year
            return f"{year}/{(year + 1) % 100:02d}"
        if self.resolution == "minute":
            return f"{date:%Y-%m-%d %H:%M}"
        return str(date.date())

    def is_until(self, times: Column, until: str) -> Column:
        """Which times are not later than `until`, including its whole day, month or year.

        Raises
        ------
        ValueError
            If `until` is not a time of this scale.
        """
        date, resolution = self._parse(until.strip())
        if resolution in ("moment", "number"):
            return times <= date
        return times < _period_end(date, resolution)

    def is_from(self, times: Column, start: str) -> Column:
        """Which times are not earlier than `start`.

        Raises
        ------
        ValueError
            If `start` is not a time of this scale.
        """
        return times >= self._parse(start.strip())[0]

    def _parse(self, until: str) -> tuple[Any, str]:
        """The date or number of a text, and its resolution."""
        if not self.dated:
            number = to_numbers(pd.Series([until])).iloc[0]
            if np.isnan(number):
                raise ValueError(
                    f"until={until!r} is not a number, but the times of the file are; pass a number"
                )
            return number, "number"
        season = _SEASON.fullmatch(until)
        if season and _is_season(season):
            return pd.Timestamp(int(season["year"]), 1, 1), "year"
        if self.unit:
            number = to_numbers(pd.Series([until])).iloc[0]
            if reads_as_date(np.array([number]), self.unit)[0]:
                return pd.Timestamp(number, unit=self.unit), "moment"
        for form in dict.fromkeys((*filter(None, self.forms), "ISO8601")):
            date = _parse_dates(pd.Series([until]), form).iloc[0]
            if not pd.isna(date):
                return date, _resolution(pd.Series([until]), form)
        formats = [form for form in self.forms if form and form != "ISO8601"]
        as_in_file = f"as in the file ({formats[0]}) or " if formats else ""
        raise ValueError(
            f"until={until!r} is not a date; write it {as_in_file}as 2024-01-31"
        )


def _first_start(date: pd.Timestamp, period: str) -> pd.Timestamp:
    """Start of the first month or year that begins at a date or later."""
    start = date.to_period(period).start_time
    if start < date:
        start = (date.to_period(period) + 1).start_time
    return start


def _period_end(date: pd.Timestamp, resolution: str) -> pd.Timestamp:
    """Excluded end of the day, month or year that begins at a date."""
    steps = {
        "month": pd.DateOffset(months=1),
        "year": pd.DateOffset(years=1),
        "season": pd.DateOffset(years=1),
    }
    return date + steps.get(resolution, pd.DateOffset(days=1))


def find_time_columns(table: UserTable, excluded: Collection[str]) -> list[str]:
    """Names of the columns that look like times.

    The values are dates or seasons, or they are numbers and the last word of the name
    is a word such as "date" or "year".
    """
    titles = [str(title) for title in table.frame.columns]
    found = []
    for title in titles:
        if title in excluded or titles.count(title) > 1:
            continue
        values = table.texts(title)
        distinct = pd.Series(values[values != ""].unique()[:1000], dtype="string")
        if len(distinct) and _look_like_times(title, distinct):
            found.append(title)
    return found


def _look_like_times(title: str, values: Column) -> bool:
    if to_numbers(values).notna().mean() > _NEARLY_ALL:
        words = re.findall("[a-z]+", spaced_title(title))
        return bool(words) and words[-1] in _TIME_WORDS
    seasons = [_SEASON.fullmatch(value) for value in values]
    if all(match is not None and _is_season(match) for match in seasons):
        return True
    return any(_parse_dates(values, f).notna().mean() > _NEARLY_ALL for f in FORMS)


def read_times(
    table: UserTable, column: str, time_format: str = "", otherwise: str = ""
) -> tuple[Column, TimeScale]:
    """Read times as dates or numbers, and return how they were read.

    Dates are read in the format that fits most of them; a second format may read the
    rest. Numbers are read as dates if nearly all of them are years, have the form
    202401 or 20240131, or are times since 1970.

    Raises
    ------
    ValueError
        If a value is ambiguous, or many values cannot be read.
    """
    text = table.column(column, "time", otherwise)
    if not time_format:
        found = _read_seasons(table, text, column)
        if found is not None:
            return found
        numbers = to_numbers(text)
        if numbers.notna().mean() > _NEARLY_ALL:
            return _read_numbers(table, text, numbers, column)
    return _read_dates(table, text, column, time_format)


def _read_seasons(
    table: UserTable, text: Column, column: str
) -> tuple[Column, TimeScale] | None:
    """Seasons such as 2019/20 as their first year; None if the texts are not seasons."""
    unique = text[text != ""].unique()
    matches = [_SEASON.fullmatch(value) for value in unique]
    is_season = [match is not None and _is_season(match) for match in matches]
    if not is_season or np.mean(is_season) <= _NEARLY_ALL:
        return None
    years = text.str.extract(r"^(\d{4})", expand=False).fillna("")
    dates = _parse_dates(years, "%Y")
    table.reject(dates.isna(), text, column, "a season such as 2019/20")
    return dates, TimeScale("season", ("",))


def _is_season(match: re.Match) -> bool:
    follows = (int(match["year"]) + 1) % 10 ** len(match["next"])
    return follows == int(match["next"])


def _read_numbers(
    table: UserTable, text: Column, numbers: Column, column: str
) -> tuple[Column, TimeScale]:
    """Read numbers, or dates if nearly all numbers mean dates."""
    values = numbers.to_numpy(float)
    with np.errstate(invalid="ignore"):
        for form in _DIGITS:
            if np.mean(reads_as_date(values, form)) > _NEARLY_ALL:
                digits = numbers.astype("Int64").astype("string").fillna("")
                return _dates_of_numbers(table, text, digits, column, form)
        for unit, words in _UNITS.items():
            fits = reads_as_date(values, unit)
            if np.mean(fits) > _NEARLY_ALL:
                table.reject(
                    pd.Series(~fits, text.index), text, column, f"{words} since 1970"
                )
                dates = pd.to_datetime(numbers.where(fits), unit=unit, errors="coerce")
                k = int(np.argmax(fits))
                table.note(
                    f"Times are read as {words} since 1970: {escape_markdown(text.iloc[k])} is "
                    f"{dates.iloc[k]:%d %B %Y}."
                )
                _note_isolated(table, dates)
                return dates, TimeScale(_resolution_of_span(dates), ("",), unit)
        is_year = (values == np.round(values)) & (values > 1700) & (values < 2200)
        if np.mean(is_year) > _NEARLY_ALL:
            digits = numbers.astype("Int64").astype("string").fillna("")
            return _dates_of_numbers(table, text, digits, column, "%Y")
    table.reject(numbers.isna(), text, column, "a number")
    return numbers, TimeScale()


def _dates_of_numbers(
    table: UserTable, text: Column, digits: Column, column: str, form: str
) -> tuple[Column, TimeScale]:
    dates = _parse_dates(digits, form)
    table.reject(dates.isna(), text, column, f"a date in the format {form}")
    resolution = _resolution(digits, form)
    if resolution == "month":
        k = int(np.argmax(dates.notna()))
        table.note(
            f"Times are read as months: {text.iloc[k]} is {dates.iloc[k]:%B %Y}."
        )
    _note_isolated(table, dates)
    return dates, TimeScale(resolution, (form,))


def _read_dates(
    table: UserTable, text: Column, column: str, time_format: str
) -> tuple[Column, TimeScale]:
    _check_format(time_format)
    codes, unique = pd.factorize(text)
    values = pd.Series(unique, dtype="string")
    dates, used = _dates_of_forms(table, values, column, time_format)
    for form, is_read in used.items():
        n_rows = int(is_read.to_numpy()[codes].sum())
        if form != "ISO8601" and n_rows:
            k = int(np.argmax(is_read))
            part = (
                "Dates" if n_rows == len(text) else f"{n_rows:,} of {len(text):,} dates"
            )
            table.note(
                f"{part} are read as {form}: {escape_markdown(values[k])} is {dates[k]:%d %B %Y}."
            )
    resolutions = {
        _resolution(values[is_read], form)
        for form, is_read in used.items()
        if is_read.any()
    }
    all_dates = pd.Series(dates.to_numpy()[codes], text.index)
    expected = (
        "a number, or a date such as 2024-01-31, or a format: -p time_format '%d/%m/%Y'"
    )
    missing = all_dates.isna()
    if (text[missing] == "").all():
        expected = "a date; complete or delete the lines without one"
    elif _has_distant_year(text[missing]):
        expected = f"a date from {_FIRST_YEAR} to {_LAST_YEAR}"
    table.reject(missing, text, column, expected)
    _note_isolated(table, all_dates)
    resolution = resolutions.pop() if len(resolutions) == 1 else "day"
    if resolution == "moment":
        resolution = _resolution_of_span(all_dates)
    return all_dates, TimeScale(resolution, tuple(used))


def _check_format(time_format: str) -> None:
    """Raise ValueError for a format such as dd.mm.yyyy, with the codes that it means."""
    if not time_format or "%" in time_format:
        return
    with_codes = time_format
    for letters, code in _LETTERS:
        with_codes = re.sub(letters, code, with_codes, flags=re.IGNORECASE)
    if "%" not in with_codes:
        with_codes = "%d.%m.%Y"
    raise ValueError(
        f"time_format={time_format!r} contains no codes such as %d; write {with_codes}, or leave out "
        f"time_format if the dates are not ambiguous"
    )


def _has_distant_year(texts: Column) -> bool:
    """Whether all texts have a year outside the supported range, such as 9999."""
    years = to_numbers(texts.str.extract(r"(?<!\d)(\d{4})(?!\d)", expand=False))
    return bool(((years < _FIRST_YEAR) | (years > _LAST_YEAR)).all())


def _resolution_of_span(dates: Column) -> str:
    """ "minute" if all times lie within a few days, else "moment"."""
    return "minute" if dates.max() - dates.min() < _FEW_DAYS else "moment"


def _dates_of_forms(
    table: UserTable, values: Column, column: str, time_format: str
) -> tuple[Column, dict[str, pd.Series]]:
    """Dates of distinct texts, and which texts each format read."""
    forms = [time_format] if time_format else list(FORMS)
    form, dates = _best_form(table, values, column, forms)
    used = {form: dates.notna()}
    is_read = dates.notna()
    others = FORMS[: 1 if time_format else None]
    # A format that also reads some of these dates would be ambiguous.
    others = [
        other for other in others if _parse_dates(values[is_read], other).isna().all()
    ]
    if is_read.any() and not is_read.all() and others:
        form, more = _best_form(table, values[~is_read], column, others)
        used[form] = more.notna().reindex(values.index, fill_value=False)
        dates = dates.fillna(more)
    return dates, used


def _best_form(
    table: UserTable, values: Column, column: str, forms: list[str]
) -> tuple[str, pd.Series]:
    """The format that fits most texts, and their dates.

    Raises
    ------
    ValueError
        If two formats fit equally many texts and give different dates.
    """
    dates: dict[str, pd.Series] = {}
    for form in forms:
        dates[form] = _parse_dates(values, form)
        if form == "ISO8601" and dates[form].notna().all():
            break  # no other form reads such texts
    most = max(found.notna().sum() for found in dates.values())
    fitting = {
        form: found for form, found in dates.items() if found.notna().sum() == most
    }
    form, found = next(iter(fitting.items()))
    if most and not all(other.equals(found) for other in fitting.values()):
        ways = " or ".join(f"-p time_format '{form}'" for form in fitting)
        example = values[found.first_valid_index()]
        raise ValueError(
            f"{table.source} has {example!r} in column {column!r}, which can be read in two ways; pass "
            f"{ways}"
        )
    return form, found


def _parse_dates(texts: Column, form: str) -> Column:
    """Dates in UTC without a time zone; NaT for texts in another format."""
    try:
        dates = pd.to_datetime(texts, format=form, errors="coerce", utc=True)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"time_format={form!r} is not a valid format: {error}; write it like '%d/%m/%Y'"
        ) from None
    dates = dates.dt.tz_localize(None)
    return dates.where(dates.dt.year.between(_FIRST_YEAR, _LAST_YEAR))


def _resolution(texts: Column, form: str) -> str:
    """Precision of texts in a format: a moment, a day, a month, or a year."""
    if form == "ISO8601":
        lengths = texts.str.len()
        for longest, resolution in ((4, "year"), (7, "month"), (10, "day")):
            if (lengths <= longest).all():
                return resolution
        return "moment"
    for directives, resolution in (
        (("%H", "%I", "%c", "%X", "%s"), "moment"),
        (("%d", "%j", "%x", "%D"), "day"),
        (("%m", "%b", "%B"), "month"),
    ):
        if any(directive in form for directive in directives):
            return resolution
    return "year"


def _note_isolated(table: UserTable, dates: Column) -> None:
    """Note a first or last date whose gap exceeds the range of all other dates."""
    days = pd.DatetimeIndex(dates.dropna().unique()).sort_values()
    if len(days) < _MANY_DATES:
        return
    for side, row in (("first", days), ("last", days[::-1])):
        gap: Any = abs(row[0] - row[1])
        if gap > abs(row[1] - row[-1]):
            table.note(
                f"**The {side} date, {row[0]:%d %B %Y}, is far from all others.** If it is an error, "
                f"correct the file."
            )
