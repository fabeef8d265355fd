"""Measure the coverage of 95 % intervals in simulated leagues.

One kind of interval averages over the hyperparameters. The other kind uses the
hyperparameters that maximize the evidence ("plug-in").

    python benchmarks/interval_coverage.py --quick       some cells, 40 leagues each
    python benchmarks/interval_coverage.py               all cells, hours
    python benchmarks/interval_coverage.py --cells "2 players, 20" "prior" --leagues 200

A cell is a group of leagues with the same number of players and matches and the same
standard deviation of scores, in units of the noise. The cell also determines whether
scores drift and whether there are ties. The cells named "prior" check the Bayesian
statement: if hyperparameters are drawn from the prior, 95 % of the intervals contain the
true value. For one fixed standard deviation, the coverage may differ, mostly if the data
contain little information about it. If players are nearly equal compared with the
standard errors of scores, the coverage is higher, because the prior allows for larger
differences.

The table shows the percentage of intervals that contain the true value. The quantities
are scores minus their mean, differences of all pairs, probabilities that the first
player wins, and ranks. The table then shows the mean half-width of the intervals for
differences, divided by the half-width of the plug-in posterior. It also shows the number
of leagues in which the mean half-width of the plug-in posterior is below 0.02. "±" is
the standard error over leagues of the column "differences".
"""

from __future__ import annotations

import time
import warnings
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _measure import markdown_table, script_parser
from numpy.typing import NDArray
from scipy.stats import lomax, rankdata

from preflearn.dynamics import (
    AveragedComparisons,
    Constant,
    DynamicComparisons,
    Matern12,
    OrdinalProbit,
    Probit,
    average_over_hyperparameters,
    maximise_evidence,
)
from preflearn.matches import Matches

MARGIN = 0.35
LENGTH = 0.5  # fraction of the span
MAX_PAIRS = 60
COLLAPSED = 0.02
QUANTITIES = "scores", "differences", "chances", "ranks"


class Cell(NamedTuple):
    """A group of leagues. `sd` is None if it is drawn from the prior."""

    players: int
    matches: int
    sd: float | None
    drifts: bool
    ties: bool

    def label(self) -> str:
        spread = "prior" if self.sd is None else f"sd {self.sd:g}"
        kind = "drifting" if self.drifts else "static"
        ties = ", ties" * self.ties
        return f"{self.players} players, {self.matches} matches, {spread}, {kind}{ties}"


class League(NamedTuple):
    """Matches, outcomes, and the true scores at the end."""

    matches: Matches
    y: NDArray
    truth: NDArray


def all_cells() -> list[Cell]:
    return [
        Cell(*values)
        for values in product(
            (2, 6, 20, 40),
            (20, 200, 2000),
            (None, 0.05, 0.15, 0.5, 1.0, 2.0),
            (False, True),
            (False, True),
        )
    ]


def quick_cells() -> list[Cell]:
    """The corner cells and the middle cell of the grid."""
    static = [
        Cell(n, m, sd, False, False)
        for n, m in ((2, 20), (2, 200), (8, 60), (8, 500), (40, 400))
        for sd in (None, 0.05, 0.5, 2.0)
    ]
    others = [
        Cell(n, m, sd, drifts, ties)
        for n, m in ((2, 100), (10, 200))
        for sd in (None, 0.15, 1.0)
        for drifts, ties in ((False, True), (True, False), (True, True))
    ]
    return static + others


def simulate(cell: Cell, rng: np.random.Generator) -> League:
    """A league whose pairs are drawn at random."""
    sd = cell.sd
    if sd is None:
        sd = float(np.sqrt(lomax(2).rvs(random_state=rng)))
    length = LENGTH
    if cell.sd is None:
        length = float(np.exp(rng.normal(0, 1.5)))
    margin = 0.0
    if cell.ties:
        margin = MARGIN
    t = np.linspace(0, 1, cell.matches)
    scores = np.empty((cell.matches, cell.players))
    scores[0] = rng.normal(0, sd, cell.players)
    keep = np.exp(-(t[1] - t[0]) / length) if cell.drifts else 1.0
    for k in range(1, cell.matches):
        noise = rng.normal(0, sd, cell.players) * np.sqrt(1 - keep**2)
        scores[k] = keep * scores[k - 1] + noise
    pairs = np.array([rng.permutation(cell.players)[:2] for _ in t])
    rows = np.arange(cell.matches)
    design = np.zeros((cell.matches, cell.players))
    design[rows, pairs[:, 0]] = 1
    design[rows, pairs[:, 1]] = -1
    lead = (design * scores).sum(axis=1) + rng.normal(size=cell.matches)
    y = np.where(np.abs(lead) < margin, 0, np.sign(lead)).astype(int)
    names = [f"p{k}" for k in range(cell.players)]
    met = np.abs(design).sum(axis=0) > 0
    kept = [name for name, here in zip(names, met, strict=True) if here]
    return League(Matches(design[:, met], t, kept), y, scores[-1, met])


