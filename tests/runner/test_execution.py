"""Failures and behavior of cells and kernels, with real kernels."""

import pytest
from toy_project import FIRST, write_project

from preflearn_book.runner import execution
from preflearn_book.runner.dependencies import State
from preflearn_book.runner.outputs import read_executed
from preflearn_book.runner.tasks import run_tasks, task_of

FAILS = """\
values = [1, 2]
def quotient(a, b):
    return a / b

print("before")
quotient(values[0], 0)"""


def run(project, chapters, parameters, **options):
    todo = [
        task_of(project.chapter(name), parameters, project.build / name)
        for name in chapters
    ]
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
    """Run chapters that fail in different ways, and one that succeeds; only the first has
    a time limit."""
    entry = "where: x, statement: x, chapter: 05_first, kind: cost"
    claims = (
        f"- {{id: P1-01, {entry}, verdict: holds}}\n"
        f"- {{id: P1-02, {entry}, verdict: not shown, note: x}}\n"
    )
    project = write_project(tmp_path_factory.mktemp("ways"), claims, **CHAPTERS)
    slow, *others = CHAPTERS
    return run(project, [slow], {}, cell_seconds=3) | run(
        project, others, {"seed": 3}, jobs=2
    )


@pytest.mark.parametrize(
    ("name", "named", "report"),
    [
        ("sleeps", "--cell-time", ""),
        (
            "bad",
            "ZeroDivisionError: division by zero",
            "----> 6 quotient(values[0], 0)",
        ),
        ("exits", "sys.exit()", ""),
        ("crash", "kernel died", "no memory left"),
    ],
)
def test_each_failure_is_reported_with_its_cell(outcomes, name, named, report):
    outcome = outcomes[name]
    assert outcome.status == "failed"
    assert named in outcome.result.summary
    assert outcome.result.summary.endswith("in cell 3")
    assert report in outcome.result.report
    assert not outcome.task.target.exists()
    if name in ("bad", "exits"):
        assert '"before\\n"' in outcome.task.failed.read_text()


def test_a_successful_run_is_stored_with_its_inputs(outcomes):
    good = outcomes["first"]
    assert good.status == "done"
    about = read_executed(good.task.target).run
    assert (about["chapter"], about["profile"], about["parameters"]) == (
        "05_first",
        "quick",
        {"seed": 3},
    )
    assert about["inputs"]["claim P1-01"]
    assert about["inputs"]["module preflearn_book/runner/claims.py"]
    assert "module preflearn_book/runner/tasks.py" not in about["inputs"]


def test_kernels_use_one_thread_each_unless_the_user_says_otherwise(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")
    monkeypatch.chdir(tmp_path)
    env = execution.kernel_environment("root")
    assert (env["OMP_NUM_THREADS"], env["OPENBLAS_NUM_THREADS"]) == ("3", "1")
    assert env["PREFLEARN_DATA"] == str(tmp_path / "mirror")


def test_cells_are_reported_as_they_begin(tmp_path):
    (chapter,) = write_project(tmp_path, "", first="print(1)").chapters
    begun = []
    result = execution.execute(
        chapter.notebook, {"n": 3}, ["n"], str(tmp_path), begun=begun.append
    )
    assert result.summary == ""
    # the injected cell has no number
    assert begun == [f"cell {number} of 4" for number in (1, 2, 2, 3, 4)]
