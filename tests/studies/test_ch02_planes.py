import numpy as np
import pytest

from studies.ch02_planes import level_lines

pyplot = pytest.importorskip("matplotlib.pyplot")


def test_lines_of_a_level_keep_the_limits():
    axes = pyplot.Figure().subplots()
    axes.set(xlim=(-1, 2), ylim=(-3, 3))
    level_lines(axes, [3, 4], [0, 5], color="k", label="five")
    for line, level in zip(axes.lines, (0, 5), strict=False):
        assert np.array(line.get_xy1()) @ [3, 4] == pytest.approx(level)
        assert np.array(line.get_xy2()) @ [3, 4] == pytest.approx(level)
    assert (axes.get_xlim(), axes.get_ylim()) == ((-1, 2), (-3, 3))
    assert axes.get_legend_handles_labels()[1] == ["five"]
