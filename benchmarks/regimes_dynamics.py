"""The dynamic model where it is used day by day: many forecasts, one more match, a
whole season, many priors.

python benchmarks/regimes_dynamics.py            some five minutes, 2 GB
python benchmarks/regimes_dynamics.py --quick    a tenth of the matches

CPU seconds of one thread, the least of some runs, but where two threads are named:
seconds of the clock. Against a goal in seconds, or another way to the same result: a
fit of all, one covariance for all players.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _measure import markdown_table, peak_megabytes
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Matern12,
    Matern32,
    Poisson,
    Probit,
    Skellam,
    one_step_ahead,
)
from preflearn.matches import Matches

SPAN = 1000.0
PRIOR = Constant(1.0) + Matern12(1.0, 100.0)
HEADER = [
    "what",
    "size",
    "ours s",
    "goal or peer",
    "its s",
    "ours / it",
    "ours MB",
    "where it ends",
]
Problem = tuple[Matches, np.ndarray]
Row = list[object]


def problem(n: int, n_players: int, *, days: bool = False) -> Problem:
    """Matches of two players at random, at distinct times or on whole days; results by
    fixed scores."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, n_players, n)
    second = (first + rng.integers(1, n_players, n)) % n_players
    when = np.sort(rng.uniform(0, SPAN, n))
    x = np.tile([1.0, -1.0], n)
    columns = np.column_stack([first, second]).ravel()
    design = sparse.csr_array((x, columns, np.arange(0, 2 * n + 1, 2)), (n, n_players))
    score = rng.normal(size=n_players)
    won = rng.logistic(size=n) < score[first] - score[second]
    time_of = np.floor(when) if days else when
    return Matches(design, time_of, [f"p{k}" for k in range(n_players)]), np.where(
        won, 1, -1
    )


def fitted(
    matches: Matches,
    y: np.ndarray,
    covariance: Any = PRIOR,
    n_threads: int = 1,
    **options: Any,
) -> DynamicComparisons:
    return DynamicComparisons(covariance, Probit(), n_threads=n_threads, **options).fit(
        matches, y
    )


def seconds(
    call: Callable[[], object], repeats: int = 2, clock: Any = time.process_time
) -> float:
    taken = []
    for _ in range(repeats):
        begin = clock()
        call()
        taken.append(clock() - begin)
    return min(taken)


# ---- Forecasts


