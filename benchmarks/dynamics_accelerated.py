"""How many evaluations of the update map lead to its fixed point: plain sweeps, and the
accelerated ones.

Evaluations and seconds are those to a residual of 1e-8. The answers are compared at
1e-11, since plain sweeps that move that little each are still a hundred times as far
from the fixed point.

python benchmarks/dynamics_accelerated.py           EP; two minutes
python benchmarks/dynamics_accelerated.py --kl      reverse-KL, plain sweeps at half the rate
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from _measure import markdown_table
from _sports import SPORTS, sport
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import DynamicComparisons

TOL = 1e-8
FIXED_POINT = 1e-11
MOST = 6000


def run(data: Any, **options: Any) -> tuple[DynamicComparisons, int, float]:
    """The model at the fixed point; evaluations and seconds on the way to TOL."""
    model = DynamicComparisons(
        data.covariance, data.likelihood, tol=FIXED_POINT, max_iter=MOST, **options
    )
    begin = time.perf_counter()
    model.fit(data.matches, data.y)
    taken = time.perf_counter() - begin
    count = int(np.argmax(model.trace_["residual"].to_numpy() <= TOL)) + 1
    return model, count, taken * count / model.n_iter_


def distance(one: DynamicComparisons, other: DynamicComparisons) -> tuple[float, float]:
    """Between the scores at the end of time: of means and of standard deviations, the
    largest."""
    end = one.matches_.time[-1]
    here, there = (
        np.array([m.scores(name, end) for name in one.features_]) for m in (one, other)
    )
    mean, std = np.abs(here - there).max(axis=0)
    return float(mean), float(std)


def row(name: str, method: str, rate: float) -> list[object]:
    data = sport(name)
    plain, sweeps, plain_seconds = run(data, method=method, rate=rate)
    quick, evaluations, seconds = run(data, method=method)
    mean, std = distance(plain, quick)
    gap = quick.log_marginal_likelihood_ - plain.log_marginal_likelihood_
    ends = [
        f"{model.trace_['residual'].to_numpy()[-1]:.0e}" for model in (plain, quick)
    ]
    taken_back = int((~quick.trace_["accepted"].to_numpy()).sum())
    found = [
        name,
        sweeps,
        evaluations,
        evaluations / sweeps,
        taken_back,
        plain_seconds,
        seconds,
        *ends,
    ]
    return [*found, f"{mean:.0e}", f"{std:.0e}", f"{gap:.0e}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", default=SPORTS, help=f"of {', '.join(SPORTS)}"
    )
    parser.add_argument("--kl", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
    method, rate = ("kl", 0.5) if chosen.kl else ("ep", 1.0)
    run(sport(chosen.names[0]), method=method)  # loads compiled code
    rows = []
    for name in chosen.names:
        rows.append(row(name, method, rate))
        print(*rows[-1], flush=True)
    header = [
        "data",
        "plain sweeps",
        "accelerated",
        "ratio",
        "taken back",
        "plain s",
        "accelerated s",
        "plain ends at",
        "accelerated",
    ]
    header += ["means differ by", "standard deviations by", "evidence by"]
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
