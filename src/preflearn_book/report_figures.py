"""The figure of scores in the reports on users' files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from preflearn import plots
from preflearn.ranking.uncertainty import quasi_variances
from preflearn_book.reading.labels import plot_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BARS = 100
_Z = 1.39  # 1.96 divided by the square root of 2


def comparison_bars(*covariances: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Half widths of bars that do not overlap if two scores differ at about the 5 % level.

    Parameters
    ----------
    *covariances : ndarray of shape (n, n)
        Estimates of the covariance matrix of the scores. Each bar is the widest of all
        estimates.

    Returns
    -------
    ndarray of shape (n,), or None
        None if there are fewer than 3 or more than 100 scores, or if there are no such
        bars.

    Examples
    --------
    >>> comparison_bars(np.eye(3)).round(2).tolist()
    [1.39, 1.39, 1.39]
    """
    if not 2 < len(covariances[0]) <= _MOST_BARS:
        return None
    try:
        found = np.max([quasi_variances(one) for one in covariances], axis=0)
    except ValueError:  # some scores always differ by the same number
        return None
    return _Z * np.sqrt(found) if (found > 0).all() else None


def draw_scores(axis: Axes, table: pd.DataFrame, names: str, mean: str) -> None:
    """Draw scores with their intervals, and with thick bars if there are any.

    Parameters
    ----------
    axis : Axes
    table : DataFrame
        Columns score, low, high, and optionally bar and group; the best score first.
    names : str
        Column with the names.
    mean : str
        What the scores are relative to, such as "mean of all items".
    """
    place = np.arange(len(table))
    color = plots.COLOURS["blue"]
    axis.hlines(place, table["low"], table["high"], color=color)
    if "bar" in table:
        ends = table["score"] - table["bar"], table["score"] + table["bar"]
        axis.hlines(place, *ends, color=color, linewidth=6, alpha=0.4)
    axis.plot(table["score"], place, "o", color=color)
    axis.set_yticks(place, plot_labels(table[names]))
    if "group" in table:
        for k in np.flatnonzero(np.diff(table["group"])):
            axis.axhline(k + 0.5, color=plots.COLOURS["grey"], linewidth=1)
    axis.set(xlabel=f"score ({mean}: 0)", ylim=(len(table) - 0.5, -0.5))


def how_to_compare(table: pd.DataFrame, what: str) -> str:
    """Explain bars and lines of `draw_scores` in the table, as Markdown.

    Parameters
    ----------
    table : DataFrame
    what : str
        Plural noun for what is ranked, such as "items".
    """
    texts = []
    if "bar" in table:
        texts.append(
            f"In the figure, two {what} differ clearly, at about the 5 % level, if their thick bars do "
            f"not overlap."
        )
    if "group" in table and len(set(table["group"])) > 1:
        texts.append("In the figure, lines separate the groups that never met.")
    return " ".join(texts)
