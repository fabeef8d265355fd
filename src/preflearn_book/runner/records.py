"""Tables with their provenance: results of chapters, and numbers from the papers.

`record` stores a table in the executed notebook. ``preflearn record`` writes the tables
of a full run to ``data/recorded/``. There `recorded` finds them, so that a quick run can
show the full run's numbers next to its own. Each build checks them against the quick
run; see `record_check`.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import re
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from preflearn.core.source_digest import digest
from preflearn_book.runner.parameters import is_plain, require, running_shell, show

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment


PACKAGES = ("preflearn", "preflearn_book")  # our own
RECORD_MIME = "application/vnd.preflearn.record+json"
PROVENANCE_MIME = "application/vnd.preflearn.provenance+json"
NARROW_MIME = "application/vnd.preflearn.narrow"  # an SVG; written by plots.setup
_PACKED = ("<!--narrow ", "-->")

# Default tolerances of recorded numbers.
RTOL = 1e-6
ATOL = 1e-9

_SOURCE = Path(__file__).parents[2]
# Digests of everything that this process has read, except modules and data, by names
# such as "claim P1-07".
_READ: dict[str, str | None] = {}


def note_read(name: str, content: str | None) -> None:
    """Store a digest for the provenance; None for a table that does not exist."""
    _READ[name] = content


@cache
def _templates() -> Environment:
    """Return the environment of the templates, which compiles each of them once."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("preflearn_book.runner"), undefined=StrictUndefined
    )


def filled(template: str, **values: Any) -> str:
    """Render a template of the runner, and store its digest."""
    name = f"preflearn_book/runner/templates/{template}"
    note_read(f"module {name}", digest((_SOURCE / name).read_bytes()))
    return _templates().get_template(template).render(values)


def for_both_themes(svg: str, narrow: str = "") -> str:
    """Add the colors of dark pages to a drawing on a white background.

    The browser applies them if the page is dark; colors of data do not change. The
    drawing for narrow pages is appended, until `unpacked` separates the two.
    """
    both = re.sub(
        r"<svg[^>]*>", lambda start: start[0] + filled("dark.html"), svg, count=1
    )
    if narrow:
        both += b64encode(for_both_themes(narrow).encode()).decode().join(_PACKED)
    return both


def unpacked(svg: str) -> tuple[str, str]:
    """Separate a drawing and its version for narrow pages ("" if there is none), which
    `for_both_themes` combined."""
    wide, _, packed = svg.partition(_PACKED[0])
    return wide, b64decode(packed.partition(_PACKED[1])[0]).decode()


def project_file(relative: str, root: Path | None = None) -> Path:
    """Find a file in the project that is being built (PREFLEARN_ROOT), else in the
    installation.

    Raises
    ------
    FileNotFoundError
        If neither contains the file.
    """
    # A wheel contains the files in the package; a clone has them at its root.
    installed = _SOURCE / "preflearn_book" / "_files"
    roots = [root or os.environ.get("PREFLEARN_ROOT"), installed, _SOURCE.parent]
    for root in roots:
        if root and (path := Path(root) / relative).exists():
            return path
    raise FileNotFoundError(
        f"{relative} is missing from the installation of preflearn; install it again"
    )


class Flips(NamedTuple):
    """Limit on the number of discrete outcomes of each method that may differ.

    On another processor, a search may find a different one of several best values.

    Attributes
    ----------
    fraction : float
        Largest fraction of the rows of a method that may differ in one column. At least
        0 and less than 1.
    columns : sequence of str
        Columns of discrete outcomes. Other columns must agree within the tolerance.
    method : str, optional
        Column that names the method; None if each of `columns` is a method.
    """

    fraction: float = 0.0
    columns: Sequence[str] = ()
    method: str | None = None


NO_FLIPS = Flips()


