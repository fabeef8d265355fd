"""The search for hyperparameters on the NBA training set: at random, over processes,
and by gradients.

python benchmarks/evidence_search.py                          the paper's 1,000 configurations, ten minutes
python benchmarks/evidence_search.py --configurations 20      a minute
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _measure import markdown_table
from _sports import sport
from joblib import Parallel, delayed

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Matern12,
    Probit,
    maximise_evidence,
    parameters_of,
    random_search,
)
from preflearn.matches import Matches

PROCESSES = 2
TOL = 1e-5  # of random configurations: evidence to 0.02 nats
RANGES = {  # times in years
    "Constant.variance": (1e-4, 1.0),
    "Matern12.variance": (1e-2, 3.0),
    "Matern12.lengthscale": (0.3, 30.0),
}
START = Constant(0.1) + Matern12(0.1, 1.0)
HEADER = "how|processes|fits|seconds|seconds a fit|evidence|constant variance|moving variance|length scale"


def training_set() -> tuple[Matches, np.ndarray]:
    """The first 70 % of the matches."""
    data = sport("NBA")
    n = int(0.7 * len(data.y))
    return data.matches[:n], data.y[:n]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    return call(), time.perf_counter() - begin


def load_compiled_code(
    model: DynamicComparisons, matches: Matches, y: np.ndarray
) -> None:
    """In this process and in all others, so that it is not timed."""
    fit = partial(model.fit, matches[:100], y[:100])
    fit()
    Parallel(n_jobs=PROCESSES, max_nbytes=None)(
        delayed(fit)() for _ in range(4 * PROCESSES)
    )


def row(
    how: str, processes: int, fits: int, seconds: float, model: DynamicComparisons
) -> list:
    evidence = f"{model.log_marginal_likelihood_:.3f}"
    return [
        how,
        processes,
        fits,
        seconds,
        seconds / fits,
        evidence,
        *parameters_of(model).values(),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--configurations", type=int, default=1000, help="of the random search; 1000"
    )
    n = parser.parse_args().configurations
    matches, y = training_set()
    model = DynamicComparisons(START, Probit(), tol=TOL, n_threads=1)
    load_compiled_code(model, matches, y)
    rows = []
    taken = []
    tables = []
    for processes in (1, PROCESSES):
        search = partial(
            random_search,
            model,
            matches,
            y,
            RANGES,
            n,
            random_state=0,
            n_jobs=processes,
        )
        found, seconds = timed(search)
        rows.append(row("at random", processes, n, seconds, found.model))
        taken.append(seconds)
        tables.append(found.configurations)
        print(f"{n} configurations, {processes} processes: {seconds:.1f} s", flush=True)
    best, seconds = timed(
        partial(maximise_evidence, model.set_params(tol=1e-6), matches, y)
    )
    rows.append(row("by gradients", 1, len(best.trace), seconds, best.model))
    print(f"\n{markdown_table(HEADER.split('|'), rows)}")
    same = "the same table" if tables[0].equals(tables[1]) else "ANOTHER TABLE"
    print(f"\n{PROCESSES} processes: {taken[0] / taken[1]:.2f} times as fast, {same}.")
    print(
        f"1,000 configurations at this speed: {taken[1] / n * 1000 / 60:.1f} minutes on {PROCESSES} cores."
    )
    near = ", ".join(found.near_boundary) or "none"
    print(f"{tables[0]['converged'].sum()} of {n} converged; near a boundary: {near}.")
    sweeps = best.trace["n_iter"].sum()
    largest = np.abs(best.gradient).max()
    print(
        f"By gradients: {sweeps} sweeps, largest derivative left {largest:.1e}, converged: {best.converged}."
    )


if __name__ == "__main__":
    main()
