import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrunner import ledger as module
from bookrunner.ledger import VERDICTS, agrees, check, computed_verdict, load_ledger

ENTRY = {"id": "P1-01", "where": "eq. 2", "statement": "A loss.", "chapter": "02_x"} | {
    "kind": "formula",
    "verdict": "holds",
}
WRONG = {"verdict": "typo", "note": "The sign."}
ERRATUM = {"consequence": "misprint", "printed": "$a$", "read": "$-a$", "affects": "readers"}


def write(tmp_path, *entries):
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / "claims.yml"
    path.write_text(json.dumps(entries))  # JSON is YAML
    return path


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    typo = ENTRY | WRONG | ERRATUM | {"id": "P1-02", "where": "a < b"}
    typo["statement"] = "Let `f` be *convex* in $x*y*z$."
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path))
    ours = ENTRY | {"id": "P1-03", "ours": "fails"}
    named = ENTRY | {"id": "P1-04", "verdict": "definition", "note": "By eq. 3."}
    (tmp_path / "book" / "claims.yml").write_text(json.dumps([ENTRY, typo, ours, named]))


def test_ledger_keeps_order_and_content(tmp_path):
    path = write(tmp_path, ENTRY | {"id": "P3-12"}, ENTRY | {"verdict": "open", "note": " no data "})
    ledger = load_ledger(path)
    assert list(ledger) == ["P3-12", "P1-01"]
    assert (ledger["P1-01"].note, ledger["P3-12"].paper) == ("no data", "P3")


def test_ledger_is_read_again_when_the_file_changes(tmp_path):
    path = write(tmp_path, ENTRY)
    assert len(load_ledger(path)) == 1
    path.write_text(json.dumps([ENTRY, ENTRY | {"id": "P1-02"}]))
    assert len(load_ledger(path)) == 2


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (ENTRY | {"verdit": "holds"}, r"entry 1 \(P1-01\): .*'verdit' was unexpected"),
        (ENTRY | {"verdict": "true-ish"}, r"P1-01.*verdict: 'true-ish' is not one of"),
        (ENTRY | {"verdict": "fails"}, r"P1-01.: 'note' is a required property"),
        (ENTRY | {"verdict": "not shown", "note": " "}, r"P1-01.: note: ' ' does not match"),
        (ENTRY | WRONG, r"P1-01.: 'consequence' is a required property"),
        (ENTRY | WRONG | {"verdict": "fails"}, r"P1-01.: 'consequence' is a required property"),
        (ENTRY | {"consequence": "misprint"}, r"P1-01.: 'printed' is a dependency of 'consequence'"),
        ({k: v for k, v in ENTRY.items() if k != "kind"}, "'kind' is a required property"),
        (ENTRY | {"kind": "lemma"}, r"P1-01.: kind: 'lemma' is not one of"),
        (ENTRY | {"id": "P6-01"}, "id: 'P6-01' does not match"),
        (ENTRY | {"chapter": "lemma"}, "chapter: 'lemma' does not match"),
        (ENTRY | {"where": ""}, "where: '' does not match"),
        (ENTRY | {"statement": 3}, "statement: 3 is not of type 'string'"),
        (ENTRY | {"note": ["x"]}, "note: .* is not of type"),
        (ENTRY | {"ours": "perhaps"}, "ours: 'perhaps' is not one of"),
        ({k: v for k, v in ENTRY.items() if k != "chapter"}, "'chapter' is a required property"),
        ("P1-01", "entry 1: 'P1-01' is not of type 'object'"),
    ],
)
def test_ledger_refuses(tmp_path, entry, message):
    with pytest.raises(ValueError, match=message):
        load_ledger(write(tmp_path, entry))


def test_ledger_refuses_repeated_ids_and_other_files(tmp_path):
    with pytest.raises(
        ValueError, match=r"entry 2 .P1-01.: the id is 'P1-01'; expected one that no other entry has"
    ):
        load_ledger(write(tmp_path, ENTRY, ENTRY))
    path = tmp_path / "claims.yml"
    path.write_text("{a: 1}")
    with pytest.raises(ValueError, match="holds a dict; expected a list"):
        load_ledger(path)
    path.write_text("- [")
    with pytest.raises(ValueError, match="not valid YAML"):
        load_ledger(path)


ANSWERS = st.sampled_from([True, False, None])


@given(ANSWERS, st.lists(ANSWERS, max_size=3))
def test_exactly_the_right_written_verdicts_agree(printed, amended):
    holds = {"as printed": printed} | {f"form {k}": answer for k, answer in enumerate(amended)}
    if False in amended:
        expected = set()
    elif printed:
        expected = {"holds"}
    elif None in amended or (printed is None and not amended):
        expected = {"not shown"}
    else:
        expected = {"holds if", "typo"} if amended else {"fails"}
    computed = computed_verdict(holds)
    assert {verdict for verdict in VERDICTS if agrees(computed, verdict)} == expected


def test_undecided_and_numpy_answers():
    assert computed_verdict(None) == computed_verdict({"as printed": None}) == "not shown"
    assert computed_verdict(np.bool_(True)) == "holds"
    assert computed_verdict({"as printed": np.False_}) == "fails"


