"""EP on a simulated data set of the size of ChessBase, against the limits of this
machine's memory.

python benchmarks/dynamics_scale.py             7,169,202 matches of 343,668 players; some minutes, 3 GB
python benchmarks/dynamics_scale.py --growth    from 10^4 to 10^7 matches, 21 to a player; 5 GB
python benchmarks/dynamics_scale.py --limits    the memory of this machine only
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from _bandwidth import line_nanoseconds, stream_gigabytes
from _measure import in_process, markdown_table, peak_kilobytes
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import Constant, DynamicComparisons, Matern12, OrdinalProbit
from preflearn_book.studies.ch13_simulated import (
    CONSTANT,
    LENGTHSCALE,
    MOVING,
    simulate_matches,
)

MATCHES = 7_169_202
PLAYERS = 343_668
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
SWEEPS = 10
RATES = {"plain": 1.0, "accelerated": "auto"}


def bytes_per_match() -> int:
    """What an iteration of EP moves to and from the memory at the least, in bytes a
    match of two players.

    An entry has alpha, beta, mean and variance, 8 bytes each; both of a match fill a
    line of 64 bytes. Smoothing and matching each read it and write it back, if it comes
    once in each. A visit has its place and its transition, 4 bytes each, and a match
    its outcome, 1 byte. States between the passes of the smoother stay in the cache.
    """
    return 2 * 2 * 64 + 2 * 2 * 4 + 1


def problem(n_matches: int, n_players: int) -> tuple[Any, Any, OrdinalProbit]:
    matches, y, _, margin = simulate_matches(n_matches, n_players, rng=0)
    return matches, y, OrdinalProbit(margin=margin)


def fit(
    matches: Any, y: Any, likelihood: OrdinalProbit, **options: Any
) -> tuple[DynamicComparisons, np.ndarray]:
    """The model; seconds of the clock, and of the processors."""
    covariance = Constant(CONSTANT) + Matern12(MOVING, LENGTHSCALE)
    model = DynamicComparisons(covariance, likelihood, **options)
    begin = np.array([time.perf_counter(), time.process_time()])
    model.fit(matches, y)
    return model, np.array([time.perf_counter(), time.process_time()]) - begin


def measured(n_matches: int, n_players: int, n_threads: int, rate: str) -> list[float]:
    """Seconds of set-up; of an iteration, and of processors in it; MB of the fit, and
    of the process."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    timed = partial(fit, rate=RATES[rate], tol=1e-300, n_threads=n_threads)
    timed(*problem(100, 20), max_iter=3)  # loads compiled code
    data = problem(n_matches, n_players)
    before = _resident_megabytes()
    one = timed(*data, max_iter=1)[1]
    sweeps = max(SWEEPS, 200_000 // n_matches)
    many = timed(*data, max_iter=sweeps + 1)[1]
    peak = peak_kilobytes() / 1024
    sweep = (many - one) / sweeps
    return [one[0] - sweep[0], *sweep, peak - before, peak]


def whole(n_matches: int, n_players: int) -> list[float]:
    """A fit to the default tolerance on two threads: seconds, of processors too,
    evaluations, and more."""
    fit(*problem(100, 20), n_threads=2)
    model, seconds = fit(*problem(n_matches, n_players), n_threads=2)
    residual = float(model.trace_["residual"].to_numpy()[-1])
    return [
        *seconds,
        model.n_iter_,
        residual,
        model.log_marginal_likelihood_,
        peak_kilobytes() / 1024,
    ]


def _resident_megabytes() -> float:
    with open("/proc/self/status") as status:
        return (
            next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
            / 1024
        )


def limits() -> dict[int, tuple[float, float]]:
    """Prints what the memory does; by threads, GB/s of the best stream and ns of a line
    at random."""
    rows = []
    best = {}
    for threads in (1, 2):
        streams = stream_gigabytes(threads)
        orders = [
            line_nanoseconds(threads, order)
            for order in ("random", "stretches", "ascending")
        ]
        changed = [
            line_nanoseconds(threads, order, write=True)
            for order in ("random", "ascending")
        ]
        best[threads] = max(streams.values()), changed[0]
        rows.append([threads, *streams.values(), *orders, *changed])
    header = [
        "threads",
        "triad GB/s",
        "read GB/s",
        "update GB/s",
        "line, random ns",
        "in stretches ns",
    ]
    header += ["ascending ns", "changed, random ns", "changed, ascending ns"]
    print(markdown_table(header, rows), flush=True)
    return best


def chess(memory: dict[int, tuple[float, float]]) -> None:
    rows = []
    for threads, (gigabytes, nanoseconds) in memory.items():
        least = MATCHES * bytes_per_match() / gigabytes / 1e9
        at_random = MATCHES * 2 * nanoseconds / 1e9
        for rate in RATES:
            set_up, sweep, work, grown, peak = in_process(
                measured, MATCHES, PLAYERS, threads, rate
            )
            rows.append(
                [
                    threads,
                    rate,
                    set_up,
                    sweep,
                    work,
                    least,
                    sweep / least,
                    at_random,
                    grown,
                    peak,
                ]
            )
            print(*rows[-1], flush=True)
    header = [
        "threads",
        "sweeps",
        "set-up s",
        "an iteration s",
        "processor s",
        f"{bytes_per_match()} bytes s",
    ]
    print(
        markdown_table(
            [*header, "ratio", "2 random lines s", "fit MB", "process MB"], rows
        )
    )
    header = [
        "whole fit s",
        "processor s",
        "evaluations",
        "residual",
        "evidence",
        "process MB",
    ]
    print(f"\n{markdown_table(header, [in_process(whole, MATCHES, PLAYERS)])}")


def growth() -> None:
    rows = []
    for n_matches in SIZES:
        n_players = round(n_matches * PLAYERS / MATCHES)
        costs = [
            in_process(measured, n_matches, n_players, threads, rate)
            for threads in (1, 2)
            for rate in RATES
        ]
        each = [seconds / n_matches * 1e9 for cost in costs for seconds in cost[1:3]]
        rows.append([n_matches, *each, costs[-1][0], costs[-1][-1]])
        print(*rows[-1], flush=True)
    header = ["matches"]
    for threads in (1, 2):
        for rate in RATES:
            header += [f"{rate}, {threads} threads: ns a match", "of processors"]
    print(markdown_table([*header, "set-up s", "process MB"], rows))
    ratio = np.array(rows[-1][1:9]) / np.array(rows[1][1:9])
    print(f"\ncost of a match at 10^7 against 10^5: {np.round(ratio, 2).tolist()}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--limits", action="store_true")
    chosen = parser.parse_args()
    memory = limits()
    if chosen.growth:
        growth()
    elif not chosen.limits:
        chess(memory)


if __name__ == "__main__":
    main()
