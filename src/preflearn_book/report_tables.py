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


def table_html(frame: pd.DataFrame, digits: int = 2) -> str:
    """A table without row numbers as HTML; texts are aligned left and escaped."""
    html = frame.to_html(
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
        cells.append(f' style="text-align: left{nowrap}"' * is_text)
    styles = {"<th>": cycle(head), "<td>": cycle(cells)}
    return re.sub(
        "<t[hd]>", lambda cell: f"{cell[0][:-1]}{next(styles[cell[0]])}>", html
    )
