"""Sweeps: one chapter at many points of its parameters, and tables of what came out."""

from __future__ import annotations

import csv
import io
import itertools
import math
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from preflearn.core.source_digest import digest
from preflearn_book.runner.files import file_name, locked, write_atomically
from preflearn_book.runner.parameters import (
    check_names,
    explained,
    grid_values,
    require,
    typed,
)
from preflearn_book.runner.project import Chapter, Project, find_project
from preflearn_book.runner.records import csv_text, note_read, parsed_table, read_table

if TYPE_CHECKING:
    from preflearn_book.runner.tasks import Outcome, Task

Grid = Mapping[str, str | Sequence[Any]]
"""The values of each parameter, as `grid_values` reads them."""

MAX_POINTS = 100_000
_WORDS = {
    "status": "done or failed",
    "run_time_s": "seconds that the point took",
    "error": "what went wrong, and in which cell; empty where nothing did",
    "missing_data": "data sets that were not available, so that the chapter used others; empty if none",
}


def grid_points(
    grid: Mapping[str, Sequence[Any]], sample: int | None = None, seed: int = 0
) -> list[dict[str, Any]]:
    """All combinations of values, or a sample of them, drawn without replacement.

    The last parameter varies fastest.

    Raises
    ------
    ValueError
        If there are more than 100,000, fewer than are to be drawn, or too many to draw
        from.

    Examples
    --------
    >>> grid_points({"seed": [0, 1], "n": [5, 6]})
    [{'seed': 0, 'n': 5}, {'seed': 0, 'n': 6}, {'seed': 1, 'n': 5}, {'seed': 1, 'n': 6}]
    >>> len(grid_points({"seed": range(10**9), "n": [5, 6]}, sample=10))
    10
    """
    sizes = [len(values) for values in grid.values()]
    chosen: Iterable[int] = range(count := math.prod(sizes))
    if sample is not None:
        require(
            sample <= count,
            sample,
            "the number of points to draw",
            f"at most the {count:,} of the grid",
        )
        require(
            count < 2**63,
            f"{count:,}",
            "the number of points of the grid",
            "less than 2**63",
        )
        chosen = np.sort(
            np.random.default_rng(seed).choice(count, sample, replace=False)
        )
    if (n_points := sample or count) > MAX_POINTS:
        raise ValueError(
            f"the grid has {n_points:,} points; expected at most {MAX_POINTS:,}"
        )
    places = zip(*np.unravel_index(list(chosen), sizes), strict=True)
    return [
        {name: grid[name][k] for name, k in zip(grid, place, strict=True)}
        for place in places
    ]


def planned(
    chapter: Chapter,
    grid: Grid | Sequence[Mapping[str, Any]],
    sample: int | None = None,
    seed: int = 0,
) -> tuple[list[dict[str, Any]], str]:
    """The points of a sweep, and the name of its tables, such as
    "results-seed-4f1c0a9e".

    Parameters
    ----------
    chapter : Chapter
    grid : mapping of str to str or sequence, or sequence of mappings
        The values of each parameter, as `grid_values` reads them; or the points, one by
        one.
    sample : int, optional
        Number of points that are drawn from the grid.
    seed : int
        Seed of the draw.

    Raises
    ------
    ValueError
        On an unknown parameter, a value of another kind, no points or too many, or one
        that is there twice.
    """
    where = f"{chapter.name}.ipynb"
    known = chapter.parameters
    is_grid = isinstance(grid, Mapping)
    for given in [grid] if is_grid else grid:
        require(
            isinstance(given, Mapping), given, "a point", "parameters with their values"
        )
        check_names(given, known, where)
    if isinstance(grid, Mapping):
        values = {
            name: grid_values(f"{where}: {name}", given, known[name])
            for name, given in grid.items()
        }
        points = grid_points(values, sample, seed)
        identity = values if sample is None else points
    else:
        points = [
            {
                key: typed(f"{where}: {key}", value, known[key])
                for key, value in p.items()
            }
            for p in grid
        ]
        good = (
            0 < len({digest(point) for point in points}) == len(points) <= MAX_POINTS
            and sample is None
        )
        expected = f"1 to {MAX_POINTS:,} distinct ones, and no sample of them"
        require(good, points, "the list of points", expected)
        identity = points
    names = dict.fromkeys(itertools.chain(*points))
    taken = [name for name in names if name in _WORDS]
    require(
        not taken,
        taken,
        f"{where}: the list of parameters to sweep",
        f"none of {list(_WORDS)}",
    )
    return points, f"results-{file_name('-'.join(names))}-{digest(identity)[:8]}"


