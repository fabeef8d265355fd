"""Parameters of chapters: conversion of texts from the command line to the types of the
chapter's defaults.

The length and the nesting of a text are limited before a recursive parser reads it.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import Any

PROFILES = ["quick", "full"]

MAX_TEXT_LENGTH = 10_000
MAX_VALUES = 100_000
# between two commas outside of brackets
_PART = re.compile(r"(?:\[[^\]]*\]|\([^)]*\)|\{[^}]*\}|[^,])+")
_RANGE = re.compile(r"-?\d{1,18}(:-?\d{1,18}){1,2}")


def require(good: object, value: object, name: str, expected: str) -> None:
    """Raise ValueError that shows `value`, unless `good` is true."""
    if not good:
        # Imported late, so that --help does not need NumPy.
        from preflearn.core import validation

        validation.require(False, value, name, expected)


def typed(name: str, given: Any, default: Any) -> Any:
    """Convert a value or a text to the type of a parameter's default.

    Parameters
    ----------
    name : str
        Name of the parameter, for messages.
    given : object
        A value or a text: a number, true or false, or a list such as [50, 100]. If the
        default is a text, any text.
    default : object
        The chapter's default.

    Raises
    ------
    ValueError
        If the value has another type.

    Examples
    --------
    >>> typed("seed", "3", 0), typed("ridge", "1", 0.1), typed("game", "010", "go")
    (3, 1.0, '010')
    """
    is_text = isinstance(given, str)
    if is_text and isinstance(default, str):
        return given
    value = given
    try:
        # Python's tokenizer rejects more than 200 open brackets, and the length limits
        # every other nesting.
        if is_text and len(given) <= MAX_TEXT_LENGTH:
            constants = {"true": "True", "false": "False"}
            value = ast.literal_eval(constants.get(given.strip().lower(), given))
        return _like(value, default)
    except Exception:  # the parser raises many types of errors
        raise ValueError(
            f"{name} is {str(given)[:60]!r}; expected a value like {default!r}"
        ) from None


def _like(value: Any, default: Any) -> Any:
    """Convert a value to the default's type; TypeError or OverflowError if that is
    impossible."""
    if type(default) is float and type(value) is int:
        value = float(value)
    elif isinstance(default, list | tuple) and isinstance(value, list | tuple):
        if default:
            value = [_like(item, default[0]) for item in value]
        value = type(default)(value)
    if type(value) is not type(default) or not is_plain(value):
        raise TypeError
    return value


def is_plain(value: Any) -> bool:
    """Whether an executed notebook, which is JSON, can contain the value."""
    try:
        return bool(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return False


def grid_values(name: str, text: str, default: Any) -> list[Any]:
    """List the values of one parameter in a sweep.

    The text is a range a:b or a:b:step like Python's, or a list a,b,c.

    Raises
    ------
    ValueError
        If values are missing or too many, a value appears twice, or a value has another
        type than the default.

    Examples
    --------
    >>> grid_values("n", "0:4", 0), grid_values("n", "1:8:3", 0), grid_values("sizes", "[1,2],[3]", [0])
    ([0, 1, 2, 3], [1, 4, 7], [[1, 2], [3]])
    """
    parts = [part.strip() for part in _PART.findall(text) if part.strip()]
    if type(default) in (int, float) and _RANGE.fullmatch(text):
        low, high, *step = map(int, text.split(":"))
        require(step != [0], text, name, "a:b:step with a step other than 0")
        parts = range(low, high, *step)
    expected = f"1 to {MAX_VALUES:,} values, such as 0:20 or 1,2,5"
    require(0 < len(parts) <= MAX_VALUES, text, name, expected)
    values = [typed(name, part, default) for part in parts]
    distinct = {json.dumps(value) for value in values}
    require(len(distinct) == len(values), text, name, "distinct values")
    return values


def report_command(data: str, kind: str, given: Mapping[str, Any]) -> str:
    """Return the command that makes a report again, with the nonempty parameters.

    Parameters
    ----------
    data : str
        Name of the file; "" if the user has to insert it.
    kind : {"--matches", "--judgements", "--races"}
    given : mapping of str to object

    Examples
    --------
    >>> report_command("my games.csv", "--matches", {"first": "home", "until": ""})
    "preflearn report 'my games.csv' --matches -p first home"
    """
    words = ["preflearn", "report", data or "FILE", kind]
    for name, value in given.items():
        if str(value):
            words += ["-p", name, str(value)]
    return shlex.join(words)


def assigned_names(source: str) -> dict[str, Any]:
    """Return the names that a cell assigns at its top level, with their values; Ellipsis
    for a value that is not a literal."""
    return {
        target.id: _literal(node.value)
        for node in ast.parse(source, "parameters").body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return ...


def declared(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the names and defaults that the cells tagged `parameters` assign; Ellipsis
    for a default that is not a literal."""
    cells = [
        "".join(cell["source"])
        for cell in notebook["cells"]
        if "parameters" in cell["metadata"].get("tags", [])
    ]
    return assigned_names("\n".join(cells))


