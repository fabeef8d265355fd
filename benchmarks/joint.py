"""Time the joint posterior of DynamicComparisons against the factorized posterior.

The script also compares it with plain EP by dense matrices. It measures time and peak
memory by numbers of players and matches.

    python benchmarks/joint.py               a quarter of an hour
    python benchmarks/joint.py --quick       one or two sizes per table, without slopes

All fits stop at the default tol and run in turn, each in a fresh process. Memory is the
growth of the peak resident size during the fit, without imports and data. Slopes are
slopes of log seconds in log size. Plain EP has the same fixed point as the joint
posterior, and each sweep takes O(N³) time.

The claim ends at the sizes in the tables, with Probit, two players per match, and pairs
that meet at random. The joint posterior has size limits, which the script prints. If
scores change, the state contains all players between their first and last match, so the
time grows with the square of their number. The factorized posterior has no such limits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _measure import Run, print_tables, run_in_process, script_parser
from _sports import Sport, sport
from scipy import sparse

from preflearn.dynamics import Constant, DynamicComparisons, Matern12, Probit
from preflearn.dynamics.engine.joint import MAX_NUMBERS, MAX_OPERATIONS, MAX_SIZE
from preflearn.matches import Matches

warnings.simplefilter("ignore")
POSTERIORS = "factorized", "joint"
STATIC = Constant(1.0)
MOVING = Constant(0.5) + Matern12(0.5, 100.0)
# Time and memory are joint / factorized, and plain / joint.
RATIOS = "time ratio|memory ratio"
COLUMNS = f"players|matches|factorized, s|factorized, MB|joint, s|joint, MB|{RATIOS}"
HEADERS = {
    "Constant scores": COLUMNS,
    "Scores that change": COLUMNS,
    "Slopes of the joint posterior": "what|by|slope",
    "Plain EP by dense matrices": (
        f"players|matches|plain, s|plain, MB|joint, s|joint, MB|{RATIOS}|difference of evidence"
    ),
    "NBA, Constant + Matern12": "posterior|matches|s|MB|sweeps|evidence",
}
LIMITS = f"""
The claim ends at these sizes. The joint posterior rejects states of more than {MAX_SIZE:,}
numbers and, if scores change, sweeps that keep more than {MAX_NUMBERS:.2g} numbers or take more
than {MAX_OPERATIONS:.2g} operations. Memory is the growth of the peak of a fresh process; a
ratio of memories below {{least}} MB is not shown."""
LEAST_MEGABYTES = 1.0
JOINT_SECONDS = 4  # column of the tables


def league(covariance: Any, n_players: int, n: int) -> Sport:
    """Random matches, ten per day for at most 1,000 days. Some players win more often."""
    rng = np.random.default_rng(0)
    first = rng.integers(n_players, size=n)
    second = (first + rng.integers(1, n_players, n)) % n_players
    scores = rng.normal(size=n_players)
    y = np.sign(scores[first] - scores[second] + rng.normal(size=n))
    days = np.sort(rng.integers(min(1000, 1 + n // 10), size=n)).astype(float)
    rows = np.repeat(np.arange(n), 2)
    columns = np.column_stack([first, second]).ravel()
    design = sparse.csr_array((np.tile([1.0, -1.0], n), (rows, columns)))
    names = [f"p{k}" for k in range(design.shape[1])]
    return Sport(Matches(design, days, names), y, covariance, Probit(), {})


def fitted(data: Sport, posterior: str) -> DynamicComparisons:
    model = DynamicComparisons(
        data.covariance, data.likelihood, posterior=posterior, n_threads=2
    )
    return model.fit(data.matches, data.y)


class Fit(NamedTuple):
    """Evidence and number of sweeps."""

    evidence: float
    sweeps: int


def fit(data: Sport, posterior: str) -> Fit:
    model = fitted(data, posterior)
    return Fit(model.log_marginal_likelihood_, model.n_iter_)


def loaded_fit(data: Sport, posterior: str) -> Callable[[], Fit]:
    """A fit that is measured. Compiled code is loaded before."""
    fit(data._replace(matches=data.matches[:50], y=data.y[:50]), posterior)
    return partial(fit, data, posterior)


def fit_of(covariance: Any, size: tuple[int, int], posterior: str) -> Callable[[], Fit]:
    return loaded_fit(league(covariance, *size), posterior)


def nba_fit(posterior: str) -> Callable[[], Fit]:
    return loaded_fit(sport("NBA"), posterior)


def side_by_side(one: Run, other: Run, *, first_over_second: bool) -> list[Any]:
    """Seconds and MB of both runs, and the ratios of times and of memories."""
    above, below = (one, other) if first_over_second else (other, one)
    memory: Any = "-"
    if below.megabytes >= LEAST_MEGABYTES:
        memory = above.megabytes / below.megabytes
    return [*one[:2], *other[:2], above.seconds / below.seconds, memory]


def compare(covariance: Any, sizes: list[tuple[int, int]]) -> list[list[Any]]:
    rows = []
    for size in sizes:
        runs = [run_in_process(fit_of, covariance, size, name) for name in POSTERIORS]
        rows.append([*size, *side_by_side(*runs, first_over_second=False)])
        print(rows[-1], flush=True)
    return rows


def slope(rows: list[list[Any]], column: int, other: int) -> float:
    """Slopes of log seconds in log size, in the rows with the largest other size."""
    largest = max(
        row[other] for row in rows if [r[other] for r in rows].count(row[other]) > 1
    )
    some = [row for row in rows if row[other] == largest]
    size, taken = np.log([[row[column], row[JOINT_SECONDS]] for row in some]).T
    return float(np.polyfit(size, taken, 1)[0])


def plain_ep(G: np.ndarray, y: np.ndarray, tol: float = 1e-6) -> float:
    """The evidence by EP for z ~ N(0, G), with parallel updates until convergence."""
    alpha, beta = np.zeros((2, len(y)))
    while True:
        system = np.eye(len(y)) + G * beta
        covariance = np.linalg.solve(system, G)
        mean = covariance @ alpha
        v = np.diag(covariance)
        precision = 1 / v - beta
        c = (mean / v - alpha) / precision
        w = 1 / precision
        value, d1, d2 = Probit().log_partition(y, c, w)
        site = (alpha * c + (alpha**2 * w - beta * c**2) / 2) / (1 + w * beta)
        site -= 0.5 * np.log1p(w * beta)
        log_z = 0.5 * alpha @ mean - 0.5 * np.linalg.slogdet(system)[1]
        new_alpha, new_beta = np.array([d1 - c * d2, -d2]) / (1 + w * d2)
        moved = max(
            abs(np.sqrt(v) * (new_alpha - alpha)).max(),
            abs(v * (new_beta - beta)).max(),
        )
        if moved <= tol:
            return float(log_z + value.sum() - site.sum())
        alpha = new_alpha
        beta = new_beta


def plain_of(size: tuple[int, int]) -> Callable[[], float]:
    """Plain EP that is measured, including its Gram matrix."""
    data = league(MOVING, *size)
    X = data.matches.design.toarray()

    def call() -> float:
        return plain_ep((X @ X.T) * MOVING.gram(data.matches.time), data.y)

    return call


def against_plain(size: tuple[int, int]) -> list[Any]:
    plain = run_in_process(plain_of, size)
    ours = run_in_process(fit_of, MOVING, size, "joint")
    difference = abs(plain.result - ours.result.evidence)
    row = [*size, *side_by_side(plain, ours, first_over_second=True), difference]
    print(row, flush=True)
    return row


def nba_rows() -> list[list[Any]]:
    n = len(sport("NBA").y)
    rows = []
    for name in POSTERIORS:
        taken, peak, found = run_in_process(nba_fit, name)
        rows.append([name, n, taken, peak, found.sweeps, round(found.evidence, 3)])
    return rows


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    static = [(300, 10_000), (300, 100_000)]
    moving = [(10, 1000), (20, 1000)]
    if not quick:
        static += [(30, 100_000), (100, 100_000), (1000, 100_000), (300, 1_000_000)]
        moving = [(10, 4000), (20, 4000), (40, 4000), (40, 1000), (40, 2000)]
        moving += [(80, 4000), (160, 4000), (40, 16_000)]
    for covariance in (STATIC, MOVING):  # Compile before timing.
        for name in POSTERIORS:
            fitted(league(covariance, 5, 30), name)
    tables = {
        "Constant scores": compare(STATIC, static),
        "Scores that change": compare(MOVING, moving),
    }
    if not quick:
        tables["Slopes of the joint posterior"] = [
            [what, by, slope(rows, column, 1 - column)]
            for what, rows in tables.items()
            for column, by in enumerate(("players", "matches"))
        ]
    tables["Plain EP by dense matrices"] = [
        against_plain((10, n)) for n in ((400,) if quick else (200, 800, 1600))
    ]
    if not quick:
        tables["NBA, Constant + Matern12"] = nba_rows()
    print_tables(HEADERS, tables)
    print(LIMITS.format(least=LEAST_MEGABYTES))


if __name__ == "__main__":
    main()
