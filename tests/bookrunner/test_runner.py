import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from toy_project import FIRST, edit_notebook, write_notebook, write_project

import preflearn
from bookrunner import keys, runner
from bookrunner.keys import chapter_key
from bookrunner.progress import Progress, duration
from bookrunner.project import Chapter, Project, find_project, typed
from bookrunner.runner import chapter_task, clean_temporaries, prune, run_tasks

FAILS = """\
values = [1, 2]
def quotient(a, b):
    return a / b

print("before")
quotient(values[0], 0)"""

WAITS = """\
import time
from pathlib import Path

while not Path("go").exists():
    time.sleep(0.05)
print("went on")"""


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path, first=FIRST)


def key(project, parameters=None):
    """The key as a fresh process would compute it."""
    fresh = Project(project.root)
    chapter = fresh.chapters[0]
    return chapter_key(fresh, chapter, chapter.checked_parameters(parameters or {}))


def test_chapters_have_several_names(project):
    for name in ("01_first", "first", "01", "1", "notebooks/01_first.ipynb"):
        assert project.chapter(name).name == "01_first"
    with pytest.raises(ValueError, match=r"no chapter '7'; expected one of \['01_first'\]"):
        project.chapter("7")


def test_parameters_are_read_from_the_tagged_cell(project):
    chapter = project.chapters[0]
    assert chapter.parameters == {"profile": "quick", "seed": 0, "n": 10}
    assert chapter.checked_parameters({"seed": 0, "n": 11}) == {"n": 11}
    assert chapter.checked_parameters({"seed": False}) == {"seed": False}
    with pytest.raises(ValueError, match=r"no parameter 'sed'; expected one of \['n', 'profile', 'seed'\]"):
        chapter.checked_parameters({"sed": 1})


def test_a_broken_notebook_is_named(tmp_path):
    (tmp_path / "03_x.ipynb").write_text("{}")
    with pytest.raises(ValueError, match=r"03_x\.ipynb is not a notebook"):
        Chapter(tmp_path / "03_x.ipynb").parameters  # noqa: B018


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 1e-3), ("3", 3), ("2024-01-02", "2024-01-02"), ("[1, 2]", [1, 2]), ("{", "{"), ("null", None)],
)
def test_values_are_typed(text, value):
    assert typed(text) == value


def test_project_is_found_from_a_folder_inside(project, tmp_path_factory, monkeypatch):
    assert find_project(project.notebooks).root == project.root
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path_factory.mktemp("empty")))
    with pytest.raises(ValueError, match="expected a checkout of preflearn"):
        find_project()


def _edit_source(project):
    edit_notebook(project.chapters[0].path, lambda nb: nb["cells"][2].update(source="1"))


def _edit_cell_metadata(project):
    edit_notebook(project.chapters[0].path, lambda nb: nb["cells"][2]["metadata"].update(tags=["hide-input"]))


def _edit_verdict(project):
    path = project.book / "claims.yml"
    path.write_text(path.read_text().replace("verdict: typo", "verdict: holds if"))


def _add_published(project):
    (project.root / "data/published/P1_x.csv").write_text("a\n1\n")


def _add_recorded(project):
    (project.root / "data/recorded/01_first_fit.csv").write_text("a\n1\n")


@pytest.mark.parametrize(
    "change", [_edit_source, _edit_cell_metadata, _edit_verdict, _add_published, _add_recorded]
)
def test_key_changes_with_each_file_that_matters(project, change):
    before = key(project)
    assert key(project) == before
    change(project)
    assert key(project) != before


def _add_outputs(project):
    edit_notebook(project.chapters[0].path, lambda nb: nb["cells"][2].update(outputs=[], execution_count=3))


def _edit_note(project):
    path = project.book / "claims.yml"
    path.write_text(path.read_text().replace("The sign of", "A sign of"))


def _record_another_chapter(project):
    write_notebook(project.notebooks / "02_second.ipynb", "1")
    (project.root / "data/recorded/02_second_fit.csv").write_text("a\n1\n")


@pytest.mark.parametrize("change", [_add_outputs, _edit_note, _record_another_chapter])
def test_key_ignores_what_does_not_matter(project, change):
    before = key(project)
    change(project)
    assert key(project) == before


def test_key_of_a_full_run_ignores_what_it_writes(project):
    before = key(project, {"profile": "full"})
    assert before.startswith("full-")
    _add_recorded(project)
    assert key(project, {"profile": "full"}) == before


def test_key_changes_with_parameters_package_and_versions(project, tmp_path, monkeypatch):
    before = key(project)
    assert key(project, {"seed": 0}) == before
    assert key(project, {"seed": 1}) != before
    monkeypatch.setattr(keys, "main_versions", lambda: {"numpy": "0.1"})
    other_version = key(project)
    assert other_version != before
    package = tmp_path / "preflearn"
    package.mkdir()
    (package / "__init__.py").write_text("a = 1")
    monkeypatch.setattr(keys, "preflearn", SimpleNamespace(__file__=str(package / "__init__.py")))
    first = key(project)
    (package / "__init__.py").write_text("a = 2")
    assert len({other_version, first, key(project)}) == 3


