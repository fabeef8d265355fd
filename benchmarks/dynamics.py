"""Time DynamicComparisons by EP against kickscore 0.2.0: an iteration and a whole fit.

    python benchmarks/dynamics.py               ten minutes
    python benchmarks/dynamics.py NBA ATP       two of the four data sets

The script also checks that both programs compute the same posterior. They run in turn.
kickscore always uses one thread. The time of its whole fit is computed: the seconds per
sweep times the number of sweeps that plain iteration needs, without the set-up.
"""

from __future__ import annotations

import functools
import operator
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import kickscore
import numpy as np
from _measure import peak_megabytes, print_tables, script_parser
from _sports import SPORTS, Sport, sport
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from preflearn.dynamics import DynamicComparisons

TOL = 1e-6  # default tolerance of whole fits
FIXED_POINT = 1e-10
SWEEPS = 40  # sweeps per timing
REFERENCE_SWEEPS = 3
TURNS = 3

# Fits are stopped early for timing.
warnings.simplefilter("ignore", ConvergenceWarning)


def fitted(data: Sport, **options: Any) -> DynamicComparisons:
    return DynamicComparisons(data.covariance, data.likelihood, **options).fit(
        data.matches, data.y
    )


def seconds_of(call: Callable[[], object]) -> np.ndarray:
    """Wall-clock seconds and processor seconds."""
    begin = np.array([time.perf_counter(), time.process_time()])
    call()
    return np.array([time.perf_counter(), time.process_time()]) - begin


def sweep_seconds(data: Sport, n_threads: int) -> np.ndarray:
    """Seconds of one plain iteration of Algorithm 1, with evidence and residual."""
    plain = partial(fitted, data, rate=1.0, tol=1e-300, n_threads=n_threads)
    many = seconds_of(partial(plain, max_iter=SWEEPS + 1))
    return (many - seconds_of(partial(plain, max_iter=1))) / SWEEPS


def fit_seconds(data: Sport, n_threads: int) -> float:
    fit = partial(fitted, data, tol=TOL, n_threads=n_threads)
    return statistics.median(seconds_of(fit)[0] for _ in range(TURNS))


def whole_fit(name: str) -> Callable[[], object]:
    """A fit whose memory is measured. Compiled code is loaded before."""
    data = sport(name)
    fitted(data._replace(matches=data.matches[:100], y=data.y[:100]))
    return partial(fitted, data, tol=TOL, n_threads=2)


def by_side(data: Sport, values: np.ndarray) -> np.ndarray:
    """Values per entry of the design, for the first and the second side of each match."""
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


# ---- kickscore


def kickscore_model(data: Sport) -> Any:
    """The model of kickscore with all matches, before its first sweep."""
    margin = data.reference["margin"]
    model = kickscore.BinaryModel()
    if margin is not None:
        model = kickscore.TernaryModel(margin)
    for player in range(len(data.matches.features)):
        kernels = [
            getattr(kickscore.kernel, name)(*values)
            for name, values in data.reference["kernels"]
        ]
        model.add_item(str(player), functools.reduce(operator.add, kernels))
    rows = zip(data.matches.players(), data.y, data.matches.time, strict=True)
    for players, y, at in rows:
        winner, loser = players[::-1] if y < 0 else players
        options = {} if margin is None else {"tie": y == 0}
        model.observe([str(winner)], [str(loser)], at, **options)
    for item in model.item.values():
        item.fitter.allocate()
    return model


def kickscore_fit(name: str) -> Callable[[], object]:
    """One sweep of a fit whose memory is measured."""
    data = sport(name)
    return lambda: kickscore_model(data).fit(max_iter=1)


def moments_at(model: Any, data: Sport, sites: np.ndarray) -> np.ndarray:
    """Moments of both scores at each match in kickscore, (N, 2, 2).

    They are computed from given pseudo-observations, alpha and beta of both sides.
    """
    entries = []
    for observation, y, values in zip(model.observations, data.y, sites, strict=True):
        for side in range(2):
            k = 1 - side if y < 0 else side  # In kickscore, the winner comes first.
            fitter = observation._items[k].fitter
            place = observation._indices[k]
            fitter.ns[place], fitter.xs[place] = values[side]
            entries.append((fitter, place))
    for item in model.item.values():
        item.fitter.fit()
    found = [(fitter.ms[k], fitter.vs[k] ** 0.5) for fitter, k in entries]
    return np.array(found).reshape(-1, 2, 2)


def rows_of(name: str, data: Sport) -> dict[str, list]:
    """Rows of the tables, by table."""
    begin = time.perf_counter()
    reference = kickscore_model(data)
    set_up = time.perf_counter() - begin
    reference.fit(max_iter=1)  # Compile before timing.
    turns = []
    for _ in range(TURNS):
        theirs = (
            seconds_of(partial(reference.fit, max_iter=REFERENCE_SWEEPS))
            / REFERENCE_SWEEPS
        )
        turns.append([*sweep_seconds(data, 1), *sweep_seconds(data, 2), *theirs])
    one, work, two, _, a_sweep, their_work = np.median(turns, axis=0)
    sweeps = fitted(data, rate=1.0, tol=TOL, max_iter=5000).n_iter_
    fits = [fit_seconds(data, threads) for threads in (1, 2)]
    the_fit = sweeps * a_sweep
    model = fitted(data, tol=FIXED_POINT, max_iter=5000)
    at_ours = moments_at(reference, data, by_side(data, model.pseudo_observations_))
    apart = np.abs(at_ours - moments(data, model)).max(axis=(0, 1))
    reference.fit(max_iter=1)
    evidence = (model.log_marginal_likelihood_, reference.log_likelihood)
    iteration = [work, their_work, their_work / work, one, two, a_sweep]
    fit = [fitted(data, tol=TOL).n_iter_, *fits, sweeps, the_fit]
    memory = [peak_megabytes(call, name) for call in (whole_fit, kickscore_fit)]
    return {
        "An iteration": [[name, len(data.y), *iteration, a_sweep / one, a_sweep / two]],
        "The whole fit": [
            [name, *fit, *(the_fit / taken for taken in fits), set_up, *memory]
        ],
        "The same answer": [
            [name, *(f"{gap:.1e}" for gap in apart), *(f"{v:.7f}" for v in evidence)]
        ],
    }


HEADERS = {
    "An iteration": (
        "data|matches|ours, processor s|kickscore|ratio|ours, 1 thread s|2 threads s|"
        "kickscore s|ratio, 1 thread|ratio, 2 threads"
    ),
    "The whole fit": (
        "data|evaluations|ours with set-up, 1 thread s|2 threads s|sweeps of kickscore|"
        "kickscore fit s|ratio, 1 thread|ratio, 2 threads|kickscore set-up s|ours MB|kickscore MB"
    ),
    "The same answer": (
        "data|difference of means|difference of standard deviations|our evidence|"
        "evidence of kickscore"
    ),
}


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument(
        "names", nargs="*", default=SPORTS, help=f"of {', '.join(SPORTS)}"
    )
    tables: dict[str, list] = {}
    for name in parser.parse_args().names:
        data = sport(name)
        fitted(data, max_iter=2)  # Load compiled code.
        with threadpool_limits(1, "blas"):  # The matrices of kickscore are small.
            for title, found in rows_of(name, data).items():
                tables.setdefault(title, []).extend(found)
        print(name, flush=True)
    print_tables(HEADERS, tables)


if __name__ == "__main__":
    main()
