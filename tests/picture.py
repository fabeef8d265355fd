"""Draw the pictures of the README and of shared links from the built book.

    python tests/picture.py

writes book/_static/page.png, the explorer of chapter 14, and book/_static/social.png,
the title with a figure, after `make book`. Run it after a change of that explorer.
"""

from __future__ import annotations

import argparse

from pages.browser import launch, opened, served, window
from pages.builds import HTML, ROOT

PAGE = "chapters/14_sports.html"
KIND = "timelines"
PICTURE = ROOT / "book" / "_static" / "page.png"
CARD = ROOT / "book" / "_static" / "social.png"
CARD_SIZE = {"width": 1200, "height": 630}  # as stated in templates/metatags.html
CARD_HTML = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; height: 630px; box-sizing: border-box; display: grid; align-items: center;
  grid-template-columns: 500px 1fr; border-top: 14px solid #0072b2;
  background: #fff; color: #121212; font-family: "DejaVu Sans", sans-serif }
div { padding: 0 20px 0 60px }
h1 { font-size: 58px; line-height: 1.12; margin: 0 0 28px }
p { font-size: 27px; line-height: 1.4; margin: 0 0 22px; color: #333 }
code { font-size: 25px; color: #0f5fc4 }
img { width: 640px; max-height: 560px; object-fit: contain }
</style><div><h1>Learning from Comparisons</h1>
<p>Five papers on pairwise comparisons, explained and checked.</p>
<p>An executable book and the Python package <code>preflearn</code></p></div>
<img src="/_images/fig-sports-timelines.svg">"""


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
            # this address has no content security policy
            seen.page.goto(f"{site}_static/book.css")
            seen.page.set_viewport_size(CARD_SIZE)
            seen.page.set_content(CARD_HTML)
            seen.page.screenshot(path=CARD)
        browser.close()
    print(f"written: {PICTURE}, {CARD}")


if __name__ == "__main__":
    main()