def run_sweep(
    project: Project,
    chapter_name: str,
    grid: Grid | Sequence[Mapping[str, Any]],
    *,
    sample: int | None = None,
    seed: int = 0,
    output: Path | None = None,
    **options: Any,
) -> tuple[Path, list[Outcome]]:
    """Execute a chapter at every point that is not there yet, and write the tables of
    results.

    A point runs the chapter's cells up to the last that is tagged `point`, where there
    is one. The tables are named by the points, so that two sweeps of one chapter keep
    their own; they share points.

    Parameters
    ----------
    project : Project
    chapter_name : str
    grid, sample, seed
        As `planned` takes them.
    output : Path, optional
        Folder of the executed notebooks and of the tables; ``_build/sweeps/<chapter>``
        by default.
    **options
        As `run_tasks` takes them.

    Returns
    -------
    table : Path
        Such as ``results-seed-4f1c0a9e.csv``, one row per point. In the same folder,
        ``results-seed-4f1c0a9e.NAME.csv`` has the rows of all points that recorded a
        table NAME of several rows, and ``results-seed-4f1c0a9e.columns.csv`` explains
        the columns. Each table is also written as ``.parquet``.
    outcomes : list of Outcome
        One per point. A failing point is a row with its error.

    Raises
    ------
    ValueError
        As `planned` does, on an unknown chapter, or where Dask is needed and missing.
    OSError
        If the folder can't be written, the same sweep is under way, or the scheduler
        stopped.
    """
    import pyarrow  # noqa: F401  (raises before anything runs if it is missing)

    from preflearn_book.runner import (  # late, since chapters read what was swept
        dependencies,
        tasks,
    )

    chapter = project.chapter(chapter_name)
    folder = Path(output or _folder(project, chapter))
    points, stem = planned(chapter, grid, sample, seed)
    todo = []
    for point in points:
        label = ",".join(f"{name}={value}" for name, value in point.items())
        todo.append(tasks.task_of(chapter, point, folder, label, "point"))
    with locked(folder / f".{stem}.lock", "this sweep"):
        state = dependencies.State(project)
        outcomes = tasks.run_tasks(state, todo, **options)
        tables, payloads = _tables(points, outcomes)
        words = explained(chapter.notebook) | _WORDS
        for claim in state.claims.values():
            words |= {
                claim.id: f"what was computed on: {claim.statement}",
                f"{claim.id} value": "its value",
            }
        texts = ["error"]
        for name, default in chapter.parameters.items():
            if isinstance(default, str):
                texts.append(name)
        tables["columns"] = _columns(tables, payloads, words)
        old = {*folder.glob(f"{stem}.*")}
        for name, frame in tables.items():
            text = csv_text(frame)
            path = folder / f"{stem}.{name}.csv".replace("..", ".")
            old.discard(write_atomically(path, text))
            parquet = _parquet(text, texts)
            old.discard(write_atomically(path.with_suffix(".parquet"), parquet))
        for path in old:  # of a table that points no longer record
            path.unlink()
    return folder / f"{stem}.csv", outcomes


