"""Execute one notebook with papermill in a separate kernel, on this computer or on a
worker.

Papermill loads the notebook, sets its parameters, and runs and times its cells. Our
kernel manager sets the environment of a kernel, keeps its last error output, and allows
the runner to kill all kernels when it is interrupted.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable
from contextvars import Context
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from click import unstyle
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError
from papermill.execute import execute_notebook

from preflearn_book.runner.outputs import INJECTED_TAG, PROVENANCE_TAG
from preflearn_book.runner.project import THREAD_VARIABLES
from preflearn_book.runner.records import PROVENANCE_MIME

CELL_SECONDS = 6 * 3600
"""Default time limit of one cell."""

_PROVENANCE = (
    "import preflearn_book.runner.records as _records\n\n_records.emit_provenance({!r})"
)
# The result contains what papermill logs; after an interrupt the log would only report
# dead kernels.
logging.getLogger("papermill").setLevel(logging.CRITICAL)
_NOISE = re.compile(r"Kernel is running over TCP without encryption")


class Result(NamedTuple):
    """Executed notebook, possibly up to an error, with its run time in seconds; after an
    error also a summary of one line and a report."""

    notebook: dict[str, Any] | None
    summary: str = ""
    report: str = ""
    seconds: float = 0.0


class Kernels:
    """The kernels of this process, which can be stopped together."""

    def __init__(self) -> None:
        self.stopped = False
        self.processes = list[Any]()

    def stop(self) -> None:
        """Kill all kernels; a kernel that starts later is killed at once."""
        self.stopped = True
        for process in self.processes:
            process.kill()


def kernel_environment(root: str) -> dict[str, str]:
    """Return the environment of a kernel: absolute paths, and one thread unless the user
    set another number.

    Messages about compilation are silenced, so that no page shows them.
    """
    environment = dict.fromkeys(THREAD_VARIABLES, "1") | dict(os.environ)
    # A kernel starts in the folder of the notebooks, so a relative path would change.
    if data := environment.get("PREFLEARN_DATA"):
        environment["PREFLEARN_DATA"] = str(Path(data).absolute())
    return environment | {"PREFLEARN_ROOT": root, "PREFLEARN_QUIET": "1"}


def execute(
    notebook: dict[str, Any],
    parameters: dict[str, Any],
    names: Iterable[str],
    root: str,
    cell_seconds: int = CELL_SECONDS,
    kernels: Kernels | None = None,
    begun: Callable[[str], None] | None = None,
) -> Result:
    """Execute a notebook; the result contains errors of its cells and its kernel.

    Parameters
    ----------
    notebook, parameters : dict
    names : iterable of str
        Names of all parameters. They are not read from the notebook here: in Python
        3.11 two threads that parse at once may end with "AST constructor recursion
        depth mismatch".
    root : str
        The project's folder, which may be missing on a remote worker.
    cell_seconds : int
        Time limit of a cell.
    kernels : Kernels, optional
        The kernels of this process, so that the caller can stop them.
    begun : callable, optional
        Function that is called when a cell begins, with a text such as "cell 3 of 20".
    """
    source: Any = nbformat.from_dict(notebook)
    kernels = kernels or Kernels()
    text = _PROVENANCE.format(list(names))
    source.cells.append(
        nbformat.v4.new_code_cell(text, metadata={"tags": [PROVENANCE_TAG]})
    )
    folder = Path(root) / "notebooks"
    if not folder.is_dir():
        folder = Path(tempfile.gettempdir())
    how = ""
    report = ""
    seen = list[Any]()
    executed = None
    started = time.monotonic()

    class Manager(AsyncKernelManager):
        async def start_kernel(self, **options: Any) -> None:
            await super().start_kernel(
                env=kernel_environment(root), stderr=stderr, **options
            )
            provisioner: Any = self.provisioner
            kernels.processes.append(provisioner.process)
            if kernels.stopped:
                provisioner.process.kill()

    def on_cell_start(cell: Any, cell_index: int) -> None:
        if kernels.stopped:
            raise RuntimeError("stopped")
        seen.append(cell)
        if begun is not None:
            begun(f"cell {_number(seen)} of {len(notebook['cells']) + 1}")

    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        options: dict[str, Any] = {
            "kernel_manager_class": Manager,
            "on_cell_start": on_cell_start,
            "resources": {"metadata": {"path": str(folder)}},
            "execution_timeout": cell_seconds,
            "start_timeout": 180,
            # On a busy computer the last output of a cell may arrive late. Papermill
            # waits for 4 seconds by default.
            "iopub_timeout": 180,
        }
        try:
            # jupyter_core keeps its event loop in a context variable, which threads of
            # a Dask worker share.
            run = partial(
                execute_notebook,
                source,
                None,
                parameters,
                progress_bar=False,
                **options,
            )
            executed = Context().run(run)
        except PapermillExecutionError as error:
            how = f"{error.ename}: {error.evalue}"
            report = unstyle(str(error))
        except CellTimeoutError:
            how = (
                f"exceeded the limit of {cell_seconds} s per cell (set by --cell-time)"
            )
        except DeadKernelError:
            how = "the kernel died (perhaps out of memory, or a crash in compiled code)"
            stderr.seek(0)
            lines = [
                line for line in stderr if line.strip() and not _NOISE.search(line)
            ]
            report = "".join(lines[-20:])
        except Exception as error:
            how = f"{type(error).__name__}: {error}"
    kept = json.loads(json.dumps(executed or notebook | {"cells": seen}))
    if not how and PROVENANCE_MIME not in json.dumps(kept["cells"][-1]["outputs"]):
        # Papermill treats SystemExit as a normal end.
        how = "the notebook ended early (for example by sys.exit())"
    seconds = round(time.monotonic() - started, 3)
    if not how:
        return Result(kept, seconds=seconds)
    how = " ".join(how.split())[:500]
    if kernels.stopped:
        how = "stopped"
    if not seen:
        return Result(None, f"{how} before its first cell", report, seconds)
    return Result(kept, f"{how} in cell {_number(seen)}", report, seconds)


def _number(cells: list[Any]) -> int:
    """Return the number of the last of these cells in the source notebook."""
    return sum(INJECTED_TAG not in cell.metadata.tags for cell in cells)
