"""Slides show headings, first paragraphs, theorems, equations, figures, and tables."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from optional import optional_import
from slides import cited_works, slides_of, to_html

from preflearn_book.runner.outputs import Executed

ROOT = Path(__file__).parents[2]
WORKS = {"Minka2001": ("Minka", "2001")}

OPENING = """\
# Who wins?

A *match* has two players {cite}`Minka2001`.

```{admonition} In one minute
:class: tip
The better one.
```"""

SECTION = """\
(sec-one)=
## One match

The score difference is {term}`z <score>`:

```{math}
:label: eq-z
z = f_1 - f_2 .
```

with $f_1$ and $f_2$ from {ref}`the appendix <sec-graph-symmetry>`
({ref}`primer-kernel`).

A second paragraph that leads nowhere.

Let $B$ be a matrix.

:::{prf:theorem} Symmetry
:label: thm-symmetry
By {eq}`eq-z`, $-z$ belongs to the flipped match.
:::

:::{prf:proof}
HIDDEN proof.
:::

{numref}`fig-z` shows it."""

EXERCISES = """\
## Conclusions

- By {prf:ref}`thm-symmetry` order does not matter ({ref}`ex-weights`), as in {eq}`eq-v-rank2`.

## Exercises

```{exercise}
:label: ex-one
HIDDEN exercise
```

```{solution} ex-one
HIDDEN solution
```"""

FIGURE = {
    "figure": {"name": "fig-z", "caption": "The line $z$. HIDDEN details."},
    "image": {"alt": 'A line "z"'},
}


def text(source, *tags):
    return {"cell_type": "markdown", "metadata": {"tags": [*tags]}, "source": source}


def code(source, data, **metadata):
    output = {"output_type": "display_data", "metadata": {}, "data": data}
    return {
        "cell_type": "code",
        "metadata": metadata,
        "source": source,
        "outputs": [output],
    }


def executed_of(*cells):
    run = {"chapter": "01_x"}
    return Executed({"cells": [*cells], "metadata": {"preflearn": {"run": run}}})


@pytest.fixture(scope="module")
def notebook():
    table = pd.DataFrame({"column": [0.125]})._repr_html_()
    return slides_of(
        executed_of(
            text(OPENING),
            code("HIDDEN = 1", {"text/plain": "HIDDEN"}),
            text(SECTION),
            code("HIDDEN", {"image/svg+xml": "<svg/>"}, mystnb=FIGURE),
            text("The next cell prints a table for {numref}`fig-z`:"),
            code("HIDDEN", {"text/html": table}),
            text("Then\n\n$$\nx = 1\n$$\n\nHence $x > 0$."),
            text("Let $n = 3$. With $n = 4$:"),
            text(EXERCISES),
            text("## Further reading\n\nHIDDEN"),
            text("## HIDDEN appendix\n\nHIDDEN", "appendix"),
        ),
        WORKS,
    )


def test_each_section_is_a_column_of_slides(notebook):
    kinds = [cell.metadata.slideshow.slide_type for cell in notebook.cells]
    columns = "".join("|" if kind == "slide" else "-" for kind in kinds)
    assert columns == "|-" + "|-----" + "|"
    first, minute, section, theorem, figure, table, dollars, symbols, end = (
        cell.source for cell in notebook.cells
    )
    assert first == "# Who wins?\n\nA *match* has two players (Minka, 2001)."
    assert minute == "## In one minute\n\nThe better one."
    assert section == (
        "## One match\n\nThe score difference is z:\n\n$$z = f_1 - f_2 . \\tag{1}$$"
        "\n\nwith $f_1$ and $f_2$ from the appendix."
    )
    assert theorem.startswith("Let $B$ be a matrix.\n\n**Theorem: Symmetry.**")
    assert "\n\nBy (1), $-z$ belongs" in theorem
    assert 'alt="A line &quot;z&quot;"' in figure
    assert figure.endswith("Figure 1. The line $z$.")
    assert table.startswith("The notebook prints a table for Figure 1:")
    assert "0.125" in table
    assert dollars == "Then\n\n$$x = 1$$\n\nHence $x > 0$."
    assert symbols == "Let $n = 3$."
    assert end.endswith(
        "- By the theorem *Symmetry* order does not matter "
        "(the exercise *Weights of ties*), as in an equation of chapter 4."
    )


def test_slides_are_one_page_without_code_and_hidden_parts(notebook):
    optional_import("nbconvert")
    page = to_html(notebook, "node_modules")
    assert "HIDDEN" not in page
    # nine slides, and three columns that contain them
    assert page.count("<section") == 9 + 3
    assert "data:image/svg+xml;base64," in page
    assert "node_modules/reveal.js/dist/reveal.js" in page
    assert not re.search(r'(?:src|href)="https?://', page)


NAMES = ["01_one_graph", "04_svmcompare", "13_inference"]


def slides_of_source(name):
    """The slides of a chapter without figures and tables."""
    source = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
    source["metadata"]["preflearn"]["run"] = {"chapter": name}
    works = cited_works(ROOT / "book" / "references.bib")
    return [cell.source for cell in slides_of(Executed(source), works).cells]


@pytest.mark.parametrize("name", NAMES)
def test_no_slide_begins_within_a_sentence_or_an_argument(name):
    for slide in slides_of_source(name):
        begin = slide.partition("\n\n")[0]
        assert not re.match(r"[a-z]|(?:Hence|With|Then|Therefore|Thus)\b.*\.$", begin)


def test_the_slides_define_the_symbols_of_their_equations():
    deck = "\n".join(slides_of_source("04_svmcompare")).partition("\\tag{1}")[0]
    assert (
        r"Let $\tilde B$ be the incidence matrix of the $\tilde m$ flipped rows" in deck
    )
    assert r"Let $\phi$ be the feature map of a kernel $\kappa$, and let $K$ be" in deck
    deck = "\n".join(slides_of_source("13_inference"))
    before = deck.partition(r"x_m \delta_1 &= (\hat c_m - c_m)/v_m")[0]
    assert before.count(r"$\delta_1, \delta_2$ be the first two derivatives") == 2
    assert re.search(r"vanish:\n\n\$\$.*?\$\$\n\nHence", deck, re.DOTALL)


@pytest.mark.parametrize("name", NAMES)
def test_the_slides_of_a_chapter_contain_no_markup_of_the_book(name):
    slides = slides_of_source(name)
    assert len(slides) > 10
    everything = "\n".join(slides)
    assert not re.search(
        r"\{[\w:-]+\}`|^[`:]{3,}\{|^\(\S+\)=", everything, re.MULTILINE
    )
    assert "solution} " not in everything
    assert not re.search(r"equation the|\(background\)|next cell|Exercises", everything)