def run_needed_sweeps(project: Project, tasks: Iterable[Task], **options: Any) -> None:
    """Execute the points of the sweeps that full runs among these tasks read.

    Finished points are kept.

    Parameters
    ----------
    project : Project
    tasks : iterable of Task
        Tasks of whole chapters.
    **options
        As `run_tasks` takes them.
    """
    for task in tasks:
        chapter = task.chapter
        grid = task.chapter.sweep
        asks_for_points = bool(grid.keys() & task.parameters.keys())
        if grid and chapter.profile(task.parameters) == "full" and not asks_for_points:
            print(
                f"{chapter.name}: first the points of the sweep that the full run reads",
                file=sys.stderr,
            )
            run_sweep(project, chapter.name, grid, **options)


def _parquet(text: str, texts: Sequence[str]) -> bytes:
    """Convert a CSV text to a Parquet file; integers of more than 64 bits become
    texts."""
    table = parsed_table(text, texts)
    types = pd.api.types
    for key in table:
        if types.infer_dtype(table[key]) == "integer" and not types.is_integer_dtype(
            table[key]
        ):
            table[key] = table[key].astype("string")
    return table.to_parquet(None, index=False)


def _folder(project: Project, chapter: Chapter) -> Path:
    return project.build / "sweeps" / chapter.name


def _tables(
    points: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome]
) -> tuple[dict[str, pd.DataFrame], list[dict[str, Any]]]:
    """The table of points, under "", and those recorded with several rows; all that
    `record` stored.

    After its parameters, a point has columns for status, run time, error, missing data,
    claims, and recorded tables of one row. A claim gives two, what was computed and its
    value: "P1-07" and "P1-07 value"; a cell of a table of one row gives one,
    "record.key", and so does a recorded column with a parameter's name.
    """
    given = {*itertools.chain(*points)}
    rows = list[dict[str, Any]]()
    stacks = dict[str, list[Any]]()
    payloads = list[dict[str, Any]]()
    for point, outcome in zip(points, outcomes, strict=True):
        row = {
            "status": outcome.status,
            "run_time_s": outcome.result.seconds,
            "error": outcome.result.summary,
            "missing_data": "",
        }
        rows.append(dict(point) | row)
        if (executed := outcome.executed) is None:
            continue
        rows[-1] |= {"status": "done", "run_time_s": executed.run["seconds"]}
        rows[-1]["missing_data"] = ", ".join(executed.replaced)
        for result in executed.checks:
            rows[-1][result["id"]] = result["computed"]
            if result["value"] is not None:
                rows[-1][f"{result['id']} value"] = result["value"]
        for payload in executed.records.values():
            payloads.append(payload)
            name = payload["name"]
            table = list(csv.DictReader(io.StringIO(payload["csv"])))
            lines = (
                {f"{name}.{k}" if k in given else k: v for k, v in line.items()}
                for line in table
            )
            stacks.setdefault(name, []).append([dict(point) | line for line in lines])
            if len(table) == 1:
                rows[-1] |= {f"{name}.{key}": value for key, value in table[0].items()}
    long = {
        name: stack
        for name, stack in stacks.items()
        if any(len(table) != 1 for table in stack)
    }
    stacked = {name: list(itertools.chain(*stack)) for name, stack in long.items()}
    return {
        name: pd.DataFrame(found, dtype=object)
        for name, found in ({"": rows} | stacked).items()
    }, payloads


def _columns(
    tables: Mapping[str, pd.DataFrame],
    payloads: Sequence[Mapping[str, Any]],
    words: dict[str, str],
) -> pd.DataFrame:
    """List the meaning of each column, and whether it is a time, which differs between
    runs."""
    times = {"run_time_s"}
    for payload in payloads:
        name = payload["name"]
        for key in next(csv.reader(io.StringIO(payload["csv"]))):
            meaning = payload.get("columns", {}).get(key)
            words[f"{name}.{key}"] = meaning or f"{key}, of the recorded table {name}"
        times |= {f"{name}.{key}" for key in payload["timings"]}
    rows = []
    for table, frame in tables.items():
        for column in frame.columns:
            known = f"{table}.{column}"
            if known not in words or known in frame:
                known = column
            rows.append((table, column, words.get(known, ""), known in times))
    return pd.DataFrame(rows, columns=["table", "column", "meaning", "timing"])


