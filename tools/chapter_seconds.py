"""Write the run times of the built chapters to data/chapter_seconds.csv, which orders a first build."""

import argparse
import sys
from pathlib import Path

from bookrunner.build import shown_chapters
from bookrunner.project import Project

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "data" / "chapter_seconds.csv"


def main() -> None:
    """Write the table from the last quick run of each chapter."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    project = Project(ROOT)
    executed = shown_chapters(project)
    missing = [chapter.name for chapter in project.chapters if chapter.name not in executed]
    if missing:
        sys.exit(f"{len(missing)} notebooks, such as {missing[0]}, are not executed yet; run `make book`")
    comments = [line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("#")]
    rows = [
        f"{name},{notebook.run['seconds']:.0f}"
        for name, notebook in executed.items()
        if notebook.run["profile"] == "quick"
    ]
    TABLE.write_text("\n".join([*comments, "chapter,seconds", *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
