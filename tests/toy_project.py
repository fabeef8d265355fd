"""A small project that tests of the runner and the book write into a temporary folder."""

import io
import json
import os
import shutil
import threading
import time
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import nbformat
from IPython.display import DisplayObject
from toy_register import sha256

from preflearn.datasets import registry
from preflearn_book.runner import dependencies, records
from preflearn_book.runner.execution import Result
from preflearn_book.runner.project import Project

SOURCE = Path(__file__).parents[1] / "src"

PARAMETERS = 'profile = "quick"\nseed = 0  # of all draws\nn = 10'

CLAIMS = """\
- id: P1-01
  where: section 2, eq. 2
  statement: A loss $L$.
  chapter: 01_first
  kind: formula
  verdict: holds
- id: P1-02
  where: section 2, eq. 3
  statement: A formula.
  chapter: 01_first
  kind: formula
  verdict: typo
  consequence: misprint
  printed: $+b$
  read: $-b$
  affects: readers
  note: The sign of $b$.
- id: P1-03
  where: section 2, eq. 4
  statement: A.
  chapter: 01_first
  kind: formula
  verdict: open
  note: So.
- {id: P2-01, where: section 4, statement: Later., chapter: 09_later, kind: formula, verdict: holds}
"""

ONE_CLAIM = "- {id: P1-01, where: eq. 2, statement: x, chapter: 01_first, kind: formula, verdict: holds}\n"

FIRST = """\
from preflearn_book.runner.claims import check
from preflearn_book.runner.records import record

check("P1-01", True, "On 5 cases with $x_1 < 2$, *exactly*.", seed / 8)
check("P1-02", {"as printed": False, "with the sign turned": True}, "At 3 points.")
if profile == "full":
    n = 2 * n
record("fit", {"loss": seed / 10, "n": n})
print("seed", seed)"""


def write_notebook(path: Path, *sources: str) -> Path:
    """Write a notebook with a title, a `parameters` cell, and the given code cells."""
    new = nbformat.v4
    parameters = new.new_code_cell(
        PARAMETERS, id="parameters", metadata={"tags": ["parameters"]}
    )
    cells = [new.new_markdown_cell(f"# Title of {path.stem}", id="title"), parameters]
    cells += [
        new.new_code_cell(source, id=f"code-{k}") for k, source in enumerate(sources)
    ]
    notebook = new.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(notebook, path)
    return path


def write_project(root: Path, claims: str = CLAIMS, **chapters: str) -> Project:
    """Write a project with chapters given as ``first="code"``, numbered in order."""
    for folder in ("notebooks", "book", "data/published", "data/recorded"):
        (root / folder).mkdir(parents=True)
    (root / "book" / "claims.yml").write_text(claims)
    for number, (name, source) in enumerate(chapters.items(), start=1):
        write_notebook(root / "notebooks" / f"{number:02d}_{name}.ipynb", source)
    return Project(root)


def edit_notebook(path: Path, change) -> None:
    """Apply a function to the parsed notebook."""
    notebook = json.loads(path.read_text())
    change(notebook)
    path.write_text(json.dumps(notebook))


@contextmanager
def changed(path: Path, change):
    """Change a file temporarily, by a function of its text, which is None for a missing
    file."""
    before = path.read_text() if path.exists() else None
    after = change(before)
    assert after != before
    path.write_text(after)
    try:
        yield
    finally:
        path.unlink() if before is None else path.write_text(before)