def summary_of_points(table: Path, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Summarize a sweep for the terminal: its recorded numbers, and verdicts that
    contradict the claims list.

    Parameters
    ----------
    table : Path
        The table of `run_sweep`, a row for each point.
    outcomes : list of Outcome

    Returns
    -------
    dict
        "numbers": name, median, smallest value, largest value and meaning of each
        recorded number. "contradictions": by claim, the number of points at which the
        computed verdict differs from the written one, and the meaning of the column.
        "verdicts": the number of computed verdicts. "missing": the data sets that were
        not available to some point.
    """
    columns = pd.read_csv(table.with_suffix(".columns.csv"), keep_default_na=False)
    of_points = columns[columns["table"] == ""]
    meanings = dict(zip(of_points["column"], of_points["meaning"], strict=True))
    recorded = (
        pd.read_csv(table).select_dtypes("number").dropna(axis="columns", how="all")
    )
    recorded = recorded[[name for name in recorded if "." in name]]
    spread = {
        name: (column.median(), column.min(), column.max())
        for name, column in recorded.items()
    }
    checks = [
        check
        for outcome in outcomes
        if outcome.executed
        for check in outcome.executed.checks
    ]
    contradicting = [check["id"] for check in checks if not check["agrees"]]
    return {
        "numbers": [
            (name, *values, meanings[str(name)]) for name, values in spread.items()
        ],
        "contradictions": {
            claim: (contradicting.count(claim), meanings[claim])
            for claim in contradicting
        },
        "verdicts": len(checks),
        "missing": sorted(
            set().union(*(o.executed.replaced for o in outcomes if o.executed))
        ),
    }


def swept(chapter_name: str, name: str, grid: Grid) -> pd.DataFrame:
    """What all points of a finished sweep of this project recorded under a name with
    several rows.

    The data that points read, or asked for in vain, count as those of who asks.

    Parameters
    ----------
    chapter_name : str
    name : str
        As given to `record`.
    grid : mapping of str to str or sequence
        As the sweep had it, in the same order.

    Returns
    -------
    DataFrame
        The point's parameters, then the recorded columns.

    Raises
    ------
    FileNotFoundError
        If the sweep has not been run, or recorded no such table; the message says the
        command.
    ValueError
        If a point failed, or was run by other code than the present, or with other
        data.
    """
    from preflearn_book.runner import (  # late, as in `run_sweep`
        dependencies,
        outputs,
        tasks,
    )

    project = find_project()
    chapter = project.chapter(chapter_name)
    points, stem = planned(chapter, grid)
    path = (_folder(project, chapter) / stem).relative_to(project.root).as_posix()
    texts = [key for key in points[0] if isinstance(chapter.parameters[key], str)]
    main = read_table(f"{path}.csv", texts)
    found = read_table(f"{path}.{name}.csv", texts)
    command = f"preflearn sweep {chapter.name}"
    for key, values in grid.items():
        if not isinstance(values, str):
            values = ",".join(map(str, values))
        command += f" -p {key} {shlex.quote(values)}"
    if main is None or found is None:
        raise FileNotFoundError(
            f"{path}.{name}.csv is missing; this command makes it: {command}"
        )
    wrong = sum(status != "done" for status in main["status"])
    require(
        not wrong,
        wrong,
        f"the number of points that failed in {path}.csv",
        f"none; again: {command}",
    )
    state = dependencies.State(project)
    changed = set[str]()
    for point in points:
        target = tasks.task_of(chapter, point, _folder(project, chapter)).target
        if executed := outputs.read_executed(target):
            changed |= {*state.changes(executed)}
            for read, content in executed.provenance["read"].items():
                if read.startswith(("data ", "dataset ")):
                    note_read(read, content)
    require(
        not changed,
        sorted(changed),
        f"what changed since {path}.csv was made",
        f"nothing; again: {command}",
    )
    return found
