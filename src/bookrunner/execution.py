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
from collections.abc import Callable
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
        with self.starting:
            if self.stopped:
                raise RuntimeError("stopped")
            client.km = client.create_kernel_manager()
            client.start_new_kernel(**where)
            self.running.append(client.km.provisioner.process)
            client.start_new_kernel_client()

    def stop(self) -> None:
        """Kill all kernels, and let no other start."""
        with self.starting:
            self.stopped = True
            for process in self.running:
                process.kill()


_of_this_process = Kernels()


class _Engine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(  # pyright: ignore[reportIncompatibleMethodOverride] - gets our keyword
        cls, nb_man: Any, kernel_name: str, *, run: Callable[[Any, str], None], **_ignored: Any
    ) -> None:
        run(nb_man, kernel_name)


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
    begun: Callable[[str], None] | None = None,
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
        Told of each cell, when it begins, such as "cell 3 of 20".
    """
    source, kernels = nbformat.from_dict(notebook), kernels or _of_this_process
    text = _PROVENANCE.format(list(declared(notebook)))
    source.cells.append(nbformat.v4.new_code_cell(text, metadata={"tags": [PROVENANCE_TAG]}))
    folder = Path(root) / "notebooks"
    how = report = ""
    found, place = None, "before its first cell"

    def run(manager: Any, kernel_name: str) -> None:
        def watch(cell: Any, cell_index: int) -> None:
            nonlocal found, place
            # As a reader of the source counts.
            own = [INJECTED_TAG not in one.metadata.tags for one in manager.nb.cells]
            found, number = manager.nb, sum(own[: cell_index + 1])
            place = f"in cell {number}"
            if begun is not None:
                begun(f"cell {number} of {sum(own)}")

        limits = {"timeout": cell_seconds, "startup_timeout": 180, "on_cell_start": watch}
        client = PapermillNotebookClient(manager, kernel_name=kernel_name, log=logger, **limits)
        cwd = str(folder) if folder.is_dir() else tempfile.gettempdir()
        kernels.start(client, cwd=cwd, env=kernel_environment(root), stderr=stderr)
        client.execute()

    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        try:
            # jupyter_core keeps its event loop in a context variable, which threads of a Dask worker share.
            given = (source, None, parameters, "preflearn")  # no file is written
            Context().run(execute_notebook, *given, progress_bar=False, run=run)
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
    notebook = json.loads(json.dumps(found))
    if not how and PROVENANCE_MIME not in json.dumps(notebook["cells"][-1]["outputs"]):
        # Papermill takes SystemExit for an end.
        how = "the chapter ended before its last cell, as sys.exit() does,"
    if not how:
        return Result(notebook)
    how = "stopped" if kernels.stopped else " ".join(how.split())[:500]
    return Result(notebook, f"{how} {place}", report)
