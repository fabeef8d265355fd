"""Static models against their peers, and how often their intervals hold the truth.

    python benchmarks/static_models.py            # some five minutes
    python benchmarks/static_models.py --quick    # the smaller sizes, fewer leagues

One thread, processor seconds, the best of two after one, in one run. `slope` is the largest entry of the
gradient of the same objective at what each found: -log-likelihood and 1/2 w·w where the model has a penalty.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import choix
import numpy as np
from _measure import markdown_table
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from preflearn.pairs import Incidence
from preflearn.ranking import Davidson, PlackettLuce, bradley_terry


def timed(call: Callable[[], Any], repeats: int = 2) -> tuple[float, Any]:
    """The least processor time of some calls after one, and the last result."""
    taken, result = [], call()
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        taken.append(time.process_time() - start)
    return min(taken), result


def games(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Players of each game, and who won; a ring of games, both won once, leaves nobody unbeaten."""
    rng = np.random.default_rng(0)
    s, first = rng.normal(size=n), rng.integers(n, size=m - 2 * n)
    index = np.column_stack([first, (first + rng.integers(1, n, m - 2 * n)) % n])
    won = np.where(rng.random(m - 2 * n) < expit(s[index[:, 0]] - s[index[:, 1]]), 1, -1)
    ring = np.tile(np.column_stack([np.arange(n), np.roll(np.arange(n), 1)]), (2, 1))
    return np.vstack([index, ring]), np.concatenate([won, np.ones(n, int), -np.ones(n, int)])


def players(n: int, m: int) -> list[list[object]]:
    """Lines of one size."""
    index, y = games(n, m)
    B = sparse.csr_array(Incidence(index, n).matrix())
    wins = np.where(y[:, None] > 0, index, index[:, ::-1])
    P = sparse.csr_array((np.ones(m), tuple(wins.T)), shape=(n, n))
    data = [tuple(pair) for pair in wins.tolist()]

    def slope(w: np.ndarray, alpha: float) -> float:
        return float(np.abs(B.T @ (y * expit(-y * (B @ w))) - alpha * w).max())

    def logistic(C: float, tol: float) -> Callable[[], np.ndarray]:
        peer = LogisticRegression(C=C, fit_intercept=False, tol=tol, max_iter=10_000)
        return lambda: peer.fit(B, y).coef_[0]

    calls: list[tuple[str, float, Callable[[], np.ndarray]]] = [
        ("bradley_terry, sparse", 0.0, lambda: bradley_terry(P)),
        ("Davidson(1.0), row numbers", 1.0, lambda: Davidson(1.0).fit(index, y).coef_),
        ("scikit-learn, lbfgs, its tol", 1.0, logistic(1.0, 1e-4)),
        ("scikit-learn, lbfgs, tol 1e-8", 1.0, logistic(1.0, 1e-8)),
    ]
    if n <= 1000:  # its arrays are n x n, or its loops Python's
        calls.append(("choix, ilsr_pairwise", 0.0, lambda: choix.ilsr_pairwise(n, data)))
    table = []
    for name, alpha, call in calls:
        seconds, w = timed(call, 2 if n > 1000 or "choix" not in name else 1)
        table.append([n, m, name, seconds, f"{slope(w, alpha):.0e}"])
        print(*table[-1], flush=True)
    return table


def rankings(m: int) -> list[list[object]]:
    """Rankings of five of fifty items."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=50)
    sets = [rng.choice(50, 5, replace=False) for _ in range(m)]
    data = [s[np.argsort(-(theta[s] + rng.gumbel(size=5)))].tolist() for s in sets]
    seconds, ours = timed(lambda: PlackettLuce(1e-6).fit(data).coef_)
    table = [[m, "PlackettLuce", seconds, ""]]
    for name, call in {
        "opt_rankings": lambda: choix.opt_rankings(50, data, alpha=1e-6, tol=1e-8),
        "ilsr_rankings": lambda: choix.ilsr_rankings(50, data, alpha=0.0),
    }.items():
        seconds, theirs = timed(call, 1)
        table.append([m, f"choix, {name}", seconds, f"{np.abs(theirs - theirs.mean() - ours).max():.0e}"])
        print(*table[-1], flush=True)
    return table


def coverage(leagues: int) -> list[list[object]]:
    """Shares of intervals that hold the true score, or difference, over leagues of 10 players."""
    held: dict[str, list[float]] = {}
    for seed in range(leagues):
        rng = np.random.default_rng(seed)
        s = rng.normal(size=10)
        s -= s.mean()
        index = np.repeat(np.column_stack(np.triu_indices(10, 1)), 4, axis=0)
        d = s[index[:, 0]] - s[index[:, 1]]
        weights = np.cumsum([np.exp(-d / 2), np.full(len(d), 0.6), np.exp(d / 2)], axis=0)
        y = (rng.random(len(d)) * weights[-1] > weights).sum(axis=0) - 1
        for name, model in (("", Davidson()), (", bias reduced", Davidson(bias_reduced=True))):
            model.fit(index, y)
            for level in (0.8, 0.95):
                for kind, truth, pairs in (("scores", s, None), ("differences", d[::4], index[::4])):
                    low, high = model.interval(level, pairs).T
                    key = f"{kind} at {level:.2f}{name}"
                    held.setdefault(key, []).append(float(np.mean((low <= truth) & (truth <= high))))
    return [
        [leagues, key, f"{np.mean(v):.3f} ± {np.std(v) / np.sqrt(leagues):.3f}"] for key, v in held.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smaller sizes, fewer leagues")
    quick = parser.parse_args().quick
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sizes = [(1_000, 20_000)] if quick else [(1_000, 20_000), (50_000, 400_000)]
        table = [line for size in sizes for line in players(*size)]
        ranked = rankings(200 if quick else 1000)
        covered = coverage(50 if quick else 500)
    print(markdown_table(["players", "games", "method", "s", "slope"], table), end="\n\n")
    print(markdown_table(["rankings", "method", "s", "largest difference to ours"], ranked), end="\n\n")
    print(markdown_table(["leagues", "intervals", "share that holds"], covered))


if __name__ == "__main__":
    main()
