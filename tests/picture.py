"""Photograph the picture of the README: the explorer of chapter 14 in the built book.

    python tests/picture.py

writes book/_static/page.png after `make book`. Run it after a change of that explorer.
"""

from __future__ import annotations

import argparse

from pages.browser import launch, opened, served, window
from pages.builds import HTML, ROOT

PAGE = "chapters/14_sports.html"
KIND = "timelines"
PICTURE = ROOT / "book" / "_static" / "page.png"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    if not (HTML / PAGE).is_file():
        parser.error(f"there is no {HTML / PAGE}; run `make book`")
    from playwright.sync_api import sync_playwright

    with served(HTML) as site, sync_playwright() as play:
        browser = launch(play.chromium)
        with window(browser) as context, opened(context, site, PAGE) as seen:
            explorer = seen.page.locator(f'.explorer[data-explorer="{KIND}"]')
            explorer.evaluate(
                "one => scrollTo(0, one.getBoundingClientRect().top + scrollY - 160)"
            )
            seen.settle()
            seen.page.screenshot(path=PICTURE)
        browser.close()
    print(f"written: {PICTURE}")


if __name__ == "__main__":
    main()
