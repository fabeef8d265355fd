"""Sweeps: one chapter at every point of a grid of parameters, and one table of results."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bookrunner.keys import chapter_key
from bookrunner.outputs import Executed
from bookrunner.progress import Progress
from bookrunner.project import Chapter, Project, typed
from bookrunner.records import write_atomically
from bookrunner.runner import (
    Outcome,
    Task,
    clean_temporaries,
    kernel_environment,
    run_tasks,
    store,
    store_failure,
)

__all__ = ["grid_points", "grid_values", "results_table", "run_remotely", "run_sweep"]


def grid_values(text: str) -> list[object]:
    """The values that one parameter takes: a range a:b or a:b:step like Python's, or a list a,b,c.

    Raises
    ------
    ValueError
        If there is no value, or one appears twice.

    Examples
    --------
    >>> grid_values("0:4"), grid_values("1:8:3"), grid_values("1e-2,l1,true")
    ([0, 1, 2, 3], [1, 4, 7], [0.01, 'l1', True])
    """
    if re.fullmatch(r"-?\d+:-?\d+(:-?\d+)?", text):
        bounds = [int(part) for part in text.split(":")]
        if bounds[2:] == [0]:
            raise ValueError(f"the range {text!r} has step 0; expected a:b or a:b:step")
        values = list(range(*bounds))
    else:
        values = [typed(part.strip()) for part in text.split(",") if part.strip()]
    if not values:
        raise ValueError(f"{text!r} holds no value; expected a range such as 0:20 or a list such as 1,2,5")
    keys = [json.dumps(value) for value in values]
    if len(set(keys)) < len(keys):
        raise ValueError(f"{text!r} holds a value twice")
    return values


def grid_points(grid: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """All combinations, the last parameter varying fastest.

    Examples
    --------
    >>> grid_points({"seed": [0, 1], "n": [5]})
    [{'seed': 0, 'n': 5}, {'seed': 1, 'n': 5}]
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def run_sweep(
    project: Project,
    chapter_name: str,
    grid: Mapping[str, Sequence[object]],
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    output: Path | None = None,
) -> tuple[Path, list[Outcome]]:
    """Execute a chapter at every point that is not there yet, and write the table of results.

    Parameters
    ----------
    project : Project
    chapter_name : str
    grid : mapping of str to sequence
        The values of each parameter.
    jobs : int, optional
        How many points run at once on this machine.
    scheduler : str, optional
        Address of a Dask scheduler that runs the points instead; its workers need this package.
    output : Path, optional
        Folder of the executed notebooks and of ``results.csv``; ``_build/sweeps/<chapter>`` by default.

    Returns
    -------
    table : Path
    outcomes : list of Outcome
        One a point. A failing point is a row with its error.

    Raises
    ------
    ValueError
        On an unknown chapter or parameter, or where Dask is needed and missing.
    """
    chapter = project.chapter(chapter_name)
    folder = project.build / "sweeps" / chapter.name if output is None else Path(output)
    clean_temporaries([folder] if folder.exists() else [])
    points = grid_points(grid)
    tasks = [_point_task(project, chapter, point, folder) for point in points]
    table = folder / "results.csv"
    try:
        if scheduler is None:
            outcomes = run_tasks(project, tasks, jobs=jobs)
        else:
            outcomes = _run_scheduled(project, tasks, scheduler)
    except KeyboardInterrupt:
        outcomes = [Outcome(task, "unchanged" if task.target.exists() else "stopped") for task in tasks]
        write_atomically(table, results_table(points, outcomes))
        raise
    write_atomically(table, results_table(points, outcomes))
    return table, outcomes


def _point_task(project: Project, chapter: Chapter, point: Mapping[str, object], folder: Path) -> Task:
    checked = chapter.checked_parameters(point)
    label = ",".join(f"{name}={value}" for name, value in point.items())
    key = chapter_key(project, chapter, checked)
    name = f"{re.sub(r'[^A-Za-z0-9.=,+_-]+', '_', label)[:80]}-{key.split('-')[-1]}"
    return Task(label, chapter, checked, folder / f"{name}.ipynb", folder / "failed" / f"{name}.ipynb")


