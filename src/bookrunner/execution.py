"""Execute one notebook with papermill, here or on a worker: in a kernel of its own, within limits.

Papermill loads, parameterises, runs and times the cells. Its engine is replaced by a small one, for what
it can't do: start kernels one after the other, give a kernel its environment, and kill all of them when the
runner is interrupted.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
from contextvars import Context
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.execute import execute_notebook
from papermill.log import logger

from bookrunner.outputs import INJECTED_TAG, PROVENANCE_TAG
from bookrunner.parameters import declared
from bookrunner.project import THREAD_VARIABLES
from bookrunner.records import PROVENANCE_MIME

CELL_SECONDS = 6 * 3600
"""What one cell may take, unless told otherwise."""

_PROVENANCE = "import bookrunner.records as _records\n\n_records.emit_provenance({!r})"
_NOISE = re.compile(r"Kernel is running over TCP without encryption")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_START_ATTEMPTS = 3


class Result(NamedTuple):
    """The notebook as far as it ran; where it failed, a line that says how, and a report."""

    notebook: dict[str, Any] | None
    summary: str = ""
    report: str = ""


class Kernels:
    """The kernels of a process: started one after the other, since their ports can race; stopped together."""

    def __init__(self) -> None:
        self.starting, self.stopped = threading.Lock(), False
        self.running: list[Any] = []

    def start(self, client: Any, **where: Any) -> None:
        """Start the kernel of a client."""
        for attempt in range(1, _START_ATTEMPTS + 1):
            with self.starting:
                if self.stopped:
                    raise RuntimeError("stopped")
                try:
                    client.km = client.create_kernel_manager()
                    client.start_new_kernel(**where)
                    self.running.append(client.km.provisioner.process)
                    client.start_new_kernel_client()
                    return
                except RuntimeError as error:  # it did not answer
                    if attempt == _START_ATTEMPTS or "Kernel" not in str(error):
                        raise

    def stop(self) -> None:
        """Kill all kernels, and let no other start."""
        with self.starting:
            self.stopped = True
            for process in self.running:
                process.kill()


_of_this_process = Kernels()


class _Engine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(  # pyright: ignore[reportIncompatibleMethodOverride] - gets our keywords
        cls, nb_man: Any, kernel_name: str, *, kernels: Kernels, limits: dict, where: dict, **_ignored: Any
    ) -> None:
        client = PapermillNotebookClient(nb_man, kernel_name=kernel_name, log=logger, **limits)
        kernels.start(client, **where)
        client.execute()


papermill_engines.register("preflearn", _Engine)


def kernel_environment(root: str) -> dict[str, str]:
    """One thread each, unless the user says otherwise; paths as they are seen from the command's folder."""
    threads = {name: os.environ.get(name, "1") for name in THREAD_VARIABLES}
    # A kernel starts in the folder of the notebooks, where a relative path is another one.
    data = os.environ.get("PREFLEARN_DATA", "")
    mirror = {"PREFLEARN_DATA": str(Path(data).absolute())} if data else {}
    return os.environ | threads | mirror | {"PREFLEARN_ROOT": root}


def execute(
    notebook: dict[str, Any],
    parameters: dict[str, Any],
    root: str,
    cell_seconds: int = CELL_SECONDS,
    kernels: Kernels | None = None,
) -> Result:
    """Execute a notebook; nothing is raised for what its cells or its kernel do.

    Parameters
    ----------
    notebook, parameters : dict
    root : str
        The project's folder, which a worker elsewhere need not have.
    cell_seconds : int
        What a cell may take.
    kernels : Kernels, optional
        Those of this process, for whom wants to stop them.
    """
    source, kernels = nbformat.from_dict(notebook), kernels or _of_this_process
    text = _PROVENANCE.format(list(declared(notebook)))
    source.cells.append(nbformat.v4.new_code_cell(text, metadata={"tags": [PROVENANCE_TAG]}))
    folder = Path(root) / "notebooks"
    where: dict[str, Any] = {"cwd": str(folder) if folder.is_dir() else tempfile.gettempdir()}
    limits = {"timeout": cell_seconds, "startup_timeout": 60}
    how = report = ""
    kept: dict[str, Any] = {"mode": "w+", "encoding": "utf-8", "errors": "replace"}
    with tempfile.TemporaryDirectory() as aside, tempfile.TemporaryFile(**kept) as stderr:
        output = Path(aside) / "executed.ipynb"
        where |= {"env": kernel_environment(root), "stderr": stderr}
        options: dict[str, Any] = {"kernels": kernels, "limits": limits, "where": where}
        try:
            # jupyter_core keeps its event loop in a context variable, which threads of a Dask worker share.
            given = (source, str(output), parameters, "preflearn")
            Context().run(execute_notebook, *given, progress_bar=False, **options)
        except PapermillExecutionError as error:
            how, report = f"{error.ename}: {error.evalue}", _COLOURS.sub("", str(error))
        except CellTimeoutError:
            how = f"more than {cell_seconds} s (--cell-time gives it more)"
        except DeadKernelError:
            how = "the kernel died (out of memory, or a crash in compiled code?)"
            stderr.seek(0)
            report = "".join([line for line in stderr if line.strip() and not _NOISE.search(line)][-20:])
        except Exception as error:
            how = f"{type(error).__name__}: {error}"
        try:
            found = json.loads(json.dumps(nbformat.read(output, as_version=4)))  # sources as texts
        except (OSError, ValueError):  # on a disk without room
            found = {"cells": []}
    cell = _last_cell(found)
    if not how and PROVENANCE_MIME not in json.dumps(found["cells"][-1].get("outputs")):
        # Papermill takes SystemExit for an end.
        how = "the chapter ended before its last cell, as sys.exit() does,"
    if not how:
        return Result(found)
    how = "stopped" if kernels.stopped else " ".join(how.split())[:500]
    place = f"in cell {cell}" if cell else "before its first cell"
    return Result(found if cell else None, f"{how} {place}", report)


def _last_cell(notebook: dict[str, Any]) -> int:
    """The number of the last cell that was begun, as a reader of the source counts; 0 if none was."""
    cells = [cell["metadata"] for cell in notebook["cells"]]
    own = [about for about in cells if INJECTED_TAG not in about.get("tags", [])]
    return sum(about.get("papermill", {}).get("start_time") is not None for about in own)
