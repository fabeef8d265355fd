"""Compare SVMRank with a linear kernel with cutting planes and with liblinear.

With all pairs of one query, the reference is a plain bundle method that counts pairs.
With given pairs, the reference is liblinear. The script measures time, memory, and the
objective.

python benchmarks/ranking_svm.py             one query of up to 20,000 items
python benchmarks/ranking_svm.py --quick     up to 3,000 items
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import clarabel
import numpy as np
from _measure import (
    count_peak_from_here,
    markdown_table,
    peak_kilobytes,
    processor_seconds,
    script_parser,
)
from numba import njit
from scipy import sparse
from sklearn.svm import LinearSVC

from preflearn.pairs import Pairs
from preflearn.svm import SVMRank

COST = 100.0  # C times the number of pairs
GAP = 1e-6  # relative gap of the plain program
Problem = tuple[np.ndarray, np.ndarray, float]


def one_query(n: int) -> Problem:
    """Features and scores of n items, and C."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    y = X @ rng.normal(size=10) + rng.normal(size=n)
    return X, y, COST / (n * (n - 1) / 2)


# ---- The plain program: cutting planes of [Joachims2006], pairs counted by a Fenwick tree


@njit
def hinges(f, rank):
    """The sum of the hinges of all pairs, and its gradient in the scores f."""
    n = len(f)
    order = np.argsort(f)
    gradient = np.zeros(n)
    for sign in (1, -1):  # each item as the better, then as the worse item
        tree = np.zeros(n + 1)
        enters = 0
        for count in range(n):
            i = order[n - 1 - count] if sign > 0 else order[count]
            while enters < n:
                j = order[n - 1 - enters] if sign > 0 else order[enters]
                if sign * (f[i] - f[j]) >= 1:
                    break
                k = rank[j] + 1 if sign > 0 else n - rank[j]
                while k <= n:
                    tree[k] += 1
                    k += k & -k
                enters += 1
            k = rank[i] if sign > 0 else n - 1 - rank[i]
            while k > 0:
                gradient[i] -= sign * tree[k]
                k -= k & -k
        if sign > 0:
            pairs = -gradient.sum()
    return pairs + f @ gradient, gradient


def plain_bundle(X: np.ndarray, y: np.ndarray, C: float) -> float:
    """The objective that cutting planes reach."""
    rank = np.argsort(np.argsort(y))
    planes = np.zeros((0, X.shape[1]))
    offsets = np.zeros(0)
    w = np.zeros(X.shape[1])
    best = np.inf
    solvers: Any = clarabel  # its type stubs are incomplete
    options = solvers.DefaultSettings()
    options.verbose = False
    while True:
        loss, gradient = hinges(X @ w, rank)
        best = min(best, w @ w / 2 + C * loss)
        planes = np.vstack([planes, C * (gradient @ X)])
        offsets = np.append(offsets, C * loss - planes[-1] @ w)
        k = len(offsets)
        P = sparse.csc_matrix(np.triu(planes @ planes.T))
        A = sparse.csc_matrix(np.vstack([np.ones((1, k)), -np.eye(k)]))
        cones = [solvers.ZeroConeT(1), solvers.NonnegativeConeT(k)]
        right = np.append(1.0, np.zeros(k))
        solver = solvers.DefaultSolver(P, -offsets, A, right, cones, options)
        weights = np.maximum(solver.solve().x, 0)
        w = -planes.T @ (weights / weights.sum())
        if best - offsets @ weights / weights.sum() + w @ w / 2 <= GAP * best:
            return float(best)


def ours(X: np.ndarray, y: np.ndarray, C: float) -> float:
    """The objective of SVMRank at its default tolerance."""
    return SVMRank(C=C, kernel="linear").fit(X, y).objective_


# ---- Given pairs


def listed(m: int) -> tuple[Pairs, np.ndarray]:
    """m comparisons of 2,000 items with ten features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 10))
    first = rng.integers(2000, size=m)
    second = (first + rng.integers(1, 2000, m)) % 2000
    score = X @ rng.normal(size=10) + rng.normal(size=2000)
    y = np.sign(score[first] - score[second]).astype(int)
    return Pairs(X, np.column_stack([first, second])), y


def ours_listed(pairs: Pairs, y: np.ndarray) -> float:
    return SVMRank(C=1.0, kernel="linear").fit(pairs, y).objective_


def liblinear(pairs: Pairs, y: np.ndarray) -> float:
    """The objective of LinearSVC on the differences, half of them with flipped sign."""
    turned = np.where(np.arange(len(y)) % 2, 1, -1)
    D = pairs.differences() * y[:, None]
    model = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-6, max_iter=20_000)
    w = model.fit(D * turned[:, None], turned).coef_[0]
    return float(w @ w / 2 + np.maximum(0, 1 - D @ w).sum())


def prepared(call: Callable, make: Callable, size: int) -> Callable[[], float]:
    return partial(call, *make(size))


def growth(call: Callable[[], float]) -> float:
    """Growth in MB of the peak resident size during the second run of a call."""
    count_peak_from_here()
    before = peak_kilobytes()
    call()
    return (peak_kilobytes() - before) / 1024


def rows(make: Callable, sizes: list[int], ours: Callable, plain: Callable) -> list:
    """One row per size."""
    table = []
    for call in (ours, plain):
        prepared(call, make, sizes[0])()  # Compile before timing.
    for size in sizes:
        calls = [prepared(call, make, size) for call in (ours, plain)]
        results = [processor_seconds(call, 3, 2) for call in calls]
        (seconds, objective), (theirs, best) = results
        memory = [growth(call) for call in calls]
        excess = f"{best / objective - 1:+.0e}"
        table.append([size, seconds, theirs, seconds / theirs, *memory, excess])
        print(*table[-1], flush=True)
    return table


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    head = [
        "ours s",
        "other s",
        "ours / other",
        "ours MB",
        "other MB",
        "other objective",
    ]
    sizes = [300, 3000] if quick else [300, 3000, 5000, 20_000]
    table = rows(one_query, sizes, ours, plain_bundle)
    print(markdown_table(["items of one query", *head], table))
    sizes = [1000, 10_000, 100_000]
    table = rows(listed, sizes, ours_listed, liblinear)
    print(markdown_table(["given pairs", *head], table))


if __name__ == "__main__":
    main()
