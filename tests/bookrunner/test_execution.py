"""What cells and kernels may do, with real kernels."""

import pytest
from toy_project import FIRST, write_project

from bookrunner import execution
from bookrunner.keys import State
from bookrunner.outputs import read_executed
from bookrunner.tasks import run_tasks, task_of

FAILS = """\
values = [1, 2]
def quotient(a, b):
    return a / b

print("before")
quotient(values[0], 0)"""


def run(project, chapters, parameters, **options):
    todo = [task_of(project.chapter(name), parameters, project.build / name) for name in chapters]
    return dict(zip(chapters, run_tasks(State(project), todo, **options), strict=True))


CHAPTERS = {
    "sleeps": "import time\n\nprint('asleep')\nwhile True:\n    time.sleep(0.1)",
    "bad": FAILS,
    "exits": "import sys\n\nprint('before')\nsys.exit(0)",
    "crash": "import os\nos.write(2, b'no memory left\\n')\nos._exit(7)",
    "first": FIRST,
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """All ways to fail beside a chapter that is fine; the cells of one have two seconds each."""
    first = "where: x, statement: x, chapter: 05_first, kind: cost"
    claims = (
        f"- {{id: P1-01, {first}, verdict: holds}}\n- {{id: P1-02, {first}, verdict: not shown, note: x}}\n"
    )
    project = write_project(tmp_path_factory.mktemp("ways"), claims, **CHAPTERS)
    slow, *others = CHAPTERS
    return run(project, [slow], {}, cell_seconds=2) | run(project, others, {"seed": 3}, jobs=4)


@pytest.mark.parametrize(
    ("name", "summary", "report"),
    [
        ("sleeps", "more than 2 s (--cell-time gives it more) in cell 3", ""),
        ("bad", "ZeroDivisionError: division by zero in cell 3", "-> "),
        ("exits", "the chapter ended before its last cell, as sys.exit() does, in cell 3", ""),
        (
            "crash",
            "the kernel died (out of memory, or a crash in compiled code?) in cell 3",
            "no memory left",
        ),
    ],
)
def test_each_way_to_fail_is_named_with_its_cell(outcomes, name, summary, report):
    outcome = outcomes[name]
    assert (outcome.status, outcome.result.summary) == ("failed", summary)
    assert report in outcome.result.report
    assert not outcome.task.target.exists()


def test_a_failing_chapter_is_reported_and_the_others_are_kept(outcomes):
    assert "----> 6 quotient(values[0], 0)" in outcomes["bad"].result.report
    assert "return a / b" in outcomes["bad"].result.report
    good = outcomes["first"]
    assert good.status == "done"
    about = read_executed(good.task.target).run
    assert (about["chapter"], about["profile"], about["parameters"]) == ("05_first", "quick", {"seed": 3})
    assert about["inputs"]["claim P1-01"]
    assert about["inputs"]["module bookrunner/ledger.py"]
    assert "module bookrunner/tasks.py" not in about["inputs"]


def test_a_failed_notebook_is_kept(outcomes):
    assert all('"before\\n"' in outcomes[name].task.failed.read_text() for name in ("bad", "exits"))


def test_kernels_use_one_thread_each_unless_the_user_says_otherwise(monkeypatch, tmp_path):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")
    monkeypatch.chdir(tmp_path)
    env = execution.kernel_environment("root")
    assert (env["OMP_NUM_THREADS"], env["OPENBLAS_NUM_THREADS"]) == ("3", "1")
    assert env["PREFLEARN_DATA"] == str(tmp_path / "mirror")


def test_cells_are_told_as_they_begin(tmp_path):
    chapter, told = write_project(tmp_path, "", first="print(1)").chapters[0], []
    result = execution.execute(chapter.notebook, {"n": 3}, ["n"], str(tmp_path), begun=told.append)
    assert result.summary == ""
    # The injected cell is none of the reader's.
    assert told == [f"cell {number} of 4" for number in (1, 2, 2, 3, 4)]
