"""Execute one notebook with papermill: in a kernel of its own, stoppable, with a report where it fails."""

from __future__ import annotations

import contextlib
import re
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

import nbformat
from nbclient.exceptions import DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.execute import execute_notebook
from papermill.log import logger

__all__ = ["PROVENANCE_TAG", "Execution", "ExecutionError"]

PROVENANCE_TAG = "preflearn-provenance"

_PROVENANCE_SOURCE = "import bookrunner.records as _records\n\n_records.emit_provenance()"
_NOISE = re.compile(r"Kernel is running over TCP without encryption")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_START_ATTEMPTS = 3

# Kernels that start at the same moment can race for ports: they start one after the other.
_starting = threading.Lock()


class ExecutionError(RuntimeError):
    """A notebook did not run to its end.

    Attributes
    ----------
    summary : str
        One line: the exception, and the cell.
    report : str
        The cell's source around the failing line, and the traceback.
    notebook : dict or None
        The notebook as far as it ran.
    """

    def __init__(self, summary: str, report: str, notebook: dict | None) -> None:
        super().__init__(summary)
        self.summary, self.report, self.notebook = summary, report, notebook

    def __reduce__(self) -> tuple:
        return type(self), (self.summary, self.report, self.notebook)


class _Engine(NBClientEngine):
    """Papermill's engine, with a kernel that is started in its turn and can be stopped from outside."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: object, kernel_name: str, *, execution: Execution, **_ignored: object
    ) -> None:
        execution.run_cells(nb_man, kernel_name)


papermill_engines.register("preflearn", _Engine)


class Execution:
    """One execution of a notebook; `run` in one thread, `stop` from any other.

    Parameters
    ----------
    notebook : dict
        The source, as parsed JSON.
    parameters : mapping of str to object
        Injected after the cell tagged `parameters`.
    cwd : Path
        The kernel's folder.
    env : mapping of str to str
        The kernel's environment.
    on_cell : callable, optional
        Called with the number of a cell, from 1, and the number of cells, when the cell starts.
    """

    def __init__(
        self,
        notebook: Mapping,
        parameters: Mapping[str, object],
        *,
        cwd: Path,
        env: Mapping[str, str],
        on_cell: Callable[[int, int], None] | None = None,
    ) -> None:
        self._source = nbformat.from_dict(notebook)
        self._parameters = dict(parameters)
        self._kernel = {"cwd": str(cwd), "env": dict(env)}
        self._on_cell = on_cell
        self._client: PapermillNotebookClient | None = None
        self._stopped = False
        self._notebook: dict | None = None
        self._stderr = None

    def run(self) -> dict:
        """Execute, and return the executed notebook with a last, tagged cell for the provenance.

        Raises
        ------
        ExecutionError
            If a cell raises, the kernel dies or does not start, or `stop` was called.
        """
        source = nbformat.from_dict(self._source)
        provenance = nbformat.v4.new_code_cell(_PROVENANCE_SOURCE, id="provenance")
        provenance.metadata["tags"] = [PROVENANCE_TAG]
        source.cells.append(provenance)
        logger.setLevel("CRITICAL")
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as self._stderr:
            try:
                return execute_notebook(
                    source,
                    None,
                    self._parameters,
                    engine_name="preflearn",
                    progress_bar=False,
                    execution=self,
                )
            except PapermillExecutionError as error:
                raise self._cell_error(error) from None
            except Exception as error:
                raise self._kernel_error(error) from error

    def stop(self) -> None:
        """Kill the kernel; `run` then raises."""
        self._stopped = True
        manager = getattr(self._client, "km", None)
        process = getattr(getattr(manager, "provisioner", None), "process", None)
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()

    def run_cells(self, nb_man: object, kernel_name: str) -> None:
        """What papermill's engine calls: start a kernel and run all cells."""
        self._notebook = nb_man.nb
        self._report_cells(nb_man)
        for attempt in range(1, _START_ATTEMPTS + 1):
            self._client = PapermillNotebookClient(
                nb_man, kernel_name=kernel_name, timeout=None, startup_timeout=60, log=logger
            )
            try:
                with _starting:
                    self._start_kernel()
                break
            except RuntimeError as error:
                if self._stopped or attempt == _START_ATTEMPTS or "Kernel" not in str(error):
                    raise
        self._client.execute()

    def _start_kernel(self) -> None:
        if self._stopped:
            raise RuntimeError("stopped before its kernel started")
        self._client.create_kernel_manager()
        self._client.start_new_kernel(stderr=self._stderr, **self._kernel)
        if self._stopped:  # while the process was being made
            self.stop()
        self._client.start_new_kernel_client()

    def _report_cells(self, nb_man: object) -> None:
        if self._on_cell is None:
            return
        inner = nb_man.cell_start

        def cell_start(cell: object, cell_index: int | None = None, **kwargs: object) -> object:
            self._on_cell(cell_index + 1, len(nb_man.nb.cells))
            return inner(cell, cell_index, **kwargs)

        nb_man.cell_start = cell_start

    def _cell_error(self, error: PapermillExecutionError) -> ExecutionError:
        lines = [_COLOURS.sub("", line) for line in "\n".join(error.traceback).splitlines()]
        number = error.cell_index + 1 - (1 if self._parameters else 0)
        where = f"cell {number} of the notebook (In [{error.exec_count}])"
        failing = re.search(r"line (\d+)", next((s for s in lines if s.startswith("Cell In")), ""))
        excerpt = _numbered(error.source, int(failing[1]) if failing else None)
        report = f"{where}:\n{excerpt}\n\n" + "\n".join(lines)
        return ExecutionError(
            f"{error.ename}: {error.evalue}".strip(": ") + f" in {where}", report, self._notebook
        )

    def _kernel_error(self, error: Exception) -> ExecutionError:
        self._stderr.seek(0)
        said = [line for line in self._stderr.read().splitlines() if line.strip() and not _NOISE.search(line)]
        cells = (self._notebook or {}).get("cells", [])
        running = next((c for c in cells if c.metadata.get("papermill", {}).get("status") == "running"), None)
        if running is None:  # papermill marks the cell as complete on its way out
            done = [c for c in cells if c.metadata.get("papermill", {}).get("start_time")]
            running = done[-1] if done else None
        if self._stopped:
            what = "stopped"
        elif isinstance(error, DeadKernelError):
            what = "the kernel died (out of memory, or a crash in compiled code?)"
        else:
            what = f"{type(error).__name__}: {error}"
        where = f" in cell {cells.index(running) + 1}" if running is not None else " before its first cell"
        report = _numbered(running["source"], None) if running is not None else ""
        if not self._stopped:
            tail = said[-20:] or traceback.format_exception_only(error)
            report += "\n\n" + "\n".join(line.rstrip() for line in tail)
        return ExecutionError(what + where, report, self._notebook)


def _numbered(source: str, failing: int | None, around: int = 6) -> str:
    """Lines of a cell with their numbers, those near the failing one, which an arrow marks."""
    lines = source.splitlines()
    low, high = (max(0, failing - 1 - around), failing + around) if failing else (0, 2 * around)
    return "\n".join(
        f"{'->' if number == failing else '  '} {number:3d} | {line}"
        for number, line in enumerate(lines, start=1)
        if low < number <= high
    )
