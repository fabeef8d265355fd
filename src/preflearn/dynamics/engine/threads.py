"""Threads that share compiled loops; their number changes no result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from preflearn.compiled import _compiled

_CHUNK = 8_000  # entries or matches: some tenths of a millisecond of work
_MOST_CHUNKS = 64


def njit_free(function: Callable[..., Any]) -> Any:
    """`preflearn.compiled.njit` for threads: other Python code runs meanwhile, and x / 0 is inf or NaN."""
    return _compiled(function, nogil=True, error_model="numpy")


def njit_free_inside(function: Callable[..., Any]) -> Any:
    """`njit_free`, as part of each loop that calls it: what is constant there is constant here."""
    return _compiled(function, nogil=True, error_model="numpy", forceinline=True)


def njit_free_sums(function: Callable[..., Any]) -> Any:
    """`njit_free`, but sums are added up in parts, as the processor likes it."""
    return _compiled(function, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


class Team:
    """Workers for parts of one task. Parts are cut by the amount of work, never by the number of threads.

    Parameters
    ----------
    n_threads : int
    """

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def share(self, one: Callable[[Any], Any], parts: Sequence) -> list:
        """`one` of each part, in the order of the parts, whoever does it."""
        if self._pool is None or len(parts) == 1:
            return [one(part) for part in parts]
        return list(self._pool.map(one, parts))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def part_size(amount: int) -> int:
    """How much work makes a part."""
    return max(_CHUNK, -(-amount // _MOST_CHUNKS))


def slices(amount: int) -> list[slice]:
    """0..amount in parts."""
    size = part_size(amount)
    return [slice(begin, min(begin + size, amount)) for begin in range(0, amount, size)]
