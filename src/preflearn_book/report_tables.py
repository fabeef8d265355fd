"""Tables and numbers in the reports on users' files."""

from __future__ import annotations

import re
from itertools import cycle

import pandas as pd

from preflearn_book.sentences import signed

_SHORT = 16
"""Largest number of characters of a text that stays in one line."""


def percent(p: float) -> str:
    """A probability as a percentage that is never 0 or 100.

    Examples
    --------
    >>> percent(0.347), percent(0.001)
    ('35 %', 'under 1 %')
    """
    if p < 0.01:
        return "under 1 %"
    if p > 0.99:
        return "over 99 %"
    return f"{100 * p:.0f} %"


def show(frame: pd.DataFrame, digits: int = 2) -> None:
    """Display a table in a notebook; see `table_html`."""
    from IPython.display import HTML, display

    display(HTML(table_html(frame, digits)))


def _with_dashes(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace missing integers, which pandas would show as <NA>."""
    filled = frame.copy()
    for title in filled:
        column = pd.Series(filled[title])
        if pd.api.types.is_integer_dtype(column) and column.hasnans:
            filled[title] = column.astype(object).where(column.notna(), "–")
    return filled


def _are_dates(column: pd.Series) -> bool:
    """Whether all texts are dates, which must not break at their hyphens."""
    return bool(column.astype(str).str.fullmatch(r"\d{4}-\d{2}(-\d{2}.*)?").all())


def table_html(frame: pd.DataFrame, digits: int = 2) -> str:
    """A table without row numbers as HTML; texts are aligned left and escaped."""
    html = _with_dashes(frame).to_html(
        index=False,
        border=0,
        na_rep="–",
        float_format=lambda x: signed(x, digits),
    )
    html = re.sub(r">-(?=\d+<)", ">−", html)
    head, cells = [], []
    for column in frame:
        is_text = frame[column].dtype.kind not in "iuf"
        is_short = bool(frame[column].astype(str).str.len().max() <= _SHORT)
        nowrap = "; white-space: nowrap" * is_short
        head.append(' style="text-align: left"' * is_text)
        name = ' class="date"' * bool(is_text and _are_dates(pd.Series(frame[column])))
        cells.append(f'{name} style="text-align: left{nowrap}"' * is_text)
    styles = {"<th>": cycle(head), "<td>": cycle(cells)}
    return re.sub(
        "<t[hd]>", lambda cell: f"{cell[0][:-1]}{next(styles[cell[0]])}>", html
    )
