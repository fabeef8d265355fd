"""Each command line in the README, in CONTRIBUTING and on the book's pages works in a fresh clone.

A command that would run for minutes is followed to where its work begins: then the command exists, with
these options, and so do the chapters, parameters and data sets that it names.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from papermill.cli import papermill

from bookrunner import build, report, tasks
from bookrunner.command import main
from bookrunner.parameters import check_names, declared
from preflearn import datasets
from preflearn.datasets import registry

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
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


def command(line: str) -> tuple[str, ...]:
    """The words of a line as it is tried here: programs are only asked for their help."""
    words = [PLACEHOLDERS.get(word, word) for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
    if words[0].startswith("python") and words[1:3] != ["-m", "pytest"]:
        words = ["python", *words[1 : 3 if words[1] == "-m" else 2], "--help"]
    return tuple(words)


LINES = {line for path in TEXTS for line in command_lines(path.read_text("utf-8"))}
COMMANDS = sorted(set(map(command, LINES)))


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The committed files, without anything that was built or installed."""
    root = tmp_path_factory.mktemp("clone")
    listed = ["git", "ls-files", "-co", "--exclude-standard"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in done.stdout.splitlines():
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, root / name)
    return root


class ReachedError(Exception):
    """All arguments were found good, and the work would begin."""


def _reached(*_, **__):
    raise ReachedError


def _run(clone, *words):
    done = subprocess.run(words, cwd=clone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_works_in_a_fresh_clone(words, clone, monkeypatch, capsys):
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
                main(list(words[1:]))
        case ["preflearn", "report", file, *_]:
            (clone / file).write_text("first,second\n")
            with pytest.raises(ReachedError):
                main(list(words[1:]))
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
        case ["python", *program]:  # a script, or -m and a module
            assert _run(clone, sys.executable, *program)
        case ["pre-commit", "install"]:
            assert yaml.safe_load((clone / ".pre-commit-config.yaml").read_text())["repos"]
        case ["source", script]:
            assert script == ".venv/bin/activate", "what make installs into"
        case _:
            pytest.fail(f"no way is known to try {words}")


def test_readme_turns_ratings_into_a_ranking(tmp_path, monkeypatch, capsys):
    (block,) = re.findall(
        r"^```python\n(import pandas.*?ratings\.csv.*?)^```",
        (ROOT / "README.md").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    monkeypatch.chdir(tmp_path)
    rows = [f"{user},x,1\n{user},y,5\n{user},z,5" for user in "abcd"]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *rows, "e,x,4", "e,z,2"]))
    exec(block, {})
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:]] == ["y", "z", "x"]


def test_command_lines_are_found():
    text = "`make book` or `src/x.py`, `preflearn`:\n```bash\npreflearn claims  # all\nls\n```\n`A=1 make x`"
    assert command_lines(text) == ["preflearn claims", "ls", "make book", "A=1 make x"]
    assert {"make book", "make test", "preflearn claims"} <= LINES


@pytest.mark.parametrize(
    "line",
    [
        "make bok",
        "preflearn build 77",
        "preflearn sweep 02 -p sed 1",
        "pip install '.[boook]'",
        "python x.py",
    ],
)
def test_a_wrong_command_fails(line, clone, monkeypatch, capsys):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_a_command_works_in_a_fresh_clone(command(line), clone, monkeypatch, capsys)
