"""The tools that report sizes and numbers in prose, and the tool that archives executed
notebooks."""

import json

import pytest
from chapter_size import chapter_size, count_words
from executed_notebooks import readable_notebook
from prose_numbers import unsupported_numbers
from site_address import site_address
from tokens import count_tokens

from preflearn_book.runner.outputs import INJECTED_TAG, PROVENANCE_TAG, Executed
from preflearn_book.runner.project import Project
from preflearn_book.runner.records import NARROW_MIME, RECORD_MIME


def test_tokens_do_not_depend_on_layout_comments_and_docstrings():
    plain = "x = f(1, 2)\ny = 3\n"
    spread = '"""Title."""\n# why\nx = f(\n    1,\n    2\n)\n\ny = 3  # because\n'
    assert count_tokens(plain) == count_tokens(spread) == 11


def test_words_of_prose_are_counted_without_formulas():
    text = "# A title\n```{math}\n:label: x\nf = Bw\n```\nIt's $b$, by {ref}`a place <b>`:\n"
    assert count_words(text) == 5  # the words are A, title, It's, by, and the link text


def test_folded_cells_count_in_a_run_only():
    words = {"cell_type": "markdown", "metadata": {}, "source": "Some words"}
    code = {"cell_type": "code", "metadata": {}, "source": "a\nb\n"}
    folded = code | {"metadata": {"tags": ["hide-input"]}}
    size = chapter_size([code, folded, code, words, code])
    assert size.words == 2
    assert size.code_cells == 3
    assert size.code_lines == 6
    assert size.longest_cell == 2
    assert size.longest_run == 3


def test_a_number_that_no_output_shows_is_found():
    table = {
        "text/html": ["<td>0.8713</td><td>12.54 ± 0.21</td>"],
        "image/svg+xml": "<svg>0.55</svg>",
    }
    prose = "It is 0.87, or 87.1 percent, and $12.5 \\pm 0.2$; not 0.88 ($0.99$, `0.98`, section 3.1)."
    end = "Again 0.87. Neighbours have the margin 0.31. Nobody has 0.31.\n| 0.553 | 0.87 | 0.33 |"
    texts = [
        "# T\n\nIt is 0.314, not 0.32.",
        f"## A\n\n{prose}",
        f"## B\n\n{end}",
        "## C",
    ]
    outputs = [[], [{"data": table}], [], [{"text": "margin of neighbours: 0.314"}]]
    cells = []
    for text, shown in zip(texts, outputs, strict=True):
        cells.append({"cell_type": "markdown", "source": text})
        cells.append({"cell_type": "code", "source": "", "outputs": shown})
    found = unsupported_numbers(cells, ["0.553"])
    assert [number for number, _ in found] == ["0.32", "0.88", "0.87", "0.31", "0.33"]


def test_executed_notebooks_keep_outputs_and_lose_what_only_the_build_reads():
    drawing = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"image/svg+xml": "<svg/>", NARROW_MIME: ""},
    }
    table = {
        "output_type": "display_data",
        "metadata": {},
        "data": {RECORD_MIME: {"name": "x"}},
    }
    stream = {"output_type": "stream", "name": "stdout", "text": "1\n"}

    def code(tags, *outputs):
        return {
            "cell_type": "code",
            "metadata": {"tags": tags, "papermill": {}},
            "outputs": list(outputs),
        }

    words = {
        "cell_type": "markdown",
        "metadata": {"tags": ["appendix"]},
        "source": "# A title",
    }
    cells = [
        words,
        code([INJECTED_TAG]),
        code([], drawing, table, stream),
        code([PROVENANCE_TAG], table),
    ]
    metadata = {
        "kernelspec": {"name": "python3"},
        "language_info": {},
        "papermill": {},
        "preflearn": {},
    }
    notebook = readable_notebook(Executed({"cells": cells, "metadata": metadata}))
    assert [cell["cell_type"] for cell in notebook["cells"]] == ["markdown", "code"]
    assert notebook["cells"][0] == words
    (svg, text) = notebook["cells"][1]["outputs"]
    assert svg["data"] == {"image/svg+xml": "<svg/>"}
    assert text == stream
    assert "papermill" not in json.dumps(notebook)
    assert cells[2]["outputs"][0]["data"][NARROW_MIME] == "", (
        "the executed notebook itself stays as it is"
    )


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://github.com/Owner/name", "https://owner.github.io/name/"),
        ("https://example.org/name", "https://example.org/name"),
    ],
)
def test_a_site_needs_the_address_of_the_repository(tmp_path, url, address):
    config = tmp_path / "_config.yml"
    config.write_text('repository: {url: "", branch: main}\n')
    with pytest.raises(SystemExit, match=r"repository\.url"):
        site_address(Project(tmp_path))
    config.write_text(f'repository: {{url: "{url}", branch: main}}\n')
    assert site_address(Project(tmp_path)) == address
