"""Names from a file as labels in text, Markdown, and figures."""

import matplotlib.pyplot as plt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from property_examples import examples

from preflearn_book.reading.labels import (
    code_span,
    escape_markdown,
    plot_labels,
    short_labels,
)

NAMES = [
    "$hort $tack",
    "A$AP $teel",
    "[Seven](https://example.org)",
    "_underscore",
    "x*y_`z",
    "<b>bold</b> & more",
    "~~out~~",
    "a\\b",
]


def text_of(html):
    import html as library

    return library.unescape(html).removeprefix("<p>").removesuffix("</p>\n")


@pytest.mark.parametrize("name", NAMES)
def test_markdown_shows_a_name_as_it_is(name):
    markdown = MarkdownIt("js-default")
    assert text_of(markdown.render("so " + escape_markdown(name))) == f"so {name}"
    code = text_of(markdown.render("so " + code_span(name)))
    assert code == f"so <code>{name}</code>"


def test_figures_draw_names_as_they_are():
    figure, axis = plt.subplots()
    labels = plot_labels(NAMES, 40)
    for label in labels:
        axis.plot([0], [0], label=label)
    axis.set_xticks(range(len(labels)), labels)
    legend = axis.legend()
    figure.canvas.draw()
    for texts in (legend.get_texts(), axis.get_xticklabels()):
        assert len(texts) == len(NAMES)
        for text, name in zip(texts, NAMES, strict=True):
            visible, is_math = text._preprocess_math(text.get_text())
            assert is_math is False
            assert visible.strip("\u200a") == name
    plt.close(figure)


@examples(60)
@given(st.lists(st.text("ab", max_size=40), unique=True), st.integers(6, 20))
def test_short_labels_differ_where_names_do(names, width):
    labels = short_labels(names, width)
    assert len(set(labels)) == len(names)
    for name, label in zip(names, labels, strict=True):
        if len(name) <= width:
            assert label == name
