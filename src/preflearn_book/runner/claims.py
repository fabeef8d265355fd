"""The claims list: what the five papers state, and what a computation says about it.

A chapter settles a claim with `check`, which shows a badge and leaves a
machine-readable output in the executed notebook. The book collects these outputs and
compares them with the written verdicts.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from preflearn.core.source_digest import digest
from preflearn_book.runner.files import check_form, read_yaml
from preflearn_book.runner.parameters import require, show
from preflearn_book.runner.records import filled, note_read, plain_scalar, project_file

if TYPE_CHECKING:
    import pandas as pd

CLAIM_MIME = "application/vnd.preflearn.claim+json"

UNCOMPUTED = ("definition", "open")
MARKS = {
    "definition": "≡",
    "holds": "✓",
    "holds if": "◐",
    "typo": "✎",
    "fails": "✗",
    "not shown": "≈",
    "open": "?",
}
"""The verdicts of the claims list, each with a sign that is shown next to the word.

See `computed_verdict` for when each agrees with a computation. A statement that is
true by the paper's own definitions is a definition, and one that was not tried here is
open. No computation could decide them otherwise, so no chapter checks either.
"""
VERDICTS = tuple(MARKS)
COUNTED_VERDICTS = VERDICTS[1:]
"""The verdicts of claims; only a background check can be a definition."""
REPRODUCTION = "reproduction"
"""The kind of our own results, which are listed apart from the papers' claims."""
BACKGROUND = "background check"
"""The kind of textbook identities and trivial statements, which are computed like
claims, but not counted, and take no space on a chapter's page."""
NOT_COUNTED = (REPRODUCTION, BACKGROUND)

Answer = bool | None
_ANSWERS = {True: "holds", False: "fails", None: "not shown"}
_PRINTED = "as printed"
_TAGS = (
    r'<span class="math notranslate nohighlight">\({}\)</span>',
    "<em>{}</em>",
    "<code>{}</code>",
)
_SPAN = re.compile(r"\$([^$]+)\$|(?<![\w*])\*(\S(?:[^*]*\S)?)\*(?![\w*])|`([^`]+)`")


@dataclass(frozen=True)
class Claim:
    """One entry of the claims list; `statement` and `note` are Markdown with $math$.

    Where a claim is about numbers that the authors publish, `verdict` is that on their
    numbers, and `ours` that on the book's own, if it is another one. Where something is
    wrong, `consequence` says how much, and the errata say what is `printed`, what to
    `read` instead, and whom it `affects`.
    """

    id: str
    where: str
    statement: str
    chapter: str
    kind: str
    verdict: str
    consequence: str = ""
    printed: str = ""
    read: str = ""
    affects: str = ""
    note: str = ""
    ours: str = ""

    @property
    def paper(self) -> str:
        """The paper's short name, "P1" to "P5"."""
        return self.id.split("-")[0]

    @property
    def badge_digest(self) -> str:
        """A digest of what a chapter's badge shows; the note appears on the claims page
        only."""
        return digest([self.id, self.where, self.statement, self.verdict, self.ours])


def load_claims(path: str | Path | None = None) -> dict[str, Claim]:
    """Read and validate the claims list, by default `book/claims.yml`.

    Parameters
    ----------
    path : path, optional
        A YAML file: a list of entries with the keys of `Claim`.

    Returns
    -------
    dict of str to Claim
        By id, in the order of the file.

    Raises
    ------
    ValueError
        On an unknown or missing key, a malformed or repeated id, an unknown verdict,
        where a verdict other than "holds" has no note, what is wrong has no
        consequence, or a consequence no erratum; the message names the entry.
    FileNotFoundError
        If the file is missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
    ...     _ = file.write("- {id: P1-01, where: eq. 2, statement: A loss., chapter: 02_x, ")
    ...     _ = file.write("kind: formula, verdict: holds}")
    ...     file.flush()
    ...     load_claims(file.name)["P1-01"].where
    'eq. 2'
    """
    path = project_file("book/claims.yml") if path is None else Path(path)
    return dict(_parsed(path, path.read_bytes()))


@lru_cache(maxsize=8)
def _parsed(path: Path, _content: bytes) -> dict[str, Claim]:
    entries = read_yaml(path) or []
    if not isinstance(entries, list):
        raise ValueError(
            f"{path.name} holds a {type(entries).__name__}; expected a list of entries"
        )
    claims: dict[str, Claim] = {}
    for position, entry in enumerate(entries, start=1):
        where = f"{path.name}, entry {position}"
        if isinstance(entry, dict) and entry.get("id"):
            where += f" ({entry['id']})"
        check_form(entry, "entry", where)
        claim = Claim(**{field: text.strip() for field, text in entry.items()})
        require(
            claim.id not in claims,
            claim.id,
            f"{where}: the id",
            "one that no other entry has",
        )
        claims[claim.id] = claim
    return claims


