"""The project that is being built: its folders, its chapters, and their parameters."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from preflearn.core.source_digest import digest
from preflearn_book.runner.parameters import check_names, check_profile, declared, typed

_THREADED = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMBA_NUM", "VECLIB_MAXIMUM")
THREAD_VARIABLES = tuple(f"{name}_THREADS" for name in _THREADED)
"""Kernels and tests compute in one thread each, unless the user has set these."""


class Chapter:
    """One notebook ``notebooks/NAME.ipynb``: a chapter such as "03_lemma", or a page such
    as "guide"."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.stem

    @cached_property
    def notebook(self) -> dict[str, Any]:
        """The notebook as parsed JSON; the source of each cell is a text.

        Raises
        ------
        ValueError
            If the file is not a notebook.
        """
        import nbformat  # imported late, so that --help does not need it

        try:
            text = self.path.read_text("utf-8")
            nbformat.validate(json.loads(text))
            return nbformat.reads(text, as_version=4)
        except Exception as error:  # from the parser or the validator
            text = next(iter(str(error).splitlines()), type(error).__name__)
            raise ValueError(f"{self.path.name} is not a notebook: {text}") from None

    @cached_property
    def code(self) -> str:
        """Digest of the sources of the code cells, in order, without top-level imports."""
        return digest(
            [
                _without_imports(cell["source"])
                for cell in self.notebook["cells"]
                if cell["cell_type"] == "code"
            ]
        )

    @cached_property
    def point(self) -> dict[str, Any]:
        """The cells that a point of a sweep runs: all cells up to the last cell that is
        tagged `point`; by default all."""
        cells = self.notebook["cells"]
        is_tagged = ["point" in cell["metadata"].get("tags", []) for cell in cells]
        if any(is_tagged):
            cells = cells[: len(cells) - is_tagged[::-1].index(True)]
        return self.notebook | {"cells": cells}

    @cached_property
    def sweep(self) -> dict[str, str]:
        """The points that the full run reads, such as ``{"task": "0:20"}``; empty if it
        does not read a sweep.

        They are in the notebook's metadata: ``"preflearn": {"sweep": {"task": "0:20"}}``.
        """
        return self.notebook["metadata"].get("preflearn", {}).get("sweep", {})

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Names and defaults of the cell tagged `parameters`; Ellipsis for a default that
        is not a literal.

        Raises
        ------
        ValueError
            If the cell is not Python.
        """
        notebook = self.notebook
        try:
            return declared(notebook)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            where = f"{self.path.name}: the parameters cell"
            raise ValueError(f"{where} is not valid Python: {error}") from None

    def profile(self, parameters: Mapping[str, Any]) -> str:
        """Return the profile of a run: the given one, else the chapter's default, else
        "quick"."""
        profile = parameters.get("profile", self.parameters.get("profile", "quick"))
        check_profile(profile, f"{self.name}.ipynb: ")
        return profile

    def checked_parameters(
        self, given: Mapping[str, Any], called: str = ""
    ) -> dict[str, Any]:
        """Return the given parameters without those that equal the chapter's defaults.

        A text is converted to the type of the default; see `typed`. Messages call the
        chapter `called`, which is by default the name of its file.

        Raises
        ------
        ValueError
            If the chapter does not have a parameter, or a value has the wrong type.
        """
        called = called or f"{self.name}.ipynb"
        check_names(given, self.parameters, called)
        checked = {}
        for name, value in given.items():
            default = self.parameters[name]
            if isinstance(value, str):
                value = typed(f"{called}: {name}", value, default)
            if type(value) is not type(default) or value != default:
                checked[name] = value
        self.profile(checked)
        return checked


def _without_imports(source: str) -> list[str]:
    """Return the lines of a cell without imports, so that moving a name within the
    package does not change the digest of the cell."""
    lines = dict(enumerate(source.splitlines(), start=1))
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                del lines[number]
    return list(lines.values())


class Project:
    """A clone of the repository, or a folder with the same layout.

    Attributes
    ----------
    notebooks : Path
        Folder of the chapters' source notebooks.
    book : Path
        Folder that is rendered.
    pages : Path
        Executed chapters and collected pages; this part of the book is generated.
    recorded : Path
        Tables of full runs.
    build : Path
        All other generated files.
    executed : Path
        Executed chapters, one folder per chapter.
    latest : Path
        Last executed notebook of each chapter, which the book shows.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notebooks = root / "notebooks"
        self.book = root / "book"
        self.pages = self.book / "chapters"
        self.recorded = root / "data" / "recorded"
        self.build = root / "_build"
        self.executed = self.build / "executed"
        self.latest = self.build / "latest"

    @cached_property
    def chapters(self) -> list[Chapter]:
        """All chapters in order, then the unnumbered notebooks in the table of contents."""
        toc = self.book / "_toc.yml"
        named = toc.read_text("utf-8").split() if toc.is_file() else []
        paths = sorted(self.notebooks.glob("*.ipynb"))
        return [
            Chapter(p)
            for p in paths
            if re.match(r"\d\d_", p.stem) or f"chapters/{p.stem}" in named
        ]

    def chapter(self, name: str) -> Chapter:
        """Return the chapter with the name "03_lemma", "lemma", "03" or "3", or the page
        with the name "guide".

        Raises
        ------
        ValueError
            If no chapter has this name; the message lists all chapters.
        """
        wanted = name.removesuffix(".ipynb").rsplit("/", 1)[-1]
        for chapter in self.chapters:
            number, _, rest = chapter.name.partition("_")
            names = [chapter.name]
            if number.isdigit():
                names += [rest, number, number.lstrip("0")]
            if wanted in names:
                return chapter
        raise ValueError(
            f"chapter {name!r} not found; expected one of {[chapter.name for chapter in self.chapters]}"
        )

    def select(self, names: Iterable[str]) -> list[Chapter]:
        """Return the named chapters in the book's order; by default all."""
        wanted = {self.chapter(name).name for name in names}
        if not self.chapters:
            raise ValueError(
                f"no chapters found; expected notebooks/NN_name.ipynb in {self.root}"
            )
        return [
            chapter for chapter in self.chapters if not wanted or chapter.name in wanted
        ]


def find_project(start: Path | None = None) -> Project:
    """Return the project that contains a folder (by default the current one), else the
    clone of an editable installation.

    Raises
    ------
    ValueError
        If no project is found.
    """
    start = Path(start or Path.cwd())
    candidates = [start, *start.parents, Path(__file__).parents[3]]
    if root := os.environ.get("PREFLEARN_ROOT"):
        candidates = [Path(root)]
    for folder in candidates:
        if (folder / "notebooks").is_dir() and (folder / "book").is_dir():
            return Project(folder.resolve())
    raise ValueError(
        f"no project found in {candidates[0]} or above it; run this in a checkout of preflearn, "
        "a folder that contains notebooks/ and book/"
    )
