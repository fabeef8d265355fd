"""Content keys: a chapter is run again if, and only if, something that its result depends on changed."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import preflearn
from bookrunner.ledger import load_ledger
from bookrunner.project import Chapter, Project
from bookrunner.records import main_versions, project_file

__all__ = ["chapter_key", "file_hashes", "ingredients"]


def file_hashes(paths: Iterable[Path], root: Path) -> dict[str, str]:
    """SHA-256 of files, by their path relative to a folder, in a fixed order.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.txt").write_text("a")
    ...     file_hashes(Path(folder).iterdir(), Path(folder))["a.txt"][:8]
    'ca978112'
    """
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(paths)
        if path.is_file()
    }


def chapter_key(project: Project, chapter: Chapter, parameters: Mapping[str, object]) -> str:
    """The key of one execution, such as "quick-0a1b...": its profile and a hash of its ingredients.

    Parameters
    ----------
    project : Project
    chapter : Chapter
    parameters : mapping of str to object
        As `Chapter.checked_parameters` returns them.

    Raises
    ------
    ValueError
        If the chapter declares a data set that is not in the registry.
    """
    text = json.dumps(ingredients(project, chapter, parameters), sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{profile_of(chapter, parameters)}-{digest[:24]}"


def profile_of(chapter: Chapter, parameters: Mapping[str, object]) -> str:
    """The profile that a chapter runs in: what was given, else its default, else "quick"."""
    profile = parameters.get("profile", chapter.parameters.get("profile", "quick"))
    return profile if isinstance(profile, str) and profile.isalnum() else "quick"


def ingredients(project: Project, chapter: Chapter, parameters: Mapping[str, object]) -> dict[str, object]:
    """Everything that a chapter's result depends on, as JSON values by kind."""
    source = Path(preflearn.__file__).parents[1]
    files = [path for name in ("preflearn", "bookrunner") for path in (source / name).rglob("*.py")]
    return {
        "notebook": _notebook_content(chapter.notebook),
        "package": file_hashes(files, source),
        "ledger": _ledger_entries(project, chapter),
        "tables": _tables(project, chapter, profile_of(chapter, parameters)),
        "parameters": dict(parameters),
        "data": _data_state(chapter),
        "versions": main_versions(),
    }


def _notebook_content(notebook: dict) -> dict:
    cells = [
        [cell["cell_type"], "".join(cell["source"]), cell.get("metadata", {})] for cell in notebook["cells"]
    ]
    kept = {key: value for key, value in notebook.get("metadata", {}).items() if key != "language_info"}
    return {"cells": cells, "metadata": kept}


def _ledger_entries(project: Project, chapter: Chapter) -> list[list[str]]:
    """What badges show of the chapter's claims; statements and notes only appear on the claims page."""
    path = project.book / "claims.yml"
    ledger = load_ledger(path).values() if path.exists() else ()
    return [[claim.id, claim.where, claim.verdict] for claim in ledger if claim.chapter == chapter.name]


def _tables(project: Project, chapter: Chapter, profile: str) -> dict[str, str]:
    """All published tables, and the recorded ones that the chapter may show.

    A full run writes the recorded tables, so that they can't be among its ingredients.
    """
    data = project.root / "data"
    paths = list((data / "published").glob("*.csv"))
    if profile != "full":
        text = json.dumps(chapter.notebook["cells"])
        for path in (data / "recorded").glob("*.csv"):
            owner = next((c.name for c in project.chapters if path.name.startswith(f"{c.name}_")), "")
            if owner and (owner == chapter.name or owner in text):
                paths.append(path)
    return file_hashes(paths, data)


def _data_state(chapter: Chapter) -> dict[str, object]:
    """Registered hashes of the declared data sets, and whether each can be read now."""
    if not chapter.datasets:
        return {}
    from preflearn import datasets

    with project_file("data/registry.csv").open(encoding="utf-8", newline="") as file:
        registry = list(csv.DictReader(file))
    state = {}
    for name in chapter.datasets:
        files = {row["file"]: row["sha256"] for row in registry if row["dataset"] == name}
        if not files:
            known = sorted({row["dataset"] for row in registry})
            raise ValueError(
                f"chapter {chapter.name} declares the data set {name!r}; expected one of {known}"
            )
        state[name] = {"files": files, "available": datasets.available(name)}
    return state
