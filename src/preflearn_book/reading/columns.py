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
    """

    def __init__(self, frame: Frame, source: str, unit: str = "line") -> None:
        self.frame = frame
        self.source = source
        self.unit = unit
        self.notes = list[str]()
        self.left_out = set[int]()

    def __contains__(self, name: str) -> bool:
        return name in list(self.frame.columns)

    def note(self, text: str) -> None:
        """Add a note in Markdown, once."""
        if text not in self.notes:
            self.notes.append(text)

    def column(self, name: str, parameter: str, otherwise: str = "") -> Column:
        """The texts of a column without surrounding spaces; "" for a missing value.

        Raises
        ------
        ValueError
            If no column, or more than one, has this name.
        """
        columns = [str(column) for column in self.frame.columns]
        n_found = columns.count(name)
        if n_found == 0:
            raise ValueError(
                f"column {name!r} not found in {self.source}; the file has: {', '.join(columns)}. "
                f"Name the column with -p {parameter} NAME{otherwise}"
            )
        if n_found > 1:
            raise ValueError(
                f"{self.source} has {n_found} columns called {name!r}; rename or delete one of them"
            )
        values = self.frame.iloc[:, columns.index(name)]
        return values.astype("string").str.strip().fillna("")

    def describe(self, row: int, value: object, name: str) -> str:
        """Say where a value is: "games.csv has 'x' in line 3, column 'home'"."""
        text = repr(value)
        if len(text) > 80:
            text = f"{text[:60]}… ({len(str(value)):,} characters)"
        return f"{self.source} has {text} in {self.unit} {row}, column {name!r}"

    def reject(self, wrong: Column, values: Column, name: str, expected: str) -> None:
        """Leave out rows with an invalid value and note them; raise if there are many.

        Raises
        ------
        ValueError
            If more than 1 % of the rows have an invalid value.
        """
        wrong = wrong.fillna(False).astype(bool)
        n_wrong = int(wrong.sum())
        if n_wrong == 0:
            return
        row = wrong.idxmax()
        text = f"{self.describe(row, values[row], name)}; expected {expected}"
        if n_wrong > MAX_FRACTION_LEFT_OUT * len(wrong):
            raise ValueError(text + _more_rows(n_wrong - 1))
        self.left_out.update(wrong.index[wrong])
        rows = counted(n_wrong, "row", "rows")
        first = ""
        if n_wrong > 1:
            first = "The first: "
        self.note(
            f"**Left out: {rows} with an invalid value.** {first}{escape_markdown(text)}."
        )


def _more_rows(n: int) -> str:
    if n == 0:
        return ""
    rows = counted(n, "more row has", "more rows have")
    return f" ({rows} an invalid value)"


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


def first_few(names: Iterable[object], most: int = 5) -> str:
    """The first names of a list as Markdown, and the number of further names."""
    names = list(map(str, names))
    text = ", ".join(map(escape_markdown, names[:most]))
    if len(names) > most:
        text += f" and {len(names) - most:,} more"
    return text
