"""Sweeps: one chapter at every point of a grid of parameters, and one table of results."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bookrunner.files import digest, file_name, locked, write_atomically
from bookrunner.keys import State
from bookrunner.parameters import check_names, grid_values
from bookrunner.project import Project
from bookrunner.tasks import Outcome, run_tasks, task_of

_MOST_POINTS = 100_000


def grid_points(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations, the last parameter varying fastest.

    Raises
    ------
    ValueError
        If there are more than 100,000.

    Examples
    --------
    >>> grid_points({"seed": [0, 1], "n": [5, 6]})
    [{'seed': 0, 'n': 5}, {'seed': 0, 'n': 6}, {'seed': 1, 'n': 5}, {'seed': 1, 'n': 6}]
    """
    if (count := math.prod(map(len, grid.values()))) > _MOST_POINTS:
        raise ValueError(f"the grid has {count:,} points; expected at most {_MOST_POINTS:,}")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def run_sweep(
    project: Project,
    chapter_name: str,
    grid: Mapping[str, str],
    *,
    output: Path | None = None,
    **options: Any,
) -> tuple[Path, list[Outcome]]:
    """Execute a chapter at every point that is not there yet, and write the table of results.

    The table is named by the grid, so that two sweeps of one chapter keep one each; they share points.

    Parameters
    ----------
    project : Project
    chapter_name : str
    grid : mapping of str to str
        The values of each parameter, as `grid_values` reads them.
    output : Path, optional
        Folder of the executed notebooks and of the table; ``_build/sweeps/<chapter>`` by default.
    **options
        As `run_tasks` takes them.

    Returns
    -------
    table : Path
        Such as ``results-seed-4f1c0a9e.csv``.
    outcomes : list of Outcome
        One a point. A failing point is a row with its error.

    Raises
    ------
    ValueError
        On an unknown chapter or parameter, on too many points, or where Dask is needed and missing.
    OSError
        If the folder can't be written, or the same sweep is under way.
    """
    chapter = project.chapter(chapter_name)
    folder = project.build / "sweeps" / chapter.name if output is None else Path(output)
    check_names(grid, chapter.parameters, f"chapter {chapter.name}")
    values = {
        name: grid_values(f"chapter {chapter.name}: {name}", text, chapter.parameters[name])
        for name, text in grid.items()
    }
    points = grid_points(values)
    labels = [",".join(f"{name}={value}" for name, value in point.items()) for point in points]
    tasks = [task_of(chapter, point, folder, label) for point, label in zip(points, labels, strict=True)]
    table = folder / f"results-{file_name('-'.join(values))}-{digest(values)[:8]}.csv"
    with locked(folder / f".{table.stem}.lock", "this sweep"):
        outcomes = run_tasks(State(project), tasks, **options)
        rows = [dict(point) | _results(outcome) for point, outcome in zip(points, outcomes, strict=True)]
        write_atomically(table, pd.DataFrame(rows, dtype=object).to_csv(index=False, lineterminator="\n"))
    return table, outcomes


def _results(outcome: Outcome) -> dict[str, Any]:
    """A point's columns beside its parameters: status, run time, error, claims, recorded tables of one row.

    A claim gives two columns, what was computed and its value: "P1-07" and "P1-07 value"; a cell of a
    table of one row gives one, "record.key".
    """
    row = {"status": outcome.status, "run_time_s": outcome.result.seconds, "error": outcome.result.summary}
    if (executed := outcome.executed) is None:
        return row
    row |= {"status": "done", "run_time_s": executed.run["seconds"]}
    for result in executed.checks:
        row[result["id"]] = result["computed"]
        if result["value"] is not None:
            row[f"{result['id']} value"] = result["value"]
    for record in executed.records.values():
        table = list(csv.DictReader(io.StringIO(record["csv"])))
        if len(table) == 1:
            row |= {f"{record['name']}.{key}": value for key, value in table[0].items()}
    return row
