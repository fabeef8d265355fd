"""Explorers: interactive figures. A chapter stores the data, and a script draws them in
the browser.

The script is `book/_static/explorers.js`. An explorer contains a static figure for plain
notebooks, printed pages, and browsers without JavaScript.
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
"""Names of the data fields that each kind of explorer needs."""


def explorer(
    kind: str,
    data: Mapping[str, Any],
    *,
    fallback: Figure,
    alt: str,
    caption_state: str = "",
) -> None:
    """Show an explorer, and a static figure where no script runs.

    Parameters
    ----------
    kind : str
        Kind of the explorer, a key of `FIELDS`. The notes list the data of each kind.
    data : mapping of str to arrays, lists, texts and finite numbers
        Data of the explorer; additional entries are passed to the script.
    fallback : matplotlib Figure
        Static figure. It is closed, so that a notebook does not show it twice.
    alt : str
        Text alternative of the static figure.
    caption_state : str
        Sentence under the static figure that describes the state that it shows.

    Raises
    ------
    ValueError
        If the kind is unknown, a field is missing, a value is neither a text nor a
        finite number, or the text alternative is empty.

    Notes
    -----
    Data of each kind:

    - "margins": the reader turns a direction w and stretches a feature.
      ``preferences`` has shape (m, 2), better item first, and ``ties`` (k, 2).
    - "semiorder": the reader moves scores and a threshold. Short names of three to five
      ``items``; the ``pairs`` (m, 2), each of different items, that have answers or can
      get one; their ``scores`` at first, from 0 to 2 (n - 1), rounded to tenths. A
      row of ``examples`` is a name and the labels of all pairs, None for no answer.
    - "graph": the reader switches comparisons on and off. Short names of ``items``,
      ``pairs`` (m, 2), labels ``y``.
    - "bias": the reader changes C. Names of ``items``; at the knots of a path the
      decreasing ``lambda`` = 1/C, the ``bias`` beta, and the ``scores`` <u, phi(x)> of
      the items, (knots, items).
    - "path": the reader changes lambda. ``items`` in the plane and their ``pairs``,
      better item first; ``valid`` and ``valid_pairs``; ``gamma`` of the Gaussian
      kernel; at the knots of a path the decreasing ``lambda`` and the
      ``coefficients`` of lambda f on the items, (knots, items). ``best`` is the lambda
      with the lowest validation error of the whole path, ``best_error``.
    - "pursuit": the reader adds functions exp(-``gamma`` (x - c)^2) with centers c at
      items on a line. ``train`` and ``valid`` items, one row (x, query 0 or 1, score)
      each; the values of ``mix``. For each value: the items ``basis`` in the order in
      which they enter; ``coefficients``, whose row p - 1 begins with those of step p;
      the training ``losses`` and validation ``errors`` after 0, 1, ... functions.
    - "match": the reader changes two ``players``, short names, before their match,
      which the first won. ``mean`` and ``std`` of their scores before the match; means
      at most 6 apart, standard deviations from 0.5 to 4.
    - "timelines": the reader moves a day along scores. Short names of ``players``;
      increasing ``years``, 2005.25 for April 2005; at these, ``mean`` and ``std`` of the
      scores, (players, years), both NaN if a player has no curve. ``chosen`` are the two
      to four players that are shown first, by default the first two.
    - "analogy": the reader moves pairs (a, b) of numbers from 0 to 1. Two to six
      ``points``, integer multiples of 1 / ``denominator``. A row of ``proportions`` is
      a name of `preflearn_book.studies.ch15_proportions`, also with ", 0 positive" if
      signs matter, and a sentence about it, or "". ``examples`` by name, for
      proportions with a counterexample, have their own ``points`` and ``denominator``.
      They may have the ``stretch`` of the differences, 100 to 300 percent in steps of
      5, or the ``tolerance``, integer multiples of 1 / ``denominator``.
    - "covariance": the reader conditions a score on results. The ``functions`` of
      chapter 12 by name, each with its ``variance`` and, if it has one,
      ``lengthscale``; the ``boundaries`` of the piecewise constant function; at most 12
      ``times`` and the results ``y`` there, 1, -1, or 0 for no match. The ends
      ``span`` of the time axis; the function ``chosen`` and the ``time`` that are shown
      first.
    - "league": the reader edits results and compares Elo, which starts at 1200 points,
      with Bradley-Terry. Short names of two to four ``players``; at most 8 ``matches``
      (first, second, y), in order, that connect all players; Elo's ``k`` from 4 to 200.
    - "benchmark": the reader describes data and sees the tasks that fit. ``families``,
      each with its ``name``, the names ``sizes`` of zero to two numbers that describe a
      task, the name of a ``replicate``, and ``tasks``. A task has a ``name``, its
      ``sizes``, at least 1, the number of ``units``, and ``rows`` (learner, loss, low,
      high, worse, non-inferior) in increasing order of the mean loss. The loss is 0 for
      the first row and 1 for the learner "constant". ``worse`` is None if there are too
      few units to decide. The ``margin`` is a loss.

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
    """Round timelines to thousandths, and replace NaN, which JSON cannot represent.

    If a player has no curve, std is 0.
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
    """Write data as JSON without the characters &, < and >, so that a text cannot end
    its script element; raise ValueError for a number that is not finite."""
    text = json.dumps(
        data, separators=(",", ":"), allow_nan=False, default=methodcaller("tolist")
    )
    return text.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "&<>"})


def _svg(figure: Figure) -> str:
    """Return the figure as reproducible SVG in base64, and close the figure."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "explorer"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)
    return base64.b64encode(
        for_both_themes(buffer.getvalue().decode("utf-8")).encode()
    ).decode("ascii")
