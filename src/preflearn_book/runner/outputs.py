"""An executed notebook on disk: whole or missing, and what it holds for readers and for
the book."""

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

DOUBT = "What rests on these numbers has to be computed again."
_SVG = "image/svg+xml"
_RUN = ("papermill", "execution")
# A heading of a section, with the labels before it.
_SECTION = re.compile(r"^(?:\(\S+\)=\s*)*## ", re.MULTILINE)
_TITLE = re.compile(r"^##? (.*)", re.MULTILINE)
# A last sentence that ends in a colon, without the space before it, or a question
# without another sentence.
_LEADS = re.compile(r"(?:(?!\. )[^\n#])+(?<!:):\s*\Z|\A(?:(?!\. )[^\n#])+\?\s*\Z")
_OURS = {CLAIM_MIME, RECORD_MIME, SELECTION_MIME, PROVENANCE_MIME}


def write_executed(path: Path, executed: Executed, run: dict[str, Any]) -> Executed:
    """Write an executed notebook, with what it was run with and a digest of all of it.

    Raises
    ------
    ValueError
        If an output that is to be read by us has another form than ours have.
    """
    executed.notebook["metadata"].setdefault("preflearn", {})["run"] = run
    executed.check_forms()
    run["digest"] = digest(executed.notebook)
    write_atomically(
        path, json.dumps(executed.notebook, ensure_ascii=False, indent=1) + "\n"
    )
    return executed


