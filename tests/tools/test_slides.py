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

A second paragraph that leads nowhere.

:::{prf:theorem} Symmetry
:label: thm-symmetry
By {eq}`eq-z`, $-z$ belongs to the flipped match.
:::

:::{prf:proof}
HIDDEN proof.
:::

{numref}`fig-z` shows it."""

EXERCISES = """\
## Conclusions and exercises

- By {prf:ref}`thm-symmetry` order does not matter.

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
            text("The next table is for {numref}`fig-z`:"),
            code("HIDDEN", {"text/html": table}),
            text(EXERCISES),
            text("## Further reading\n\nHIDDEN"),
            text("## HIDDEN appendix\n\nHIDDEN", "appendix"),
        ),
        WORKS,
    )


def test_each_section_is_a_column_of_slides(notebook):
    kinds = [cell.metadata.slideshow.slide_type for cell in notebook.cells]
    columns = "".join("|" if kind == "slide" else "-" for kind in kinds)
    assert columns == "|-" + "|---" + "|"
    first, minute, section, theorem, figure, table, end = (
        cell.source for cell in notebook.cells
    )
    assert first == "# Who wins?\n\nA *match* has two players (Minka, 2001)."
    assert minute == "## In one minute\n\nThe better one."
    assert section == (
        "## One match\n\nThe score difference is z:\n\n$$z = f_1 - f_2 . \\tag{1}$$"
    )
    assert "**Theorem: Symmetry.**\n\nBy (1), $-z$ belongs" in theorem
    assert 'alt="A line &quot;z&quot;"' in figure
    assert figure.endswith("Figure 1. The line $z$.")
    assert table.startswith("The next table is for Figure 1:")
    assert "0.125" in table
    assert end.endswith("- By the theorem *Symmetry* order does not matter.")


def test_slides_are_one_page_without_code_and_hidden_parts(notebook):
    optional_import("nbconvert")
    page = to_html(notebook, "node_modules")
    assert "HIDDEN" not in page
    # seven slides, and three columns that contain them
    assert page.count("<section") == 7 + 3
    assert "data:image/svg+xml;base64," in page
    assert "node_modules/reveal.js/dist/reveal.js" in page
    assert not re.search(r'(?:src|href)="https?://', page)


@pytest.mark.parametrize("name", ["01_one_graph", "04_svmcompare", "13_inference"])
def test_the_slides_of_a_chapter_contain_no_markup_of_the_book(name):
    source = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
    source["metadata"]["preflearn"]["run"] = {"chapter": name}
    works = cited_works(ROOT / "book" / "references.bib")
    slides = [cell.source for cell in slides_of(Executed(source), works).cells]
    assert len(slides) > 10
    everything = "\n".join(slides)
    assert not re.search(
        r"\{[\w:-]+\}`|^[`:]{3,}\{|^\(\S+\)=", everything, re.MULTILINE
    )
    assert "solution} " not in everything
