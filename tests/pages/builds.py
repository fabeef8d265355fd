"""Build the book for all tests that read its pages, one process at a time."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"


def contents() -> list[str]:
    """Return the pages that the table of contents names, in its order."""
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    names = [toc["root"]]
    for entry in entries:
        names.append(entry["file"])
        names.extend(section["file"] for section in entry.get("sections", []))
    return names


def expected_pages() -> list[str]:
    """Return the files of all pages: those of the contents, and those that Sphinx adds."""
    return [f"{name}.html" for name in [*contents(), "search", "genindex", "404"]]


def rest_nightly(values: Iterable[Any], on_a_commit: Container[Any]) -> list[Any]:
    """Return parameters of a test that runs for some values on each commit, and for the
    others nightly."""
    return [
        value
        if value in on_a_commit
        else pytest.param(value, marks=pytest.mark.nightly)
        for value in values
    ]


def build() -> str:
    """Run the command that builds the book, and return what it prints."""
    command = [str(Path(sys.executable).with_name("preflearn")), "build"]
    environment = os.environ | {"TERM": "dumb"}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


def build_once() -> str:
    """Build the book once in a test run, however many workers it has."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    record = HTML.parent / "tests.json"
    record.parent.mkdir(exist_ok=True)
    with (record.parent / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if run and record.is_file():
            stored = json.loads(record.read_text("utf-8"))
            if stored["run"] == run:
                return stored["output"]
        output = build()
        record.write_text(json.dumps({"run": run, "output": output}), "utf-8")
        return output
