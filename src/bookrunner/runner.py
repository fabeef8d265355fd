"""Run many notebooks side by side, keep what is done, and run nothing twice.

Each result goes to its final name in one step and only when every cell ran: whatever stops the
runner, a file under a final name is complete, and the next run takes up what is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bookrunner.keys import chapter_key, profile_of
from bookrunner.progress import Progress, duration
from bookrunner.project import Chapter, Project
from bookrunner.records import write_atomically

if TYPE_CHECKING:
    from bookrunner.execution import Execution, ExecutionError

__all__ = [
    "Outcome",
    "Task",
    "chapter_task",
    "clean_temporaries",
    "default_jobs",
    "kernel_environment",
    "last_seconds",
    "newest_executed",
    "prune",
    "run_tasks",
    "store",
    "store_failure",
]

_KEPT = 4
_STALE_S = 3600
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


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
    parameters: dict[str, object]
    target: Path
    failed: Path


@dataclass
class Outcome:
    """What became of a task: status "done", "unchanged", "failed" or "stopped"."""

    task: Task
    status: str
    seconds: float = 0.0
    summary: str = ""
    report: str = field(default="", repr=False)

    def in_words(self) -> str:
        """Such as "done in 4.2 s"."""
        how = {"done": "done in", "failed": "FAILED after", "stopped": "stopped after"}[self.status]
        return f"{how} {duration(self.seconds)}"


def chapter_task(project: Project, chapter: Chapter, parameters: Mapping[str, object]) -> Task:
    """The task that a build runs for a chapter.

    Raises
    ------
    ValueError
        If the chapter does not have a parameter or declares an unknown data set.
    """
    checked = chapter.checked_parameters(parameters)
    key = chapter_key(project, chapter, checked)
    return Task(
        chapter.name,
        chapter,
        checked,
        project.build / "executed" / chapter.name / f"{key}.ipynb",
        project.build / "failed" / f"{chapter.name}.ipynb",
    )


def default_jobs(n_tasks: int) -> int:
    """As many as there are processors to use, and tasks."""
    available = getattr(os, "sched_getaffinity", None)
    n_processors = len(available(0)) if available else os.cpu_count() or 1
    return max(1, min(n_processors, n_tasks))


def kernel_environment(project: Project, jobs: int) -> dict[str, str]:
    """The environment of kernels; where several run at once, each computes in one thread."""
    env = dict(os.environ) | {"PREFLEARN_ROOT": str(project.root)}
    if jobs > 1:
        env |= dict.fromkeys(_THREAD_VARIABLES, "1")
    return env


def run_tasks(
    project: Project,
    tasks: Sequence[Task],
    *,
    jobs: int | None = None,
    force: bool = False,
) -> list[Outcome]:
    """Execute all tasks whose target does not exist, `jobs` at a time.

    A failing task does not stop the others.

    Returns
    -------
    list of Outcome
        In the order of the tasks.

    Raises
    ------
    ValueError
        If `jobs` is less than one.
    KeyboardInterrupt
        Passed on, once all kernels are stopped; finished tasks are kept.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs is {jobs}; expected a number of at least 1")
    outcomes: dict[Path, Outcome] = {}
    for task in tasks:
        if task.target.exists() and not force:
            task.target.touch()  # the newest one is what the book shows
            outcomes[task.target] = Outcome(task, "unchanged")
    left = [task for task in tasks if task.target not in outcomes]
    if left:
        jobs = min(jobs or default_jobs(len(left)), len(left))
        for outcome in _Pool(project, left, jobs).run():
            outcomes[outcome.task.target] = outcome
    return [outcomes[task.target] for task in tasks]


