"""What makes a chapter run again, on a copy of the packages whose modules and register can be changed."""

import json
import shutil

import pytest
from toy_project import edit_notebook, live_in, register, write_house
from toy_register import server

from bookrunner import keys
from bookrunner.command import main
from bookrunner.keys import State
from bookrunner.ledger import read_ledger
from bookrunner.outputs import Executed
from bookrunner.project import Project

READS = """\
from pathlib import Path
from bookrunner import check, published, record, recorded
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
    claims = "- {id: P1-01, where: eq. 2, statement: x, chapter: 01_first, verdict: holds}\n"
    return write_house(tmp_path_factory.mktemp("house") / "checkout", READS, claims)


@pytest.fixture
def house(copied, monkeypatch):
    live_in(copied, monkeypatch)
    return copied


@pytest.fixture
def build(house, capsys):
    def run(*arguments):
        status = main(["build", "--no-render", *arguments])
        captured = capsys.readouterr()
        assert status == 0, captured.out + captured.err
        return captured.out

    return run


def executed_of(project):
    return Executed(json.loads((project.build / "executed/01_first/quick.ipynb").read_text()))


def shown(project):
    return (project.pages / "01_first.ipynb").read_text()


DONE, SAME = "1 executed, 0 unchanged", "0 executed, 1 unchanged"


def test_a_relative_mirror_is_the_one_that_the_command_sees(house, build, monkeypatch):
    out = build()
    assert DONE in out
    assert "other data" not in out
    assert "right" in shown(house)
    monkeypatch.setenv("PREFLEARN_DATA", str(house.root.parent / "mirror"))
    assert SAME in build()


def test_data_that_come_later_are_read_and_then_nothing_runs_again(house, build, monkeypatch):
    content = b"the data"
    register(house, content, "http://127.0.0.1:9/none")
    monkeypatch.delenv("PREFLEARN_DATA")
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    out = build("--force")
    assert "01_first: other data in place of toy" in out
    monkeypatch.delenv("PREFLEARN_OFFLINE")
    assert SAME in build()
    with server(content) as (url, asked):
        register(house, content, url)
        assert main(["data", "fetch", "toy"]) == 0
        assert DONE in build()
        assert len(asked) == 1
        assert SAME in build()
    assert "the data" in shown(house)


def test_data_are_read_once_they_are_here(house, build, monkeypatch):
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(house.root / "no cache"))
    monkeypatch.setenv("PREFLEARN_DATA", "nowhere")
    assert DONE in build("--force")
    assert SAME in build()
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")
    assert DONE in build()
    assert SAME in build()
    assert "right" in shown(house)


def test_data_that_arrive_while_a_chapter_runs_are_read_by_the_next_build(house, build, monkeypatch):
    shutil.rmtree(house.root / "cache")
    monkeypatch.delenv("PREFLEARN_DATA")
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    register(house, b"the data", "http://127.0.0.1:9/none")
    (house.notebooks / "arrives").touch()
    build()
    assert DONE in build()
    assert "the data" in shown(house)


def test_inputs_edited_while_a_chapter_runs_make_it_run_again(house, build):
    (house.notebooks / "edits").touch()
    edit_notebook(house.notebooks / "01_first.ipynb", lambda nb: nb["cells"][0].update(source="# New title"))
    build()
    (house.notebooks / "edits").unlink()
    assert DONE in build()
    assert SAME in build()


def test_a_change_of_a_module_that_was_not_loaded_runs_nothing(house, build):
    inputs = executed_of(house).run["inputs"]
    assert {"module preflearn/metrics.py", "module bookrunner/records.py", "data toy/a.txt"} <= set(inputs)
    other = house.root / "src/preflearn/svm/__init__.py"
    assert "module preflearn/svm/__init__.py" not in inputs
    other.write_text(other.read_text() + "unused = 1\n")
    assert SAME in build()


def state_of(project):
    return State(Project(project.root), read_ledger(project.book))


def _edit(relative, old, new):
    def edit(project):
        path = project.root / relative
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return lambda: path.write_text(text)

    return edit


def _write(relative, text):
    def write(project):
        path = project.root / relative
        before = path.read_text() if path.exists() else None
        path.write_text(text)
        return lambda: path.unlink() if before is None else path.write_text(before)

    return write


NOTEBOOK, CLAIMS = "notebooks/01_first.ipynb", "book/claims.yml"


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (_edit(NOTEBOOK, '"At one', '"At least at one'), ["notebook 01_first"]),
        (_edit(NOTEBOOK, '["parameters"]', '["parameters", "hide-input"]'), ["notebook 01_first"]),
        (_edit(NOTEBOOK, '"execution_count": null', '"execution_count": 3'), []),
        (_edit(CLAIMS, "eq. 2", "eq. 3"), ["claim P1-01"]),
        (_edit(CLAIMS, "statement: x", "statement: y"), ["claim P1-01"]),  # the badge shows it
        (_write("data/published/P1_x.csv", "a\n3\n"), ["table data/published/P1_x.csv"]),
        (_write("data/published/P1_y.csv", "a\n3\n"), []),
        (_write("data/recorded/02_other_fit.csv", "a\n3\n"), ["table data/recorded/02_other_fit.csv"]),
        (_write("data/recorded/02_other_x.csv", "a\n3\n"), []),
        (_write("../mirror/toy/a.txt", "other"), ["data toy/a.txt"]),
        (_edit("src/preflearn/metrics.py", "return ", "return -"), ["module preflearn/metrics.py"]),
        (_edit("src/preflearn/metrics.py", "\n\ndef ", "\n\n# what it does\n\ndef "), []),
        (_edit("src/preflearn/metrics.py", '"""How well', '"""How good'), []),
        (_edit("src/bookrunner/command.py", "return ", "return -"), []),
    ],
)
def test_each_input_counts_and_nothing_else(house, change, changed):
    executed = executed_of(house)
    assert state_of(house).changes(executed) == []
    restore = change(house)
    try:
        assert state_of(house).changes(executed) == changed
    finally:
        restore()


def test_versions_count(house, monkeypatch):
    monkeypatch.setattr(keys, "main_versions", lambda: {"numpy": "0.1"})
    assert "version numpy" in state_of(house).changes(executed_of(house))
