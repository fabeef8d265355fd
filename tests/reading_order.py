"""What a screen reader meets in a chapter, in its order: headings, controls, figures and folds.

    python tests/reading_order.py

writes it to tests/reading_order.txt after `make book`. A test fails where the book has another order.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from pages.browser import chromium, opened, served, window
from pages.builds import HTML, ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGE = "chapters/08_path.html"
ORDER = ROOT / "tests" / "reading_order.txt"
_ROLES = "heading|figure|img|button|slider|spinbutton|switch|checkbox|combobox|searchbox|group|table|status"
_LINE = re.compile(
    rf"""^  ( *)- '?({_ROLES})\b(?: "((?:\\.|[^"\\])*)")?((?: \[[^]]*\])*)'?:? ?"?(.*?)"?$""", re.MULTILINE
)
_LONGEST = 60  # of a name


def reading_order(browser: Browser, site: str) -> str:
    """One line each: role, the beginning of its name, and its state or level."""
    with window(browser) as context, opened(context, site, PAGE) as seen:
        told = seen.page.locator("article.bd-article").aria_snapshot()
    lines = []
    for indent, role, name, state, text in _LINE.findall(told):
        said = name or (text if role == "group" else "")  # a fold is named by its summary
        if role != "img" or said not in ("", "Copy to clipboard"):  # the drawing on a button
            lines.append(f"{indent}{role} {said[:_LONGEST]}".rstrip() + state)
    return "\n".join([*lines, ""])


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    from playwright.sync_api import sync_playwright

    with served(HTML) as site, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        ORDER.write_text(reading_order(browser, site), "utf-8")
        browser.close()
    print(f"written: {ORDER}")


if __name__ == "__main__":
    main()
