"""Compilation of hot loops, with a cache on disk where a folder for it can be written."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba


def njit(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; later processes load it from the cache, if there is one.

    Sums are added in the order in which they are written.

    numba raises where neither the package, nor the user's cache, nor NUMBA_CACHE_DIR can be written. Then the
    function is compiled anew in each process.
    """
    return _compiled(function)


def njit_sums(function: Callable[..., Any]) -> Any:
    """`njit`, but sums and extremes are added up in parts, as the processor likes it; of finite numbers."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz", "nnan"})


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no locator available for the file
        return numba.njit(**options)(function)
    # numba compares the file of the function only, and would keep old code of functions that it calls.
    compiled._cache._cache_file._source_stamp = _stamp()  # pyright: ignore[reportAttributeAccessIssue]
    return compiled


@cache
def _stamp() -> str:
    """Changes with any file of the package."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    stamps = [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    return hashlib.sha256(repr(stamps).encode()).hexdigest()