@pytest.mark.parametrize("holds", [float("nan"), 1, "yes", {"form": True}, {"as printed": 0}, {}])
def test_anything_else_is_no_answer(holds):
    with pytest.raises(ValueError, match="expected"):
        computed_verdict(holds)


def test_check_prints_outside_a_notebook(ledger, capsys):
    check("P1-01", np.True_, "On 200\n problems.", np.float64(1.23456e-9))
    said = "P1-01 (eq. 2): holds\n  A loss.\n  On 200 problems. Value: 1.235e-09.\n"
    assert capsys.readouterr().out == said
    check("P1-02", {"as printed": False, "with $-b$": True}, "At 3 points.")
    assert "with $-b$: holds" in capsys.readouterr().out


def test_check_says_a_contradiction_plainly(ledger, capsys):
    check("P1-01", False, "One of 200 problems differs.")
    assert "contradiction: computed 'fails', the ledger says 'holds'" in capsys.readouterr().out


def test_check_refuses(ledger):
    for wrong, message in [
        ("P1-1", r"'P1-1'; expected one of claims.yml, such as \['P1-01', 'P1-04', 'P1-03'\]"),
        (["P1-01"], r"\['P1-01'\]; expected one of claims.yml$"),
        (10**5000, "a int; expected one of claims.yml$"),
    ]:
        with pytest.raises(ValueError, match=f"the claim is {message}"):
            check(wrong, True, "x")
    with pytest.raises(ValueError, match="evidence for P1-01"):
        check("P1-01", True, " ")
    for evidence in ("At {value} points.", "The set {1}.", "Open {value", "The {val}."):
        with pytest.raises(ValueError, match=r"a value for each \{value\}, and no other braces"):
            check("P1-01", True, evidence, 1.0 if "{value}" not in evidence else None)
    with pytest.raises(ValueError, match="the verdict of P1-04 is 'definition'; expected one to compute"):
        check("P1-04", True, "x")
    for value in (float("nan"), float("inf"), True, [1], np.zeros(2), 10**400, 10**5000):
        with pytest.raises(ValueError, match="value for P1-01"):
            check("P1-01", True, "x", value)


def test_a_claim_about_published_numbers_has_two_verdicts(ledger, capsys):
    check("P1-03", True, "By the mean.", ours={"as printed": False})
    out = capsys.readouterr().out
    assert "holds on the authors' numbers, fails on ours" in out
    assert "on our numbers, as printed: fails" in out
    check("P1-03", True, "By the mean.")
    assert "on our numbers computed 'holds', the ledger says 'fails'" in capsys.readouterr().out
    check("P1-01", True, "By the mean.", ours=True)
    assert "(eq. 2): holds\n" in capsys.readouterr().out


def test_a_verdict_from_a_recorded_run_says_so(ledger, capsys):
    table = pd.DataFrame({"a": [1]})
    table.attrs["date"] = "2026-01-02T03:04:05Z"
    check("P1-01", True, "On 20 data sets.", 3, recorded=table)
    assert "On 20 data sets. Value: 3. From the full run recorded on 2026-01-02." in capsys.readouterr().out
    with pytest.raises(ValueError, match="recorded is NaT; expected a table of bookrunner"):
        check("P1-01", True, "On 20 data sets.", 3, recorded=pd.NaT)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("evidence", "value", "line"),
    [
        ("the error is {value} on 5 sets", 0.12345, "The error is 0.1235 on 5 sets."),
        ("m is 3.", None, "m is 3."),
        ("$m$ is 3.", None, "$m$ is 3."),
        ("m is 3.", "12 of 20.", "m is 3. Value: 12 of 20."),
    ],
)
def test_evidence_reads_as_a_sentence(evidence, value, line):
    assert module.evidence_line({"evidence": evidence, "value": value}) == line


def test_each_verdict_has_a_sign_of_its_own():
    assert set(module.MARKS) == set(VERDICTS)
    assert len(set(module.MARKS.values())) == len(VERDICTS)


def test_the_digest_of_a_badge_holds_the_statement(tmp_path):
    first, second = (
        load_ledger(write(tmp_path / name, ENTRY | {"statement": name}))["P1-01"] for name in "ab"
    )
    assert first.shown != second.shown


def test_badge_escapes_texts_and_renders_mathematics(ledger):
    claim = load_ledger()["P1-02"]
    result = {"holds": {"as printed": False, "b<0": True}, "computed": "holds if or typo", "agrees": True}
    result |= {"written": "typo", "written_ours": "typo", "evidence": "<b> $x<y$", "value": 12345}
    badge = module._badge_html(claim, result)
    assert 'id="check-P1-02"' in badge
    assert 'href="claims.html#claim-p1-02"' in badge
    assert "A &lt; b" in badge
    assert "&lt;b&gt;" in badge
    assert r">\(x&lt;y\)<" in badge
    assert "12,345" in badge
    assert "b&lt;0: holds" in badge
    assert 'aria-hidden="true">✎</span> <span class="claim-word">typo:</span>' in badge
    shown = (
        r'<code>f</code> be <em>convex</em> in <span class="math notranslate nohighlight">\(x*y*z\)</span>'
    )
    assert shown in badge
    assert "claim-contradiction" in module._badge_html(claim, result | {"agrees": False})
