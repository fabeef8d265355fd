"""The built book, shared by the tests that read its pages and those that open them in a browser.

Where playwright or chromium is missing, tests that ask for the browser are skipped.
"""

import pytest
from pages.browser import chromium, served
from pages.builds import HTML, build


@pytest.fixture(scope="session")
def book():
    """The folder of built pages."""
    done = build()
    assert done.returncode == 0, done.stdout + done.stderr
    return HTML


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: no test in a browser"
    )
    if chromium() is None:
        pytest.skip("there is no chromium on this machine: no test in a browser")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(book):
    """The address at which the book is served."""
    with served(book) as address:
        yield address
