"""DynamicComparisons by EP against kickscore 0.2.0: an iteration, the whole fit,
memory, the same answer.

python benchmarks/dynamics.py               ten minutes; ours alone where kickscore is not installed
python benchmarks/dynamics.py NBA ATP       two of the four data sets
python benchmarks/dynamics.py --whole       an hour: the peer's whole fits are run, too, not only computed
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _kickscore import Peer, add_peer_option
from _measure import in_process, peak_megabytes, print_tables
from _sports import SPORTS, Sport, sport
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import DynamicComparisons

TOL = 1e-6  # of whole fits: the default
FIXED_POINT = 1e-10
SWEEPS = 40  # timed at once
TURNS = 3

warnings.simplefilter("ignore", ConvergenceWarning)  # fits that are cut off for timing


def fitted(data: Sport, **options: Any) -> DynamicComparisons:
    return DynamicComparisons(data.covariance, data.likelihood, **options).fit(
        data.matches, data.y
    )


def seconds_of(call: Callable[[], object]) -> np.ndarray:
    """Of the clock, and of the processors."""
    begin = np.array([time.perf_counter(), time.process_time()])
    call()
    return np.array([time.perf_counter(), time.process_time()]) - begin


def sweep_seconds(data: Sport, n_threads: int) -> np.ndarray:
    """Of one plain iteration: that of Algorithm 1, with evidence and residual."""
    plain = partial(fitted, data, rate=1.0, tol=1e-300, n_threads=n_threads)
    return (
        seconds_of(partial(plain, max_iter=SWEEPS + 1))
        - seconds_of(partial(plain, max_iter=1))
    ) / SWEEPS


def fit_seconds(data: Sport, n_threads: int) -> float:
    fit = partial(fitted, data, tol=TOL, n_threads=n_threads)
    return statistics.median(seconds_of(fit)[0] for _ in range(TURNS))


# ---- Processes of their own


def whole_fit(name: str) -> Callable[[], object]:
    """For the memory of a fit; compiled code is loaded before."""
    data = sport(name)
    fitted(data._replace(matches=data.matches[:100], y=data.y[:100]))
    return partial(fitted, data, tol=TOL, n_threads=2)


def first_fits() -> tuple[float, float]:
    """Seconds of the first fit of a process, and of the same again."""
    fit = partial(fitted, sport("NBA"), tol=TOL, n_threads=1)
    return float(seconds_of(fit)[0]), float(seconds_of(fit)[0])


def compile_seconds() -> list[float]:
    """What the first fit takes beyond later ones: without compiled code on the disk,
    and with it."""
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        for _ in range(2):
            first, second = in_process(first_fits)
            taken.append(first - second)
        del os.environ["NUMBA_CACHE_DIR"]
    return taken


# ---- Against the peer


def by_side(data: Sport, values: np.ndarray) -> np.ndarray:
    """Values of the entries of the design, of the first and of the second of each
    match."""
    first = data.matches.design.data[::2] > 0
    pairs = values.reshape(len(first), 2, -1)
    return np.where(first[:, None, None], pairs, pairs[:, ::-1])


def moments(data: Sport, model: DynamicComparisons) -> np.ndarray:
    """Mean and standard deviation of both scores at each match, (N, 2, 2)."""
    found = np.empty((2 * len(data.y), 2))
    columns = data.matches.design.indices
    time = data.matches.time
    for column, name in enumerate(data.matches.features):
        mine = np.flatnonzero(columns == column)
        found[mine] = np.stack(model.scores(name, time[mine // 2]), axis=1)
    return by_side(data, found)


def against_peer(name: str, data: Sport, python: str, whole: bool) -> dict[str, list]:
    """Rows of the tables, by table."""
    turns: list[list[float]] = []
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(
            python,
            Path(folder),
            data.matches.players(),
            data.y,
            data.matches.time,
            data.peer,
        )
        compiling = peer.iterate(1)["seconds"]
        for _ in range(TURNS):
            run = peer.iterate(3)
            theirs = [run["seconds"] / 3, run["processor"] / 3]
            turns.append([*sweep_seconds(data, 1), *sweep_seconds(data, 2), *theirs])
        one, work, two, _, a_sweep, their_work = np.median(turns, axis=0)
        sweeps = fitted(data, rate=1.0, tol=TOL, max_iter=5000).n_iter_
        fits = [fit_seconds(data, threads) for threads in (1, 2)]
        set_up = peer.set_up_seconds
        the_fit = sweeps * a_sweep
        megabytes = run["megabytes"]
        how = "computed"
        if whole:
            set_up = peer.restart()
            how = "measured"
            run = peer.iterate(5000, TOL)
            the_fit = run["seconds"]
            sweeps = int(run["iterations"])
            own, own_moments = peer.moments()
        model = fitted(data, tol=FIXED_POINT, max_iter=5000)
        our_moments = moments(data, model)
        peer.restart()
        there, at_ours = peer.at(by_side(data, model.pseudo_observations_))
        peer.close()
    evaluations = fitted(data, tol=TOL).n_iter_
    apart = np.abs(at_ours - our_moments).max(axis=(0, 1))
    tables: dict[str, list] = {
        "An iteration": [
            [
                name,
                len(data.y),
                work,
                their_work,
                their_work / work,
                one,
                two,
                a_sweep,
                a_sweep / one,
                a_sweep / two,
            ]
        ],
        "The whole fit": [
            [
                name,
                evaluations,
                *fits,
                sweeps,
                the_fit,
                how,
                *(the_fit / taken for taken in fits),
                set_up,
                compiling - a_sweep,
                peak_megabytes(whole_fit, name),
                megabytes,
            ]
        ],
        "The same answer": [
            [
                name,
                model.trace_["residual"].to_numpy()[-1],
                there["residual"],
                *(f"{gap:.1e}" for gap in apart),
                *(
                    f"{value:.7f}"
                    for value in (
                        model.log_marginal_likelihood_,
                        there["log_likelihood"],
                    )
                ),
            ]
        ],
    }
    if whole:
        distance = float(np.abs(own_moments - our_moments).max())
        tables["The peer where its own sweeps end"] = [
            [name, own["log_likelihood"], distance]
        ]
    return tables


HEADERS = {
    "An iteration": (
        "data|matches|ours, processor s|kickscore|ratio|ours, 1 thread s|2 threads|kickscore|ratio|2 threads"
    ),
    "The whole fit": (
        "data|evaluations|ours with set-up, 1 thread s|2 threads|sweeps of kickscore|its fit, set up, s|"
        "how|ratio|2 threads|its set-up s|it compiles s|ours MB|kickscore MB"
    ),
    "The same answer": (
        "data|our residual|kickscore's, there|means differ by|standard deviations by|our evidence|kickscore's"
    ),
    "The peer where its own sweeps end": "data|log-likelihood|moments differ by",
    "Without a peer": "data|matches|an iteration s, 1 thread|2 threads|whole fit s|2 threads|evaluations|MB",
}


def alone(name: str, data: Sport) -> dict[str, list]:
    sweeps = [sweep_seconds(data, threads)[0] for threads in (1, 2)]
    fits = [fit_seconds(data, threads) for threads in (1, 2)]
    evaluations = fitted(data, tol=TOL).n_iter_
    row = [
        name,
        len(data.y),
        *sweeps,
        *fits,
        evaluations,
        peak_megabytes(whole_fit, name),
    ]
    return {"Without a peer": [row]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", default=SPORTS, help=f"of {', '.join(SPORTS)}"
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="run the peer's whole fits, not a few iterations",
    )
    add_peer_option(parser)
    chosen = parser.parse_args()
    tables: dict[str, list] = {}
    for name in chosen.names:
        data = sport(name)
        fitted(data, max_iter=2)  # loads compiled code
        rows = (
            against_peer(name, data, chosen.peer, chosen.whole)
            if chosen.peer
            else alone(name, data)
        )
        for title, found in rows.items():
            tables.setdefault(title, []).extend(found)
            print(name, title, flush=True)
    print_tables(HEADERS, tables)
    cold, warm = compile_seconds()
    print(
        f"\nThe first fit of a process takes {cold:.1f} s longer without compiled code on the disk,"
    )
    print(f"{warm:.2f} s longer with it.")


if __name__ == "__main__":
    main()
