"""What decides whether a chapter is run again: digests of all that its last run really
read.

A run leaves its inputs in the executed notebook: the notebook's source, versions, and
what its kernel says that it read (modules, data files, tables, claims). They are
compared with the present `State`; no time stamp has a say.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from preflearn.core.source_digest import digest, module_digest
from preflearn_book.runner.claims import load_claims
from preflearn_book.runner.outputs import Executed
from preflearn_book.runner.project import Chapter, Project
from preflearn_book.runner.records import PACKAGES, main_versions, project_file


class State:
    """Digests of what chapters may read; of modules and claims, as they are when a
    build or a sweep starts.

    ``state["module preflearn/pairs.py"]`` is None for what does not exist. Other kinds
    are "notebook NAME", "point NAME", "version PACKAGE", "claim ID", "table PATH",
    "data SET/FILE", and "dataset SET" for whether one is here.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self.root = str(project.root)
        self.claims = load_claims(project.book / "claims.yml")
        source = Path(__file__).parents[2]
        self._sources: dict[str, bytes] = {}
        self._known: dict[str, str | None] = {}
        self._known |= {
            f"version {name}": number for name, number in main_versions().items()
        }
        self._known |= {
            f"claim {claim.id}": claim.shown for claim in self.claims.values()
        }
        # Read at once: a kernel imports what an editor may change before the run ends.
        for path in (path for name in PACKAGES for path in (source / name).rglob("*")):
            if path.suffix in (".py", ".html"):
                self._sources[path.relative_to(source).as_posix()] = path.read_bytes()

    def __getitem__(self, name: str) -> str | None:
        if name not in self._known:
            kind, _, what = name.partition(" ")
            find = getattr(self, f"_{kind}", None)
            self._known[name] = find(what) if find else None
        return self._known[name]

    def _module(self, name: str) -> str | None:
        content = self._sources.get(name)
        if content is None:
            return None
        if name.endswith(".py"):
            with suppress(SyntaxError):  # someone is editing the file
                return module_digest(content)
        return digest(content)

    def _notebook(self, chapter: str) -> str:
        """Of what makes the page: sources and metadata, not outputs."""
        notebook = self._project.chapter(chapter).notebook
        cells = [
            [cell["cell_type"], cell["source"], cell["metadata"]]
            for cell in notebook["cells"]
        ]
        about = {
            key: value
            for key, value in notebook["metadata"].items()
            if key != "language_info"
        }
        return digest([cells, about])

    def _point(self, chapter: str) -> str:
        """Of the code that a point of a sweep runs; neither prose nor what comes after
        has a say."""
        cells = self._project.chapter(chapter).point["cells"]
        return digest([cell["source"] for cell in cells if cell["cell_type"] == "code"])

    def _table(self, relative: str) -> str | None:
        with suppress(FileNotFoundError):
            return digest(project_file(relative, self._project.root).read_bytes())

    def _data(self, name: str) -> str | None:
        from preflearn.datasets import registry  # late: with pandas and all loaders

        dataset, file = name.split("/", 1)
        # unknown, or not the registered file
        with suppress(ValueError, registry.DatasetUnavailable):
            (entry,) = registry.files_of(dataset, [file])
            found = registry.locate(entry)
            return digest(registry.verified(entry, found[0])) if found else None

    def _dataset(self, name: str) -> str | None:
        from preflearn import datasets

        return "here" if datasets.available(name) else None

    def inputs(
        self, chapter: Chapter, part: str, profile: str, executed: Executed
    ) -> dict[str, str | None]:
        """What an execution depends on, given the executed notebook with its
        provenance.

        The kernel hashes tables, claims and data as it reads them, and names the
        modules that it imported.
        """
        provenance = executed.provenance
        names = [
            f"{part} {chapter.name}",
            *(f"module {name}" for name in provenance["modules"]),
        ]
        names += [name for name in self._known if name.startswith("version ")]
        # The records of a full run are about to be written anew.
        own = f"table data/recorded/{chapter.name}_" if profile == "full" else " "
        read = {
            name: found
            for name, found in provenance["read"].items()
            if not name.startswith(own)
        }
        return read | {name: self[name] for name in names}

    def changes(self, executed: Executed) -> list[str]:
        """Names of the inputs of an executed notebook that are no longer what they
        were."""
        return [
            name
            for name, content in executed.run["inputs"].items()
            if self[name] != content
        ]
