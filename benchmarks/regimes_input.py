"""What handles large input: pairs, labels, measures, ratings and files, each against a
peer or a limit.

python benchmarks/regimes_input.py             up to 10,000,000 pairs; needs 3 GB
python benchmarks/regimes_input.py --quick     a tenth of that
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import rdata
from _measure import markdown_table
from numba import njit
from scipy import sparse
from sklearn.metrics import roc_curve
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.core import ComparisonEstimator
from preflearn.core.estimator import check_asked
from preflearn.core.kernels import kernel_matrix
from preflearn.datasets import fetch, load_nba
from preflearn.matches import Matches
from preflearn.metrics import (
    best_threshold,
    comparison_auc,
    comparison_loss,
    comparison_roc,
    disagreement_error,
    log_loss,
    ranking_loss,
    threshold,
)
from preflearn.pairs import Pairs
from preflearn.ratings import Elo, Glicko

REPEATS = 2
Call = Callable[[], object]


def seconds(calls: list[Call]) -> list[float]:
    """The least of several runs of each, in turns, in CPU seconds: others may load the
    machine."""
    for call in calls:
        call()
    taken = []
    for _ in range(REPEATS):
        taken.append([])
        for call in calls:
            start = time.process_time()
            call()
            taken[-1].append(time.process_time() - start)
    return np.min(taken, axis=0).tolist()


def megabytes(call: Call) -> float:
    """By how much the resident memory grows at most during a call (Linux), its result
    counted."""
    Path("/proc/self/clear_refs").write_text("5")  # forgets the high-water mark
    before = status("VmRSS")
    result = call()
    growth = status("VmHWM") - before
    del result
    return growth / 1024


def status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


# ---- Scores of pairs


class ByFirstFeature(ComparisonEstimator):
    """r(x) = x_1, which costs nothing: what is left is the work for pairs."""

    def fit(self, pairs, y):
        self.n_features_in_ = pairs.shape[2]
        return self

    def rank_function(self, X):
        return check_asked(self, X)[:, 0]


def compared(m: int) -> tuple[ByFirstFeature, Pairs, np.ndarray]:
    rng = np.random.default_rng(0)
    n = m // 100
    first = rng.integers(0, n, m)
    pairs = Pairs(
        rng.standard_normal((n, 2)),
        np.column_stack([first, (first + rng.integers(1, n, m)) % n]),
    )
    return (
        ByFirstFeature().fit(pairs, None),
        pairs,
        rng.integers(-1, 2, m).astype(np.int8),
    )


def scored(m: int, what: str, whose: str) -> Call:
    model, pairs, y = compared(m)
    scores = pairs.items[:, 0]
    index = pairs.index

    def differences():
        return scores[index[:, 0]] - scores[index[:, 1]]

    def labels():
        d = differences()
        return (d > 1).astype(np.int8) - (d < -1).astype(np.int8)

    peers = {
        "decision_function": differences,
        "predict": labels,
        "score": lambda: (labels() == y).mean(),
    }
    arguments = (pairs, y) if what == "score" else (pairs,)
    return (
        (lambda: getattr(model, what)(*arguments)) if whose == "ours" else peers[what]
    )


# ---- Measures


def measured(m: int, what: str, whose: str) -> Call:
    rng = np.random.default_rng(0)
    d = rng.standard_normal(m)
    y = threshold(d + 0.5 * rng.standard_normal(m), 0.6)
    labels = threshold(d, 0.6)
    if what == "comparison_loss":
        if whose == "ours":
            return lambda: comparison_loss(y, labels)
        return lambda: np.count_nonzero(y != labels) / len(y)
    measure = {"comparison_auc": comparison_auc, "comparison_roc": comparison_roc}.get(
        what, best_threshold
    )
    if whose == "ours":
        return lambda: measure(y, d)
    return lambda: roc_curve(y * d > 0, np.abs(d), drop_intermediate=False)


def forecast(m: int, what: str, whose: str) -> Call:
    rng = np.random.default_rng(0)
    if what.endswith("ties"):
        p = rng.dirichlet([1.0, 1.0, 1.0], m)
        y = rng.integers(-1, 2, m).astype(np.int8)
        peer = lambda: -np.log(p[np.arange(m), y + 1]).mean()  # noqa: E731
    else:
        p = rng.random(m)
        y = rng.choice(np.array([-1, 1], dtype=np.int8), m)
        peer = lambda: -np.log(np.where(y > 0, p, 1 - p)).mean()  # noqa: E731
    return (lambda: log_loss(y, p)) if whose == "ours" else peer


@njit
def merge_inversions(values):
    """Inversions of an array by a merge sort, plain and compiled."""
    held = np.empty_like(values)
    total = 0
    width = 1
    n = len(values)
    while width < n:
        for start in range(0, n - width, 2 * width):
            middle = start + width
            end = min(start + 2 * width, n)
            held[start:middle] = values[start:middle]
            i = start
            j = middle
            k = start
            while i < middle:
                if j < end and values[j] < held[i]:
                    values[k] = values[j]
                    j += 1
                else:
                    values[k] = held[i]
                    total += j - middle
                    i += 1
                k += 1
        width *= 2
    return total


def ranked(n: int, what: str, whose: str) -> Call:
    a, b = np.random.default_rng(0).standard_normal((2, n))
    if whose == "ours":
        measure = disagreement_error if what == "disagreement_error" else ranking_loss
        return lambda: measure(a, b)
    return lambda: merge_inversions(b[np.argsort(a)]) / math.comb(n, 2)


# ---- Kernels


def gaussian(n: int, p: int, what: str, whose: str) -> Call:
    X = np.random.default_rng(0).standard_normal((n, p))
    if whose == "ours":
        return lambda: kernel_matrix("rbf", X, X, gamma=0.1)
    return lambda: rbf_kernel(X, gamma=0.1)


# ---- Pairs of queries


def queried(queries: int, size: int, what: str, whose: str) -> Call:
    scores = np.random.default_rng(0).standard_normal(queries * size)
    qid = np.repeat(np.arange(queries), size)
    X = np.zeros((queries * size, 1))

    def peer():  # for queries of one size only
        items = np.argsort(qid, kind="stable").reshape(-1, size)
        first, second = np.triu_indices(size, 1)
        index = np.stack([items[:, first].ravel(), items[:, second].ravel()], axis=1)
        y = np.sign(scores[index[:, 0]] - scores[index[:, 1]]).astype(np.int8)
        return index[y != 0], y[y != 0]

    build = Pairs.from_scores if what == "from_scores" else Pairs.from_rankings
    return (lambda: build(X, scores, qid)) if whose == "ours" else peer


# ---- Ratings


def season(N: int, players: int) -> tuple[Matches, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    first = rng.integers(0, players, N)
    ids = np.column_stack([first, (first + rng.integers(1, players, N)) % players])
    rows = (np.tile([1.0, -1.0], N), ids.ravel(), np.arange(0, 2 * N + 1, 2))
    names = [f"player {k}" for k in range(players)]
    design = sparse.csr_array(rows, shape=(N, players))
    return (
        Matches(design, np.arange(N, dtype=float), names),
        rng.integers(-1, 2, N),
        ids,
    )


@njit
def plain_elo(ids, y, ratings, k):
    """Elo's rule with one K on arrays, and the ratings before each match."""
    before = np.empty(ids.shape)
    for row in range(len(y)):
        a, b = ids[row]
        before[row, 0], before[row, 1] = ratings[a], ratings[b]
        surprise = (y[row] + 1) / 2 - 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
        ratings[a] += k * surprise
        ratings[b] -= k * surprise
    return before


