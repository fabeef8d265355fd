"""Lines in the plane of differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from preflearn.core.validation import (
    LARGEST,
    as_floats,
    check_array,
    check_scale,
    require,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


def level_lines(
    axes: Axes,
    coef: ArrayLike,
    levels: ArrayLike,
    *,
    color: str,
    linestyle: Any = "-",
    label: str | None = None,
) -> None:
    """Draw the lines coef . d = level across the current limits of a two-dimensional
    plot.

    Parameters
    ----------
    axes : matplotlib Axes
        Its limits are kept.
    coef : array-like of shape (2,)
        A normal of the lines; not zero.
    levels : array-like of float
    color, linestyle, label
        Style of all lines; the label appears once in the legend.

    Raises
    ------
    ValueError
        If `coef` is zero or too large, or a level is not finite.
    """
    coef = check_array(coef, "coef", (2,))
    size = np.abs(coef).max()
    require(
        1 / LARGEST <= size <= LARGEST,
        coef.tolist(),
        "coef",
        "a direction, from 1e-100 to 1e100 in size",
    )
    levels = check_array(np.atleast_1d(as_floats(levels, "levels")), "levels", ("k",))
    check_scale(levels, "levels")
    limits = axes.get_xlim(), axes.get_ylim()
    for level in levels:
        foot = level * (coef / (coef @ coef))
        across = foot + np.array([-coef[1], coef[0]])
        axes.axline(foot, across, color=color, linestyle=linestyle, lw=1.8, label=label)
        label = None
    axes.set(xlim=limits[0], ylim=limits[1])
