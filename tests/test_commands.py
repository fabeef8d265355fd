"""Each command line in the README, in CONTRIBUTING and on the book's pages works in a
fresh clone.

The blocks of the page "Run the notebooks", and those in the README, run without
changes. For any other command that would run for minutes, the test stops where its work
begins. The command, its options, and the chapters, parameters, and data sets that it
names then exist.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml
from optional import optional_import
from papermill.cli import papermill

from preflearn import datasets
from preflearn.datasets import registry
from preflearn_book.runner import build, execution, tasks
from preflearn_book.runner.command import main
from preflearn_book.runner.parameters import check_names, declared

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "book").glob("*.md")),
]
PAGE = (ROOT / "book" / "run_the_notebooks.md").read_text("utf-8")
STARTS = (
    "make",
    "preflearn",
    "papermill",
    "jupyter",
    "jupyter-book",
    "python3?",
    "pip",
    "pre-commit",
)
STARTS += ("source", "bash", "git", "conda")
PLACEHOLDERS = {
    "NN": "02",
    "OLD": "_build",
    "NEW": "_build",
    "ADDRESS": "tcp://127.0.0.1:1",
}


def shell_blocks(text: str) -> list[str]:
    """Return the blocks of shell commands."""
    return re.findall(
        r"^```(?:bash|console|sh)\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )


# Blocks that run without changes: all blocks of the page except the installation, which
# would take minutes.
RUN_BLOCKS = [block for block in shell_blocks(PAGE) if "pip install" not in block]
# The block with one run of a chapter. The other blocks run nightly.
ONE_RUN = "papermill notebooks/04_svmcompare.ipynb runs/04_costly.ipynb"


def command_lines(text: str) -> list[str]:
    """Return shell lines in blocks, with continued lines joined, and commands in
    backquotes. `RUN_BLOCKS` are excluded."""
    text = re.sub(r"\\\n *", "", text)
    blocks = [block for block in shell_blocks(text) if block not in RUN_BLOCKS]
    inline = re.findall(
        r"(?<!`)`([^`\n]+)`",
        re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL),
    )
    lines = [
        line.split("  #")[0].strip() for block in blocks for line in block.splitlines()
    ]
    begins = re.compile(rf"(\w+=\S* )*({'|'.join(STARTS)}) \S")
    return [line for line in lines if line] + [
        line for line in inline if begins.match(line)
    ]


def command(line: str) -> tuple[str, ...]:
    """Return the words of the command that the test runs for a line. Python programs
    run with --help only."""
    words = [
        PLACEHOLDERS.get(word, word)
        for word in shlex.split(line)
        if not re.match(r"[A-Z_]+=", word)
    ]
    if words[0].startswith("python") and words[1:3] not in (
        ["-m", "pytest"],
        ["-m", "venv"],
    ):
        words = ["python", *words[1 : 3 if words[1] == "-m" else 2], "--help"]
    return tuple(words)


LINES = {line for path in TEXTS for line in command_lines(path.read_text("utf-8"))}
COMMANDS = sorted(set(map(command, LINES)))


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Copy the committed files, without files that were built or installed."""
    root = tmp_path_factory.mktemp("clone")
    listed = ["git", "ls-files", "-co", "--exclude-standard"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in done.stdout.splitlines():
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, root / name)
    return root


class ReachedError(Exception):
    """All arguments are valid, and the work would begin."""


def _reached(*_, **__):
    raise ReachedError


def _run(clone, *words):
    done = subprocess.run(words, cwd=clone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _on_path():
    """Return the environment variables of a user who activated this environment."""
    return os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    }


def _jupyter_book(clone, *arguments):
    """Return the message of Jupyter Book in a clone without chapters, and the command
    in the message."""
    words = ["jupyter-book", "build", *arguments]
    done = subprocess.run(
        words, cwd=clone, env=_on_path(), capture_output=True, text=True
    )
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    return sentence, re.search("`(.*?)`", sentence)[1]


RACE_COLUMNS = shlex.split("-p event race -p player driver -p place place")


