"""Execute one notebook with papermill, here or on a worker: in a kernel of its own, within limits.

Papermill loads, parameterises, runs and times the cells. Its engine is replaced by a small one, for what
it can't do: start kernels one after the other, give a kernel its environment, bound the output of a cell,
follow the cells from outside, and kill a kernel when the runner is interrupted.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import re
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.execute import execute_notebook
from papermill.log import logger

from bookrunner.outputs import INJECTED_TAG, PROVENANCE_TAG, payloads
from bookrunner.parameters import declared
from bookrunner.project import THREAD_VARIABLES
from bookrunner.records import PROVENANCE_MIME

_PROVENANCE = "import bookrunner.records as _records\n\n_records.emit_provenance({!r})"
_NOISE = re.compile(r"Kernel is running over TCP without encryption")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_START_ATTEMPTS = 3


@dataclass(frozen=True)
class Limits:
    """What one cell may take: seconds, and megabytes of output."""

    cell_seconds: float = 6 * 3600
    cell_megabytes: float = 20


GENEROUS = Limits()


@dataclass(frozen=True)
class Job:
    """One notebook to execute, as a worker elsewhere can be told: its parameters, the project's folder."""

    label: str
    notebook: dict[str, Any]
    parameters: dict[str, Any]
    root: str
    limits: Limits = GENEROUS


@dataclass(frozen=True)
class Result:
    """The notebook as far as it ran; where it failed, a line that says how, and a report."""

    notebook: dict[str, Any] | None
    summary: str = ""
    report: str = ""


class Kernels:
    """The kernels of one process: started one after the other, since their ports can race; stopped together.

    Parameters
    ----------
    watch : callable, optional
        Called with the label, the number of a cell (0 before the first) and the number of cells.
    """

    def __init__(self, watch: Callable[[str, int, int], None] = lambda *_: None) -> None:
        self.watch, self.starting, self.stopped = watch, threading.Lock(), False
        self.running: set[_Client] = set()

    def stop(self) -> None:
        """Kill all kernels, and let no other start."""
        self.stopped = True
        for client in list(self.running):
            client.kill("stopped")


_of_this_process = Kernels()


