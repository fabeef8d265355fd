"""Lines in plots of two-dimensional differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
        Normal vector of the lines; not zero.
    levels : float or array-like of float
    color, linestyle, label
        Style of the lines. The label appears once in the legend.
    """
    coef = np.asarray(coef)
    limits = axes.axis()
    for level in np.atleast_1d(levels):
        foot = level * (coef / (coef @ coef))
        across = foot + np.array([-coef[1], coef[0]])
        axes.axline(foot, across, color=color, linestyle=linestyle, lw=1.8, label=label)
        label = None
    axes.axis(limits)
