"""The rows of a user's file, with notes for the reader and errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from preflearn_book.reading.labels import escape_markdown
from preflearn_book.sentences import counted

NOTHING = ("", "na", "n/a", "nan", "none", "null", "<na>", "-", "?", "*", "\\n")
"""Texts in lower case that stand for a missing value."""

Column = Any
"""A pandas Series; the stubs of its methods are incomplete."""

Frame = Any
"""A pandas DataFrame."""

MAX_FRACTION_LEFT_OUT = 0.01
MAX_LISTED_ROWS = 10
_YES = ("true", "t", "yes", "y", "1", "1.0")
_NO = ("false", "f", "no", "n", "0", "0.0", *NOTHING)


class UserTable:
    """The rows of a file as text, notes for the reader, and the rows left out.

    Parameters
    ----------
    frame : DataFrame of str
        One row per comparison; the index is the number of the line or row in the file.
        Columns may share a name.
    source : str
        Name of the file in notes and errors.
    unit : {"line", "row"}
        What the index counts.

    Attributes
    ----------
    notes : list of str
        Markdown for the reader of a report.
    left_out : set of int
        Index labels of rows with a wrong value.
    omitted : list of str
        Short texts that count the rows left out, as Markdown.
    """

    def __init__(self, frame: Frame, source: str, unit: str = "line") -> None:
        self.frame = frame
        self.source = source
        self.unit = unit
        self.notes = list[str]()
        self.left_out = set[int]()
        self.omitted = list[str]()
        self._used = set[str]()

    def __contains__(self, name: str) -> bool:
        return name in list(self.frame.columns)

    def note(self, text: str) -> None:
        """Add a note in Markdown, once."""
        if text not in self.notes:
            self.notes.append(text)

    def note_left_out(self, rows: str, listed: str, remedy: str = "") -> None:
        """Note rows that the report does not use, and keep their number for a summary.

        Parameters
        ----------
        rows : str
            Number and kind of the rows, such as "2 rows without an answer".
        listed : str
            The rows, as Markdown.
        remedy : str
            A sentence on what to do.
        """
        if rows not in self.omitted:
            self.omitted.append(rows)
        self.note(f"**Left out: {rows}**: {listed}. {remedy}".strip())

    def note_unused_columns(self) -> None:
        """Note the columns that no parameter names."""
        titles = dict.fromkeys(str(title) for title in self.frame.columns)
        unused = [title for title in titles if title not in self._used]
        if unused:
            self.note(f"Columns not used: {first_few(unused, MAX_LISTED_ROWS)}.")

    def unique_titles(self) -> list[str]:
        """The titles that belong to one column only."""
        titles = [str(title) for title in self.frame.columns]
        return [title for title in titles if titles.count(title) == 1]

    def titles(self) -> str:
        """The titles of all columns."""
        return ", ".join(map(str, self.frame.columns))

    def column(self, name: str, parameter: str, otherwise: str = "") -> Column:
        """The texts of a column that the report uses; see `texts`.

        Raises
        ------
        ValueError
            If no column, or more than one, has this name.
        """
        columns = [str(column) for column in self.frame.columns]
        n_found = columns.count(name)
        if n_found == 0:
            raise ValueError(
                f"column {name!r} not found in {self.source}; the file has: {self.titles()}. "
                f"Name the column with -p {parameter} NAME{otherwise}"
            )
        if n_found > 1:
            raise ValueError(
                f"{self.source} has {n_found} columns called {name!r}; rename or delete one of them"
            )
        self._used.add(name)
        return self.texts(name)

    def texts(self, name: str) -> Column:
        """The texts of a column without surrounding spaces; "" for a missing value."""
        columns = [str(column) for column in self.frame.columns]
        values = self.frame.iloc[:, columns.index(name)]
        return values.astype("string").str.strip().fillna("")

    def describe(self, row: int, value: object, name: str) -> str:
        """Say where a value is: "games.csv has 'x' in line 3, column 'home'"."""
        where = f"{self.unit} {row}"
        return f"{self.source} has {_shortened(value)} in {where}, column {name!r}"

    def reject(
        self,
        wrong: Column,
        values: Column,
        name: str,
        expected: str,
        brief: str | None = None,
    ) -> None:
        """Leave out rows with an invalid value and note them; raise if there are many.

        Parameters
        ----------
        wrong : Series of bool
            Rows with an invalid value.
        values : Series of str
        name : str
            Title of the column.
        expected : str
            What was expected, in the error message.
        brief : str, optional
            What was expected, in the note; by default as in the error message, and ""
            if the note contains the values only.

        Raises
        ------
        ValueError
            If more than 1 % of the rows have an invalid value.
        """
        wrong = wrong.fillna(False).astype(bool)
        n_wrong = int(wrong.sum())
        if n_wrong == 0:
            return
        invalid = values[wrong]
        row = invalid.index[0]
        if n_wrong > MAX_FRACTION_LEFT_OUT * len(wrong):
            raise ValueError(
                f"{self.describe(row, invalid[row], name)}; expected {expected}{_more_rows(invalid)}"
            )
        self.left_out.update(invalid.index)
        rows = counted(n_wrong, "row", "rows")
        listed = [
            f"{_shortened(value)} in {self.unit} {k}" for k, value in invalid.items()
        ]
        if brief is None:
            brief = expected
        remedy = ""
        if brief:
            remedy = f"Expected {escape_markdown(brief)}."
        self.note_left_out(
            f"{rows} with an invalid value in column {escape_markdown(repr(name))}",
            first_few(listed, MAX_LISTED_ROWS),
            remedy,
        )


def _shortened(value: object) -> str:
    """A value in quotation marks, without the end of a long text."""
    text = repr(value)
    if len(text) > 80:
        text = f"{text[:60]}… ({len(str(value)):,} characters)"
    return text


def _more_rows(invalid: Column) -> str:
    """Say how many more rows have the first invalid value, or another one."""
    n_same = int((invalid == invalid.iloc[0]).sum()) - 1
    n_other = len(invalid) - 1 - n_same
    parts = []
    if n_same:
        parts.append(f"{counted(n_same, 'more row has', 'more rows have')} this value")
    if n_other:
        parts.append(
            f"{counted(n_other, 'more row has', 'more rows have')} another invalid value"
        )
    return f" ({'; '.join(parts)})" if parts else ""


def read_numbers(
    table: UserTable, name: str, parameter: str, expected: str = "a number"
) -> Column:
    """A column of numbers; rows with other values are left out, or raise if many."""
    text = table.column(name, parameter)
    numbers = to_numbers(text)
    table.reject(numbers.isna(), text, name, expected)
    return numbers


def to_numbers(text: Column) -> Column:
    """Texts as floats, with a decimal point or comma and any minus sign; else NaN."""
    plain = text.astype("string").str.replace("−", "-", regex=False)
    plain = plain.str.replace(r"^([-+]?\d+),(\d+)$", r"\1.\2", regex=True)
    values: Any = pd.to_numeric(plain, errors="coerce")
    numbers: Column = values.astype("Float64").astype(float)
    return numbers.where(np.isfinite(numbers))


def read_flags(table: UserTable, name: str, parameter: str) -> Column:
    """A column of yes and no as bools; a missing value is False."""
    text = table.column(name, parameter)
    low = text.str.lower()
    expected = "yes or no, true or false, 1 or 0"
    table.reject(~low.isin(_YES + _NO), text, name, expected)
    return low.isin(_YES)


def spaced_title(title: str) -> str:
    """A title in lower case with its words apart, as in homeWins and home_wins.

    Examples
    --------
    >>> spaced_title("homeWins"), spaced_title("home_wins")
    ('home wins', 'home wins')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", title).lower().replace("_", " ")


def listed_rows(unit: str, rows: Iterable[object]) -> str:
    """Numbers of lines or rows as Markdown, at most ten.

    Examples
    --------
    >>> listed_rows("line", [7]), listed_rows("line", [7, 11])
    ('line 7', 'lines 7, 11')
    """
    rows = list(rows)
    plural = "s" * (len(rows) > 1)
    return f"{unit}{plural} {first_few(rows, MAX_LISTED_ROWS)}"


def first_few(names: Iterable[object], most: int = 5) -> str:
    """The first names of a list as Markdown, and the number of further names."""
    names = list(map(str, names))
    text = ", ".join(map(escape_markdown, names[:most]))
    if len(names) > most:
        text += f" and {len(names) - most:,} more"
    return text
