"""What the book collects from its executed chapters: claims, status, and what the front
page shows."""

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

# the static figure in an explorer
_STATIC = re.compile(r"data:image/svg\+xml;base64,([\w+/=]+)")


@dataclass(frozen=True)
class Checked:
    """A claim with what was computed; `result` is None if nothing was."""

    claim: Claim
    result: dict | None

    @property
    def kind(self) -> str:
        """The written verdict, "contradiction", or "unchecked" without the chapter, or
        without its data."""
        verdict = self.claim.verdict
        if self.result is None:
            return verdict if verdict in UNCOMPUTED else "unchecked"
        if self.result.get("missing"):
            return "unchecked"
        return verdict if self.result["agrees"] else "contradiction"

    @property
    def computed(self) -> dict[str, str]:
        """What was computed, as columns of the table of claims."""
        if self.result is None:
            return {}
        return {
            "conditions": "; ".join(form_lines(self.result)),
            "evidence": evidence_line(self.result),
        }

    @property
    def place(self) -> tuple[int, list[int], list[int], str]:
        """Where in the paper, to be sorted by: abstract, sections, all else; and the
        section's name."""
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
        By chapter name; a chapter may be missing.

    Returns
    -------
    checked : list of Checked
        One for each entry of the claims list.
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
                    f"{id}: chapter {name} checks it; it is not in the claims list"
                )
            elif claim.chapter != name:
                problems.append(
                    f"{id}: chapter {name} checks it; the claims list gives it to "
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
    """What is collected from the chapters, as texts by the names of the files.

    The claims by paper and section, where one says so if it rests on one of the
    `broken` records, which the present code contradicts, and as tables to take away;
    the errata of each paper; for the front page how many claims have each verdict, and
    for the essay how many of each paper; the status: when and how long, with which
    versions and data, from which `commit`, and the records that are broken, and those
    to run `again`, with the reasons of each; and how each figure and each table is made
    again, those of full runs by the headers of what is `recorded`, and how to take the
    book with one, which lies at `site` where it is published.
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
    """The registered data sets, with how to get each."""
    from preflearn import datasets  # late: with pandas and all loaders

    rows: list[Any] = datasets.listing().to_dict("records")
    return [
        row | {"how": datasets.how_to_get(row["dataset"], "$PREFLEARN_DATA")}
        for row in rows
    ]


def archive(
    chapters: Sequence[Chapter], repository: str = "", solutions: bool = True
) -> bytes:
    """A zip file of the notebooks as they are run, whose first cell says how to
    install, and a README.

    Unless `solutions` is true, the notebooks do not contain the solutions of exercises.
    The same notebooks give the same bytes.
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
            entry = ZipInfo(f"notebooks/{name}")  # of 1980, at all times
            entry.external_attr = 0o644 << 16  # who unpacks it may read it
            zipped.writestr(entry, text, ZIP_DEFLATED)
    return written.getvalue()


def figures(page: str, executed: Mapping[str, Executed]) -> dict[str, str]:
    """The static figures of explorers that a page shows as ``chapters/NAME.svg``, by
    file name."""
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
    """A text whose $math$ is kept and whose other characters mean nothing to Markdown."""
    signs = r"\$[^$]+\$|[\\`*_{}\[\]|~$&<>]"

    def escaped(match: re.Match[str]) -> str:
        is_math = len(match[0]) > 1
        return match[0] if is_math else f"\\{match[0]}"

    return re.sub(signs, escaped, text)
