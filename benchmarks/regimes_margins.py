"""MarginQP, MarginLP and separability over numbers of features and pairs, against the
best peer each.

QP: scikit-learn's SVC with a linear kernel and C = 1e6 on the flipped data, at its
default tolerance. LP: HiGHS on all rows, its interior point and its simplex method on
the dual; the faster one counts. Both objectives are printed relative to ours; "-"
stands for a peer that is left out, since it takes minutes. Seconds are of the
processor.

    python benchmarks/regimes_margins.py            # some ten minutes
    python benchmarks/regimes_margins.py --quick    # up to 5,000 pairs of 50 features
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _measure import markdown_table, peak_megabytes
from margins import METHODS, distance_of, mu_of, problem

from preflearn.margins import separability

FEATURES = (10, 50, 200, 500)
PAIRS = (500, 5_000, 20_000, 100_000)
PEERS = {
    "MarginQP": ["SVC"],
    "MarginLP": ["LP, HiGHS interior point, all rows", "LP, HiGHS simplex, dual"],
}
LARGEST = 20_000, 1e6  # pairs, and features times pairs, that a peer is run on


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least processor time of some calls, since others may use the machine, and the
    last result."""
    taken = []
    result = None
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        taken.append(time.process_time() - start)
    return min(taken), result


def prepared(method: str, m: int, p: int) -> Callable[[], object]:
    """A call without arguments: this method on this problem."""
    data = problem(m, p)
    return lambda: METHODS[method](*data)


def regime(ours: str, m: int, p: int) -> list[object]:
    """One line of the table."""
    data = problem(m, p)
    objective = distance_of if ours == "MarginQP" else mu_of
    repeats = 3 if m * p <= 1e5 else 1
    seconds, weights = timed(lambda: METHODS[ours](*data), repeats)
    line: list[object] = [ours[-2:], p, m, seconds] + ["-"] * 4
    if m <= LARGEST[0] and m * p <= LARGEST[1]:
        runs = {
            name: timed(lambda name=name: METHODS[name](*data), repeats)
            for name in PEERS[ours]
        }
        best = min(runs, key=lambda name: runs[name][0])
        reached = objective(weights, *data)
        error = (objective(runs[best][1], *data) - reached) / reached
        line[4:] = [best, runs[best][0], seconds / runs[best][0], f"{error:+.0e}"]
    return [
        *line,
        peak_megabytes(prepared, ours, m, p),
        timed(lambda: separability(*data), 1)[0],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="up to 5,000 pairs of 50 features"
    )
    quick = parser.parse_args().quick
    np.seterr(all="ignore")  # of peers
    header = [
        "program",
        "features",
        "pairs",
        "ours s",
        "peer",
        "peer s",
        "ours / peer",
        "peer's objective",
    ]
    print(markdown_table([*header, "ours MB", "separability s"], []))
    for ours in PEERS:
        for p in FEATURES[:2] if quick else FEATURES:
            for m in PAIRS[:2] if quick else PAIRS:
                print(
                    markdown_table(regime(ours, m, p), []).splitlines()[0], flush=True
                )


if __name__ == "__main__":
    main()
