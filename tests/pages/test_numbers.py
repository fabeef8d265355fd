"""Decimal numbers in the prose of a chapter are those that its cells show, or that were given.

Exercises and their solutions, which the reader runs, are left out.
"""

import re
from itertools import chain

import pytest
from pages.builds import ROOT

from bookrunner.build import shown_chapters
from bookrunner.project import Project

CHAPTERS = [path.stem for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
PAPERS = {"P1": range(1, 8), "P2": (8, 9), "P3": (10, 11), "P4": (12, 13, 14), "P5": (15, 16)}
GIVEN = {  # what no output shows, with its place
    "01_one_graph": {"0.02", "0.01"},  # bands of the yardstick
    "05_simulations": {
        "0.69",
        "0.70",
        "0.19",
    },  # asserted in the cell of P1-84; what a curve over it has at least
    "07_matches": {"1.8", "44.7", "12.1"},  # of the paper, and an error of chapter 5
    "13_inference": {"3.3"},  # two rows in closed form
    "14_sports": {"0.6", "0.05", "2.1"},  # a counterexample; what a check grants; of the authors
    "scaling": {"0.7"},  # the history of preflearn.dynamics.engine.acceleration
    "use_judgements": {"2.7"},  # e
}
_NUMBER = re.compile(r"(?<![\w.,/-])\d+\.\d+(?![\w.]*\d)")
_SHOWN = re.compile(r"(?<![\w.])(\d+(?:,\d{3})*)(?:\.(\d+))?(?![\w.]*\d)")
_ERROR = re.compile(r"\$([\d.]+) \\pm ([\d.]+)\$")
_APART = re.compile(  # formulas, exercises, code, places
    r"^(`{3,}|:{3,})\{(?:math|solution|exercise)\}.*?^\1|\$\$.*?\$\$|\$[^$]+\$|`[^`\n]*`"
    r"|\b(?:[Ss]ections?|Lemma) [\d.]+",
    re.MULTILINE | re.DOTALL,
)


def words(text):
    return {word[:6].lower() for word in re.findall(r"[^\W\d_]{4,}", text)}


def roundings(text):
    """The numbers in a text, also in percent and from thousandths, at their decimals or fewer."""
    found = set()
    for whole, decimals in _SHOWN.findall(text):
        value, digits = float(f"{whole.replace(',', '')}.{decimals or 0}"), len(decimals)
        found |= {f"{value:.{k}f}" for k in range(digits + 1)}
        found |= {f"{100 * value:.{k}f}" for k in range(digits - 1)}
        found |= {f"{value / 1000:.3f}"} if digits == 1 else set()
    return found


def unheld(cells, others=()):
    """Numbers in prose that no output of the section has, nor one that shares two words with the sentence.

    The opening of a chapter may have those of all outputs, a row of a table also those of other texts.
    """
    section, shown, said = 0, [(-1, text) for text in others], []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            section += bool(re.search(r"^## ", source, re.MULTILINE))
            said += [
                (section, line)
                for line in re.split(r"\.\s|\n", _APART.sub(" ", _ERROR.sub(r"\1 ± \2", source)))
            ]
        for output in cell.get("outputs", []):
            texts = [text for mime, text in output.get("data", {}).items() if mime.startswith("text/")]
            texts = ["".join(text) for text in [*texts, output.get("text", "")]]
            shown += [(section, re.sub(r"<[^>]*>", " ", text)) for text in texts if len(text) < 100_000]
    known = [(place, words(text), roundings(text)) for place, text in shown]

    def held(place, line):
        row, told = line.startswith("|"), words(line)
        near = (
            some
            for at, about, some in known
            if row or at == place or (at >= 0 and (place == 0 or len(about & told) > 1))
        )
        return {*chain.from_iterable(near)}

    found = [(number, place, line) for place, line in said for number in _NUMBER.findall(line)]
    return [(number, line.strip()) for number, place, line in found if number not in held(place, line)]


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.usefixtures("book")
def test_typed_numbers_are_those_that_are_shown(chapter):
    cells = shown_chapters(Project(ROOT))[chapter].cells
    paper = next((name for name, some in PAPERS.items() if chapter[:2] in [f"{k:02d}" for k in some]), "none")
    tables = [*(ROOT / "data" / "published").glob(f"{paper}_*.csv"), *(ROOT / "benchmarks").glob("*.md")]
    rows = chain.from_iterable(path.read_text("utf-8").splitlines() for path in tables)
    found = [(number, text) for number, text in unheld(cells, rows) if number not in GIVEN.get(chapter, ())]
    assert found == []


def test_a_number_that_nothing_shows_is_found():
    table = {"text/html": ["<td>0.8713</td><td>12.54 ± 0.21</td>"], "image/svg+xml": "<svg>0.55</svg>"}
    prose = "It is 0.87, or 87.1 percent, and $12.5 \\pm 0.2$; not 0.88 ($0.99$, `0.98`, section 3.1)."
    end = "Again 0.87. Neighbours have the margin 0.31. Nobody has 0.31.\n| 0.553 | 0.87 | 0.33 |"
    texts = ["# T\n\nIt is 0.314, not 0.32.", f"## A\n\n{prose}", f"## B\n\n{end}", "## C"]
    outputs = [[], [{"data": table}], [], [{"text": "margin of neighbours: 0.314"}]]
    cells = []
    for text, shown in zip(texts, outputs, strict=True):
        cells.append({"cell_type": "markdown", "source": text})
        cells.append({"cell_type": "code", "source": "", "outputs": shown})
    assert [number for number, _ in unheld(cells, ["0.553"])] == ["0.32", "0.88", "0.87", "0.31", "0.33"]
