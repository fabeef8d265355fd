"""The limit on the time that a page may take."""

import pytest
from pages.browser import launch, opened, served, window

NAME = "endless.html"
PLAIN = "<!DOCTYPE html><title>Plain</title><p>Nothing runs here.</p>"
ENDLESS = "for (;;);"


@pytest.fixture
def own_window(browser):
    """A window of a separate browser, which the test may kill."""
    other = launch(browser.browser_type)
    with window(other) as context:
        yield context
    other.close()


def test_a_page_whose_script_never_ends_fails_by_its_name(own_window, tmp_path):
    (tmp_path / NAME).write_text(f"{PLAIN}<script>{ENDLESS}</script>")
    with (
        served(tmp_path) as address,
        pytest.raises(TimeoutError, match=NAME),
        opened(own_window, address, NAME, seconds=2),
    ):
        pytest.fail("the page was opened")


def test_a_question_that_is_never_answered_fails_by_the_name_of_its_page(
    own_window, tmp_path
):
    (tmp_path / NAME).write_text(PLAIN)
    with (
        served(tmp_path) as address,
        pytest.raises(TimeoutError, match=NAME),
        opened(own_window, address, NAME, seconds=5) as seen,
    ):
        seen.page.evaluate(f"() => {{ {ENDLESS} }}")


def test_an_error_within_the_limit_is_raised_as_it_is(own_window, tmp_path):
    (tmp_path / NAME).write_text(PLAIN)
    with (
        served(tmp_path) as address,
        pytest.raises(ZeroDivisionError),
        opened(own_window, address, NAME),
    ):
        raise ZeroDivisionError