def _rows(options):
    """Return a file of 30 rows with the columns that the options of a report name.

    A report on races that names no columns finds them.
    """
    if "-p" not in options:
        options = [*options, *RACE_COLUMNS]
    columns = {
        "event": [f"race {k // 3}" for k in range(30)],
        "player": ["Ann", "Bob", "Cy"] * 10,
        "place": ["1", "2", "3"] * 10,
        "first": ["Ann", "Bob", "Cy"] * 10,
        "second": ["Bob", "Cy", "Ann"] * 10,
        "time": [f"2024-01-{day:02}" for day in range(1, 31)],
        "outcome": ["Ann", "Cy", "Cy"] * 10,
        "judge": ["Kim", "Lee"] * 15,
    }
    rows = [
        (title, *columns[parameter])
        for flag, parameter, title in zip(
            options, options[1:], options[2:], strict=False
        )
        if flag == "-p"
    ]
    return "".join(",".join(row) + "\n" for row in zip(*rows, strict=True))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_works_in_a_fresh_clone(words, clone, monkeypatch, capsys):
    monkeypatch.chdir(clone)
    monkeypatch.setattr(build, "run_tasks", _reached)
    monkeypatch.setattr(tasks, "run_tasks", _reached)
    monkeypatch.setattr(execution, "execute", _reached)
    monkeypatch.setattr(
        datasets, "fetch", lambda name, progress: registry.files_of(name)
    )
    match words:
        case ["make", *targets]:
            assert _run(clone, "make", "--dry-run", *targets)
        case ["preflearn", ("build" | "record" | "sweep"), *_]:
            with pytest.raises(ReachedError):
                main(list(words[1:]))
        case ["preflearn", "report", "--example"]:
            with pytest.raises(ReachedError):
                main(list(words[1:]))
            assert (clone / "games.csv").read_bytes() == (
                clone / "examples" / "games.csv"
            ).read_bytes()
            (clone / "games.csv").unlink()
        case ["preflearn", "report", file, *options] if file != "--help":
            (clone / file).write_text(_rows(options))
            with pytest.raises(ReachedError):
                main(list(words[1:]))
            (clone / file).unlink()
        case ["preflearn", *arguments]:
            assert main(arguments) == 0
            assert capsys.readouterr().out
        case ["papermill", *arguments]:
            asked = papermill.make_context("papermill", arguments).params
            notebook = json.loads(Path(asked["notebook_path"]).read_text())
            check_names([name for name, _ in asked["parameters"]], declared(notebook))
        case ["pip", "install", package] if not package.startswith("."):
            reading = clone / "src" / "preflearn_book" / "reading" / "formats.py"
            assert package in reading.read_text(), "no format needs this package"
        case ["pip", "install", *options]:
            (what,) = [option for option in options if option.startswith(".")]
            extras = re.fullmatch(r"\.(?:\[([\w,]+)\])?", what)
            assert set((extras[1] or "book").split(",")) <= set(EXTRAS)
            assert {*options} - {what} <= {"--editable", "-c", "constraints.txt"}
        case ["python" | "python3", "-m", "venv", folder]:
            assert folder == ".venv", "what make uses, too"
        case ["conda", "env", "create", "--file", file]:
            assert yaml.safe_load((clone / file).read_text())["dependencies"]
        case ["jupyter-book", "build", *arguments]:
            assert _jupyter_book(clone, *arguments)[1] == "make book"
        case ["python", "-m", "pytest", *paths]:
            assert all((clone / path).exists() for path in paths)
        case ["python", *program]:  # python with a script, or with -m and a module
            assert _run(clone, sys.executable, *program)
        case ["pre-commit", "install"]:
            assert yaml.safe_load((clone / ".pre-commit-config.yaml").read_text())[
                "repos"
            ]
        case ["source", script]:
            assert script == ".venv/bin/activate", "what make installs into"
        case _:
            pytest.fail(f"no way is known to try {words}")


def _blocks():
    """Yield the blocks that write notebooks. Blocks with several runs are for the
    nightly run only."""
    for block in RUN_BLOCKS:
        if "jupyter lab" not in block:
            yield pytest.param(
                block, marks=() if ONE_RUN in block else pytest.mark.nightly
            )


