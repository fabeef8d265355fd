"""Time the Gram matrix of the analogy kernel against NumPy and scikit-learn.

python benchmarks/analogy_gram.py            10,000 pairs of 28 features, four minutes, 2 GB
python benchmarks/analogy_gram.py --quick    2,000 pairs
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from _measure import (
    alternate,
    markdown_table,
    peak_megabytes,
    processor_seconds,
    script_parser,
)
from numba.core import config
from sklearn.metrics.pairwise import manhattan_distances, pairwise_kernels

from preflearn.analogy import analogy_kernel

D = 28
BLOCK = 8  # rows per broadcast, a few megabytes
CALLABLE = 300  # pairs for the kernel that is called for each entry


def sample(n: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (n, D))


# ---- Other implementations


def broadcast(U: np.ndarray) -> np.ndarray:
    """Eqs. 5 and 8 as written, a few rows at a time."""
    K = np.empty((len(U), len(U)))
    for top in range(0, len(U), BLOCK):
        u = U[top : top + BLOCK, None]
        hats = np.where(np.sign(u) == np.sign(U), 1 - np.abs(u - U), 0)
        K[top : top + BLOCK] = hats.mean(axis=2)
    return K


def by_feature(U: np.ndarray) -> np.ndarray:
    """Eqs. 5 and 8 one feature at a time, which is faster in NumPy."""
    K = np.zeros((len(U), len(U)))
    columns = np.ascontiguousarray(U.T)
    signs = np.sign(columns)
    for top in range(0, len(U), BLOCK):
        rows = slice(top, top + BLOCK)
        for u, sign in zip(columns, signs, strict=True):
            hats = 1 - np.abs(u[rows, None] - u)
            hats *= sign[rows, None] == sign
            K[rows] += hats
    K /= U.shape[1]
    return K


def one(u: np.ndarray, v: np.ndarray) -> float:
    return float(np.where(np.sign(u) == np.sign(v), 1 - np.abs(u - v), 0).mean())


def called(U: np.ndarray) -> np.ndarray:
    return pairwise_kernels(U, metric=one)


# ---- preflearn


def with_threads(threads: int, degree: int, U: np.ndarray) -> np.ndarray:
    config.NUMBA_NUM_THREADS = threads  # pyright: ignore[reportAttributeAccessIssue]
    return analogy_kernel(U, degree=degree)


def make(call: Callable, n: int) -> Callable[[], object]:
    analogy_kernel(sample(300))  # Compile before memory is measured.
    return partial(call, sample(n))


# ---- Tables


def against_peers(n: int) -> None:
    U = sample(n)
    few = sample(CALLABLE)
    ours = {
        f"ours, {t} thread{'s' * (t > 1)}": partial(with_threads, t, 1) for t in (1, 2)
    }
    ours["ours, degree 2, 2 threads"] = partial(with_threads, 2, 2)
    references = {"NumPy, broadcast": broadcast, "NumPy, by feature": by_feature}
    references["scikit-learn, manhattan_distances (other kernel)"] = manhattan_distances
    K = analogy_kernel(U)
    print(
        "largest difference from the broadcast formula:",
        np.abs(broadcast(U[:500]) - K[:500, :500]).max(),
        "\n",
    )
    del K
    calls = {**ours, **references}
    seconds = alternate([partial(call, U) for call in calls.values()], 3)
    best = seconds[1]
    rows = [
        [
            name,
            taken,
            taken / best,
            processor_seconds(partial(call, U))[0],
            peak_megabytes(make, call, n),
        ]
        for (name, call), taken in zip(calls.items(), seconds, strict=True)
    ]
    taken = alternate([lambda: called(few)], 1)[0] * (n / CALLABLE) ** 2
    rows.append(
        [
            f"scikit-learn, a callable (computed from {CALLABLE} pairs)",
            taken,
            taken / best,
            "-",
            "-",
        ]
    )
    print(
        markdown_table(
            ["method", "s", "divided by ours, 2 threads", "processor s", "MB"], rows
        )
    )
    print(f"\nthe matrix itself: {8 * n * n / 2**20:.0f} MB\n")


if __name__ == "__main__":
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true")
    size = 2_000 if parser.parse_args().quick else 10_000
    against_peers(size)
