"""The project that is being built: its folders, its chapters, and what they may be given."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

__all__ = ["Chapter", "Project", "find_project", "typed"]


def typed(text: str) -> object:
    """A value from the command line, typed by YAML; numbers such as 1e-3 count as numbers too.

    Examples
    --------
    >>> typed("3"), typed("1e-3"), typed("full"), typed("true")
    (3, 0.001, 'full', True)
    """
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    if isinstance(value, str):  # YAML 1.1 reads 1e-3 as a text
        try:
            return float(value) if re.fullmatch(r"[-+]?[\d.]+[eE][-+]?\d+", value) else value
        except ValueError:
            return value
    plain = value is None or isinstance(value, bool | int | float | list | dict)
    return value if plain else text


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
            if not isinstance(notebook["cells"], list):
                raise TypeError("its cells are not a list")
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{self.path.name} is not a notebook: {error}") from None
        return notebook

    @cached_property
    def parameters(self) -> dict[str, object]:
        """Names and defaults of the cell tagged `parameters`; no literal default: Ellipsis."""
        found: dict[str, object] = {}
        for cell in self.notebook["cells"]:
            if cell["cell_type"] != "code" or "parameters" not in cell.get("metadata", {}).get("tags", []):
                continue
            for node in ast.parse("".join(cell["source"])).body:
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                for target in targets:
                    if isinstance(target, ast.Name):
                        found[target.id] = _literal(node.value)
        return found

    @property
    def datasets(self) -> list[str]:
        """Data sets that the notebook's metadata declares."""
        return list(self.notebook.get("metadata", {}).get("preflearn", {}).get("data", []))

    def checked_parameters(self, given: Mapping[str, object]) -> dict[str, object]:
        """The given parameters without those that equal the chapter's defaults.

        Raises
        ------
        ValueError
            If the chapter has no such parameter: papermill would set a name that nothing reads.
        """
        if unknown := [name for name in given if name not in self.parameters]:
            raise ValueError(
                f"chapter {self.name} has no parameter {', '.join(map(repr, unknown))}; "
                f"expected one of {sorted(self.parameters)}"
            )
        return {name: value for name, value in given.items() if not _same(value, self.parameters[name])}


def _literal(node: ast.expr | None) -> object:
    try:
        return ast.literal_eval(node) if node is not None else ...
    except ValueError:
        return ...


def _same(value: object, default: object) -> bool:
    return type(value) is type(default) and value == default


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
