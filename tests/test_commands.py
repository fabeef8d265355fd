"""Each command line that the README, CONTRIBUTING and the book's front pages give is tried on a fresh clone.

What it costs minutes to run is followed to where the work would begin: then it is a command that exists,
with options that it has, of chapters, parameters and data sets that there are.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from papermill.cli import papermill
from test_repository import EXTRAS, ROOT, tracked_files

from bookrunner import build, report, tasks
from bookrunner.command import main
from bookrunner.parameters import check_names, declared
from preflearn import datasets
from preflearn.datasets import registry

TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "book").glob("*.md"))]
STARTS = ("make", "preflearn", "papermill", "python", "pip", "pre-commit", "source", "bash", "git")
PLACEHOLDERS = {"NN": "02", "OLD": "_build", "NEW": "_build", "ADDRESS": "tcp://127.0.0.1:1"}


def command_lines(text: str) -> list[str]:
    """Lines of shell in blocks, continued ones whole, and commands that stand in backquotes."""
    text = re.sub(r"\\\n *", "", text)
    blocks = re.findall(r"^```(?:bash|console|sh)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(
        r"(?<!`)`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    )
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    begins = re.compile(rf"(\w+=\S* )*({'|'.join(STARTS)}) \S")
    return [line for line in lines if line] + [line for line in inline if begins.match(line)]


LINES = sorted({line for path in TEXTS for line in command_lines(path.read_text("utf-8"))})


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The files that are committed, and nothing that was built or installed."""
    root = tmp_path_factory.mktemp("clone")
    for path in tracked_files():
        place = root / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    return root


class ReachedError(Exception):
    """All was found good, and the chapters would be executed."""


def _reached(*_, **__):
    raise ReachedError


def _run(clone, *command):
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_one_on_a_fresh_clone(line, clone, monkeypatch, capsys):
    words = [PLACEHOLDERS.get(word, word) for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
    monkeypatch.chdir(clone)
    monkeypatch.setattr(build, "run_tasks", _reached)
    monkeypatch.setattr(tasks, "run_tasks", _reached)
    monkeypatch.setattr(report, "execute", _reached)
    monkeypatch.setattr(datasets, "fetch", lambda name, progress: registry.files_of(name))
    match words:
        case ["make", *targets]:
            assert _run(clone, "make", "--dry-run", *targets)
        case ["preflearn", ("build" | "record" | "sweep"), *_]:
            with pytest.raises(ReachedError):
                main(words[1:])
        case ["preflearn", "report", file, *_]:
            (clone / file).write_text("first,second\n")
            with pytest.raises(ReachedError):
                main(words[1:])
        case ["preflearn", *arguments]:
            assert main(arguments) == 0
            assert capsys.readouterr().out
        case ["papermill", *arguments]:
            asked = papermill.make_context("papermill", arguments).params
            notebook = json.loads(Path(asked["notebook_path"]).read_text())
            check_names([name for name, _ in asked["parameters"]], declared(notebook))
        case ["pip", "install", what]:
            extras = re.fullmatch(r"\.(?:\[([\w,]+)\])?", what)
            assert set((extras[1] or "book").split(",")) <= set(EXTRAS)
        case ["python", "-m", "pytest", *paths]:
            assert all((clone / path).exists() for path in paths)
        case ["python" | "python3", *program]:  # a script, or -m and a module
            assert _run(clone, sys.executable, *program[: 1 + (program[0] == "-m")], "--help")
        case ["pre-commit", "install"]:
            assert yaml.safe_load((clone / ".pre-commit-config.yaml").read_text())["repos"]
        case ["source", script]:
            assert script == ".venv/bin/activate", "what make installs into"
        case _:
            pytest.fail(f"no way is known to try {line!r}")


def test_ratings_become_a_ranking_as_the_readme_says(tmp_path, monkeypatch, capsys):
    (block,) = re.findall(
        r"^```python\n(import pandas.*?ratings\.csv.*?)^```",
        (ROOT / "README.md").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert len([line for line in block.splitlines() if line]) <= 10
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{user},{item},{rating}" for user in "abcd" for item, rating in zip("xyz", (1, 5, 5), strict=True)
    ]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *rows, "e,x,4", "e,z,2"]))
    exec(block, {})
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:]] == ["y", "z", "x"]


def test_command_lines_are_found():
    text = "`make book` or `src/x.py`, `preflearn`:\n```bash\npreflearn claims  # all\nls\n```\n`A=1 make x`"
    assert command_lines(text) == ["preflearn claims", "ls", "make book", "A=1 make x"]
    assert {"make book", "make test", "preflearn claims", "preflearn build NN"} <= set(LINES)


@pytest.mark.parametrize(
    "line",
    [
        "make bok",
        "preflearn build 77",
        "preflearn sweep 02 -p sed 1",
        "pip install '.[boook]'",
        "ls",
        "python tests/none.py",
    ],
)
def test_a_wrong_line_is_seen(line, clone, monkeypatch, capsys):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_a_command_line_is_one_on_a_fresh_clone(line, clone, monkeypatch, capsys)