def record(
    name: str,
    table: pd.DataFrame | Mapping[str, float | int | str],
    *,
    keys: Sequence[str] | None = None,
    rtol: float | Mapping[str, float] = RTOL,
    atol: float | Mapping[str, float] = ATOL,
    flips: Flips = NO_FLIPS,
    timings: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
) -> None:
    """Store a table, or a few scalars, in the executed notebook without displaying them.

    A record is valid as long as a quick run of the chapter reproduces its quick rows.
    Each build compares them. It reports numbers that differ by more than ``atol + rtol *
    abs(recorded)``, and missing or additional rows.

    Parameters
    ----------
    name : str
        Name of lower case letters, digits, and underscores; unique in its chapter.
    table : DataFrame or mapping of str to scalar
        Table with named columns. A named index becomes columns; an unnamed index of
        integers is dropped. State units in the names of columns, such as "time_s".
    keys : sequence of str, optional
        Columns that identify a row, if the rows of a quick run are also rows of the full
        run. Then these rows are compared; a quick run may have none. Without keys the
        whole table of the quick run is stored next to the record.
    rtol, atol : float or mapping of str to float
        Relative and absolute tolerance of all numbers, or by column. Columns that are
        not in the mapping have the default. Texts must be equal.
    flips : Flips
        Columns of discrete outcomes, and the fraction of rows of each method that may
        differ in them.
    timings : sequence of str
        Columns of run times, which are not compared.
    columns : mapping of str to str, optional
        Meanings of columns, for the tables of a sweep.

    Raises
    ------
    ValueError
        If the name is malformed or "columns", the table is empty, a scalar is not
        finite, the index or the columns cannot be written to a CSV file, an argument
        names a missing column, or two rows have the same keys.

    Examples
    --------
    >>> record("fit", {"loss": 0.25, "n_pairs": 100, "time_s": 0.1}, timings=["time_s"])
    """
    _check_name(name)
    frame = _as_frame(name, table)
    known = list(frame.columns)
    named = [*(keys or ()), *timings, *(columns or ()), *flips.columns]
    if flips.method is not None:
        named.append(flips.method)
    for tolerance in (rtol, atol):
        if isinstance(tolerance, Mapping):
            named += tolerance
    unknown = [column for column in named if column not in known]
    require(not unknown, known, f"the list of columns of {name!r}", f"also {unknown}")
    if keys:
        repeated = frame.loc[frame.duplicated(list(keys)), list(keys)].to_dict(
            "records"
        )
        expected = "keys that are different in each row"
        require(not repeated, repeated, f"the list of equal rows of {name!r}", expected)
    good = keys is not None or not frame.empty
    require(good, frame.shape, f"the shape of the table {name!r}", "at least one value")
    # This name is reserved for the table that explains the columns of a sweep.
    require(name != "columns", name, "name", "another name")
    payload = {
        "name": name,
        "csv": csv_text(frame),
        "keys": keys if keys is None else list(keys),
        "rtol": _by_column(rtol, RTOL, known),
        "atol": _by_column(atol, ATOL, known),
        "flips": flips._asdict() | {"columns": list(flips.columns)},
        "timings": list(timings),
        "columns": dict(columns or {}),
    }
    show({RECORD_MIME: payload})


def _by_column(
    tolerance: float | Mapping[str, float], default: float, columns: Sequence[str]
) -> dict[str, float]:
    if isinstance(tolerance, Mapping):
        return dict.fromkeys(columns, default) | dict(tolerance)
    return dict.fromkeys(columns, tolerance)


def _check_name(name: object, what: str = "name") -> None:
    good = isinstance(name, str) and re.fullmatch(r"[a-z0-9_]{1,80}", name)
    require(
        good,
        name,
        what,
        "lower case, digits and underscores, at most 80, like 'test_error'",
    )


def _as_frame(name: str, table: Any) -> pd.DataFrame:
    import pandas as pd

    if isinstance(table, Mapping):
        what = f"of the record {name!r}"
        table = pd.DataFrame(
            [{str(key): plain_scalar(f"{key!r} {what}", table[key]) for key in table}]
        )
    good = isinstance(table, pd.DataFrame)
    require(good, table, f"the table {name!r}", "a DataFrame or a mapping to scalars")
    if table.index.names != [None]:
        table = table.reset_index()
    elif len(table) and not pd.api.types.is_integer_dtype(table.index):
        raise ValueError(
            f"the index of the table {name!r} has no name; name it, or call reset_index(drop=True)"
        )
    good = table.columns.is_unique and all(
        isinstance(name, str) and name for name in table.columns
    )
    require(
        good, list(table.columns), f"the list of columns of {name!r}", "distinct names"
    )
    return table


