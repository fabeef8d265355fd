"""Write the run times of the built chapters to data/chapter_seconds.csv, which orders a
first build."""

import argparse
from pathlib import Path

from built import executed_chapters

from preflearn_book.runner.project import Project

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "data" / "chapter_seconds.csv"


def main() -> None:
    """Write the table from the last quick run of each chapter."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    comments = [
        line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("#")
    ]
    rows = [
        f"{name},{notebook.run['seconds']:.0f}"
        for name, notebook in executed_chapters(Project(ROOT)).items()
        if notebook.run["profile"] == "quick"
    ]
    TABLE.write_text(
        "\n".join([*comments, "chapter,seconds", *rows]) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
