import numpy as np
import pytest
from optional import optional_import

from preflearn_book.studies.ch02_planes import level_lines

pyplot = optional_import("matplotlib.pyplot")


def test_level_lines_lie_on_their_level_and_keep_the_limits():
    axes = pyplot.Figure().subplots()
    axes.set(xlim=(-1, 2), ylim=(-3, 3))
    level_lines(axes, [3, 4], [0, 5], color="k", label="five")
    assert len(axes.lines) == 2
    for line, level in zip(axes.lines, (0, 5), strict=True):
        assert np.array(line.get_xy1()) @ [3, 4] == pytest.approx(level)
        assert np.array(line.get_xy2()) @ [3, 4] == pytest.approx(level)
    assert (axes.get_xlim(), axes.get_ylim()) == ((-1, 2), (-3, 3))
