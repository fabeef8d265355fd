"""Records and their witnesses: whether a quick run still comes out as it did when the
record was made.

The witness of a table is what the quick run of the same notebook gives for it: rows of
the record itself, where the table has keys, and otherwise a table beside it,
``NAME.witness.csv``. A record is valid while its witness comes out again, whatever the
code looks like; where cells or data changed, it should be run again.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from preflearn_book.runner.dependencies import State
from preflearn_book.runner.files import write_atomically
from preflearn_book.runner.outputs import Executed
from preflearn_book.runner.project import Chapter
from preflearn_book.runner.records import filled, split_table


class Move(NamedTuple):
    """A cell of a table that is not what it was: its row in words, and both contents."""

    row: str
    column: str
    before: float | str
    now: float | str

    @property
    def size(self) -> float:
        """The relative change of a number; infinite where a text, a row or a column is
        another one."""
        if isinstance(self.before, str) or isinstance(self.now, str):
            return math.inf
        return abs(self.now - self.before) / (abs(self.before) or 1)

    def __str__(self) -> str:
        return f"{self.row}, column {self.column!r}: recorded {self.before!r}, now {self.now!r}"


def moves(
    payload: Mapping[str, Any], before: str, *, subset: bool = False, flips: float = 0.0
) -> list[Move]:
    """Where the table of a payload of `record` differs from another one, both as CSV
    text.

    Parameters
    ----------
    payload : mapping
        Its table is the new one, its keys, tolerances and timings say how to compare.
    before : str
    subset : bool
        Whether the old table may have further rows.
    flips : float
        Share of the rows that may differ without being told, since rounding chose among
        equals.

    Examples
    --------
    >>> payload = {"csv": "p,x\\n2,0.5\\n", "keys": ["p"], "rtol": 0.1, "atol": 0, "timings": []}
    >>> moves(payload, "p,x\\n1,0.1\\n2,0.51\\n", subset=True)
    []
    >>> print(*moves(payload, "p,x\\n1,0.1\\n2,0.6\\n", subset=True))
    row p = 2, column 'x': recorded 0.6, now 0.5
    """
    old, new = (_rows(text, payload["keys"]) for text in (before, payload["csv"]))
    found = []
    for name in new if subset else old | new:
        known = old.get(name, {})
        row = new.get(name, {})
        for column in known | row:
            a = known.get(column, "")
            b = row.get(column, "")
            if column not in payload["timings"] and not _close(
                a, b, payload["rtol"], payload["atol"]
            ):
                found.append(Move(name, column, a, b))
    return found if len({move.row for move in found}) > flips * len(new) else []


def _rows(text: str, keys: list[str] | None) -> dict[str, dict[str, float | str]]:
    """The rows of a table by what names them: their keys, or else their number."""
    rows = {}
    for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=1):
        values = {column: _value(content) for column, content in row.items()}
        parts = [f"{key} = {_shown(values.get(key, ''))}" for key in keys or ()]
        rows[f"row {number if keys is None else ', '.join(parts)}".strip()] = values
    return rows


def _value(text: Any) -> float | str:
    try:
        return float(text)
    except (TypeError, ValueError):  # a cell too few is None, those too many are a list
        return str(text)


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"


def _close(a: float | str, b: float | str, rtol: float, atol: float) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return (
        a == b
        or abs(a - b) <= atol + rtol * abs(a)
        or (math.isnan(a) and math.isnan(b))
    )


class Record(NamedTuple):
    """A recorded table: the lines on top, CSV text; without keys, also that of the
    quick run."""

    header: Mapping[str, Any]
    table: str
    witness: str | None


def records_of(folder: Path, chapter: str) -> dict[str, Record]:
    """The recorded tables of a chapter, by names such as "03_lemma_coincidence"."""
    found = {}
    for path in sorted(folder.glob(f"{chapter}_*.csv")):
        if ".witness" not in path.suffixes:
            beside = path.with_suffix(".witness.csv")
            witness = beside.read_text("utf-8") if beside.exists() else None
            found[path.stem] = Record(*split_table(path.read_text("utf-8")), witness)
    return found


def new_records(
    full: Executed, quick: Executed, header: Mapping[str, Any]
) -> dict[str, Record]:
    """What a full run and the quick run that is its witness become, by name."""
    found = {}
    for name, payload in full.records.items():
        beside = quick.records.get(name) if payload["keys"] is None else None
        found[name] = Record(header, payload["csv"], beside["csv"] if beside else None)
    return found


def contradicted_records(
    records: Mapping[str, Record], quick: Executed
) -> dict[str, list[str]]:
    """What a quick run, with the chapter's own parameters, says against the records of
    the chapter.

    One that had to take other data than the full run is no witness.

    Returns
    -------
    dict of str to list of str
        By name of a record, such as "03_lemma_coincidence", each cell that moved.
    """
    broken = {}
    for name, kept in records.items():
        payload = quick.records.get(name)
        if quick.replaced != kept.header.get("replaced", []):
            continue
        if payload is None:
            found = ["the quick run no longer makes this table"]
        elif payload["keys"] is None and kept.witness is None:
            found = [f"there is no witness {name}.witness.csv; run it again"]
        else:
            subset, before = (
                (False, kept.witness) if payload["keys"] is None else (True, kept.table)
            )
            found = moves(payload, before or "", subset=subset, flips=payload["flips"])
        if found:
            broken[name] = [str(one) for one in found]
    return broken


def recomputed_rows(
    records: Mapping[str, Record], quick: Executed
) -> dict[str, tuple[int, int]]:
    """Count the rows of each record that a quick run computed again, and all rows, by
    name of the record.

    A record without keys has no row in common with the quick run, which is compared
    with its own table.
    """
    counts = {}
    for name, kept in records.items():
        payload = quick.records.get(name, {})
        keys = payload.get("keys")
        recorded = _rows(kept.table, keys)
        again = _rows(payload["csv"], keys).keys() & recorded.keys() if keys else ()
        counts[name] = (len(again), len(recorded))
    return counts


def to_run_again(
    records: Mapping[str, Record], chapter: Chapter, state: State
) -> dict[str, list[str]]:
    """What changed since the records of a chapter were made: its code cells, or data;
    by name of a record.

    Parameters are in the code cells. A changed module says nothing: the witness
    decides.
    """
    found = {}
    for record, kept in records.items():
        why = [] if kept.header.get("cells") == chapter.code else ["the code cells"]
        for name, content in kept.header.get("data", {}).items():
            now = state[f"data {name}"]
            if now and not now.startswith(content):  # without a file, nothing is known
                why.append(f"the data file {name}")
        if why:
            found[record] = why
    return found


def summary(records: Mapping[str, Record], full: Executed) -> str:
    """What a full run moves, a line a table: how many rows, which columns, the largest
    relative change."""
    known = {name: payload for name, payload in full.records.items() if name in records}
    found = {
        name: moves(payload, records[name].table) for name, payload in known.items()
    }
    return filled(
        "moves.txt", known=list(records), made=list(full.records), found=found
    )


def write_records(folder: Path, chapter: str, records: Mapping[str, Record]) -> None:
    """Write the records of a chapter and their witnesses; delete those of tables that
    are no longer made.

    Each file is replaced as a whole or not at all.
    """
    kept = set[Path]()
    for name, record in records.items():
        lines = [
            f"# {key}: {json.dumps(value, sort_keys=True)}\n"
            for key, value in record.header.items()
        ]
        kept.add(
            write_atomically(folder / f"{name}.csv", "".join(lines) + record.table)
        )
        if record.witness is not None:
            kept.add(write_atomically(folder / f"{name}.witness.csv", record.witness))
    for path in set(folder.glob(f"{chapter}_*.csv")) - kept:
        path.unlink()
