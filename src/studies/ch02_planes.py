"""Lines in the plane of differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from preflearn.checks import check_array

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
    """Draw the lines coef . d = level across the current limits of a two-dimensional plot.

    Parameters
    ----------
    axes : matplotlib Axes
        Its limits are kept.
    coef : array-like of shape (2,)
    levels : array-like of float
    color, linestyle, label
        Of all lines; the label appears once in the legend.

    Raises
    ------
    ValueError
        If `coef` is zero or not of length two.
    """
    coef = check_array(coef, "coef", (2,))
    if not coef.any():
        raise ValueError(f"coef is {coef}; expected two numbers, not both zero")
    limits = axes.get_xlim(), axes.get_ylim()
    for level in check_array(np.atleast_1d(np.asarray(levels)), "levels", ("k",)):
        foot = level * coef / (coef @ coef)
        across = foot + np.array([-coef[1], coef[0]])
        axes.axline(foot, across, color=color, linestyle=linestyle, lw=1.8, label=label)
        label = None
    axes.set(xlim=limits[0], ylim=limits[1])
