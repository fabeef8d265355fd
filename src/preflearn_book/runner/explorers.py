"""Explorers: interactive figures. A chapter stores the numbers, a script of the page
draws them.

The script is `book/_static/explorers.js`. An explorer contains a static figure, which a
plain notebook, a printed page and a browser without JavaScript show.
"""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Mapping
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from preflearn_book.runner.files import forms
from preflearn_book.runner.parameters import require, show
from preflearn_book.runner.records import filled, for_both_themes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIELDS: dict[str, list[str]] = forms()["explorers"]
"""Names of the data that each kind of explorer needs."""


def explorer(
    kind: str,
    data: Mapping[str, Any],
    *,
    fallback: Figure,
    alt: str,
    caption_state: str = "",
) -> None:
    """Show an explorer, with a static figure if no script runs.

    Parameters
    ----------
    kind : {"margins", "graph", "bias", "path", "pursuit", "match", "timelines", "analogy"}
        "margins" turns a direction w and stretches a feature: ``preferences`` of shape
        (m, 2), better item first, and ``ties``, (k, 2). "graph" switches comparisons on
        and off: short names of ``items``, ``pairs`` (m, 2), labels ``y``. "bias" moves
        C: names of ``items``, and at the knots of a path the decreasing ``lambda`` =
        1/C, the ``bias`` beta, and the ``scores`` <u, phi(x)> of the items, (knots,
        items). "path" moves lambda: ``items`` in the plane and ``pairs`` of them,
        better item first, ``valid`` and ``valid_pairs``, the Gaussian kernel's
        ``gamma``, and at the knots of a path the decreasing ``lambda`` and the
        ``coefficients`` of lambda f on the items, (knots, items); ``best`` is a lambda
        of least validation error on the whole path, ``best_error``. "pursuit" adds
        functions exp(-``gamma`` (x - c)^2) with centres c on items of a line: ``train``
        and ``valid`` items, a row (x, query 0 or 1, score) each, the values of ``mix``,
        and for each of them the items ``basis`` in the order they enter,
        ``coefficients``, whose row p - 1 begins with those of step p, and after 0, 1,
        ... functions the training ``losses`` and the validation ``errors``. "match"
        moves two ``players``, short names, before their match, which the first won:
        ``mean`` and ``std`` of their scores beforehand; means at most 6 apart, standard
        deviations from 0.5 to 4. "timelines" moves a day along scores: short names of
        ``players``, increasing ``years``, 2005.25 for April 2005, and at these ``mean``
        and ``std`` of the scores, (players, years), both NaN where a player has no
        curve. ``chosen``: the two to four players shown first, else the first two.
        "analogy" moves pairs (a, b) of numbers from 0 to 1: two to six ``points``,
        whole multiples of 1 / ``denominator``. Rows of ``proportions`` are a name of
        `preflearn_book.studies.ch15_proportions`, also with ", 0 positive" where signs
        matter, and a sentence about it, or "". ``examples`` by name, for proportions
        with a counterexample, have ``points`` and ``denominator`` of their own, and may
        have the ``stretch`` of the differences, 100 to 300 percent in steps of 5, or
        the ``tolerance``, whole steps of 1 / ``denominator``.
    data : mapping of str to arrays, lists, texts and finite numbers
        What the kind needs; further entries are passed on.
    fallback : matplotlib Figure
        It is closed, so that a notebook does not show it twice.
    alt : str
        What the static figure shows, in words.
    caption_state : str
        A sentence under the static figure: the state of the explorer that it shows.

    Raises
    ------
    ValueError
        On an unknown kind, a missing field, what is neither a finite number nor a
        text, or no alternative text.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> data = {"items": ["a", "b"], "pairs": [[1, 0]], "y": [1]}
    >>> explorer("graph", data, fallback=Figure(), alt="An edge joins a and b.")
    [explorer graph] An edge joins a and b.
    """
    require(kind in FIELDS, kind, "the explorer", f"one of {sorted(FIELDS)}")
    require(alt.strip(), alt, "the alternative text", "a sentence")
    missing = [name for name in FIELDS[kind] if name not in data]
    require(not missing, list(data), "the list of data's names", f"also {missing}")
    if kind == "timelines":
        data = _without_gaps(data)
    alt = " ".join(alt.split())
    page = filled(
        "explorer.html",
        svg=_svg(fallback),
        kind=kind,
        inline=_inline(data),
        alt=alt,
        state=caption_state,
        escape=html.escape,
    )
    text = f"[explorer {kind}] {alt} {caption_state}".rstrip()
    show({"text/html": page, "text/plain": text})


def _without_gaps(data: Mapping[str, Any]) -> dict[str, Any]:
    """Round timelines to thousandths, and replace NaN, which JSON lacks.

    Without a curve, std is 0.
    """
    import numpy as np

    from preflearn.core.validation import as_floats

    years, mean, std = (
        as_floats(data[name], f"data[{name!r}]") for name in ("years", "mean", "std")
    )
    gone = np.isnan(mean)
    mean = np.where(gone, 0, mean)
    std = np.where(gone, 0, np.maximum(std, 0.001))
    return {**data, "years": years.round(3), "mean": mean.round(3), "std": std.round(3)}


def _inline(data: Mapping[str, Any]) -> str:
    """Write data as JSON without the characters &, < and >, so that no text can end its
    script element; ValueError for a number that is not finite."""
    text = json.dumps(
        data, separators=(",", ":"), allow_nan=False, default=methodcaller("tolist")
    )
    return text.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "&<>"})


def _svg(figure: Figure) -> str:
    """The figure as SVG in base64, the same text in every run; the figure is closed."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "explorer"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)
    return base64.b64encode(
        for_both_themes(buffer.getvalue().decode("utf-8")).encode()
    ).decode("ascii")
