"""The second, narrow version of a figure is readable on a telephone, and the original
figure does not change."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from optional import optional_import

from preflearn import plots
from preflearn_book.runner import records

matplotlib = optional_import("matplotlib")
PHONE = 352  # width in pixels


@pytest.fixture(autouse=True)
def letters_as_text():
    """Write words in SVG as text, not as outlines."""
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        yield


def subplots(rows, columns, size, **options):
    """Return a figure without a window, and its panels."""
    figure = optional_import("matplotlib.figure").Figure(
        figsize=size, layout="constrained"
    )
    optional_import("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, **options)


@pytest.fixture
def wide():
    """Return a figure with two panels side by side, with a common axis and a legend
    below."""
    figure, (left, right) = subplots(1, 2, (9, 3), sharey=True)
    for k in range(4):
        left.plot([k, 1], label=f"curve {k}")
    right.plot([7, 9])
    left.set(title="one", ylabel="error", xlabel="items")
    right.set(title="two", xlabel="pairs")
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=4
    )
    figure.canvas.draw()
    return figure


def pixels(figure):
    figure.canvas.draw()
    figure.canvas.draw()  # a constrained layout is final after the second drawing
    return np.asarray(figure.canvas.buffer_rgba()).astype(int)


def test_differences_are_drawn_per_label():
    _, axes = subplots(1, 1, (3, 3))
    plots.difference_plane(axes, [[1, 2], [0, 1], [3, 4]], [1, -1, 1])
    drawn = {
        scatter.get_label(): scatter.get_offsets().tolist()
        for scatter in axes.collections
    }
    assert drawn == {"first better": [[1, 2], [3, 4]], "second better": [[0, 1]]}


def test_narrow_panels_are_below_each_other_with_readable_letters(wide):
    svg = plots.narrow(wide)
    drawing = ElementTree.fromstring(svg)
    width, height = map(float, drawing.attrib["viewBox"].split()[2:])
    assert height > width
    texts = list(drawing.iter("{http://www.w3.org/2000/svg}text"))
    sizes = [
        re.search(r"(?:font: |font-size: )([\d.]+)px", text.attrib["style"])[1]
        for text in texts
    ]
    assert min(map(float, sizes)) * PHONE / width >= 9
    words = [text.text for text in texts]
    assert {"one", "two", "curve 0", "curve 3"} <= set(words)
    # the second panel has no neighbor with axis labels, so it shows its own
    assert words.count("error") == 2


def test_the_wide_figure_is_left_as_it_was(wide):
    def state():
        panels = [
            (a.get_subplotspec().num1, a.get_ylabel(), a.yaxis.get_tick_params())
            for a in wide.axes
        ]
        return panels, wide.get_size_inches().tolist(), len(wide.legends)

    before = state()
    drawn = pixels(wide)
    plots.narrow(wide)
    assert state() == before
    assert np.abs(pixels(wide) - drawn).mean() < 0.5


def test_panels_of_a_column_are_in_a_row_where_that_fits():
    figure, axes = subplots(2, 5, (13, 6))
    for (i, j), panel in np.ndenumerate(axes):
        panel.set_title(f"{i}{j}")
        panel.set_axis_off()
    figure.canvas.draw()
    found = re.findall(
        r'x="([\d.]+)" y="([\d.]+)"[^>]*>([01][0-4])<', plots.narrow(figure)
    )
    place = {title: (float(x), float(y)) for x, y, title in found}
    for j in range(5):
        assert place[f"0{j}"][1] == pytest.approx(place[f"1{j}"][1])
        assert place[f"0{j}"][0] < place[f"1{j}"][0]
    heights = [place[f"0{j}"][1] for j in range(5)]
    assert heights == sorted(set(heights))


def test_a_legend_within_panels_moves_outside_once_with_its_markers():
    figure, axes = subplots(1, 2, (7, 3))
    for panel in axes:
        panel.plot([0, 1], [0, 1], marker="s", label="ours")
        panel.errorbar([0, 1], [1, 0], 0.1, fmt="o", label="theirs")
        panel.legend()
    figure.canvas.draw()
    svg = plots.narrow(figure)
    after = io.StringIO()
    figure.savefig(after, format="svg")
    assert [svg.count(f">{name}<") for name in ("ours", "theirs")] == [1, 1]
    (legend,) = re.findall(
        r'<g id="legend_\d+">.*?^ {2}</g>', svg, re.DOTALL | re.MULTILINE
    )
    assert legend.count("<use ") >= 2  # each entry has a marker
    assert after.getvalue().count(">ours<") == 2


def test_a_narrow_figure_has_no_second_drawing():
    figure, _ = subplots(1, 1, (4.6, 3))
    assert plots.narrow(figure) is None
    assert plots.NARROW_MIME == records.NARROW_MIME
