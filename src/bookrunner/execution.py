"""Execute one notebook, here or on a worker: in a kernel of its own, within limits.

Papermill injects the parameters, nbclient runs the cells. What is left to do here: kernels are started one
after the other, get their environment, and all of them are killed when the runner is interrupted.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from bookrunner.outputs import INJECTED_TAG, PROVENANCE_TAG
from bookrunner.parameters import declared
from bookrunner.project import THREAD_VARIABLES

CELL_SECONDS = 6 * 3600
"""What one cell may take, unless told otherwise."""

_PROVENANCE = "import bookrunner.records as _records\n\n_records.emit_provenance({!r})"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_START_ATTEMPTS = 3


class Result(NamedTuple):
    """The notebook as far as it ran, for how long; where it failed, a line that says how, and a report."""

    notebook: dict[str, Any] | None
    summary: str = ""
    report: str = ""
    seconds: float = 0.0


class Kernels:
    """The kernels of a process: started one after the other, since their ports can race; stopped together."""

    def __init__(self) -> None:
        self.starting, self.stopped = threading.Lock(), False
        self.running: list[Any] = []

    def execute(self, client: Any, **where: Any) -> None:
        """Run the notebook of a client in a kernel."""
        for attempt in range(1, _START_ATTEMPTS + 1):
            with self.starting:
                if self.stopped:
                    raise RuntimeError("stopped")
                try:
                    client.km = client.create_kernel_manager()
                    client.start_new_kernel(**where)
                    self.running.append(client.km.provisioner.process)
                    client.start_new_kernel_client()
                    break
                except RuntimeError as error:  # it did not answer
                    if attempt == _START_ATTEMPTS or "Kernel" not in str(error):
                        raise
        client.execute()

    def stop(self) -> None:
        """Kill all kernels, and let no other start."""
        with self.starting:
            self.stopped = True
            for process in self.running:
                process.kill()


_of_this_process = Kernels()


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
    begun: Callable[[int, int], None] | None = None,
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
    begun : callable, optional
        Told of each cell, as it begins, its number and how many there are.
    """
    source, kernels = load_notebook_node(nbformat.from_dict(notebook)), kernels or _of_this_process
    text = _PROVENANCE.format(list(declared(notebook)))
    source.cells.append(nbformat.v4.new_code_cell(text, metadata={"tags": [PROVENANCE_TAG]}))
    if parameters:
        source = parameterize_notebook(source, parameters)
    place = "before its first cell"

    def on_cell_start(cell: Any, cell_index: int) -> None:
        nonlocal place
        number = sum(INJECTED_TAG not in one.metadata.tags for one in source.cells[: cell_index + 1])
        place = f"in cell {number}"  # as a reader of the source counts
        if begun is not None:
            begun(number, len(source.cells))

    limits: dict[str, Any] = {"timeout": cell_seconds, "startup_timeout": 60, "iopub_timeout": 60}
    client = NotebookClient(source, on_cell_start=on_cell_start, raise_on_iopub_timeout=True, **limits)
    folder, started = Path(root) / "notebooks", time.monotonic()
    how = report = ""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        where: dict[str, Any] = {"env": kernel_environment(root), "stderr": stderr}
        where["cwd"] = str(folder) if folder.is_dir() else tempfile.gettempdir()
        try:
            # jupyter_core keeps its event loop in a context variable, which threads of a Dask worker share.
            Context().run(kernels.execute, client, **where)
        except CellExecutionError as error:
            how, report = f"{error.ename}: {error.evalue}", _COLOURS.sub("", str(error))
        except CellTimeoutError:
            how = f"more than {cell_seconds} s (--cell-time gives it more)"
        except DeadKernelError:
            how = "the kernel died (out of memory, or a crash in compiled code?)"
            stderr.seek(0)
            report = "".join(stderr.readlines()[-20:])
        except Exception as error:
            how = f"{type(error).__name__}: {error}"
    seconds = round(time.monotonic() - started, 3)
    found = json.loads(json.dumps(source))
    if not how:
        return Result(found, seconds=seconds)
    how = "stopped" if kernels.stopped else " ".join(how.split())[:500]
    return Result(found if place.startswith("in") else None, f"{how} {place}", report, seconds)
