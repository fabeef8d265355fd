"""Print where the book will be published; fail if the repository's address is not set.

    python tools/site_address.py

`make site` runs it before it builds the book.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from preflearn_book.runner.project import Project
from preflearn_book.runner.render import published, repository

ROOT = Path(__file__).parents[1]


def site_address(project: Project) -> str:
    """The address of the published pages, else that of the repository; exit without."""
    url = repository(project)
    if not url:
        sys.exit(
            "no address is set; in _config.yml, set repository.url to the address of "
            "your repository, such as https://github.com/OWNER/NAME"
        )
    return published(url) or url


def main() -> None:
    argparse.ArgumentParser(
        description="Print where the book will be published."
    ).parse_args()
    print(f"links and buttons are for {site_address(Project(ROOT))}")


if __name__ == "__main__":
    main()
