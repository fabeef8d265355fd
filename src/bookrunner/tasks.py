"""Run many notebooks side by side, here or on a Dask cluster, keep what is done, and run nothing twice.

Each result goes to its final name in one step and only when every cell ran: whatever stops the
runner, a file under a final name is complete, and the next run takes up what is missing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from bookrunner.execution import GENEROUS, Job, Kernels, Limits, Result, execute
from bookrunner.files import check_writable, write_atomically
from bookrunner.keys import State
from bookrunner.outputs import Executed, read_executed, write_executed
from bookrunner.project import Chapter

_PATIENCE_S = 5  # with a cluster that has no worker


@dataclass(frozen=True)
class Task:
    """One notebook to execute.

    Attributes
    ----------
    label : str
        Its name in reports.
    parameters : dict
        As `Chapter.checked_parameters` returns them.
    target, failed : Path
        Where the executed notebook goes, and where it goes if a cell failed.
    """

    label: str
    chapter: Chapter
    parameters: dict[str, Any]
    target: Path
    failed: Path


@dataclass
class Outcome:
    """What became of a task: status "done", "unchanged", "failed" or "stopped"."""

    task: Task
    status: str
    executed: Executed | None = field(default=None, repr=False)
    seconds: float = 0.0
    summary: str = ""
    report: str = field(default="", repr=False)


def duration(seconds: float) -> str:
    """A time in words, as coarse as a reader wants it.

    Examples
    --------
    >>> duration(4.21), duration(75), duration(7500)
    ('4.2 s', '1 min 15 s', '2 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Progress:
    """A bar on a terminal, whose unit is a second of the last run; lines of start and finish in a log.

    Parameters
    ----------
    expected : mapping of str to float or None
        Seconds that each task took last time; None for a new one, which counts as the mean of the others.
    stream : text stream, optional
        Standard error unless told otherwise.
    """

    def __init__(self, expected: Mapping[str, float | None], stream: TextIO | None = None) -> None:
        known = [seconds for seconds in expected.values() if seconds] or [1.0]
        self._weights = {name: seconds or sum(known) / len(known) for name, seconds in expected.items()}
        self._running: dict[str, tuple[int, int]] = {}
        self._done: list[str] = []
        self._stream = stream or sys.stderr
        shape = "{percentage:3.0f}%|{bar:20}| {elapsed}, {remaining} left{postfix}"
        look: dict[str, Any] = {"leave": False, "dynamic_ncols": True, "smoothing": 0, "bar_format": shape}
        total, silent = sum(self._weights.values()), not self._stream.isatty()
        self._bar = tqdm(total=total, file=self._stream, disable=silent, **look)

    def cell(self, label: str, number: int, n_cells: int) -> None:
        """A task reached a cell; cell 0 is its start."""
        self._running[label] = (number, n_cells)
        if number == 0 and self._bar.disable:
            self._stream.write(f"{label}: started\n")  # in one piece, since others write beside it
            self._stream.flush()

    def finish(self, outcome: Outcome) -> None:
        """A task ended."""
        label, how = outcome.task.label, "done in" if outcome.status == "done" else "FAILED after"
        self._running.pop(label, None)
        self._done.append(label)
        place = f"{len(self._done)} of {len(self._weights)}"
        tqdm.write(f"{label}: {how} {duration(outcome.seconds)} ({place})", file=self._stream)

    def tick(self) -> None:
        """Redraw the bar."""
        parts = {label: number / n_cells for label, (number, n_cells) in dict(self._running).items()}
        self._bar.n = sum(self._weights[label] * part for label, part in parts.items())
        self._bar.n += sum(self._weights[label] for label in self._done)
        cells = [f"{label} {part:.0%}" for label, part in sorted(parts.items())]
        self._bar.set_postfix_str(", ".join([f"{len(self._done)} of {len(self._weights)} done", *cells]))

    def close(self) -> None:
        """Clear the bar."""
        self._bar.close()


def run_tasks(
    state: State,
    tasks: Sequence[Task],
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    force: bool = False,
    limits: Limits = GENEROUS,
) -> list[Outcome]:
    """Execute the tasks whose result is missing or was made from other inputs.

    Parameters
    ----------
    state : State
        As it is now.
    tasks : sequence of Task
    jobs : int, optional
        How many run at once on this machine; one a processor by default.
    scheduler : str, optional
        Address of a Dask scheduler that runs them instead; its workers need this package.
    force : bool
        Execute them although nothing changed.
    limits : Limits
        What a cell may take.

    Returns
    -------
    list of Outcome
        One a task, in order.

    Raises
    ------
    ValueError
        If `jobs` is not positive, or there is no Dask or no scheduler.
    OSError
        If a result can't be written; folders are tried before anything runs.
    KeyboardInterrupt
        Once the kernels are stopped and what was finished is stored.
    """
    last = {task.target: read_executed(task.target) for task in tasks}
    outcomes: dict[Path, Outcome] = {}
    for task in tasks:
        state.look_for_data(task.chapter)
        executed = last[task.target]
        if executed and not force and _up_to_date(state, executed):
            outcomes[task.target] = Outcome(task, "unchanged", executed)
    left = [task for task in tasks if task.target not in outcomes]
    if left:
        check_writable({task.target.parent for task in left})
        seconds = {
            task.label: found.run["seconds"] if (found := last[task.target]) else None for task in left
        }
        # The longest first: then no processor waits for one long chapter at the end.
        left.sort(key=lambda task: -(seconds[task.label] or float("inf")))
        progress = Progress(seconds)
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        where = _cluster(scheduler) if scheduler else ThreadPoolExecutor(threads if jobs is None else jobs)
        kernels = None if scheduler else Kernels(progress.cell)
        try:
            for outcome in _outcomes(state, left, limits, where, kernels, progress):
                outcomes[outcome.task.target] = outcome
        finally:
            progress.close()
    return [outcomes[task.target] for task in tasks]


def _up_to_date(state: State, executed: Executed) -> bool:
    """Whether nothing changed; a data set that could not be had last time is asked for once more."""
    for name in executed.replaced:
        if state[f"dataset {name}"] is None:
            from preflearn import datasets  # late: with pandas and all loaders

            with suppress(OSError, ValueError):
                datasets.fetch(name, progress=False)
                return False
    return not state.changes(executed)


def _outcomes(
    state: State,
    tasks: Sequence[Task],
    limits: Limits,
    where: AbstractContextManager[Executor],
    kernels: Kernels | None,
    progress: Progress,
) -> Iterator[Outcome]:
    """Submit all, and store each result as it comes; an interrupt stops the kernels of this machine."""
    shared = () if kernels is None else (kernels,)
    with where as executor:
        futures: dict[Future[Result], Task] = {}
        for task in tasks:
            job = Job(task.label, task.chapter.notebook, task.parameters, state.root, limits)
            futures[executor.submit(execute, job, *shared)] = task
        pending = set(futures)
        try:
            while pending:
                done, pending = wait(pending, timeout=0.3, return_when=FIRST_COMPLETED)
                for future in done:
                    outcome = _stored(state, futures[future], future)
                    progress.finish(outcome)
                    yield outcome
                progress.tick()
        except BaseException:
            finished = [future for future in pending if future.done()]
            if kernels is not None:
                kernels.stop()
            for future in pending:
                future.cancel()
            for future in finished:
                _stored(state, futures[future], future)
            raise


def _stored(state: State, task: Task, future: Future[Result]) -> Outcome:
    """The executed notebook under its final name; one that failed, beside the others, as far as it ran."""
    try:
        result = future.result()
    except Exception as error:  # a worker was lost, or lacks the package
        result = Result(None, f"{type(error).__name__}: {error}")
    notebook = result.notebook
    seconds = round(float(notebook["metadata"]["papermill"]["duration"]), 3) if notebook else 0.0
    task.failed.unlink(missing_ok=True)
    if notebook is None or result.summary:
        if notebook is not None:
            write_atomically(task.failed, json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")
        return Outcome(task, "failed", None, seconds, result.summary, result.report)
    profile = task.chapter.profile(task.parameters)
    run = {
        "chapter": task.chapter.name,
        "profile": profile,
        "parameters": task.parameters,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": seconds,
        "inputs": state.inputs(task.chapter, profile, notebook),
    }
    return Outcome(task, "done", write_executed(task.target, notebook, run), seconds)


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    """A Dask cluster as an executor, whose workers need this package and nothing of the project's folder."""
    try:
        from distributed import Client

        client = Client(address, timeout="20s")
    except ImportError:
        text = "a scheduler needs Dask; install it with: pip install 'preflearn[cluster]'"
        raise ValueError(text) from None
    except (OSError, ValueError) as error:
        raise ValueError(f"no Dask scheduler answers at {address!r}: {error}") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE_S)
        except TimeoutError:
            text = f"the scheduler at {address} has no workers; waiting for the first (Ctrl-C gives up)"
            print(f"preflearn: {text}", file=sys.stderr, flush=True)
        yield client.get_executor()
