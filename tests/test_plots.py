import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from bookrunner import records
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


def picture(figure):
    """What a figure looks like, as pixels."""
    figure.set_dpi(100)
    pyplot.switch_backend("agg")
    figure.canvas.draw()
    figure.canvas.draw()  # a constrained layout settles in the second
    return np.asarray(figure.canvas.buffer_rgba())


@pytest.fixture
def wide():
    """Two panels side by side that share an axis, a legend below."""
    with pyplot.rc_context({"svg.fonttype": "none"}):
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
        for k in range(4):
            left.plot([k, 1], label=f"curve {k}")
        right.plot([7, 9])
        left.set(title="one", ylabel="error", xlabel="items")
        right.set(title="two", xlabel="pairs")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        yield figure
    pyplot.close(figure)


def words_of(svg):
    """Words of a drawing with their heights, as they would stand on a page 352 pixels wide."""
    drawing = ElementTree.fromstring(svg)
    width = float(drawing.attrib["viewBox"].split()[2])
    texts = drawing.iter("{http://www.w3.org/2000/svg}text")
    sizes = (
        (text.text, re.search(r"(?:font: |font-size: )([\d.]+)px", text.attrib["style"])) for text in texts
    )
    return [(text, float(size[1]) * 352 / width) for text, size in sizes]


def test_on_a_telephone_panels_stand_below_each_other_with_letters_that_can_be_read(wide):
    wide.canvas.draw()
    words = words_of(plots.narrow(wide))
    assert min(size for _, size in words) >= 9
    said = [text for text, _ in words]
    assert said.count("error") == 2  # the second has no neighbour that shows its axis
    assert [text for text in said if text in ("one", "two", "curve 0", "curve 3")] == [
        "one",
        "two",
        "curve 0",
        "curve 3",
    ]
    heights = [float(v) for v in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', plots.narrow(wide))[0]]
    assert heights[1] > 1.2 * heights[0]


def test_the_figure_is_left_as_it_was(wide):
    def state():
        panels = [(a.get_subplotspec().num1, a.get_ylabel(), a.yaxis.get_tick_params()) for a in wide.axes]
        return panels, wide.get_size_inches().tolist(), len(wide.legends)

    before, drawn = state(), picture(wide)
    plots.narrow(wide)
    assert state() == before
    assert np.abs(picture(wide).astype(int) - drawn.astype(int)).mean() < 0.5  # the layout settles again


def test_panels_of_a_column_stand_in_a_row_where_that_fits():
    figure, axes = pyplot.subplots(2, 5, figsize=(13, 6), layout="constrained")
    for (i, j), panel in np.ndenumerate(axes):
        panel.set_title(f"{i}{j}")
    figure.canvas.draw()
    with pyplot.rc_context({"svg.fonttype": "none"}):
        svg = plots.narrow(figure)
    pyplot.close(figure)
    found = re.findall(r'x="([\d.]+)" y="([\d.]+)"[^>]*>([01][0-4])<', svg)
    place = {title: (float(x), float(y)) for x, y, title in found}
    for j in range(5):
        assert place[f"0{j}"][1] == pytest.approx(place[f"1{j}"][1])
        assert place[f"0{j}"][0] < place[f"1{j}"][0]
    downwards = [place[f"0{j}"][1] for j in range(5)]
    assert downwards == sorted(set(downwards))


def test_a_legend_within_panels_stands_once_outside_with_its_markers():
    figure, axes = pyplot.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for panel in axes:
        panel.plot([0, 1], [0, 1], marker="s", label="ours")
        panel.errorbar([0, 1], [1, 0], 0.1, fmt="o", label="theirs")
        panel.legend()
    figure.canvas.draw()
    with pyplot.rc_context({"svg.fonttype": "none"}):
        wide, svg = io.StringIO(), plots.narrow(figure)
        figure.savefig(wide, format="svg")
    visible = [panel.get_legend().get_visible() for panel in axes]
    pyplot.close(figure)
    assert [svg.count(f">{name}<") for name in ("ours", "theirs")] == [1, 1]
    (legend,) = re.findall(r'<g id="legend_\d+">.*?^ {2}</g>', svg, re.DOTALL | re.MULTILINE)
    assert legend.count("<use ") >= 2  # a marker each
    assert visible == [True, True]
    assert wide.getvalue().count(">ours<") == 2


def test_the_book_knows_the_narrow_drawing_by_the_name_that_it_has():
    assert plots.NARROW_MIME == records.NARROW_MIME


def test_what_is_narrow_has_no_second_drawing(axes):
    axes.figure.set_size_inches(4.6, 3)
    assert plots.narrow(axes.figure) is None
