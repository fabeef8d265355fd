"""How many evaluations of the update map lead to its fixed point: plain sweeps, and the accelerated ones.

python benchmarks/dynamics_accelerated.py           EP to a residual of 1e-8; a minute
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
MOST = 3000


def run(data: Any, **options: Any) -> tuple[DynamicComparisons, float]:
    model = DynamicComparisons(data.covariance, data.likelihood, tol=TOL, max_iter=MOST, **options)
    begin = time.perf_counter()
    model.fit(data.matches, data.y)
    return model, time.perf_counter() - begin


def distance(one: DynamicComparisons, other: DynamicComparisons) -> tuple[float, float]:
    """Between the scores at the end of time: of means and of standard deviations, the largest."""
    end = one.matches_.time[-1]
    here, there = (np.array([m.scores(name, end) for name in one.features_]) for m in (one, other))
    mean, std = np.abs(here - there).max(axis=0)
    return float(mean), float(std)


def row(name: str, method: str, rate: float) -> list[object]:
    data = sport(name)
    plain, plain_seconds = run(data, method=method, rate=rate)
    quick, seconds = run(data, method=method)
    mean, std = distance(plain, quick)
    gap = quick.log_marginal_likelihood_ - plain.log_marginal_likelihood_
    evaluations = [f"{model.n_iter_}{'' if model.converged_ else ' (not there)'}" for model in (plain, quick)]
    taken_back = int((~quick.trace_["accepted"]).sum())
    found = [name, *evaluations, quick.n_iter_ / plain.n_iter_, taken_back, plain_seconds, seconds]
    return [*found, f"{mean:.1e}", f"{std:.1e}", f"{gap:.1e}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=SPORTS, help=f"of {', '.join(SPORTS)}")
    parser.add_argument("--kl", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
    method, rate = ("kl", 0.5) if chosen.kl else ("ep", 1.0)
    run(sport(chosen.names[0]), method=method)  # loads compiled code
    rows = []
    for name in chosen.names:
        rows.append(row(name, method, rate))
        print(*rows[-1], flush=True)
    header = ["data", "plain sweeps", "accelerated", "ratio", "taken back", "plain s", "accelerated s"]
    header += ["means differ by", "standard deviations by", "evidence by"]
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
