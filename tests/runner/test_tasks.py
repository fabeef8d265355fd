"""Two builds at once, and builds that are interrupted, killed, or on a full disk."""

import ast
import math
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from toy_project import FIRST, run_here, wait_until, write_project

from preflearn_book.runner import tasks
from preflearn_book.runner.command import main
from preflearn_book.runner.dependencies import State
from preflearn_book.runner.tasks import (
    Estimate,
    expected_seconds,
    quick_seconds,
    run_tasks,
    task_of,
)

WAITS = """\
import time
from pathlib import Path

Path("../begun").touch()
while not Path("../go").exists():
    time.sleep(0.05)
print("went on")"""


def test_jobs_are_positive(tmp_path):
    with pytest.raises(ValueError, match="greater than 0"):
        run_tasks(State(write_project(tmp_path, first=FIRST)), [], jobs=0)


def test_a_long_run_reports_its_current_cell(tmp_path, monkeypatch, capsys):
    project = write_project(tmp_path, "", first="import time\n\ntime.sleep(2)")
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(tasks, "SILENCE", 0.2)
    assert main(["build", "1", "--no-render", "--jobs", "1"]) == 0
    assert "01_first: cell 3 of 4" in capsys.readouterr().err


def test_python_is_parsed_in_one_thread(tmp_path, monkeypatch):
    """In Python 3.11, two threads that parse at once may end with "AST constructor
    recursion depth mismatch"."""
    project = write_project(tmp_path, "", first="1", second="2")
    threads = set()
    parse = ast.parse

    def record_thread(*arguments, **options):
        threads.add(threading.current_thread())
        return parse(*arguments, **options)

    monkeypatch.setattr(ast, "parse", record_thread)
    monkeypatch.chdir(project.root)
    assert main(["build", "--no-render", "--jobs", "2"]) == 0
    assert threads == {threading.main_thread()}


def start_build(project, *arguments):
    command = [
        str(Path(sys.executable).with_name("preflearn")),
        "build",
        "--no-render",
        *arguments,
    ]
    process = subprocess.Popen(
        command,
        cwd=project.root,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Background jobs of a shell ignore interrupts, and their children inherit it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_until((project.root / "begun").exists, lambda: process.poll() is not None)
    return process


def test_builds_exclude_each_other_and_finished_results_survive_an_interrupt(
    tmp_path, monkeypatch, capsys
):
    project = write_project(tmp_path, "", quick="print(1)", waits=WAITS)
    monkeypatch.chdir(project.root)
    executed = project.build / "executed"

    process = start_build(project, "--jobs", "1")
    first = executed / "01_quick" / "quick.ipynb"
    content = first.read_bytes()
    assert main(["build", "1", "--no-render"]) == 1
    assert f"process {process.pid} " in capsys.readouterr().err
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in log
    (tmp_path / "begun").unlink()

    process = start_build(project)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert [path for path in executed.rglob("*") if path.is_file()] == [first]

    monkeypatch.setattr(tasks, "execute", run_here)
    (tmp_path / "go").touch()
    monkeypatch.chdir(project.notebooks)
    assert main(["build", "--no-render"]) == 0
    assert "1 executed, 1 unchanged, 0 failed" in capsys.readouterr().out
    assert first.read_bytes() == content
    assert len(list(executed.glob("02_waits/*.ipynb"))) == 1


def test_sigterm_ends_a_build_without_kernels_or_partial_files(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    project = write_project(tmp_path / "project", "", waits=WAITS)
    process = start_build(project)
    kernels = psutil.Process(process.pid).children(recursive=True)
    assert kernels
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert log.splitlines()[-1].startswith("preflearn: terminated by SIGTERM;")
    assert "Traceback" not in log
    assert psutil.wait_procs(kernels, timeout=30)[1] == []
    assert list(temporary.iterdir()) == []
    assert [path for path in project.build.rglob("*.ipynb*") if path.is_file()] == []


def test_a_full_disk_is_reported_and_leaves_no_partial_file(
    tmp_path, monkeypatch, capsys
):
    resource = pytest.importorskip("resource")  # this module does not exist on Windows
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, "", first="print('x' * 400_000)")
    monkeypatch.chdir(project.root)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        assert main(["build", "--no-render"]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    captured = capsys.readouterr()
    assert "File too large" in captured.out + captured.err
    assert [
        path.name for path in (project.build / "executed").rglob("*") if path.is_file()
    ] == []


def _order_of_first_run(project, monkeypatch, capsys, *arguments):
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(tasks, "execute", run_here)
    assert main(["build", "--no-render", "--jobs", "1", *arguments]) == 0
    done = [
        line for line in capsys.readouterr().err.splitlines() if ": done in " in line
    ]
    return [line.split(":")[0] for line in done]


def test_the_longest_chapter_starts_first_by_measured_seconds(
    tmp_path, monkeypatch, capsys
):
    project = write_project(tmp_path, "", short="1", long="2", unknown="3")
    table = "# how it was measured\nchapter,seconds\n01_short,2.5\n02_long,100\n"
    (tmp_path / "data" / "chapter_seconds.csv").write_text(table)
    order = _order_of_first_run(project, monkeypatch, capsys)
    assert order == ["03_unknown", "02_long", "01_short"]


def test_the_last_run_time_takes_precedence_over_measured_seconds(
    tmp_path,
):
    (chapter,) = write_project(tmp_path, "", first=FIRST).chapters
    quick, full = (
        task_of(chapter, {"profile": profile}, tmp_path)
        for profile in ("quick", "full")
    )
    measured = {"01_first": 7.0}
    assert (
        expected_seconds(quick, SimpleNamespace(run={"seconds": 900.0}), measured)
        == 900
    )
    assert expected_seconds(quick, None, measured) == 7
    assert expected_seconds(full, None, measured) == math.inf
    assert expected_seconds(quick, None, {}) == math.inf


def test_every_measured_chapter_exists():
    root = Path(__file__).parents[2]
    chapters = {path.stem for path in (root / "notebooks").glob("*.ipynb")}
    assert quick_seconds(root).keys() <= chapters


def test_the_remaining_time_is_weighted_by_expected_seconds_and_decreases():
    expected = {"long": 80.0, "short": 20.0}
    estimate = Estimate(expected)
    assert estimate.remaining(30.0) == math.inf
    estimate.finish("long", 160.0)
    assert [estimate.remaining(elapsed) for elapsed in (160.0, 180.0, 300.0)] == [
        40.0,
        20.0,
        0.0,
    ]
    estimate = Estimate(expected | {"new": math.inf})
    estimate.finish("long", 160.0)
    assert estimate.remaining(160.0) == 320
