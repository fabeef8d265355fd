"""Check recorded tables against the quick run of the same notebook.

Where a recorded table has keys, the rows of the quick run are rows of the record.
Otherwise the quick run's whole table is kept next to the record, as
``NAME.witness.csv``. A record is valid while the quick run reproduces these rows. If
code cells or data changed, the record should be made again.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from preflearn_book.runner.dependencies import State
from preflearn_book.runner.files import write_atomically
from preflearn_book.runner.outputs import Executed
from preflearn_book.runner.project import Chapter
from preflearn_book.runner.records import filled, split_table

QUICK_SUFFIX = ".witness.csv"  # of the tables of quick runs, in data/recorded

Row = Mapping[str, float | str]


class Difference(NamedTuple):
    """A cell of a table that differs from the record: its row in words, and both
    contents."""

    row: str
    column: str
    recorded: float | str
    now: float | str

    @property
    def size(self) -> float:
        """The relative change of a number; infinite for a text or a missing cell."""
        if isinstance(self.recorded, str) or isinstance(self.now, str):
            return math.inf
        return abs(self.now - self.recorded) / (abs(self.recorded) or 1)

    def __str__(self) -> str:
        return f"{self.row}, column {self.column!r}: recorded {self.recorded!r}, now {self.now!r}"


def differences(
    payload: Mapping[str, Any], recorded: str, *, subset: bool = False
) -> list[Difference]:
    """List the cells in which the table of a payload differs from a recorded table.

    Parameters
    ----------
    payload : mapping
        A payload of `record`: its table, keys, tolerances and timings.
    recorded : str
        The recorded table as CSV text.
    subset : bool
        Whether the recorded table may have more rows.

    Examples
    --------
    >>> payload = {"csv": "p,x\\n2,0.5\\n", "keys": ["p"], "timings": []}
    >>> payload |= {"rtol": {"x": 0.1}, "atol": {}}
    >>> differences(payload, "p,x\\n1,0.1\\n2,0.51\\n", subset=True)
    []
    >>> print(*differences(payload, "p,x\\n1,0.1\\n2,0.6\\n", subset=True))
    row p = 2, column 'x': recorded 0.6, now 0.5
    """
    old = _rows(recorded, payload["keys"])
    new = _rows(payload["csv"], payload["keys"])
    return _differences(old, new, payload, subset)


def _differences(
    old: Mapping[str, Row],
    new: Mapping[str, Row],
    payload: Mapping[str, Any],
    subset: bool,
) -> list[Difference]:
    names = new if subset else {**old, **new}
    return [
        difference
        for name in names
        for difference in _row_differences(
            name, old.get(name, {}), new.get(name, {}), payload
        )
    ]


def _row_differences(
    name: str, old: Row, new: Row, payload: Mapping[str, Any]
) -> Iterator[Difference]:
    for column in {**old, **new}:
        before = old.get(column, "")
        now = new.get(column, "")
        rtol = payload["rtol"].get(column, 0.0)
        atol = payload["atol"].get(column, 0.0)
        if column not in payload["timings"] and not _close(before, now, rtol, atol):
            yield Difference(name, column, before, now)


def contradictions(
    payload: Mapping[str, Any], recorded: str, *, subset: bool = False
) -> list[str]:
    """List in words what the table of a payload contradicts in a recorded table.

    The arguments are those of `differences`. Differences are left out where the payload
    allows them: in a column of discrete outcomes, in a limited fraction of the rows of
    each method. A row or a method that only one of the tables has always contradicts.
    """
    old = _rows(recorded, payload["keys"])
    new = _rows(payload["csv"], payload["keys"])
    flips = payload["flips"]

    def method_of(row: Row) -> float | str:
        return row.get(flips["method"], "")

    methods = {name: method_of(row) for name, row in new.items()}
    n_rows = Counter(methods.values())
    changed = _differences(old, new, payload, subset)
    n_changed = Counter(
        (methods.get(difference.row), difference.column) for difference in changed
    )

    def is_allowed(difference: Difference) -> bool:
        if not (difference.row in old and difference.row in new):
            return False
        method = methods[difference.row]
        limit = flips["fraction"] * n_rows[method]
        return (
            difference.column in flips["columns"]
            and n_changed[method, difference.column] <= limit
        )

    found = [str(difference) for difference in changed if not is_allowed(difference)]
    if flips["method"] is not None:
        for method in {method_of(row) for row in old.values()} - n_rows.keys():
            found.append(f"no row with {flips['method']} = {method}")
    return found


def _rows(text: str, keys: list[str] | None) -> dict[str, dict[str, float | str]]:
    """The rows of a table by their keys in words, or without keys by their number."""
    rows = {}
    for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=1):
        values = {column: _value(content) for column, content in row.items()}
        if keys is None:
            name = str(number)
        else:
            name = ", ".join(f"{key} = {_shown(values.get(key, ''))}" for key in keys)
        rows[f"row {name}".strip()] = values
    return rows


def _value(text: Any) -> float | str:
    try:
        return float(text)
    except (TypeError, ValueError):  # a cell too few is None, those too many are a list
        return str(text)


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.12g}"


def _close(a: float | str, b: float | str, rtol: float, atol: float) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return (
        a == b
        or abs(a - b) <= atol + rtol * abs(a)
        or (math.isnan(a) and math.isnan(b))
    )


class Record(NamedTuple):
    """A recorded table as CSV text, with its header; without keys, also the table of
    the quick run."""

    header: Mapping[str, Any]
    table: str
    quick_table: str | None

    def contradictions(self, payload: Mapping[str, Any]) -> list[str]:
        """List what a payload of a quick run contradicts in this record."""
        if payload["keys"] is not None:
            n_rows = len(_rows(payload["csv"], payload["keys"]))
            n_recorded = self.header.get("quick_rows", "no number")
            found = contradictions(payload, self.table, subset=True)
            if n_rows != n_recorded:
                found.append(f"{n_rows} rows of the quick run, recorded {n_recorded}")
            return found
        if self.quick_table is None:
            return [f"the table of the quick run, NAME{QUICK_SUFFIX}, is missing"]
        return contradictions(payload, self.quick_table)


def records_of(folder: Path, chapter: str) -> dict[str, Record]:
    """The recorded tables of a chapter, by names such as "03_lemma_coincidence"."""
    records = {}
    for path in sorted(folder.glob(f"{chapter}_*.csv")):
        if not path.name.endswith(QUICK_SUFFIX):
            quick = path.with_suffix(QUICK_SUFFIX)
            quick_table = quick.read_text("utf-8") if quick.exists() else None
            records[path.stem] = Record(
                *split_table(path.read_text("utf-8")), quick_table
            )
    return records


def new_records(
    full: Executed, quick: Executed, header: Mapping[str, Any]
) -> dict[str, Record]:
    """The records of a full run, with what its quick run has to reproduce, by name."""
    records = {}
    for name, payload in full.records.items():
        table = quick.records.get(name, {}).get("csv")
        keys = payload["keys"]
        if keys is None:
            records[name] = Record(header, payload["csv"], table)
        else:
            n_rows = len(_rows(table or "", keys))
            about = {**header, "quick_rows": n_rows}
            records[name] = Record(about, payload["csv"], None)
    return records


def contradicted_records(
    records: Mapping[str, Record], quick: Executed
) -> dict[str, list[str]]:
    """What a quick run contradicts in the records of its chapter, in words, by name.

    The quick run must have the chapter's own parameters. Records of other data than
    those of the quick run are not compared.
    """
    broken = {}
    for name, record in records.items():
        payload = quick.records.get(name)
        if quick.replaced != record.header.get("replaced", []):
            continue
        if payload is None:
            found = ["the quick run no longer makes this table"]
        else:
            found = record.contradictions(payload)
        if found:
            broken[name] = found
    return broken


def recomputed_rows(
    records: Mapping[str, Record], quick: Executed
) -> dict[str, tuple[int, int]]:
    """Count the rows of each record that a quick run computed again, and all rows.

    A record without keys has no row in common with the quick run.
    """
    counts = {}
    for name, record in records.items():
        payload = quick.records.get(name, {})
        keys = payload.get("keys")
        recorded = _rows(record.table, keys)
        again = set[str]()
        if keys:
            again = _rows(payload["csv"], keys).keys() & recorded.keys()
        counts[name] = (len(again), len(recorded))
    return counts


def to_run_again(
    records: Mapping[str, Record], chapter: Chapter, state: State
) -> dict[str, list[str]]:
    """What changed since the records of a chapter were made: code cells or data files.

    The result is by name of a record. A changed module does not count here, because the
    check against the quick run finds what it changes.
    """
    changed = {}
    for name, record in records.items():
        reasons = []
        if record.header.get("cells") != chapter.code:
            reasons.append("the code cells")
        for file, content in record.header.get("data", {}).items():
            now = state[f"data {file}"]
            if now and not now.startswith(content):  # without a file, nothing is known
                reasons.append(f"the data file {file}")
        if reasons:
            changed[name] = reasons
    return changed


def summary(records: Mapping[str, Record], full: Executed) -> str:
    """What a full run changes, one line per table: the number of rows, the columns, and
    the largest relative change."""
    changed = {
        name: differences(payload, records[name].table)
        for name, payload in full.records.items()
        if name in records
    }
    return filled(
        "differences.txt", known=list(records), made=list(full.records), changed=changed
    )


def write_records(folder: Path, chapter: str, records: Mapping[str, Record]) -> None:
    """Write the records of a chapter, and delete tables that are no longer made.

    Each file is replaced as a whole or not at all.
    """
    written = set[Path]()
    for name, record in records.items():
        lines = [
            f"# {key}: {json.dumps(value, sort_keys=True)}\n"
            for key, value in record.header.items()
        ]
        text = "".join(lines) + record.table
        written.add(write_atomically(folder / f"{name}.csv", text))
        if record.quick_table is not None:
            path = folder / f"{name}{QUICK_SUFFIX}"
            written.add(write_atomically(path, record.quick_table))
    for path in set(folder.glob(f"{chapter}_*.csv")) - written:
        path.unlink()
