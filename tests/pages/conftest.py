"""The built book and the browser, shared by all tests in this folder.

The fixtures that control the browser have the scope "package". While the browser is
open, its event loop runs in this process, and other tests would notice it.
"""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from optional import optional_import, skip_or_fail
from pages.browser import chromium, launch, linked_anchors, served, window
from pages.builds import HTML, build_once
from pages.visited import VisitedPages

HERE = Path(__file__).parent
CODE_OF_A_VISIT = ("browser.py", "rules.py", "probes.js")


@pytest.fixture(scope="session")
def build_output():
    """Return what the command that built the book for this test run has printed."""
    return build_once()


@pytest.fixture(scope="session")
def book(build_output):
    """The folder of built pages."""
    return HTML


@pytest.fixture(scope="session")
def site(book):
    """The address of the built book."""
    with served(book) as address:
        yield address


@pytest.fixture(scope="session")
def anchors(book):
    """The anchors of each page to which links lead."""
    return linked_anchors(book)


@pytest.fixture(scope="package")
def browser():
    """Chromium, by Playwright."""
    sync_api = optional_import("playwright.sync_api")
    if chromium() is None:
        skip_or_fail("Chromium is not installed")
    sync_api.expect.set_options(timeout=60_000)  # a slow computer is not a fault
    with sync_api.sync_playwright() as play:
        browser = launch(play.chromium)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe():
    """The script of axe."""
    return optional_import("axe_playwright_python.base").AXE_SCRIPT


@pytest.fixture(scope="package")
def desk(browser):
    """A wide window in the light theme."""
    with window(browser) as context:
        yield context


@pytest.fixture(scope="package")
def telephone(browser):
    """A window 400 pixels wide, with touch, in the light theme."""
    with window(browser, width=400) as context:
        yield context


@pytest.fixture(scope="package")
def visited(book, browser, axe):
    """The record of pages in which no problem was found."""
    code = [(HERE / name).read_text("utf-8") for name in CODE_OF_A_VISIT]
    visit = sha256(json.dumps([browser.version, axe, *code]).encode()).hexdigest()
    return VisitedPages(book, book.parent / "visited", visit)
