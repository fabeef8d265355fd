"""Compilation of loops by numba, with a cache on disk.

numba has no public way to replace the stamp of a cache entry, nor to compile a function
only as a part of others. This module is the only one that uses names that numba does not
document; `tests/core/test_compilation.py` lists them with their purposes, and
pyproject.toml bounds the version of numba by the newest one that was tested.
"""

import inspect
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from multiprocessing import current_process
from pathlib import Path
from threading import Timer
from typing import Any

import numba
from numba import config, types
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.core.typing.templates import infer_global

from preflearn.core.source_digest import function_digest

_jit: Any = numba.njit  # whose options are typed one by one
_SUMS = {"reassoc", "contract", "nsz", "nnan"}


def njit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function at its first call, and cache the compiled code on disk.

    The compiler does not reorder sums.

    If neither the folder of the package, nor the user's cache, nor NUMBA_CACHE_DIR is
    writable, the function is compiled again in each process. With NUMBA_DISABLE_JIT=1
    it remains a Python function.
    """
    if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        return function
    # The wrapper for C is never called, and takes time to compile.
    compiled = _jit(no_cfunc_wrapper=True, **options)(function)
    with suppress(RuntimeError):  # no locator available for the file
        compiled._cache = _Cache(function)
    return compiled


def njit_inner(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function for calls from other compiled functions only.

    Compilation then takes half the time. Python code calls the uncompiled function.
    """
    if not config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        compiled = _jit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(
            function
        )
        # Compiled code resolves the plain function to the compiled one.
        infer_global(function, types.Dispatcher(compiled))
        vars(function)["part"] = compiled  # numba holds it by a weak reference only
    return function


# Inlined into its callers and not cached separately; arguments may be functions.
njit_inside = partial(_jit, error_model="numpy", forceinline=True)
# The compiler may reorder sums to vectorize them; arguments must be finite.
njit_sums = partial(njit, fastmath=_SUMS)
njit_inner_sums = partial(njit_inner, fastmath=_SUMS)


class _Cache(FunctionCache):
    """Cache of a compiled function, valid until it or one of its callees changes.

    numba itself compares only the modification time of the function's file. It would
    keep old code of functions that are called from other files, and discard everything
    after a new checkout. The version is compared before unpickling, which fails if a
    module of an old entry no longer exists.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the cached code for these types, or return None.

        Sources are read here, at the first call, since reading them at import takes too
        long.
        """
        entry = self._cache_file
        source = Path(inspect.getfile(self.function))
        # for a function in a notebook cell, numba compares the text itself
        if source.exists():
            stamp = function_digest(source, self.function.__qualname__)
            entry._source_stamp = stamp
            entry._version = f"{numba.__version__} {self.function.__module__} {stamp}"
        return super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write compiled code to the cache, after removing code of older sources.

        numba writes the index before the code. If a process is killed in between, the
        index would point to an older file of the same name.
        """
        if not self._cache_file._load_index():
            for older in Path(self.cache_path).glob(
                f"{self._impl.filename_base}.*.nbc"
            ):
                older.unlink(missing_ok=True)
        super().save_overload(sig, data)


@cache
def pointer(function: Callable[..., Any], signature: str) -> Any:
    """Compile a function, cached as by `njit`, as an argument for compiled loops.

    A loop that takes such pointers is compiled once for all functions of one signature.
    If compilation is disabled, the result is the function itself.
    """
    if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        return function
    compiled: Any = CFunc(
        function, normalize_signature(signature), {}, {"error_model": "numpy"}
    )
    with suppress(RuntimeError):  # no locator available for the file
        compiled._cache = _Cache(function)
    compiled.compile()
    # Stored, since numba would compute both again at each call of a loop.
    compiled._numba_type_ = numba.typeof(compiled)
    address = compiled.address
    compiled.__wrapper_address__ = lambda: address
    return compiled


class _CompilationNotice(event.Listener):
    """Listener that prints a notice on stderr if compilation takes over a second.

    The notice is printed once, by the main process only. PREFLEARN_QUIET=1 silences it.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._left = 1.0
        self._begin = 0.0
        self._timer = Timer(0, str)

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__
        self._depth += self._depth > 0 or module.startswith("preflearn")
        if self._depth == 1 and self._left > 0:
            text = f"preflearn is compiling {module} (once per computer); this may take some seconds"
            self._timer = Timer(
                self._left, print, [text], {"file": sys.stderr, "flush": True}
            )
            self._timer.daemon = True
            self._begin = time.monotonic()
            self._timer.start()

    def on_end(self, event: Any) -> None:
        if self._depth == 1:
            self._timer.cancel()
            self._left -= time.monotonic() - self._begin
        self._depth -= self._depth > 0


if current_process().name == "MainProcess" and not os.environ.get("PREFLEARN_QUIET"):
    event.register("numba:compile", _CompilationNotice())