def fits(cell: Cell, league: League, posterior: str) -> dict[str, AveragedComparisons]:
    """The posterior averaged over hyperparameters, and the plug-in posterior."""
    covariance = Constant(1.0)
    if cell.drifts:
        covariance = Matern12(1.0, LENGTH)
    likelihood = Probit()
    if cell.ties:
        likelihood = OrdinalProbit(MARGIN)
    options: dict[str, Any] = {"tol": 1e-4, "n_threads": 1}
    if posterior == "joint":
        options["posterior"] = "joint"
    start = DynamicComparisons(covariance, likelihood, **options)
    data = league.matches, league.y
    plugged = maximise_evidence(start, *data, gtol=0.05).model
    return {
        "average": average_over_hyperparameters(start, *data),
        "plug-in": AveragedComparisons([plugged], [1.0]),
    }


def held(
    found: AveragedComparisons, cell: Cell, league: League
) -> dict[str, float | NDArray]:
    """Fractions of intervals that contain the true value, and mean half-widths."""
    names = league.matches.features
    truth = dict(zip(names, league.truth - league.truth.mean(), strict=True))
    table = found.standings()
    own = table["name"].map(truth).to_numpy()
    rank = rankdata(-own)
    pairs = list(combinations(range(len(names)), 2))
    if len(pairs) > MAX_PAIRS:
        chosen = np.random.default_rng(0).choice(len(pairs), MAX_PAIRS, replace=False)
        pairs = [pairs[k] for k in chosen]
    first, second = np.array(pairs).T
    design = np.zeros((len(pairs), len(names)))
    design[np.arange(len(pairs)), first] = 1
    design[np.arange(len(pairs)), second] = -1
    fixtures = Matches(design, np.ones(len(pairs)), names)
    lead = league.truth[first] - league.truth[second]
    likelihood = Probit()
    if cell.ties:
        likelihood = OrdinalProbit(MARGIN)
    chance = likelihood.probabilities(lead, np.zeros(len(lead)))[:, -1]
    ends = found.interval(fixtures)
    return {
        "scores": inside(own, table[["low", "high"]].to_numpy()),
        "differences": inside(lead, ends),
        "chances": inside(chance, found.proba_interval(fixtures)),
        "ranks": inside(rank, table[["rank_low", "rank_high"]].to_numpy()),
        "half-width": float(np.diff(ends).mean() / 2),
    }


def inside(values: NDArray, ends: NDArray) -> float:
    return float(np.mean((values >= ends[:, 0]) & (values <= ends[:, 1])))


def measure(cell: Cell, n_leagues: int, posterior: str, seed: int) -> dict[str, Any]:
    """One row of the table."""
    start = time.perf_counter()
    rows = []
    for k in range(n_leagues):
        # The leagues are the same for each posterior and for each selection of cells.
        drawn = int(1000 * (cell.sd or 0)), cell.drifts, cell.ties
        key = [seed, k, cell.players, cell.matches, *map(int, drawn)]
        league = simulate(cell, np.random.default_rng(key))
        for kind, found in fits(cell, league, posterior).items():
            rows.append({"kind": kind, **held(found, cell, league)})
    table = pd.DataFrame(rows)
    mean: Any = table.groupby("kind").mean()
    row: dict[str, Any] = {"cell": cell.label(), "leagues": len(table) // 2}
    for kind in ("average", "plug-in"):
        for name in QUANTITIES:
            row[f"{kind}: {name}"] = f"{100 * mean.loc[kind, name]:.1f}"
    own = table.loc[table["kind"] == "average", "differences"]
    row["±"] = f"{100 * own.std() / np.sqrt(len(own)):.1f}"
    widths = mean["half-width"]
    row["width ratio"] = f"{widths['average'] / widths['plug-in']:.2f}"
    plugged = table.loc[table["kind"] == "plug-in", "half-width"]
    row["collapsed"] = int((plugged < COLLAPSED).sum())
    row["seconds"] = f"{time.perf_counter() - start:.0f}"
    return row


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cells", nargs="*", help="parts of labels of cells")
    parser.add_argument("--leagues", type=int, help="simulated leagues per cell")
    parser.add_argument("--posterior", default="joint", choices=("joint", "factorized"))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = all_cells()
    n_leagues = args.leagues or 100
    if args.quick:
        cells = quick_cells()
        n_leagues = args.leagues or 40
    if args.cells:
        cells = [c for c in cells if any(part in c.label() for part in args.cells)]
    rows = []
    for cell in cells:
        rows.append(measure(cell, n_leagues, args.posterior, args.seed))
        print(rows[-1], flush=True)
    print(markdown_table(list(rows[0]), [list(row.values()) for row in rows]))


if __name__ == "__main__":
    main()
