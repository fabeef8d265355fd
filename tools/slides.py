"""Make slides of executed chapters for reveal.js, in _build/slides.

    python tools/slides.py [CHAPTER]...     by default chapters 01, 04 and 13

`make slides` builds the book first. Each section of the main page becomes a column of
slides: its heading and first paragraph, then its theorems, equations, figures, and
tables, and the paragraphs that introduce symbols or lead to an equation. Code, exercises,
and the appendix are left out, and so are proofs, which are for the blackboard.

The slides load reveal.js, MathJax, RequireJS, and jQuery from the internet. To show them
without internet, install these with npm next to the slides, and name the folder:

    npm install --prefix _build/slides \\
        reveal.js@4.0.2 mathjax@2.7.7 requirejs@2 jquery@3
    python tools/slides.py --assets node_modules
"""

from __future__ import annotations

import argparse
import html
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import nbformat
from built import executed_chapters
from pybtex.database import parse_file

from preflearn_book.runner.claims import CLAIM_MIME
from preflearn_book.runner.outputs import Executed
from preflearn_book.runner.pages import static_figure
from preflearn_book.runner.project import Project
from preflearn_book.runner.tables import tidy_table

ROOT = Path(__file__).parents[1]
CHAPTERS = ("01", "04", "13")
SVG = "image/svg+xml"

DIRECTIVE = re.compile(r"([`:]{3,})\{([\w:-]+)\}\s*(.*)")
OPTION = re.compile(r":([\w-]+):\s*(.*)")
ROLE = re.compile(r"\{([\w:]+)\}`([^`]+)`")
HEADING = re.compile(r"(#+) (.*)")
TARGET = re.compile(r"\(\S+\)=$")
ALT = re.compile(r'<img[^>]* alt="([^"]*)"')  # of the static figure of an explorer
STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
# A paragraph that introduces symbols.
INTRODUCES = re.compile(r"\b(?:[Ll]et|[Ww]here|[Dd]enotes?|Here|[Ww]rite)\b[^$]*\$")
# A paragraph that belongs to the equation or the paragraph before it.
CONTINUES = re.compile(r"[a-z]|(?:Hence|Here|So|Then|Therefore|Thus)\b")
# A reference in parentheses to the background page, which slides do not need.
BACKGROUND = re.compile(r"\s*\((?:see )?\{ref\}`(?:[^`<]*<)?primer-[\w-]+>?`\)")
LABEL = re.compile(r"^:label: (\S+)", re.MULTILINE)
SECTION = re.compile(r"^\((\S+)\)=\n+#+ (.*)", re.MULTILINE)
EXERCISE = re.compile(r"\{exercise\} (.*)\n:label: (\S+)")
THEOREMS = ("definition", "theorem", "proposition", "lemma", "corollary")

# No slide has a diagram of Mermaid, which the template would load from the internet.
NO_MERMAID = "data:text/javascript,export default {initialize() {}}"
CSS = """\
<style>
.reveal section { text-align: left; }
.reveal h1 { font-size: 44px; }
.reveal h2, .reveal h3 { font-size: 34px; }
.reveal p, .reveal li { font-size: 24px; line-height: 1.35; }
.reveal table { font-size: 18px; }
.reveal figure { margin: 0; text-align: center; }
.reveal figure img { max-height: 500px; min-width: 60%; margin: 0; }
.reveal figcaption { font-size: 20px; }
</style>"""


@dataclass
class Block:
    """A heading, a paragraph, or a directive of Markdown."""

    kind: str
    text: str
    title: str = ""
    options: dict[str, str] = field(default_factory=dict)


def blocks(source: str) -> Iterator[Block]:
    """Split the source of a Markdown cell into blocks."""
    lines = iter(source.splitlines())
    paragraph: list[str] = []
    for line in lines:
        directive = DIRECTIVE.match(line)
        heading = HEADING.match(line)
        is_math = line.startswith("$$")
        if paragraph and (directive or heading or is_math or not line.strip()):
            yield Block("paragraph", "\n".join(paragraph))
            paragraph = []
        if directive:
            yield _directive(directive, lines)
        elif is_math:
            yield _dollars(line, lines)
        elif heading:
            yield Block(heading[1], heading[2])
        elif line.strip() and not TARGET.match(line):
            paragraph.append(line)
    if paragraph:
        yield Block("paragraph", "\n".join(paragraph))


