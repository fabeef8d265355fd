"""DynamicComparisons by EP against kickscore 0.2.0: an iteration, the whole fit, memory, the same answer.

python benchmarks/dynamics.py --peer PEER/bin/python            ten minutes; see _kickscore.py for PEER
python benchmarks/dynamics.py NBA ATP                           without a peer: ours only
python benchmarks/dynamics.py --peer ... --whole                half an hour: also the peer's own whole fits
"""

from __future__ import annotations

import argparse
import multiprocessing
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
from _measure import markdown_table, peak_megabytes
from _sports import SPORTS, Sport, sport
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import DynamicComparisons

TOL = 1e-6  # of whole fits: the default
FIXED_POINT = 1e-10
SWEEPS = 40  # timed at once
TURNS = 3

warnings.simplefilter("ignore", ConvergenceWarning)  # fits that are cut off for timing


def fitted(data: Sport, **options: Any) -> DynamicComparisons:
    return DynamicComparisons(data.covariance, data.likelihood, **options).fit(data.matches, data.y)


def seconds_of(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def sweep_seconds(data: Sport, n_threads: int) -> float:
    """Of one plain iteration: that of Algorithm 1, with evidence and residual."""
    plain = partial(fitted, data, rate=1.0, tol=1e-300, n_threads=n_threads)
    return (seconds_of(partial(plain, max_iter=SWEEPS + 1)) - seconds_of(partial(plain, max_iter=1))) / SWEEPS


# ---- Processes of their own


def whole_fit(name: str) -> Callable[[], object]:
    """For the memory of a fit; compiled code is loaded before."""
    data = sport(name)
    fitted(data._replace(matches=data.matches[:100], y=data.y[:100]))
    return partial(fitted, data, tol=TOL, n_threads=2)


def first_fits(connection: Any) -> None:
    """Seconds of the first fit of a process, and of the same again."""
    data = sport("NBA")
    fit = partial(fitted, data, tol=TOL, n_threads=1)
    connection.send([seconds_of(fit), seconds_of(fit)])


def compile_seconds() -> list[float]:
    """What the first fit takes beyond later ones: without compiled code on the disk, and with it."""
    context, taken = multiprocessing.get_context("spawn"), []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        for _ in range(2):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=first_fits, args=(sender,))
            process.start()
            sender.close()
            first, second = receiver.recv()
            process.join()
            taken.append(first - second)
        del os.environ["NUMBA_CACHE_DIR"]
    return taken


# ---- Against the peer


def by_side(data: Sport, values: np.ndarray) -> np.ndarray:
    """Values of the entries of the design, of the first and of the second of each match."""
    first = data.matches.design.data[::2] > 0
    pairs = values.reshape(len(first), 2, -1)
    return np.where(first[:, None, None], pairs, pairs[:, ::-1])


