"""Print the built book as one PDF, by Debian's chromium.

    python tests/pdf.py

writes _build/learning-from-comparisons.pdf after `make book`: pages numbered, with
bookmarks and links.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pages.browser import chromium, launch, opened, served, window
from pages.builds import HTML, contents

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PDF = HTML.parent / "learning-from-comparisons.pdf"
MAX_SECONDS = 1800  # on an idle computer, it takes two minutes
WHOLE = Path(__file__).with_name("pages") / "whole.js"


def print_book(browser: Browser, html: Path, names: list[str], pdf: Path) -> None:
    """Print pages of a built book into one file. The first page is the front page."""
    with (
        served(html) as site,
        window(browser) as context,
        opened(context, site, f"{names[0]}.html", seconds=MAX_SECONDS) as seen,
    ):
        seen.emulate_paper()
        seen.page.evaluate(WHOLE.read_text("utf-8"), names)
        seen.page.pdf(path=pdf, format="A4", outline=True, tagged=True)
    if wrong := [*seen.errors, *seen.failed, *seen.foreign]:
        raise RuntimeError(f"the pages are not whole: {wrong[:3]}")


def main() -> None:
    argparse.ArgumentParser(description="Print the built book as one PDF.").parse_args()
    if not chromium():
        sys.exit(
            "chromium is not installed; install it, or print the pages in another browser"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = launch(play.chromium)
        print_book(browser, HTML, contents(), PDF)
        browser.close()
    print(f"the book: {PDF}, {PDF.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
