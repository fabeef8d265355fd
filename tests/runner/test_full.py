"""Full builds: sweeps that chapters read, interrupts, and chapters whose records are
still valid."""

import json

import pytest
from toy_project import edit_notebook, run_here, write_project

from preflearn_book.runner import build, tasks
from preflearn_book.runner.command import main
from preflearn_book.runner.project import Project

COLLECTS = """\
import pandas as pd
from preflearn_book.runner.records import record
from preflearn_book.runner.sweep import swept

if profile == "full":
    table = swept("01_collects", "squares", {"seed": "0:4"}).drop(columns="seed")
else:
    table = pd.DataFrame({"x": [seed, -seed - 1], "square": [seed**2, (seed + 1) ** 2]})
record("squares", table, keys=["x"])"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Three chapters. The full run of the first one reads a sweep of four points, and
    the last chapter fails."""
    made = write_project(
        tmp_path, "", collects=COLLECTS, well="print(1)", fails="1 / 0"
    )

    def declare_sweep(notebook):
        notebook["metadata"]["preflearn"] = {"sweep": {"seed": "0:4"}}
        notebook["cells"][-1]["metadata"]["tags"] = ["point"]

    edit_notebook(made.notebooks / "01_collects.ipynb", declare_sweep)
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


class Counting:
    """Runs cells in this process, stores the parameters of each run, and is interrupted
    before one of the runs."""

    def __init__(self, interrupted_at=None):
        self.ran = []
        self.interrupted_at = interrupted_at

    def __call__(self, notebook, parameters, *rest, **options):
        if len(self.ran) == self.interrupted_at:
            raise KeyboardInterrupt
        self.ran.append(parameters)
        return run_here(notebook, parameters, *rest, **options)


def full_build(monkeypatch, *options, interrupted_at=None):
    """Return the exit status of a full build, and the parameters of its runs."""
    counting = Counting(interrupted_at)
    monkeypatch.setattr(tasks, "execute", counting)
    words = ["build", "--profile", "full", "--no-render", "--jobs", "1", *options]
    return main(words), counting.ran


def test_an_interrupted_full_build_continues_with_the_remaining_points_and_chapters(
    project, monkeypatch, capsys
):
    status, ran = full_build(monkeypatch, interrupted_at=2)
    assert (status, ran) == (130, [{}, {"seed": 1}])
    assert "01_collects: running the points of the sweep" in capsys.readouterr().err

    status, ran = full_build(monkeypatch, interrupted_at=3)
    assert (status, ran) == (130, [{"seed": 2}, {"seed": 3}, {"profile": "full"}])
    kept = {path: path.read_bytes() for path in project.build.rglob("*.ipynb")}
    assert len(kept) == 5, "four points and a chapter"

    status, ran = full_build(monkeypatch)
    assert (status, ran) == (1, [{"profile": "full"}] * 2)
    captured = capsys.readouterr()
    assert "chapters: 1 executed, 1 unchanged, 1 failed" in captured.out
    assert "03_fails failed" in captured.out
    assert "chapter 03_fails: ZeroDivisionError" in captured.out
    assert all(path.read_bytes() == content for path, content in kept.items())
    latest = json.loads((project.latest / "01_collects.ipynb").read_text())
    assert latest["metadata"]["preflearn"]["run"]["profile"] == "full"

    status, ran = full_build(monkeypatch)
    assert (status, ran) == (1, [{"profile": "full"}]), "only the chapter that failed"


def test_a_single_point_in_the_full_profile_does_not_run_the_sweep(
    project, monkeypatch
):
    status, ran = full_build(monkeypatch, "1", "-p", "seed", "2")
    assert ran == [{"profile": "full", "seed": 2}]
    assert status == 1, "no sweep was run"


def test_a_record_takes_parameters_of_the_sweep_only(project, monkeypatch, capsys):
    ran = []

    def note(state, todo, **options):
        ran.extend(task.parameters for task in todo)
        return [tasks.Outcome(task, "failed") for task in todo]

    monkeypatch.setattr(build, "run_tasks", note)
    assert main(["record", "1", "--yes", "-p", "seed", "2"]) == 1
    assert ran == [{}, {"profile": "full", "seed": 2}], "no point is run before"
    assert main(["record", "1", "--yes", "-p", "n", "2"]) != 0
    assert "'n'" in capsys.readouterr().err
    assert not list(project.recorded.glob("*.csv"))


def test_a_chapter_with_a_valid_record_from_a_sweep_is_not_run_in_full(
    project, monkeypatch, capsys
):
    monkeypatch.setattr(tasks, "execute", run_here)
    assert main(["record", "1", "--yes", "--jobs", "1"]) == 0
    record = project.recorded / "01_collects_squares.csv"
    rows = [line for line in record.read_text().splitlines() if line[0] != "#"]
    assert rows == [
        "x,square",
        "0,0",
        "-1,1",
        "1,1",
        "-2,4",
        "2,4",
        "-3,9",
        "3,9",
        "-4,16",
    ]

    capsys.readouterr()
    status, ran = full_build(monkeypatch, "--skip-recorded", "1", "2")
    assert (status, ran) == (0, [{"profile": "full"}])
    assert "not run in full: 01_collects" in capsys.readouterr().out
    latest = json.loads((project.latest / "01_collects.ipynb").read_text())
    assert latest["metadata"]["preflearn"]["run"]["profile"] == "quick"

    record.write_text(record.read_text().replace("\n-1,1\n", "\n-1,2\n"))
    status, ran = full_build(monkeypatch, "--skip-recorded", "--force", "1")
    assert {"profile": "full"} in ran
    assert "not run in full: none" in capsys.readouterr().out
