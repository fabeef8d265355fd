"""Compilation of hot loops, with a cache on disk where a folder for it can be written."""

from collections.abc import Callable
from typing import Any

import numba


def njit(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; later processes load it from the cache, if there is one.

    numba raises where neither the package, nor the user's cache, nor NUMBA_CACHE_DIR can be written. Then the
    function is compiled anew in each process.
    """
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # no locator available for the file
        return numba.njit(function)
