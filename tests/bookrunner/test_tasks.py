"""Builds beside each other, interrupted, killed, and on a disk without room."""

import ast
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from toy_project import FIRST, run_here, write_project

from bookrunner import tasks
from bookrunner.command import main
from bookrunner.keys import State
from bookrunner.tasks import run_tasks

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


def test_a_long_run_says_which_cell_it_is_at(tmp_path, monkeypatch, capsys):
    project = write_project(tmp_path, "", first="import time\n\ntime.sleep(1)")
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(tasks, "SILENCE", 0.2)
    assert main(["record", "1", "--dry", "--jobs", "1"]) == 0
    assert "01_first, full: cell 3 of 4 after" in capsys.readouterr().err


def test_python_is_parsed_in_one_thread(tmp_path, monkeypatch):
    """Two that parse at once may end with "AST constructor recursion depth mismatch" in Python 3.11."""
    project, threads, parse = write_project(tmp_path, "", first="1", second="2"), set(), ast.parse

    def seen(*arguments, **options):
        threads.add(threading.current_thread())
        return parse(*arguments, **options)

    monkeypatch.setattr(ast, "parse", seen)
    monkeypatch.chdir(project.root)
    assert main(["build", "--no-render", "--jobs", "2"]) == 0
    assert threads == {threading.main_thread()}


def _start_build(project, *arguments, **options):
    command = [str(Path(sys.executable).with_name("preflearn")), "build", "--no-render", *arguments]
    return subprocess.Popen(
        command,
        cwd=project.root,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A shell starts its background jobs deaf to interrupts, and their children inherit it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def _wait_for(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_two_builds_and_what_survives_an_interrupt_and_a_kill(tmp_path, monkeypatch, capsys):
    project = write_project(tmp_path, "", quick="print(1)", waits=WAITS)
    monkeypatch.chdir(project.root)
    executed, begun = project.build / "executed", tmp_path / "begun"

    process = _start_build(project, "--jobs", "1")
    _wait_for(begun.exists, process)
    first = executed / "01_quick" / "quick.ipynb"
    content = first.read_bytes()
    assert main(["build", "1", "--no-render"]) == 1
    message = f"preflearn: error: a build of this book is under way: process {process.pid} holds"
    assert capsys.readouterr().err.startswith(message)
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in log
    begun.unlink()

    process = _start_build(project)
    _wait_for(begun.exists, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert [path for path in executed.rglob("*") if path.is_file()] == [first]

    monkeypatch.setattr(tasks, "execute", run_here)
    (tmp_path / "go").touch()
    monkeypatch.chdir(project.notebooks)
    assert main(["build", "--no-render"]) == 0
    assert "chapters: 1 executed, 1 unchanged, 0 failed" in capsys.readouterr().out
    assert first.read_bytes() == content
    assert len(list(executed.glob("02_waits/*.ipynb"))) == 1


def test_a_disk_without_room_is_named_and_leaves_nothing_half_written(tmp_path, monkeypatch, capsys):
    resource = pytest.importorskip("resource")
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
    assert [path.name for path in (project.build / "executed").rglob("*") if path.is_file()] == []
