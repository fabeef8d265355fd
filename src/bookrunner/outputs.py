"""An executed notebook on disk: whole or missing, and what it holds for readers and for the book."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bookrunner.files import digest, write_atomically
from bookrunner.ledger import CLAIM_MIME
from bookrunner.records import PROVENANCE_MIME, RECORD_MIME

INJECTED_TAG = "injected-parameters"
PROVENANCE_TAG = "preflearn-provenance"

DOUBT = "What rests on these numbers has to be computed again."
_OURS = {CLAIM_MIME, RECORD_MIME, PROVENANCE_MIME}


def write_executed(path: Path, notebook: dict[str, Any], run: dict[str, Any]) -> Executed:
    """Write an executed notebook, with what it was run with and a digest of all of it."""
    notebook["metadata"].setdefault("preflearn", {})["run"] = run
    run["digest"] = digest(notebook)
    write_atomically(path, json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")
    return Executed(notebook)


def read_executed(path: Path) -> Executed | None:
    """The executed notebook in a file; None if there is none.

    One that can't be read, or is not what was written, counts as missing too; a line says which.
    """
    if not path.exists():
        return None
    try:
        notebook = json.loads(path.read_text("utf-8"))
        run = notebook["metadata"]["preflearn"]["run"]
        written = run.pop("digest")
        if digest(notebook) != written:
            raise ValueError("its content is not what was written")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {str(error)[:100]}"
        print(f"preflearn: {path} can't be read and counts as missing ({why})", file=sys.stderr)
        return None
    return Executed(notebook)


def payloads(notebook: dict[str, Any], mime: str) -> Iterator[dict[str, Any]]:
    """Our machine-readable outputs of one kind, in order."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if mime in output.get("data", {}):
                payload = output["data"][mime]
                yield json.loads("".join(payload)) if isinstance(payload, list | str) else payload


@dataclass(frozen=True)
class Executed:
    """An executed notebook, as parsed JSON."""

    notebook: dict[str, Any]

    @property
    def run(self) -> dict[str, Any]:
        """What it was run with: chapter, profile, parameters, date (UTC), seconds, and its inputs."""
        return self.notebook["metadata"]["preflearn"]["run"]

    @property
    def n_code_cells(self) -> int:
        """Number of the chapter's own code cells."""
        return sum(cell["cell_type"] == "code" and not _is_hidden(cell) for cell in self.notebook["cells"])

    @cached_property
    def checks(self) -> list[dict[str, Any]]:
        """Results of `check`, in order."""
        return list(payloads(self.notebook, CLAIM_MIME))

    @cached_property
    def records(self) -> dict[str, dict[str, Any]]:
        """Payloads of `record`, in order, by name."""
        return {payload["name"]: payload for payload in payloads(self.notebook, RECORD_MIME)}

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Versions in the kernel, and the data files that it read."""
        return next(payloads(self.notebook, PROVENANCE_MIME))

    @property
    def replaced(self) -> list[str]:
        """Data sets that the chapter asked for and did not get, so that others took their place.

        One that it never asked for, as in a profile that shows recorded numbers, is not among them.
        """
        asked = (name.partition(" ") for name in self.provenance["read"])
        return [dataset for kind, _, dataset in asked if kind == "dataset"]

    def page(self, repository: str = "", broken: Collection[str] = ()) -> str:
        """The notebook as the book shows it, as JSON text that depends on its content alone.

        The machinery is left out: our machine-readable outputs, times of execution, the injected
        parameters (a note states them) and the cell for the provenance. A first cell, which only those see
        who download the notebook, says how to install the package, from `repository` where that is known.
        A warning names the records among `broken`, whose witness no longer comes out; so do badges that
        rest on them.
        """
        cells = [_installation(repository)]
        for cell in self.notebook["cells"]:
            if _is_hidden(cell):
                continue
            cells.append(_clean(cell, broken))
            if "parameters" in cell["metadata"].get("tags", []):
                if given := self.run["parameters"]:
                    values = ", ".join(f"`{name} = {value!r}`" for name, value in given.items())
                    text = f"This page was computed with {values} in place of the values above."
                    cells.append(_note("parameters", text, "note"))
                if wrong := sorted(name for name in broken if name.startswith(self.run["chapter"])):
                    names = ", ".join(f"`{name}`" for name in wrong)
                    text = f"The present code no longer gives what was recorded: {names}. {DOUBT}"
                    cells.append(_note("records", text, "warning"))
        kept = ("kernelspec", "language_info")
        metadata = {key: value for key, value in self.notebook["metadata"].items() if key in kept}
        page = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        return json.dumps(page, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _is_hidden(cell: dict[str, Any]) -> bool:
    return not {INJECTED_TAG, PROVENANCE_TAG}.isdisjoint(cell["metadata"].get("tags", []))


def _clean(cell: dict[str, Any], broken: Collection[str]) -> dict[str, Any]:
    metadata = {
        key: value for key, value in cell["metadata"].items() if key not in ("papermill", "execution")
    }
    if cell["cell_type"] != "code":
        return cell | {"metadata": metadata}
    outputs = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        shown = {mime: content for mime, content in data.items() if mime not in _OURS}
        if data.get(CLAIM_MIME, {}).get("record") in broken:
            mark = f'<p class="claim-evidence"><span class="claim-label">In doubt.</span> {DOUBT}</p></div>'
            shown["text/html"] = "".join(shown["text/html"]).removesuffix("</div>") + mark
        if shown or "data" not in output:
            outputs.append(output | ({"data": shown} if shown else {}))
    return cell | {"metadata": metadata, "outputs": outputs}


def _installation(repository: str) -> dict[str, Any]:
    source = f"preflearn[book] @ git+{repository}" if repository else ".[book]"
    place = "" if repository else " in a copy of the book's repository"
    text = (
        "To run this notebook, install the book's package into the environment of its kernel, once"
        f'{place}:\n\n```\npip install "{source}"\n```'
    )
    metadata = {"tags": ["remove-cell"]}
    return {"cell_type": "markdown", "id": "installation", "metadata": metadata, "source": text}


def _note(name: str, text: str, kind: str) -> dict[str, Any]:
    source = f":::{{{kind}}}\n{text}\n:::"
    return {"cell_type": "markdown", "id": f"{name}-note", "metadata": {}, "source": source}
