import pytest

from preflearn import plots

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def axes():
    figure = pyplot.Figure()
    return figure.subplots()


def test_a_method_is_told_by_colour_and_marker():
    assert plots.style("QP") == {"color": plots.COLOURS["purple"], "marker": "s"}
    with pytest.raises(ValueError, match="the style is 'XY'; expected one of"):
        plots.style("XY")


def test_differences_are_drawn_a_label_at_a_time(axes):
    plots.difference_plane(axes, [[1, 2], [0, 1], [3, 4]], [1, -1, 1])
    drawn = {scatter.get_label(): scatter.get_offsets().tolist() for scatter in axes.collections}
    assert drawn == {"first better": [[1, 2], [3, 4]], "second better": [[0, 1]]}
