"""What the memory of this machine can do: streams, and lines of 64 bytes at random
places."""

from __future__ import annotations

import time
from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["line_nanoseconds", "stream_gigabytes"]

WORDS = 8  # of 8 bytes, in a line of 64
STRETCH = 65_536


def stream_gigabytes(threads: int, n: int = 25_000_000) -> dict[str, float]:
    """GB/s that reach or leave the memory, on so many threads.

    "triad" is STREAM's a[k] = b[k] + 3 c[k], 24 bytes an element as STREAM counts;
    "read" a sum of one array, 8 bytes an element; "update" a[k] += 1, 16 bytes, half of
    them written.
    """
    numba.set_num_threads(threads)
    # Streams that begin at the same place of a page get into each other's way.
    a, b, c = (np.ones(n + 3 * skip)[skip : skip + n] for skip in (0, 1000, 2000))
    calls = {
        "triad": (24, lambda: _triad(a, b, c)),
        "read": (8, lambda: _sum(a.view(np.int64))),
    }
    calls["update"] = (16, lambda: _increment(a))
    return {
        name: size * n / _least_seconds(call) / 1e9
        for name, (size, call) in calls.items()
    }


def line_nanoseconds(
    threads: int, order: str = "random", *, write: bool = False, n: int = 2**23
) -> float:
    """Nanoseconds to visit a line of 64 bytes, over n lines (half a gigabyte), on so
    many threads.

    Visits do not wait for each other. `order` is "random", "ascending", or "stretches":
    random places, ascending within each 65,536. With `write` each line is also changed
    and goes back.
    """
    numba.set_num_threads(threads)
    lines = _lines(n)
    places = np.random.default_rng(0).permutation(n)
    if order != "random":
        places.reshape(-1, STRETCH if order == "stretches" else n).sort(axis=1)
    visit = _change if write else _gather
    return _least_seconds(lambda: visit(lines, places)) / n * 1e9


def _lines(n: int) -> NDArray[np.int64]:
    """n lines, which begin where lines of the cache do."""
    # touched here, for the pages to be there
    raw = np.ones(n * WORDS + WORDS, dtype=np.int64)
    skip = -(raw.ctypes.data // 8) % WORDS
    return raw[skip : skip + n * WORDS].reshape(n, WORDS)


def _least_seconds(call: Callable[[], object], repeats: int = 7) -> float:
    """The least of several runs: a limit is what the machine does at its best."""
    call()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


@numba.njit(parallel=True)
def _triad(a, b, c):
    for k in numba.prange(len(a)):
        a[k] = b[k] + 3.0 * c[k]


@numba.njit(parallel=True)
def _increment(a):
    for k in numba.prange(len(a)):
        a[k] += 1.0


@numba.njit(parallel=True)
def _sum(a):
    """Of integers, whose sums are vectorised."""
    total = 0
    for k in numba.prange(len(a)):
        total += a[k]
    return total


@numba.njit(parallel=True)
def _gather(lines, places):
    total = 0
    for k in numba.prange(len(places)):
        total += lines[places[k], 0]
    return total


@numba.njit(parallel=True)
def _change(lines, places):
    for k in numba.prange(len(places)):
        for word in range(WORDS):
            lines[places[k], word] += 1
