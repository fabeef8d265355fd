"""What an executed notebook holds: a page for readers, and checks, records and provenance for the book."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bookrunner.ledger import CLAIM_MIME
from bookrunner.records import PROVENANCE_MIME, RECORD_MIME

__all__ = ["Executed"]

_OURS = {CLAIM_MIME, RECORD_MIME, PROVENANCE_MIME}
_HIDDEN_TAGS = {"injected-parameters", "preflearn-provenance"}


@dataclass(frozen=True)
class Executed:
    """An executed notebook on disk."""

    path: Path

    @cached_property
    def notebook(self) -> dict:
        """The notebook as parsed JSON."""
        return json.loads(self.path.read_text("utf-8"))

    @property
    def run(self) -> dict:
        """What it was run with: chapter, profile, parameters, date (UTC) and seconds."""
        return self.notebook["metadata"]["preflearn"]["run"]

    @property
    def declared(self) -> list[str]:
        """Data sets that the chapter may read."""
        return list(self.notebook["metadata"]["preflearn"].get("data", []))

    @property
    def n_code_cells(self) -> int:
        """Number of the chapter's own code cells."""
        return sum(cell["cell_type"] == "code" and not _is_hidden(cell) for cell in self.notebook["cells"])

    @cached_property
    def checks(self) -> list[dict]:
        """Results of `claims.check`, in order."""
        return list(self._payloads(CLAIM_MIME))

    @cached_property
    def records(self) -> list[dict]:
        """Payloads of `records.record`, in order."""
        return list(self._payloads(RECORD_MIME))

    @cached_property
    def provenance(self) -> dict:
        """Versions in the kernel, and the data files that it read."""
        return next(self._payloads(PROVENANCE_MIME), {"versions": {}, "data": []})

    @property
    def replaced(self) -> list[str]:
        """Declared data sets that were not to be had, so that others took their place."""
        read = {file["dataset"] for file in self.provenance["data"]}
        return [dataset for dataset in self.declared if dataset not in read]

    def _payloads(self, mime: str) -> Iterator[dict]:
        for cell in self.notebook["cells"]:
            for output in cell.get("outputs", []):
                if mime in output.get("data", {}):
                    payload = output["data"][mime]
                    yield json.loads("".join(payload)) if isinstance(payload, list | str) else payload

    def page(self) -> str:
        """The notebook as the book shows it, as JSON text that depends on its content alone.

        The machinery is left out: our machine-readable outputs, times of execution, the injected
        parameters (a note states them) and the cell for the provenance.
        """
        cells = []
        for cell in self.notebook["cells"]:
            if _is_hidden(cell):
                continue
            cells.append(_clean(cell))
            if "parameters" in cell["metadata"].get("tags", []) and self.run["parameters"]:
                cells.append(_parameter_note(self.run["parameters"]))
        kept = ("kernelspec", "language_info")
        metadata = {key: value for key, value in self.notebook["metadata"].items() if key in kept}
        page = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        return json.dumps(page, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _is_hidden(cell: dict) -> bool:
    return not _HIDDEN_TAGS.isdisjoint(cell["metadata"].get("tags", []))


def _clean(cell: dict) -> dict:
    metadata = {
        key: value for key, value in cell["metadata"].items() if key not in ("papermill", "execution")
    }
    cleaned = cell | {"metadata": metadata}
    if cell["cell_type"] == "code":
        outputs = (_without_ours(output) for output in cell["outputs"])
        cleaned["outputs"] = [output for output in outputs if output.get("data", True)]
    return cleaned


def _without_ours(output: dict) -> dict:
    if "data" not in output:
        return output
    data = {mime: content for mime, content in output["data"].items() if mime not in _OURS}
    return output | {"data": data}


def _parameter_note(parameters: dict) -> dict:
    values = ", ".join(f"`{name} = {value!r}`" for name, value in parameters.items())
    text = f":::{{note}}\nThis page was computed with {values} in place of the values above.\n:::"
    return {"cell_type": "markdown", "id": "parameters-note", "metadata": {}, "source": text}
