"""A small project that the tests of the runner and the book write into a temporary folder."""

import json
from pathlib import Path

import nbformat

from bookrunner.project import Project

PARAMETERS = 'profile = "quick"\nseed = 0\nn = 10'

LEDGER = """\
- {id: P1-01, where: "section 2, eq. 2", statement: "A loss $L$.", chapter: 01_first, verdict: holds}
- id: P1-02
  where: section 2, eq. 3
  statement: A formula.
  chapter: 01_first
  verdict: typo
  note: The sign of $b$.
- {id: P1-03, where: "section 2, eq. 4", statement: A., chapter: 01_first, verdict: definition, note: So.}
- {id: P2-01, where: section 4, statement: Later., chapter: 09_later, verdict: holds}
"""

FIRST = """\
from bookrunner.ledger import check
from bookrunner.records import record

check("P1-01", True, "On 5 cases with $x_1 < 2$, *exactly*.", seed / 8)
check("P1-02", {"as printed": False, "with the sign turned": True}, "At 3 points.")
if profile == "full":
    n = 2 * n
record("fit", {"loss": seed / 10, "n": n})
print("seed", seed)"""


def write_notebook(path: Path, *sources: str, data: tuple[str, ...] = ()) -> Path:
    """A notebook of a title, a `parameters` cell and the given code cells."""
    new = nbformat.v4
    parameters = new.new_code_cell(PARAMETERS, id="parameters", metadata={"tags": ["parameters"]})
    cells = [new.new_markdown_cell(f"# Title of {path.stem}", id="title"), parameters]
    cells += [new.new_code_cell(source, id=f"code-{k}") for k, source in enumerate(sources)]
    notebook = new.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["preflearn"] = {"data": list(data)}
    nbformat.write(notebook, path)
    return path


def write_project(root: Path, ledger: str = LEDGER, **chapters: str) -> Project:
    """A project with chapters given as ``first="code"``, numbered in order."""
    for folder in ("notebooks", "book", "data/published", "data/recorded"):
        (root / folder).mkdir(parents=True)
    (root / "book" / "claims.yml").write_text(ledger)
    for number, (name, source) in enumerate(chapters.items(), start=1):
        write_notebook(root / "notebooks" / f"{number:02d}_{name}.ipynb", source)
    return Project(root)


def edit_notebook(path: Path, change) -> None:
    """Apply a function to the parsed notebook."""
    notebook = json.loads(path.read_text())
    change(notebook)
    path.write_text(json.dumps(notebook))
