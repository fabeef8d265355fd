"""The rules of pages for a reader in the dark: a file of its own, since a worker takes whole files."""

import pytest
from pages.test_browser import FIRST, anchors, browser, found, site, test_page_keeps_the_rule, window

__all__ = ["anchors", "browser", "found", "site", "test_page_keeps_the_rule"]


@pytest.fixture(scope="module")
def reader(browser):
    with window(browser, "dark", FIRST["dark"]) as context:
        yield context