def computed_verdict(holds: Answer | Mapping[str, Answer]) -> str:
    """Class what was computed, in words: see `check` for the meaning of `holds`.

    Returns
    -------
    str
        "holds", "holds if or typo", "fails", "not shown", or "inconsistent": an amended
        form that fails too, which no verdict can describe.

    Raises
    ------
    ValueError
        If `holds` is anything but True, False, None, or a mapping of texts to these
        with the key "as printed".

    Examples
    --------
    >>> computed_verdict({"as printed": False, "with at least one tie": True})
    'holds if or typo'
    """
    amended = _forms(holds)
    printed = amended.pop(_PRINTED)
    if False in amended.values():
        return "inconsistent"
    if printed:
        return "holds"
    if None in amended.values() or (printed is None and not amended):
        return "not shown"
    if amended:
        return "holds if or typo"
    return "fails"


def _forms(holds: object) -> dict[str, Answer]:
    if not isinstance(holds, Mapping):
        holds = {_PRINTED: holds}
    forms: dict[str, Answer] = dict(holds)
    require(
        _PRINTED in forms,
        list(forms),
        "the list of forms in holds",
        f"{_PRINTED!r} among them",
    )
    for form, answer in forms.items():
        # NumPy's counts, and is not imported here.
        good = answer is None or type(answer).__name__ in ("bool", "bool_")
        require(good, answer, f"holds[{form!r}]", "True, False or None")
        forms[form] = answer if answer is None else bool(answer)
    return forms


def agrees(computed: str, written: str) -> bool:
    """Whether a computed class, from `computed_verdict`, agrees with a written verdict.

    Examples
    --------
    >>> agrees("holds if or typo", "typo"), agrees("holds", "typo")
    (True, False)
    """
    if computed == "holds if or typo":
        return written in ("holds if", "typo")
    return computed == written


def check(
    claim_id: str,
    holds: Answer | Mapping[str, Answer],
    evidence: str,
    value: float | int | str | None = None,
    *,
    ours: Answer | Mapping[str, Answer] | Literal["the same"] = "the same",
    recorded: pd.DataFrame | None = None,
    missing: Sequence[str] = (),
) -> None:
    """Settle a claim: show a badge with the verdict, and store the result in the
    notebook.

    A chapter checks each of its claims once. A background check shows a badge only if
    it contradicts the claims list.

    Parameters
    ----------
    claim_id : str
        The id in the claims list, such as "P1-07".
    holds : bool, None or mapping of str to these
        Whether the claim holds as printed; None where what was computed does not
        decide. A mapping answers for "as printed" and for amended forms: the condition
        under which the claim holds, or the corrected formula, such as ``{"as printed":
        False, "with at least one tie": True}``.
    evidence : str
        One sentence: what was computed, on how much, to which tolerance. It may hold
        $math$, and ``{value}`` where the value belongs.
    value : number or str, optional
        The number that decides, such as the largest deviation; it follows the evidence
        as "Value: ..." unless the sentence has a place for it.
    ours : bool, None or mapping of str to these, optional
        Where `holds` is the answer of the authors' published numbers: that of the
        chapter's own.
    recorded : DataFrame, optional
        Table of `preflearn_book.runner.recorded` from which the answer was computed;
        the badge names it. None for an answer from this run.
    missing : sequence of str
        Names of data sets that the answer rests on and that are not available. If there
        is one, the claim counts as not checked, also if other data gave an answer, and
        the badge says why.

    Raises
    ------
    ValueError
        If the id is not in the claims list or is a definition or open there, an answer
        is neither None nor True or False (numpy's included), the evidence is empty, or the
        value is not finite.

    Notes
    -----
    A verdict that contradicts the claims list does not raise here, so that a reader may
    change the parameters; the badge reports it, and the build of the book fails.
    """
    claims = load_claims()
    near = get_close_matches(claim_id, claims)
    expected = f"one of claims.yml, such as {near}"
    require(claim_id in claims, claim_id, "the claim", expected)
    what = f"the evidence for {claim_id}"
    require(evidence.strip(), evidence, what, "a sentence")
    has_value = value is not None or "{value}" not in evidence
    require(has_value, evidence, what, "a value for {value}")
    if value is not None:
        value = plain_scalar(f"the value for {claim_id}", value)
    if missing:
        evidence = (
            f"The answer rests on data that are not available: {', '.join(missing)}."
        )
        holds = None
        value = None
        ours = "the same"
        recorded = None
    claim = claims[claim_id]
    what = f"the verdict of {claim_id}"
    good = claim.verdict not in UNCOMPUTED
    require(good, claim.verdict, what, "one to compute")
    note_read(f"claim {claim_id}", claim.badge_digest)
    result = {
        "id": claim_id,
        "holds": _forms(holds),
        "computed": computed_verdict(holds),
        "evidence": re.sub(r"[ \t\n]+", " ", evidence).strip(),  # no-break spaces stay
        "value": value,
    }
    if ours != "the same":
        result["ours"] = {"holds": _forms(ours), "computed": computed_verdict(ours)}
    if missing:
        result["missing"] = list(missing)
    if recorded is not None:
        result["recorded"] = str(recorded.attrs.get("date", "an unknown date"))[:10]
        result["record"] = recorded.attrs.get("record", "")
    result = compared(claim, result)
    badge: dict[str, str] = {}
    if claim.kind != BACKGROUND or not result["agrees"]:
        badge["text/html"] = _badge_html(claim, result)
        badge["text/plain"] = _badge_text(claim, result)
    show({CLAIM_MIME: result} | badge)


