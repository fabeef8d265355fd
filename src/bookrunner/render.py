"""Render the book with Jupyter Book, only when something it reads changed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from click import unstyle

from bookrunner.files import digest, read_yaml, write_atomically
from bookrunner.project import Project
from bookrunner.records import requirements
from bookrunner.tasks import duration

_SPHINX = ("sphinx", "myst-nb", "myst-parser", "sphinx-book-theme", "pydata-sphinx-theme")
# What a chapter defines for others to name, in the JSON text of its notebook.
_LABEL = re.compile(r'(?:\\n|")(?:\(|:label: |:name: |name": ")(\w+-[\w-]+)')
_COMMAND = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"


def repository(project: Project) -> str:
    """The address of the book's repository, from the configuration; "" until it is set there."""
    path = project.root / "_config.yml"
    config = read_yaml(path) if path.is_file() else None
    about: Any = config.get("repository") if isinstance(config, dict) else None
    return str((about or {}).get("url") or "").removesuffix("/").removesuffix(".git")


def render(project: Project) -> list[str]:
    """Render the book into ``_build/html``.

    Parameters
    ----------
    project : Project

    Returns
    -------
    list of str
        Warnings of Sphinx; none if all is well.

    Raises
    ------
    ModuleNotFoundError
        If Jupyter Book is missing.
    """
    state, html, stamp = _state(project), project.build / "html", project.build / "render.json"
    last = json.loads(stamp.read_text("utf-8")) if stamp.exists() else {}
    whole = last.get("html") == _digests(html, html.rglob("*"))
    if whole and last.get("hash") == state["hash"]:
        print("the rendered book is up to date")
        return []
    # Sphinx compares times, so that a page that an interrupted or failed run wrote, or that was damaged,
    # would never be looked at again: only a run that went well is a ground for the next one. And it copies
    # style sheets and reads the configuration anew only where some page changed.
    if not whole or last.get("frame") != state["frame"]:
        shutil.rmtree(html, ignore_errors=True)
        shutil.rmtree(project.build / ".doctrees", ignore_errors=True)
    stamp.unlink(missing_ok=True)
    print("rendering the book")
    started = time.monotonic()
    problems = _jupyter_book(project)
    # A link to what a chapter will define that is not computed yet is text until then.
    waiting = [c for c in project.chapters if not (project.pages / f"{c.name}.ipynb").exists()]
    later = {label for chapter in waiting for label in _LABEL.findall(json.dumps(chapter.notebook))}
    problems = [problem for problem in problems if not any(label in problem for label in later)]
    if not problems:
        write_atomically(stamp, json.dumps(state | {"html": _digests(html, html.rglob("*"))}))
        print(f"rendered in {duration(time.monotonic() - started)}")
    return problems


def _jupyter_book(project: Project) -> list[str]:
    """Its warnings and errors."""
    config, log = project.root / "_config.yml", project.build / "render.log"
    arguments = ["build", str(project.book), "--path-output", str(project.root), "--config", str(config)]
    command = [sys.executable, "-c", _COMMAND, *arguments, "-W", "-n", "--keep-going"]
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, cwd=project.root, stdout=file, stderr=subprocess.STDOUT)
    lines = [unstyle(line).rstrip() for line in log.read_text("utf-8", "replace").splitlines()]
    warnings = [line for line in lines if re.search(r"\b(WARNING|ERROR|CRITICAL):", line)]
    if done.returncode and not warnings:
        warnings = [line for line in lines if line][-15:]
    return list(dict.fromkeys(warnings))


def _digests(folder: Path, found: Iterable[Path]) -> dict[str, str]:
    """Digests of those that are whole files, by their names in a folder."""
    paths = sorted(path for path in found if path.is_file() and not path.name.startswith(".tmp-"))
    return {path.relative_to(folder).as_posix(): digest(path.read_bytes()) for path in paths}


def _state(project: Project) -> dict[str, Any]:
    """A hash of all that is read, and one of what is not the text of a page."""
    files = _digests(project.root, [*project.book.rglob("*"), project.root / "_config.yml"])
    frame = {name: None if name.endswith((".ipynb", ".md")) else content for name, content in files.items()}
    versions = {name: version(name) for name in [*_SPHINX, *requirements()]}
    house = Path(__file__).parent
    versions |= _digests(house, [house / "theme.py", *house.glob("templates/*.html")])
    return {"hash": digest([files, versions]), "frame": digest([frame, versions])}
