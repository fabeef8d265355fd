"""A chapter as a screen reader meets it: in the order that is written down."""

from itertools import pairwise

from pages.test_browser import browser, site
from reading_order import ORDER, reading_order

__all__ = ["browser", "site"]


def test_a_chapter_is_read_in_the_order_that_is_written_down(browser, site):
    found = reading_order(browser, site)
    assert found == ORDER.read_text("utf-8"), "write it down anew: python tests/reading_order.py"


def test_headings_of_the_order_skip_no_level():
    lines = ORDER.read_text("utf-8").splitlines()
    levels = [int(line[-2]) for line in lines if line.lstrip().startswith("heading")]
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
