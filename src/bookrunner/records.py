"""Numbers with their provenance: what a chapter computed, and what the papers print.

`record` stores a table in the executed notebook; a full run writes it to ``data/recorded/``, where
`recorded` finds it, so that a quick run can show the full run's numbers beside its own.
"""

from __future__ import annotations

import io
import json
import math
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bookrunner.files import PACKAGES, code_hashes, digest, write_atomically
from bookrunner.parameters import is_plain, running_shell

if TYPE_CHECKING:
    import pandas as pd


RECORD_MIME = "application/vnd.preflearn.record+json"
PROVENANCE_MIME = "application/vnd.preflearn.provenance+json"

_SOURCE = Path(__file__).parents[1]
# What this process read so far, beside modules and data: digests by names such as "claim P1-07".
_READ: dict[str, str | None] = {}

_NAME = re.compile(r"[a-z][a-z0-9_]*")
CHAPTER = re.compile(r"\d\d_[a-z0-9_]+")


def note_read(name: str, content: str | None) -> None:
    """Note for the provenance what was read: None for a table that does not exist."""
    _READ[name] = content


def project_file(relative: str, root: Path | None = None) -> Path:
    """A file of the project: of the one that is being built (PREFLEARN_ROOT), else of the installation.

    Raises
    ------
    FileNotFoundError
        If neither has the file.
    """
    # An installed wheel carries the files inside the package, a checkout has them at its root.
    roots = [root or os.environ.get("PREFLEARN_ROOT"), _SOURCE / "bookrunner" / "_files", _SOURCE.parent]
    for root in roots:
        if root and (path := Path(root) / relative).exists():
            return path
    raise FileNotFoundError(f"{relative} is missing from the installation of preflearn; install it again")


def record(name: str, table: pd.DataFrame | Mapping[str, float | int | str]) -> None:
    """Store a table, or a few scalars, in the executed notebook; nothing is displayed.

    Parameters
    ----------
    name : str
        Lower case letters, digits and underscores; unique in its chapter.
    table : DataFrame or mapping of str to scalar
        Columns need names; a named index becomes columns, an unnamed one of integers is dropped.
        State units in the names of columns, such as "time_s".

    Raises
    ------
    ValueError
        If the name is malformed, the table is empty, a scalar is not finite, or the index or the
        columns can't be written to a CSV file.

    Examples
    --------
    >>> record("fit", {"loss": 0.25, "n_pairs": 100})
    """
    _checked_name(name, "name")
    frame, scalars = _as_frame(name, table)
    payload = {"name": name, "scalars": scalars, "csv": frame.to_csv(index=False, lineterminator="\n")}
    _emit(RECORD_MIME, payload)


def _checked_name(name: object, what: str, pattern: re.Pattern = _NAME, example: str = "test_error") -> None:
    if not isinstance(name, str) or not pattern.fullmatch(name):
        raise ValueError(f"{what} is {name!r}; expected lower case, digits and underscores, like {example!r}")


def _as_frame(name: str, table: object) -> tuple[pd.DataFrame, dict | None]:
    import pandas as pd

    if isinstance(table, Mapping):
        scalars = {
            str(key): plain_scalar(f"{str(key)!r} of the record {name!r}", value)
            for key, value in table.items()
        }
        frame = pd.DataFrame([scalars])
    elif isinstance(table, pd.DataFrame):
        scalars, frame = None, table
        if frame.index.names != [None]:
            frame = frame.reset_index()
        elif not pd.api.types.is_integer_dtype(frame.index):
            raise ValueError(f"the index of the table {name!r} has no name; name it, so that it is kept")
    else:
        raise ValueError(
            f"{name!r} is a {type(table).__name__}; expected a DataFrame or a mapping to scalars"
        )
    if frame.empty:
        raise ValueError(f"the table {name!r} is empty (shape {frame.shape})")
    if (
        not all(isinstance(column, str) and column for column in frame.columns)
        or frame.columns.has_duplicates
    ):
        raise ValueError(f"the table {name!r} has columns {list(frame.columns)}; expected distinct names")
    return frame, scalars


def plain_scalar(what: str, value: Any) -> float | int | str | bool:
    """A scalar as Python's own; ValueError, which says what it is of, unless it is finite or a text."""
    value = value.item() if getattr(value, "ndim", None) == 0 else value
    if isinstance(value, str | bool) or (isinstance(value, int | float) and math.isfinite(value)):
        return value
    raise ValueError(f"{what} is {value!r}; expected a finite number or a text")


def _emit(mime: str, payload: dict) -> None:
    """Put a payload among the outputs of the running cell, with no form that would be displayed."""
    if getattr(running_shell(), "kernel", None) is not None:
        from IPython.display import display

        display({mime: payload}, raw=True)


