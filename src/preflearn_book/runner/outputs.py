"""Executed notebooks: reading, writing, machine-readable outputs, and pages."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from preflearn.core.source_digest import digest
from preflearn_book.runner.claims import CLAIM_MIME, MARKS
from preflearn_book.runner.decision_rules import SELECTION_MIME
from preflearn_book.runner.files import check_form, write_atomically
from preflearn_book.runner.records import (
    NARROW_MIME,
    PROVENANCE_MIME,
    RECORD_MIME,
    filled,
    for_both_themes,
)
from preflearn_book.runner.tables import tidy_table

INJECTED_TAG = "injected-parameters"
PROVENANCE_TAG = "preflearn-provenance"

DOUBT = "All results that use these numbers must be computed again."
_SVG = "image/svg+xml"
_RUN = ("papermill", "execution")
# A heading of a section, with the labels before it.
_SECTION = re.compile(r"^(?:\(\S+\)=\s*)*## ", re.MULTILINE)
_TITLE = re.compile(r"^##? (.*)", re.MULTILINE)
# A solution of an exercise: a directive of sphinx-exercise, up to its closing fence.
_SOLUTION = re.compile(
    r"^([:`]{3,})\{solution\}.*?^\1[ \t]*$\n*", re.MULTILINE | re.DOTALL
)
# A last sentence that ends in a colon, without the space before it, or a single
# question.
_LEADS = re.compile(r"(?:(?!\. )[^\n#])+(?<!:):\s*\Z|\A(?:(?!\. )[^\n#])+\?\s*\Z")
_OURS = {CLAIM_MIME, RECORD_MIME, SELECTION_MIME, PROVENANCE_MIME}


def write_executed(path: Path, executed: Executed, run: dict[str, Any]) -> Executed:
    """Write an executed notebook with the settings of its run and a digest.

    Raises
    ------
    ValueError
        If a machine-readable output is not valid; see `forms.json`.
    """
    executed.notebook["metadata"].setdefault("preflearn", {})["run"] = run
    executed.check_forms()
    run["digest"] = digest(executed.notebook)
    write_atomically(
        path, json.dumps(executed.notebook, ensure_ascii=False, indent=1) + "\n"
    )
    return executed


def read_executed(path: Path) -> Executed | None:
    """Read an executed notebook; None if the file is missing.

    A file that cannot be read, or that has changed since it was written, is treated as
    missing; a line of output names it.
    """
    if not path.exists():
        return None
    try:
        notebook = json.loads(path.read_text("utf-8"))
        written = notebook["metadata"]["preflearn"]["run"].pop("digest")
        if digest(notebook) != written:
            raise ValueError("its content has changed since it was written")
        executed = Executed(notebook)
        executed.check_forms()
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        why = f"{type(error).__name__}: {str(error)[:200]}"
        print(
            f"preflearn: {path} cannot be read and is treated as missing ({why})",
            file=sys.stderr,
        )
        return None
    return executed


@dataclass(frozen=True)
class Executed:
    """An executed notebook, as parsed JSON."""

    notebook: dict[str, Any]

    @property
    def run(self) -> dict[str, Any]:
        """Settings of the run: chapter, profile, parameters, date (UTC), seconds, inputs."""
        return self.notebook["metadata"]["preflearn"]["run"]

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The chapter's own cells, without the cells that the runner adds."""
        ours = {INJECTED_TAG, PROVENANCE_TAG}
        return [
            cell
            for cell in self.notebook["cells"]
            if not ours & {*cell["metadata"].get("tags", [])}
        ]

    def _payloads(self, mime: str) -> list[dict[str, Any]]:
        """Return the machine-readable outputs of one kind, in order; raise ValueError if
        one is not valid."""
        found = []
        for number, cell in enumerate(self.notebook["cells"], start=1):
            for output in cell.get("outputs", []):
                if mime in output.get("data", {}):
                    found.append(output["data"][mime])
                    check_form(found[-1], mime, f"cell {number}, {mime}")
        return found

    @cached_property
    def checks(self) -> list[dict[str, Any]]:
        """Results of `check`, in order."""
        return self._payloads(CLAIM_MIME)

    @property
    def parts(self) -> dict[str, list[dict[str, Any]]]:
        """The cells of the chapter and of its appendix, by page name; see `parts`."""
        return parts(self.run["chapter"], self.cells)

    @property
    def places(self) -> dict[str, str]:
        """The name of the page that shows a claim, by its id."""
        return {
            check["id"]: name
            for name, cells in self.parts.items()
            for check in Executed({"cells": cells}).checks
        }

    @cached_property
    def selections(self) -> list[dict[str, Any]]:
        """Outputs of `selection`, in order."""
        return self._payloads(SELECTION_MIME)

    @cached_property
    def records(self) -> dict[str, dict[str, Any]]:
        """Payloads of `record`, in order, by names such as "03_lemma_coincidence"."""
        chapter = self.run["chapter"]
        return {
            f"{chapter}_{payload['name']}": payload
            for payload in self._payloads(RECORD_MIME)
        }

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Versions in the kernel, and everything that it read. This is the output of the
        last cell, which the runner adds."""
        outputs = self.notebook["cells"][-1].get("outputs", [])
        bundles = [output["data"] for output in outputs if "data" in output]
        provenance: Any = bundles[0].get(PROVENANCE_MIME) if bundles else None
        check_form(provenance, PROVENANCE_MIME, "the last cell")
        return provenance

    def check_forms(self) -> None:
        """Raise ValueError if the run or a machine-readable output is not valid."""
        check_form(self.run, "run", "the run")
        check_form(self.notebook["cells"], "cells", "the cells")
        _ = self.checks, self.records, self.selections, self.provenance

    @property
    def replaced(self) -> list[str]:
        """Data sets that the chapter asked for and that were not available, so that it used
        other data.

        A data set that the run did not ask for, for example because it shows recorded
        numbers, is not listed.
        """
        asked = (name.partition(" ") for name in self.provenance["read"])
        return [dataset for kind, _, dataset in asked if kind == "dataset"]

    def pages(
        self,
        repository: str = "",
        broken: Collection[str] = (),
        recomputed: Mapping[str, tuple[int, int]] | None = None,
    ) -> dict[str, str]:
        """Return the pages of the notebook in the book, as JSON texts by page name.

        The texts depend only on the content of the notebook.

        - Left out are machine-readable outputs, execution times, the injected parameters
          (a note states them), and the provenance cell.
        - A first cell, visible only in the downloaded notebook, says how to install the
          package, from `repository` if it is known.
        - At the end of each section, one fold contains its claims, and another fold the
          code of cells that are tagged to hide it. If the opening shows no figure, its
          folds appear at the end of the next section.
        - Claims that contradict the claims list keep their place, and so do claims that
          use a record in `broken`, which a quick run contradicts. A warning names these
          records.
        - Sections that are tagged as appendix have a separate page. The two pages link
          to each other.
        - The last sentences of a page say how many of its verdicts this run computed,
          and how many rows of the records that the others use. The row counts are in
          `recomputed`, a return value of `recomputed_rows`.
        """
        metadata = {
            key: value
            for key, value in self.notebook["metadata"].items()
            if key in ("kernelspec", "language_info")
        }
        first = _markdown(
            "installation",
            filled("installation.md", repository=repository),
            "remove-cell",
        )
        chapter = self.run["chapter"]
        shares = self.parts
        pages = {}
        titles = {name: _titles(cells) for name, cells in shares.items()}
        for name, cells in shares.items():
            about = {"chapter": chapter, "is_main": name == chapter, "titles": titles}
            text = filled("appendix.md", **about)
            body = self._page_cells(cells, broken)
            link = _markdown("appendix", text)
            # The appendix begins with a link to its chapter, which ends with one to it.
            body = [*body, link] if name == chapter else [link, *body]
            body.append(_markdown("computed", _computed_here(cells, recomputed or {})))
            page = {
                "cells": [first, *(cell for cell in body if cell["source"])],
                "metadata": metadata,
                "nbformat": 4,
                "nbformat_minor": 5,
            }
            pages[name] = (
                json.dumps(page, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
            )
        return pages

    def _page_cells(
        self, own: list[dict[str, Any]], broken: Collection[str]
    ) -> list[dict[str, Any]]:
        cells = []
        claims = []
        code = []

        def folded(heading: re.Match | None = None) -> str:
            # Do not show the code of an opening, such as its parameters, before the
            # first figure.
            waits = not claims and any(first for _, first in code)
            if heading and waits and not any(cell.get("outputs") for cell in cells):
                return heading[0]
            text = filled("section.md", claims=claims, code=code, marks=MARKS)
            claims.clear()
            code.clear()
            if heading:
                text += heading[0]
            return text

        for cell in own:
            metadata = {k: v for k, v in cell["metadata"].items() if k not in _RUN}
            cells.append(cell | {"metadata": metadata})
            tags = metadata.get("tags", [])
            if cell["cell_type"] != "code":
                cells[-1]["source"] = _SECTION.sub(folded, "".join(cell["source"]))
                continue
            cells[-1]["outputs"] = _visible(cell["outputs"], claims, broken)
            if "hide-input" in tags:
                code.append(("".join(cell["source"]), "parameters" in tags))
                hidden = "remove-input" if cells[-1]["outputs"] else "remove-cell"
                others = [tag for tag in tags if tag != "hide-input"]
                metadata["tags"] = [hidden, *others]
            if "parameters" in tags:
                wrong = sorted(
                    name for name in broken if name.startswith(self.run["chapter"])
                )
                text = filled(
                    "notes.md",
                    repr=repr,
                    given=self.run["parameters"],
                    wrong=wrong,
                    doubt=DOUBT,
                )
                if text:
                    cells.append(_markdown("notes", text))
        if text := folded():
            cells.append(_markdown("last", text))
        return _ended(cells)


def _computed_here(
    cells: list[dict[str, Any]], recomputed: Mapping[str, tuple[int, int]]
) -> str:
    """Write how many verdicts of a page its run computed, and how many rows of the
    records that it uses."""
    checks = Executed({"cells": cells}).checks
    recorded = [check for check in checks if "recorded" in check]
    used = recomputed.keys() & {check.get("record") for check in recorded}
    return filled(
        "computed.md",
        n_verdicts=len(checks),
        n_recorded=len(recorded),
        dates=sorted({check["recorded"] for check in recorded}),
        n_recomputed=sum(recomputed[record][0] for record in used),
        n_rows=sum(recomputed[record][1] for record in used),
    )


def _ended(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Remove each sentence or question that introduces only hidden cells."""
    # The last visible cell, and whether hidden cells followed it.
    before = None
    silent = False
    for cell in [*cells, _markdown("end", "")]:
        if "remove-cell" in cell["metadata"].get("tags", []):
            silent = True
            continue
        if (
            silent
            and before
            and {cell["cell_type"], before["cell_type"]} == {"markdown"}
        ):
            before["source"] = _LEADS.sub("", before["source"])
        before = cell
        silent = False
    return cells


