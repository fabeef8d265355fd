"""What the tools read of the built book."""

from __future__ import annotations

import sys

from preflearn_book.runner.build import latest_chapters
from preflearn_book.runner.outputs import Executed
from preflearn_book.runner.project import Project


def executed_chapters(project: Project) -> dict[str, Executed]:
    """Return the executed notebook of each chapter, by name; exit if one is missing."""
    executed = latest_chapters(project)
    missing = [
        chapter.name for chapter in project.chapters if chapter.name not in executed
    ]
    if missing:
        sys.exit(
            f"{len(missing)} notebooks, such as {missing[0]}, are not executed yet; run `make book`"
        )
    return executed
