"""Serve a folder of built pages, open them in Chromium, and record what goes wrong."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, BrowserType, Page

PROBES = Path(__file__).with_name("probes.js").read_text("utf-8")
THEMES = ("light", "dark")
WINDOWS = {1400: 1000, 768: 1024, 400: 850}  # width: height, in pixels
# in milliseconds, so that a slow computer does not count as a fault of the page
PATIENCE = 300_000
VISIT_SECONDS = 600  # time limit of a visit; the slowest visits take a tenth of it
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_MATH_DONE = """() => typeof MathJax === "undefined"
  || MathJax.startup.promise.then(() => true)"""


def chromium() -> str | None:
    """Return the path of the installed browser; Playwright's own download is not used."""
    return next(filter(None, map(shutil.which, _BROWSERS)), None)


def launch(browser_type: BrowserType) -> Browser:
    """Start the installed browser."""
    return browser_type.launch(executable_path=chromium(), args=["--no-sandbox"])


def _process_id(browser: Browser) -> int:
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return next(one["id"] for one in processes if one["type"] == "browser")


@contextmanager
def time_limit(browser: Browser, name: str, seconds: float) -> Iterator[None]:
    """Kill the browser if the context takes longer, and raise TimeoutError.

    Playwright's `evaluate` and `emulate_media` wait without a limit for a page whose
    scripts never end. They raise when the browser has ended, and so do later tests of
    the same process.
    """
    expired = threading.Event()
    process = _process_id(browser)

    def kill() -> None:
        expired.set()
        os.kill(process, signal.SIGKILL)

    timer = threading.Timer(seconds, kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if not expired.is_set():
            raise
        raise TimeoutError(
            f"{name} was not done after {seconds:g} s, so the browser was killed"
        ) from error
    finally:
        timer.cancel()


def window(browser: Browser, theme: str = "light", width: int = 1400) -> BrowserContext:
    """Return a new window of a reader with a given theme. Narrow windows have touch."""
    context = browser.new_context(
        viewport={"width": width, "height": WINDOWS[width]},
        has_touch=width < 600,
        color_scheme=theme,
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE)
    choice = [f"localStorage.setItem('{key}', '{theme}');" for key in ("mode", "theme")]
    context.add_init_script("".join(choice))
    return context


class _Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open

    def copyfile(self, source, outputfile):
        # One write instead of many small ones is faster on a busy machine.
        outputfile.write(source.read())

    def end_headers(self):
        # Files do not change while they are served, so no page asks for one twice.
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder during the context, and yield its address."""
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@dataclass
class Opened:
    """A page in the browser: what it loaded, and what went wrong."""

    page: Page
    base: str
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)

    @property
    def complaints(self) -> list[str]:
        """All recorded errors, requests to other hosts, and failed requests."""
        return [*self.errors, *self.foreign, *self.failed]

    def ask(self, probe: str, *arguments: object) -> Any:
        """Call a function of probes.js and return its answer."""
        return self.page.evaluate(
            f"values => probes.{probe}(...values)", list(arguments)
        )

    def resize(self, width: int) -> None:
        """Change the width of the window, and let the scripts of the page follow."""
        self.page.set_viewport_size({"width": width, "height": WINDOWS[width]})
        self.settle()

    def emulate_paper(self) -> None:
        """Show the page as printed on A4 with the margins of book.css."""
        self.page.emulate_media(media="print")
        self.page.set_viewport_size({"width": 658, "height": 985})
        self.settle()

    def unfold(self) -> None:
        """Open all folds, and load all images."""
        self.ask("unfold")
        self.settle()

    def settle(self) -> None:
        """Wait for two frames: scripts that follow the layout run between them."""
        self.page.evaluate(
            """() => new Promise((done) =>
            requestAnimationFrame(() => requestAnimationFrame(done)))"""
        )

    def listeners(self) -> dict[str, Any]:
        """Return the event handlers that fill the lists."""

        def on_console(entry):
            if entry.type == "error":
                self.errors.append(entry.text)

        def on_request(request):
            if request.url.startswith(self.base):
                path = urlsplit(request.url.removeprefix(self.base)).path
                self.loaded.add(unquote(path))
            elif not request.url.startswith(("data:", "blob:")):
                self.foreign.append(request.url)

        def on_response(response):
            if response.status >= 400:
                self.failed.append(f"{response.url}: {response.status}")

        def on_failure(request):
            self.failed.append(f"{request.url}: {request.failure}")

        return {
            "console": on_console,
            "pageerror": lambda error: self.errors.append(str(error)),
            "request": on_request,
            "response": on_response,
            "requestfailed": on_failure,
        }


@contextmanager
def opened(
    context: BrowserContext,
    base: str,
    name: str,
    width: int | None = None,
    seconds: float = VISIT_SECONDS,
) -> Iterator[Opened]:
    """Open ``base + name``, wait for its equations, and close it within a time limit.

    The tab of the context is used again: a new tab would load all scripts and
    fonts anew, which takes four times as long.
    """
    assert context.browser is not None
    with time_limit(context.browser, name, seconds):
        page = context.pages[0] if context.pages else context.new_page()
        before = page.viewport_size
        page.goto("about:blank")  # otherwise only the fragment might change
        if width:
            page.set_viewport_size({"width": width, "height": WINDOWS[width]})
        seen = Opened(page, base)
        listeners = seen.listeners()
        for event, listener in listeners.items():
            page.on(event, listener)
        try:
            page.goto(base + name, wait_until="load")
            page.wait_for_function(_MATH_DONE)
            page.evaluate(PROBES)
            yield seen
        finally:
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
            page.emulate_media(media="screen")
            page.unroute_all()
            if before:
                page.set_viewport_size(before)
            page.mouse.move(0, 0)


def page_names(html: Path) -> list[str]:
    """Return the pages of a built book, without the templates of the theme."""
    names = (path.relative_to(html).as_posix() for path in html.rglob("*.html"))
    return sorted(name for name in names if not name.startswith("_"))


def pages_with(html: Path, text: str) -> list[str]:
    """Return the pages whose source contains a text."""
    return [
        name for name in page_names(html) if text in (html / name).read_text("utf-8")
    ]


def linked_anchors(html: Path) -> dict[str, list[str]]:
    """Return for each page the anchors that links of the book lead to, in page order."""
    texts = {name: (html / name).read_text("utf-8") for name in page_names(html)}
    found: dict[str, set[str]] = {name: set() for name in texts}
    for name, text in texts.items():
        for link, anchor in re.findall(r'href="([^":#]*)#([^"]+)"', text):
            target = (html / name).parent / unquote(link) if link else html / name
            page = target.resolve().relative_to(html.resolve()).as_posix()
            found[page].add(unquote(anchor))
    return {
        name: sorted(anchors, key=lambda anchor: texts[name].find(f'id="{anchor}"'))
        for name, anchors in found.items()
    }