def compared(claim: Claim, result: dict) -> dict:
    """Add to the result of a check `written`, `written_ours` and `agrees`, by the claims
    list.

    A check whose data are missing contradicts nothing.
    """
    written = claim.verdict
    ours = claim.ours or claim.verdict
    computed_ours = result.get("ours", result)["computed"]
    agreed = agrees(result["computed"], written) and agrees(computed_ours, ours)
    agreed = agreed or bool(result.get("missing"))
    return result | {"written": written, "written_ours": ours, "agrees": agreed}


def format_value(value: float | int | str) -> str:
    """A value as readers see it: four significant digits, thousands set apart.

    Examples
    --------
    >>> format_value(12345), format_value(1.23456e-9)
    ('12,345', '1.235e-09')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}"


def evidence_line(result: Mapping) -> str:
    """The evidence of a check as it is read: a sentence, its value, and the date of a
    recorded run.

    Examples
    --------
    >>> evidence_line({"evidence": "the largest error on 200 problems is {value}.", "value": 1.5e-9})
    'The largest error on 200 problems is 1.5e-09.'
    >>> evidence_line({"evidence": "On 200 problems both agree", "value": 0})
    'On 200 problems both agree. Value: 0.'
    """
    line = result["evidence"]
    value = result["value"]
    if re.match(r"[a-z]{2}", line):
        line = line[0].upper() + line[1:]
    if value is not None and "{value}" not in line:
        line = f"{line.rstrip('.')}. Value: {{value}}"
    if value is not None:
        line = line.replace("{value}", format_value(value))
    line = line.rstrip(".") + "."
    if "recorded" not in result:
        return line
    return f"{line} From the full run recorded on {result['recorded']}."


def headline(result: Mapping) -> str:
    """The verdict of a check in words, or both sides of a contradiction; `result` as
    from `compared`.

    Examples
    --------
    >>> headline({"computed": "fails", "written": "holds", "written_ours": "holds", "agrees": False})
    "contradiction: computed 'fails', the claims list has 'holds'"
    """
    written = result["written"]
    ours = result["written_ours"]
    if result.get("missing"):
        return "not checked"
    if result["agrees"]:
        if written == ours:
            return written
        return f"{written} on the authors' numbers, {ours} on ours"
    sides = [f"computed {result['computed']!r}, the claims list has {written!r}"]
    if "ours" in result or written != ours:
        computed = result.get("ours", result)["computed"]
        sides.append(
            f"on our numbers computed {computed!r}, the claims list has {ours!r}"
        )
    return f"contradiction: {'; '.join(sides)}"


def form_lines(result: Mapping) -> list[str]:
    """One line per form, if there is more than the printed form."""
    lines = []
    for prefix, forms in (
        ("", result["holds"]),
        ("on our numbers, ", result.get("ours", {}).get("holds")),
    ):
        if forms and (prefix or len(forms) > 1):
            # JSON may sort them
            ordered = sorted(forms.items(), key=lambda item: item[0] != _PRINTED)
            lines += [f"{prefix}{form}: {_ANSWERS[answer]}" for form, answer in ordered]
    return lines


def _badge_text(claim: Claim, result: dict) -> str:
    lines = [
        f"{claim.id} ({claim.where}): {headline(result)}",
        claim.statement,
        evidence_line(result),
    ]
    return "\n  ".join(lines + form_lines(result))


def _badge_html(claim: Claim, result: dict) -> str:
    if result.get("missing"):
        kind = "unchecked"
    elif result["agrees"]:
        kind = claim.verdict
    else:
        kind = "contradiction"
    return filled(
        "badge.html",
        claim=claim,
        kind=kind,
        headline=headline(result),
        forms=form_lines(result),
        evidence=evidence_line(result),
        marks=MARKS,
        escape=html.escape,
        rich=_text_html,
    )


def _text_html(text: str) -> str:
    """Escape a text; $math$ becomes what MathJax on the book's pages renders, *words*
    and `code` tags."""
    kept = text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    return _SPAN.sub(_span_html, html.escape(kept, False))


def _span_html(span: re.Match) -> str:
    group = span.lastindex or 1
    return _TAGS[group - 1].format(span[group])
