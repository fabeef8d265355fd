"""The built book, for all tests that read its pages: built once, by one process at a time."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"


def contents() -> list[str]:
    """The pages that the table of contents names, in its order: the first, chapters, and their appendices."""
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    below = [[entry["file"], *(one["file"] for one in entry.get("sections", []))] for entry in entries]
    return [toc["root"], *(name for names in below for name in names)]


def build() -> subprocess.CompletedProcess[str]:
    """Build the book as a reader does. Tests that run beside each other wait for each other here."""
    (ROOT / "_build").mkdir(exist_ok=True)
    with (ROOT / "_build" / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [str(Path(sys.executable).with_name("preflearn")), "build"]
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"TERM": "dumb"}
        )
