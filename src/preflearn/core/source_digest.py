"""Digests of Python code that ignore comments, docstrings, and annotations.

`module_digest` is for results: a chapter is out of date if the digest of a module that
it imports changes. `function_digest` is for compiled code: it covers one function and
what the function uses.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeGuard

_SOURCE = Path(__file__).parents[2]
_OUR_PACKAGES = ("preflearn", "preflearn_book")


class Definition(NamedTuple):
    """A top-level name of a module, or the whole module if the name is empty."""

    file: Path
    name: str


def digest(value: object) -> str:
    """Return the SHA-256 of bytes, or of the JSON form of anything else."""
    if not isinstance(value, bytes):
        value = json.dumps(value, sort_keys=True, default=str).encode()
    return hashlib.sha256(value).hexdigest()


def module_digest(source: bytes) -> str:
    """Return the digest of the normalized syntax tree of a module."""
    return digest(ast.dump(_normalized(source)).encode())


@cache
def function_digest(file: Path, qualname: str) -> str:
    """Return the digest of a function and of all definitions that it uses.

    Definitions outside of our packages are not followed. The fields of named tuples
    that its module defines or imports are included, since arguments may have these
    types.

    Parameters
    ----------
    file : Path
        Module that defines the function.
    qualname : str
        ``__qualname__`` of the function. For a nested function, the outermost function
        is used.
    """
    waiting = [Definition(file, qualname.partition(".")[0]), *_named_tuples(file)]
    seen = set[Definition]()
    while waiting:
        definition = waiting.pop()
        if definition not in seen:
            seen.add(definition)
            waiting.extend(_uses(definition))
    texts = [
        ast.dump(node) for definition in sorted(seen) for node in _nodes(definition)
    ]
    return digest("\n".join(texts).encode())


def _normalized(source: bytes) -> ast.Module:
    """Parse a module and remove the parts that do not affect its results."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            node.body = [item for item in node.body if not _is_constant(item)] or [
                ast.Pass()
            ]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            _remove_annotations(node)
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            node.body = [ast.Pass()]
    return tree


def _is_constant(item: ast.stmt) -> bool:
    """Whether a statement is a docstring or another constant without effect."""
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)


def _remove_annotations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Remove annotations of arguments, of the result, and of local variables."""
    function.returns = None
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)


@cache
def _definitions(file: Path) -> dict[str, list[ast.stmt]]:
    """Return the top-level statements of a module by the names that they define."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in _top_level(_normalized(file.read_bytes()).body):
        for name in _defined_names(statement):
            found.setdefault(name, []).append(statement)
    return found


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also inside top-level `if`, `try`, `with`."""
    for statement in body:
        blocks = [
            getattr(statement, field, []) for field in ("body", "orelse", "finalbody")
        ]
        if isinstance(statement, ast.If | ast.Try | ast.With):
            for block in blocks:
                yield from _top_level(block)
        else:
            yield statement


def _defined_names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {
            (alias.asname or alias.name).partition(".")[0] for alias in statement.names
        }
    nodes = ast.walk(statement)
    return {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _nodes(definition: Definition) -> list[ast.stmt]:
    definitions = _definitions(definition.file)
    if definition.name:
        return [_fields_only(node) for node in definitions.get(definition.name, [])]
    return [
        statement for statements in definitions.values() for statement in statements
    ]


def _fields_only(node: ast.stmt) -> ast.stmt:
    """Return a named tuple without its methods, and any other node unchanged.

    Compiled code cannot call methods of named tuples.
    """
    if not _is_named_tuple(node):
        return node
    fields: list[ast.stmt] = [
        item for item in node.body if isinstance(item, ast.AnnAssign)
    ]
    return ast.ClassDef(node.name, node.bases, [], fields, [])


def _uses(definition: Definition) -> Iterator[Definition]:
    """Yield the definitions in our packages that a definition refers to."""
    known = _definitions(definition.file)
    for statement in _nodes(definition):
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (
                    not definition.name
                    or (alias.asname or alias.name) == definition.name
                ):
                    yield from _imported(statement, alias.name)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                yield from (Definition(file, "") for file in _files_of(alias.name))
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in known:
                yield Definition(definition.file, node.id)


def _imported(statement: ast.ImportFrom, name: str) -> Iterator[Definition]:
    """Yield the definition or the module that ``from module import name`` refers to."""
    module = statement.module or ""
    yield from (Definition(file, name) for file in _files_of(module))
    yield from (Definition(file, "") for file in _files_of(f"{module}.{name}"))


def _files_of(module: str) -> list[Path]:
    """Return the file of a module of our packages, if there is one."""
    if module.partition(".")[0] not in _OUR_PACKAGES:
        return []
    path = _SOURCE.joinpath(*module.split("."))
    return [
        file
        for file in (path.with_suffix(".py"), path / "__init__.py")
        if file.exists()
    ]


def _named_tuples(file: Path) -> Iterator[Definition]:
    """Yield the named tuples that a module defines or imports."""
    for name, statements in _definitions(file).items():
        candidates = [Definition(file, name)]
        for statement in statements:
            if isinstance(statement, ast.ImportFrom):
                candidates += [
                    d
                    for alias in statement.names
                    for d in _imported(statement, alias.name)
                ]
        for candidate in candidates:
            if candidate.name and any(map(_is_named_tuple, _nodes(candidate))):
                yield candidate


def _is_named_tuple(node: ast.stmt) -> TypeGuard[ast.ClassDef]:
    """Whether a statement defines a named tuple."""
    if not isinstance(node, ast.ClassDef):
        return False
    return any(
        isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases
    )
