"""Products with the analogy kernel without a Gram matrix, against those with one.

python benchmarks/analogy_sorted.py            a million pairs, and where products with a Gram are faster
python benchmarks/analogy_sorted.py --quick    up to 5,000 pairs
python benchmarks/analogy_sorted.py --growth   seconds for 10^4 to 10^6 pairs
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from _measure import alternate, markdown_table, peak_megabytes
from numba.core import config

from preflearn.analogy import AnalogyOperator, analogy_kernel


def sample(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (n, d)), rng.standard_normal(n)


def cpu_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def make(n: int, d: int, products: int) -> Callable[[], object]:
    U, v = sample(n, d)
    AnalogyOperator(U[:50]).times(v[:50])  # compiled before memory is measured

    def run() -> None:
        K = AnalogyOperator(U)
        for _ in range(products):
            K.times(v)

    return run


def at_size(n: int, d: int) -> None:
    """Sorting and products of n pairs of d features, on one and on two threads."""
    U, v = sample(n, d)
    rows = []
    for threads in (1, 2):
        config.NUMBA_NUM_THREADS = threads  # pyright: ignore[reportAttributeAccessIssue]
        K = AnalogyOperator(U)
        calls = [
            partial(AnalogyOperator, U),
            partial(K.times, v),
            partial(K.cross, U[:1000], v),
        ]
        seconds = alternate(calls, 5)
        memory = [peak_megabytes(make, n, d, products) for products in (0, 1)]
        rows.append([n, d, threads, *seconds, cpu_seconds(calls[1]), *memory])
    header = "pairs|d|threads|sort s|product s|cross with 1,000 s|product, processor s|sort MB|and product MB"
    print(markdown_table(header.split("|"), rows), "\n")


def crossover(sizes: Sequence[int], d: int) -> None:
    """A product by sorting against one with a Gram that is there, and against one that
    is made for it."""
    config.NUMBA_NUM_THREADS = 2  # pyright: ignore[reportAttributeAccessIssue]
    rows = []
    for n in sizes:
        U, v = sample(n, d)
        operator = AnalogyOperator(U)
        K = analogy_kernel(U)
        off = np.abs(operator.times(v) - K @ v).max() / np.abs(v).sum()
        calls = [partial(AnalogyOperator, U), partial(operator.times, v)]
        calls += [partial(analogy_kernel, U), partial(np.matmul, K, v)]
        sort, product, gram, stored = alternate(calls, 7)
        ratios = [stored / product, (gram + stored) / (sort + product)]
        after = gram / (product - stored) if product > stored else "all"
        rows.append([n, sort, product, gram, stored, *ratios, after, off])
    header = "pairs|sort s|product s|Gram s|its product s|its product / ours"
    header += "|both, the Gram made / ours sorted|products until the Gram pays|differ by, of sum v"
    print(f"d = {d}\n\n" + markdown_table(header.split("|"), rows), "\n")


def growth(sizes: Sequence[int], d: int) -> None:
    config.NUMBA_NUM_THREADS = 2  # pyright: ignore[reportAttributeAccessIssue]
    rows = []
    for n in sizes:
        U, v = sample(n, d)
        sort, product = alternate(
            [partial(AnalogyOperator, U), partial(AnalogyOperator(U).times, v)], 3
        )
        rows.append([n, sort, product, product / (n * d) * 1e9])
    print(
        f"d = {d}\n\n"
        + markdown_table(
            ["pairs", "sort s", "product s", "ns a pair and feature"], rows
        )
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--growth", action="store_true")
    arguments = parser.parse_args()
    if arguments.growth:
        growth([10**4, 10**5, 10**6], 10)
    elif arguments.quick:
        at_size(5_000, 10)
        crossover([300, 1_000, 3_000], 10)
    else:
        at_size(1_000_000, 10)
        crossover([100, 300, 1_000, 3_000, 10_000], 10)
        crossover([300, 1_000, 3_000, 10_000], 28)
