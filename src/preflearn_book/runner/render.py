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

from preflearn.core.source_digest import digest
from preflearn_book.runner.files import read_yaml, write_atomically
from preflearn_book.runner.project import Project
from preflearn_book.runner.records import requirements
from preflearn_book.runner.tasks import duration

_SPHINX = (
    "sphinx",
    "myst-nb",
    "myst-parser",
    "sphinx-book-theme",
    "pydata-sphinx-theme",
)
# What a chapter defines for others to name, in the JSON text of its notebook.
_LABEL = re.compile(r'(?:\\n|")(?:\(|:label: |:name: |name": ")(\w+-[\w-]+)')
# Who waits for the end of an input that nobody writes to ends with its parent, however
# that one dies.
_COMMAND = (
    "import os, sys, threading; from jupyter_book.cli.main import main; "
    "threading.Thread(target=lambda: os.read(0, 1) or os._exit(1), daemon=True).start(); sys.exit(main())"
)


def repository(project: Project) -> str:
    """The address of the book's repository, from the configuration; "" until it is set
    there."""
    path = project.root / "_config.yml"
    config = read_yaml(path) if path.is_file() else None
    about: Any = config.get("repository") if isinstance(config, dict) else None
    return str((about or {}).get("url") or "").removesuffix("/").removesuffix(".git")


def published(repository: str) -> str:
    """The address at which GitHub publishes the pages of a repository; "" where it is
    on another host."""
    found = re.fullmatch(
        r"https://github\.com/([\w-]+)/([\w.-]+?)(?:\.git)?/?", repository
    )
    return f"https://{found[1].lower()}.github.io/{found[2]}/" if found else ""


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
    read = _read(project)
    html = project.build / "html"
    stamp = project.build / "render.json"
    last = json.loads(stamp.read_text("utf-8")) if stamp.exists() else {}
    before = last.get("read", {})
    changed = [name for name in before | read if read.get(name) != before.get(name)]
    whole = "read" in last and last["html"] == _digests(html, html.rglob("*"))
    if whole and not changed:
        print("the rendered book is up to date")
        return []
    # Sphinx compares times, so that a page that an interrupted or failed run wrote, or
    # that was damaged, would never be looked at again, nor one whose text is older than
    # the last run, as where a clock was set back: only a run that went well is a ground
    # for the next one. And it copies style sheets and reads the configuration anew only
    # where some page changed.
    if not (
        whole and all(_is_seen(project.root / name, last["time"]) for name in changed)
    ):
        shutil.rmtree(html, ignore_errors=True)
        shutil.rmtree(project.build / ".doctrees", ignore_errors=True)
    stamp.unlink(missing_ok=True)
    print("rendering the book")
    started = time.monotonic()
    now = {"read": read, "time": time.time()}
    problems = _jupyter_book(project)
    # A link to what a chapter will define that is not computed yet is text until then.
    waiting = [
        c for c in project.chapters if not (project.pages / f"{c.name}.ipynb").exists()
    ]
    later = {
        label
        for chapter in waiting
        for label in _LABEL.findall(json.dumps(chapter.notebook))
    }
    problems = [
        problem for problem in problems if not any(label in problem for label in later)
    ]
    if not problems:
        write_atomically(
            stamp, json.dumps(now | {"html": _digests(html, html.rglob("*"))})
        )
        print(f"rendered in {duration(time.monotonic() - started)}")
    return problems


def _jupyter_book(project: Project) -> list[str]:
    """Its warnings and errors."""
    log = project.build / "render.log"
    config = project.root / "_config.yml"
    options = [
        f"--path-output={project.root}",
        f"--config={config}",
        "-Wn",
        "--keep-going",
    ]
    command = [sys.executable, "-c", _COMMAND, "build", str(project.book), *options]
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.Popen(
            command, cwd=project.root, stdin=subprocess.PIPE, stdout=out, stderr=out
        )
        done.wait()
    lines = [
        unstyle(line).rstrip()
        for line in log.read_text("utf-8", "replace").splitlines()
    ]
    warnings = [
        line for line in lines if re.search(r"\b(WARNING|ERROR|CRITICAL):", line)
    ]
    if done.returncode and not warnings:
        warnings = [line for line in lines if line][-15:]
    return list(dict.fromkeys(warnings))


def _digests(folder: Path, found: Iterable[Path]) -> dict[str, str]:
    """Digests of those that are whole files, by their names in a folder."""
    paths = sorted(
        path for path in found if path.is_file() and not path.name.startswith(".tmp-")
    )
    return {
        path.relative_to(folder).as_posix(): digest(path.read_bytes()) for path in paths
    }


def _read(project: Project) -> dict[str, str]:
    """Digests of all files that are read, and versions of what reads them."""
    beside = (project.root / name for name in ("_config.yml", "CHANGELOG.md"))
    files = _digests(project.root, [*project.book.rglob("*"), *beside])
    house = Path(__file__).parent
    files |= _digests(
        house,
        [house / "theme.py", house / "reference.py", *house.glob("templates/*ml")],
    )
    files |= {
        str(path): digest(path.read_bytes())
        for path in (house.parents[1] / "preflearn").rglob("*.py")
    }
    return files | {name: version(name) for name in [*_SPHINX, *requirements()]}


def _is_seen(path: Path, since: float) -> bool:
    """Whether Sphinx sees that this changed: a page, what it offers or documents, later
    than this time."""
    seen = (
        path.suffix in (".ipynb", ".md", ".csv", ".json", ".py", ".zip")
        and path.exists()
    )
    return seen and path.stat().st_mtime > since
