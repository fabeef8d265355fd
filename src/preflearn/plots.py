"""Style of the book's figures, and plots that several chapters use.

Each method has one color and one marker in the whole book. The colors are the palette
of Okabe and Ito, which most color-blind readers can distinguish. Functions that draw
need matplotlib (extra [book]).
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
# inches; at this width 9-point letters are about 9 pixels high on a phone
_NARROW_WIDTH = 4.8
# relative to the wide figure; narrower panels move to the next row
_MIN_PANEL_WIDTH = 0.8

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

_RC: dict[Any, Any] = {
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
    """Set the book's style for all following figures.

    In a notebook, figures are also drawn as SVG, in a wide and in a narrow version.

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

    mpl.rcParams.update(_RC)
    colours = [COLOURS[name] for name in _CYCLE]
    mpl.rcParams["axes.prop_cycle"] = cycler(color=colours)

    shell = get_ipython()
    if shell is not None:
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
    """Draw a narrow version of a figure as SVG, for phones.

    Letters keep their size, and panels are placed below each other.

    Parameters
    ----------
    figure : matplotlib Figure
        Figure that was drawn with a constrained layout. It is not changed.

    Returns
    -------
    str or None
        SVG text, or None if the figure is already narrow.
    """
    width, height = (float(side) for side in figure.get_size_inches())
    if width <= _NARROW_WIDTH:
        return None
    with ExitStack() as undo:
        undo.callback(figure.set_size_inches, width, height)
        figure.set_size_inches(
            _NARROW_WIDTH, height * _stack_panels(figure, width, undo)
        )
        for legend in figure.legends[:]:
            figure.legends.remove(legend)
            undo.callback(figure.legends.append, legend)
            undo.callback(_copy_legend(figure, legend).remove)
        legends = [panel.get_legend() for panel in figure.axes]
        inside = [legend for legend in legends if legend is not None]
        entries = {
            tuple(text.get_text() for text in legend.get_texts()) for legend in inside
        }
        if len(entries) == 1:
            # narrow panels have no room for the legend
            undo.callback(_copy_legend(figure, inside[0]).remove)
            for legend in inside:
                undo.callback(legend.set_visible, True)
                legend.set_visible(False)
        text = io.StringIO()
        figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    return text.getvalue()


def _stack_panels(figure: Figure, width: float, undo: ExitStack) -> float:
    """Move panels into fewer columns, and return the relative change of the height."""
    specs = {panel: panel.get_subplotspec() for panel in figure.axes}
    places = {panel: spec for panel, spec in specs.items() if spec is not None}
    grids = {place.get_gridspec() for place in places.values()}
    if len(grids) != 1:
        return 1
    rows, columns = grids.pop().get_geometry()
    fewer = int(_NARROW_WIDTH / _MIN_PANEL_WIDTH / (width / columns))
    fewer = max(1, min(columns, fewer))
    if fewer == columns:
        return 1
    panels = list(places)
    if rows == fewer:  # each column becomes a row
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
                _show_label(panel, "y", undo)
            if i + 1 == len(table) or len(table[i + 1]) <= j:
                _show_label(panel, "x", undo)
    before = max(
        sum(high[panel] for panel in panels if k in places[panel].colspan)
        for k in range(columns)
    )
    return sum(heights) + (1 - before) * len(table) / rows


def _copy_legend(figure: Figure, legend: Legend) -> Legend:
    """Add a copy of a legend, with as many columns as fit into the narrow figure."""
    texts = legend.get_texts()
    inch = figure.dpi
    # 0.7 inch for the line of an entry
    widest = max(text.get_window_extent().width for text in texts) + 0.7 * inch
    columns = max(1, int(_NARROW_WIDTH * inch / widest))
    names = [text.get_text() for text in texts]
    place = "outside lower center"
    if legend.get_window_extent().y0 > figure.bbox.height / 2:
        place = "outside upper center"
    by_name: dict[str, Any] = dict(zip(names, legend.legend_handles, strict=True))
    for panel in figure.axes:  # handles of a legend do not keep their markers
        drawn, labels = panel.get_legend_handles_labels()
        by_name |= dict(zip(labels, drawn, strict=True))
    handles = [by_name[name] for name in names]
    size = texts[0].get_fontsize()
    return figure.legend(handles, names, loc=place, ncols=columns, fontsize=size)


def _show_label(panel: Axes, along: Literal["x", "y"], undo: ExitStack) -> None:
    """Show the tick labels and the name of an axis that a shared axis hid."""
    shared: Any
    if along == "y":
        side = "labelleft"
        shared = panel.get_shared_y_axes()
    else:
        side = "labelbottom"
        shared = panel.get_shared_x_axes()
    axis = getattr(panel, f"{along}axis")
    undo.callback(axis.set_tick_params, **{side: axis.get_tick_params()[side]})
    undo.callback(axis.set_label_text, axis.get_label_text())
    axis.set_tick_params(**{side: True})
    siblings = [getattr(other, f"{along}axis") for other in shared.get_siblings(panel)]
    names = [sibling.get_label_text() for sibling in siblings]
    names = [name for name in names if name]
    if names and not axis.get_label_text():
        axis.set_label_text(names[0])


def style(name: str) -> dict[str, str]:
    """Return matplotlib keyword arguments for the color and marker of a method.

    `name` may also be a kind of label, such as "tie".

    Raises
    ------
    ValueError
        If the name has no style.

    Examples
    --------
    >>> style("QP")
    {'color': '#CC79A7', 'marker': 's'}
    """
    known = isinstance(name, str) and name in _STYLES
    require(known, name, "name", f"one of {sorted(_STYLES)}")
    colour, marker = _STYLES[name]
    return {"color": COLOURS[colour], "marker": marker}


def difference_plane(
    axes: Axes, differences: ArrayLike, y: ArrayLike, **scatter: Any
) -> None:
    """Plot two-dimensional differences, first minus second, with a marker per label.

    Parameters
    ----------
    axes : matplotlib Axes
        Axes to draw on.
    differences : array-like of shape (m, 2)
        Feature differences of the pairs.
    y : array-like of shape (m,)
        Labels -1, 0, or 1.
    **scatter
        Further keyword arguments of `Axes.scatter`.

    Raises
    ------
    ValueError
        If the differences do not have two columns, or a label is not -1, 0, or 1.
    """
    differences = check_array(
        differences, "differences", ("m", 2), "one difference per pair"
    )
    y = check_labels(y, len(differences))
    for label, name in ((1, "first better"), (0, "tie"), (-1, "second better")):
        if (y == label).any():
            options = style(name) | scatter
            points = differences[y == label].T
            axes.scatter(*points, s=26, label=name, zorder=3, **options)
    axes.set_xlabel("difference in feature 1")
    axes.set_ylabel("difference in feature 2")
