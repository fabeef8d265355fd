"""Render the book with Jupyter Book if an input changed."""

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
# A label that other pages may refer to, in the JSON text of a notebook.
_LABEL = re.compile(r'(?:\\n|")(?:\(|:label: |:name: |name": ")(\w+-[\w-]+)')
# The child exits on EOF of its stdin pipe, so it dies with the parent.
_COMMAND = (
    "import os, sys, threading; from jupyter_book.cli.main import main; "
    "threading.Thread(target=lambda: os.read(0, 1) or os._exit(1), daemon=True).start(); sys.exit(main())"
)


def repository(project: Project) -> str:
    """Return the address of the book's repository from the configuration, or ""."""
    path = project.root / "_config.yml"
    if not path.is_file():
        return ""
    config: Any = read_yaml(path)
    if not isinstance(config, dict):
        return ""
    about = config.get("repository") or {}
    return str(about.get("url") or "").removesuffix("/").removesuffix(".git")


def published(repository: str) -> str:
    """Return the address of the GitHub pages of a repository; "" for another host."""
    pattern = r"https://github\.com/([\w-]+)/([\w.-]+?)(?:\.git)?/?"
    if match := re.fullmatch(pattern, repository):
        return f"https://{match[1].lower()}.github.io/{match[2]}/"
    return ""


def render(project: Project) -> list[str]:
    """Render the book into ``_build/html``.

    Parameters
    ----------
    project : Project

    Returns
    -------
    list of str
        Warnings of Sphinx.

    Raises
    ------
    ModuleNotFoundError
        If Jupyter Book is missing.
    """
    read = _read(project)
    html = project.build / "html"
    stamp = project.build / "render.json"
    last = {}
    if stamp.exists():
        last = json.loads(stamp.read_text("utf-8"))
    before = last.get("read", {})
    changed = [name for name in before | read if read.get(name) != before.get(name)]
    whole = "read" in last and last["html"] == _digests(html, html.rglob("*"))
    if whole and not changed:
        print("the rendered book is up to date")
        return []
    # Sphinx compares times. So it would keep a page that was damaged, that an interrupted
    # or failed run wrote, or whose source is older than the last run. It reads style
    # sheets and the configuration again only if a page changed. Therefore a run starts
    # from scratch unless the last run succeeded and Sphinx can detect all changes.
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
    # Links to labels of chapters that are not computed yet are not problems.
    later = set[str]()
    for chapter in project.chapters:
        if not (project.pages / f"{chapter.name}.ipynb").exists():
            later |= set(_LABEL.findall(json.dumps(chapter.notebook)))
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
    """Run Jupyter Book, and return its warnings and errors."""
    log = project.build / "render.log"
    config = project.root / "_config.yml"
    options = [
        f"--path-output={project.root}",
        f"--config={config}",
        "-Wn",
        "--keep-going",
    ]
    command = [sys.executable, "-c", _COMMAND, "build", str(project.book), *options]
    # If this process is terminated, `with` closes the pipe and waits for the child.
    with (
        log.open("w", encoding="utf-8") as out,
        subprocess.Popen(
            command, cwd=project.root, stdin=subprocess.PIPE, stdout=out, stderr=out
        ) as done,
    ):
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
    """Return digests of complete files by their paths relative to a folder."""
    paths = sorted(
        path for path in found if path.is_file() and not path.name.startswith(".tmp-")
    )
    return {
        path.relative_to(folder).as_posix(): digest(path.read_bytes()) for path in paths
    }


def _read(project: Project) -> dict[str, str]:
    """Return digests of all files that Sphinx reads, and versions of its packages."""
    root = project.root
    files = _digests(
        root, [*project.book.rglob("*"), root / "_config.yml", root / "CHANGELOG.md"]
    )
    runner = Path(__file__).parent
    files |= _digests(
        runner,
        [
            *(runner / f"{name}.py" for name in ("theme", "navigation", "reference")),
            *runner.glob("templates/*ml"),
        ],
    )
    files |= {
        str(path): digest(path.read_bytes())
        for path in (runner.parents[1] / "preflearn").rglob("*.py")
    }
    return files | {name: version(name) for name in [*_SPHINX, *requirements()]}


def _is_seen(path: Path, since: float) -> bool:
    """Whether Sphinx can detect a change: a page contains, offers or documents the file,
    and the file is newer than `since`."""
    seen = (
        path.suffix in (".ipynb", ".md", ".csv", ".json", ".py", ".zip")
        and path.exists()
    )
    return seen and path.stat().st_mtime > since