def write_checkout(root: Path, chapter: str, claims: str) -> Project:
    """Write a project of one chapter, 01_first, into a copy of the packages with a
    register of one file."""
    shutil.copytree(SOURCE, root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    # Without the loaders, whose imports take seconds in every kernel.
    init = root / "src/preflearn/datasets/__init__.py"
    init.write_text("from preflearn.datasets.storage import *\n")
    project = write_project(root, claims, first=chapter)
    (root / "data/published/P1_x.csv").write_text("a\n1\n")
    for folder, content in ((root.parent, b"right"), (project.notebooks, b"wrong")):
        (folder / "mirror" / "toy").mkdir(parents=True)
        (folder / "mirror" / "toy" / "a.txt").write_bytes(content)
    return project


def live_in(project: Project, monkeypatch) -> None:
    """Make the copy the source of imports in kernels, and the folder that this process
    reads when it computes keys.

    PREFLEARN_DATA is relative to the folder from which the commands are called.
    """
    monkeypatch.chdir(project.root.parent)
    monkeypatch.setattr(
        dependencies,
        "__file__",
        str(project.root / "src/preflearn_book/runner/dependencies.py"),
    )
    monkeypatch.setattr(
        registry, "package_file", lambda name: project.root / "data" / name
    )
    # A process reads the register once; here each command reads it again.
    monkeypatch.setattr(
        registry, "registered_files", registry.registered_files.__wrapped__
    )
    variables = {"PYTHONPATH": "src", "XDG_CACHE_HOME": "cache", "PREFLEARN_ROOT": ""}
    for name, folder in variables.items():
        monkeypatch.setenv(name, str(project.root / folder))
    monkeypatch.setenv("PREFLEARN_DATA", "mirror")
    register(project, b"right", "http://127.0.0.1:9/none")


def register(project: Project, content: bytes, url: str) -> None:
    """Write the only line of the register, for the file toy/a.txt."""
    text = f"toy,a.txt,{url},{sha256(content)},{len(content)},free,none\n"
    header = "dataset,file,urls,sha256,bytes,licence,citation\n"
    (project.root / "data/registry.csv").write_text(header + text)


_ONE = threading.Lock()


def run_here(notebook, parameters, asked, root, *_, **__):
    """Run cells in this process, one chapter after the other, as a replacement of
    `execute`.

    The chapter depends on its notebook, on versions, and on the data that it reads, but
    not on modules.
    """
    found = json.loads(json.dumps(notebook))
    names = {}
    error = ""
    displayed = []
    shell = SimpleNamespace(user_ns=names)
    with (
        _ONE,
        mock.patch.dict(os.environ, PREFLEARN_ROOT=root),
        mock.patch.dict(records._READ, clear=True),
        mock.patch(
            "preflearn_book.runner.parameters.running_shell", return_value=shell
        ),
        mock.patch(
            "IPython.display.display",
            lambda value, **_: displayed.append(_output(value)),
        ),
    ):
        for number, cell in enumerate(found["cells"], start=1):
            if cell["cell_type"] != "code" or error:
                continue
            displayed.clear()
            with redirect_stdout(io.StringIO()) as out:
                try:
                    exec(cell["source"], names)
                except Exception as raised:
                    error = f"{type(raised).__name__}: {raised} in cell {number}"
            printed = {
                "output_type": "stream",
                "name": "stdout",
                "text": out.getvalue(),
            }
            cell["outputs"] = [*displayed, printed] if out.getvalue() else [*displayed]
            if "parameters" in cell["metadata"].get("tags", []):
                names.update(parameters)
        about = {
            "versions": records.main_versions(),
            "data": [],
            "modules": [],
            "read": dict(records._READ),
        }
    about["parameters"] = {name: names[name] for name in asked}
    last = nbformat.v4.new_code_cell(metadata={"tags": ["preflearn-provenance"]})
    found["cells"].append(
        dict(last, outputs=[_output({records.PROVENANCE_MIME: about})])
    )
    return Result(found, error, seconds=0.1)


def wait_until(condition, ended=lambda: False):
    """Wait for a condition. Fail if the work that leads to it has ended, or after three
    minutes."""
    deadline = time.monotonic() + 180
    while not condition():
        assert not ended(), "it ended before"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _output(value):
    """Return a bundle of MIME types, or a display object of IPython, as an output."""
    bundle = value
    if isinstance(value, DisplayObject):
        bundle = {f"text/{type(value).__name__.lower()}": value.data}
    return {"output_type": "display_data", "metadata": {}, "data": bundle}