def running_shell() -> Any:
    """Return the IPython shell, or None outside of IPython, without an import."""
    if "IPython" not in sys.modules:
        return None
    return sys.modules["IPython"].get_ipython()


def show(bundle: dict[str, Any]) -> None:
    """Show a bundle of MIME types as an output of the running cell; outside of IPython,
    print its text."""
    if running_shell() is not None:
        from IPython.display import display

        display(bundle, raw=True)
    elif "text/plain" in bundle:
        print(bundle["text/plain"])


def check_names(
    names: Iterable[str], known: Iterable[str], chapter: str = "this chapter"
) -> None:
    """Raise ValueError for a parameter that a chapter does not have; papermill would set
    it without effect."""
    unknown = ", ".join(repr(name) for name in names if name not in known)
    if unknown:
        raise ValueError(
            f"{chapter} has no parameter {unknown}; expected one of {sorted(known)}"
        )


def check_profile(profile: str, chapter: str = "") -> None:
    """Raise ValueError for an unknown profile or, under papermill, an unknown
    parameter.

    A chapter calls this function after its parameters. `preflearn build` checks both
    before it starts, but plain papermill sets any name to any value.

    Raises
    ------
    ValueError
        If the profile is neither "quick" nor "full", or papermill injected a parameter
        that no cell before it has, or None for one that is not None there.

    Examples
    --------
    >>> check_profile("quick")
    """
    good = isinstance(profile, str) and profile in PROFILES
    require(good, profile, f"{chapter}profile", f"one of {PROFILES}")
    shell = running_shell()
    cells = []
    if shell is not None:
        cells = shell.user_ns.get("In", [])
    for number, cell in enumerate(cells):
        if cell.startswith("# Parameters\n"):
            given = assigned_names(cell)
            known = assigned_names("\n".join(cells[:number]))
            check_names(given, known)
            # With None as the seed each run would be different.
            for name, value in given.items():
                good = value is not None or known[name] is None
                require(good, None, name, f"a value like {known[name]!r}")
            return


def check_range(name: str, value: Any, least: float, most: float) -> None:
    """Raise ValueError unless a chapter's parameter, or each entry of a list, lies in
    its range.

    A chapter calls it for each of its parameters, after `check_profile`.

    Parameters
    ----------
    name : str
        Name of the parameter, for messages.
    value : int, float, or list of these
        Value to check.
    least, most : int or float
        Bounds of the range; if both are integers, the value must be an integer too.

    Raises
    ------
    ValueError
        If a value is outside of the range or not a number, or the list is empty.

    Examples
    --------
    >>> check_range("n_pairs", 40, 4, 400)
    >>> check_range("n_pairs", 2, 4, 400)
    Traceback (most recent call last):
        ...
    ValueError: n_pairs is 2; expected an integer from 4 to 400
    """
    if isinstance(value, list | tuple):
        require(len(value) > 0, value, name, "at least one value")
        for position, entry in enumerate(value):
            check_range(f"{name}[{position}]", entry, least, most)
        return
    kind = int | float
    words = "a number"
    if isinstance(least, int) and isinstance(most, int):
        kind = int
        words = "an integer"
    good = (
        isinstance(value, kind)
        and not isinstance(value, bool)
        and least <= value <= most
    )
    require(good, value, name, f"{words} from {least:,} to {most:,}")
