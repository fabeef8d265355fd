"""Explorers: figures that a reader moves. A chapter sends the numbers, a script of the page draws them.

The script is `book/_static/explorers.js`. The static figure stands inside: it is what a plain notebook, a
printed page and a browser without JavaScript show.
"""

from __future__ import annotations

import base64
import html
import io
import json
import reprlib
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bookrunner.parameters import show
from bookrunner.records import plain_scalar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIELDS: dict[str, dict[str, tuple[int | str, ...]]] = {
    "margins": {"preferences": ("m", 2), "ties": ("k", 2)},
    "graph": {"items": ("n",), "pairs": ("m", 2), "y": ("m",)},
    "bias": {"items": ("n",), "lambda": ("k",), "bias": ("k",), "scores": ("k", "n")},
    "path": {
        "items": ("n", 2),
        "pairs": ("m", 2),
        "valid": ("q", 2),
        "valid_pairs": ("v", 2),
        "gamma": (),
        "lambda": ("k",),
        "coefficients": ("k", "n"),
        "best": (),
        "best_error": (),
    },
    "pursuit": {
        "train": ("n", 3),
        "valid": ("v", 3),
        "gamma": (),
        "mix": ("k",),
        "basis": ("k", "p"),
        "coefficients": ("k", "p", "p"),
        "losses": ("k", "s"),
        "errors": ("k", "s"),
    },
    "match": {"players": (2,), "mean": (2,), "std": (2,)},
    "timelines": {"players": ("n",), "years": ("t",), "mean": ("n", "t"), "std": ("n", "t")},
    "analogy": {"denominator": (), "points": ("n", 2), "proportions": ("k", 2), "examples": ()},
}
"""What each kind needs, with the shape of each field; a letter stands for one length in the whole kind."""

_PLACES = {
    "graph": {"pairs": "items"},
    "path": {"pairs": "items", "valid_pairs": "valid"},
    "pursuit": {"basis": "train"},
}
"""Fields that hold places in another one."""


def explorer(
    kind: str, data: Mapping[str, Any], *, fallback: Figure, alt: str, caption_state: str = ""
) -> None:
    """Show an explorer, with a static figure for where no script runs.

    Parameters
    ----------
    kind : {"margins", "graph", "bias", "path", "pursuit", "match", "timelines", "analogy"}
        "margins" turns a direction w and stretches a feature: ``preferences`` of shape (m, 2), better item
        first, and ``ties``, (k, 2).
        "graph" switches comparisons on and off: short names of ``items``, ``pairs`` (m, 2), labels ``y``.
        "bias" moves C: names of ``items``, and at the knots of a path the decreasing ``lambda`` = 1/C, the
        ``bias`` beta, and the ``scores`` <u, phi(x)> of the items, (knots, items).
        "path" moves lambda: ``items`` in the plane and ``pairs`` of them, better item first, ``valid`` and
        ``valid_pairs``, the Gaussian kernel's ``gamma``, and at the knots of a path the decreasing
        ``lambda`` and the ``coefficients`` of lambda f on the items, (knots, items); ``best`` is a lambda of
        least validation error on the whole path, ``best_error``.
        "pursuit" adds functions exp(-``gamma`` (x - c)^2) with centres c on items of a line: ``train`` and
        ``valid`` items, a row (x, query 0 or 1, score) each, the values of ``mix``, and for each of them
        the items ``basis`` in the order they enter, ``coefficients``, whose row p - 1 begins with those of
        step p, and after 0, 1, ... functions the training ``losses`` and the validation ``errors``.
        "match" moves two ``players``, short names, before their match, which the first won: ``mean`` and
        ``std`` of their scores beforehand; means at most 6 apart, standard deviations from 0.5 to 4.
        "timelines" moves a day along scores: short names of ``players``, increasing ``years``, 2005.25 for
        April 2005, and at these ``mean`` and ``std`` of the scores, (players, years), both NaN where a player
        has no curve. ``chosen``: the two to four players shown first, else the first two; a ``margin``, for
        chances of ties, is that of `preflearn.dynamics.OrdinalProbit`.
        "analogy" moves pairs (a, b) of numbers from 0 to 1: two to six ``points``, whole multiples of
        1 / ``denominator``. Rows of ``proportions`` are a name of `studies.ch15_proportions`, also
        with ", 0 positive" where signs matter, and a sentence about it, or "". ``examples`` by name, for
        proportions with a counterexample, have ``points`` and ``denominator`` of their own, and may have the
        ``stretch`` of the differences, 100 to 300 percent in steps of 5, or the ``tolerance``, whole steps of
        1 / ``denominator``.
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
        On an unknown kind, a missing field or a wrong shape, what is neither a finite number nor a text, an
        item or a label that does not exist, values of lambda that do not decrease, or no alternative text.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> data = {"items": ["a", "b"], "pairs": [[1, 0]], "y": [1]}
    >>> explorer("graph", data, fallback=Figure(), alt="An edge joins a and b.")
    [explorer graph] An edge joins a and b.
    """
    if kind not in _FIELDS:
        raise ValueError(f"there is no explorer {kind!r}; expected one of {sorted(_FIELDS)}")
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"the alternative text is {alt!r}; expected a sentence")
    plain = _plain(_without_gaps(data) if kind == "timelines" else data, "data")
    _check(kind, plain)
    text = f"[explorer {kind}] {' '.join(alt.split())} {caption_state}".rstrip()
    page = _html(kind, plain, _picture(fallback, alt), caption_state)
    show({"text/html": page, "text/plain": text})