def parts(chapter: str, cells: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the cells of a chapter by page name, in order.

    Sections whose heading cell is tagged `appendix` are on a separate page,
    "NAME_more". A section ends before a cell that begins with the next heading.
    """
    pages = {chapter: []}
    to = chapter
    for cell in cells:
        if cell["cell_type"] == "markdown" and _SECTION.match("".join(cell["source"])):
            to = chapter
            if "appendix" in cell["metadata"].get("tags", []):
                to = f"{chapter}_more"
        pages.setdefault(to, []).append(cell)
    return pages


def without_solutions(notebook: dict[str, Any]) -> dict[str, Any]:
    """A copy of a notebook without the solutions of its exercises."""
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            source = _SOLUTION.sub("", "".join(cell["source"]))
            cell = cell | {"source": source}
        cells.append(cell)
    return notebook | {"cells": cells}


def _titles(cells: list[dict[str, Any]]) -> list[str]:
    """Return the headings of these cells, without subsection headings."""
    prose = (
        "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"
    )
    return _TITLE.findall("\n".join(prose))


def _visible(
    outputs: list[Any], claims: list[tuple[str, str]], broken: Collection[str]
) -> list[Any]:
    """Prepare outputs for a page: remove machine-readable outputs, and move badges to
    `claims` unless an answer is in doubt."""
    visible_outputs = []
    for output in outputs:
        if "data" not in output:
            visible_outputs.append(output)
            continue
        data = output["data"]
        visible = {mime: content for mime, content in data.items() if mime not in _OURS}
        html = "".join(visible.get("text/html", ""))
        if 'class="dataframe"' in html:
            visible["text/html"] = tidy_table(html)
        if _SVG in visible:
            narrow = "".join(visible.pop(NARROW_MIME, ""))
            visible[_SVG] = for_both_themes("".join(visible[_SVG]), narrow)
        claim = data.get(CLAIM_MIME)
        if claim is not None:
            if claim.get("record") in broken:
                mark = f"<p><strong>In doubt.</strong> {DOUBT}</p></details>"
                html = html.replace("<details", "<details open", 1)
                html = html.removesuffix("</details>") + mark
            elif claim["agrees"] and not claim.get("missing"):
                if html:
                    claims.append((claim["written"], html))
                continue
            visible["text/html"] = html
        if visible:
            visible_outputs.append(output | {"data": visible})
    return visible_outputs


def _markdown(name: str, source: str, *tags: str) -> dict[str, Any]:
    return {
        "cell_type": "markdown",
        "id": name,
        "metadata": {"tags": list(tags)},
        "source": source,
    }
