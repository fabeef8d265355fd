"""Names next to the points of a figure, without overlaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import isotonic_regression

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray


def spread(positions: ArrayLike, gap: float) -> NDArray[np.float64]:
    """Move positions on a line apart, with the least sum of squared shifts.

    Parameters
    ----------
    positions : array-like of shape (n,)
    gap : float
        Smallest distance between two of the new positions.

    Returns
    -------
    ndarray of shape (n,)
        New positions, in the same order.

    Examples
    --------
    >>> spread([0.5, 0.5, 0.1], 0.2).round(2).tolist()
    [0.4, 0.6, 0.1]
    """
    values = np.asarray(positions, dtype=float)
    order = np.argsort(values, kind="stable")
    offsets = gap * np.arange(len(values))
    moved = np.empty(len(values))
    moved[order] = isotonic_regression(values[order] - offsets).x + offsets
    return moved


def name_points(
    axes: Axes,
    points: Mapping[str, tuple[float, float]],
    colours: Mapping[str, str],
    *,
    gap: float = 0.08,
    fontsize: float = 10,
) -> None:
    """Write names to the right of the axes, with a thin line from each to its point.

    Call this function after the limits of the axes are final.

    Parameters
    ----------
    axes : matplotlib Axes
    points : mapping of str to (float, float)
        Point of each name, in data coordinates.
    colours : mapping of str to str
        Color of each name.
    gap : float, default 0.08
        Smallest distance between two names, as a fraction of the height of the axes.
    fontsize : float, default 10
    """
    axes.get_ylim()  # matplotlib computes automatic limits at the first use
    to_axes = axes.transScale + axes.transLimits
    _, heights = to_axes.transform(list(points.values())).T
    places = spread(heights, gap)
    for (name, point), height in zip(points.items(), places, strict=True):
        line = {"arrowstyle": "-", "color": colours[name], "lw": 0.8, "alpha": 0.6}
        line |= {"shrinkA": 0, "shrinkB": 3, "relpos": (0, 0.5)}
        axes.annotate(
            name,
            point,
            (1.04, height),
            textcoords="axes fraction",
            va="center",
            color=colours[name],
            fontsize=fontsize,
            arrowprops=line,
            annotation_clip=False,
        )
