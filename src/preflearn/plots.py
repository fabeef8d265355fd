"""The look of the book's figures, and the figures that more than one chapter draws.

A method has one colour and one marker through the whole book. The colours are those of
Okabe and Ito, which colour-blind readers can tell apart. Only what draws needs
matplotlib (extra [book]).
"""

from __future__ import annotations

import io
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal

from preflearn.core.validation import check_array, check_labels, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from numpy.typing import ArrayLike

__all__ = ["COLOURS", "difference_plane", "setup", "style"]

NARROW_MIME = "application/vnd.preflearn.narrow"
_NARROW = 4.8  # inches: on a telephone, letters of nine points are nine pixels high
_LOSS = 0.8  # of its width, which a panel may lose before it goes to the next row

COLOURS = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
    "grey": "#767676",
}

_STYLES = {
    # labels of comparisons
    "first better": ("vermillion", "^"),
    "second better": ("blue", "v"),
    "tie": ("grey", "o"),
    # methods
    "LP": ("green", "D"),
    "QP": ("purple", "s"),
    "compare": ("vermillion", "o"),
    "rank": ("blue", "s"),
    "rank2": ("sky", "^"),
    "truth": ("black", "x"),
    "least squares": ("orange", "P"),
    "hinge": ("blue", "s"),
    "two-sided hinge": ("vermillion", "o"),
    "probit": ("purple", "D"),
    "logit": ("green", "v"),
    # learners from scored items
    "RLS": ("grey", "P"),
    "Matching Pursuit": ("orange", "v"),
    "RankSVM": ("blue", "s"),
    "RankRLS": ("green", "D"),
    "Sparse RankRLS": ("sky", "^"),
    "Ranking Pursuit": ("vermillion", "o"),
    "Ranking Pursuit, penalised": ("black", "h"),
    "SS Ranking Pursuit": ("black", "X"),
    "CRRP": ("purple", "*"),
    # models of matches
    "elo": ("orange", "h"),
    "glicko": ("green", "p"),
    "davidson": ("purple", "*"),
    "trivial": ("grey", "X"),
    # inference
    "EP": ("blue", "s"),
    "reverse-KL": ("vermillion", "D"),
}

_RC = {
    "figure.figsize": (6.4, 4.0),
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.size": 12,
    "axes.titlesize": 12,
    "legend.fontsize": 11,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "preflearn",
}
_CYCLE = ("blue", "vermillion", "green", "purple", "orange", "sky", "black")


def setup() -> None:
    """Set the book's style for all figures that follow; in a notebook also draw them as
    SVG, wide and narrow.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> setup()
    >>> bool(mpl.rcParams["axes.grid"])
    True
    """
    import matplotlib as mpl
    from cycler import cycler
    from IPython import get_ipython

    look: dict[Any, Any] = {
        **_RC,
        "axes.prop_cycle": cycler(color=[COLOURS[name] for name in _CYCLE]),
    }
    mpl.rcParams.update(look)

    if (shell := get_ipython()) is not None:
        from IPython.core.formatters import BaseFormatter
        from matplotlib.figure import Figure
        from matplotlib_inline.backend_inline import set_matplotlib_formats
        from traitlets import Unicode

        class Narrow(BaseFormatter):
            format_type = Unicode(NARROW_MIME)
            print_method = Unicode("_repr_narrow_")

        set_matplotlib_formats("svg", metadata={"Date": None})
        formatter = shell.display_formatter.formatters.setdefault(
            NARROW_MIME, Narrow(parent=shell)
        )
        formatter.for_type(Figure, narrow)


def narrow(figure: Figure) -> str | None:
    """A figure as SVG for a telephone: its letters as large, its panels below each
    other.

    Parameters
    ----------
    figure : matplotlib Figure
        Drawn before, with a constrained layout. It is left as it was.

    Returns
    -------
    str or None
        None for a figure that is narrow as it is.
    """
    width, height = (float(side) for side in figure.get_size_inches())
    if width <= _NARROW:
        return None
    with ExitStack() as undo:
        undo.callback(figure.set_size_inches, width, height)
        figure.set_size_inches(_NARROW, height * _stacked(figure, width, undo))
        for legend in figure.legends[:]:
            figure.legends.remove(legend)
            undo.callback(figure.legends.append, legend)
            undo.callback(_legend(figure, legend).remove)
        inside = [legend for panel in figure.axes if (legend := panel.get_legend())]
        if (
            len(
                {
                    tuple(text.get_text() for text in legend.get_texts())
                    for legend in inside
                }
            )
            == 1
        ):
            # a narrow panel has no room beside its curves
            undo.callback(_legend(figure, inside[0]).remove)
            for legend in inside:
                undo.callback(legend.set_visible, True)
                legend.set_visible(False)
        text = io.StringIO()
        figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    return text.getvalue()


