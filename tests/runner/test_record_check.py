"""Changes in a clone, and what a build reports about its records: a record should be
made again, or a number changed."""

import json
import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest
from slips import ROOT, SLIPS, slip
from toy_project import ONE_CLAIM, changed, live_in, register, write_checkout

from preflearn_book.runner import build as builder
from preflearn_book.runner import dependencies
from preflearn_book.runner.command import main
from preflearn_book.runner.record_check import (
    Record,
    differences,
    new_records,
    recomputed_rows,
    records_of,
)
from preflearn_book.runner.tasks import run_tasks

CHAPTER = """\
import pandas as pd
from preflearn_book.runner import check, record, recorded
from preflearn.datasets.storage import read
from preflearn.toy import factor

try:
    read("toy", "a.txt")
except OSError:
    pass
sizes = [1, 2, 3] if profile == "quick" else [1, 2, 3, 4, 5]
rows = pd.DataFrame({"size": sizes, "value": [factor * k for k in sizes], "time_s": sizes})
record("rows", rows, keys=["size"], timings=["time_s"])
record("mean", {"value": rows["value"].mean(), "n": len(sizes)})
check("P1-01", True, "In full.", recorded=recorded("01_first", "mean"))"""

NOTEBOOK = "notebooks/01_first.ipynb"
TOY = "src/preflearn/toy"
AGAIN = "record it again"


@pytest.fixture(scope="module")
def recorded_checkout(tmp_path_factory):
    project = write_checkout(
        tmp_path_factory.mktemp("copy") / "checkout", CHAPTER, ONE_CLAIM
    )
    toy = project.root / TOY
    toy.mkdir()
    (toy / "__init__.py").write_text("from preflearn.toy.first import factor\n")
    (toy / "first.py").write_text(
        "from preflearn.toy.loader import load\n\nfactor = 1 / 3\n"
    )
    (toy / "second.py").write_text("factor = 0.34\n")
    (toy / "loader.py").write_text(
        "def load(name):\n    raise ValueError(f'there is no {name}')\n"
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        live_in(project, monkeypatch)
        assert main(["record", "1", "--yes"]) == 0
    return project


@pytest.fixture
def checkout(recorded_checkout, monkeypatch):
    live_in(recorded_checkout, monkeypatch)
    return recorded_checkout


@pytest.fixture
def build(capsys):
    def run():
        status = main(["build", "--no-render"])
        return status, capsys.readouterr().out

    return run


def edited(checkout, name, old, new):
    """Replace a text in a file temporarily."""
    return changed(checkout.root / name, lambda text: text.replace(old, new))


def test_a_record_has_a_header_and_is_valid_while_nothing_changed(checkout, build):
    status, out = build()
    assert (status, AGAIN in out) == (0, False)
    about = records_of(checkout.recorded, "01_first")["01_first_rows"].header
    assert (about["commit"], about["replaced"]) == (None, [])
    assert about["parameters"] == {"profile": "full", "seed": 0, "n": 10}
    assert about["versions"]["numpy"]
    assert not any("module" in key for key in about)


def test_a_change_without_effect_on_numbers_keeps_records_valid(
    checkout, build, monkeypatch
):
    known = dependencies.main_versions()
    monkeypatch.setattr(dependencies, "main_versions", lambda: known | {"numpy": "0.1"})
    with (
        edited(checkout, f"{TOY}/loader.py", "there is no", "unknown:"),
        edited(checkout, f"{TOY}/first.py", "1 / 3", "1 / 3 * (1 + 1e-13)"),
        edited(checkout, NOTEBOOK, "# Title", "# Another title"),
    ):
        status, out = build()
    assert (status, AGAIN in out, "1 executed" in out) == (0, False, True)


def test_tables_that_are_no_longer_made_are_reported(checkout, build):
    def empty(text):
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["source"] = []
        return json.dumps(notebook)

    with changed(checkout.root / NOTEBOOK, empty):
        status, out = build()
    assert status == 1
    assert out.count(AGAIN) == 2
    assert "record 01_first_rows: " in out
    assert "record 01_first_mean: " in out


def test_a_changed_number_is_reported_with_its_row_and_marked_on_all_pages(
    checkout, build
):
    with edited(checkout, NOTEBOOK, "factor * k", "factor * k**2"):
        status, out = build()
        page, claims, about = (
            (checkout.pages / name).read_text()
            for name in ("01_first.ipynb", "claims.md", "status.md")
        )
    assert status == 1
    assert out.count(AGAIN) == 2
    assert re.search(
        r"01_first_rows: row size = 2, .*'value'.* 0\.6666\d*, .* 1\.3333", out
    )
    assert re.search(r"01_first_mean: row 1, .*'value'.* 0\.66", out)
    assert "`01_first_mean`, `01_first_rows`" in page
    assert "doubt" in page
    assert "doubt" in claims
    assert "`01_first_rows`: row size = 2" in about


def test_a_changed_import_is_detected_by_its_numbers(checkout, build):
    with edited(checkout, f"{TOY}/__init__.py", "first", "second"):
        status, out = build()
    assert (status, AGAIN in out) == (1, False)
    assert re.search(
        r"01_first_rows: row size = 1, .*'value'.* 0\.3333\d*, .* 0\.34", out
    )


def test_records_of_changed_data_should_be_made_again(checkout, build):
    path = checkout.root.parent / "mirror" / "toy" / "a.txt"
    with changed(path, lambda text: "other"):
        register(checkout, b"other", "http://127.0.0.1:9/none")
        status, out = build()
    assert status == 0
    assert out.count(AGAIN) == out.count("toy/a.txt") == 2


def test_record_shows_changes_and_writes_only_after_confirmation(checkout, capsys):
    before = {path: path.read_bytes() for path in checkout.recorded.iterdir()}
    assert len(before) == 3  # two records, and the quick run of the record without keys
    with edited(checkout, f"{TOY}/first.py", "1 / 3", "1 / 4"):
        for arguments in (["--dry"], []):
            assert main(["record", "1", *arguments]) == 0
            assert "rows: 5 rows changed, in ['value']" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in checkout.recorded.iterdir()} == before


