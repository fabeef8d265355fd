"""Compilation of hot loops, with a cache on disk where a folder for it can be written."""

import ast
import hashlib
import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config, types
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.core.typing.templates import infer_global

_SOURCE = Path(__file__).parents[1]
_SUMS = {"reassoc", "contract", "nsz", "nnan"}


def njit(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; later processes load it from the cache, if there is one.

    Sums are added in the order in which they are written.

    numba raises where neither the package, nor the user's cache, nor NUMBA_CACHE_DIR can be written. Then the
    function is compiled anew in each process. With NUMBA_DISABLE_JIT=1 it stays a function of Python.
    """
    return _compiled(function)


def njit_sums(function: Callable[..., Any]) -> Any:
    """`njit`, but sums and extremes are added up in parts, as the processor likes it; of finite numbers."""
    return _compiled(function, fastmath=_SUMS)


def njit_part(function: Callable[..., Any]) -> Any:
    """Compile a function as a part of the compiled ones that call it, with no door for Python: half of the work.

    Python calls the function as it stands.
    """
    return _part(function)


def njit_part_sums(function: Callable[..., Any]) -> Any:
    """`njit_part`, whose sums and extremes are those of `njit_sums`."""
    return _part(function, fastmath=_SUMS)


def _part(function: Callable[..., Any], **options: Any) -> Any:
    if not config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        compiled = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)
        infer_global(function, types.Dispatcher(compiled))  # what compiled code finds under its name,
        vars(function)["part"] = compiled  # and does not keep
    return function


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        return function
    options["no_cfunc_wrapper"] = True  # for callbacks of C; nobody asks for it, and it takes time
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no locator available for the file
        return numba.njit(**options)(function)
    _stamp_cache(compiled, function)
    return compiled


def _stamp_cache(compiled: Any, function: Callable[..., Any]) -> None:
    """Let the cache of a compiled function hold as long as the contents of what it is compiled from.

    numba compares the file of the function only, by its time: it would keep old code of functions that are
    called from other files, and forget all after a new checkout. The version is compared before anything is
    unpickled, which fails where a module of an old entry is gone.
    """
    file, source = compiled._cache._cache_file, Path(inspect.getfile(function))
    if source.exists():  # not a cell of a notebook, whose text numba compares itself
        stamp = _stamp(source)
        file._source_stamp, file._version = stamp, f"{numba.__version__} {function.__module__} {stamp}"


@cache
def _stamp(file: Path) -> str:
    """Digest of the code in a file and in all files of our packages that it imports, directly or not."""
    seen, waiting = set(), [file]
    while waiting:  # a file is looked up once
        if (path := waiting.pop()) not in seen:
            seen.add(path)
            waiting.extend(_looked_up(path)[1])
    contents = " ".join(_looked_up(path)[0] for path in sorted(seen))
    return hashlib.sha256(contents.encode()).hexdigest()


@cache
def _looked_up(file: Path) -> tuple[str, tuple[Path, ...]]:
    """The digest of the code in a file, and the files of our packages that it names in its imports.

    Comments, docstrings and what is raised say nothing to a compiler, but for what compiled functions raise.
    """
    tree, found, inside = ast.parse(file.read_bytes()), list[Path](), set[ast.AST]()
    for node in ast.walk(tree):  # from the outside in
        match node:
            case ast.FunctionDef() if any("njit" in ast.dump(one) for one in node.decorator_list):
                inside.update(ast.walk(node))
            case ast.ImportFrom(module=str(module)) if module.startswith(("preflearn", "studies")):
                folder = _SOURCE.joinpath(*module.split("."))
                found += [folder.with_suffix(".py"), folder / "__init__.py"]
                found += [folder / f"{alias.name}.py" for alias in node.names]
            case ast.Expr(value=ast.Constant() as said):  # a docstring
                said.value = ""
            case ast.Raise() if node not in inside:
                node.exc = None
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(path for path in found if path.exists())


def njit_inside(function: Callable[..., Any]) -> Any:
    """Compile a function as a part of those that call it, with no cache of its own; it may take functions."""
    return numba.njit(error_model="numpy", forceinline=True)(function)


@cache
def pointer(function: Callable[..., Any], signature: str) -> Any:
    """Compile a function, cached as by `njit`, as an argument for compiled loops.

    A loop that takes such pointers is compiled once for all functions of one signature. Without compilation
    it is the function itself.
    """
    if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        return function
    compiled: Any = CFunc(function, normalize_signature(signature), {}, {"error_model": "numpy"})
    with suppress(RuntimeError):  # no locator available for the file
        compiled.enable_caching()
        _stamp_cache(compiled, function)
    compiled.compile()
    # What each call of a loop would find anew:
    compiled._numba_type_, address = numba.typeof(compiled), compiled.address
    compiled.__wrapper_address__ = lambda: address
    return compiled
