"""Names of points do not overlap, and lines join them with their points."""

import numpy as np
import pytest
from optional import optional_import

from preflearn_book.point_labels import name_points, spread


def test_spread_keeps_distances_that_are_large_enough():
    assert spread([0.0, 1.0, 0.5], 0.3).tolist() == [0.0, 1.0, 0.5]


def test_spread_moves_a_group_around_its_mean():
    moved = spread([0.2, 0.2, 0.2, 0.9], 0.1)
    assert moved.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.9])


def test_names_are_apart_on_a_logarithmic_axis():
    axes = optional_import("matplotlib.figure").Figure().subplots()
    axes.set(xscale="log", xlim=(1, 100), ylim=(0, 2))
    points = {"a": (1, 1.0), "b": (10, 1.0), "c": (100, 2.0)}
    name_points(axes, points, dict.fromkeys(points, "black"), gap=0.1)
    assert [text.get_text() for text in axes.texts] == ["a", "b", "c"]
    assert [text.xy for text in axes.texts] == [*points.values()]
    heights = [text.xyann[1] for text in axes.texts]
    assert np.allclose(heights, [0.45, 0.55, 1.0])