def rated(N: int, players: int, what: str, whose: str) -> Call:
    matches, y, ids = season(N, players)
    if whose == "peer":
        return lambda: plain_elo(ids, y, np.full(players, 1200.0), 20.0)
    system = Glicko if what.startswith("Glicko") else Elo
    if what.endswith("fit"):
        return lambda: system().fit(matches, y)
    parts = [(matches[row : row + 1], y[row : row + 1]) for row in range(N)]

    def one_by_one():
        rating = system()
        for match, outcome in parts:
            rating.partial_fit(match, outcome)

    return one_by_one


# ---- Files


def loaded(games: int, what: str, whose: str) -> Call:
    (path,) = fetch("nba", progress=False)
    return load_nba if whose == "ours" else lambda: rdata.read_rda(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    # rdata's
    warnings.filterwarnings("ignore", message="Missing constructor for R class")
    m = 1_000_000 if parser.parse_args().quick else 10_000_000
    rows = []
    for make, sizes, names, peer in [
        (loaded, (69_377,), ("load_nba, kept",), "rdata.read_rda"),
        (scored, (m,), ("decision_function", "predict", "score"), "scores[index]"),
        (measured, (m,), ("comparison_loss",), "numpy"),
        (
            measured,
            (m,),
            ("comparison_auc", "comparison_roc", "best_threshold"),
            "sklearn's roc_curve",
        ),
        (forecast, (m,), ("log_loss", "log_loss, ties"), "numpy, without checks"),
        (
            ranked,
            (m // 10,),
            ("disagreement_error", "ranking_loss"),
            "compiled merge sort",
        ),
        *((gaussian, (2000, p), ("rbf",), "sklearn's rbf_kernel") for p in (2, 10, 50)),
        (
            queried,
            (m // 100, 2),
            ("from_scores", "from_rankings"),
            "numpy, equal sizes",
        ),
        (
            queried,
            (m // 100, 10),
            ("from_scores", "from_rankings"),
            "numpy, equal sizes",
        ),
        (rated, (7 * m // 10, 10_000), ("Elo.fit", "Glicko.fit"), "compiled Elo"),
        (
            rated,
            (8000, 200),
            ("Elo, a match a call", "Glicko, a match a call"),
            "compiled Elo, one call",
        ),
    ]:
        for name in names:
            calls = [make(*sizes, name, whose) for whose in ("ours", "peer")]
            ours, theirs = seconds(calls)
            memory = [megabytes(call) for call in calls]
            print(name, file=sys.stderr)
            rows.append(
                [
                    name,
                    ", ".join(map(str, sizes)),
                    ours,
                    peer,
                    theirs,
                    ours / theirs,
                    *memory,
                ]
            )
    header = [
        "routine",
        "size",
        "ours s",
        "peer",
        "peer s",
        "ours / peer",
        "ours MB",
        "peer MB",
    ]
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