def recorded(chapter: str, name: str) -> pd.DataFrame | None:
    """The table that the last full run of a chapter recorded, or None where there was none.

    Parameters
    ----------
    chapter : str
        The notebook's name, such as "03_lemma".
    name : str
        As given to `record`.

    Returns
    -------
    DataFrame or None
        Its `attrs` hold the provenance: date, preflearn, parameters, wall_time_s and more.

    Raises
    ------
    ValueError
        If a name is malformed.
    """
    _checked_name(chapter, "chapter", CHAPTER, "03_lemma")
    _checked_name(name, "name")
    relative = f"data/recorded/{chapter}_{name}.csv"
    try:
        return _read_table(relative)
    except FileNotFoundError:
        note_read(f"table {relative}", None)
        return None


def published(name: str) -> pd.DataFrame:
    """The numbers of one figure or table as the paper prints them: ``data/published/<name>.csv``.

    Lines on top that start with # are comments; lines such as ``# source: "Table 3"`` go to `attrs`.

    Raises
    ------
    ValueError
        If there is no such table; the message lists those that there are.
    """
    if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
        raise ValueError(f"name is {name!r}; expected one like 'P1_figure_6'")
    try:
        return _read_table(f"data/published/{name}.csv")
    except FileNotFoundError:
        known = sorted(path.stem for path in project_file("data/published").glob("*.csv"))
        raise ValueError(f"there is no published table {name!r}; expected one of {known}") from None


def _read_table(relative: str) -> pd.DataFrame:
    import pandas as pd

    content = project_file(relative).read_bytes()
    note_read(f"table {relative}", digest(content))
    lines = content.decode("utf-8").splitlines(keepends=True)
    n_comments = next((k for k, line in enumerate(lines) if not line.startswith("#")), len(lines))
    body = io.StringIO("".join(lines[n_comments:]))
    frame = pd.read_csv(body, engine="python")  # which parses floats exactly, in every version
    for line in lines[:n_comments]:
        if match := re.match(r"#\s*(\w+):\s*(.+)", line):
            frame.attrs[match[1]] = _parsed(match[2].strip())
    return frame


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def write_recorded(folder: Path, chapter: str, payload: Mapping, provenance: Mapping) -> Path:
    """Write one record of an executed notebook to `folder`, with provenance lines on top.

    Parameters
    ----------
    folder : Path
        The project's ``data/recorded``.
    chapter : str
    payload : mapping
        What `record` stored: name and csv.
    provenance : mapping of str to JSON values

    Returns
    -------
    Path
        The file, which is replaced as a whole or not at all.
    """
    header = "".join(f"# {key}: {json.dumps(value, sort_keys=True)}\n" for key, value in provenance.items())
    return write_atomically(folder / f"{chapter}_{payload['name']}.csv", header + payload["csv"])


def requirements(extra: str = "") -> list[str]:
    """Names of the packages that preflearn needs, or that one of its extras adds.

    Examples
    --------
    >>> "numpy" in requirements(), "papermill" in requirements("book")
    (True, True)
    """
    found = []
    for requirement in requires("preflearn") or []:
        name, marker = re.findall(r"^([\w.-]+)(?:.*extra == .(\w+))?", requirement)[0]
        if marker == extra:
            found.append(name)
    return found


def versions_of(names: Iterable[str]) -> dict[str, str]:
    """Installed versions of packages; "missing" for one that is not there."""
    versions = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "missing"
    return versions


def main_versions() -> dict[str, str]:
    """Versions of Python, the package, its dependencies, and what else may change a chapter's numbers.

    Examples
    --------
    >>> sorted(main_versions())[:3]
    ['click', 'cvxpy', 'ipykernel']
    """
    rendering = ("sphinx", "jupyter-book", "pyyaml", "tqdm")
    book = [name for name in requirements("book") if not name.startswith(rendering)]
    return {"python": platform.python_version()} | versions_of(["preflearn", *requirements(), *book])


def emit_provenance(parameters: Iterable[str] = ()) -> None:
    """Store what the kernel ran with and what it read; the runner calls this last.

    Parameters
    ----------
    parameters : iterable of str
        Names of the chapter's parameters; what they are now, after the chapter's own cells, is stored.
    """
    shell = running_shell()
    values = shell.user_ns if shell is not None else {}
    in_force = {name: values[name] for name in parameters if name in values and is_plain(values[name])}
    datasets = sys.modules.get("preflearn.datasets")
    used, unread = (datasets.used(), datasets.unread()) if datasets is not None else ([], {})
    loaded = (m for name, m in sys.modules.items() if name.split(".")[0] in PACKAGES)
    paths = [Path(path) for module in loaded if (path := getattr(module, "__file__", None))]
    modules = {f"module {name}": content for name, content in code_hashes(paths, _SOURCE).items()}
    files = {f"data {note['dataset']}/{note['file']}": note["sha256"] for note in used}
    sets = {f"dataset {name}": "here" if here else None for name, here in unread.items()}
    read = modules | files | sets | _READ
    provenance = {"versions": main_versions(), "data": used, "read": read, "parameters": in_force}
    _emit(PROVENANCE_MIME, provenance)
