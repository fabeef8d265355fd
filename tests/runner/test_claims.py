import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn_book.runner import claims as module
from preflearn_book.runner.claims import (
    VERDICTS,
    agrees,
    check,
    computed_verdict,
    load_claims,
)

ENTRY = {"id": "P1-01", "where": "eq. 2", "statement": "A loss.", "chapter": "02_x"} | {
    "kind": "formula",
    "verdict": "holds",
}
WRONG = {"verdict": "typo", "note": "The sign."}
ERRATUM = {
    "consequence": "misprint",
    "printed": "$a$",
    "read": "$-a$",
    "affects": "readers",
}


def write(tmp_path, *entries):
    path = tmp_path / "claims.yml"
    path.write_text(json.dumps(entries))  # JSON is a subset of YAML
    return path


@pytest.fixture
def claims(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    typo = ENTRY | WRONG | ERRATUM | {"id": "P1-02", "where": "a < b"}
    typo["statement"] = "Let `f` be *convex* in $x*y*z$."
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path))
    ours = ENTRY | {"id": "P1-03", "ours": "fails"}
    definition = ENTRY | {"id": "P1-04", "verdict": "definition", "note": "By eq. 3."}
    definition["kind"] = "background check"
    write(tmp_path / "book", ENTRY, typo, ours, definition)


def test_load_claims_keeps_order_and_rereads_a_changed_file(
    tmp_path,
):
    path = write(
        tmp_path,
        ENTRY | {"id": "P3-12"},
        ENTRY | {"verdict": "open", "note": " no data "},
    )
    claims = load_claims(path)
    assert list(claims) == ["P3-12", "P1-01"]
    assert (claims["P1-01"].note, claims["P3-12"].paper) == ("no data", "P3")
    write(tmp_path, ENTRY)
    assert len(load_claims(path)) == 1


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        (ENTRY | {"verdit": "holds"}, "P1-01.*'verdit'"),
        (ENTRY | {"verdict": "true-ish"}, "P1-01.*verdict: 'true-ish'"),
        (ENTRY | {"verdict": "definition", "note": "So."}, "P1-01.*background check"),
        (ENTRY | {"verdict": "fails"}, "P1-01.*'note'"),
        (ENTRY | {"verdict": "not shown", "note": " "}, "P1-01.*note"),
        (ENTRY | WRONG, "P1-01.*'consequence'"),
        (ENTRY | WRONG | {"verdict": "fails"}, "P1-01.*'consequence'"),
        (ENTRY | {"consequence": "misprint"}, "P1-01.*'printed'"),
        ({"id": "P1-01"}, "P1-01.*required"),
        (ENTRY | {"id": "P6-01"}, "id: 'P6-01'"),
        (ENTRY | {"where": ""}, "where"),
        (ENTRY | {"ours": "perhaps"}, "ours: 'perhaps'"),
        ("P1-01", "entry 1"),
    ],
)
def test_the_error_names_a_bad_entry(tmp_path, entry, named):
    with pytest.raises(ValueError, match=named):
        load_claims(write(tmp_path, entry))


@pytest.mark.parametrize(
    ("text", "named"),
    [(json.dumps([ENTRY] * 2), "entry 2.*P1-01"), ("{a: 1}", "list"), ("- [", "YAML")],
)
def test_repeated_ids_and_other_files_raise_an_error(tmp_path, text, named):
    (tmp_path / "claims.yml").write_text(text)
    with pytest.raises(ValueError, match=named):
        load_claims(tmp_path / "claims.yml")


ANSWERS = st.sampled_from([True, False, None])


@given(ANSWERS, st.lists(ANSWERS, max_size=3))
def test_each_computation_agrees_with_exactly_the_right_verdicts(printed, amended):
    holds = {"as printed": printed} | {
        f"form {k}": answer for k, answer in enumerate(amended)
    }
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
    assert (
        computed_verdict(None) == computed_verdict({"as printed": None}) == "not shown"
    )
    assert computed_verdict(np.bool_(True)) == "holds"
    assert computed_verdict({"as printed": np.False_}) == "fails"


