"""Reports on a user's own file: an executed template of the book as one HTML file."""

from __future__ import annotations

import sys
from base64 import b64encode
from pathlib import Path

from markdown_it import MarkdownIt

from preflearn_book.runner.execution import Kernels, execute
from preflearn_book.runner.files import check_writable, write_atomically
from preflearn_book.runner.project import Chapter
from preflearn_book.runner.records import filled, project_file

EXAMPLE_COLUMNS = {
    "first": "home",
    "second": "away",
    "time": "date",
    "outcome": "result",
}
"""The columns of the example, as parameters of the template for matches."""


def write_example(folder: Path) -> Path:
    """Write the example, a simulated league, as ``games.csv``, and print how to use it.

    Raises
    ------
    FileExistsError
        If the folder has another file of this name, which stays as it is.
    OSError
        If the file can't be written.
    """
    path = folder / "games.csv"
    content = project_file("examples/games.csv").read_bytes()
    if path.exists() and path.read_bytes() != content:
        raise FileExistsError(
            f"{path} exists and is not the example; run the command in another folder, or report on this "
            f"file: preflearn report {path}"
        )
    write_atomically(path, content)
    columns = " ".join(
        f"-p {name} {column}" for name, column in EXAMPLE_COLUMNS.items()
    )
    print(f"the example: {path}, a simulated league; the report on it is that of")
    print(f"  preflearn report {path} {columns}")
    return path


def write_report(
    data: Path, parameters: dict[str, str], judgements: bool, path: Path
) -> int:
    """Run a template on a file and write its outputs, without code, as one HTML file.

    Parameters
    ----------
    data : Path
        The user's file.
    parameters : dict of str to str
        Parameters of the template, such as the names of columns.
    judgements : bool
        Whether the file holds judgements; this is also assumed if the file has a column
        "judge" or a parameter names one.
    path : Path
        File of the report.

    Returns
    -------
    int
        0, or 1 if a cell failed for another reason than the content of the file; then
        a traceback is printed.

    Raises
    ------
    ValueError
        If the template has no such parameter, or reports an error in the file or a
        column.
    OSError
        If the file can't be read, or the report can't be written.
    """
    with data.open(encoding="utf-8-sig", errors="replace") as file:
        header = file.readline().replace(";", ",").replace("\t", ",").strip().split(",")
    kind = "matches"
    if judgements or "judge" in header or {"judge", "features"} & parameters.keys():
        kind = "judgements"
    template = Chapter(project_file(f"notebooks/use_{kind}.ipynb"))
    given = template.checked_parameters({**parameters, "data": str(data.resolve())})
    check_writable([path.absolute().parent])

    def begun(cell: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{template.name}: {cell} ", end="", file=sys.stderr, flush=True)

    kernels = Kernels()
    root = str(template.path.parents[1])
    try:
        result = execute(
            template.notebook,
            given,
            template.parameters,
            root,
            kernels=kernels,
            begun=begun,
        )
    finally:
        kernels.stop()
    error, _, message = result.summary.rpartition(" in cell ")[0].partition(": ")
    if error == "ValueError":  # of the checks of the template and the package
        raise ValueError(message)
    if result.summary or result.notebook is None:
        print(
            result.report,
            f"preflearn: error: {result.summary}",
            sep="\n",
            file=sys.stderr,
        )
        return 1
    # HTML in names from a file is shown as text.
    markdown = MarkdownIt("js-default").render
    page = filled(
        "report.html",
        **result.notebook,
        title=data.name,
        markdown=markdown,
        b64encode=b64encode,
    )
    report = "the report"
    if path.exists():
        report += ", replaced"
    print(f"{report}: {write_atomically(path, page)} ({result.seconds:.0f} s)")
    return 0
