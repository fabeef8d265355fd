"""Compare SVMCompare with the best other method at equal accuracy.

The problems are a grid of sizes, costs, and kernel widths.

python benchmarks/svm_grid.py            the whole grid: half an hour, up to 5 GB
python benchmarks/svm_grid.py --quick    up to 2,000 pairs

There are two other methods. One is libsvm on the Gram matrix of the flipped pairs, built
from the kernel of the items. It uses the largest tolerance of 1e-3, 1e-4, ... for which
the relative duality gap is at most 1e-6; only this fit is timed. The other is the
interior-point method in the rank of the Gram matrix of the items.

Seconds are processor seconds of this process. A fit of libsvm is stopped after about a
minute; the table then shows its gap. libsvm is not run with more than 8,000 flipped
pairs, whose matrix alone takes 500 MB. The interior point is not run beyond a rank of
2,000. MB is the growth of the peak memory of a fresh process in the fit of preflearn,
next to the size of an m x m matrix.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from _measure import markdown_table, peak_megabytes, processor_seconds, script_parser
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC
from svm import problem

from preflearn.core.kernels import pivoted_features
from preflearn.pairs import Incidence, Pairs
from preflearn.solvers.hinge_dual import HingeTerms
from preflearn.solvers.interior_point import Hinges, minimise
from preflearn.svm import SVMCompare
from preflearn.svm.base import preferences_first
from preflearn.svm.differences import FeatureGram, HingeMatrix

GAP = 1e-6
FEATURES = 10
SIZES = [
    (200, 500),
    (5000, 500),
    (500, 2000),
    (2000, 2000),
    (5000, 2000),
    (1000, 5000),
    (5000, 5000),
]
LARGE = [(200, 20000), (1000, 20000), (2000, 20000)]
COSTS = [0.1, 10.0, 1000.0]
WIDTHS = [0.02, 0.1, 0.5]
STEPS = 3e7  # steps of libsvm times flipped pairs, about one second


def compare(pairs: Pairs, y: np.ndarray, C: float, gamma: float) -> float:
    """SVMCompare of preflearn."""
    return SVMCompare(C, gamma=gamma, tol=GAP).fit(pairs, y).dual_gap_


def libsvm(
    pairs: Pairs, y: np.ndarray, C: float, gamma: float, tol: float, patience: float
) -> tuple[SVC, np.ndarray]:
    flipped, labels = pairs.flipped(y)
    K = pairwise_kernels(pairs.items, metric="rbf", gamma=gamma)
    every = np.arange(len(labels))
    gram = flipped.B.gram(K).block(every, every)
    limit = int(patience * STEPS / len(labels))
    model = SVC(C=C, kernel="precomputed", tol=tol, cache_size=1000, max_iter=limit)
    return model.fit(gram, labels), K


def gap_of_libsvm(
    model: SVC, K: np.ndarray, pairs: Pairs, y: np.ndarray, C: float
) -> float:
    flipped, labels = pairs.flipped(y)
    v = np.zeros(len(labels))
    v[model.support_] = model.dual_coef_[0]
    z = flipped.B.differences(K @ flipped.B.adjoint(v))
    squared = float(v @ z)
    bias = float(model.intercept_[0])
    objective = squared / 2 + C * float(np.maximum(0, 1 - labels * (z + bias)).sum())
    return (objective - float(np.abs(v).sum()) + squared / 2) / objective


def best_libsvm(
    pairs: Pairs, y: np.ndarray, C: float, gamma: float, patience: float
) -> tuple[float, float]:
    """Seconds and gap of the fastest fit that is accurate enough, or of the last fit."""
    taken = np.inf
    gap = np.inf
    # Larger tolerances are never enough there.
    for tol in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)[0 if C < 1 else 2 :]:
        start = time.process_time()
        model, K = libsvm(pairs, y, C, gamma, tol, patience)
        taken = time.process_time() - start
        gap = gap_of_libsvm(model, K, pairs, y, C)
        if gap <= GAP or taken > patience or model.fit_status_ != 0:
            break
    return taken, gap


class Plain(FeatureGram):
    """Use the earlier products of the interior point, without symmetry."""

    __slots__ = ()

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        return self.L.T @ (self.B.laplacian(weights) @ self.L)


def interior(pairs: Pairs, y: np.ndarray, C: float, gamma: float) -> float:
    """The earlier SVMCompare, which always used the interior point."""
    order = preferences_first(y)
    rows = HingeTerms.from_labels(y[order], np.full(len(y), C), biased=True)
    ids, B = pairs.B[order].compacted()
    L, _ = pivoted_features(
        pairwise_kernels(pairs.items[ids], metric="rbf", gamma=gamma)
    )
    operator = HingeMatrix(Plain(Incidence(B.index, len(ids)), L), rows)
    return minimise(Hinges(operator, rows.cost, rows.label), GAP).primal_gap


def fresh_fit(n: int, m: int, C: float, gamma: float) -> Callable[[], float]:
    """A fit whose memory is measured. Compiled code is loaded before."""
    warnings.simplefilter("ignore")
    compare(*problem(50, 30, FEATURES), 1.0, 0.1)
    pairs, y = problem(m, n, FEATURES)
    return lambda: compare(pairs, y, C, gamma)


def short_repr(taken: float, gap: float) -> str:
    if np.isnan(taken):
        return "-"
    return f"{taken:.3g}" if gap <= GAP else f"{taken:.3g} (gap {gap:.0e})"


def line(n: int, m: int, C: float, gamma: float, patience: float) -> list[object]:
    """One row of the grid. Short runs are the best of three."""
    pairs, y = problem(m, n, FEATURES)

    def best(call: Callable[[], tuple[float, float]]) -> tuple[float, float]:
        first = call()
        return min([first] + [call() for _ in range(2 if first[0] < 2 else 0)])

    ours = best(lambda: processor_seconds(lambda: compare(pairs, y, C, gamma)))
    used = min(n, len(np.unique(pairs.index)))
    point = (np.nan, np.nan)
    if used <= 2000:
        point = best(lambda: processor_seconds(lambda: interior(pairs, y, C, gamma)))
    reference = (np.nan, np.nan)
    if len(y) + np.count_nonzero(y == 0) <= 8000:
        reference = best_libsvm(pairs, y, C, gamma, patience)
    good = [taken for taken, gap in (point, reference) if gap <= GAP]
    ratio = f"{ours[0] / min(good):.2f}" if good else "none"
    memory = [peak_megabytes(fresh_fit, n, m, C, gamma), 8e-6 * m**2]
    row = [
        n,
        m,
        C,
        gamma,
        ours[0],
        f"{ours[1]:.0e}",
        short_repr(*reference),
        short_repr(*point),
        ratio,
        *memory,
    ]
    print(markdown_table(row, []).splitlines()[0], file=sys.stderr, flush=True)
    return row


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 2,000 pairs")
    parser.add_argument(
        "--patience", type=float, default=60.0, help="seconds of libsvm, about"
    )
    arguments = parser.parse_args()
    quick = arguments.quick
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        print("set OPENBLAS_NUM_THREADS=1 to compare one thread with one")
    warnings.simplefilter("ignore")
    compare(*problem(50, 30, FEATURES), 1.0, 0.1)  # Compile before timing.
    sizes = [size for size in SIZES + LARGE if not quick or size[1] <= 2000]
    table = [
        line(n, m, C, gamma, arguments.patience)
        for n, m in sizes
        for C in COSTS
        for gamma in WIDTHS
    ]
    header = [
        "items",
        "pairs",
        "C",
        "gamma",
        "ours s",
        "gap",
        "libsvm s",
        "interior point s",
        "ratio",
    ]
    header += ["MB", "m x m MB"]
    print(markdown_table(header, table))


if __name__ == "__main__":
    main()
