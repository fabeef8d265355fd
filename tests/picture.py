"""Photograph README's picture: the explorer of chapter 14 in the built book, by Debian's chromium.

    python tests/picture.py

writes book/_static/page.png after `make book`, and beside it a digest of what the picture shows. A test fails
where the book shows another explorer than the picture.
"""

from __future__ import annotations

import argparse
import re
from hashlib import sha256
from pathlib import Path

from pages.browser import chromium, opened, served, window
from pages.builds import HTML, ROOT

PAGE, KIND = "chapters/14_sports.html", "timelines"
PICTURE = ROOT / "book" / "_static" / "page.png"
DIGEST = PICTURE.with_suffix(".sha256")


def digest(html: Path) -> str:
    """Of the explorer's data on the page of a built book, and of what draws them."""
    text = (html / PAGE).read_text("utf-8")
    (data,) = re.findall(rf'data-explorer="{KIND}"><script[^>]*>(.*?)</script>', text, re.DOTALL)
    drawn_by = [(html / "_static" / f"explorers.{kind}").read_bytes() for kind in ("js", "css")]
    return sha256(b"".join([data.encode(), *drawn_by])).hexdigest()


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    from playwright.sync_api import sync_playwright

    with served(HTML) as site, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        with window(browser) as context, opened(context, site, PAGE) as seen:
            explorer = seen.page.locator(f'.explorer[data-explorer="{KIND}"]')
            explorer.evaluate("one => scrollTo(0, one.getBoundingClientRect().top + scrollY - 160)")
            seen.settle()
            seen.page.screenshot(path=PICTURE)
        browser.close()
    DIGEST.write_text(f"{digest(HTML)}\n")
    print(f"written: {PICTURE}")


if __name__ == "__main__":
    main()
