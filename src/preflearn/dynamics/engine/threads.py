"""Worker threads for compiled loops; their number does not affect results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from preflearn.core.compilation import njit, njit_inner

_CHUNK = 8_000  # entries or matches; a few tenths of a millisecond of work
_MAX_CHUNKS = 64

ParallelMap = Callable[[Callable[[Any], Any], Sequence], list]


# `njit` for threads: it releases the GIL, and x / 0 is inf or NaN.
njit_nogil = partial(njit, nogil=True, error_model="numpy")
# Inlined into each calling loop, so that constants of the caller are propagated.
njit_nogil_inner = partial(
    njit_inner, nogil=True, error_model="numpy", forceinline=True
)
# Sums may be reordered and vectorized.
njit_free_sums = partial(njit_nogil, fastmath={"reassoc", "contract", "nsz"})


@contextmanager
def worker_pool(n_threads: int | None) -> Iterator[ParallelMap]:
    """Start worker threads for parts of a task; one per processor by default.

    Parts are cut by the amount of work, never by the number of threads. The context
    manager yields a function of a task and its parts, which returns the results in the
    order of the parts.
    """
    n_workers = int(n_threads or os.cpu_count() or 1)
    # threads start when they get work
    with ThreadPoolExecutor(n_workers) as pool:

        def parallel_map(task: Callable[[Any], Any], parts: Sequence) -> list:
            if n_workers == 1 or len(parts) == 1:
                return list(map(task, parts))
            return list(pool.map(task, parts))

        yield parallel_map


def part_size(amount: int) -> int:
    """Return the amount of work per part."""
    return max(_CHUNK, -(-amount // _MAX_CHUNKS))


def balanced_slices(amount: int) -> list[slice]:
    """Cut 0..amount into parts of about equal size."""
    size = part_size(amount)
    return [slice(begin, min(begin + size, amount)) for begin in range(0, amount, size)]
