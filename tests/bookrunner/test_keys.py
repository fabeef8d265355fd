"""What makes a chapter run again, on a copy of the packages whose modules and register can be changed."""

import json
import shutil
from pathlib import Path

import pytest
from toy_project import edit_notebook, write_notebook, write_project
from toy_register import server, sha256

from bookrunner import keys
from bookrunner.command import main
from bookrunner.keys import State, outdated_records
from bookrunner.ledger import read_ledger
from bookrunner.outputs import Executed
from bookrunner.project import Project
from preflearn.datasets import registry

SOURCE = Path(__file__).parents[2] / "src"
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
    """A copy of the packages with a register of one file, and a project with one chapter that reads it."""
    root = tmp_path_factory.mktemp("house")
    shutil.copytree(SOURCE, root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    # The face without the loaders, whose imports take seconds in every kernel.
    face = root / "src/preflearn/datasets/__init__.py"
    face.write_text("from preflearn.datasets.storage import DatasetUnavailable, unread, used\n")
    claims = "- {id: P1-01, where: eq. 2, statement: x, chapter: 01_first, verdict: holds}\n"
    project = write_project(root, claims)
    write_notebook(project.notebooks / "01_first.ipynb", READS, data=("toy",))
    (root / "data/published/P1_x.csv").write_text("a\n1\n")
    for folder, content in ((root.parent, b"right"), (project.notebooks, b"wrong")):
        (folder / "mirror" / "toy").mkdir(parents=True)
        (folder / "mirror" / "toy" / "a.txt").write_bytes(content)
    return project


@pytest.fixture
def house(copied, monkeypatch):
    """The copy is what kernels import, and what this process looks at when it computes keys.

    PREFLEARN_DATA is relative to the folder that the commands are called from.
    """
    monkeypatch.chdir(copied.root.parent)
    monkeypatch.setattr(keys, "__file__", str(copied.root / "src/bookrunner/keys.py"))
    monkeypatch.setattr(registry, "package_file", lambda name: copied.root / "data" / name)
    # A process reads the register once; here each command is to read it anew.
    monkeypatch.setattr(registry, "registered_files", registry.registered_files.__wrapped__)
    variables = {"PYTHONPATH": "src", "XDG_CACHE_HOME": "cache", "PREFLEARN_ROOT": ""}
    for name, folder in variables.items():
        monkeypatch.setenv(name, str(copied.root / folder))
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")
    register(copied, b"right", "http://127.0.0.1:9/none")
    return copied


def register(project, content, url):
    text = f"toy,a.txt,{url},{sha256(content)},{len(content)},free,none\n"
    header = "dataset,file,url,sha256,bytes,licence,citation\n"
    (project.root / "data/registry.csv").write_text(header + text)


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
    assert SAME in build()  # asked for in vain
    with server(content) as (url, asked):
        register(house, content, url)
        assert DONE in build()
        assert len(asked) == 1
        assert SAME in build()
    assert "the data" in shown(house)


def test_declared_data_that_a_run_did_not_ask_for_are_neither_replaced_nor_fetched(house, build, monkeypatch):
    path = house.notebooks / "02_recorded.ipynb"
    write_notebook(path, "import preflearn.datasets.storage", data=("toy",))
    monkeypatch.setenv("XDG_CACHE_HOME", str(house.root / "no cache"))
    monkeypatch.setenv("PREFLEARN_DATA", "nowhere")
    with server(b"right") as (url, asked):
        register(house, b"right", url)
        out = build("2")
        assert DONE in out
        assert "other data" not in out
        assert SAME in build("2")
        assert asked == []
    path.unlink()


def test_data_that_no_metadata_declare_are_read_once_they_are_here(house, build, monkeypatch):
    path = house.notebooks / "01_first.ipynb"
    edit_notebook(path, lambda nb: nb["metadata"]["preflearn"].update(data=[]))
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(house.root / "no cache"))
    monkeypatch.setenv("PREFLEARN_DATA", "nowhere")
    assert DONE in build("--force")
    assert SAME in build()
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")
    assert DONE in build()
    assert SAME in build()
    assert "right" in shown(house)
    edit_notebook(path, lambda nb: nb["metadata"]["preflearn"].update(data=["toy"]))


def test_data_that_arrive_while_a_chapter_runs_are_read_by_the_next_build(house, build, monkeypatch):
    shutil.rmtree(house.root / "cache")
    monkeypatch.delenv("PREFLEARN_DATA")
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    register(house, b"the data", "http://127.0.0.1:9/none")
    (house.notebooks / "arrives").touch()
    assert "dataset toy changed while it ran" in build()
    assert DONE in build()
    assert "the data" in shown(house)


def test_inputs_edited_while_a_chapter_runs_make_it_run_again(house, build):
    (house.notebooks / "edits").touch()
    edit_notebook(house.notebooks / "01_first.ipynb", lambda nb: nb["cells"][0].update(source="# New title"))
    assert "changed while it ran; the next build runs it again" in build()
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
        (_edit(NOTEBOOK, '"outputs": []', '"outputs": [1]'), []),
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


def test_a_full_run_ignores_what_it_writes_and_is_flagged_when_its_code_changes(house, build):
    out = build("--profile", "full")
    assert DONE in out
    assert "older than the code" not in out
    assert "older code" not in (house.pages / "status.md").read_text()
    assert SAME in build("--profile", "full")
    path = house.root / "data/recorded/01_first_fit.csv"
    path.write_text(
        path.read_text().replace('"module preflearn/metrics.py": "', '"module preflearn/metrics.py": "0')
    )
    # neither the look of the figures nor the face of a folder changes a number
    looks = '# code: {"module preflearn/plots.py": "0", "module preflearn/svm/__init__.py": "0"}\n'
    (house.root / "data/recorded/02_looks.csv").write_text(f"{looks}a\n1\n")
    (house.root / "data/recorded/03_old.csv").write_text("a\n1\n")
    (house.root / "data/recorded/04_odd.csv").write_text("# code: [1]\na\n1\n")
    names = ["01_first_fit.csv", "03_old.csv", "04_odd.csv"]
    assert outdated_records(house, state_of(house)) == names
    assert "older than the code that makes it: 03_old.csv, 04_odd.csv" in build("--profile", "full")
    assert "the same: `03_old.csv`, `04_odd.csv`." in (house.pages / "status.md").read_text()
