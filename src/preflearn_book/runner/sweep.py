"""Sweeps: runs of one chapter at many points of its parameters, and result tables."""

from __future__ import annotations

import itertools
import math
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from preflearn.core.source_digest import digest
from preflearn_book.runner.files import file_name, locked, write_atomically
from preflearn_book.runner.parameters import (
    check_names,
    grid_values,
    require,
)
from preflearn_book.runner.project import Chapter, Project, find_project
from preflearn_book.runner.records import (
    csv_text,
    filled,
    note_read,
    read_table,
    text_cells,
)

if TYPE_CHECKING:
    from preflearn_book.runner.outputs import Executed
    from preflearn_book.runner.tasks import Outcome, Task

Grid = Mapping[str, str]
"""Values of each parameter, as `grid_values` reads them."""

MAX_POINTS = 100_000
_WORDS = {
    "status": "done or failed",
    "run_time_s": "run time of the point in seconds",
    "error": "error of the point and its cell; empty if the point is done",
    "missing_data": "data sets that were not available, so the chapter used other data; empty if none",
}


def planned(chapter: Chapter, grid: Grid) -> tuple[list[dict[str, Any]], str]:
    """Return the points of a sweep, and the name of its tables, such as
    "results-seed-4f1c0a9e".

    The points are all combinations of values, where the last parameter varies fastest.
    A name is, for example, "results-seed-4f1c0a9e".

    Raises
    ------
    ValueError
        For an unknown parameter, a value of a wrong type, or more than 100,000 points.
    """
    where = f"{chapter.name}.ipynb"
    check_names(grid, chapter.parameters, where)
    taken = [name for name in grid if name in _WORDS]
    expected = f"none of {list(_WORDS)}"
    require(not taken, taken, f"{where}: the list of parameters to sweep", expected)
    values = {
        name: grid_values(f"{where}: {name}", text, chapter.parameters[name])
        for name, text in grid.items()
    }
    n_points = math.prod(map(len, values.values()))
    expected = f"at most {MAX_POINTS:,}"
    require(n_points <= MAX_POINTS, n_points, "the number of points", expected)
    points = [
        dict(zip(values, point, strict=True))
        for point in itertools.product(*values.values())
    ]
    names = "-".join(sorted(values))
    return points, f"results-{file_name(names)}-{digest(values)[:8]}"


def run_sweep(
    project: Project,
    chapter_name: str,
    grid: Grid,
    *,
    output: Path | None = None,
    **options: Any,
) -> tuple[Path, list[Outcome]]:
    """Execute a chapter at every point that is not computed yet, and write the result
    tables.

    A point runs the chapter's cells up to the last cell that is tagged `point`, or all
    cells. The names of the tables depend on the points, so two sweeps of one chapter
    have separate tables. The sweeps share points.

    Parameters
    ----------
    project : Project
    chapter_name : str
    grid : mapping of str to str
        Values of each parameter, as `grid_values` reads them.
    output : Path, optional
        Folder of the executed notebooks and the tables; by default
        ``_build/sweeps/<chapter>``.
    **options
        Options of `run_tasks`.

    Returns
    -------
    table : Path
        Table with one row per point, such as ``results-seed-4f1c0a9e.csv``. In the same
        folder, ``results-seed-4f1c0a9e.NAME.csv`` contains the rows of all points that
        recorded a table NAME with several rows. ``results-seed-4f1c0a9e.columns.csv``
        explains the columns.
    outcomes : list of Outcome
        One per point. The row of a failed point contains its error.

    Raises
    ------
    ValueError
        As `planned` does; also for an unknown chapter, or if Dask is needed and missing.
    OSError
        If the folder cannot be written, the same sweep is already running, or the
        scheduler stopped.
    """
    from papermill import inspect_notebook  # imported late: chapters use this module

    from preflearn_book.runner import dependencies, tasks

    chapter = project.chapter(chapter_name)
    folder = Path(output or _folder(project, chapter))
    points, stem = planned(chapter, grid)
    todo = []
    for point in points:
        label = ",".join(f"{name}={value}" for name, value in point.items())
        todo.append(tasks.task_of(chapter, point, folder, label, "point"))
    with locked(folder / f".{stem}.lock", "this sweep"):
        state = dependencies.State(project)
        outcomes = tasks.run_tasks(state, todo, **options)
        executed = [outcome.executed for outcome in outcomes if outcome.executed]
        explained = inspect_notebook(str(chapter.path))
        words = {name: about["help"].strip() for name, about in explained.items()}
        words |= _WORDS
        for claim in state.claims.values():
            words[claim.id] = f"computed verdict on the claim: {claim.statement}"
            words[f"{claim.id} value"] = f"value that the check of {claim.id} reports"
        tables = {"": _table_of_points(points, outcomes)} | _long_tables(
            points, outcomes
        )
        tables["columns"] = _columns(tables, executed, words)
        old = {*folder.glob(f"{stem}.*")}
        for name, frame in tables.items():
            path = folder / f"{stem}.{name}.csv".replace("..", ".")
            old.discard(write_atomically(path, csv_text(frame)))
        for path in old:  # tables that the points no longer record
            path.unlink()
    return folder / f"{stem}.csv", outcomes


def run_needed_sweeps(project: Project, tasks: Iterable[Task], **options: Any) -> None:
    """Execute the points of the sweeps that full runs among these tasks need.

    Finished points are not executed again.

    Parameters
    ----------
    project : Project
    tasks : iterable of Task
        Tasks of whole chapters.
    **options
        Options of `run_tasks`.
    """
    for task in tasks:
        chapter = task.chapter
        grid = task.chapter.sweep
        asks_for_points = bool(grid.keys() & task.parameters.keys())
        if grid and chapter.profile(task.parameters) == "full" and not asks_for_points:
            print(
                f"{chapter.name}: running the points of the sweep that the full run reads",
                file=sys.stderr,
            )
            run_sweep(project, chapter.name, grid, **options)