@pytest.mark.parametrize("block", list(_blocks()))
def test_a_block_of_the_page_runs_unchanged(block, clone):
    """The block writes notebooks with outputs and without errors."""
    optional_import("nbconvert")
    before = {path: path.stat().st_mtime_ns for path in clone.rglob("*.ipynb")}
    words = ["bash", "-euo", "pipefail", "-c", block]
    done = subprocess.run(
        words, cwd=clone, env=_on_path(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    written = [
        path
        for path in clone.rglob("*.ipynb")
        if path.stat().st_mtime_ns != before.get(path)
    ]
    assert written
    for path in written:
        assert path.parent.name in {"runs", "03_lemma"}
        outputs = [
            out
            for cell in json.loads(path.read_text("utf-8"))["cells"]
            for out in cell.get("outputs", [])
        ]
        assert outputs
        assert all(output["output_type"] != "error" for output in outputs)
    for name in re.findall(r"runs/\w+\.ipynb", block):
        assert (clone / name).is_file()
    if "--to html" in block:
        page = (clone / "runs" / "04_svmcompare.html").read_text("utf-8")
        assert "Can one model learn from preferences and ties at once?" in page
        assert "image/png;base64" in page
    if "sweep" in block:
        files = (clone / "_build" / "sweeps" / "03_lemma").glob("results-*.csv")
        (table,) = [path for path in files if path.suffixes == [".csv"]]
        assert len(table.read_text("utf-8").splitlines()) == 1 + 4


@pytest.mark.nightly
def test_python_of_the_page_runs_unchanged(clone, monkeypatch):
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(clone)
    Path("runs").mkdir(exist_ok=True)
    exec(block, {})
    assert Path("runs/04_wide.ipynb").is_file()


def _written_whole(paths):
    """Return the JSON files that are complete, as their last character shows."""
    return [path for path in paths if path.read_text().rstrip().endswith("}")]


def test_jupyterlab_opens_the_notebook_and_has_its_extension(clone, tmp_path):
    """The line of the page runs without changes, on a free port and without a
    browser."""
    optional_import("jupyterlab")
    (block,) = [block for block in RUN_BLOCKS if "jupyter lab" in block]
    settings = {
        "allow_root": True,
        "open_browser": False,
        "port": 0,
        "token": "",
        "ip": "127.0.0.1",
    }
    (tmp_path / "jupyter_server_config.json").write_text(
        json.dumps({"ServerApp": settings})
    )
    environment = _on_path() | {
        "JUPYTER_CONFIG_DIR": str(tmp_path),
        "JUPYTER_RUNTIME_DIR": str(tmp_path),
    }
    with (tmp_path / "log").open("w") as log:
        options = {
            "stdin": subprocess.DEVNULL,
            "stdout": log,
            "stderr": log,
            "start_new_session": True,
        }
        lab = subprocess.Popen(
            ["bash", "-c", f"exec {block}"], cwd=clone, env=environment, **options
        )
    try:
        until = time.monotonic() + 120
        # the file exists before its content, which ends with a brace
        while not (found := _written_whole(tmp_path.glob("jpserver-*.json"))):
            assert lab.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < until, (tmp_path / "log").read_text()
            time.sleep(0.1)
        url = json.loads(found[0].read_text())["url"]
        # JupyterLab shows the folder that contains the notebook
        name = Path(block.split()[-1]).name
        with urlopen(f"{url}api/contents/{name}", timeout=60) as answer:
            assert json.load(answer)["type"] == "notebook"
        with urlopen(f"{url}lab/tree/{name}", timeout=60) as answer:
            assert "jupyterlab-myst" in answer.read().decode()
    finally:
        os.killpg(lab.pid, signal.SIGKILL)
        lab.wait()


def test_readme_runs_blocks_of_the_page_only():
    """This ensures that each line in the README on running notebooks is run without
    changes, too."""
    readme = (ROOT / "README.md").read_text("utf-8")
    section = re.search(
        r"^## Run the notebooks\n(.*?)^## ", readme, re.MULTILINE | re.DOTALL
    )[1]
    blocks = shell_blocks(section)
    assert len(blocks) == 4
    assert set(blocks) <= set(RUN_BLOCKS)


def test_jupyter_book_says_in_one_sentence_what_to_run(clone):
    named = {
        what: _jupyter_book(clone, *what.split())
        for what in ("book --config _config.yml", ".")
    }
    for sentence, command_named in named.values():
        assert command_named == "make book"
        assert sentence.endswith(".")
    assert "chapters/" in named["book --config _config.yml"][0]
    assert "`jupyter-book build book --config _config.yml`" in named["."][0]


def test_jupyter_book_builds_once_each_chapter_is_there(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "_extensions")
    from chapters_first import what_is_missing

    shutil.copyfile(ROOT / "book" / "_toc.yml", tmp_path / "_toc.yml")
    pages = re.findall(r"file: (chapters/\S+)", (tmp_path / "_toc.yml").read_text())
    (tmp_path / "chapters").mkdir()
    for page in pages:
        assert "`make book`" in what_is_missing(tmp_path)
        (tmp_path / f"{page}.{'md' if 'errata' in page else 'ipynb'}").touch()
    assert what_is_missing(tmp_path) == ""


def test_readme_learns_from_the_example(tmp_path, monkeypatch):
    readme = (ROOT / "README.md").read_text("utf-8")
    (block,) = re.findall(
        r"^```python\n([^`]*games\.csv[^`]*)^```", readme, re.MULTILINE
    )
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(ROOT / "examples" / "games.csv", "games.csv")
    (advantage,) = re.findall(
        r"^```python\n([^`]*at_home[^`]*)^```", readme, re.MULTILINE
    )
    names = {}
    for code in (block, advantage):
        *_, last = code.splitlines()
        exec(code.replace(last, f"forecast = {last}"), names)
        assert names["forecast"].shape == (4, 3), "the last round: loss, tie, win"
        assert len(names["y"]) == len(names["played"])
    assert names["mean"] > 2 * names["std"], "the example league has a home advantage"


def test_readme_turns_ratings_into_a_ranking(tmp_path, monkeypatch, capsys):
    (block,) = re.findall(
        r"^```python\n(import pandas[^`]*?ratings\.csv.*?)^```",
        (ROOT / "README.md").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    monkeypatch.chdir(tmp_path)
    rows = [f"{user},x,1\n{user},y,5\n{user},z,5" for user in "abcd"]
    (tmp_path / "ratings.csv").write_text(
        "\n".join(["user,item,rating", *rows, "e,x,4", "e,z,2"])
    )
    exec(block, {})
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:]] == [
        "y",
        "z",
        "x",
    ]


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
        "pip install '.[book]' -c constraint.txt",
        "jupyter lab",
        "python x.py",
    ],
)
def test_a_wrong_command_fails(line, clone, monkeypatch, capsys):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_a_command_works_in_a_fresh_clone(command(line), clone, monkeypatch, capsys)
