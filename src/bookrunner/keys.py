"""What decides whether a chapter is run again: digests of all that its last run really read.

A run leaves its inputs in the executed notebook: the notebook's source, versions, and what its kernel says
that it read (modules, data files, tables, claims). They are compared with the present `State`; no time
stamp has a say.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bookrunner.files import PACKAGES, code_hashes, digest
from bookrunner.ledger import Claim
from bookrunner.outputs import Executed, payloads
from bookrunner.project import Chapter, Project
from bookrunner.records import PROVENANCE_MIME, main_versions, project_file

_CHANGED = "changed while it ran"
_LOOKS = "module preflearn/plots.py"  # of the figures, of which no number depends


class State:
    """Digests of what chapters may read, as they are when a build or a sweep starts.

    ``state["module preflearn/pairs.py"]`` is None for what does not exist. Other kinds are "notebook NAME",
    "version PACKAGE", "claim ID", "table PATH", "data SET/FILE", and "dataset SET" for whether one is here.
    """

    def __init__(self, project: Project, ledger: Mapping[str, Claim]) -> None:
        self._project, self.root = project, str(project.root)
        source = Path(__file__).parents[1]
        modules = [path for name in PACKAGES for path in (source / name).rglob("*.py")]
        self._known: dict[str, str | None] = {
            **{f"module {name}": content for name, content in code_hashes(modules, source).items()},
            **{f"version {name}": number for name, number in main_versions().items()},
            **{f"claim {claim.id}": claim.shown for claim in ledger.values()},
        }

    def __getitem__(self, name: str) -> str | None:
        if name not in self._known:
            kind, _, what = name.partition(" ")
            find = {
                "notebook": self._notebook,
                "table": self._table,
                "data": self._data,
                "dataset": self._dataset,
            }.get(kind)
            self._known[name] = find(what) if find else None
        return self._known[name]

    def _notebook(self, chapter: str) -> str:
        """Of what makes the page: sources and metadata, not outputs."""
        notebook = self._project.chapter(chapter).notebook
        cells = [[cell["cell_type"], "".join(cell["source"]), cell["metadata"]] for cell in notebook["cells"]]
        about = {key: value for key, value in notebook["metadata"].items() if key != "language_info"}
        return digest([cells, about])

    def _table(self, relative: str) -> str | None:
        try:
            return digest(project_file(relative, self._project.root).read_bytes())
        except FileNotFoundError:
            return None

    def _data(self, name: str) -> str | None:
        from preflearn.datasets import registry  # late: with pandas and all loaders

        dataset, file = name.split("/", 1)
        try:
            (entry,) = registry.files_of(dataset, [file])
            found = registry.locate(entry)
            return hashlib.sha256(registry.verified(entry, found[0])).hexdigest() if found else None
        except (ValueError, registry.DatasetUnavailable):  # unknown, or not the file that was registered
            return None

    def _dataset(self, name: str) -> str | None:
        from preflearn import datasets

        return "here" if datasets.available(name) else None

    def look_for_data(self, chapter: Chapter) -> None:
        """Note which data sets are here before a chapter runs: what arrives meanwhile, it did not read."""
        for name in chapter.datasets:
            self._known[f"dataset {name}"] = self._dataset(name)

    def inputs(self, chapter: Chapter, profile: str, notebook: dict[str, Any]) -> dict[str, str | None]:
        """What an execution depends on, given the executed notebook with its provenance.

        The kernel hashes tables, claims and data as it reads them. A module's file it can hash at its
        end only: where that is not what was here at the start, the result is no longer to be trusted.
        """
        inputs = {name: content for name, content in self._known.items() if name.startswith("version ")}
        inputs[f"notebook {chapter.name}"] = self[f"notebook {chapter.name}"]
        provenance = next(payloads(notebook, PROVENANCE_MIME))
        for name, content in provenance["read"].items():
            if profile == "full" and name.startswith(f"table data/recorded/{chapter.name}_"):
                continue  # which the full run is about to write
            changed = name.startswith("module ") and self[name] != content
            inputs[name] = _CHANGED if changed else content
        read = {file["dataset"] for file in provenance["data"]}
        for name in chapter.datasets:
            if name not in read:
                inputs[f"dataset {name}"] = self[f"dataset {name}"]
        return inputs

    def changes(self, executed: Executed) -> list[str]:
        """Names of the inputs of an executed notebook that are no longer what they were."""
        return [name for name, content in executed.run["inputs"].items() if self[name] != content]


def code_of_numbers(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The modules of the package among some inputs, by which a recorded number may change.

    An __init__ is the face of its folder: it imports names and computes nothing.
    """
    modules = {k: v for k, v in inputs.items() if k.startswith("module preflearn") and k != _LOOKS}
    return {k: v for k, v in modules.items() if not k.endswith("/__init__.py")}


def outdated_records(project: Project, state: State) -> list[str]:
    """Names of the recorded tables that were made by other code than the present, or do not say by which."""
    outdated = []
    for path in sorted((project.root / "data" / "recorded").glob("*.csv")):
        noted = re.search(r"^# code: (.+)$", path.read_text("utf-8", "replace"), re.MULTILINE)
        try:
            code = code_of_numbers(json.loads(noted[1])) if noted else {"module unknown": "-"}
            if any(not (state[name] or "").startswith(content) for name, content in code.items()):
                outdated.append(path.name)
        except (ValueError, AttributeError, TypeError):
            outdated.append(path.name)
    return outdated