def _directive(begin: re.Match[str], lines: Iterator[str]) -> Block:
    """Read a directive up to its closing fence."""
    options: dict[str, str] = {}
    body: list[str] = []
    for line in lines:
        if line.strip() == begin[1]:
            break
        option = OPTION.match(line)
        if option and not body:
            options[option[1]] = option[2]
        else:
            body.append(line)
    return Block(begin[2], "\n".join(body).strip(), begin[3], options)


def _dollars(begin: str, lines: Iterator[str]) -> Block:
    """Read an equation between double dollars, without its label."""
    text = begin[2:]
    for line in lines if "$$" not in text else ():
        text += f"\n{line}"
        if "$$" in line:
            break
    return Block("math", text.partition("$$")[0].strip())


@dataclass
class Names:
    """What the roles of a chapter refer to, by label, and works by citation key."""

    figures: dict[str, str]
    equations: dict[str, str]
    theorems: dict[str, str]
    works: Mapping[str, tuple[str, str]]
    # Titles of sections and exercises, and the numbers of the chapters of all labels.
    titles: Mapping[str, str]
    chapters: Mapping[str, int]

    def plain(self, text: str) -> str:
        """Replace roles of MyST, which only the book understands, by their text."""
        text = BACKGROUND.sub("", text)
        text = re.sub(r"\b[Ee]quations? (\{eq\})", r"\1", text)
        text = re.sub(r"(\{eq\}`[^`]+`) (?:in|of) \{doc\}`[^`]+`", r"\1", text)
        text = re.sub(r"\b([Tt])he next cell\b", r"\1he notebook", text)
        text = text.replace("The next cells", "Cells of the notebook")
        text = text.replace("the next cells", "cells of the notebook")
        return ROLE.sub(self._role, text)

    def _elsewhere(self, kind: str, label: str) -> str:
        """What a reference to another chapter says."""
        chapter = self.chapters.get(label)
        return f"{kind} of chapter {chapter}" if chapter else kind

    def _role(self, match: re.Match[str]) -> str:
        role, content = match[1], match[2]
        if role.startswith("cite"):
            found = [
                self.works.get(key.strip(), (key, "")) for key in content.split(",")
            ]
            if role == "cite:t":
                return ", ".join(f"{author} ({year})" for author, year in found)
            return "(" + "; ".join(f"{author}, {year}" for author, year in found) + ")"
        link, _, target = content.partition(" <")
        if target:
            return link
        if role == "numref":
            return self.figures.get(content) or self._elsewhere("a figure", content)
        if role == "eq":
            found = self.equations.get(content)
            return found or self._elsewhere("an equation", content)
        if role == "prf:ref":
            return self.theorems.get(content) or self._elsewhere("a result", content)
        if role == "term":
            return content
        if role.startswith("py:"):
            return f"`{content.lstrip('~').rpartition('.')[2]}`"
        if content.startswith("primer"):
            return "the background page"
        if title := self.titles.get(content):
            kind = "exercise" if content.startswith("ex-") else "section"
            return f"the {kind} *{title}*"
        name = content.rpartition("/")[2]
        if chapter := re.match(r"(\d+)_", name):
            return f"chapter {int(chapter[1])}"
        return name.rpartition("-")[2].replace("_", " ")


