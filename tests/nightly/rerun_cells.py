"""Run a notebook, then its code cells once more in another order in the same kernel.

``python tests/nightly/rerun_cells.py notebooks/04*.ipynb`` prints each cell that fails then.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def rerun_cells(path: str | Path, order: str) -> list[str]:
    """Run a notebook, then its visible and hidden code cells again.

    Parameters
    ----------
    path : path
        Notebook whose cells are run.
    order : {"reverse", "random"}
        Order of the second run.

    Returns
    -------
    list of str
        One line for each cell that fails in the second run: its number and its error.
    """
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in enumerate(notebook.cells) if cell[1].cell_type == "code"]
    again = cells[::-1]
    if order == "random":
        random.Random(0).shuffle(again)
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=3600, resources={"metadata": {"path": folder}})
        with client.setup_kernel():
            for number, cell in cells:
                client.execute_cell(cell, number)
            for number, cell in again:
                try:
                    client.execute_cell(cell, number)
                except CellExecutionError as error:
                    failures.append(f"cell {number}: {error.ename}: {error.evalue}")
    return failures


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for order in ("reverse", "random"):
            for failure in rerun_cells(name, order):
                print(f"{Path(name).stem}, {order}: {failure}", flush=True)
