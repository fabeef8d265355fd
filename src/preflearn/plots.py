"""The look of the book's figures, and the figures that more than one chapter draws.

A method has one colour and one marker through the whole book. The colours are those of
Okabe and Ito, which colour-blind readers can tell apart. Only what draws needs matplotlib (extra [book]).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from preflearn.checks import check_array, check_labels, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

__all__ = ["COLOURS", "difference_plane", "setup", "style"]

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
    """Set the book's style for all figures that follow; in a notebook also draw them as SVG.

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

    look: dict[Any, Any] = {**_RC, "axes.prop_cycle": cycler(color=[COLOURS[name] for name in _CYCLE])}
    mpl.rcParams.update(look)

    if get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", metadata={"Date": None})


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
    require(isinstance(name, str) and name in _STYLES, name, "the style", f"one of {sorted(_STYLES)}")
    colour, marker = _STYLES[name]
    return {"color": COLOURS[colour], "marker": marker}


def difference_plane(axes: Axes, differences: ArrayLike, y: ArrayLike, **scatter: Any) -> None:
    """Scatter two-dimensional differences (first minus second), one marker and colour a label.

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
    differences = check_array(differences, "differences", ("m", 2), "one difference a pair")
    y = check_labels(y, len(differences))
    for label, name in ((1, "first better"), (0, "tie"), (-1, "second better")):
        if (y == label).any():
            look = style(name)
            axes.scatter(*differences[y == label].T, s=26, label=name, zorder=3, **(look | scatter))
    axes.set_xlabel("difference in feature 1")
    axes.set_ylabel("difference in feature 2")