def plain_scalar(what: str, value: Any) -> float | int | str | bool:
    """Convert a scalar to a Python type; raise ValueError unless it is a finite number
    or a text."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    good = isinstance(value, str) or (
        isinstance(value, int | float) and abs(value) <= sys.float_info.max
    )
    require(good, value, what, "a finite number or a text")
    return value


def recorded(chapter: str, name: str) -> pd.DataFrame | None:
    """Read the table that the last full run of a chapter recorded; None if there is no
    such table.

    Parameters
    ----------
    chapter : str
        Name of the notebook, such as "03_lemma".
    name : str
        Name that was passed to `record`.

    Returns
    -------
    DataFrame or None
        The `attrs` of the table contain its provenance (date, versions, parameters,
        wall_time_s and more), and in `record` the name of the record.

    Raises
    ------
    ValueError
        If a name is malformed.
    """
    _check_name(chapter, "chapter")
    _check_name(name)
    table = read_table(f"data/recorded/{chapter}_{name}.csv")
    if table is not None:
        table.attrs["record"] = f"{chapter}_{name}"
    return table


def published(name: str) -> pd.DataFrame:
    """Read the published numbers of a figure or table: ``data/published/<name>.csv``.

    Initial lines that start with # are comments. Lines such as ``# source: "Table 3"``
    are stored in `attrs`.

    Raises
    ------
    ValueError
        If the table is missing; the message lists all tables.
    """
    known = sorted(path.stem for path in project_file("data/published").glob("*.csv"))
    require(
        isinstance(name, str) and name in known,
        name,
        "the published table",
        f"one of {known}",
    )
    return read_table(f"data/published/{name}.csv")  # pyright: ignore[reportReturnType]  (it is there)


def read_table(relative: str) -> pd.DataFrame | None:
    """Read a table of the project, and store its digest for the provenance; None if the
    table is missing."""
    try:
        content = project_file(relative).read_bytes()
    except FileNotFoundError:
        return note_read(f"table {relative}", None)
    note_read(f"table {relative}", digest(content))
    header, body = split_table(content.decode("utf-8"))
    frame = parsed_table(body)
    frame.attrs.update(header)
    return frame


def csv_text(frame: pd.DataFrame) -> str:
    """Write a table as a CSV text that `parsed_table` can read."""
    text = frame.to_csv(index=False, lineterminator="\n")
    # A carriage return would end a row, because Python before 3.13 does not quote it.
    if "\r" in text:
        text = frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_ALL)
    return text


def parsed_table(text: str) -> pd.DataFrame:
    """Parse a CSV text."""
    import pandas as pd

    # This engine parses floats exactly in all versions. Only an empty cell is missing;
    # "None" is a text.
    return pd.read_csv(
        io.StringIO(text), engine="python", keep_default_na=False, na_values=[""]
    )


def text_cells(text: str) -> pd.DataFrame:
    """Parse a CSV text without converting cells."""
    import pandas as pd

    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)


def split_table(text: str) -> tuple[dict[str, Any], str]:
    """Separate a table from initial lines such as ``# source: "Table 3"``.

    Examples
    --------
    >>> split_table("# seed: 3\\n# in plain words\\na,b\\n1,2\\n")
    ({'seed': 3}, 'a,b\\n1,2\\n')
    """
    lines = text.splitlines(keepends=True)
    n_comments = next(
        (k for k, line in enumerate(lines) if not line.startswith("#")), len(lines)
    )
    matches = [re.match(r"#\s*(\w+):\s*(.+)", line) for line in lines[:n_comments]]
    header = {match[1]: _parsed(match[2].strip()) for match in matches if match}
    return header, "".join(lines[n_comments:])


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def requirements() -> list[str]:
    """Return the names of the packages that preflearn and the book need.

    Examples
    --------
    >>> {"numpy", "papermill"} <= set(requirements())
    True
    """
    names_and_extras = [
        re.findall(r"^([\w.-]+)(?:.*extra == .(\w+))?", text)[0]
        for text in requires("preflearn") or []
    ]
    return [name for name, extra in names_and_extras if extra in ("", "book")]


def main_versions() -> dict[str, str]:
    """Return the versions of Python and of all packages that can change numbers.

    Examples
    --------
    >>> sorted(main_versions())[:3]
    ['click', 'cvxpy', 'ipykernel']
    """
    rendering = ("sphinx", "jupyter-book", "pyarrow", "pyyaml", "tqdm")
    names = [name for name in requirements() if not name.startswith(rendering)]
    versions = {name: version(name) for name in ["preflearn", *names]}
    return {"python": platform.python_version()} | versions


def emit_provenance(parameters: Iterable[str] = ()) -> None:
    """Store the kernel's settings and all that it read; the runner calls this last.

    Parameters
    ----------
    parameters : iterable of str
        Names of the chapter's parameters. Their values at the end of the chapter are
        stored.
    """
    shell = running_shell()
    values = {}
    if shell is not None:
        values = shell.user_ns
    used = []
    unread = []
    if datasets := sys.modules.get("preflearn.datasets"):
        used = datasets.used()
        unread = datasets.unread()
    modules = []
    for name, module in sys.modules.items():
        path = getattr(module, "__file__", None)
        if path and name.split(".")[0] in PACKAGES:
            modules.append(Path(path).relative_to(_SOURCE).as_posix())
    files = {f"data {note['dataset']}/{note['file']}": note["sha256"] for note in used}
    missing = dict.fromkeys(f"dataset {name}" for name in unread)
    provenance = {
        "versions": main_versions(),
        "data": used,
        "parameters": {
            name: values[name] for name in parameters if is_plain(values.get(name, ...))
        },
        "modules": sorted(modules),
        "read": files | missing | _READ,
    }
    show({PROVENANCE_MIME: provenance})
