"""Measure seconds and memory of each main method by the number of comparisons.

    python benchmarks/scaling.py                    # about ten minutes, up to 6 GB
    python benchmarks/scaling.py --only Elo         # some methods; the other rows are kept

The script writes data/scaling.csv. The sizes cover three decades, with at least seven
sizes. Each size runs in a fresh process, on one thread, after a small run that compiles
the code. A run is left out if, extrapolated from the last two sizes, it would take more
than a minute. Memory includes the data and the fit: it is the peak during the fit minus
the memory of the process before the data were made.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _measure import (
    count_peak_from_here,
    in_process,
    peak_kilobytes,
    processor_seconds,
    script_parser,
    write_table,
)
from scipy import sparse
from threadpoolctl import threadpool_limits

from preflearn.analogy import AnKerRank
from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Matern12,
    OrdinalProbit,
    one_step_ahead,
)
from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path
from preflearn.pursuit import RankingPursuit, RankRLS
from preflearn.ranking import Davidson, PlackettLuce, bradley_terry
from preflearn.ratings import Elo
from preflearn.svm import LogisticCompare, SVMCompare, SVMRank
from preflearn_book.studies.ch13_simulated import simulate_matches

TABLE = Path(__file__).parents[1] / "data" / "scaling.csv"
SECONDS = 60.0  # limit of one run
QUICK = 2.0  # seconds; a faster run is repeated, and the minimum of three counts
STEP = 0.5  # step of the logarithm of the size; seven sizes in three decades
DECADES = 3.0
FEATURES = 10  # per item
QUERY = 20  # items per query
RANKED = 5  # items per ranking
Call = Callable[[], object]


def couples(m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """m random pairs of n items."""
    first = rng.integers(n, size=m)
    return np.column_stack([first, (first + rng.integers(1, n, m)) % n])


def matches(m: int, ahead: bool = False) -> Call:
    n = max(m // 21, 10)
    played, y, _, margin = simulate_matches(m, n, rng=0)
    model = DynamicComparisons(
        Constant(0.5) + Matern12(0.25, 3652.5),
        OrdinalProbit(margin=margin),
        n_threads=1,
    )
    return lambda: (
        one_step_ahead(model, played, y, m // 2) if ahead else model.fit(played, y)
    )


def rated(m: int) -> Call:
    played, y, _, _ = simulate_matches(m, max(m // 21, 10), rng=0)
    return lambda: Elo().fit(played, y)


def named(m: int, counted: bool) -> Call:
    rng = np.random.default_rng(0)
    n = max(m // 50, 10)
    # so that no player loses all matches, or wins all
    index = couples(m, n, rng)
    worth = rng.normal(0, 0.5, n)
    lead = worth[index[:, 0]] - worth[index[:, 1]] + rng.logistic(size=m)
    if counted:
        index = np.where(lead[:, None] > 0, index, index[:, ::-1])
        wins = sparse.coo_array((np.ones(m), index.T), (n, n)).tocsr()
        return lambda: bradley_terry(wins)
    return lambda: Davidson(alpha=0.1).fit(
        index, np.where(np.abs(lead) < 0.5, 0, np.sign(lead)).astype(int)
    )


def featured(
    m: int, fit: Callable[[Pairs, np.ndarray], object], ties: float = 0.0
) -> Call:
    rng = np.random.default_rng(0)
    n = max(m // 10, 20)
    X = rng.normal(size=(n, FEATURES))
    index = couples(m, n, rng)
    score = X @ np.arange(1, FEATURES + 1) / 10 + np.sin(X[:, 0])
    lead = score[index[:, 0]] - score[index[:, 1]] + rng.normal(size=m)
    pairs = Pairs(X, index)
    y = np.where(np.abs(lead) < ties, 0, np.sign(lead)).astype(int)
    return lambda: fit(pairs, y)


def graded(m: int, learner: Callable[[], Any], query: int = QUERY) -> Call:
    """Queries with enough items for m pairs."""
    rng = np.random.default_rng(0)
    queries = max(round(m / (query * (query - 1) / 2)), 1)
    X = rng.random((query * queries, FEATURES))
    score = (
        X @ np.arange(1, FEATURES + 1) / 3
        + np.sin(6 * X[:, 0])
        + rng.normal(size=len(X))
    )
    qid = np.repeat(np.arange(queries), query)
    return lambda: learner().fit(X, score, qid=qid)


def one_set(m: int) -> Call:
    """One ranking with enough items for m pairs."""
    return graded(
        m, lambda: AnKerRank(random_state=0), round(0.5 + np.sqrt(0.25 + 2 * m))
    )


def ordered(m: int) -> Call:
    """Rankings that imply ten pairs each. The number of items grows as for pairs."""
    rng = np.random.default_rng(0)
    n = max(m // 50, 10)
    worth = rng.normal(size=n)
    rankings = []
    for _ in range(m // 10):
        items = rng.choice(n, RANKED, replace=False)
        rankings.append(
            items[np.argsort(-worth[items] + rng.gumbel(size=RANKED))].tolist()
        )
    return lambda: PlackettLuce().fit(rankings)


class Method(NamedTuple):
    """A method: its minimum number of comparisons, its data and a call that fits, a
    description of the data, and the step of sizes."""

    least: int
    make: Callable[[int], Call]
    data: str
    step: float = STEP


TEAMS = "21 matches a player"
FEW = "10 features, an item for 10 pairs"
QUERIES = "queries of 20 items"
METHODS = {
    "Elo": Method(1_000, rated, TEAMS),
    "Bradley-Terry": Method(1_000, lambda m: named(m, True), "an item for 50 pairs"),
    "Davidson": Method(1_000, lambda m: named(m, False), "an item for 50 pairs"),
    "Plackett-Luce": Method(1_000, ordered, "rankings of 5, an item for 50 pairs"),
    "dynamic model": Method(1_000, matches, TEAMS),
    "one step ahead": Method(
        100, lambda m: matches(m, True), TEAMS + ", the later half forecast"
    ),
    "LogisticCompare, linear": Method(
        1_000,
        lambda m: featured(
            m, lambda p, y: LogisticCompare(random_state=0).fit(p, y), 1.5
        ),
        FEW,
    ),
    "SVMRank, linear": Method(
        1_000,
        lambda m: featured(m, lambda p, y: SVMRank(C=0.1, kernel="linear").fit(p, y)),
        FEW,
    ),
    "SVMCompare, rbf": Method(
        100, lambda m: featured(m, lambda p, y: SVMCompare().fit(p, y), 1.5), FEW
    ),
    "ranking SVM's path, rbf": Method(
        30, lambda m: featured(m, lambda p, y: ranksvm_path(p, y, lambda_min=1.0)), FEW
    ),
    "RankRLS, linear": Method(
        1_000, lambda m: graded(m, lambda: RankRLS(kernel="linear")), QUERIES
    ),
    "RankRLS, rbf": Method(200, lambda m: graded(m, RankRLS), QUERIES, 0.4),
    "ranking pursuit, rbf": Method(
        200, lambda m: graded(m, RankingPursuit), QUERIES + ", 10 functions", 0.4
    ),
    "AnKer-rank": Method(50, one_set, "one set of items, C from the path", 0.25),
}


def resident_kilobytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@threadpool_limits.wrap(limits=1)
def timed(name: str, m: int) -> tuple[float, float]:
    """Processor seconds of a fit to m comparisons, and MB of the data and the fit."""
    warnings.simplefilter("ignore")
    make = METHODS[name].make
    make(1_000)()  # a small run that compiles the code
    before = resident_kilobytes()
    call = make(m)
    count_peak_from_here()
    taken, _ = processor_seconds(call, 3, QUICK)
    return taken, (peak_kilobytes() - before) / 1024


def rows(name: str) -> list[list[object]]:
    """The rows of one method, until a run would take too long."""
    found = list[float]()
    table = list[list[object]]()
    least, _, _, step = METHODS[name]
    for m in (
        np.round(least * 10 ** np.arange(0, DECADES + step / 2, step))
        .astype(int)
        .tolist()
    ):
        if len(found) > 1 and found[-1] * max(found[-1] / found[-2], 1.0) > SECONDS:
            break
        if (result := in_process(timed, name, m, limit=10 * SECONDS)) is None:
            break
        found.append(result[0])
        row = [name, m, f"{result[0]:.3g}", f"{result[1]:.3g}", METHODS[name].data]
        print(*row, sep=", ", flush=True)
        table.append(row)
    return table


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=METHODS, help="the other rows are kept"
    )
    only = parser.parse_args().only
    header = ["method", "comparisons", "seconds", "megabytes", "data"]
    table = pd.DataFrame(
        [row for name in only or METHODS for row in rows(name)], columns=header
    )
    if only:
        kept = pd.read_csv(TABLE, comment="#", dtype=str)
        table = pd.concat([kept.loc[~kept["method"].isin(only)], table])
        places = [list(METHODS).index(name) for name in table["method"]]
        table = table.iloc[np.argsort(places, kind="stable")]
    write_table(TABLE, table, "scaling.py")


if __name__ == "__main__":
    main()