class _Pool:
    def __init__(self, project: Project, tasks: list[Task], jobs: int) -> None:
        from bookrunner import execution

        self._execution = execution
        self._project, self._jobs = project, jobs
        expected = {task.label: last_seconds(task) for task in tasks}
        # The longest first: then no processor waits for one long chapter at the end.
        self._tasks = sorted(tasks, key=lambda task: -(expected[task.label] or float("inf")))
        known = {label: seconds for label, seconds in expected.items() if seconds is not None}
        self._progress = Progress(expected, jobs, known)
        self._env = kernel_environment(project, jobs)
        self._active: set[Execution] = set()
        self._stopping = threading.Event()

    def run(self) -> list[Outcome]:
        with ThreadPoolExecutor(self._jobs) as threads:
            pending = futures = [threads.submit(self._one, task) for task in self._tasks]
            try:
                while pending:
                    _, pending = wait(pending, timeout=0.3, return_when=FIRST_COMPLETED)
                    self._progress.tick()
            except BaseException:
                self._stop()
                raise
            finally:
                self._progress.close()
        return [future.result() for future in futures]

    def _stop(self) -> None:
        self._stopping.set()
        for execution in list(self._active):
            execution.stop()

    def _one(self, task: Task) -> Outcome:
        if self._stopping.is_set():
            return Outcome(task, "stopped")
        execution = self._execution.Execution(
            task.chapter.notebook,
            task.parameters,
            cwd=self._project.notebooks,
            env=self._env,
            on_cell=lambda number, n_cells: self._progress.cell(task.label, number, n_cells),
        )
        self._active.add(execution)
        started = time.monotonic()
        self._progress.start(task.label)
        try:
            outcome = store(task, execution.run())
        except self._execution.ExecutionError as error:
            stopped = self._stopping.is_set()
            outcome = Outcome(task, "stopped") if stopped else store_failure(task, error)
        finally:
            self._active.discard(execution)
        outcome.seconds = time.monotonic() - started
        self._progress.finish(task.label, outcome.in_words())
        return outcome


def store(task: Task, notebook: dict) -> Outcome:
    """Move an executed notebook to its final name."""
    write_atomically(task.target, _as_text(_with_run_metadata(notebook, task)))
    task.failed.unlink(missing_ok=True)
    return Outcome(task, "done")


def store_failure(task: Task, error: ExecutionError) -> Outcome:
    """Keep a notebook that failed, beside the others, as far as it ran."""
    task.failed.unlink(missing_ok=True)
    if error.notebook is not None:
        write_atomically(task.failed, _as_text(error.notebook))
    return Outcome(task, "failed", summary=error.summary, report=error.report)


def _with_run_metadata(notebook: dict, task: Task) -> dict:
    """The executed notebook, with what it was run with in its metadata."""
    notebook["metadata"].setdefault("preflearn", {})["run"] = {
        "chapter": task.chapter.name,
        "profile": profile_of(task.chapter, task.parameters),
        "parameters": task.parameters,
        "date": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "seconds": round(float(notebook["metadata"]["papermill"]["duration"]), 3),
    }
    return notebook


def _as_text(notebook: dict) -> str:
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def last_seconds(task: Task) -> float | None:
    """How long the task took last time, in the same profile; None if it is new."""
    path = newest_executed(task.target.parent, task.target.name.split("-")[0])
    if path is None:
        return None
    try:
        return float(json.loads(path.read_text("utf-8"))["metadata"]["preflearn"]["run"]["seconds"])
    except (KeyError, ValueError):
        return None


def newest_executed(folder: Path, profile: str = "*") -> Path | None:
    """The executed notebook in a folder that was written, or found unchanged, last."""
    found = sorted(folder.glob(f"{profile}-*.ipynb"), key=lambda path: path.stat().st_mtime_ns)
    return found[-1] if found else None


def prune(folder: Path, profile: str, kept: int = _KEPT) -> None:
    """Delete all but the newest executed notebooks of a profile."""
    found = sorted(folder.glob(f"{profile}-*.ipynb"), key=lambda path: -path.stat().st_mtime_ns)
    for path in found[kept:]:
        path.unlink()


def clean_temporaries(folders: Iterable[Path]) -> None:
    """Delete temporary files that a killed run left; fresh ones may belong to one that runs now."""
    for folder in folders:
        for path in folder.rglob(".tmp-*"):
            with contextlib.suppress(OSError):
                if path.is_file() and time.time() - path.stat().st_mtime > _STALE_S:
                    path.unlink()
