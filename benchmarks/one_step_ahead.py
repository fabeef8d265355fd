"""Forecasts of each NBA game of the test set from all earlier days: one_step_ahead
against refits.

python benchmarks/one_step_ahead.py                              some minutes
python benchmarks/one_step_ahead.py --every 100 --updates 20     one minute
python benchmarks/one_step_ahead.py --peer PEER/bin/python       also kickscore's refit (see _kickscore.py)

A refit a day, and `update` a day, are run on some days: every so many for the first,
some in a row from the middle of the test set on for the second. Their seconds for all
days are those of a day times the days.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _kickscore import Peer, add_peer_option
from _measure import markdown_table
from _sports import Sport, sport
from dynamics import fitted, seconds_of
from numpy.typing import NDArray

from preflearn.dynamics import DynamicComparisons, one_step_ahead

SHARE = 0.7  # of the matches, to learn from
PEER_SWEEPS = 3
TIGHT = 0.002  # a tenth of the default tol of one_step_ahead


class Split(NamedTuple):
    """The test set: the first match, and begin and end of each of its days."""

    start: int
    days: list[tuple[int, int]]


def split_of(data: Sport) -> Split:
    start = int(
        np.searchsorted(data.matches.time, data.matches.time[int(SHARE * len(data.y))])
    )
    cuts = [
        start,
        *(start + np.flatnonzero(np.diff(data.matches.time[start:])) + 1),
        len(data.y),
    ]
    return Split(start, [(int(a), int(b)) for a, b in itertools.pairwise(cuts)])


def losses_of(data: Sport, rows: NDArray, probabilities: NDArray) -> NDArray:
    """Log loss of each match, in nats."""
    return -np.log(probabilities[np.arange(len(rows)), (data.y[rows] > 0).astype(int)])


class Run(NamedTuple):
    """Forecasts of some rows; seconds of the clock and of the processors, of one day
    and of the whole."""

    rows: NDArray
    probabilities: NDArray
    a_day: float
    whole: float
    processor: float
    how: str


def ahead(
    data: Sport, split: Split, n_threads: int, **options: float
) -> tuple[Run, NDArray]:
    """All of it; and how far each day's state was from that of a refit, in posterior
    standard deviations."""
    model = DynamicComparisons(data.covariance, data.likelihood, n_threads=n_threads)
    found: list[Any] = []
    call = partial(one_step_ahead, model, data.matches, data.y, split.start, **options)
    clock, processor = seconds_of(lambda: found.append(call()))
    rows = np.arange(split.start, len(data.y))
    run = Run(
        rows,
        found[0].probabilities,
        clock / len(split.days),
        clock,
        processor,
        "measured",
    )
    return run, found[0].residual


def summed(
    data: Sport, split: Split, days: list[tuple[int, int]], forecast: Any
) -> Run:
    """`forecast` of some days: its seconds of a day times all days."""
    probabilities: list[NDArray] = []

    def run() -> None:
        probabilities.extend(itertools.starmap(forecast, days))

    clock, processor = seconds_of(run) / len(days)
    rows = np.concatenate([np.arange(*day) for day in days])
    whole = clock * len(split.days), processor * len(split.days)
    return Run(
        rows,
        np.concatenate(probabilities),
        clock,
        *whole,
        f"computed from {len(days)} days",
    )


def refits(data: Sport, split: Split, every: int, n_threads: int) -> Run:
    def forecast(begin: int, end: int) -> NDArray:
        past = data._replace(matches=data.matches[:begin], y=data.y[:begin])
        return fitted(past, n_threads=n_threads).predict_proba(data.matches[begin:end])

    return summed(data, split, split.days[::every], forecast)


def updates(data: Sport, split: Split, count: int, n_threads: int) -> Run:
    days = split.days[len(split.days) // 2 :][:count]
    start = days[0][0]
    model = fitted(
        data._replace(matches=data.matches[:start], y=data.y[:start]),
        n_threads=n_threads,
    )

    def forecast(begin: int, end: int) -> NDArray:
        probabilities = model.predict_proba(data.matches[begin:end])
        model.update(data.matches[begin:end], data.y[begin:end])
        return probabilities

    return summed(data, split, days, forecast)


def kickscore_day(data: Sport, split: Split, python: str) -> tuple[float, int]:
    """Seconds of its refit in the middle of the test set, without set-up, and its
    sweeps; to our tol."""
    middle = split.days[len(split.days) // 2][0]
    part = data._replace(matches=data.matches[:middle], y=data.y[:middle])
    sweeps = fitted(part, rate=1.0, max_iter=5000).n_iter_
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(
            python,
            Path(folder),
            part.matches.players(),
            part.y,
            part.matches.time,
            data.peer,
        )
        peer.iterate(1)  # compiles
        seconds = peer.iterate(PEER_SWEEPS)["seconds"] / PEER_SWEEPS
        peer.close()
    return sweeps * seconds, sweeps


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--every", type=int, default=20, help="refit on every so many days"
    )
    parser.add_argument("--updates", type=int, default=50, help="days of updates")
    parser.add_argument("--threads", type=int, default=2)
    add_peer_option(parser)
    chosen = parser.parse_args()
    data = sport("NBA")
    split = split_of(data)
    warm = data._replace(matches=data.matches[:300], y=data.y[:300])
    ahead(warm, split_of(warm), chosen.threads)  # loads compiled code
    best, residual = ahead(data, split, chosen.threads)
    others = {
        f"tol={TIGHT}": lambda: ahead(data, split, chosen.threads, tol=TIGHT)[0],
        "one thread": lambda: ahead(data, split, 1)[0],
        "a refit a day": lambda: refits(data, split, chosen.every, chosen.threads),
        "update a day": lambda: updates(data, split, chosen.updates, chosen.threads),
    }
    found = {"one_step_ahead": best}
    for name, call in others.items():
        found[name] = call()
        print(f"{name}: {found[name].a_day:.4f} s a day", flush=True)
    table = []
    for name, run in found.items():
        here = best.probabilities[run.rows - split.start]
        there = losses_of(data, run.rows, run.probabilities)
        gap = losses_of(data, run.rows, here)
        gap -= there
        apart = np.abs(run.probabilities - here).max()
        table.append(
            [
                name,
                run.how,
                run.a_day * 1000,
                run.whole,
                run.whole / best.whole,
                run.processor,
                len(run.rows),
                f"{there.mean():.6f}",
                f"{gap.mean():+.1e} ± {gap.std() / len(gap) ** 0.5:.0e}",
                f"{apart:.1e}",
            ]
        )
    if chosen.peer:
        a_day, sweeps = kickscore_day(data, split, chosen.peer)
        whole = a_day * len(split.days)
        how = f"computed from one day, {sweeps} sweeps, without set-up"
        table.append(
            [
                "kickscore, a refit a day",
                how,
                a_day * 1000,
                whole,
                whole / best.whole,
                *"-----",
            ]
        )
    print(
        f"{len(data.y) - split.start} games on {len(split.days)} days, after {split.start} games.\n"
    )
    header = (
        "forecasts|how|a day ms|all days s|ratio|processor s|games compared|log loss there|"
        "one_step_ahead's minus it|probabilities differ by"
    )
    print(markdown_table(header.split("|"), table))
    print(
        f"\none_step_ahead's residual: median {np.median(residual):.1e}, largest {residual.max():.1e}"
    )


if __name__ == "__main__":
    main()
