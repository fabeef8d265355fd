"""Dependencies of chapters: digests of everything that the last run read.

A run stores digests of its inputs in the executed notebook: the notebook's source,
versions, and everything that its kernel read (modules, data files, tables, claims). A
chapter is run again if they differ from the current `State`. Time stamps are ignored.
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
    """Digests of everything that chapters may read. Modules and claims are read when a
    build or a sweep starts.

    ``state["module preflearn/pairs.py"]`` is None if the module does not exist. Other
    keys are "notebook NAME", "point NAME", "version PACKAGE", "claim ID", "table PATH",
    "data SET/FILE", and "dataset SET", which says whether a data set is available.
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
            f"claim {claim.id}": claim.badge_digest for claim in self.claims.values()
        }
        # Read all files now, because they may be edited before the run ends.
        for path in (path for name in PACKAGES for path in (source / name).rglob("*")):
            if path.suffix in (".py", ".html"):
                self._sources[path.relative_to(source).as_posix()] = path.read_bytes()

    def __getitem__(self, name: str) -> str | None:
        if name not in self._known:
            kind, _, what = name.partition(" ")
            find = getattr(self, f"_{kind}", lambda what: None)
            self._known[name] = find(what)
        return self._known[name]

    def _module(self, name: str) -> str | None:
        content = self._sources.get(name)
        if content is None:
            return None
        if name.endswith(".py"):
            with suppress(SyntaxError):  # the file is being edited
                return module_digest(content)
        return digest(content)

    def _notebook(self, chapter: str) -> str:
        """Digest of the sources and metadata of a notebook, without outputs."""
        notebook = self._project.chapter(chapter).notebook
        cells = [
            [cell["cell_type"], cell["source"], cell["metadata"]]
            for cell in notebook["cells"]
        ]
        metadata = dict(notebook["metadata"])
        metadata.pop("language_info", None)
        return digest([cells, metadata])

    def _point(self, chapter: str) -> str:
        """Digest of the code that a point of a sweep runs."""
        cells = self._project.chapter(chapter).point["cells"]
        return digest([cell["source"] for cell in cells if cell["cell_type"] == "code"])

    def _table(self, relative: str) -> str | None:
        with suppress(FileNotFoundError):
            return digest(project_file(relative, self._project.root).read_bytes())

    def _data(self, name: str) -> str | None:
        from preflearn.datasets import registry  # imported late: it loads pandas

        dataset, file = name.split("/", 1)
        # An unknown file or one that differs from the registered file has no digest.
        with suppress(ValueError, registry.DatasetUnavailable):
            (entry,) = registry.files_of(dataset, [file])
            found = registry.locate(entry)
            if found:
                return digest(registry.verified(entry, found[0]))
        return None

    def _dataset(self, name: str) -> str | None:
        from preflearn import datasets

        if datasets.available(name):
            return "here"
        return None

    def inputs(
        self, chapter: Chapter, part: str, profile: str, executed: Executed
    ) -> dict[str, str | None]:
        """Return digests of the inputs of an executed notebook.

        The kernel computes the digests of tables, claims and data when it reads them, and
        reports the modules that it imported.
        """
        provenance = executed.provenance
        names = [
            f"{part} {chapter.name}",
            *(f"module {name}" for name in provenance["modules"]),
        ]
        names += [name for name in self._known if name.startswith("version ")]
        read = dict(provenance["read"])
        if profile == "full":  # its own records will be replaced
            for name in provenance["read"]:
                if name.startswith(f"table data/recorded/{chapter.name}_"):
                    del read[name]
        return read | {name: self[name] for name in names}

    def changes(self, executed: Executed) -> list[str]:
        """Return the names of inputs that changed after the notebook was executed."""
        return [
            name
            for name, content in executed.run["inputs"].items()
            if self[name] != content
        ]
