"""Run many notebooks in parallel, on this computer or on a Dask cluster, and store each
finished result.

A result gets its final file name in one step, after all its cells have run. Therefore a
file with a final name is always complete, even if the runner is stopped, and the next
run computes only the missing results.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import setitem
from pathlib import Path
from typing import Any, NamedTuple

from joblib import cpu_count
from tqdm import tqdm

from preflearn.core.source_digest import digest
from preflearn_book.runner.dependencies import State
from preflearn_book.runner.execution import CELL_SECONDS, Kernels, Result, execute
from preflearn_book.runner.files import check_writable, file_name, write_atomically
from preflearn_book.runner.outputs import Executed, read_executed, write_executed
from preflearn_book.runner.parameters import require
from preflearn_book.runner.project import Chapter
from preflearn_book.runner.records import main_versions, split_table

SILENCE = 60
"""Seconds without output after which a log without a progress bar gets a line with the
current cell of each run."""

CONNECTION = 20
"""Seconds within which a Dask scheduler must answer."""


@dataclass(frozen=True)
class Task:
    """One notebook to execute.

    Attributes
    ----------
    label : str
        Name of the task in reports.
    parameters : dict
        Parameters as returned by `Chapter.checked_parameters`.
    target : Path
        File of the executed notebook.
    part : str
        Part of the chapter that runs: the whole "notebook", or a "point" of a sweep.
    """

    label: str
    chapter: Chapter
    parameters: dict[str, Any]
    target: Path
    part: str = "notebook"

    @property
    def failed(self) -> Path:
        """File of the partially executed notebook if a cell failed."""
        return self.target.parent / "failed" / self.target.name


def task_of(
    chapter: Chapter,
    given: Mapping[str, Any],
    folder: Path,
    label: str = "",
    part: str = "notebook",
) -> Task:
    """Return the task of a chapter with the given parameters; each set of parameters has
    its own file in the folder.

    Raises
    ------
    ValueError
        If `Chapter.checked_parameters` raises it.
    """
    checked = chapter.checked_parameters(given)
    others = {
        name: value for name, value in sorted(checked.items()) if name != "profile"
    }
    words = file_name(",".join(f"{name}={value}" for name, value in others.items()))
    key = chapter.profile(checked)
    if others:
        key += f"-{words}-{digest(others)[:12]}"
    return Task(label or chapter.name, chapter, checked, folder / f"{key}.ipynb", part)


class Outcome(NamedTuple):
    """Outcome of a task: the status is "done", "unchanged" or "failed", and the result is
    that of the run if there was one."""

    task: Task
    status: str
    executed: Executed | None = None
    result: Result = Result(None)


def duration(seconds: float) -> str:
    """Format a duration with the precision that readers need.

    Examples
    --------
    >>> duration(4.21), duration(75), duration(7500)
    ('4.2 s', '1 min 15 s', '2 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def quick_seconds(root: Path) -> dict[str, float]:
    """Return the run times of the chapters in the quick profile, from
    `data/chapter_seconds.csv` if this file exists."""
    path = root / "data" / "chapter_seconds.csv"
    if not path.is_file():
        return {}
    _, table = split_table(path.read_text("utf-8"))
    return {
        row["chapter"]: float(row["seconds"])
        for row in csv.DictReader(io.StringIO(table))
    }


def expected_seconds(
    task: Task, last: Executed | None, measured: Mapping[str, float]
) -> float:
    """Return the seconds of the task's last run, else the seconds measured in the quick
    profile, else infinity."""
    if last is not None:
        return last.run["seconds"]
    if task.chapter.profile(task.parameters) != "quick":
        return math.inf
    return measured.get(task.chapter.name, math.inf)


def run_tasks(
    state: State,
    tasks: Sequence[Task],
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    force: bool = False,
    cell_seconds: int = CELL_SECONDS,
) -> list[Outcome]:
    """Execute the tasks whose result is missing or out of date.

    Parameters
    ----------
    state : State
        Current state of all inputs.
    tasks : sequence of Task
    jobs : int, optional
        Number of tasks that run in parallel on this computer; by default, one per
        processor.
    scheduler : str, optional
        Address of a Dask scheduler that runs the tasks instead; its workers need this
        package.
    force : bool
        Whether to execute tasks whose inputs have not changed.
    cell_seconds : int
        Time limit of a cell.

    Returns
    -------
    list of Outcome
        One per task, in order.

    Raises
    ------
    ValueError
        If `jobs` is not positive.
    OSError
        If a result cannot be written (all folders are tested before anything runs), or
        if the scheduler does not answer or stops. Finished results are stored.
    KeyboardInterrupt
        After the kernels are stopped and finished results are stored.
    """
    last = {task.target: read_executed(task.target) for task in tasks}

    def is_current(task: Task) -> bool:
        executed = last[task.target]
        return executed is not None and not state.changes(executed)

    # Two points can have one target, because a default can be given or left out.
    distinct = {task.target: task for task in tasks}.values()
    left = [task for task in distinct if force or not is_current(task)]
    check_writable({task.target.parent for task in left})
    measured = quick_seconds(Path(state.root))
    expected = {
        task.target: expected_seconds(task, last[task.target], measured)
        for task in left
    }
    # Start the longest first, so that at the end no processor waits for a long chapter.
    left.sort(key=lambda task: expected[task.target], reverse=True)
    if jobs is None:
        jobs = cpu_count()
    pool = ThreadPoolExecutor(jobs) if scheduler is None else _cluster(scheduler)
    with pool as executor:
        outcomes = _outcomes(state, left, expected, cell_seconds, executor)
        ran = {outcome.task.target: outcome for outcome in outcomes}
    return [
        ran.get(task.target, Outcome(task, "unchanged", last[task.target]))
        for task in tasks
    ]


class Estimate:
    """Estimate of the remaining time, from the times that the finished tasks took.

    Tasks are weighted by their expected seconds, or equally if these are not all known.
    Until the next task ends, the remaining time decreases with the clock.
    """

    def __init__(self, expected: Mapping[Path, float]) -> None:
        self._weights = expected
        if not all(map(math.isfinite, expected.values())):
            self._weights = dict.fromkeys(expected, 1.0)
        self._finished = 0.0
        self._total = math.inf

    def finish(self, target: Path, elapsed: float) -> None:
        """Register that a task ended `elapsed` seconds after the start."""
        self._finished += self._weights[target]
        self._total = elapsed * sum(self._weights.values()) / self._finished

    def remaining(self, elapsed: float) -> float:
        """Return the remaining seconds, at least 0; infinity before any task has ended."""
        return max(0.0, self._total - elapsed)


def _outcomes(
    state: State,
    tasks: Sequence[Task],
    expected: Mapping[Path, float],
    cell_seconds: int,
    executor: Executor,
) -> Iterator[Outcome]:
    """Submit all tasks, and store each result when it is ready; an interrupt stops the
    kernels of this computer.

    When a task ends, a line reports it and the estimated remaining time. In between, a
    terminal shows a progress bar with the running cells; without a terminal, one line
    per minute names them. Tasks on a cluster do not report their cells.
    """
    futures = dict[Future[Result], Task]()
    running = dict[str, str]()
    kernels = Kernels()
    estimate = Estimate(expected)
    started = time.monotonic()
    terminal = sys.stderr.isatty()
    pause = SILENCE
    if terminal:
        pause = 1

    for task in tasks:
        chapter = task.chapter
        begun = partial(setitem, running, task.label)
        what = (getattr(chapter, task.part), task.parameters, chapter.parameters)
        futures[
            executor.submit(execute, *what, state.root, cell_seconds, kernels, begun)
        ] = task

    def progress() -> str:
        text = f"{len(tasks) - len(futures)} of {len(tasks)}"
        seconds = estimate.remaining(time.monotonic() - started)
        if futures and 0 < seconds < math.inf:
            text += f", about {duration(seconds)} left"
        return f"({text})"

    bar = tqdm(
        total=len(tasks), unit="run", leave=False, disable=not terminal or not tasks
    )
    try:
        while futures:  # each one ends, because the time of a cell is limited
            done, _ = wait(futures, pause, FIRST_COMPLETED)
            # `done` is a set; report in the order in which the tasks were submitted.
            finished = [future for future in futures if future in done]
            for future in finished:
                if future.cancelled():
                    raise OSError(
                        "the Dask scheduler stopped; finished results are kept"
                    )
                task = futures.pop(future)
                outcome = _stored(state, task, future)
                estimate.finish(task.target, time.monotonic() - started)
                running.pop(outcome.task.label, None)
                how = {"done": "done in", "failed": "FAILED after"}[outcome.status]
                text = f"{outcome.task.label}: {how} {duration(outcome.result.seconds)}"
                tqdm.write(f"{text} {progress()}", file=sys.stderr)
                bar.update()
                yield outcome
            where = ", ".join(
                f"{label}: {cell}" for label, cell in sorted(running.items())
            )
            bar.set_postfix_str(where)
            if not finished and not terminal:
                after = duration(time.monotonic() - started)
                text = f"{where or 'running'} after {after} {progress()}"
                print(text, file=sys.stderr)
    except BaseException:
        done = [
            future for future in futures if future.done() and not future.cancelled()
        ]
        kernels.stop()
        for future in futures:
            future.cancel()
        for future in done:
            _stored(state, futures[future], future)
        raise
    finally:
        bar.close()


def _stored(state: State, task: Task, future: Future[Result]) -> Outcome:
    """Store an executed notebook under its final name; store a partially executed one in
    the folder "failed"."""
    try:
        result = future.result()
    except Exception as error:  # for example, a worker was lost or lacks the package
        result = Result(None, f"{type(error).__name__}: {error}")
    task.failed.unlink(missing_ok=True)
    if result.notebook is not None:
        try:
            if not result.summary:
                executed = _written(
                    state, task, Executed(result.notebook), result.seconds
                )
                return Outcome(task, "done", executed, result)
        except ValueError as error:  # other versions, or an invalid output
            result = result._replace(summary=str(error))
        write_atomically(
            task.failed,
            json.dumps(result.notebook, ensure_ascii=False, indent=1) + "\n",
        )
    return Outcome(task, "failed", None, result)


def _written(state: State, task: Task, executed: Executed, seconds: float) -> Executed:
    theirs = executed.provenance["versions"]
    ours = main_versions()
    # A remote worker may have other versions and compute other numbers.
    for name in sorted(theirs.keys() | ours):
        require(
            theirs.get(name) == ours.get(name),
            theirs.get(name),
            f"the version of {name} on the worker",
            f"{ours.get(name)}",
        )
    profile = task.chapter.profile(task.parameters)
    run = {
        "chapter": task.chapter.name,
        "profile": profile,
        "parameters": task.parameters,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": seconds,
        "inputs": state.inputs(task.chapter, task.part, profile, executed),
    }
    return write_executed(task.target, executed, run)


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    """Connect to a Dask cluster; its workers need this package but not the project's
    folder."""
    from distributed import Client

    try:
        # An empty address would start a cluster on this computer.
        client = Client(address or " ", timeout=CONNECTION)
    except (OSError, ValueError):  # no answer; no address
        wanted = (
            "pass the address that `dask scheduler` prints, such as tcp://host:8786"
        )
        raise OSError(f"no Dask scheduler answered at {address!r}; {wanted}") from None
    with client:
        # With pure=True a failed task would not be tried again.
        yield client.get_executor(pure=False)
