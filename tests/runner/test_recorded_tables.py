"""The tables in data/recorded. The check of a build detects a single wrong method, and
the commits are ancestors of HEAD."""

import ast
import csv
import io
import json
import subprocess
from functools import cache

import pytest
from slips import ROOT

from preflearn_book.runner import Flips
from preflearn_book.runner.record_check import Record, records_of
from preflearn_book.runner.records import split_table

RECORDED = ROOT / "data" / "recorded"


def flips_in_notebooks():
    """Return the `Flips` of each record that has them, by chapter and name."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code" and "flips=" in source:
                for name, flips in flips_in_source(source):
                    found[path.stem, name] = flips
    return found


def flips_in_source(source):
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call):
            for keyword in call.keywords:
                if keyword.arg == "flips":
                    name = ast.literal_eval(call.args[0])
                    yield name, Flips(*map(ast.literal_eval, keyword.value.args))


FLIPS = flips_in_notebooks()
NAMES = pytest.mark.parametrize("name", FLIPS, ids="_".join)


@cache
def load(name):
    """Return a record with few rows, the same rows, and the columns of its keys."""
    record = records_of(RECORDED, name[0])["_".join(name)]
    if record.quick_table:
        return record, parsed(record.quick_table), None
    rows = parsed(record.table)
    keys = key_columns(rows)
    groups = {}
    for row in rows:
        groups.setdefault(row[FLIPS[name].method], []).append(row)
    rows = [row for group in groups.values() for row in group[:6]]
    header = {"quick_rows": len(rows)}
    return Record(header, csv_text(rows), None), rows, keys


def parsed(text):
    return list(csv.DictReader(io.StringIO(text)))


def csv_text(rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def key_columns(rows):
    """Return the smallest number of first columns that identify a row."""
    for n_columns in range(1, len(rows[0]) + 1):
        names = list(rows[0])[:n_columns]
        if len({tuple(row[name] for name in names) for row in rows}) == len(rows):
            return names
    raise AssertionError("two rows are equal")


def payload_of(rows, keys, flips):
    """Return the payload that `record` stores for these rows in a notebook."""
    exact = dict.fromkeys(rows[0], 1e-9)
    return {
        "csv": csv_text(rows),
        "keys": keys,
        "rtol": exact,
        "atol": exact,
        "timings": [],
        "flips": flips._asdict(),
    }


def contradictions(name, change=lambda rows: rows):
    record, rows, keys = load(name)
    return record.contradictions(payload_of(change(rows), keys, FLIPS[name]))


def methods(name):
    """Return the methods of a record, each as the change that makes all its outcomes
    wrong."""
    rows = load(name)[1]
    flips = FLIPS[name]
    if flips.method is None:
        return [({}, column) for column in flips.columns]
    values = {row[flips.method] for row in rows}
    return [({flips.method: value}, flips.columns[0]) for value in sorted(values)]


@NAMES
def test_an_unchanged_table_passes(name):
    assert contradictions(name) == []


@NAMES
def test_a_method_with_another_loss_in_each_row_is_reported(name):
    for which, column in methods(name):

        def broken(rows, which=which, column=column):
            return [
                row | {column: "0.999"} if which.items() <= row.items() else row
                for row in rows
            ]

        assert contradictions(name, broken), (which, column)


@NAMES
def test_a_method_that_is_missing_in_the_record_is_reported(name):
    def renamed(rows):
        column = FLIPS[name].method or next(iter(rows[0]))
        return [*rows, rows[0] | {column: "another one"}]

    assert contradictions(name, renamed)


@NAMES
def test_a_method_that_is_missing_in_the_run_is_reported(name):
    def shortened(rows):
        column = FLIPS[name].method or next(iter(rows[0]))
        return [row for row in rows if row[column] != rows[0][column]]

    if FLIPS[name].method is None:
        assert load(name)[0].quick_table, "a row that is missing would not be noticed"
    assert contradictions(name, shortened)


def test_flips_are_counted_for_each_method_and_column():
    flips = Flips(0.5, ["loss"], "method")
    recorded = "method,loss,size\na,1,1\na,1,1\nb,1,1\nb,1,1\n"
    record = Record({}, recorded, recorded)
    rows = parsed(recorded)

    def check(**changes):
        changed = [
            row | changes.get(f"row_{number}", {}) for number, row in enumerate(rows)
        ]
        return record.contradictions(payload_of(changed, None, flips))

    assert check(row_0={"loss": "2"}, row_2={"loss": "2"}) == []
    assert len(check(row_0={"loss": "2"}, row_1={"loss": "2"})) == 2
    assert len(check(row_0={"size": "2"})) == 1


def git(*arguments):
    done = subprocess.run(
        ["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.strip()


@pytest.mark.skipif(
    git("rev-parse", "--is-shallow-repository") != (0, "false"),
    reason="no git checkout with its history",
)
def test_the_commits_of_records_are_ancestors_of_head():
    unknown = set()
    ancestors = set(git("rev-list", "HEAD")[1].split())
    for path in sorted(RECORDED.glob("*.csv")):
        header, _ = split_table(path.read_text("utf-8"))
        if "commit" in header and header["commit"] not in ancestors:
            unknown.add(path.stem)
    assert unknown == set()
