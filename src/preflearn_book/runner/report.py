"""Reports on a user's own file: an executed template as one HTML file."""

from __future__ import annotations

import re
import sys
import tempfile
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from typing import Any

from preflearn_book.reading.comparisons import Columns, guess_kind, load
from preflearn_book.reading.formats import read_file
from preflearn_book.reading.races import RaceFile
from preflearn_book.runner.files import check_writable, write_atomically
from preflearn_book.runner.project import Chapter
from preflearn_book.runner.records import filled, project_file

_KINDS = {"matches": "matches", "judgements": "judgments", "races": "races"}
EXAMPLE_COLUMNS = {
    "first": "home",
    "second": "away",
    "time": "date",
    "outcome": "result",
}
"""Column names of the example, as parameters of the template for matches."""


def write_example(folder: Path) -> Path:
    """Write the example file ``games.csv``, and print the command that reports on it.

    Raises
    ------
    FileExistsError
        If the folder already contains another file with this name. It is not changed.
    OSError
        If the file cannot be written.
    """
    path = folder / "games.csv"
    content = project_file("examples/games.csv").read_bytes()
    if path.exists() and path.read_bytes() != content:
        raise FileExistsError(
            f"{path} exists and is not the example file; run the command in another folder, or write a "
            f"report on this file: preflearn report {path}"
        )
    write_atomically(path, content)
    columns = " ".join(
        f"-p {name} {column}" for name, column in EXAMPLE_COLUMNS.items()
    )
    print(f"wrote the example file {path}; to write its report again, run:")
    print(f"  preflearn report {path} {columns}")
    return path


def write_report(
    data: Path, parameters: dict[str, str], kind: str, path: Path | None
) -> int:
    """Run a template on a file, and write its output without code as one HTML file.

    The data file and the output path are checked before a kernel starts.

    Parameters
    ----------
    data : Path
        The user's file; a pipe, such as /dev/stdin or "-", is read once.
    parameters : dict of str to str
        Parameters of the template, such as column names.
    kind : {"", "matches", "judgements", "races"}
        Kind of the rows; "" decides by the columns and the parameters.
    path : Path or None
        Output file; None means NAME_report.html in the current folder.

    Returns
    -------
    int
        0, or 1 after an unexpected error in a cell, whose traceback is printed.

    Raises
    ------
    ValueError
        If a parameter is unknown, the file or a column has an error, or the report
        would overwrite the data file.
    OSError
        If the file cannot be read, or the report cannot be written.
    """
    path = path or Path(f"{_stem(data)}_report.html")
    _check_output(path, data)
    with tempfile.TemporaryDirectory() as folder:
        if not data.is_file():
            data = _copy_of_pipe(data, Path(folder))
        return _report_on(data, parameters, kind, path)


def _stem(data: Path) -> str:
    """Name of a file without its extensions: "games" for games.csv.gz."""
    if str(data) == "-":
        return "standard_input"
    return Path(data.name.removesuffix(".gz")).stem


def _check_output(path: Path, data: Path) -> None:
    """Raise if the report cannot be written, or would overwrite the data file."""
    if path.exists():
        if data.exists() and path.samefile(data):
            raise ValueError(
                f"--output {str(path)!r} is the data file itself; choose another name, so that the report "
                f"does not overwrite it"
            )
        if not path.is_file():
            raise ValueError(
                f"--output {str(path)!r} is not a file; pass the name of a file, such as report.html"
            )
    check_writable([path.absolute().parent])


def _copy_of_pipe(data: Path, folder: Path) -> Path:
    """Copy a pipe, which can be read only once, to a file."""
    if str(data) == "-":
        content = sys.stdin.buffer.read()
    else:
        content = data.read_bytes()
    copy = folder / f"{_stem(data)}.csv"
    copy.write_bytes(content)
    return copy


def _report_on(data: Path, parameters: dict[str, str], kind: str, path: Path) -> int:
    table = read_file(data)
    kind = kind or guess_kind(table, parameters)
    template = Chapter(project_file(f"notebooks/use_{kind}.ipynb"))
    given = template.checked_parameters(
        {**parameters, "data": str(data.resolve())}, f"the report on {_KINDS[kind]}"
    )
    columns = Columns.of(template.parameters | given)
    loaded = load(table, kind, columns)
    if isinstance(loaded, RaceFile):
        print(loaded.message(columns.retired))
    return _run_template(template, given, data.name, path)


def _run_template(
    template: Chapter, given: dict[str, Any], title: str, path: Path
) -> int:
    # Imported late: an error in the file appears before these are loaded.
    from markdown_it import MarkdownIt

    from preflearn_book.runner import execution

    def begun(cell: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{template.name}: {cell} ", end="", file=sys.stderr, flush=True)

    kernels = execution.Kernels()
    root = str(template.path.parents[1])
    # In its own thread, because Ctrl-C or SIGTERM inside the event loop of papermill
    # would leave the kernel's connection file, and wait for a busy kernel.
    with ThreadPoolExecutor(1) as executor:
        try:
            result = executor.submit(
                execution.execute,
                template.notebook,
                given,
                template.parameters,
                root,
                kernels=kernels,
                begun=begun,
            ).result()
        finally:
            kernels.stop()
            if sys.stderr.isatty():
                print("\r\033[K", end="", file=sys.stderr, flush=True)
    error, _, message = result.summary.rpartition(" in cell ")[0].partition(": ")
    if error == "ValueError":  # from checks of the template and the package
        raise ValueError(message)
    if result.summary or result.notebook is None:
        print(
            result.report,
            f"preflearn: error: {result.summary}",
            sep="\n",
            file=sys.stderr,
        )
        return 1
    # This preset shows HTML in names of the file as text.
    renderer = MarkdownIt("js-default")

    def markdown(text: str) -> str:
        """HTML in which a line never ends between a number and its percent sign."""
        return re.sub(r"(?<=\d) %(?!\w)", "\N{NO-BREAK SPACE}%", renderer.render(text))

    page = filled(
        "report.html",
        cells=_without_empty_sections(result.notebook["cells"]),
        title=title,
        markdown=markdown,
        b64encode=b64encode,
    )
    verb = "replaced" if path.exists() else "wrote"
    print(f"{verb} the report {write_atomically(path, page)} ({result.seconds:.0f} s)")
    return 0


def _without_empty_sections(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out a text with the tag `optional` if the code below it shows nothing."""
    kept = []
    for number, cell in enumerate(cells):
        code = takewhile(lambda one: one["cell_type"] == "code", cells[number + 1 :])
        is_optional = "optional" in cell["metadata"].get("tags", [])
        if not is_optional or any(one["outputs"] for one in code):
            kept.append(cell)
    return kept
