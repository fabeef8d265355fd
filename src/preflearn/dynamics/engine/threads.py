"""Threads that share compiled loops; their number changes no result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from preflearn.core.compilation import njit, njit_inner

_CHUNK = 8_000  # entries or matches: some tenths of a millisecond of work
_MOST_CHUNKS = 64

ParallelMap = Callable[[Callable[[Any], Any], Sequence], list]


# `njit` for threads: other Python code runs meanwhile, and x / 0 is inf or NaN.
njit_nogil = partial(njit, nogil=True, error_model="numpy")
# As part of each loop that calls it: what is constant there is constant here.
njit_nogil_inner = partial(
    njit_inner, nogil=True, error_model="numpy", forceinline=True
)
# Sums are added up in parts, as the processor likes it.
njit_free_sums = partial(njit_nogil, fastmath={"reassoc", "contract", "nsz"})


@contextmanager
def worker_pool(n_threads: int | None) -> Iterator[ParallelMap]:
    """Workers for parts of one task; as many as there are processors, if None.

    Parts are cut by the amount of work, never by the number of threads.

    Yields a function of a task and its parts: what the task gives of each, in the order
    of the parts, whoever does it.
    """
    n_workers = int(n_threads or os.cpu_count() or 1)
    # which starts a thread when it gets work
    with ThreadPoolExecutor(n_workers) as pool:

        def share(one: Callable[[Any], Any], parts: Sequence) -> list:
            alone = n_workers == 1 or len(parts) == 1
            return list(map(one, parts) if alone else pool.map(one, parts))

        yield share


def part_size(amount: int) -> int:
    """How much work makes a part."""
    return max(_CHUNK, -(-amount // _MOST_CHUNKS))


def balanced_slices(amount: int) -> list[slice]:
    """0..amount in parts."""
    size = part_size(amount)
    return [slice(begin, min(begin + size, amount)) for begin in range(0, amount, size)]