class _Client(PapermillNotebookClient):
    """Papermill's client, which knows its cell and its limits and can be killed from another thread."""

    job: Job
    kernels: Kernels
    cell_number = 0  # of the cell that runs, as a reader of the source counts
    written = 0
    reason = ""

    def execute_cell(self, cell: Any, cell_index: int, *args: Any, **kwargs: Any) -> Any:
        self.cell_number = sum(not _injected(cell) for cell in self.nb.cells[: cell_index + 1])
        self.written = 0
        self.kernels.watch(self.job.label, cell_index + 1, len(self.nb.cells))
        return super().execute_cell(cell, cell_index, *args, **kwargs)

    def process_message(self, msg: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        self.written += len(json.dumps(msg["content"], default=str))
        if self.written > self.job.limits.cell_megabytes * 1e6:
            limit = f"{self.job.limits.cell_megabytes:g} MB"
            self.kill(f"more than {limit} of output (--cell-output gives it more)")
            return None
        return super().process_message(msg, *args, **kwargs)

    def kill(self, reason: str) -> None:
        self.reason = self.reason or reason
        process = getattr(getattr(self.km, "provisioner", None), "process", None)
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()

    def start(self, **where: Any) -> None:
        for attempt in range(_START_ATTEMPTS):
            if self.kernels.stopped:
                raise RuntimeError("stopped before its kernel started")
            try:
                self.create_kernel_manager()
                self.start_new_kernel(**where)
                if self.kernels.stopped:  # while the process was being made
                    self.kill("stopped")
                self.start_new_kernel_client()
                return
            except RuntimeError as error:
                if attempt == _START_ATTEMPTS - 1 or "Kernel" not in str(error):
                    raise


class _Engine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(  # pyright: ignore[reportIncompatibleMethodOverride] - gets our keyword
        cls, nb_man: Any, kernel_name: str, *, run: _Run, **_ignored: Any
    ) -> None:
        run.cells(nb_man, kernel_name)


papermill_engines.register("preflearn", _Engine)


def kernel_environment(root: str) -> dict[str, str]:
    """The environment of kernels: one thread each unless the user says otherwise, and no relative path.

    A chapter gives the same numbers alone and beside others, and reads the data that the command sees.
    """
    env = dict.fromkeys(THREAD_VARIABLES, "1") | dict(os.environ) | {"PREFLEARN_ROOT": root}
    if mirror := env.get("PREFLEARN_DATA"):
        env["PREFLEARN_DATA"] = str(Path(mirror).absolute())
    return env


def execute(job: Job, kernels: Kernels = _of_this_process) -> Result:
    """Execute a notebook; it failed unless its last cell, added for the provenance, ran."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        # jupyter_core keeps its event loop in a context variable, which the threads of a Dask worker share.
        result = contextvars.Context().run(_Run(job, kernels, stderr).result)
    # Plain dictionaries, as they are read from a file: what was not valid JSON is found here.
    return replace(result, notebook=json.loads(json.dumps(result.notebook)))


class _Run:
    def __init__(self, job: Job, kernels: Kernels, stderr: Any) -> None:
        self.job, self.kernels, self.stderr = job, kernels, stderr
        self.client: Any = None

    def result(self) -> Result:
        source = nbformat.from_dict(self.job.notebook)
        call = _PROVENANCE.format(list(declared(self.job.notebook)))
        last = nbformat.v4.new_code_cell(call, id="provenance", metadata={"tags": [PROVENANCE_TAG]})
        source.cells.append(last)
        logger.setLevel("CRITICAL")
        options: dict[str, Any] = {"engine_name": "preflearn", "progress_bar": False, "run": self}
        try:
            notebook = execute_notebook(source, None, self.job.parameters, **options)
        except PapermillExecutionError as error:
            return self.failed_cell(error)
        except Exception as error:
            return self.failed_kernel(error)
        if next(payloads(notebook, PROVENANCE_MIME), None) is None:  # papermill takes SystemExit for an end
            how = "the chapter ended before its last cell, as sys.exit() does, in cell"
            return Result(notebook, f"{how} {self.client.cell_number}", "a chapter has to run to its end")
        return Result(notebook)

    def cells(self, nb_man: Any, kernel_name: str) -> None:
        """What papermill's engine does: start a kernel and run all cells."""
        limits: dict[str, Any] = {
            "timeout": max(1, round(self.job.limits.cell_seconds)),
            "startup_timeout": 60,
        }
        self.client = client = _Client(nb_man, kernel_name=kernel_name, log=logger, **limits)
        client.job, client.kernels = self.job, self.kernels
        self.kernels.watch(self.job.label, 0, len(nb_man.nb.cells))
        folder = Path(self.job.root) / "notebooks"  # which a worker elsewhere need not have
        cwd = str(folder) if folder.is_dir() else tempfile.gettempdir()
        self.kernels.running.add(client)
        try:
            with self.kernels.starting:
                client.start(cwd=cwd, env=kernel_environment(self.job.root), stderr=self.stderr)
            client.execute()
        finally:
            self.kernels.running.discard(client)

    def failed_cell(self, error: PapermillExecutionError) -> Result:
        lines = [_COLOURS.sub("", line) for line in "\n".join(error.traceback).splitlines()]
        where = f"cell {self.client.cell_number} of the notebook (In [{error.exec_count}])"
        failing = re.search(r"line (\d+)", next((s for s in lines if s.startswith("Cell In")), ""))
        excerpt = _numbered(error.source, int(failing[1]) if failing else None)
        what = " ".join(f"{error.ename}: {error.evalue}".strip(": ").split())[:500]
        return Result(self.client.nb, f"{what} in {where}", "\n".join([f"{where}:", excerpt, "", *lines]))

    def failed_kernel(self, error: Exception) -> Result:
        self.stderr.seek(0)
        said = [line for line in self.stderr.read().splitlines() if line.strip() and not _NOISE.search(line)]
        what, tail = f"{type(error).__name__}: {error}", "\n".join(said[-20:])
        if self.kernels.stopped:
            what = "stopped"
        elif self.client and self.client.reason:
            what, tail = self.client.reason, ""
        elif isinstance(error, CellTimeoutError):
            what, tail = f"more than {self.job.limits.cell_seconds:g} s (--cell-time gives it more)", ""
        elif isinstance(error, DeadKernelError):
            what = "the kernel died (out of memory, or a crash in compiled code?)"
        number = self.client.cell_number if self.client else 0
        if number == 0:
            return Result(None, f"{what} before its first cell", tail)
        source = [cell.source for cell in self.client.nb.cells if not _injected(cell)][number - 1]
        return Result(self.client.nb, f"{what} in cell {number}", f"{_numbered(source, None)}\n\n{tail}")


def _injected(cell: dict[str, Any]) -> bool:
    return INJECTED_TAG in cell["metadata"].get("tags", [])


def _numbered(source: str, failing: int | None, around: int = 6) -> str:
    """Lines of a cell with their numbers, those near the failing one, which an arrow marks."""
    lines = source.splitlines()
    low, high = (max(0, failing - 1 - around), failing + around) if failing else (0, 2 * around)
    return "\n".join(
        f"{'->' if number == failing else '  '} {number:3d} | {line}"
        for number, line in enumerate(lines, start=1)
        if low < number <= high
    )
