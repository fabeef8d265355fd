import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from toy_project import FIRST, run_here, write_project

import preflearn
from preflearn_book.runner import tasks
from preflearn_book.runner.command import main
from preflearn_book.runner.parameters import declared


@pytest.fixture
def project(tmp_path, monkeypatch):
    project = write_project(tmp_path, first=FIRST)
    monkeypatch.chdir(project.notebooks)
    return project


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("buidl", "'buidl'"),
        ("build 7", "'7'"),
        ("build -p sed 1 --no-render", "01_first.ipynb has no parameter 'sed'"),
        ("build -p seed 1 -p seed 2", "'seed'"),
        ("build -p seed 1:20", "01_first.ipynb: seed is '1:20'"),
        ("build -p profile ful", "01_first.ipynb: profile is 'ful'"),
        ("build --profile ful", "'--profile'"),
        ("build --jobs 0 --no-render", "'--jobs'"),
        ("build --cell-time 0 --no-render", "'--cell-time'"),
        ("sweep first", "parameter"),
        ("sweep first -p seed 3:1", "seed is '3:1'"),
        ("sweep first -p n 1 --jobs 1 --scheduler x", "--jobs"),
    ],
)
def test_a_wrong_command_is_one_clean_line(project, capsys, arguments, named):
    assert main(arguments.split()) == 2
    message = capsys.readouterr().err
    assert message.startswith("preflearn: error: ")
    assert named in message
    assert message.count("\n") == 1
    assert not project.build.exists()


def test_an_invalid_claims_list_stops_a_build_before_it_runs(project, capsys):
    (project.book / "claims.yml").write_text("- {id: x}")
    assert main(["build"]) == 2
    assert "claims.yml, entry 1 (x)" in capsys.readouterr().err
    assert not project.build.exists()


@pytest.mark.parametrize("blocked", ["_build", "book/chapters"])
def test_a_place_that_cannot_be_written_is_one_line_before_anything_runs(
    project, capsys, blocked
):
    (project.root / blocked).write_text("a file in its place")
    assert main(["build", "--no-render"]) == 1
    message = capsys.readouterr().err
    assert str(project.root / blocked) in message
    assert message.count("\n") == 1


def test_build_then_claims_then_contradiction(project, capsys, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    for _ in range(2):
        assert main(["build", "1", "-p", "seed", "4", "--no-render"]) == 0
    assert "0 executed, 1 unchanged" in capsys.readouterr().out
    assert main(["claims"]) == 0
    assert "holds if or typo" in capsys.readouterr().out
    path = project.book / "claims.yml"
    path.write_text(path.read_text().replace("verdict: typo", "verdict: holds"))
    assert main(["claims"]) == 1
    assert "! P1-02" in capsys.readouterr().out


def test_data_commands_report_each_data_set(monkeypatch, capsys):
    def fetch(name, progress):
        if name == "nba":
            raise OSError("nba: no network")
        if name == "nbb":
            raise ValueError("no data set 'nbb'")
        return [f"cache/{name}.txt"]

    frame = pd.DataFrame(
        {"dataset": ["sushi"], "file": ["a"], "status": ["ok"], "detail": [""]}
    )
    broken = frame.assign(status="mismatch")
    fake = SimpleNamespace(
        DatasetUnavailable=OSError,
        listing=lambda: frame,
        fetch=fetch,
        verify=lambda name=None: broken if name == "nba" else frame,
    )
    monkeypatch.setattr(preflearn, "datasets", fake, raising=False)
    assert main(["data", "list"]) == 0
    assert "sushi" in capsys.readouterr().out
    assert main(["data", "fetch", "nba", "nbb", "sushi"]) == 1
    captured = capsys.readouterr()
    errors = captured.err.splitlines()
    assert ["nba" in errors[0], "'nbb'" in errors[1], len(errors)] == [True, True, 2]
    assert captured.out == "cache/sushi.txt\n"
    assert main(["data", "verify"]) == 0
    assert main(["data", "verify", "sushi", "nba"]) == 1


def test_help_of_report_lists_the_parameters_of_all_templates(capsys):
    assert main(["report", "--help"]) == 0
    lines = re.findall(r"^    (\w+)  ", capsys.readouterr().out, re.MULTILINE)
    notebooks = Path(__file__).parents[2] / "notebooks"
    found = set()
    for name in ("use_matches", "use_judgements", "use_races"):
        found |= set(declared(json.loads((notebooks / f"{name}.ipynb").read_text())))
    assert set(lines) == found - {"data"}


def test_help_of_sweep_names_chapters_and_no_bounds(capsys):
    assert main(["sweep", "--help"]) == 0
    text = capsys.readouterr().out
    assert "03_lemma" in text
    assert "<=" not in text


@pytest.mark.parametrize("option", ["--judgements", "--judgments"])
def test_both_spellings_of_judgments_are_accepted(option, capsys):
    assert main(["report", option]) == 2
    assert "no file is given" in capsys.readouterr().err


def test_help_is_shown_without_slow_imports():
    code = (
        "import sys, preflearn_book.runner.command; "
        "slow = {'pandas', 'papermill', 'sphinx', 'numpy', 'yaml'} & set(sys.modules); "
        "assert not slow, slow; preflearn_book.runner.command.main(['--help'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "build" in done.stdout
