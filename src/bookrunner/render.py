"""Render the book with Jupyter Book, only when something it reads changed."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import yaml

from bookrunner.keys import file_hashes
from bookrunner.links import broken_links
from bookrunner.progress import duration
from bookrunner.project import Project
from bookrunner.records import write_atomically

__all__ = ["render", "toc_of_existing"]

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_COMMAND = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"


def toc_of_existing(toc: dict, pages: Path) -> dict:
    """A table of contents without the chapters whose page does not exist in `pages`.

    Only entries ``chapters/...`` are looked at: other pages are not built, so that a missing one is
    an error.
    """

    def kept(node: object) -> object:
        if isinstance(node, list):
            return [entry for entry in (kept(child) for child in node) if entry is not None]
        if not isinstance(node, dict):
            return node
        file = str(node.get("file", ""))
        if file.startswith("chapters/"):
            name = file.removeprefix("chapters/")
            if not any((pages / f"{name}{suffix}").exists() for suffix in ("", ".ipynb", ".md")):
                return None
        result = {key: kept(value) for key, value in node.items()}
        emptied = any(node.get(key) and not result[key] for key in ("chapters", "sections", "parts"))
        return None if emptied and "file" not in node and "root" not in node else result

    return kept(toc)


def render(project: Project, say: Callable[[str], None]) -> list[str]:
    """Render the book into ``_build/html`` and check its internal links.

    Parameters
    ----------
    project : Project
    say : callable
        Is told what happens.

    Returns
    -------
    list of str
        Warnings of Sphinx and broken links; none if all is well.

    Raises
    ------
    ValueError
        If Jupyter Book or the configuration is missing.
    """
    if importlib.util.find_spec("jupyter_book") is None:
        raise ValueError("Jupyter Book is missing; install it with: pip install 'preflearn[book]'")
    config = project.root / "_config.yml"
    if not config.is_file():
        raise ValueError(f"the configuration of the book is missing; expected {config}")
    toc = toc_of_existing(yaml.safe_load((project.book / "_toc.yml").read_text("utf-8")), project.pages)
    state = _state(project, toc)
    stamp = project.build / "render.json"
    last = _last(stamp)
    html = project.build / "html"
    if last.get("hash") == state["hash"] and (html / "index.html").exists():
        say("the rendered book is up to date")
        return []
    # Sphinx compares times, so that a page that an interrupted or failed run wrote would never be
    # looked at again: only a run that went well is a ground for the next one. And it copies style
    # sheets and reads the configuration anew only where some page changed.
    if any(last.get(part) != state[part] for part in ("files", "frame")):
        shutil.rmtree(html, ignore_errors=True)
        shutil.rmtree(project.build / ".doctrees", ignore_errors=True)
    stamp.unlink(missing_ok=True)
    say("rendering the book")
    started = time.monotonic()
    toc_path = write_atomically(project.build / "toc.yml", yaml.safe_dump(toc, sort_keys=False))
    problems = _jupyter_book(project, config, toc_path)
    if not problems:
        problems = [
            f"{page}: the link {link!r} leads nowhere (no such {what})"
            for page, link, what in broken_links(html)
        ]
    if not problems:
        write_atomically(stamp, json.dumps(state, indent=1))
        say(f"rendered in {duration(time.monotonic() - started)}")
    return problems


def _jupyter_book(project: Project, config: Path, toc: Path) -> list[str]:
    arguments = ["build", str(project.book), "--path-output", str(project.root), "--config", str(config)]
    arguments += ["--toc", str(toc), "-W", "-n", "--keep-going"]
    log = project.build / "render.log"
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            [sys.executable, "-c", _COMMAND, *arguments],
            cwd=project.root,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    lines = [_COLOURS.sub("", line).rstrip() for line in log.read_text("utf-8", "replace").splitlines()]
    warnings = [line for line in lines if re.search(r"\b(WARNING|ERROR|CRITICAL):", line)]
    if done.returncode and not warnings:
        warnings = [line for line in lines if line][-15:]
    return list(dict.fromkeys(warnings))


def _last(stamp: Path) -> dict:
    try:
        return json.loads(stamp.read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def _state(project: Project, toc: dict) -> dict:
    """A hash of all that is read, the names of the files, and a hash of what is not a page."""
    paths = [path for path in project.book.rglob("*") if not path.name.startswith(".tmp-")]
    files = file_hashes([*paths, project.root / "_config.yml"], project.root)
    frame = {name: digest for name, digest in files.items() if not name.endswith((".ipynb", ".md"))}
    versions = _versions()
    return {
        "hash": _digest([files, toc, versions]),
        "files": sorted(files),
        "frame": _digest([frame, toc, versions]),
    }


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _versions() -> dict[str, str]:
    names = {"sphinx", "myst-nb", "myst-parser", "sphinx-book-theme", "pydata-sphinx-theme"}
    for requirement in requires("preflearn") or []:
        if re.search(r"extra == ['\"]book['\"]", requirement):
            names.add(re.match(r"[\w.-]+", requirement)[0])
    versions = {}
    for name in sorted(names):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "missing"
    return versions
