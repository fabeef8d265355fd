"""Render the book with Jupyter Book, only when something it reads changed."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bookrunner.files import digest, file_hashes, read_json, read_yaml, write_atomically
from bookrunner.links import broken_links
from bookrunner.project import Project
from bookrunner.records import requirements, versions_of
from bookrunner.tasks import duration

_SPHINX = ("sphinx", "myst-nb", "myst-parser", "sphinx-book-theme", "pydata-sphinx-theme")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PAGES = ("", ".md", ".ipynb", ".rst")
_COMMAND = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"


def toc_of_existing(toc: dict[str, Any], pages: Path) -> dict[str, Any]:
    """A table of contents without the chapters whose page does not exist in `pages`.

    Only entries ``chapters/...`` are looked at: other pages are not built, so that a missing one is
    an error.
    """

    def kept(node: Any) -> Any:
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


def read_contents(project: Project) -> dict[str, Any]:
    """The table of contents, once it and the configuration are what Jupyter Book can read.

    Raises
    ------
    ValueError
        If one of the files is missing, not YAML or not a mapping, or there is no root page.
    """
    contents: Any = {}
    for path in (project.root / "_config.yml", project.book / "_toc.yml"):
        if not path.is_file():
            raise ValueError(f"{path.name} is missing; expected {path}")
        contents = read_yaml(path)
        if not isinstance(contents, dict):
            raise ValueError(f"{path.name} is a {type(contents).__name__}; expected a mapping")
    root = contents.get("root")
    if not isinstance(root, str) or not any((project.book / f"{root}{end}").is_file() for end in _PAGES):
        raise ValueError(f"_toc.yml has the root {root!r}; expected a page in {project.book}, such as index")
    return contents


def repository(project: Project) -> str:
    """The address of the book's repository, from the configuration; "" until it is set there.

    Raises
    ------
    ValueError
        If it is not the address of a repository.
    """
    path = project.root / "_config.yml"
    config = read_yaml(path) if path.is_file() else {}
    about = config.get("repository") if isinstance(config, dict) else None
    url = str(about.get("url") or "") if isinstance(about, dict) else ""
    url = url.removesuffix("/").removesuffix(".git")
    if url and not re.fullmatch(r"https://[^/\s]+/[^/\s]+/[^/\s]+", url):
        raise ValueError(
            f"_config.yml has the repository {url!r}; expected such as https://github.com/owner/name"
        )
    return url


def render(project: Project) -> list[str]:
    """Render the book into ``_build/html`` and check its internal links.

    Parameters
    ----------
    project : Project

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
    toc = toc_of_existing(read_contents(project), project.pages)
    state = _state(project, toc)
    stamp = project.build / "render.json"
    last = read_json(stamp)
    html = project.build / "html"
    whole = last.get("html") == _digest_of(html)
    if whole and last.get("hash") == state["hash"]:
        print("the rendered book is up to date")
        return []
    # Sphinx compares times, so that a page that an interrupted or failed run wrote, or that was damaged,
    # would never be looked at again: only a run that went well is a ground for the next one. And it
    # copies style sheets and reads the configuration anew only where some page changed.
    if not whole or last.get("frame") != state["frame"]:
        shutil.rmtree(html, ignore_errors=True)
        shutil.rmtree(project.build / ".doctrees", ignore_errors=True)
    stamp.unlink(missing_ok=True)
    print("rendering the book")
    started = time.monotonic()
    toc_path = write_atomically(project.build / "toc.yml", yaml.safe_dump(toc, sort_keys=False))
    unbuilt = [c for c in project.chapters if not (project.pages / f"{c.name}.ipynb").exists()]
    missing = {chapter.name: chapter.path.read_text("utf-8") for chapter in unbuilt}
    problems = [line for line in _jupyter_book(project, config, toc_path) if not _is_awaited(line, missing)]
    if not problems:
        broken = [found for found in broken_links(html) if not _is_awaited(found.link, missing)]
        problems = [
            f"{page}: the link {link!r} leads nowhere (no such {what})" for page, link, what in broken
        ]
    if not problems:
        write_atomically(stamp, json.dumps(state | {"html": _digest_of(html)}, indent=1))
        print(f"rendered in {duration(time.monotonic() - started)}")
    return problems


def _is_awaited(line: str, missing: Mapping[str, str]) -> bool:
    """Whether a warning or a link is about a chapter that was not executed yet, so that it has no page.

    `missing` has the sources of these by name; Sphinx ends such a warning with what it does not find.
    """
    if any(f"/{name}.html" in f"/{line}" or line.endswith(f"chapters/{name}'") for name in missing):
        return True
    label = re.search(r"(?:not found|undefined label|reference target)[^:]*: '?([\w:.-]+)'?", line)
    target = label or re.search(r"chapters/([\w-]+)\.svg$", line)
    return target is not None and any(target[1] in source for source in missing.values())


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


def _state(project: Project, toc: dict[str, Any]) -> dict[str, Any]:
    """A hash of all that is read, and one of what is not the text of a page."""
    paths = [path for path in project.book.rglob("*") if not path.name.startswith(".tmp-")]
    files = file_hashes([*paths, project.root / "_config.yml"], project.root)
    frame = {name: None if name.endswith((".ipynb", ".md")) else content for name, content in files.items()}
    versions = versions_of([*_SPHINX, *requirements("book")])
    return {"hash": digest([files, toc, versions]), "frame": digest([frame, toc, versions])}


def _digest_of(html: Path) -> str:
    return digest(file_hashes(html.rglob("*"), html))
