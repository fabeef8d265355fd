"""A browser for the tests: it serves a folder of pages, opens them, and notes what goes wrong there."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PROBES = Path(__file__).with_name("probes.js").read_text("utf-8")
THEMES = ("light", "dark")
WINDOWS = {1400: 1000, 768: 1024, 400: 850}  # width and height
RULES = {
    "errors": "nothing is reported to the console",
    "foreign": "nothing is asked of another host",
    "failed": "every request is answered",
    "landing": "a link from another page ends where its target is seen",
    "anchors": "a link within the page ends where its target is seen",
    "leaves": "nothing lies beyond the edges of the page",
    "spills": "nothing is wider than the column of text, unless it scrolls",
    "cut": "no box hides a part of what is in it",
    "uncued": "what scrolls sideways shows that there is more",
    "numbers": "no equation runs into its number",
    "equations": "no numbered equation has to scroll on a wide page",
    "height": "a chapter is at most 15,000 pixels high on a wide page",
    "words": "a chapter shows at most 5,000 words, formulas and code included",
    "paragraphs": "no paragraph has more than 120 words",
    "picture": "a chapter shows a figure or an explorer within its first 2,500 pixels",
    "bars": "claims and bars of folded code take a small part of the height of a wide page",
    "axe": "axe finds nothing serious or critical",
}
MOST_BARS = 0.08  # of the height, before anything is opened
FIRST = {"light": 1400, "dark": 400}  # in which a page is opened by theme; then the window is turned
SHAPE = {
    "height": 15_000,
    "words": 5_000,
    "paragraphs": 120,
    "picture": 2_500,
}  # of a page; all but the third of chapters only
_OF_CHAPTERS = {"height", "words", "picture"}
_CHAPTER = re.compile(r"chapters/\d\d_(?!.*_more)")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_MATH_DONE = "() => typeof MathJax === 'undefined' || MathJax.startup.promise.then(() => true)"


def chromium() -> str | None:
    """The browser of this machine. Playwright's own download is not used."""
    return next(filter(None, map(shutil.which, _BROWSERS)), None)


def window(browser: Browser, theme: str = "light", width: int = 1400) -> BrowserContext:
    """A window of some width, whose reader chose a theme; 400 pixels are a telephone's, with touch."""
    context = browser.new_context(
        viewport={"width": width, "height": WINDOWS[width]},
        has_touch=width < 600,
        color_scheme=theme,
        reduced_motion="reduce",
    )
    context.set_default_timeout(300_000)  # a slow machine is no failure
    context.add_init_script(
        "".join(f"localStorage.setItem('{key}', '{theme}');" for key in ("mode", "theme"))
    )
    return context


class _Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections

    def copyfile(self, source, outputfile):
        outputfile.write(source.read())  # in one piece: quick on a busy machine, too

    def log_message(self, *_):
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a folder is served as long as the context lasts."""
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@dataclass
class Opened:
    """A page in the browser, with what it complained of and what it asked for in vain."""

    page: Page
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def ask(self, probe: str, *arguments: object) -> Any:
        """The answer of a function in probes.js."""
        return self.page.evaluate(f"values => probes.{probe}(...values)", list(arguments))

    def resize(self, width: int) -> None:
        """Another width of the window; scripts of the page that follow it have had their turn afterwards."""
        self.page.set_viewport_size({"width": width, "height": WINDOWS[width]})
        self.settle()

    def on_paper(self) -> None:
        """As it is printed, as wide and as high as A4 less the margins of book.css."""
        self.page.emulate_media(media="print")
        self.page.set_viewport_size({"width": 658, "height": 985})
        self.settle()

    def unfold(self) -> None:
        """Open what is folded."""
        self.ask("unfold")
        self.settle()

    def settle(self) -> None:
        """Scripts of the page that follow what is drawn have their turn: they run between two frames."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )


@contextmanager
def opened(context: BrowserContext, base: str, name: str) -> Iterator[Opened]:
    """Open ``base + name`` and wait until its equations are set. What is not below `base` is foreign."""
    page = context.new_page()
    seen = Opened(page)
    own = (base, "data:", "blob:")

    def on_request(request):
        if not request.url.startswith(own):
            seen.foreign.append(request.url)

    def on_response(response):
        if response.status >= 400:
            seen.failed.append(f"{response.url}: {response.status}")

    page.on("console", lambda entry: seen.errors.append(entry.text) if entry.type == "error" else None)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("requestfailed", lambda request: seen.failed.append(f"{request.url}: {request.failure}"))
    page.on("request", on_request)
    page.on("response", on_response)
    try:
        page.goto(base + name, wait_until="load")
        page.wait_for_function(_MATH_DONE)
        page.evaluate(PROBES)
        yield seen
    finally:
        page.close()


def inspect(
    context: BrowserContext, base: str, name: str, anchors: list[str], axe: str
) -> dict[int, dict[str, list[str]]]:
    """What is wrong with a page, by width of the window and by rule.

    One visit serves all. It begins at the last of the anchors in the window as it is, where links are
    followed; then what is folded is opened, and the window turned. `axe` is the script of axe.
    """
    with opened(context, base, name + "".join(f"#{anchor}" for anchor in anchors[-1:])) as seen:
        first = seen.page.viewport_size["width"]
        others = sorted(set(WINDOWS) - {first}, key=lambda width: abs(width - first))
        found = {first: {"landing": seen.ask("hidden", anchors[-1:], False)}}
        if first > 1000:
            found[first] |= {"bars": seen.ask("bars", MOST_BARS)} | seen.ask("shape", SHAPE)
            if not _CHAPTER.match(name):
                found[first] = {rule: found[first][rule] for rule in set(found[first]) - _OF_CHAPTERS}
        found[first]["anchors"] = seen.ask("hidden", anchors, True)
        seen.unfold()
        found[first] |= seen.ask("layout")
        for width in others:
            seen.resize(width)
            found[width] = seen.ask("layout")
            del found[width]["equations"]  # MathJax fits them to the text of the window that opens a page
        seen.page.evaluate(axe)
        seen.ask("simplify")
        found[others[-1]]["axe"] = seen.ask("axeFinds")
        seen.resize(first)
        found[first]["axe"] = seen.ask("axeFinds")
        found[first] |= {"errors": seen.errors, "foreign": seen.foreign, "failed": seen.failed}
    return found


def page_names(html: Path) -> list[str]:
    """The pages of a built book; folders that begin with an underscore hold templates of the theme."""
    names = (path.relative_to(html).as_posix() for path in html.rglob("*.html"))
    return sorted(name for name in names if not name.startswith("_"))


def linked_anchors(html: Path) -> dict[str, list[str]]:
    """The anchors of each page to which some page of the book links, from the top of the page to its end."""
    texts = {name: (html / name).read_text("utf-8") for name in page_names(html)}
    found: dict[str, set[str]] = {name: set() for name in texts}
    for name, text in texts.items():
        for link, anchor in re.findall(r'href="([^":#]*)#([^"]+)"', text):
            target = (html / name).parent / unquote(link) if link else html / name
            found[target.resolve().relative_to(html.resolve()).as_posix()].add(unquote(anchor))
    return {
        name: sorted(anchors, key=lambda anchor: texts[name].find(f'id="{anchor}"'))
        for name, anchors in found.items()
    }
