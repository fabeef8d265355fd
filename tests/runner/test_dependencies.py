"""Inputs that make a chapter run again, in a copy of the packages whose modules and
registry can be changed."""

import json
import shutil
from types import SimpleNamespace

import pytest
from toy_project import ONE_CLAIM, changed, live_in, register, write_checkout
from toy_register import server

from preflearn_book.runner import dependencies
from preflearn_book.runner.command import main
from preflearn_book.runner.dependencies import State
from preflearn_book.runner.outputs import read_executed
from preflearn_book.runner.project import Project

READS = """\
from pathlib import Path
from preflearn_book.runner import check, published, record, recorded
from preflearn.datasets import DatasetUnavailable
from preflearn.datasets.storage import read
from preflearn import metrics

try:
    print("read", read("toy", "a.txt"))
except DatasetUnavailable:
    print("something else")
    if Path("arrives").exists():
        Path("../cache/preflearn/toy").mkdir(parents=True)
        Path("../cache/preflearn/toy/a.txt").write_bytes(b"the data")
published("P1_x")
recorded("02_other", "fit")
check("P1-01", True, "At one point.")
record("fit", {"loss": 0.5})
if Path("edits").exists():
    Path("../data/published/P1_x.csv").write_text("a\\n2\\n")
    path = Path(metrics.__file__)
    path.write_text(path.read_text() + "edited = True\\n")"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Build twice: with a mirror, and without data. In the second build, files change
    while the chapter runs."""
    project = write_checkout(
        tmp_path_factory.mktemp("copy") / "checkout", READS, ONE_CLAIM
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        live_in(project, monkeypatch)
        assert main(["build", "--no-render", "-p", "seed", "7"]) == 0
        without_data(monkeypatch)
        register(project, b"the data", NOWHERE)
        (project.notebooks / "arrives").touch()
        before = {
            path: path.read_text() for path in (project.root / name for name in EDITED)
        }
        (project.notebooks / "edits").touch()
        assert main(["build", "--no-render"]) == 0
        edited = state_of(project).changes(executed_of(project))
    for path, text in before.items():
        path.write_text(text)
    (project.notebooks / "edits").unlink()
    shutil.rmtree(project.root / "cache")
    return project, edited


NOWHERE = "http://127.0.0.1:9/none"
EDITED = ("src/preflearn/metrics.py", "data/published/P1_x.csv")


def without_data(monkeypatch):
    monkeypatch.delenv("PREFLEARN_DATA")
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")


@pytest.fixture
def checkout(copied, monkeypatch):
    live_in(copied[0], monkeypatch)
    return copied[0]


def state_of(project):
    return State(Project(project.root))


def executed_of(project, pattern="quick.ipynb"):
    (path,) = (project.build / "executed/01_first").glob(pattern)
    return read_executed(path)


@pytest.fixture
def with_data(checkout):
    return executed_of(checkout, "quick-seed=7-*.ipynb")


def test_a_relative_data_folder_is_resolved_from_the_working_directory(
    checkout, with_data, monkeypatch
):
    assert with_data.replaced == []
    assert "\"read b'right'" in json.dumps(with_data.notebook)
    assert state_of(checkout).changes(with_data) == []
    monkeypatch.setenv("PREFLEARN_DATA", str(checkout.root.parent / "mirror"))
    assert state_of(checkout).changes(with_data) == []


def test_inputs_that_change_while_a_chapter_runs_make_it_run_again(copied):
    expected = {
        "dataset toy",
        "module preflearn/metrics.py",
        "table data/published/P1_x.csv",
    }
    assert set(copied[1]) == expected


def test_data_that_become_available_make_a_chapter_run_again(checkout, monkeypatch):
    content = b"the data"
    executed = executed_of(checkout)
    assert executed.replaced == ["toy"]
    # now the mirror is available
    assert state_of(checkout).changes(executed) == ["dataset toy"]
    without_data(monkeypatch)
    assert state_of(checkout).changes(executed) == []
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    with server(content) as (url, asked):
        register(checkout, content, url)
        assert state_of(checkout).changes(executed) == []
        assert main(["data", "fetch", "toy"]) == 0
        assert state_of(checkout).changes(executed) == ["dataset toy"]
        assert len(asked) == 1


NOTEBOOK = "notebooks/01_first.ipynb"
CLAIMS = "book/claims.yml"
METRICS = "src/preflearn/metrics.py"
BADGE = "src/preflearn_book/runner/templates/badge.html"
PUBLISHED = "data/published/P1_"
RECORDED = "data/recorded/02_other_"


@pytest.mark.parametrize(
    # if `old` is empty, the new text is the whole file
    ("path", "old", "new", "expected"),
    [
        (NOTEBOOK, '"At one', '"At least at one', ["notebook 01_first"]),
        (
            NOTEBOOK,
            '"parameters"\n',
            '"parameters", "hide-input"\n',
            ["notebook 01_first"],
        ),
        (NOTEBOOK, '"execution_count": null', '"execution_count": 3', []),
        # the badge shows the statement
        (CLAIMS, "statement: x", "statement: y", ["claim P1-01"]),
        (f"{PUBLISHED}x.csv", "", "a\n3\n", [f"table {PUBLISHED}x.csv"]),
        (f"{PUBLISHED}y.csv", "", "a\n3\n", []),
        (f"{RECORDED}fit.csv", "", "a\n3\n", [f"table {RECORDED}fit.csv"]),
        ("../mirror/toy/a.txt", "", "other", ["data toy/a.txt"]),
        (METRICS, "return ", "return -", ["module preflearn/metrics.py"]),
        # the file is incomplete, as during an edit
        (METRICS, "return ", "return return ", ["module preflearn/metrics.py"]),
        (METRICS, "import numpy as np", "import numpy as np  # a comment", []),
        ("src/preflearn_book/runner/command.py", "return ", "return -", []),
        (
            BADGE,
            "claim",
            "claims",
            ["module preflearn_book/runner/templates/badge.html"],
        ),
        # the chapter does not import this module
        ("src/preflearn/svm/__init__.py", "import", " import", []),
    ],
)
def test_exactly_the_inputs_of_a_chapter_invalidate_it(
    checkout, with_data, path, old, new, expected
):
    with changed(
        checkout.root / path, lambda text: text.replace(old, new) if old else new
    ):
        assert state_of(checkout).changes(with_data) == expected


def test_a_full_run_does_not_depend_on_the_records_that_it_replaces(checkout):
    own = "table data/recorded/01_first_fit.csv"
    other = f"table {RECORDED}fit.csv"
    executed = SimpleNamespace(
        provenance={"modules": [], "read": {own: None, other: None}}
    )
    chapter = Project(checkout.root).chapter("01_first")
    tables = {
        profile: {own, other}
        & state_of(checkout).inputs(chapter, "notebook", profile, executed).keys()
        for profile in ("quick", "full")
    }
    assert tables == {"quick": {own, other}, "full": {other}}


def test_a_changed_version_invalidates_a_chapter(checkout, with_data, monkeypatch):
    monkeypatch.setattr(dependencies, "main_versions", lambda: {"numpy": "0.1"})
    assert "version numpy" in state_of(checkout).changes(with_data)
