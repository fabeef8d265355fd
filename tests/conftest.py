"""Settings for all tests: threads, hypothesis profiles, and no lasting change to the
environment."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import settings

from preflearn_book.runner.project import THREAD_VARIABLES

# NumPy and Numba read these variables when they are imported.
for name in THREAD_VARIABLES:
    os.environ.setdefault(name, "1")

# Messages about compilation would be mixed with the output under test.
os.environ.setdefault("PREFLEARN_QUIET", "1")

# The nightly run draws its seeds from this number. Workers inherit it, so all of them
# draw the same seeds.
os.environ.setdefault("PREFLEARN_NIGHT", str(datetime.now(UTC).toordinal()))

# A commit always tries the same examples; the nightly run draws new ones, ten times as
# many.
settings.register_profile("commit", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=250, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "commit"))


FAILURES = Path(__file__).parents[1] / "_build" / "failures.txt"
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ


def pytest_sessionstart():
    """Delete the failures of the last run, also if this run has none."""
    if not IS_WORKER:
        FAILURES.unlink(missing_ok=True)


def pytest_runtest_logreport(report):
    """Write each failure to a file at once.

    pytest prints failures at the end, and nothing if a run of two hours is killed.
    """
    if not report.failed or IS_WORKER:
        return
    FAILURES.parent.mkdir(exist_ok=True)
    with FAILURES.open("a", encoding="utf-8") as file:
        file.write(f"{report.nodeid} ({report.when})\n{report.longreprtext}\n\n")


@pytest.fixture(autouse=True)
def unchanged_environment():
    """Fail a test that leaves an environment variable changed for the tests after it."""
    before = _environment()
    yield
    after = _environment()
    changed = [name for name in before | after if before.get(name) != after.get(name)]
    for name in changed:
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]
    assert not changed, (
        f"the test changed environment variables: {changed}; use monkeypatch"
    )


def _environment():
    """Return the variables, without pytest's own and those that scikit-learn sets when
    it is imported."""
    return {
        name: value
        for name, value in os.environ.items()
        if name != "PYTEST_CURRENT_TEST" and not name.startswith("KMP_")
    }