@cache
def labels_of(notebooks: Path) -> tuple[dict[str, str], dict[str, int]]:
    """Titles of sections and exercises of all chapters, and the numbers of the chapters,
    by label."""
    titles: dict[str, str] = {}
    chapters: dict[str, int] = {}
    for path in sorted(notebooks.glob("[0-9][0-9]_*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            figure = cell.metadata.get("mystnb", {}).get("figure", {})
            labels = [figure["name"]] if "name" in figure else []
            labels += LABEL.findall(cell.source)
            exercises = [
                (label, title) for title, label in EXERCISE.findall(cell.source)
            ]
            for label, title in SECTION.findall(cell.source) + exercises:
                titles[label] = title
                labels.append(label)
            chapters |= dict.fromkeys(labels, int(path.stem[:2]))
    return titles, chapters


def names_of(cells: list[dict], works: Mapping[str, tuple[str, str]]) -> Names:
    """Number the figures and equations of a chapter, and name its theorems."""
    figures: dict[str, str] = {}
    equations: dict[str, str] = {}
    theorems: dict[str, str] = {}
    for cell in cells:
        about = cell["metadata"].get("mystnb", {}).get("figure", {})
        if "name" in about:
            figures[about["name"]] = f"Figure {len(figures) + 1}"
        if cell["cell_type"] != "markdown":
            continue
        for block in blocks("".join(cell["source"])):
            label = block.options.get("label", "")
            if block.kind == "math" and label:
                equations[label] = f"({len(equations) + 1})"
            if block.kind.removeprefix("prf:") in THEOREMS:
                theorems[label] = f"the {block.kind[4:]} *{block.title}*"
    return Names(figures, equations, theorems, works, *labels_of(ROOT / "notebooks"))


class Deck:
    """Slides in columns; each slide is a list of Markdown texts."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.columns: list[list[list[str]]] = []
        # Paragraphs that the next slide shows: the last one, and those before it that
        # introduce symbols.
        self.leads: list[str] = []
        # Whether the next paragraph completes a heading.
        self.wants_lead = False
        # Whether an equation may join the last slide: it shows what leads to it.
        self.is_open = False
        # Whether the last element of the last slide is an equation.
        self.ends_with_equation = False

    def begin(self, heading: str, is_column: bool) -> None:
        """Begin a slide with a heading, which the next paragraph completes."""
        self.finish()
        slide = [self.names.plain(heading)]
        if is_column or not self.columns:
            self.columns.append([slide])
        else:
            self.columns[-1].append(slide)
        self.wants_lead = True
        self.is_open = True
        self.ends_with_equation = False

    def finish(self) -> None:
        """Add a slide with the paragraphs that introduce symbols and wait for a slide."""
        # A last sentence with a colon announces an output that no slide shows.
        complete = [re.sub(r"(?:^|(?<=\.) +)[^.]*:$", "", lead) for lead in self.leads]
        symbols = [lead for lead in complete if INTRODUCES.search(lead)]
        if symbols:
            self.columns[-1].append(symbols)
        self.leads = []

    def add_paragraph(self, text: str) -> None:
        text = self.names.plain(text)
        continues = CONTINUES.match(text)
        if self.wants_lead or (self.ends_with_equation and continues):
            self.columns[-1][-1].append(text)
            self.is_open = True
        else:
            if not continues:
                self.leads = [lead for lead in self.leads if INTRODUCES.search(lead)]
            self.leads.append(text)
            self.is_open = False
        self.wants_lead = False
        self.ends_with_equation = False

    def add(self, text: str, *, with_lead: bool = True, joins: bool = False) -> None:
        """Add an element: to the slide of its paragraph, or to a new slide."""
        self.ends_with_equation = joins
        if joins and self.is_open:
            self.columns[-1][-1].append(text)
            return
        symbols = [lead for lead in self.leads if INTRODUCES.search(lead)]
        self.columns[-1].append([*self.leads, text] if with_lead else [text])
        self.leads = [] if with_lead else symbols
        self.is_open = joins

    def add_block(self, block: Block) -> bool:
        """Add a block of Markdown; False at the first exercise of a section."""
        if block.kind == "exercise":
            return False
        if set(block.kind) == {"#"}:
            self.begin(f"{block.kind} {block.text}", is_column=len(block.kind) < 3)
        elif block.kind == "paragraph":
            self.add_paragraph(block.text)
        elif block.kind == "math":
            label = block.options.get("label", "")
            number = self.names.equations.get(label, "")
            tag = f" \\tag{{{number[1:-1]}}}" if number else ""
            self.add(f"$${block.text}{tag}$$", joins=True)
        elif block.kind == "admonition":
            self.add(
                self.names.plain(f"## {block.title}\n\n{block.text}"), with_lead=False
            )
        elif block.kind.removeprefix("prf:") in THEOREMS:
            head = f"**{block.kind[4:].capitalize()}: {block.title}.**"
            self.add(self.names.plain(f"{head}\n\n{_inner_math(block.text)}"))
        return True

    def add_output(self, cell: dict, output: dict) -> None:
        """Add a figure or a table; other outputs are left out."""
        data = output.get("data", {})
        about = cell["metadata"].get("mystnb", {})
        text = "".join(data.get("text/html", ""))
        svg = "".join(data.get(SVG, "")) or static_figure(text)
        if CLAIM_MIME in data:
            return
        if svg:
            alt = ALT.search(text)
            self.add(
                self._figure(svg, about, html.unescape(alt[1]) if alt else ""),
                with_lead=False,
            )
        elif 'class="dataframe"' in text:
            table = STYLE.sub("", tidy_table(text))
            self.add(re.sub(r"\n\s*", "\n", table).strip())

    def _figure(self, svg: str, about: dict, alt: str) -> str:
        figure = about.get("figure", {})
        alt = html.escape(about.get("image", {}).get("alt", "") or alt)
        # The first sentence of a caption says what to see.
        caption, _, _ = self.names.plain(figure.get("caption", "")).partition(". ")
        number = self.names.figures.get(figure.get("name", ""), "")
        source = f"data:{SVG};base64,{b64encode(svg.encode()).decode()}"
        image = f'<figure><img src="{source}" alt="{alt}"></figure>'
        return f"{image}\n\n{number}. {caption.rstrip('.')}." if caption else image


def _inner_math(text: str) -> str:
    """Equations in a box, as Markdown."""
    fence = r"^([`:]{3,})\{math\}\n(?::label:.*\n)?(.*?)\n\1$"
    return re.sub(
        fence, lambda m: f"$${m[2].strip()}$$", text, flags=re.DOTALL | re.MULTILINE
    )


def slides_of(
    executed: Executed, works: Mapping[str, tuple[str, str]]
) -> nbformat.NotebookNode:
    """Choose what the slides of a chapter show; a notebook with one cell per slide."""
    cells = [
        cell
        for cell in executed.parts[executed.run["chapter"]]
        if "remove-cell" not in cell["metadata"].get("tags", [])
    ]
    deck = Deck(names_of(executed.cells, works))
    is_left_out = False
    for cell in cells:
        if cell["cell_type"] != "markdown":
            for output in cell.get("outputs", []):
                if not is_left_out:
                    deck.add_output(cell, output)
            continue
        for block in blocks("".join(cell["source"])):
            if block.kind == "##":
                is_left_out = block.text in ("Exercises", "Further reading")
            elif block.kind == "###" and block.text == "Exercises":
                is_left_out = True
            if not is_left_out:
                is_left_out = not deck.add_block(block)
    new = nbformat.v4
    deck.finish()
    notebook = new.new_notebook(metadata={"title": deck.columns[0][0][0].lstrip("# ")})
    for column in deck.columns:
        # A section that has exercises only, under another name.
        if column == [column[0][:1]]:
            continue
        for number, slide in enumerate(column):
            kind = "subslide" if number else "slide"
            cell = new.new_markdown_cell(
                "\n\n".join(slide), metadata={"slideshow": {"slide_type": kind}}
            )
            notebook.cells.append(cell)
    return notebook


def to_html(notebook: nbformat.NotebookNode, assets: str = "") -> str:
    """Convert the notebook of slides by nbconvert.

    Parameters
    ----------
    notebook : NotebookNode
    assets : str
        Folder or URL with reveal.js, mathjax, requirejs, and jquery, in the layout of
        npm; by default the addresses of nbconvert.
    """
    from nbconvert import SlidesExporter  # late: it is in the extra [lab]

    exporter = SlidesExporter(
        exclude_input_prompt=True,
        mermaid_js_url=NO_MERMAID,
        reveal_scroll=True,
        reveal_number="c/t",
        reveal_transition="none",
    )
    if assets:
        base = assets.rstrip("/")
        config = "TeX-AMS_CHTML-full,Safe"
        exporter.reveal_url_prefix = f"{base}/reveal.js"
        exporter.mathjax_url = f"{base}/mathjax/MathJax.js?config={config}"
        exporter.require_js_url = f"{base}/requirejs/require.js"
        exporter.jquery_url = f"{base}/jquery/dist/jquery.min.js"
    text, _ = exporter.from_notebook_node(notebook)
    return text.replace("</head>", f"{CSS}\n</head>", 1)


def cited_works(path: Path) -> dict[str, tuple[str, str]]:
    """Authors and year of each entry of a bibliography."""
    works = {}
    for key, entry in parse_file(path).entries.items():
        people = [
            " ".join(str(name) for name in person.rich_last_names)
            for person in entry.persons.get("author", [])
        ]
        authors = " and ".join(people) if len(people) < 3 else f"{people[0]} et al."
        works[key] = (authors, entry.fields.get("year", ""))
    return works


def main() -> None:
    parser = argparse.ArgumentParser(description="Make slides of executed chapters.")
    parser.add_argument("chapters", nargs="*", default=CHAPTERS, metavar="CHAPTER")
    parser.add_argument(
        "--assets",
        default="",
        help="folder or URL with reveal.js and MathJax as npm installs them, for slides without internet",
    )
    options = parser.parse_args()
    project = Project(ROOT)
    executed = executed_chapters(project)
    works = cited_works(project.book / "references.bib")
    folder = project.build / "slides"
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.chapters:
        chapter = project.chapter(name).name
        path = folder / f"{chapter}.html"
        notebook = slides_of(executed[chapter], works)
        path.write_text(to_html(notebook, options.assets), "utf-8")
        print(f"{len(notebook.cells)} slides: {path}")


if __name__ == "__main__":
    main()
