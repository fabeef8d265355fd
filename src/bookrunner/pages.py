"""What the book collects from its executed chapters: claims, status, and what the front page shows."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bookrunner.ledger import (
    DEFINITION,
    MARKS,
    VERDICTS,
    Claim,
    anchor,
    compared,
    evidence_line,
    form_lines,
    headline,
)
from bookrunner.outputs import Executed
from bookrunner.project import Chapter
from bookrunner.tasks import duration

_PAPERS = {
    "P1": "Venuto2017",
    "P2": "Zapien2009",
    "P3": "Tsivtsivadze2013",
    "P4": "Maystre2019",
    "P5": "AhmadiFahandar2019",
}


@dataclass(frozen=True)
class Checked:
    """A claim with what was computed; `result` is None if nothing was, and `why` then says why."""

    claim: Claim
    result: dict | None
    why: str = ""

    @property
    def contradicts(self) -> bool:
        """Whether the computation disagrees with the written verdict."""
        return self.result is not None and not self.result["agrees"]


def match_checks(
    ledger: Mapping[str, Claim], chapters: Iterable[Chapter], executed: Mapping[str, Executed]
) -> tuple[list[Checked], list[str]]:
    """Compare the ledger with the checks of all executed chapters.

    Parameters
    ----------
    ledger : mapping of str to Claim
    chapters : iterable of Chapter
        All chapters whose notebook exists.
    executed : mapping of str to Executed
        By chapter name; a chapter may be missing.

    Returns
    -------
    checked : list of Checked
        One for each entry of the ledger.
    problems : list of str
        Contradictions, entries that their chapter never checks, and checks in the wrong place.
    """
    existing = {chapter.name for chapter in chapters}
    results: dict[str, dict] = {}
    problems = []
    for name, notebook in executed.items():
        for result in notebook.checks:
            claim = ledger.get(result["id"])
            if claim is None:
                problems.append(f"{result['id']}: chapter {name} checks it, but it is not in the ledger")
            elif claim.chapter != name:
                problems.append(
                    f"{claim.id}: chapter {name} checks it; the ledger gives it to {claim.chapter}"
                )
            elif claim.id in results:
                problems.append(f"{claim.id}: chapter {name} checks it more than once; expected one check")
            else:
                results[claim.id] = compared(claim, result)
    checked = []
    for claim in ledger.values():
        why = ""
        if claim.chapter not in existing:
            why = "Not yet checked: its chapter is in preparation."
        elif claim.chapter not in executed:
            why = "Not yet checked: its chapter was not run in this build."
        elif claim.verdict == DEFINITION:
            why = "True by definition: no computation could come out otherwise."
        elif claim.id not in results:
            why = "Not checked."
            problems.append(f"{claim.id}: chapter {claim.chapter} never checks it")
        entry = Checked(claim, results.get(claim.id), why)
        checked.append(entry)
        if entry.result and entry.contradicts:
            problems.append(f"{claim.id}: {headline(entry.result)} ({evidence_line(entry.result)})")
    return checked, problems


def claims_page(checked: list[Checked]) -> str:
    """The claims page as MyST Markdown: a summary, then all claims by paper and section."""
    parts = [
        "# Claims",
        "Every checkable statement of the papers that the book has reached, in our words, with the verdict "
        "that a chapter computed. *Definition* means that it is true by the paper's own definitions, so that "
        "there is nothing to compute; *holds if* means that the paper omits a condition, *typo* that the "
        "printed formula is wrong and the one that was meant holds, *open* that it can't be settled here.",
        _summary(checked),
    ]
    for paper in sorted({entry.claim.paper for entry in checked}):
        parts += [f"## Paper {paper}", f"The claims of {{cite:t}}`{_PAPERS[paper]}`."]
        sections: dict[str, list[str]] = {}
        for entry in (e for e in checked if e.claim.paper == paper):
            section, _, place = entry.claim.where.partition(",")
            sections.setdefault(section[:1].upper() + section[1:], []).append(_entry(entry, place.strip()))
        for section in sorted(sections, key=lambda title: [int(k) for k in re.findall(r"\d+", title)]):
            parts += [f"### {section}", *sections[section]]
    return "\n\n".join(parts) + "\n"


def _summary(checked: list[Checked]) -> str:
    papers = sorted({entry.claim.paper for entry in checked})
    rows: list[list[Any]] = [["paper", "claims", *VERDICTS, "not yet checked"]]
    for paper in [*papers, "all"]:
        entries = [e for e in checked if paper in (e.claim.paper, "all")]
        verdicts = _settled(entries)
        waiting = len(entries) - verdicts.total()
        rows.append([paper, len(entries), *(verdicts[v] for v in VERDICTS), waiting])
    return _table(rows)


def _settled(entries: Iterable[Checked]) -> Counter[str]:
    """How many claims have each verdict, of those that a chapter of this build settled."""
    return Counter(e.claim.verdict for e in entries if e.result is not None or e.claim.verdict == DEFINITION)


def tally(checked: list[Checked]) -> str:
    """The verdicts as MyST Markdown for the front page: how many claims have each, with a link to them."""
    verdicts = _settled(checked)
    items = "".join(
        f'<li class="claim-{verdict.replace(" ", "-")}"><strong>{verdicts[verdict]}</strong> '
        f'<span aria-hidden="true">{MARKS[verdict]}</span> {verdict}</li>'
        for verdict in VERDICTS
    )
    text = f"{verdicts.total()} claims judged in this build, by verdict:"
    return f'<p>{text}</p>\n<ul class="claim-tally">{items}</ul>\n'


def figures(page: str, executed: Mapping[str, Executed]) -> dict[str, str]:
    """The figures of chapters that a page shows as ``chapters/NAME.svg``: the drawings by file name."""
    drawn = {}
    for notebook in executed.values():
        for cell in notebook.notebook["cells"]:
            name = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
            for output in cell.get("outputs", []) if name and f"chapters/{name}.svg" in page else []:
                if svg := output.get("data", {}).get("image/svg+xml"):
                    drawn[f"{name}.svg"] = "".join(svg)
    return drawn


def _entry(entry: Checked, place: str) -> str:
    claim, result = entry.claim, entry.result
    kind, verdict = claim.verdict.replace(" ", "-"), claim.verdict
    if result is not None:
        kind, verdict = ("contradiction" if entry.contradicts else kind), headline(result)
    elif claim.verdict != DEFINITION:
        kind, verdict = "unchecked", "not yet checked"
    mark = MARKS.get(kind.replace("-", " "), "…" if result is None else "⚠")
    head = f"**{mark} {verdict}** {claim.id}" + (f", {_plain(place)}" if place else "")
    body = [head, claim.statement]
    if result is not None and (forms := form_lines(result)):
        body.append("\n".join(f"- {_plain(form)}" for form in forms))
    if claim.note and (result is not None or claim.verdict == DEFINITION):
        body.append(f"*Note.* {claim.note}")
    if result is None:
        body.append(f"*{entry.why}*")
    else:
        link = f'<a href="{claim.chapter}.html#check-{claim.id}">chapter {claim.chapter[:2]}</a>'
        body.append(f"*Computed in {link}.* {_plain(evidence_line(result))}")
    inner = "\n\n".join(body)
    return f"({anchor(claim.id)})=\n::::{{container}} claim-entry claim-{kind}\n{inner}\n::::"


def status_page(executed: Mapping[str, Executed], outdated: Iterable[str] = ()) -> str:
    """The status page as MyST Markdown: when, how long, what is outdated, with which versions and data."""
    rows: list[list[Any]] = [["chapter", "run time", "code cells", "date (UTC)", "profile"]]
    for name, notebook in executed.items():
        run = notebook.run
        when = run["date"].replace("T", " ").removesuffix("Z")
        took = _whole(duration(run["seconds"]))
        rows.append([f"{{doc}}`{name}`", took, notebook.n_code_cells, _whole(when), run["profile"]])
    total = sum(notebook.run["seconds"] for notebook in executed.values())
    cells = sum(notebook.n_code_cells for notebook in executed.values())
    rows.append(["all", _whole(duration(total)), cells, "", ""])
    names = ", ".join(f"`{name}`" for name in outdated)
    parts = [
        "# Status",
        "When each chapter was last computed, and with what. A chapter runs again if its notebook, the "
        "package, its parameters, its data or a version below changes.",
        _table(rows),
        *([f"Recorded by older code than the present, and shown all the same: {names}."] if names else []),
        "## Versions",
        *_versions(executed),
        "## Data",
        _data(executed),
    ]
    return "\n\n".join(parts) + "\n"


def _versions(executed: Mapping[str, Executed]) -> list[str]:
    groups: dict[tuple, list[str]] = {}
    for name, notebook in executed.items():
        groups.setdefault(tuple(sorted(notebook.provenance["versions"].items())), []).append(name)
    parts = []
    for versions, names in groups.items():
        which = "All chapters:" if len(groups) == 1 else f"Chapters {', '.join(n[:2] for n in names)}:"
        parts += [which, ", ".join(f"{package} {number}" for package, number in versions) + "."]
    return parts


def _data(executed: Mapping[str, Executed]) -> str:
    rows: list[list[Any]] = [["chapter", "data set", "file", "SHA-256", "read from"]]
    for name, notebook in executed.items():
        for file in notebook.provenance["data"]:
            digest = f"`{str(file['sha256'])[:12]}`"
            rows.append([name[:2], file["dataset"], _plain(str(file["file"])), digest, file["source"]])
        for dataset in notebook.replaced:
            rows.append([name[:2], dataset, "", "", "other data in its place"])
    if len(rows) == 1:
        return "No chapter read a data set."
    return _table(rows)


def _table(rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines)


def _whole(text: str) -> str:
    """A text that is never broken between two lines."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _plain(text: str) -> str:
    """A text whose $math$ is kept and whose other characters mean nothing to Markdown."""
    pieces = re.split(r"(\$[^$]+\$)", text)
    return "".join(
        piece if k % 2 else re.sub(r"([\\`*_{}\[\]|~$])", r"\\\1", html.escape(piece, quote=False))
        for k, piece in enumerate(pieces)
    )
