import subprocess
import sys
from types import SimpleNamespace

import pandas as pd
import pytest
from toy_project import FIRST, run_here, write_project

import preflearn
from bookrunner import tasks
from bookrunner.command import main


@pytest.fixture
def project(tmp_path, monkeypatch):
    project = write_project(tmp_path, first=FIRST)
    monkeypatch.chdir(project.notebooks)
    return project


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "7"], "there is no chapter '7'; expected one of ['01_first']"),
        (["build", "-p", "sed", "1", "--no-render"], "chapter 01_first has no parameter 'sed'"),
        (["build", "-p", "seed", "1", "-p", "seed", "2"], "the parameter 'seed' is given twice"),
        (["build", "--jobs", "0", "--no-render"], "Invalid value for '--jobs': 0 is not in the range x>=1"),
        (["sweep", "first"], "a sweep needs at least one parameter"),
        (["build", "--profile", "ful"], "Invalid value for '--profile': 'ful' is not one of 'quick', 'full'"),
        (["build", "-p", "profile", "ful"], "chapter 01_first: profile is 'ful'; expected one of"),
        (["build", "-p", "seed", "1:20"], "chapter 01_first: seed is '1:20'; expected one like 0"),
        (
            ["build", "--cell-time", "0", "--no-render"],
            "Invalid value for '--cell-time': 0 is not in the range 1<=x<=10000000",
        ),
        (["buidl"], "No such command 'buidl'"),
        (["sweep", "first", "-p", "seed", "3:1"], "chapter 01_first: seed: '3:1' holds 0 values"),
        (["sweep", "first", "-p", "n", "1", "--jobs", "1", "--scheduler", "x"], "--jobs is for this machine"),
    ],
)
def test_a_wrong_command_is_one_clean_line(project, capsys, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"preflearn: error: {message}")
    assert captured.err.count("\n") == 1
    assert not project.build.exists()


def test_an_invalid_ledger_stops_a_build_before_it_runs(project, capsys):
    (project.book / "claims.yml").write_text("- {id: x}")
    assert main(["build"]) == 2
    assert "claims.yml, entry 1 (x)" in capsys.readouterr().err
    assert not project.build.exists()


@pytest.mark.parametrize("blocked", ["_build", "book/chapters"])
def test_a_place_that_cannot_be_written_is_one_line_before_anything_runs(project, capsys, blocked):
    (project.root / blocked).write_text("a file in its place")
    assert main(["build", "--no-render"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("preflearn: error: [Errno")
    assert str(project.root / blocked) in captured.err
    assert captured.err.count("\n") == 1


def test_build_then_claims_then_contradiction(project, capsys, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    assert main(["build", "1", "-p", "seed", "4", "--no-render"]) == 0
    assert main(["build", "1", "-p", "seed", "4", "--no-render"]) == 0
    assert "0 executed, 1 unchanged" in capsys.readouterr().out
    assert main(["claims"]) == 0
    out = capsys.readouterr().out
    assert "P1-02   typo       formula      holds if or typo  01_first" in out
    assert "4 claims, 2 computed, 0 contradictions" in out
    ledger = project.book / "claims.yml"
    ledger.write_text(ledger.read_text().replace("verdict: typo", "verdict: holds"))
    assert main(["claims"]) == 1
    assert "! P1-02" in capsys.readouterr().out


def test_data_commands_go_to_the_registry(monkeypatch, capsys):
    class UnavailableError(OSError):
        pass

    def fetch(name, progress):
        if name == "nba":
            raise UnavailableError("nba: no network")
        if name == "nbb":
            raise ValueError("there is no data set 'nbb'")
        return [f"cache/{name}.txt"]

    frame = pd.DataFrame({"dataset": ["sushi"], "file": ["a"], "status": ["ok"], "detail": [""]})
    broken = frame.assign(status="mismatch")
    fake = SimpleNamespace(
        DatasetUnavailable=UnavailableError,
        listing=lambda: frame,
        fetch=fetch,
        verify=lambda name=None: broken if name == "nba" else frame,
    )
    monkeypatch.setattr(preflearn, "datasets", fake, raising=False)
    assert main(["data", "list"]) == 0
    assert "sushi" in capsys.readouterr().out
    assert main(["data", "fetch", "nba", "nbb", "sushi"]) == 1
    captured = capsys.readouterr()
    said = ["preflearn: error: nba: no network", "preflearn: error: there is no data set 'nbb'"]
    assert captured.err.splitlines() == said
    assert captured.out == "cache/sushi.txt\n"
    assert main(["data", "fetch", "sushi"]) == 0
    assert main(["data", "verify"]) == 0
    assert main(["data", "verify", "sushi", "nba"]) == 1


def test_help_and_imports_are_light():
    code = (
        "import sys, bookrunner.command; "
        "heavy = {'pandas', 'papermill', 'sphinx', 'numpy', 'yaml'} & set(sys.modules); "
        "assert not heavy, heavy; bookrunner.command.main(['--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command in ("build", "sweep", "data", "claims"):
        assert command in done.stdout
