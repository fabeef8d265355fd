"""The built book, shared by the tests that read its pages and those that open them in a browser."""

import pytest
from pages.builds import HTML, build


@pytest.fixture(scope="session")
def book():
    """The folder of built pages."""
    done = build()
    assert done.returncode == 0, done.stdout + done.stderr
    return HTML
