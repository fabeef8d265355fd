"""Compare robust and plain likelihoods on held-out outcomes.

The data are simulated judgments, in which some judges answer at random, and points of
NBA games.

    python benchmarks/robust_likelihoods.py
    python benchmarks/robust_likelihoods.py judges --replicates 5    without NBA games

Both models have the same covariance, and all hyperparameters maximize the evidence of
the training data. A replicate is a simulated panel of judges or a season. The table
shows the mean log probability or log density of a held-out outcome, in nats; larger is
better. Differences are paired (robust minus plain), with standard errors over replicates.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from _measure import markdown_table, script_parser
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from preflearn.datasets import load_nba
from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Lapse,
    Likelihood,
    Probit,
    StudentT,
    maximise_evidence,
    parameters_of,
)
from preflearn.matches import ADVANTAGE, Matches

N_REPLICATES = 12
N_ITEMS = 30
N_JUDGES = 60
N_JUDGMENTS = 30  # per judge; a third is held out
CARELESS = 0.0, 0.1, 0.3  # fractions of the judges
LAST_SEASON = 2018
WRONG = 0.0, 0.03  # fractions of the training games whose score is mistyped

Held = tuple[Matches, NDArray]


def log_probability(model: DynamicComparisons, matches: Matches, y: NDArray) -> NDArray:
    """Log probability of each outcome, by the forecast of the score difference."""
    mean, variance = model.moments(matches)
    return model.likelihood.log_partition(y, mean, variance)[0]


def compare(
    plain: Likelihood,
    robust: Likelihood,
    variance: float,
    train: Held,
    tests: dict[str, Held],
) -> dict[str, Any]:
    """Mean log probabilities of both models, and the chosen hyperparameters."""
    row: dict[str, Any] = {}
    for label, likelihood in (("plain", plain), ("robust", robust)):
        start = DynamicComparisons(Constant(variance), likelihood)
        model = maximise_evidence(start, *train).model
        row |= {f"{label} {name}": v for name, v in parameters_of(model).items()}
        for part, (matches, y) in tests.items():
            row[f"{label}, {part}"] = log_probability(model, matches, y).mean()
    return row


# ---- Judges


def panel(careless: float, rng: np.random.Generator) -> tuple[Held, dict[str, Held]]:
    """Judgments of item pairs, in which careless judges answer at random."""
    n = N_JUDGES * N_JUDGMENTS
    score = rng.normal(size=N_ITEMS) * 1.5
    design = np.zeros((n, N_ITEMS))
    for row in design:
        row[rng.choice(N_ITEMS, 2, replace=False)] = 1, -1
    judge = np.arange(n) // N_JUDGMENTS
    is_careless = judge < careless * N_JUDGES
    y = np.sign(design @ score + rng.normal(size=n))
    y[is_careless] = rng.choice([-1, 1], is_careless.sum())
    matches = Matches(design, np.zeros(n), [str(k) for k in range(N_ITEMS)])
    held_out = np.arange(n) % 3 == 0
    tests = {
        "all judges": held_out,
        "careful judges": held_out & ~is_careless,
    }
    parts = {name: (matches[mask], y[mask]) for name, mask in tests.items()}
    return (matches[~held_out], y[~held_out]), parts


def judge_replicates(careless: float, n: int) -> Iterator[dict[str, Any]]:
    for seed in range(n):
        train, tests = panel(careless, np.random.default_rng(seed))
        yield compare(Probit(), Lapse(Probit(), 0.05), 1.0, train, tests)


# ---- NBA


def season_replicates(wrong: float, n_seasons: int) -> Iterator[dict[str, Any]]:
    """Two thirds of each season for training, the rest held out."""
    games = load_nba().matches
    for season in range(LAST_SEASON - n_seasons + 1, LAST_SEASON + 1):
        frame = games[games["season"] == season]
        points = np.asarray(frame["first_score"] - frame["second_score"], float)
        matches, _ = Matches.from_frame(
            frame.drop(columns=["first_score", "second_score"]), advantage="advantage"
        )
        assert ADVANTAGE in matches.features
        n = 2 * len(frame) // 3
        rng = np.random.default_rng(season)
        learned = points[:n].copy()
        slips = rng.random(n) < wrong
        learned[slips] = rng.choice([-1, 1], slips.sum()) * rng.integers(
            60, 120, slips.sum()
        )
        test = {"last third": (matches[n:], points[n:])}
        yield compare(
            Gaussian(140.0), StudentT(11.0, 10.0), 20.0, (matches[:n], learned), test
        )


# ---- Tables


def summary(label: str, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """One row per held-out part."""
    for column in rows.columns[rows.columns.str.startswith("robust, ")]:
        part = column.removeprefix("robust, ")
        difference = rows[column] - rows[f"plain, {part}"]
        error = difference.std() / math.sqrt(len(rows))
        yield {
            "data": label,
            "held out": part,
            "plain": f"{rows[f'plain, {part}'].mean():.4f}",
            "robust": f"{rows[column].mean():.4f}",
            "robust - plain": f"{difference.mean():+.4f} ± {error:.4f}",
            "better in": f"{(difference > 0).sum()} of {len(rows)}",
        }


def table(
    name: str,
    values: tuple[float, ...],
    replicates: Callable[[float, int], Any],
    n: int,
) -> None:
    lines: list[dict[str, Any]] = []
    for value in values:
        rows = pd.DataFrame(list(replicates(value, n)))
        chosen = rows.filter(like="robust likelihood").median().round(3).to_dict()
        for line in summary(f"{100 * value:g} % {name}", rows):
            short = {key.rpartition(".")[2]: found for key, found in chosen.items()}
            lines.append({**line, "median hyperparameters": str(short)})
    header = list(lines[0])
    print(markdown_table(header, [list(line.values()) for line in lines]), flush=True)


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("data", nargs="?", choices=["judges", "nba"])
    parser.add_argument("--replicates", type=int, default=N_REPLICATES)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    n = options.replicates
    if options.data != "nba":
        table("careless judges", CARELESS, judge_replicates, n)
    if options.data != "judges":
        table("wrong scores", WRONG, season_replicates, n)


if __name__ == "__main__":
    main()