def results_table(points: Sequence[Mapping[str, object]], outcomes: Sequence[Outcome]) -> str:
    """One row a point, as CSV: parameters, status, run time, claims, recorded scalars, error.

    A claim gives two columns, what was computed and its value: "P1-07" and "P1-07 value"; a scalar
    gives one, "record.key".
    """
    rows = [dict(point) | _results(outcome) for point, outcome in zip(points, outcomes, strict=True)]
    first = [*points[0], "status", "run_time_s"]
    found = dict.fromkeys(key for row in rows for key in row)
    columns = [*first, *(key for key in found if key not in (*first, "error")), "error"]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _results(outcome: Outcome) -> dict[str, object]:
    if outcome.status not in ("done", "unchanged"):
        return {"status": outcome.status, "error": outcome.summary}
    executed = Executed(outcome.task.target)
    row = {"status": "done", "run_time_s": executed.run["seconds"]}
    for result in executed.checks:
        row[result["id"]] = result["computed"]
        if result["value"] is not None:
            row[f"{result['id']} value"] = result["value"]
    for record in executed.records:
        for key, value in (record["scalars"] or {}).items():
            row[f"{record['name']}.{key}"] = value
    return row


def run_remotely(
    notebook: dict, parameters: dict[str, object], cwd: str, env: dict[str, str]
) -> dict[str, object]:
    """Execute one point on a worker, which needs the package and nothing of the project's folder.

    Parameters
    ----------
    notebook : dict
        The source, as parsed JSON.
    parameters : dict
    cwd : str
        The kernel's folder, where the worker has it.
    env : dict of str to str
        Added to the worker's own environment.

    Returns
    -------
    dict
        The notebook as JSON text; for a failure also its summary and report.
    """
    from bookrunner.execution import Execution, ExecutionError

    folder = Path(cwd) if Path(cwd).is_dir() else Path(tempfile.gettempdir())
    try:
        executed = Execution(notebook, parameters, cwd=folder, env=dict(os.environ) | env).run()
    except ExecutionError as error:
        return {"notebook": json.dumps(error.notebook), "summary": error.summary, "report": error.report}
    return {"notebook": json.dumps(executed)}


def _run_scheduled(project: Project, tasks: Sequence[Task], address: str) -> list[Outcome]:
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ValueError(
            "a scheduler needs Dask; install it with: pip install 'preflearn[cluster]'"
        ) from None
    try:
        client = Client(address, timeout="20s")
    except (OSError, ValueError) as error:
        raise ValueError(f"no Dask scheduler answers at {address!r}: {error}") from None
    outcomes = {task.target: Outcome(task, "unchanged") for task in tasks if task.target.exists()}
    left = [task for task in tasks if task.target not in outcomes]
    extra = {name: value for name, value in kernel_environment(project, 2).items() if name not in os.environ}
    started = time.monotonic()
    with client:
        progress = Progress([task.label for task in left], max(1, len(client.ncores())), {})
        futures = {
            client.submit(
                run_remotely,
                task.chapter.notebook,
                task.parameters,
                str(project.notebooks),
                extra,
                pure=False,
            ): task
            for task in left
        }
        for task in left:
            progress.start(task.label)
        for future in as_completed(futures):
            outcome = _collected(futures[future], future)
            outcome.seconds = time.monotonic() - started
            outcomes[outcome.task.target] = outcome
            progress.finish(outcome.task.label, outcome.in_words())
    return [outcomes[task.target] for task in tasks]


def _collected(task: Task, future: object) -> Outcome:
    from bookrunner.execution import ExecutionError

    try:
        answer = future.result()
    except Exception as error:  # a worker was lost, or lacks the package
        return store_failure(task, ExecutionError(f"{type(error).__name__}: {error}", "", None))
    notebook = json.loads(answer["notebook"])
    if "summary" in answer:
        return store_failure(task, ExecutionError(answer["summary"], answer["report"], notebook))
    return store(task, notebook)