def _stacked(figure: Figure, width: float, undo: ExitStack) -> float:
    """Set panels into fewer columns; how many times as high they are together."""
    places = {
        panel: place
        for panel in figure.axes
        if (place := panel.get_subplotspec()) is not None
    }
    grids = {place.get_gridspec() for place in places.values()}
    if len(grids) != 1:
        return 1
    ((rows, columns),) = (grid.get_geometry() for grid in grids)
    fewer = max(1, min(columns, int(_NARROW / _LOSS / (width / columns))))
    if fewer == columns:
        return 1
    panels = list(places)
    if rows == fewer:  # what stood in a column stands in a row
        panels.sort(
            key=lambda panel: (places[panel].colspan.start, places[panel].rowspan.start)
        )
    high = {panel: panel.get_position().height for panel in panels}
    table = [panels[k : k + fewer] for k in range(0, len(panels), fewer)]
    heights = [max(high[panel] for panel in row) for row in table]
    grid = figure.add_gridspec(len(table), fewer, height_ratios=heights)
    for i, row in enumerate(table):
        for j, panel in enumerate(row):
            undo.callback(panel.set_subplotspec, places[panel])
            panel.set_subplotspec(grid[i, j])
            if j == 0 or not panel.get_shared_y_axes().joined(panel, row[j - 1]):
                _label(panel, "y", undo)
            if i + 1 == len(table) or len(table[i + 1]) <= j:
                _label(panel, "x", undo)
    before = max(
        sum(high[panel] for panel in panels if k in places[panel].colspan)
        for k in range(columns)
    )
    return sum(heights) + (1 - before) * len(table) / rows


def _legend(figure: Figure, legend: Legend) -> Legend:
    """The legend of a figure in as many columns as the narrow one has room for, above
    or below as before."""
    texts = legend.get_texts()
    inch = figure.dpi
    # with its line
    widest = max(text.get_window_extent().width for text in texts) + 0.7 * inch
    columns = max(1, int(_NARROW * inch / widest))
    names = [text.get_text() for text in texts]
    upper = legend.get_window_extent().y0 > figure.bbox.height / 2
    place = "outside upper center" if upper else "outside lower center"
    known = {
        name: one
        for name, one in zip(names, legend.legend_handles, strict=True)
        if one is not None
    }
    for panel in figure.axes:  # a drawn line has lost its marker
        known |= {
            name: one
            for one, name in zip(*panel.get_legend_handles_labels(), strict=True)
        }
    handles = [known[name] for name in names]
    size = texts[0].get_fontsize()
    return figure.legend(handles, names, loc=place, ncols=columns, fontsize=size)


def _label(panel: Axes, along: Literal["x", "y"], undo: ExitStack) -> None:
    """Show the numbers and the name of an axis that a panel beside or below shows for
    it."""
    axis = panel.yaxis if along == "y" else panel.xaxis
    side = "labelleft" if along == "y" else "labelbottom"
    shared = panel.get_shared_y_axes() if along == "y" else panel.get_shared_x_axes()
    twins = [
        twin.yaxis if along == "y" else twin.xaxis
        for twin in shared.get_siblings(panel)
    ]
    shown: dict[Any, Any] = {side: True}
    undo.callback(axis.set_tick_params, **{side: axis.get_tick_params()[side]})
    undo.callback(axis.set_label_text, axis.get_label_text())
    axis.set_tick_params(**shown)
    names = [name for twin in twins if (name := twin.get_label_text())]
    if names and not axis.get_label_text():
        axis.set_label_text(names[0])


def style(name: str) -> dict[str, str]:
    """Colour and marker of a method or of a label, as keyword arguments for matplotlib.

    Raises
    ------
    ValueError
        If the name has no style yet.

    Examples
    --------
    >>> style("QP")
    {'color': '#CC79A7', 'marker': 's'}
    """
    require(
        isinstance(name, str) and name in _STYLES,
        name,
        "the style",
        f"one of {sorted(_STYLES)}",
    )
    colour, marker = _STYLES[name]
    return {"color": COLOURS[colour], "marker": marker}


def difference_plane(
    axes: Axes, differences: ArrayLike, y: ArrayLike, **scatter: Any
) -> None:
    """Scatter two-dimensional differences (first minus second), one marker and colour a
    label.

    Parameters
    ----------
    axes : matplotlib Axes
    differences : array-like of shape (m, 2)
    y : array-like of shape (m,)
    **scatter
        Passed on to `Axes.scatter`.

    Raises
    ------
    ValueError
        If the differences do not have two columns, or a label is not -1, 0 or 1.
    """
    differences = check_array(
        differences, "differences", ("m", 2), "one difference per pair"
    )
    y = check_labels(y, len(differences))
    for label, name in ((1, "first better"), (0, "tie"), (-1, "second better")):
        if (y == label).any():
            look = style(name)
            axes.scatter(
                *differences[y == label].T,
                s=26,
                label=name,
                zorder=3,
                **(look | scatter),
            )
    axes.set_xlabel("difference in feature 1")
    axes.set_ylabel("difference in feature 2")