def read_executed(path: Path) -> Executed | None:
    """The executed notebook in a file; None if there is none.

    One that can't be read, or is not what was written, counts as missing too; a line
    says which.
    """
    if not path.exists():
        return None
    try:
        notebook = json.loads(path.read_text("utf-8"))
        written = notebook["metadata"]["preflearn"]["run"].pop("digest")
        if digest(notebook) != written:
            raise ValueError("its content is not what was written")
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
            f"preflearn: {path} can't be read and counts as missing ({why})",
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
        """What it was run with: chapter, profile, parameters, date (UTC), seconds, and
        its inputs."""
        return self.notebook["metadata"]["preflearn"]["run"]

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The chapter's own cells, without those that the machinery adds."""
        ours = {INJECTED_TAG, PROVENANCE_TAG}
        return [
            cell
            for cell in self.notebook["cells"]
            if not ours & {*cell["metadata"].get("tags", [])}
        ]

    def _payloads(self, mime: str) -> list[dict[str, Any]]:
        """Our machine-readable outputs of one kind, in order; ValueError where one has
        another form."""
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
        """The chapter's own cells by the name of their page; see `parts`."""
        return parts(self.run["chapter"], self.cells)

    @property
    def places(self) -> dict[str, str]:
        """The name of the page that shows a claim, by its id."""
        shown = (
            (name, Executed({"cells": cells}).checks)
            for name, cells in self.parts.items()
        )
        return {check["id"]: name for name, checks in shown for check in checks}

    @cached_property
    def selections(self) -> list[dict[str, Any]]:
        """What `selection` noted, in order."""
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
        """Versions in the kernel, and what it read; as its last cell says, which the
        runner adds."""
        outputs = self.notebook["cells"][-1].get("outputs", [])
        found: Any = next(
            (output["data"] for output in outputs if "data" in output), {}
        ).get(PROVENANCE_MIME)
        check_form(found, PROVENANCE_MIME, "the last cell")
        return found

    def check_forms(self) -> None:
        """Raise ValueError where the run, or one of our outputs, has not the form in
        which it is read."""
        check_form(self.run, "run", "the run")
        check_form(self.notebook["cells"], "cells", "the cells")
        _ = self.checks, self.records, self.selections, self.provenance

    @property
    def replaced(self) -> list[str]:
        """Data sets that the chapter asked for and did not get, so that others took
        their place.

        One that it never asked for, as in a profile that shows recorded numbers, is not
        among them.
        """
        asked = (name.partition(" ") for name in self.provenance["read"])
        return [dataset for kind, _, dataset in asked if kind == "dataset"]

    def pages(
        self,
        repository: str = "",
        broken: Collection[str] = (),
        recomputed: Mapping[str, tuple[int, int]] | None = None,
    ) -> dict[str, str]:
        """The notebook as the book shows it, as JSON texts that depend on its content
        alone, by their names.

        The machinery is left out: our machine-readable outputs, times of execution, the
        injected parameters (a note states them) and the cell for the provenance. A
        first cell, which only those see who download the notebook, says how to install
        the package, from `repository` where that is known. At the end of each section
        stand its claims in one fold, and in another the code of cells that are tagged
        to hide it; that of an opening without a picture waits for the end of the next
        section. Claims that contradict the claims list stay where they are, and so do
        claims that rest on a record among `broken`, which a quick run contradicts; a
        warning names these records. What is tagged as an appendix has a page of its
        own, and each of the two leads to the other. The last sentences of a page state
        how many of its verdicts this run computed, and how many rows of the records
        that the others use; `recomputed` has the latter, as `recomputed_rows` returns
        them.
        """
        kept = ("kernelspec", "language_info")
        metadata = {
            key: value
            for key, value in self.notebook["metadata"].items()
            if key in kept
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
            shown = self._page_cells(cells, broken)
            shown.insert(
                len(shown) if name == chapter else 0, _markdown("appendix", text)
            )
            shown.append(_markdown("computed", _computed_here(cells, recomputed or {})))
            shown = [cell for cell in shown if cell["source"]]
            page = {
                "cells": [first, *shown],
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
            # What an opening without a picture needs, its parameters first, is not to
            # stand before one.
            waits = not claims and any(first for _, first in code)
            if heading and waits and not any(cell.get("outputs") for cell in cells):
                return heading[0]
            text = filled("section.md", claims=claims, code=code, marks=MARKS)
            claims.clear()
            code.clear()
            return text + (heading[0] if heading else "")

        for cell in own:
            cells.append(
                cell
                | {
                    "metadata": {
                        k: v for k, v in cell["metadata"].items() if k not in _RUN
                    }
                }
            )
            tags = cell["metadata"].get("tags", [])
            if cell["cell_type"] != "code":
                cells[-1]["source"] = _SECTION.sub(folded, "".join(cell["source"]))
                continue
            cells[-1]["outputs"] = _shown(cell["outputs"], claims, broken)
            if "hide-input" in tags:
                code.append(("".join(cell["source"]), "parameters" in tags))
                hidden = "remove-input" if cells[-1]["outputs"] else "remove-cell"
                cells[-1]["metadata"]["tags"] = [
                    hidden,
                    *(tag for tag in tags if tag != "hide-input"),
                ]
            if "parameters" in tags:
                wrong = sorted(
                    name for name in broken if name.startswith(self.run["chapter"])
                )
                about = {
                    "given": self.run["parameters"],
                    "wrong": wrong,
                    "doubt": DOUBT,
                }
                if text := filled("notes.md", repr=repr, **about):
                    cells.append(_markdown("notes", text))
        if text := folded():
            cells.append(_markdown("last", text))
        return _ended(cells)


def _computed_here(
    cells: list[dict[str, Any]], recomputed: Mapping[str, tuple[int, int]]
) -> str:
    """State how many verdicts of a page its run computed, and how many rows of the
    records in use."""
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
    """Cells less the sentence, or the question, that leads to hidden ones that show
    nothing."""
    # the last cell that shows something, and whether hidden ones came since
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
    """Cells of a chapter by the name of their page, in order.

    Sections whose heading's cell is tagged `appendix` stand on one page of their own,
    "NAME_more"; a section ends where a cell begins with the heading of the next.
    """
    pages = {chapter: []}
    to = chapter
    for cell in cells:
        if cell["cell_type"] == "markdown" and _SECTION.match("".join(cell["source"])):
            to = (
                f"{chapter}_more"
                if "appendix" in cell["metadata"].get("tags", [])
                else chapter
            )
        pages.setdefault(to, []).append(cell)
    return pages


def _titles(cells: list[dict[str, Any]]) -> list[str]:
    """What the headings of these cells say, but for those of sub-sections."""
    prose = (
        "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"
    )
    return _TITLE.findall("\n".join(prose))


def _shown(
    outputs: list[Any], claims: list[tuple[str, str]], broken: Collection[str]
) -> list[Any]:
    """Outputs without ours; badges of answers that are not in doubt are moved to the
    claims."""
    found = []
    for output in outputs:
        data = output.get("data", {})
        shown = {mime: content for mime, content in data.items() if mime not in _OURS}
        if 'class="dataframe"' in (html := "".join(shown.get("text/html", ""))):
            shown["text/html"] = tidy_table(html)
        if _SVG in shown:
            shown[_SVG] = for_both_themes(
                "".join(shown[_SVG]), "".join(shown.pop(NARROW_MIME, ""))
            )
        if (claim := data.get(CLAIM_MIME)) is not None:
            badge = "".join(shown["text/html"])
            if claim.get("record") in broken:
                mark = f"<p><strong>In doubt.</strong> {DOUBT}</p></details>"
                badge = (
                    badge.replace("<details", "<details open", 1).removesuffix(
                        "</details>"
                    )
                    + mark
                )
            elif claim["agrees"] and not claim.get("missing"):
                claims.append((claim["written"], badge))
                continue
            shown["text/html"] = badge
        if shown or "data" not in output:
            found.append(output | ({"data": shown} if shown else {}))
    return found


def _markdown(name: str, source: str, *tags: str) -> dict[str, Any]:
    return {
        "cell_type": "markdown",
        "id": name,
        "metadata": {"tags": list(tags)},
        "source": source,
    }
