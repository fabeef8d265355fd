"""Pages that the book collects from its executed chapters: claims, errata, status, and
parts of the front page."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import nbformat
import pandas as pd

from preflearn_book.runner import claims as _claims
from preflearn_book.runner.claims import (
    UNCOMPUTED,
    Claim,
    compared,
    evidence_line,
    form_lines,
    headline,
)
from preflearn_book.runner.outputs import DOUBT, Executed, without_solutions
from preflearn_book.runner.project import Chapter
from preflearn_book.runner.records import filled
from preflearn_book.runner.tasks import duration

# The static figure in an explorer.
_STATIC = re.compile(r"data:image/svg\+xml;base64,([\w+/=]+)")


@dataclass(frozen=True)
class Checked:
    """A claim with the result of its check; `result` is None without a check."""

    claim: Claim
    result: dict | None

    @property
    def kind(self) -> str:
        """The verdict of the claims list, "contradiction", or "unchecked" if the chapter
        or its data are missing."""
        verdict = self.claim.verdict
        if self.result is None:
            return verdict if verdict in UNCOMPUTED else "unchecked"
        if self.result.get("missing"):
            return "unchecked"
        return verdict if self.result["agrees"] else "contradiction"

    @property
    def computed(self) -> dict[str, str]:
        """Result of the check, as columns of the table of claims."""
        if self.result is None:
            return {}
        return {
            "conditions": "; ".join(form_lines(self.result)),
            "evidence": evidence_line(self.result),
        }

    @property
    def place(self) -> tuple[int, list[int], list[int], str]:
        """Place in the paper as a sort key (abstract, sections, all else), with the
        name of the section."""
        where = self.claim.where
        section = re.split("[,;]", where)[0]
        order = 2
        if where.startswith("abstract"):
            order = 0
        elif where.startswith("section"):
            order = 1
        name = section[:1].upper() + section[1:]
        return order, _numbers(section), _numbers(where), name


def _numbers(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", text)]


def match_checks(
    claims: Mapping[str, Claim], executed: Mapping[str, Executed]
) -> tuple[list[Checked], list[str]]:
    """Compare the claims list with the checks of all executed chapters.

    Parameters
    ----------
    claims : mapping of str to Claim
    executed : mapping of str to Executed
        Executed notebooks by chapter name; a chapter may be missing.

    Returns
    -------
    checked : list of Checked
        One item for each entry of the claims list.
    problems : list of str
        Contradictions, entries that their chapter never checks, and checks in the wrong
        place.
    """
    results: dict[str, dict] = {}
    problems = []
    for name, notebook in executed.items():
        places = notebook.places
        for result in notebook.checks:
            id = result["id"]
            claim = claims.get(id)
            if claim is None:
                problems.append(
                    f"{id}: chapter {name} checks it, but it is not in the claims list"
                )
            elif claim.chapter != name:
                problems.append(
                    f"{id}: chapter {name} checks it, but the claims list assigns it to "
                    f"{claim.chapter}"
                )
            elif id in results:
                problems.append(
                    f"{id}: chapter {name} checks it more than once; expected one check"
                )
            else:
                results[id] = compared(claim, result) | {"page": places[id]}
    checked = [Checked(claim, results.get(claim.id)) for claim in claims.values()]
    for entry in checked:
        claim = entry.claim
        result = entry.result
        if entry.kind == "unchecked" and not result and claim.chapter in executed:
            problems.append(f"{claim.id}: chapter {claim.chapter} never checks it")
        elif result and entry.kind == "contradiction":
            problems.append(f"{claim.id}: {headline(result)} ({evidence_line(result)})")
    return checked, problems


def collected(
    checked: Sequence[Checked],
    executed: Mapping[str, Executed],
    broken: Mapping[str, Sequence[str]] | None = None,
    again: Mapping[str, Sequence[str]] | None = None,
    recorded: Mapping[str, Mapping] | None = None,
    commit: str | None = None,
    site: str = "",
) -> dict[str, str]:
    """Return the pages and tables that are collected from the chapters, by file name.

    - The claims by paper and section, as a page and as tables to download. A claim is
      marked if it uses one of the `broken` records, which the current code contradicts.
    - The errata of each paper.
    - The counts of claims by verdict, for the front page and, per paper, for the essay.
    - The status page: dates, run times, versions, data, the `commit`, the broken
      records, and the records to make `again`, with reasons.
    - The page on how to reproduce each figure and each table. Tables of full runs are
      described by the headers in `recorded`; `site` is the address of the published
      book.
    """
    context = {
        "checked": checked,
        "executed": executed,
        "broken": broken or {},
        "again": again or {},
    }
    context |= {"recorded": recorded or {}, "commit": commit, "site": site}
    versions = {
        found
        for chapter in executed.values()
        for found in chapter.provenance["versions"].items()
    }
    context |= {"versions": sorted(versions), "doubt": DOUBT}
    seconds = sum(chapter.run["seconds"] for chapter in executed.values())
    context["run_time"] = duration(seconds)
    context |= {"claims_list": _claims, "duration": duration, "plain": _plain}
    context["datasets"] = _data_sets()
    names = ("claims.md", "tally.md", "papers.md", "status.md", "reproduce.md")
    pages = {name: filled(name, **context) + "\n" for name in names}
    for paper in {entry.claim.paper for entry in checked}:
        pages[f"errata_{paper.lower()}.md"] = (
            filled("errata.md", paper=paper, **context) + "\n"
        )
    table = pd.DataFrame(
        [asdict(entry.claim) | entry.computed for entry in checked]
    ).fillna("")
    pages["claims.csv"] = table.to_csv(index=False, lineterminator="\n")
    pages["claims.json"] = (
        f"{table.to_json(orient='records', indent=1, force_ascii=False)}\n"
    )
    return pages


def _data_sets() -> list[dict[str, Any]]:
    """Return the registered data sets, with instructions on how to get them."""
    from preflearn import datasets  # imported late: it loads pandas

    rows: list[Any] = datasets.listing().to_dict("records")
    return [
        row | {"how": datasets.how_to_get(row["dataset"], "$PREFLEARN_DATA")}
        for row in rows
    ]


def archive(
    chapters: Sequence[Chapter], repository: str = "", solutions: bool = True
) -> bytes:
    """Return a zip file of the notebooks and a README.

    The first cell of each notebook says how to install the package. Unless `solutions`
    is true, the notebooks do not contain the solutions of exercises. The same notebooks
    give the same bytes.
    """
    first = nbformat.v4.new_markdown_cell(
        filled("installation.md", repository=repository), id="installation"
    )
    files = {
        "README.md": filled("archive.md", repository=repository, chapters=chapters)
        + "\n"
    }
    for chapter in chapters:
        notebook = chapter.notebook
        if not solutions:
            notebook = without_solutions(notebook)
        notebook = notebook | {"cells": [first, *notebook["cells"]]}
        files[chapter.path.name] = (
            json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
        )
    written = BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED) as zipped:
        for name, text in files.items():
            entry = ZipInfo(f"notebooks/{name}")  # with the fixed date of 1980
            entry.external_attr = 0o644 << 16  # readable after unpacking
            zipped.writestr(entry, text, ZIP_DEFLATED)
    return written.getvalue()


def figures(page: str, executed: Mapping[str, Executed]) -> dict[str, str]:
    """Return the static figures of explorers that a page shows as
    ``chapters/NAME.svg``, by file name."""
    drawn = {}
    for notebook in executed.values():
        for cell in notebook.notebook["cells"]:
            name = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
            if not name or f"chapters/{name}.svg" not in page:
                continue
            for output in cell.get("outputs", []):
                html = "".join(output.get("data", {}).get("text/html", ""))
                if svg := static_figure(html):
                    drawn[f"{name}.svg"] = svg
    return drawn


def static_figure(html: str) -> str:
    """The static figure of an explorer, as SVG; "" if it has none."""
    svg = _STATIC.search(html)
    return b64decode(svg[1]).decode() if svg else ""


def _plain(text: str) -> str:
    """Escape the Markdown characters of a text, except in $math$."""
    signs = r"\$[^$]+\$|[\\`*_{}\[\]|~$&<>]"

    def escaped(match: re.Match[str]) -> str:
        is_math = len(match[0]) > 1
        return match[0] if is_math else f"\\{match[0]}"

    return re.sub(signs, escaped, text)
