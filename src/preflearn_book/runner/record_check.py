"""Check recorded tables against the quick run of the same notebook.

If a recorded table has keys, the rows of the quick run are rows of the record.
Otherwise the whole table of the quick run is stored next to the record, in the file
``NAME.witness.csv``. A record is valid while the quick run reproduces these rows. If
code cells or data have changed, the record should be made again.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from preflearn_book.runner.dependencies import State
from preflearn_book.runner.files import write_atomically
from preflearn_book.runner.outputs import Executed
from preflearn_book.runner.project import Chapter
from preflearn_book.runner.records import filled, split_table

QUICK_SUFFIX = ".witness.csv"  # tables of quick runs in data/recorded


class Difference(NamedTuple):
    """A table cell that differs from the record, with a description of its row and both
    values."""

    row: str
    column: str
    recorded: float | str
    now: float | str

    @property
    def size(self) -> float:
        """Relative change of a number; infinite for a text or a missing cell."""
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
        A payload of `record` with its table, keys, tolerances, and timings.
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
    found = []
    for name in new if subset else {**old, **new}:
        before = old.get(name, {})
        now = new.get(name, {})
        for column in {**before, **now}:
            cell = Difference(name, column, before.get(column, ""), now.get(column, ""))
            if column not in payload["timings"] and not _is_close(cell, payload):
                found.append(cell)
    return found


def _is_close(cell: Difference, payload: Mapping[str, Any]) -> bool:
    if cell.recorded == cell.now:
        return True
    if isinstance(cell.recorded, str) or isinstance(cell.now, str):
        return False
    rtol = payload["rtol"].get(cell.column, 0.0)
    atol = payload["atol"].get(cell.column, 0.0)
    return bool(np.isclose(cell.now, cell.recorded, rtol, atol, equal_nan=True))


def contradictions(
    payload: Mapping[str, Any], recorded: str, *, subset: bool = False
) -> list[str]:
    """Describe the contradictions between the table of a payload and a recorded table.

    The arguments are those of `differences`. The payload may allow differences in
    columns of discrete outcomes, in a limited fraction of the rows of each method;
    these are not listed. A row or a method that only one of the tables has is always a
    contradiction.
    """
    flips = payload["flips"]

    def methods(text: str) -> dict[str, float | str]:
        rows = _rows(text, payload["keys"])
        return {name: row.get(flips["method"], "") for name, row in rows.items()}

    old = methods(recorded)
    new = methods(payload["csv"])
    n_rows = Counter(new.values())
    changed = differences(payload, recorded, subset=subset)
    n_changed = Counter((new.get(cell.row), cell.column) for cell in changed)
    found = []
    for cell in changed:
        is_allowed = False
        if cell.row in old and cell.row in new and cell.column in flips["columns"]:
            method = new[cell.row]
            limit = flips["fraction"] * n_rows[method]
            is_allowed = n_changed[method, cell.column] <= limit
        if not is_allowed:
            found.append(str(cell))
    if flips["method"] is not None:
        for method in set(old.values()) - n_rows.keys():
            found.append(f"no row with {flips['method']} = {method}")
    return found


def _rows(text: str, keys: list[str] | None) -> dict[str, dict[str, float | str]]:
    """Return the rows of a table by a text of their keys, or by number without keys."""
    rows = {}
    for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=1):
        values = {column: _value(content) for column, content in row.items()}
        if keys is None:
            name = str(number)
        else:
            name = ", ".join(
                f"{key} = {_number_text(values.get(key, ''))}" for key in keys
            )
        rows[f"row {name}".strip()] = values
    return rows


def _value(text: Any) -> float | str:
    try:
        return float(text)
    except (TypeError, ValueError):  # a missing cell is None, extra cells are a list
        return str(text)


def _number_text(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.12g}"


class Record(NamedTuple):
    """A recorded table as CSV text with its header; for a table without keys, also the
    table of the quick run."""

    header: Mapping[str, Any]
    table: str
    quick_table: str | None

    def contradictions(self, payload: Mapping[str, Any]) -> list[str]:
        """Describe the contradictions between a quick run and this record."""
        if payload["keys"] is not None:
            n_rows = len(_rows(payload["csv"], payload["keys"]))
            n_recorded = self.header.get("quick_rows", "an unknown number of")
            found = contradictions(payload, self.table, subset=True)
            if n_rows != n_recorded:
                found.append(
                    f"the quick run has {n_rows} rows; recorded were {n_recorded} rows"
                )
            return found
        if self.quick_table is None:
            return [f"the table of the quick run, NAME{QUICK_SUFFIX}, is missing"]
        return contradictions(payload, self.quick_table)


def records_of(folder: Path, chapter: str) -> dict[str, Record]:
    """Return the records of a chapter by names such as "03_lemma_coincidence"."""
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
    full: Executed,
    quick: Executed,
    header: Mapping[str, Any],
    merged_into: Mapping[str, Record],
) -> dict[str, Record]:
    """Return the records of a full run by name, with the rows that quick runs must
    reproduce.

    If rows are merged into an earlier record, its header is kept and extended by the
    run.
    """
    records = {}
    for name, payload in full.records.items():
        about = dict(header)
        if name in merged_into:
            about = dict(merged_into[name].header)
            run = {key: header[key] for key in ("date", "commit", "parameters")}
            about["merged"] = [*about.get("merged", []), run]
        table = quick.records.get(name, {}).get("csv")
        keys = payload["keys"]
        if keys is not None:
            about["quick_rows"] = len(_rows(table or "", keys))
            table = None
        records[name] = Record(about, payload["csv"], table)
    return records


def contradicted_records(
    records: Mapping[str, Record], quick: Executed
) -> dict[str, list[str]]:
    """Describe the contradictions between a quick run and the records of its chapter, by
    record name.

    The quick run must have the chapter's default parameters. Records that were made
    with other data sets are not compared.
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
    """Count, for each record, the rows that a quick run computed again, and all rows.

    A record without keys does not share rows with the quick run.
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
    """Return which code cells or data files changed after the records of a chapter were
    made, by record name.

    A changed module is not a reason, because the comparison with the quick run finds
    the numbers that it changes.
    """
    changed = {}
    for name, record in records.items():
        reasons = []
        if record.header.get("cells") != chapter.code:
            reasons.append("the code cells")
        for file, content in record.header.get("data", {}).items():
            now = state[f"data {file}"]
            if now and not now.startswith(content):  # None if the file is missing
                reasons.append(f"the data file {file}")
        if reasons:
            changed[name] = reasons
    return changed


def summary(records: Mapping[str, Record], full: Executed) -> str:
    """Summarize the changes by a full run, one line per table: the number of rows, the
    columns, and the largest relative change."""
    changed = {
        name: differences(payload, records[name].table)
        for name, payload in full.records.items()
        if name in records
    }
    return filled(
        "differences.txt", known=list(records), made=list(full.records), changed=changed
    )


def write_records(folder: Path, chapter: str, records: Mapping[str, Record]) -> None:
    """Write the records of a chapter, and delete tables that are no longer recorded.

    Each file is replaced atomically.
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