def moments(data: Sport, model: DynamicComparisons) -> np.ndarray:
    """Mean and standard deviation of both scores at each match, (N, 2, 2)."""
    found, columns, time = np.empty((2 * len(data.y), 2)), data.matches.design.indices, data.matches.time
    for column, name in enumerate(data.matches.features):
        mine = np.flatnonzero(columns == column)
        found[mine] = np.stack(model.scores(name, time[mine // 2]), axis=1)
    return by_side(data, found)


def against_peer(name: str, data: Sport, python: str, whole: bool) -> dict[str, list]:
    """Rows of the tables, by table."""
    ours: dict[int, list[float]] = {1: [], 2: []}
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(python, Path(folder), data.matches.players(), data.y, data.matches.time, data.peer)
        compiling = peer.iterate(1)["seconds"]
        for _ in range(TURNS):
            theirs.append(peer.iterate(2)["seconds"] / 2)
            for n_threads, taken in ours.items():
                taken.append(sweep_seconds(data, n_threads))
        a_sweep, (one, two) = statistics.median(theirs), map(statistics.median, ours.values())
        sweeps = fitted(data, rate=1.0, tol=TOL, max_iter=5000).n_iter_
        accelerated = fitted(data, tol=TOL)
        fits = [
            statistics.median(
                seconds_of(partial(fitted, data, tol=TOL, n_threads=threads)) for _ in range(TURNS)
            )
            for threads in (1, 2)
        ]
        set_up, how = peer.set_up_seconds, "computed"
        the_fit, megabytes = sweeps * a_sweep, peer.iterate(1)["megabytes"]
        if whole:
            set_up, how = peer.restart(), "measured"
            run = peer.iterate(5000, TOL)
            the_fit, sweeps, megabytes = run["seconds"], int(run["iterations"]), run["megabytes"]
            own, own_moments = peer.moments()
        model = fitted(data, tol=FIXED_POINT, max_iter=5000)
        our_moments = moments(data, model)
        peer.restart()
        there, at_ours = peer.at(by_side(data, model.pseudo_observations_))
        peer.close()
    n = len(data.y)
    tables: dict[str, list] = {
        "An iteration": [[name, n, one, two, a_sweep, a_sweep / one, a_sweep / two]],
        "The whole fit, set-up included": [
            [
                name, accelerated.n_iter_, *fits, sweeps, set_up, set_up + the_fit, how,
                *((set_up + the_fit) / taken for taken in fits), the_fit / fits[1],
                peak_megabytes(whole_fit, name), megabytes, compiling - a_sweep,
            ]
        ],
        "The same answer": [
            [
                name, model.trace_["residual"].iloc[-1], there["residual"],
                f"{np.abs(at_ours - our_moments)[..., 0].max():.1e}",
                f"{np.abs(at_ours - our_moments)[..., 1].max():.1e}",
                f"{model.log_marginal_likelihood_:.7f}", f"{there['log_likelihood']:.7f}",
            ]
        ],
    }  # fmt: skip
    if whole:
        distance = np.abs(own_moments - our_moments).max()
        tables["The peer where its own sweeps end"] = [[name, own["log_likelihood"], float(distance)]]
    return tables


HEADERS = {
    "An iteration": "data|matches|ours s, 1 thread|2 threads|kickscore s|ratio|ratio, 2 threads",
    "The whole fit, set-up included": (
        "data|evaluations|ours s, 1 thread|2 threads|sweeps of kickscore|its set-up s|its fit with set-up s|"
        "how|ratio|ratio, 2 threads|ratio without its set-up|ours MB|kickscore MB|it compiles s"
    ),
    "The same answer": (
        "data|our residual|kickscore's, there|means differ by|standard deviations by|our evidence|kickscore's"
    ),
    "The peer where its own sweeps end": "data|log-likelihood|moments differ by",
    "Without a peer": "data|matches|an iteration s, 1 thread|2 threads|whole fit s|evaluations|MB",
}


def alone(name: str, data: Sport) -> dict[str, list]:
    one, two = (sweep_seconds(data, threads) for threads in (1, 2))
    fit = seconds_of(partial(fitted, data, tol=TOL))
    evaluations = fitted(data, tol=TOL).n_iter_
    return {
        "Without a peer": [[name, len(data.y), one, two, fit, evaluations, peak_megabytes(whole_fit, name)]]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=SPORTS, help=f"of {', '.join(SPORTS)}")
    parser.add_argument(
        "--whole", action="store_true", help="run the peer's whole fits, not a few iterations"
    )
    add_peer_option(parser)
    chosen = parser.parse_args()
    tables: dict[str, list] = {}
    for name in chosen.names:
        data = sport(name)
        fitted(data, max_iter=2)  # loads compiled code
        rows = against_peer(name, data, chosen.peer, chosen.whole) if chosen.peer else alone(name, data)
        for title, found in rows.items():
            tables.setdefault(title, []).extend(found)
            print(title, *found, flush=True)
    for title, rows in tables.items():
        print(f"\n{title}\n\n{markdown_table(HEADERS[title].split('|'), rows)}")
    cold, warm = compile_seconds()
    print(f"\nThe first fit of a process takes {cold:.1f} s longer without compiled code on the disk,")
    print(f"{warm:.2f} s longer with it.")


if __name__ == "__main__":
    main()
