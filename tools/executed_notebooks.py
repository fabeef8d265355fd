"""Write the notebooks that the last build executed, with their outputs, to
_build/executed-notebooks.zip.

    python tools/executed_notebooks.py

`make notebooks` builds the book first. What only the build reads is left out: the cells
that it adds, its machine-readable outputs, and the times of each cell.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from built import executed_chapters

from preflearn_book.runner.outputs import Executed
from preflearn_book.runner.project import Project

ROOT = Path(__file__).parents[1]
KEPT_METADATA = ("kernelspec", "language_info")
MACHINE_READABLE = "application/vnd.preflearn."


def readable_notebook(executed: Executed) -> dict:
    """The notebook as a reader's program shows it."""
    cells = []
    for cell in executed.cells:
        about = {
            name: value
            for name, value in cell["metadata"].items()
            if name in ("tags", "mystnb")
        }
        kept = cell | {"metadata": about}
        if cell["cell_type"] == "code":
            kept["outputs"] = [
                output for output in map(_without_ours, cell["outputs"]) if output
            ]
        cells.append(kept)
    metadata = {name: executed.notebook["metadata"][name] for name in KEPT_METADATA}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _without_ours(output: dict) -> dict:
    """An output without its machine-readable forms; {} if it has no other form."""
    if "data" not in output:
        return output
    data = {
        mime: value
        for mime, value in output["data"].items()
        if not mime.startswith(MACHINE_READABLE)
    }
    return output | {"data": data} if data else {}


def main() -> None:
    argparse.ArgumentParser(
        description="Collect the executed notebooks in one archive."
    ).parse_args()
    project = Project(ROOT)
    executed = executed_chapters(project)
    path = project.build / "executed-notebooks.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, notebook in executed.items():
            text = (
                json.dumps(readable_notebook(notebook), ensure_ascii=False, indent=1)
                + "\n"
            )
            archive.writestr(f"executed-notebooks/{name}.ipynb", text)
    print(f"the executed notebooks: {path}, {path.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
