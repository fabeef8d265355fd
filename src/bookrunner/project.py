"""The project that is being built: its folders, its chapters, and what they may be given."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bookrunner.parameters import PROFILES, declared, typed

_THREADED = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMBA_NUM", "VECLIB_MAXIMUM")
THREAD_VARIABLES = tuple(f"{name}_THREADS" for name in _THREADED)
"""Kernels and tests compute in one thread each, unless the user has set these."""


@dataclass(frozen=True)
class Chapter:
    """One notebook: ``notebooks/NN_name.ipynb``."""

    path: Path

    @property
    def name(self) -> str:
        """Such as "03_lemma"."""
        return self.path.stem

    @cached_property
    def notebook(self) -> dict:
        """The notebook as parsed JSON.

        Raises
        ------
        ValueError
            If the file is not a notebook.
        """
        try:
            notebook = json.loads(self.path.read_text("utf-8"))
            _check_form(notebook)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path.name} is not a notebook: {error}") from None
        return notebook

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Names and defaults of the cell tagged `parameters`; no literal default: Ellipsis.

        Raises
        ------
        ValueError
            If the cell is not Python.
        """
        notebook = self.notebook
        try:
            return {name: _literal(node) for name, node in declared(notebook).items()}
        except ValueError as error:
            raise ValueError(f"{self.path.name}: the cell of parameters is {error}") from None

    @property
    def datasets(self) -> list[str]:
        """Data sets that the notebook's metadata declares."""
        return list(self.notebook["metadata"].get("preflearn", {}).get("data", []))

    def check_datasets(self) -> None:
        """Raise ValueError on a declared data set that is not in the register."""
        for name in self.datasets:
            from preflearn.datasets.registry import dataset_names  # late: with pandas and all loaders

            if name not in (known := dataset_names()):
                start = f"chapter {self.name} declares the data set {name!r}"
                raise ValueError(f"{start}; expected one of {known}")

    def profile(self, parameters: Mapping[str, Any]) -> str:
        """The profile that the chapter runs in: what was given, else its default, else "quick"."""
        profile = parameters.get("profile", self.parameters.get("profile", "quick"))
        if profile not in PROFILES:
            raise ValueError(f"chapter {self.name}: profile is {profile!r}; expected one of {list(PROFILES)}")
        return profile

    def check_names(self, names: Iterable[str]) -> None:
        """Raise ValueError on a parameter that the chapter lacks: papermill would set what nothing reads."""
        if unknown := [name for name in names if name not in self.parameters]:
            raise ValueError(
                f"chapter {self.name} has no parameter {', '.join(map(repr, unknown))}; "
                f"expected one of {sorted(self.parameters)}"
            )

    def checked_parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The given parameters without those that equal the chapter's defaults.

        A text for a parameter that is none becomes a value of its kind; see `typed`.

        Raises
        ------
        ValueError
            If the chapter has no such parameter, or a value is not of its kind.
        """
        self.check_names(given)
        checked = {}
        for name, value in given.items():
            default = self.parameters[name]
            if isinstance(value, str):
                value = typed(f"chapter {self.name}: {name}", value, default)
            if type(value) is not type(default) or value != default:
                checked[name] = value
        self.profile(checked)
        return checked


def _check_form(notebook: Any) -> None:
    """Raise ValueError unless a notebook and its cells are laid out as the format has them."""
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("expected a mapping with a list of cells")
    for number, cell in enumerate(notebook["cells"], start=1):
        form = {"cell_type": str, "source": str | list, "metadata": dict}
        if not isinstance(cell, dict) or not all(isinstance(cell.get(key), form[key]) for key in form):
            raise ValueError(f"cell {number} is malformed; expected a mapping with {', '.join(form)}")
        texts = cell["metadata"].get("tags", [])
        if not isinstance(texts, list) or not all(
            isinstance(text, str) for text in [*texts, *cell["source"]]
        ):
            raise ValueError(f"cell {number} is malformed; expected texts for source and tags")
    about = notebook.setdefault("metadata", {})
    declared = about.get("preflearn", {}) if isinstance(about, dict) else None
    if not isinstance(declared, dict) or not isinstance(declared.get("data", []), list):
        raise ValueError("its metadata are malformed; expected a mapping with preflearn: {data: [...]}")


def _literal(node: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(node) if node is not None else ...
    except (ValueError, TypeError):
        return ...


@dataclass(frozen=True)
class Project:
    """A checkout, or any folder laid out like one."""

    root: Path

    @property
    def notebooks(self) -> Path:
        """Where the chapters' sources lie."""
        return self.root / "notebooks"

    @property
    def book(self) -> Path:
        """The folder that is rendered."""
        return self.root / "book"

    @property
    def pages(self) -> Path:
        """Executed chapters and collected pages, a part of the book that is built."""
        return self.book / "chapters"

    @property
    def build(self) -> Path:
        """Everything else that is built."""
        return self.root / "_build"

    @cached_property
    def chapters(self) -> list[Chapter]:
        """All chapters in order."""
        return [Chapter(path) for path in sorted(self.notebooks.glob("[0-9][0-9]_*.ipynb"))]

    def chapter(self, name: str) -> Chapter:
        """The chapter called "03_lemma", "lemma", "03" or "3".

        Raises
        ------
        ValueError
            If there is none; the message lists all.
        """
        wanted = name.removesuffix(".ipynb").rsplit("/", 1)[-1]
        number = f"{int(wanted):02d}" if wanted.isdecimal() else None
        for chapter in self.chapters:
            prefix, _, rest = chapter.name.partition("_")
            if wanted in (chapter.name, rest) or number == prefix:
                return chapter
        raise ValueError(
            f"there is no chapter {name!r}; expected one of {[chapter.name for chapter in self.chapters]}"
        )

    def select(self, names: Iterable[str]) -> list[Chapter]:
        """The named chapters in the book's order; all of them where no name is given."""
        wanted = {self.chapter(name).name for name in names}
        if not self.chapters:
            raise ValueError(f"there are no chapters; expected notebooks/NN_name.ipynb in {self.root}")
        return [chapter for chapter in self.chapters if not wanted or chapter.name in wanted]


def find_project(start: Path | None = None) -> Project:
    """The project around a folder (the current one), else the checkout of an editable installation.

    Raises
    ------
    ValueError
        If neither is found.
    """
    start = Path.cwd() if start is None else Path(start)
    candidates = [start, *start.parents, Path(__file__).parents[2]]
    if root := os.environ.get("PREFLEARN_ROOT"):
        candidates = [Path(root)]
    for folder in candidates:
        if (folder / "notebooks").is_dir() and (folder / "book").is_dir():
            return Project(folder.resolve())
    raise ValueError(
        f"there is no project in {candidates[0]} or above it; expected a checkout of preflearn, "
        "a folder that contains notebooks/ and book/"
    )
