"""What the book collects from its executed chapters: claims, status, and what the front page shows."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bookrunner import ledger as _ledger
from bookrunner.ledger import UNCOMPUTED, Claim, compared, evidence_line, headline
from bookrunner.outputs import DOUBT, Executed
from bookrunner.records import filled
from bookrunner.tasks import duration


@dataclass(frozen=True)
class Checked:
    """A claim with what was computed; `result` is None if nothing was."""

    claim: Claim
    result: dict | None

    @property
    def settled(self) -> bool:
        """Whether a chapter of this build computed the claim, or none needs to."""
        return self.result is not None or self.claim.verdict in UNCOMPUTED

    @property
    def kind(self) -> str:
        """The written verdict, "contradiction" or "unchecked"."""
        if self.result is not None and not self.result["agrees"]:
            return "contradiction"
        return self.claim.verdict if self.settled else "unchecked"


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
        if result is None and claim.chapter in executed and claim.verdict not in UNCOMPUTED:
            problems.append(f"{claim.id}: chapter {claim.chapter} never checks it")
        elif result is not None and not result["agrees"]:
            problems.append(f"{claim.id}: {headline(result)} ({evidence_line(result)})")
    return checked, problems


def collected(
    checked: Sequence[Checked],
    executed: Mapping[str, Executed],
    broken: Mapping[str, Sequence[str]] | None = None,
    again: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """What is collected from the chapters, as MyST Markdown by the names of the files.

    The claims by paper and section, where one says so if it rests on one of the `broken` records, which the
    present code contradicts; for the front page how many claims have each verdict; and the status: when and
    how long, with which versions and data, and the records that are broken, and those to run `again`, with
    the reasons of each.
    """
    versions = {found for chapter in executed.values() for found in chapter.provenance["versions"].items()}
    read = any(chapter.provenance["data"] or chapter.replaced for chapter in executed.values())
    shown = {"checked": checked, "executed": executed, "broken": broken or {}, "again": again or {}}
    shown |= {"versions": sorted(versions), "read": read, "doubt": DOUBT}
    called = {"ledger": _ledger, "duration": duration, "plain": _plain, "sections": _sections}
    return {name: filled(name, **shown, **called) + "\n" for name in ("claims.md", "tally.md", "status.md")}


def _sections(entries: Iterable[Checked]) -> list[tuple[str, list[Checked]]]:
    """Claims by the section of the paper, in its order."""
    found: dict[str, list[Checked]] = {}
    for entry in entries:
        section = entry.claim.where.partition(",")[0]
        found.setdefault(section[:1].upper() + section[1:], []).append(entry)
    return sorted(found.items(), key=lambda item: [int(k) for k in re.findall(r"\d+", item[0])])


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


def _plain(text: str) -> str:
    """A text whose $math$ is kept and whose other characters mean nothing to Markdown."""
    pieces = re.split(r"(\$[^$]+\$)", text)
    return "".join(
        piece if k % 2 else re.sub(r"([\\`*_{}\[\]|~$])", r"\\\1", html.escape(piece, quote=False))
        for k, piece in enumerate(pieces)
    )
