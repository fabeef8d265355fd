"""What the book collects from its executed chapters: claims, status, and what the front page shows."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from bookrunner.outputs import DOUBT, Executed
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
    """A claim with what was computed; `result` is None if nothing was."""

    claim: Claim
    result: dict | None

    @property
    def contradicts(self) -> bool:
        """Whether the computation disagrees with the written verdict."""
        return self.result is not None and not self.result["agrees"]


def match_checks(
    ledger: Mapping[str, Claim], executed: Mapping[str, Executed]
) -> tuple[list[Checked], list[str]]:
    """Compare the ledger with the checks of all executed chapters.

    Parameters
    ----------
    ledger : mapping of str to Claim
    executed : mapping of str to Executed
        By chapter name; a chapter may be missing.

    Returns
    -------
    checked : list of Checked
        One for each entry of the ledger.
    problems : list of str
        Contradictions, entries that their chapter never checks, and checks in the wrong place.
    """
    results: dict[str, dict] = {}
    problems = []
    for name, notebook in executed.items():
        for result in notebook.checks:
            id, claim = result["id"], ledger.get(result["id"])
            if claim is None or claim.chapter != name:
                place = f"the ledger gives it to {claim.chapter}" if claim else "it is not in the ledger"
                problems.append(f"{id}: chapter {name} checks it; {place}")
            elif id in results:
                problems.append(f"{id}: chapter {name} checks it more than once; expected one check")
            else:
                results[id] = compared(claim, result)
    checked = [Checked(claim, results.get(claim.id)) for claim in ledger.values()]
    for claim, result in ((entry.claim, entry.result) for entry in checked):
        if result is None and claim.chapter in executed and claim.verdict != DEFINITION:
            problems.append(f"{claim.id}: chapter {claim.chapter} never checks it")
        elif result is not None and not result["agrees"]:
            problems.append(f"{claim.id}: {headline(result)} ({evidence_line(result)})")
    return checked, problems


def claims_page(checked: list[Checked], broken: Collection[str] = ()) -> str:
    """The claims page as MyST Markdown: a summary, then all claims by paper and section.

    A claim says so if it rests on one of the `broken` records, which the present code contradicts.
    """
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
        sections: dict[str, list[Checked]] = {}
        for entry in (e for e in checked if e.claim.paper == paper):
            section = entry.claim.where.partition(",")[0]
            sections.setdefault(section[:1].upper() + section[1:], []).append(entry)
        for section in sorted(sections, key=lambda title: [int(k) for k in re.findall(r"\d+", title)]):
            parts += [f"### {section}", *(_entry(entry, broken) for entry in sections[section])]
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


def _entry(entry: Checked, broken: Collection[str]) -> str:
    claim, result = entry.claim, entry.result
    settled = result is not None or claim.verdict == DEFINITION
    kind, verdict = (claim.verdict, claim.verdict) if settled else ("unchecked", "not yet checked")
    if result is not None:
        kind, verdict = ("contradiction" if entry.contradicts else kind), headline(result)
    mark, place = MARKS.get(kind, "⚠" if settled else "…"), claim.where.partition(",")[2].strip()
    body = [f"**{mark} {verdict}** {claim.id}" + (f", {_plain(place)}" if place else ""), claim.statement]
    if result is not None and (forms := form_lines(result)):
        body.append("\n".join(f"- {_plain(form)}" for form in forms))
    if claim.note and settled:
        body.append(f"*Note.* {claim.note}")
    if result is not None:
        link = f'<a href="{claim.chapter}.html#check-{claim.id}">chapter {claim.chapter[:2]}</a>'
        body.append(f"*Computed in {link}.* {_plain(evidence_line(result))}")
        if result.get("record") in broken:
            body.append(f"*In doubt.* {DOUBT}")
    elif settled:
        body.append("*True by definition: no computation could come out otherwise.*")
    else:
        body.append("*Its chapter was not run in this build.*")
    inner, style = "\n\n".join(body), kind.replace(" ", "-")
    return f"({anchor(claim.id)})=\n::::{{container}} claim-entry claim-{style}\n{inner}\n::::"


def status_page(
    executed: Mapping[str, Executed],
    broken: Mapping[str, Sequence[str]] | None = None,
    again: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The status page as MyST Markdown: when and how long, with which versions and data, and of records
    those that the present code contradicts, and those to run again, with the reasons of each.
    """
    rows: list[list[Any]] = [["chapter", "run time", "code cells", "date (UTC)", "profile"]]
    for name, notebook in executed.items():
        run = notebook.run
        when = run["date"].replace("T", " ").removesuffix("Z")
        took = _whole(duration(run["seconds"]))
        rows.append([f"{{doc}}`{name}`", took, notebook.n_code_cells, _whole(when), run["profile"]])
    total = sum(notebook.run["seconds"] for notebook in executed.values())
    cells = sum(notebook.n_code_cells for notebook in executed.values())
    rows.append(["all", _whole(duration(total)), cells, "", ""])
    versions = {found for notebook in executed.values() for found in notebook.provenance["versions"].items()}
    parts = [
        "# Status",
        "When each chapter was last computed, and with what. A chapter runs again if its notebook, the "
        "package, its parameters, its data or a version below changes.",
        _table(rows),
        *_records("What the present code no longer gives, so that the build failed", broken or {}),
        *_records("Recorded from other cells or data than the present, to be run again", again or {}),
        "## Versions",
        ", ".join(f"{package} {number}" for package, number in sorted(versions)) + ".",
        "## Data",
        _data(executed),
    ]
    return "\n\n".join(parts) + "\n"


def _records(title: str, found: Mapping[str, Sequence[str]]) -> list[str]:
    lines = [f"- `{name}`: {_plain(why[0])}" + ", ..." * (len(why) > 1) for name, why in found.items()]
    return [f"{title}:", "\n".join(lines)] if lines else []


def _data(executed: Mapping[str, Executed]) -> str:
    rows: list[list[Any]] = [["chapter", "data set", "file", "SHA-256", "read from"]]
    for name, notebook in executed.items():
        for file in notebook.provenance["data"]:
            digest = f"`{str(file['sha256'])[:12]}`"
            rows.append([name[:2], file["dataset"], _plain(str(file["file"])), digest, file["source"]])
        rows += [[name[:2], dataset, "", "", "other data in its place"] for dataset in notebook.replaced]
    return _table(rows) if len(rows) > 1 else "No chapter read a data set."


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