@pytest.mark.parametrize(
    "holds", [float("nan"), 1, "yes", {"form": True}, {"as printed": 0}, {}]
)
def test_other_values_are_rejected_as_answers(holds):
    with pytest.raises(ValueError, match="expected"):
        computed_verdict(holds)


def test_check_prints_outside_a_notebook(claims, capsys):
    check("P1-01", np.True_, "On 200\n problems.", np.float64(1.23456e-9))
    text = capsys.readouterr().out
    assert all(
        part in text
        for part in ("P1-01 (eq. 2): holds", "A loss.", "On 200 problems.", "1.235e-09")
    )
    check("P1-02", {"as printed": False, "with $-b$": True}, "At 3 points.")
    assert "with $-b$: holds" in capsys.readouterr().out
    check("P1-01", False, "One of 200 problems differs.")
    assert "contradiction" in capsys.readouterr().out


def test_a_claim_about_published_numbers_has_two_verdicts(claims, capsys):
    check("P1-03", True, "By the mean.", ours={"as printed": False})
    assert "contradiction" not in capsys.readouterr().out
    check("P1-03", True, "By the mean.")
    assert re.search("our numbers.*'holds'.*'fails'", capsys.readouterr().out)


def test_a_verdict_from_a_recorded_run_has_its_date(claims, capsys):
    table = pd.DataFrame({"a": [1]})
    table.attrs["date"] = "2026-01-02T03:04:05Z"
    check("P1-01", True, "On 20 data sets.", 3, recorded=table)
    assert "2026-01-02." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        (("P1-1", True, "x"), {}, "'P1-1'.*'P1-01'"),
        (("P1-01", True, " "), {}, "evidence.*P1-01"),
        (("P1-01", True, "At {value} points."), {}, "value"),
        (("P1-04", True, "x"), {}, "P1-04.*'definition'"),
        (("P1-01", True, "x", float("nan")), {}, "value.*P1-01"),
        (("P1-01", True, "x", 10**400), {}, "value.*P1-01"),
    ],
)
def test_check_names_bad_arguments(claims, arguments, options, named):
    with pytest.raises(ValueError, match=named):
        check(*arguments, **options)


@pytest.mark.parametrize(
    ("evidence", "value", "line"),
    [
        ("the error is {value} on 5 sets", 0.12345, "The error is 0.1235 on 5 sets."),
        ("$m$ is 3.", None, "$m$ is 3."),
        ("m is 3.", "12 of 20.", "m is 3. Value: 12 of 20."),
    ],
)
def test_evidence_reads_as_a_sentence(evidence, value, line):
    assert module.evidence_line({"evidence": evidence, "value": value}) == line


def test_each_verdict_has_a_different_sign():
    assert set(module.MARKS) == set(VERDICTS)
    assert len(set(module.MARKS.values())) == len(VERDICTS)


def test_the_digest_of_a_badge_depends_on_the_statement(tmp_path):
    first, second = (
        load_claims(write(tmp_path, ENTRY | {"statement": text}))["P1-01"].badge_digest
        for text in ("A.", "B.")
    )
    assert first != second


def test_a_badge_escapes_texts_and_renders_mathematics(claims):
    claim = load_claims()["P1-02"]
    result = {
        "holds": {"as printed": False, "b<0": True},
        "computed": "holds if or typo",
        "agrees": True,
    }
    result |= {
        "written": "typo",
        "written_ours": "typo",
        "evidence": "<b> $x<y$",
        "value": 12345,
    }
    badge = module._badge_html(claim, result)
    for part in (
        *(
            'id="check-P1-02"',
            'href="claims.html#claim-p1-02"',
            'class="claim-word">typo:<',
        ),
        *("A &lt; b", "&lt;b&gt;", r">\(x&lt;y\)<", "b&lt;0: holds", "12,345"),
        *("<code>f</code>", "<em>convex</em>", r">\(x*y*z\)</span>"),
    ):
        assert part in badge
    assert "claim-contradiction" in module._badge_html(
        claim, result | {"agrees": False}
    )