def forecasts(n: int, covariance: Any, n_threads: int) -> Callable[[], object]:
    model = fitted(*problem(n // 10, 1000), covariance, n_threads, tol=1e-4)
    ask = problem(n, 1000)[0]
    model.predict_proba(ask[:100])
    return lambda: model.predict_proba(ask)


def forecast_rows(scale: int) -> list[Row]:
    n = 1_000_000 // scale
    rows = []
    for name, covariance in {
        "Constant + Matérn 1/2": PRIOR,
        "Matérn 3/2": Matern32(1.0, 200.0),
    }.items():
        for n_threads, clock in ((1, time.process_time), (2, time.perf_counter)):
            taken = seconds(forecasts(n, covariance, n_threads), clock=clock)
            grown = peak_megabytes(forecasts, n, covariance, n_threads)
            goal = 0.2 / scale
            what = f"predict_proba, {name}, {n_threads} threads"
            rows.append(
                [
                    what,
                    n,
                    taken,
                    "goal",
                    goal,
                    taken / goal,
                    grown,
                    "in proportion to matches",
                ]
            )
    return rows


# ---- One more match


def update_rows(scale: int) -> list[Row]:
    n = 400_000 // scale
    matches, y = problem(n + 4, 4000 // scale, days=True)
    model = fitted(matches[:n], y[:n])
    whole = seconds(lambda: fitted(matches[:n], y[:n]), 1)
    updates = []
    first = []
    for k in range(n, n + 3):
        updates.append(seconds(partial(model.update, matches[[k]], y[k : k + 1]), 1))
        first.append(seconds(partial(model.predict_proba, matches[[k + 1]]), 1))
    taken = float(np.median(updates))
    forecast = float(np.median(first))
    ends = f"it sweeps all matches; first forecast after it {forecast * 1e3:.2g} ms"
    return [
        ["update, one more match", n, taken, "fit", whole, taken / whole, "-", ends]
    ]


# ---- A season


def season(n: int, n_players: int) -> Callable[[], object]:
    matches, y = problem(n, n_players)
    model = DynamicComparisons(PRIOR, Probit(), n_threads=1)
    one_step_ahead(model, *problem(200, 20), 150)
    return lambda: one_step_ahead(model, matches, y, n // 2)


def ahead_rows(scale: int) -> list[Row]:
    rows = []
    before = {}
    for kind, sizes in {
        "20 matches each": (8_000, 16_000),
        "100 players": (8_000, 16_000),
    }.items():
        for size in sizes:
            n = size // scale
            n_players = n // 20 if kind[0] == "2" else 100
            taken = seconds(season(n, n_players), 1)
            slope = (
                np.log(taken / before[kind][1]) / np.log(n / before[kind][0])
                if kind in before
                else None
            )
            before[kind] = n, taken
            goal = 60 * size / 100_000 / scale
            end = "-" if slope is None else f"slope {slope:.2f}"
            grown = peak_megabytes(season, n, n_players)
            what = f"one_step_ahead, distinct times, {kind}"
            rows.append([what, n, taken, "goal", goal, taken / goal, grown, end])
    return rows


# ---- A covariance for each player


def priors_rows(scale: int) -> list[Row]:
    n = 100_000 // scale
    n_players = 4000 // scale
    data = problem(n, n_players, days=True)
    each = {
        name: Constant(1.0 + k / n_players) + Matern12(1.0, 100.0 + k)
        for k, name in enumerate(data[0].features)
    }
    fits = [seconds(partial(fitted, *data, covariance)) for covariance in (each, PRIOR)]
    models = [fitted(*data, covariance) for covariance in (each, PRIOR)]
    asks = [seconds(partial(model.predict_proba, data[0])) for model in models]
    return [
        [
            f"{what}, a covariance a player",
            n,
            own,
            "one for all",
            one,
            own / one,
            "-",
            f"{n_players} players",
        ]
        for what, (own, one) in {"fit": fits, "predict_proba": asks}.items()
    ]


# ---- Large counts


def counts_rows(scale: int) -> list[Row]:
    """Sweeps, not seconds."""
    rng = np.random.default_rng(0)
    n = 1000
    n_players = 20
    first = rng.integers(0, n_players, n)
    second = (first + rng.integers(1, n_players, n)) % n_players
    d = rng.normal(0, 0.3, n_players)
    d = d[first] - d[second]
    up = rng.poisson(50 * np.exp(d / 2))
    down = rng.poisson(50 * np.exp(-d / 2))
    design = np.zeros((n, n_players + 1))
    design[np.arange(n), first] = 1
    design[np.arange(n), second] = -1
    names = [*range(n_players), "level"]
    cases = {
        "Poisson, counts near 100": (Poisson(), 1.0, rng.poisson(100 * np.exp(d))),
        "Poisson, counts near 1": (Poisson(), 1.0, rng.poisson(np.exp(d))),
        "Skellam(50)": (Skellam(50.0), 0.0, up - down),
    }
    rows = []
    for name, (likelihood, level, y) in cases.items():
        design[:, -1] = level
        prior = {"level": Constant(25.0), "*": Constant(0.1) + Matern12(0.1, 300.0)}
        matches = Matches(design, np.linspace(0, SPAN, n), names)
        for method in ("ep", "kl"):
            model = DynamicComparisons(prior, likelihood, method, n_threads=1)
            taken = seconds(
                lambda model=model, matches=matches, y=y: model.fit(matches, y), 1
            )
            sweeps = f"{model.n_iter_} sweeps"
            rows.append(
                [f"fit, {name}, {method}", n, taken, "-", "-", "-", "-", sweeps]
            )
    return rows


PARTS = {
    "forecasts": forecast_rows,
    "updates": update_rows,
    "seasons": ahead_rows,
    "priors": priors_rows,
    "counts": counts_rows,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the matches")
    parser.add_argument("--only", choices=PARTS, help="one part of the table")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    fitted(*problem(300, 20))  # loads compiled code
    print(markdown_table(HEADER, []))
    for name, rows in PARTS.items():
        if chosen.only in (None, name):
            print(
                markdown_table(HEADER, rows(10 if chosen.quick else 1)).split("\n", 2)[
                    2
                ],
                flush=True,
            )


if __name__ == "__main__":
    main()
