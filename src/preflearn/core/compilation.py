"""Compilation of hot loops, with a cache on disk where a folder for it can be written."""

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
from numba.core import config, event, types
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.core.typing.templates import infer_global

from preflearn.core.source_digest import function_digest

_jit: Any = numba.njit  # whose options are typed one by one
_SUMS = {"reassoc", "contract", "nsz", "nnan"}


def njit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function at its first call; later processes load it from the cache, if
    there is one.

    Sums are added in the order in which they are written.

    numba raises where neither the package, nor the user's cache, nor NUMBA_CACHE_DIR
    can be written. Then the function is compiled anew in each process. With
    NUMBA_DISABLE_JIT=1 it stays a function of Python.
    """
    if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        return function
    # What C could call is not made: nobody asks for it, and it takes time.
    compiled = _jit(no_cfunc_wrapper=True, **options)(function)
    with suppress(RuntimeError):  # no locator available for the file
        compiled._cache = _Cache(function)
    return compiled


def njit_inner(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function as a part of compiled ones that call it, with no door for
    Python: half the work.

    Python calls the function as it stands.
    """
    if not config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        compiled = _jit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(
            function
        )
        # what compiled code finds under its name,
        infer_global(function, types.Dispatcher(compiled))
        vars(function)["part"] = compiled  # and does not keep
    return function


# As a part of those that call it, with no cache of its own; it may take functions.
njit_inside = partial(_jit, error_model="numpy", forceinline=True)
# Sums and extremes are added up in parts, as the processor likes it; of finite numbers.
njit_sums = partial(njit, fastmath=_SUMS)
njit_part_sums = partial(njit_inner, fastmath=_SUMS)


class _Cache(FunctionCache):
    """The cache of a compiled function, valid as long as the function and what it calls
    stay the same.

    numba compares the file of the function only, by its time: it would keep old code of
    functions that are called from other files, and forget all after a new checkout. The
    version is compared before anything is unpickled, which fails where a module of an
    old entry is gone.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was kept for these types, or None; contents are looked up now, and not
        at import."""
        file = self._cache_file
        source = Path(inspect.getfile(self._py_func))
        # not a cell of a notebook, whose text numba compares itself
        if source.exists():
            stamp = file._source_stamp = function_digest(
                source, self._py_func.__qualname__
            )
            file._version = f"{numba.__version__} {self._py_func.__module__} {stamp}"
        return super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep code.

        numba notes its file first: who is killed then must not leave an older one
        there.
        """
        if not self._cache_file._load_index():
            for older in Path(self._cache_path).glob(
                f"{self._impl.filename_base}.*.nbc"
            ):
                older.unlink(missing_ok=True)
        super().save_overload(sig, data)


@cache
def pointer(function: Callable[..., Any], signature: str) -> Any:
    """Compile a function, cached as by `njit`, as an argument for compiled loops.

    A loop that takes such pointers is compiled once for all functions of one signature.
    Without compilation it is the function itself.
    """
    if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        return function
    compiled: Any = CFunc(
        function, normalize_signature(signature), {}, {"error_model": "numpy"}
    )
    with suppress(RuntimeError):  # no locator available for the file
        compiled._cache = _Cache(function)
    compiled.compile()
    # What each call of a loop would find anew:
    compiled._numba_type_ = numba.typeof(compiled)
    address = compiled.address
    compiled.__wrapper_address__ = lambda: address
    return compiled


class _Word(event.Listener):
    """Tells once, on stderr, that functions of ours are compiled, where this takes
    longer than a second.

    Processes that others started leave it to these; PREFLEARN_QUIET silences it.
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
            text = f"preflearn compiles {module} for this machine, once: this may take some seconds"
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
    event.register("numba:compile", _Word())
