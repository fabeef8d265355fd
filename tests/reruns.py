"""Run notebooks as a reader does: by papermill, from another folder, with other
parameters."""

import os
import random
import subprocess
from pathlib import Path

import nbformat
import papermill
import yaml
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from preflearn_book.runner.claims import CLAIM_MIME
from preflearn_book.runner.outputs import read_executed

ROOT = Path(__file__).parents[1]
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
OTHER_VALUES = yaml.safe_load(
    Path(__file__).with_name("other_values.yml").read_text("utf-8")
)
# Seconds to wait for the last output of a cell: a busy computer is not a fault of the
# notebook.
PATIENCE = 180


def rerun(name, folder, **parameters):
    """Execute a notebook from `folder` and return the claims whose verdict differs from
    the claims list.

    Raises
    ------
    papermill.PapermillExecutionError
        If a cell fails.
    """
    target = folder / "executed.ipynb"
    papermill.execute_notebook(
        NOTEBOOKS[name],
        target,
        parameters,
        cwd=folder,
        progress_bar=False,
        iopub_timeout=PATIENCE,
    )
    return disagreeing_claims(nbformat.read(target, as_version=4))


def disagreeing_claims(notebook):
    """Return the claims of an executed notebook whose verdict differs from the claims
    list."""
    outputs = [
        output.get("data", {})
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    ]
    checks = [data[CLAIM_MIME] for data in outputs if CLAIM_MIME in data]
    return [
        f"{check['id']}: {check['computed']}" for check in checks if not check["agrees"]
    ]


def run_twice(name, folder, seed):
    """Run a notebook with another seed, then all its code cells in random order.

    Returns
    -------
    disagreeing : list of str
        The claims whose verdict in the first run differs from the claims list.
    failures : list of str
        The cells that fail in the second run.
    """
    notebook = load_notebook_node(str(NOTEBOOKS[name]))
    notebook = parameterize_notebook(notebook, {"seed": seed})
    cells = [
        (number, cell)
        for number, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
    ]
    client = NotebookClient(
        notebook,
        timeout=3600,
        iopub_timeout=PATIENCE,
        resources={"metadata": {"path": folder}},
    )
    failures = []
    with client.setup_kernel():
        for number, cell in cells:
            client.execute_cell(cell, number)
        disagreeing = disagreeing_claims(notebook)
        for number, cell in random.Random(seed).sample(cells, len(cells)):
            try:
                client.execute_cell(cell, number)
            except CellExecutionError as error:
                failures.append(f"cell {number}: {error.ename}: {error.evalue}")
    return disagreeing, failures


def datasets_of(name):
    """Return the data sets that a notebook reads, according to its executed version in
    the built book."""
    executed = read_executed(ROOT / "_build" / "executed" / name / "quick.ipynb")
    assert executed is not None, "build the book first: make book"
    read = (entry.split(maxsplit=1) for entry in executed.provenance["read"])
    return sorted({what.split("/")[0] for kind, what in read if kind == "data"})


def use_mirror_without(monkeypatch, folder, hidden):
    """Use the current mirror without one of its data sets, without a cache, and without
    downloads."""
    mirror = folder / "mirror"
    mirror.mkdir()
    for dataset in Path(os.environ["PREFLEARN_DATA"]).iterdir():
        if dataset.is_dir() and dataset.name != hidden:
            (mirror / dataset.name).symlink_to(dataset)
    monkeypatch.setenv("PREFLEARN_DATA", str(mirror))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")


def number_of_commits():
    """Return the number of commits, which changes with each commit; 0 outside a git
    checkout."""
    count = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return int(count.stdout or 0)