def _without_gaps(data: Mapping[str, Any]) -> dict[str, Any]:
    """Timelines in thousandths, enough for a picture. JSON has no NaN: where there is no curve, std is 0."""
    import numpy as np

    if missing := {"years", "mean", "std"} - set(data):
        raise ValueError(f"data has {sorted(data)}; expected {min(missing)!r} for 'timelines'")
    years, mean, std = (np.asarray(data[name], dtype=float) for name in ("years", "mean", "std"))
    gone = np.isnan(mean)
    if not np.array_equal(gone, np.isnan(std)) or (std < 0.001).any():
        found = f"data['std'] {std.shape} is below 0.001, or not NaN as data['mean'] {mean.shape} is"
        raise ValueError(f"{found}; expected neither")
    mean, std = (np.where(gone, 0, values).round(3) for values in (mean, std))
    return {**data, "years": years.round(3), "mean": mean, "std": std}


def _plain(value: Any, where: str) -> Any:
    """Nested data as JSON has them; ValueError says where something else is."""
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy
        value = value.tolist()
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise ValueError(f"{where} has the key {wrong[0]!r}; expected a text")
        return {key: _plain(part, f"{where}[{key!r}]") for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, f"{where}[{k}]") for k, part in enumerate(value)]
    return plain_scalar(where, value)


def _check(kind: str, data: dict[str, Any]) -> None:
    import numpy as np

    lengths: dict[str, int] = {}
    for name, shape in _FIELDS[kind].items():
        if name not in data:
            raise ValueError(f"data has {sorted(data)}; expected {name!r} for {kind!r}")
        found = np.array(data[name], dtype=object).shape
        wanted = tuple(
            lengths.setdefault(s, n) if isinstance(s, str) else s for s, n in zip(shape, found, strict=False)
        )
        if len(found) != len(shape) or found != wanted or 0 in found:
            raise ValueError(f"data[{name!r}] has the shape {found}; expected {shape} with {lengths}")
    for name, of in _PLACES.get(kind, {}).items():
        if not {place for row in data[name] for place in row} <= set(range(len(data[of]))):
            raise ValueError(f"data[{name!r}] is {reprlib.repr(data[name])}; expected places in {of!r}")
    if not set(data.get("y", [])) <= {-1, 0, 1}:
        raise ValueError(f"labels are {reprlib.repr(data['y'])}; expected -1, 0 or 1")
    knots = data.get("lambda", [])
    if any(a <= b for a, b in pairwise([*knots, 0])):
        raise ValueError(f"lambda is {reprlib.repr(knots)}; expected positive numbers that decrease")


def _picture(figure: Figure, alt: str) -> str:
    """The figure as an <img> that holds its SVG, the same text in every run; the figure is closed."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "explorer"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)
    source = base64.b64encode(buffer.getvalue()).decode("ascii")
    alt = html.escape(" ".join(alt.split()))
    return f'<img src="data:image/svg+xml;base64,{source}" alt="{alt}">'


def _html(kind: str, data: dict[str, Any], picture: str, caption_state: str) -> str:
    # A text with "</script>" must not end the element; JSON may write these signs as escapes.
    inline = json.dumps(data, separators=(",", ":"))
    inline = inline.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "&<>"})
    state = f"<p>{html.escape(caption_state)}</p>" if caption_state else ""
    return (
        f'<div class="explorer" data-explorer="{kind}">'
        f'<script type="application/json">{inline}</script>'
        f'<div class="explorer-static">{picture}{state}</div></div>'
    )