def _folder(project: Project, chapter: Chapter) -> Path:
    return project.build / "sweeps" / chapter.name


def _table_of_points(
    points: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome]
) -> pd.DataFrame:
    """Return one row per point: its parameters, status, run time, error, missing data,
    claims, and recorded tables with one row.

    A claim has two columns, the computed verdict "P1-07" and its "P1-07 value". A
    cell of a table with one row has the column "record.key".
    """
    rows = list[dict[str, Any]]()
    for point, outcome in zip(points, outcomes, strict=True):
        row = {
            "status": outcome.status,
            "run_time_s": outcome.result.seconds,
            "error": outcome.result.summary,
            "missing_data": "",
        }
        executed = outcome.executed
        if executed is not None:
            row |= {"status": "done", "run_time_s": executed.run["seconds"]}
            row["missing_data"] = ", ".join(executed.replaced)
            for result in executed.checks:
                row[result["id"]] = result["computed"]
                if result["value"] is not None:
                    row[f"{result['id']} value"] = result["value"]
            for payload in executed.records.values():
                table = text_cells(payload["csv"]).add_prefix(f"{payload['name']}.")
                if len(table) == 1:
                    row |= table.iloc[0].to_dict()
        rows.append({**point, **row})
    return pd.DataFrame(rows, dtype=object)


def _long_tables(
    points: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome]
) -> dict[str, pd.DataFrame]:
    """Return the recorded tables with several rows by name, stacked over all points.

    Each row begins with the parameters of its point. If a recorded column has the
    name of a parameter, it is renamed to "record.name".
    """
    stacks = dict[str, list[pd.DataFrame]]()
    for point, outcome in zip(points, outcomes, strict=True):
        if outcome.executed is None:
            continue
        for payload in outcome.executed.records.values():
            name = payload["name"]
            table = text_cells(payload["csv"])
            table = table.rename(columns={key: f"{name}.{key}" for key in point})
            parameters = pd.DataFrame([point] * len(table), columns=[*point])
            stacks.setdefault(name, []).append(pd.concat([parameters, table], axis=1))
    return {
        name: pd.concat(stack)
        for name, stack in stacks.items()
        if any(len(table) != 1 for table in stack)
    }


def _columns(
    tables: Mapping[str, pd.DataFrame],
    executed: Iterable[Executed],
    words: dict[str, str],
) -> pd.DataFrame:
    """List the meaning of each column, and whether it is a time.

    Times differ between runs.
    """
    times = {"run_time_s"}
    for notebook in executed:
        for payload in notebook.records.values():
            name = payload["name"]
            for key in text_cells(payload["csv"]):
                meaning = payload.get("columns", {}).get(key)
                words[f"{name}.{key}"] = (
                    meaning or f"{key}, of the recorded table {name}"
                )
            times |= {f"{name}.{key}" for key in payload["timings"]}
    rows = []
    for table, frame in tables.items():
        for column in frame.columns:
            known = f"{table}.{column}"
            if known not in words or known in frame:
                known = column
            rows.append((table, column, words.get(known, ""), known in times))
    return pd.DataFrame(rows, columns=["table", "column", "meaning", "timing"])


def summary_of_points(table: Path, outcomes: Sequence[Outcome]) -> str:
    """Summarize a sweep for the terminal.

    `table` is the table of `run_sweep`, with one row per point.
    """
    numbers = pd.read_csv(table).select_dtypes("number").filter(like=".")
    numbers = numbers.dropna(axis="columns", how="all")
    return filled("sweep.txt", outcomes=outcomes, table=table, numbers=numbers)


def swept(chapter_name: str, name: str, grid: Grid) -> pd.DataFrame:
    """Read a table of several rows that all points of a finished sweep recorded.

    Data sets that the points used, or that were not available, also become inputs of the
    calling chapter.

    Parameters
    ----------
    chapter_name : str
    name : str
        Name that was passed to `record`.
    grid : mapping of str to str
        Grid of the sweep.

    Returns
    -------
    DataFrame
        Columns with the parameters of the point, then the recorded columns.

    Raises
    ------
    FileNotFoundError
        If the sweep has not been run, or did not record this table; the message contains
        the command.
    ValueError
        If a point failed, or its code or data have changed since.
    """
    # Imported late, as in `run_sweep`.
    from preflearn_book.runner import dependencies, outputs, tasks

    project = find_project()
    chapter = project.chapter(chapter_name)
    points, stem = planned(chapter, grid)
    folder = _folder(project, chapter)
    path = (folder / stem).relative_to(project.root).as_posix()
    main = read_table(f"{path}.csv")
    found = read_table(f"{path}.{name}.csv")
    command = f"preflearn sweep {chapter.name}"
    for key, values in grid.items():
        command += f" -p {key} {shlex.quote(values)}"
    if main is None or found is None:
        raise FileNotFoundError(
            f"{path}.{name}.csv is missing; to make it, run: {command}"
        )
    n_failed = sum(main["status"] != "done")
    what = f"the number of points that failed in {path}.csv"
    require(n_failed == 0, n_failed, what, f"0; to run them again: {command}")
    state = dependencies.State(project)
    changed = set[str]()
    for point in points:
        executed = outputs.read_executed(tasks.task_of(chapter, point, folder).target)
        if executed:
            changed |= {*state.changes(executed)}
            for read, content in executed.provenance["read"].items():
                if read.startswith(("data ", "dataset ")):
                    note_read(read, content)
    what = f"the list of inputs that changed after {path}.csv was made"
    require(not changed, sorted(changed), what, f"none; to run again: {command}")
    return found