def test_key_changes_with_registered_hashes_and_availability(tmp_path, monkeypatch):
    project = write_project(tmp_path)
    write_notebook(project.notebooks / "01_first.ipynb", "1", data=("sushi",))
    registry = tmp_path / "data" / "registry.csv"
    registry.write_text("dataset,file,sha256\nsushi,a.txt,00\n")
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path))
    found = set()
    for available in (True, False):
        fake = SimpleNamespace(available=lambda name, answer=available: answer)
        monkeypatch.setattr(preflearn, "datasets", fake, raising=False)
        found.add(key(project))
    registry.write_text("dataset,file,sha256\nsushi,a.txt,01\n")
    found.add(key(project))
    assert len(found) == 3
    registry.write_text("dataset,file,sha256\nnba,a.txt,01\n")
    with pytest.raises(
        ValueError, match=r"01_first declares the data set 'sushi'; expected one of \['nba'\]"
    ):
        key(project)


def test_a_failing_chapter_is_reported_and_the_others_are_kept(tmp_path, capfd):
    project = write_project(tmp_path, first=FIRST, bad=FAILS)
    tasks = [chapter_task(project, chapter, {"seed": 3}) for chapter in project.chapters]
    good, bad = run_tasks(project, tasks, jobs=2)
    assert (good.status, bad.status) == ("done", "failed")
    assert "ZeroDivisionError: division by zero in cell 3 of the notebook (In [3])" in bad.summary
    assert "->   6 | quotient(values[0], 0)" in bad.report
    assert "return a / b" in bad.report
    assert not bad.task.target.parent.exists()
    kept = json.loads(bad.task.failed.read_text())
    assert any("before" in str(cell.get("outputs")) for cell in kept["cells"])
    run = json.loads(good.task.target.read_text())["metadata"]["preflearn"]["run"]
    assert run["parameters"] == {"seed": 3}
    assert (run["chapter"], run["profile"]) == ("01_first", "quick")
    log = capfd.readouterr().err
    assert "02_bad: FAILED after" in log
    assert "TCP" not in log
    (again,) = run_tasks(project, tasks[:1])
    assert again.status == "unchanged"
    with pytest.raises(ValueError, match="jobs is 0"):
        run_tasks(project, tasks, jobs=0)


def test_a_dying_kernel_is_reported(tmp_path):
    project = write_project(tmp_path, crash="import os\nos.write(2, b'no memory left\\n')\nos._exit(7)")
    (outcome,) = run_tasks(project, [chapter_task(project, project.chapters[0], {})])
    assert outcome.status == "failed"
    assert outcome.summary == "the kernel died (out of memory, or a crash in compiled code?) in cell 3"
    assert "os._exit(7)" in outcome.report


def _start_build(project):
    command = [sys.executable, "-m", "bookrunner", "build", "--no-render", "--jobs", "2"]
    return subprocess.Popen(
        command,
        cwd=project.root,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A shell starts its background jobs deaf to interrupts, and their children inherit it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def _wait_for(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_is_done_survives_an_interrupt_and_a_kill(tmp_path):
    ledger = "- {id: P1-01, where: x, statement: x, chapter: 09_x, verdict: holds}\n"
    project = write_project(tmp_path, ledger, quick="print(1)", waits=WAITS.replace('"go"', '"../go"'))
    executed = project.build / "executed"

    process = _start_build(project)
    _wait_for(lambda: list(executed.glob("01_quick/*.ipynb")), process)
    (first,) = executed.glob("01_quick/*.ipynb")
    content = first.read_bytes()
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in log

    process = _start_build(project)
    started = [process.stderr.readline() for _ in range(1)]
    assert started == ["02_waits: started\n"]
    time.sleep(1)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert [path for path in executed.rglob("*") if path.is_file()] == [first]

    (tmp_path / "go").touch()
    process = _start_build(project)
    out, log = process.communicate(timeout=120)
    assert process.returncode == 0, log
    assert "chapters: 1 executed, 1 unchanged, 0 failed" in out
    assert first.read_bytes() == content
    assert len(list(executed.glob("02_waits/*.ipynb"))) == 1


def test_old_executions_and_stale_temporaries_go(tmp_path):
    for number, name in enumerate(["quick-a", "quick-b", "quick-c", "full-a", ".tmp-old"]):
        path = tmp_path / f"{name}.ipynb"
        path.touch()
        os.utime(path, (number, number))
    (tmp_path / ".tmp-fresh.ipynb").touch()
    prune(tmp_path, "quick", kept=1)
    clean_temporaries([tmp_path])
    assert sorted(path.stem for path in tmp_path.iterdir()) == [".tmp-fresh", "full-a", "quick-c"]


def test_kernels_that_share_processors_use_one_thread_each(project, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert runner.kernel_environment(project, 2)["OMP_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in runner.kernel_environment(project, 1)


class Terminal:
    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_progress_on_a_terminal_estimates_the_time_left():
    stream = Terminal()
    progress = Progress(["a", "b", "c"], 1, {"a": 60.0, "b": 120.0}, stream)
    assert progress.seconds_left() == pytest.approx(60 + 120 + 90)
    progress.start("a")
    progress.cell("a", 2, 9)
    progress.tick()
    assert "0 of 3 done; a 2/9; about 4 min" in stream.text
    progress.finish("a", "done in 60.0 s")
    assert stream.text.endswith("a: done in 60.0 s (1 of 3)\n")
    assert Progress(["new"], 1, {}, stream).seconds_left() is None
    assert duration(59.99) == "60.0 s"