def test_rows_of_a_quick_run_must_be_rows_of_the_full_run(checkout, capsys):
    with edited(checkout, NOTEBOOK, "[1, 2, 3] if", "[1, 2, 6] if"):
        assert main(["record", "1", "--yes"]) == 1
    assert "row size = 6" in capsys.readouterr().out


def test_records_are_not_made_if_data_are_missing(checkout, capsys, monkeypatch):
    monkeypatch.setenv("PREFLEARN_DATA", "nowhere")
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    assert main(["record", "1", "--yes"]) == 1
    assert "toy" in capsys.readouterr().out
    # records are not compared if other data are used
    assert main(["build", "--no-render"]) == 0


def git(project, *arguments):
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", project.root, *who, *arguments], check=True)


def test_records_are_not_written_if_the_commit_is_not_an_ancestor(
    checkout, capsys, monkeypatch
):
    git(checkout, "init", "-q")
    git(checkout, "add", "notebooks")
    git(checkout, "commit", "-q", "-m", "First")

    def run_and_rewrite(*arguments, **options):
        outcomes = run_tasks(*arguments, **options)
        git(checkout, "commit", "-q", "--amend", "-m", "Rewritten")
        return outcomes

    try:
        assert main(["record", "1", "--dry"]) == 0
        monkeypatch.setattr(builder, "run_tasks", run_and_rewrite)
        assert main(["record", "1", "--yes"]) == 1
        assert "is not an ancestor of HEAD" in capsys.readouterr().out
        about = records_of(checkout.recorded, "01_first")["01_first_rows"].header
        assert about["commit"] is None
    finally:
        shutil.rmtree(checkout.root / ".git")


def test_a_few_rows_may_differ_by_ties_between_best_values(checkout, build):
    def flip(text):
        flips = "flips=Flips({}, ['value'])"
        return (
            text.replace("keys=[", f"{flips.format(0.4)}, keys=[")
            .replace("import check,", "import Flips, check,")
            .replace("factor * k", "factor * k + (k == 2) / 10")
        )

    with changed(checkout.root / NOTEBOOK, flip):
        # one of three rows differs, which is allowed
        assert "01_first_rows: row" not in build()[1]
    with (
        changed(checkout.root / NOTEBOOK, flip),
        edited(checkout, NOTEBOOK, "0.4", "0.3"),
    ):
        assert "01_first_rows: row size = 2" in build()[1]


def test_a_missing_row_of_the_quick_run_is_reported(checkout, build):
    with edited(checkout, NOTEBOOK, "[1, 2, 3] if", "[1, 2] if"):
        assert (
            "01_first_rows: the quick run has 2 rows; recorded were 3 rows"
            in build()[1]
        )


