"""The claims list: statements of the five papers, and the computed verdicts.

A chapter checks a claim with `check`, which shows a badge and stores a machine-readable
output in the executed notebook. The book collects these outputs and compares them with
the verdicts in the claims list.
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
"""The verdicts of the claims list, each with the sign that is shown before the word.

`computed_verdict` and `agrees` define when a verdict agrees with a computation. A
statement that is true by the paper's own definitions is a definition, and a statement
that was not tested is open. No chapter checks these two.
"""
VERDICTS = tuple(MARKS)
COUNTED_VERDICTS = VERDICTS[1:]
"""The verdicts of claims. Only a background check can be a definition."""
REPRODUCTION = "reproduction"
"""Kind of our own results, which are listed separately from the papers' claims."""
BACKGROUND = "background check"
"""Kind of textbook identities, trivial statements, choices of a protocol, and statements
whose error is counted at another claim. They are computed like claims, but they are not
counted, and chapter pages do not show them."""
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

    If a claim is about numbers that the authors published, `verdict` is the verdict on
    their numbers, and `ours` is the verdict on the book's own numbers if it differs. If
    something is wrong, `consequence` says how serious it is, and the errata page shows
    what is `printed`, what to `read` instead, and who or what it `affects`.
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
        """A digest of the content of a chapter's badge. The note is not part of it; only
        the claims page shows the note."""
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
        Claims by id, in the order of the file.

    Raises
    ------
    ValueError
        For an unknown or missing key, a malformed or repeated id, or an unknown verdict;
        if a verdict other than "holds" has no note, an error has no consequence, or a
        consequence has no erratum. The message names the entry.
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
            f"{path.name} contains a {type(entries).__name__}; expected a list of entries"
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
    """Return the verdict that a computation supports; `check` explains `holds`.

    Returns
    -------
    str
        "holds", "holds if or typo", "fails", "not shown", or "inconsistent" if an amended
        form fails too. No verdict describes the last case.

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
        # numpy.bool_ is allowed; NumPy is not imported here.
        good = answer is None or type(answer).__name__ in ("bool", "bool_")
        require(good, answer, f"holds[{form!r}]", "True, False or None")
        forms[form] = answer if answer is None else bool(answer)
    return forms


def agrees(computed: str, written: str) -> bool:
    """Whether a result of `computed_verdict` agrees with a verdict of the claims list.

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
    """Check a claim: show a badge with the verdict, and store the result in the
    notebook.

    A chapter checks each of its claims once. A background check shows a badge only if
    it contradicts the claims list.

    Parameters
    ----------
    claim_id : str
        Id in the claims list, such as "P1-07".
    holds : bool, None or mapping of str to these
        Whether the claim holds as printed; None if the computation does not decide. A
        mapping gives the answer for "as printed" and for amended forms: the condition
        under which the claim holds, or the corrected formula, such as ``{"as printed":
        False, "with at least one tie": True}``.
    evidence : str
        One sentence that says what was computed, on which cases, with which tolerance.
        It may contain $math$, and ``{value}`` in place of the value.
    value : number or str, optional
        The decisive number, such as the largest deviation. If the sentence does not
        contain ``{value}``, the number follows the sentence as "Value: ...".
    ours : bool, None or mapping of str to these, optional
        Answer of the chapter's own numbers, if `holds` is the answer of the authors'
        published numbers.
    recorded : DataFrame, optional
        Table of `preflearn_book.runner.recorded` from which the answer was computed;
        the badge shows its date. None for an answer from this run.
    missing : sequence of str
        Names of data sets that the answer needs and that are not available. With any
        missing data set the claim is not checked, even if other data gave an answer,
        and the badge gives the reason.

    Raises
    ------
    ValueError
        If the id is not in the claims list, or its verdict there is "definition" or
        "open"; if an answer is not True, False or None, the evidence is empty, or the
        value is not finite.

    Notes
    -----
    A verdict that contradicts the claims list does not raise an error, so that readers
    can change the parameters. The badge reports it, and the build of the book fails.
    """
    claims = load_claims()
    near = get_close_matches(claim_id, claims)
    expected = f"an id in claims.yml, such as one of {near}"
    require(claim_id in claims, claim_id, "the claim", expected)
    what = f"the evidence for {claim_id}"
    require(evidence.strip(), evidence, what, "a sentence")
    has_value = value is not None or "{value}" not in evidence
    require(has_value, evidence, what, "a value for {value}")
    if value is not None:
        value = plain_scalar(f"the value for {claim_id}", value)
    if missing:
        evidence = (
            f"The answer needs data that are not available: {', '.join(missing)}."
        )
        holds = None
        value = None
        ours = "the same"
        recorded = None
    claim = claims[claim_id]
    what = f"the verdict of {claim_id}"
    good = claim.verdict not in UNCOMPUTED
    require(good, claim.verdict, what, "a verdict that can be computed")
    note_read(f"claim {claim_id}", claim.badge_digest)
    result = {
        "id": claim_id,
        "holds": _forms(holds),
        "computed": computed_verdict(holds),
        "evidence": re.sub(r"[ \t\n]+", " ", evidence).strip(),  # keeps no-break spaces
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
    """Compare the result of a check with the claims list: add `written`, `written_ours`
    and `agrees`.

    A check whose data are missing never contradicts the list.
    """
    written = claim.verdict
    ours = claim.ours or claim.verdict
    computed_ours = result.get("ours", result)["computed"]
    agreed = agrees(result["computed"], written) and agrees(computed_ours, ours)
    agreed = agreed or bool(result.get("missing"))
    return result | {"written": written, "written_ours": ours, "agrees": agreed}


def format_value(value: float | int | str) -> str:
    """Format a value for readers: four significant digits, thousands separators.

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
    """Format the evidence of a check: a sentence, its value, and the date of a recorded
    run.

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
    return f"{line} The full run was recorded on {result['recorded']}."


def headline(result: Mapping) -> str:
    """Return the verdict of a check in words, or both sides of a contradiction;
    `result` is a return value of `compared`.

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
    """Return one line per form, if there are other forms than the printed one."""
    lines = []
    for prefix, forms in (
        ("", result["holds"]),
        ("on our numbers, ", result.get("ours", {}).get("holds")),
    ):
        if forms and (prefix or len(forms) > 1):
            # JSON may have sorted the forms.
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
    """Convert a text to HTML: $math$ becomes math for MathJax, *words* and `code`
    become tags, and other characters are escaped."""
    kept = text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    return _SPAN.sub(_span_html, html.escape(kept, False))


def _span_html(span: re.Match) -> str:
    group = span.lastindex or 1
    return _TAGS[group - 1].format(span[group])
