"""Time the joint posterior of DynamicComparisons against the factorized posterior.

The script also compares it with plain EP by dense matrices. It measures time and peak
memory by numbers of players and matches.

    python benchmarks/joint.py               a quarter of an hour
    python benchmarks/joint.py --quick       up to 40 moving players and 100,000 matches

All fits stop at the default tol and run in turn. Slopes are slopes of log seconds in log
size. Plain EP has the same fixed point as the joint posterior, and each sweep takes
O(N³) time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _measure import peak_megabytes, print_tables, script_parser
from _sports import Sport, sport
from scipy import sparse

from preflearn.dynamics import Constant, DynamicComparisons, Matern12, Probit
from preflearn.matches import Matches

warnings.simplefilter("ignore")
POSTERIORS = "factorized", "joint"
STATIC = Constant(1.0)
MOVING = Constant(0.5) + Matern12(0.5, 100.0)
HEADERS = {
    "Constant scores": "players|matches|factorized, s|joint, s|ratio|factorized, MB|joint, MB",
    "Scores that change": "players|matches|factorized, s|joint, s|ratio|factorized, MB|joint, MB",
    "Slopes of the joint posterior": "what|by|slope",
    "Plain EP by dense matrices": "players|matches|plain, s|joint, s|ratio|difference of evidence",
    "NBA, Constant + Matern12": "posterior|matches|s|sweeps|MB|evidence",
}


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


def fit_of(covariance: Any, size: tuple[int, int], posterior: str) -> Callable:
    """A fit whose memory is measured. Compiled code is loaded before."""
    data = league(covariance, *size)
    fitted(data._replace(matches=data.matches[:50], y=data.y[:50]), posterior)
    return partial(fitted, data, posterior)


def nba_fit(posterior: str) -> Callable:
    data = sport("NBA")
    fitted(data._replace(matches=data.matches[:50], y=data.y[:50]), posterior)
    return partial(fitted, data, posterior)


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def compare(covariance: Any, sizes: list[tuple[int, int]]) -> list[list[Any]]:
    rows = []
    for size in sizes:
        data = league(covariance, *size)
        taken = [seconds(partial(fitted, data, name))[0] for name in POSTERIORS]
        peaks = [peak_megabytes(fit_of, covariance, size, name) for name in POSTERIORS]
        rows.append([*size, *taken, taken[1] / taken[0], *peaks])
    return rows


def slope(rows: list[list[Any]], column: int, other: int) -> float:
    """Slopes of log seconds in log size, in the rows with the largest other size."""
    largest = max(
        row[other] for row in rows if [r[other] for r in rows].count(row[other]) > 1
    )
    some = [row for row in rows if row[other] == largest]
    size, taken = np.log([[row[column], row[3]] for row in some]).T
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


def against_plain(size: tuple[int, int]) -> list[Any]:
    data = league(MOVING, *size)
    X = data.matches.design.toarray()
    begin = time.perf_counter()
    evidence = plain_ep((X @ X.T) * MOVING.gram(data.matches.time), data.y)
    plain = time.perf_counter() - begin
    ours, model = seconds(partial(fitted, data, "joint"))
    return [
        *size,
        plain,
        ours,
        plain / ours,
        abs(evidence - model.log_marginal_likelihood_),
    ]


def nba_rows() -> list[list[Any]]:
    data = sport("NBA")
    rows = []
    for name in POSTERIORS:
        taken, model = seconds(partial(fitted, data, name))
        peak = peak_megabytes(nba_fit, name)
        evidence = round(model.log_marginal_likelihood_, 3)
        rows.append([name, len(data.y), taken, model.n_iter_, peak, evidence])
    return rows


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    static = [(30, 100_000), (100, 100_000), (300, 100_000), (300, 10_000)]
    moving = [(10, 4000), (20, 4000), (40, 4000), (40, 1000), (40, 2000)]
    if not quick:
        static += [(1000, 100_000), (300, 1_000_000)]
        moving += [(80, 4000), (160, 4000), (40, 16_000)]
    for covariance in (STATIC, MOVING):  # Compile before timing.
        for name in POSTERIORS:
            fitted(league(covariance, 5, 30), name)
    tables = {
        "Constant scores": compare(STATIC, static),
        "Scores that change": compare(MOVING, moving),
    }
    slopes = []
    for what, rows in tables.items():
        slopes.append([what, "players", slope(rows, 0, 1)])
        slopes.append([what, "matches", slope(rows, 1, 0)])
    tables["Slopes of the joint posterior"] = slopes
    tables["Plain EP by dense matrices"] = [
        against_plain((10, n)) for n in ((200, 400, 800) if quick else (200, 800, 1600))
    ]
    if not quick:
        tables["NBA, Constant + Matern12"] = nba_rows()
    print_tables(HEADERS, tables)


if __name__ == "__main__":
    main()