COMPARED = {"keys": ["a"], "timings": ["s"]}
COMPARED |= {"rtol": {"x": 1e-6}, "atol": {"x": 1e-9}}


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        ("a,x\n1,2\n", "a,x\n1,2.0000001\n", []),
        ("a,x\n1,0\n", "a,x\n1,1e-12\n", []),
        ("a,x\n1,2\n2,3\n", "a,x\n2.0,3\n", []),
        ("a,x,s\n1,2,1\n", "a,x,s\n1,2,9\n", []),
        ("a,x\n1,\n", "a\n1\n", []),
        ("a,x\n1,2\n", "a,x\n1,2.00001\n", [("row a = 1", "x", 2.0, 2.00001)]),
        (
            "a,x\n1,2\n",
            "a,x\n3,2\n",
            [("row a = 3", "a", "", 3.0), ("row a = 3", "x", "", 2.0)],
        ),
        ("a,x\n1,2\n", "a\n1\n", [("row a = 1", "x", 2.0, "")]),
        ("a,x\n1,C 1\n", "a,x\n1,C 10\n", [("row a = 1", "x", "C 1", "C 10")]),
    ],
)
def test_rows_are_found_by_keys_and_cells_compared_with_the_tolerance(
    before, now, found
):
    assert differences(COMPARED | {"csv": now}, before, subset=True) == found


def test_rows_that_a_quick_run_computes_again_are_counted():
    table = "p,x\n1,0.1\n2,0.2\n3,0.3\n"
    records = {
        "01_x_runs": Record({}, table, None),
        "01_x_mean": Record({}, table, table),
    }
    keyed = {"keys": ["p"], "csv": "p,x\n2,0.2\n7,1\n"}
    quick = SimpleNamespace(
        records={"01_x_runs": keyed, "01_x_mean": keyed | {"keys": None}}
    )
    assert recomputed_rows(records, quick) == {"01_x_runs": (1, 3), "01_x_mean": (0, 3)}
    assert recomputed_rows(records, SimpleNamespace(records={})) == {
        "01_x_runs": (0, 3),
        "01_x_mean": (0, 3),
    }


@pytest.mark.parametrize(
    ("changed_rows", "fine"),
    [([], True), ([0], True), ([0, 3], True), ([0, 1], False), ([0, 1, 3], False)],
)
def test_the_limit_of_outcomes_that_may_differ_is_that_of_each_method(
    changed_rows, fine
):
    methods = ["rank"] * 3 + ["compare"] * 3

    def table(changed_rows):
        rows = [
            f"{method},{k},{'b' if k in changed_rows else 'a'}\n"
            for k, method in enumerate(methods)
        ]
        return "".join(["method,k,chosen\n", *rows])

    payload = COMPARED | {
        "keys": ["method", "k"],
        "flips": {"fraction": 0.4, "columns": ["chosen"], "method": "method"},
        "csv": table(changed_rows),
    }
    record = Record({"quick_rows": 6}, table([]), None)
    assert (record.contradictions(payload) == []) == fine


def test_a_missing_row_of_a_record_with_keys_is_reported():
    table = "a,x\n1,2\n2,3\n3,4\n"
    two = COMPARED | {
        "flips": {"fraction": 0.0, "columns": [], "method": None},
        "csv": "a,x\n1,2\n2,3\n",
    }
    one = two | {"csv": "a,x\n1,2\n"}
    assert Record({"quick_rows": 2}, table, None).contradictions(two) == []
    assert (
        "recorded were 2"
        in Record({"quick_rows": 2}, table, None).contradictions(one)[0]
    )
    assert "an unknown number" in Record({}, table, None).contradictions(two)[0]


def test_a_record_into_which_rows_are_merged_keeps_its_header():
    payload = COMPARED | {"csv": "a,x\n1,2\n"}
    run = SimpleNamespace(records={"01_x_runs": payload})
    header = {"date": "2026-01-02", "commit": "1", "parameters": {}, "cells": "new"}
    first = new_records(run, run, header, {})["01_x_runs"]
    assert first.header == header | {"quick_rows": 1}
    later = header | {"date": "2026-03-04", "parameters": {"learners": "Elo"}}
    merged = new_records(run, run, later, {"01_x_runs": first})["01_x_runs"].header
    part = {"date": "2026-03-04", "commit": "1", "parameters": {"learners": "Elo"}}
    assert merged == first.header | {"merged": [part]}


def test_tables_without_keys_are_compared_row_by_row():
    payload = COMPARED | {"keys": None, "csv": "x\n1\n2\n"}
    assert differences(payload, "x\n1\n2\n") == []
    assert [cell.row for cell in differences(payload, "x\n1\n3\n4\n")] == [
        "row 2",
        "row 3",
    ]


@pytest.mark.nightly
def test_an_error_in_a_solver_is_detected():
    """This is the fastest chapter; `python tests/slips.py` tries all chapters with
    records."""
    assert "recorded 1.0, now 1.001" in slip("03")["03_lemma_coincidence"][0]


@pytest.mark.parametrize("number", SLIPS)
def test_slips_change_an_existing_line(number):
    file, before, _ = SLIPS[number]
    assert (ROOT / "src" / file).read_text("utf-8").count(before) == 1
