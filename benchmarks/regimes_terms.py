"""Sums of Matern 5/2 terms by EP against kickscore 0.2.0: an iteration, memory a match,
a first call.

python benchmarks/regimes_terms.py              ten minutes; ours alone where kickscore is not installed
python benchmarks/regimes_terms.py --quick      1 to 4 terms of 1,000 matches

All matches are at times of their own, so no two steps share a transition; CPU seconds
of one thread, the least of three turns. Both stand at the same pseudo-observations
after as many plain iterations, so the largest difference of a mean or a standard
deviation says that the answers are the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial, reduce
from operator import add
from pathlib import Path

import numpy as np
from _kickscore import Peer, add_peer_option
from _measure import peak_megabytes, print_tables
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import Covariance, DynamicComparisons, Matern52, Probit
from preflearn.matches import Matches

SPAN = 3000.0
VARIANCE = 0.5
SWEEPS = 10
TURNS = 3
HEADERS = {
    "An iteration": "terms|numbers in a state|ours s|kickscore s|ratio|moments differ by",
    "Memory": "terms|ours, a fit and a forecast, kB a match|kickscore kB a match",
    "A first call": "terms|CPU s without compiled code on the disk|with it",
}

warnings.simplefilter("ignore", ConvergenceWarning)  # fits that are cut off for timing


def lengthscales(terms: int) -> list[float]:
    return [100.0 * (k + 1) for k in range(terms)]


def covariance(terms: int) -> Covariance:
    return reduce(
        add, [Matern52(VARIANCE / terms, length) for length in lengthscales(terms)]
    )


def problem(n: int) -> tuple[Matches, np.ndarray, np.ndarray]:
    """Matches of 25 players to a thousand of them, their outcomes, and who met whom."""
    rng = np.random.default_rng(0)
    players = max(n // 40, 4)
    first = rng.integers(0, players, n)
    pairs = np.column_stack([first, (first + rng.integers(1, players, n)) % players])
    X = np.zeros((n, players))
    X[np.arange(n)[:, None], pairs] = [1.0, -1.0]
    names = [str(k) for k in range(players)]
    return (
        Matches(X, np.sort(rng.uniform(0, SPAN, n)), names),
        rng.choice([-1, 1], n),
        pairs,
    )


def fitted(
    terms: int, matches: Matches, y: np.ndarray, iterations: int
) -> DynamicComparisons:
    model = DynamicComparisons(
        covariance(terms),
        Probit(),
        rate=1.0,
        tol=1e-300,
        max_iter=iterations,
        n_threads=1,
    )
    return model.fit(matches, y)


def sweep_seconds(terms: int, matches: Matches, y: np.ndarray) -> float:
    taken = []
    for _ in range(TURNS):
        begin = time.process_time()
        fitted(terms, matches, y, 1)
        middle = time.process_time()
        fitted(terms, matches, y, SWEEPS + 1)
        taken.append((time.process_time() - middle - (middle - begin)) / SWEEPS)
    return min(taken)


def with_memory(terms: int, n: int) -> Callable[[], object]:
    """A fit and a forecast; compiled code is loaded before."""
    fitted(terms, *problem(100)[:2], 2).predict_proba(problem(100)[0])
    matches, y, _ = problem(n)
    return lambda: fitted(terms, matches, y, 3).predict_proba(matches)


def against_peer(terms: int, n: int, python: str) -> tuple[float, float, float]:
    """CPU seconds of an iteration, kB a match, and by how much moments differ."""
    matches, y, pairs = problem(n)
    kernels = [
        ("Matern52", (VARIANCE / terms, length)) for length in lengthscales(terms)
    ]
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(
            python,
            Path(folder),
            pairs,
            y,
            matches.time,
            {"kernels": kernels, "margin": None},
        )
        peer.iterate(1)  # compiles
        seconds = [peer.iterate(2)["processor"] / 2 for _ in range(TURNS)]
        megabytes = peer.iterate(1)["megabytes"]
        model = fitted(terms, matches, y, 20)
        sites = np.empty((n, 2, 2))
        rows = np.arange(n)[:, None]
        forward = matches.design.data.reshape(n, 2) > 0
        sites[rows, np.where(forward, 0, 1)] = model.pseudo_observations_.reshape(
            n, 2, 2
        )
        _, theirs = peer.at(sites)
        peer.close()
    ours = np.empty((n, 2, 2))
    for player, name in enumerate(matches.features):
        at, side = np.nonzero(pairs == player)
        ours[at, side] = np.stack(model.scores(name, matches.time[at]), axis=1)
    return min(seconds), 1000 * megabytes / n, float(np.abs(ours - theirs).max())


def first_call(terms: int) -> list[float]:
    """CPU seconds of a process that fits 300 matches and forecasts, without compiled
    code and with it."""
    code = f"import regimes_terms as r; r.with_memory({terms}, 300)()"
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            before = sum(os.times()[2:4])
            subprocess.run(
                [sys.executable, "-c", code],
                env=os.environ | {"NUMBA_CACHE_DIR": folder},
                cwd=Path(__file__).parent,
                check=True,
            )
            taken.append(sum(os.times()[2:4]) - before)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    add_peer_option(parser)
    chosen = parser.parse_args()
    n, sizes = (1000, (1, 2, 4)) if chosen.quick else (5000, (1, 2, 4, 8, 12))
    tables: dict[str, list] = {title: [] for title in HEADERS}
    for terms in sizes:
        matches, y, _ = problem(n)
        fitted(terms, matches, y, 2)  # loads compiled code
        theirs, kilobytes, apart = (
            against_peer(terms, n, chosen.peer)
            if chosen.peer
            else (np.nan, np.nan, np.nan)
        )
        ours = sweep_seconds(terms, matches, y)
        tables["An iteration"].append(
            [terms, 3 * terms, ours, theirs, ours / theirs, f"{apart:.1e}"]
        )
        memory = 1000 * peak_megabytes(partial(with_memory, terms, n)) / n
        tables["Memory"].append([terms, memory, kilobytes])
        tables["A first call"].append([terms, *first_call(terms)])
        print(terms, "terms", flush=True)
    print_tables(HEADERS, tables)


if __name__ == "__main__":
    main()
