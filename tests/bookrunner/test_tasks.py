import json
import signal
import subprocess
import sys
import time

import pytest
from toy_project import FIRST, run_here, write_project

from bookrunner import execution, tasks
from bookrunner.command import main
from bookrunner.files import digest, write_atomically
from bookrunner.keys import State
from bookrunner.outputs import Executed, read_executed, write_executed
from bookrunner.records import PROVENANCE_MIME
from bookrunner.tasks import run_tasks, task_of

FAILS = """\
values = [1, 2]
def quotient(a, b):
    return a / b

print("before")
quotient(values[0], 0)"""

WAITS = """\
import time
from pathlib import Path

Path("../begun").touch()
while not Path("../go").exists():
    time.sleep(0.05)
print("went on")"""


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
    claims = "- {id: P1-01, where: x, statement: x, chapter: 05_first, verdict: holds}\n"
    claims += "- {id: P1-02, where: x, statement: x, chapter: 05_first, verdict: typo, note: x}\n"
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
    assert (outcome.status, outcome.summary) == ("failed", summary)
    assert report in outcome.report
    assert not outcome.task.target.exists()


def test_a_failing_chapter_is_reported_and_the_others_are_kept(outcomes):
    assert "----> 6 quotient(values[0], 0)" in outcomes["bad"].report
    assert "return a / b" in outcomes["bad"].report
    good = outcomes["first"]
    assert good.status == "done"
    about = read_executed(good.task.target).run
    assert (about["chapter"], about["profile"], about["parameters"]) == ("05_first", "quick", {"seed": 3})
    assert about["inputs"]["claim P1-01"]
    assert about["inputs"]["module bookrunner/ledger.py"]
    assert "module bookrunner/tasks.py" not in about["inputs"]


def test_a_failed_notebook_is_kept(outcomes):
    assert all('"before\\n"' in outcomes[name].task.failed.read_text() for name in ("bad", "exits"))


def test_jobs_are_positive(tmp_path):
    with pytest.raises(ValueError, match="greater than 0"):
        run(write_project(tmp_path, first=FIRST), ["first"], {}, jobs=0)


def _start_build(project, *arguments, **options):
    command = [sys.executable, "-m", "bookrunner", "build", "--no-render", *arguments]
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


RUN = {"chapter": "01_x", "profile": "quick", "parameters": {}, "date": "", "seconds": 1, "inputs": {}}
ABOUT = {"versions": {}, "data": [], "parameters": {}, "modules": [], "read": {}}


def executed_with(**payloads):
    """An executed notebook with these outputs of ours in its first cell, and its provenance in the last."""
    mimes = (f"application/vnd.preflearn.{kind}+json" for kind in payloads)
    bundles = [dict(zip(mimes, payloads.values(), strict=True)), {PROVENANCE_MIME: ABOUT}]
    cells = [{"source": "é", "outputs": [{"data": bundle}]} for bundle in bundles]
    return Executed({"cells": cells, "metadata": {}})


@pytest.mark.parametrize(
    ("payloads", "message"),
    [
        (
            {"record": {"name": "x", "csv": "n\\n", "keys": None, "rtol": 0, "atol": 0, "timings": []}},
            "'flips'",
        ),
        ({"record": "x"}, "cell 1, .*record.*not of type 'object'"),
        (
            {"claim": {"id": "P1-01"}},
            "cell 1, .*claim.*is a required property",
        ),
        ({"claim": [1]}, "cell 1, .*claim"),
    ],
)
def test_an_output_of_another_form_than_ours_is_named(tmp_path, capsys, payloads, message):
    """As an older version of this package made it, or a cell that shows our kind of output itself."""
    path, executed = tmp_path / "quick.ipynb", executed_with(**payloads)
    with pytest.raises(ValueError, match=message):
        write_executed(path, executed, dict(RUN))
    assert read_executed(path) is None
    executed.notebook["metadata"]["preflearn"] = {"run": dict(RUN)}
    executed.notebook["metadata"]["preflearn"]["run"]["digest"] = digest(executed.notebook)
    write_atomically(path, json.dumps(executed.notebook))
    assert read_executed(path) is None
    assert "counts as missing (ValueError: cell 1" in capsys.readouterr().err


def test_provenance_is_taken_from_the_last_cell_only():
    forged = ABOUT | {"versions": {"numpy": "9"}}
    assert executed_with(provenance=forged).provenance == ABOUT


DAMAGE = {
    "empty": b"",
    "cut": None,
    "a list": b"[]",
    "no text": b"\x80\x81",
    "too deep": b"[" * 100_000,
    "other metadata": b'{"cells": [], "metadata": {"preflearn": {"run": {"digest": 0}}}}',
    "no run": b'{"cells": [], "metadata": {}}',
    "null": b"null",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_not_what_was_written_counts_as_missing(tmp_path, capsys, kind):
    path = tmp_path / "quick.ipynb"
    assert read_executed(path) is None
    write_executed(path, executed_with(), dict(RUN))
    assert read_executed(path).run == RUN
    content = path.read_bytes()
    path.write_bytes(content[:-20] if DAMAGE[kind] is None else DAMAGE[kind])
    assert read_executed(path) is None
    path.write_bytes(content.replace(b"01_x", b"01_y"))
    assert read_executed(path) is None
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"preflearn: {path} can't be read and counts as missing") for line in lines)


def test_kernels_use_one_thread_each_unless_the_user_says_otherwise(monkeypatch, tmp_path):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")
    monkeypatch.chdir(tmp_path)
    env = execution.kernel_environment("root")
    assert (env["OMP_NUM_THREADS"], env["OPENBLAS_NUM_THREADS"]) == ("3", "1")
    assert env["PREFLEARN_DATA"] == str(tmp_path / "mirror")
