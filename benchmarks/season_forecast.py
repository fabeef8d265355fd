"""Score forecasts of final tables, made in the middle of past seasons.

    python benchmarks/season_forecast.py            # both leagues; about an hour
    python benchmarks/season_forecast.py --quick    # five seasons of each league
    python benchmarks/season_forecast.py --file league.csv --points "3 1 0" --seasons 20

For each held-out season, a model of the report on matches, with a Matern 1/2 covariance,
learns from a few earlier seasons and from the first half of the season. It then simulates
the rest 10,000 times. The scores are the log loss and the Brier score of the chances of the title (the
first rank), and the ranked probability score of the final ranks, averaged over the
teams. Lower is better. Teams with equal points share their ranks, in the forecasts and in
the final tables.

The baseline is the table of past seasons: the fraction of teams at a rank in the middle
of a season that finished at each rank. Each final rank counts once more (the correction
of Laplace), or 1/n times more for n ranks. Ranks of past seasons with another number of
teams are rescaled. The differences are paired by season, with a t interval.

The leagues are the British Home Championship of football (2-1-0 points) and the regular
seasons of the NBA (wins). A file needs the columns first, second, time, outcome (1, 0,
-1), and season.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _measure import print_tables, script_parser
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from preflearn.datasets import load_football, load_nba
from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Matern12,
    OrdinalProbit,
    Probit,
    average_over_hyperparameters,
    maximise_evidence,
)
from preflearn.matches import Matches
from preflearn_book.runner.decision_rules import compare
from preflearn_book.season import (
    N_SEASONS,
    Points,
    Season,
    final_points,
    present_points,
    rank_chances,
    read_points,
)

Floats = NDArray[np.float64]
MODEL = "preflearn"
BASELINES = {"past tables, Laplace": 1.0, "past tables, 1/n": 0.0}
MEASURES = ("title: log loss", "title: Brier", "ranks: RPS")
HISTORY = {"British Home Championship": 20, "NBA": 2}
"""Seasons before the held-out one that the model learns from."""
DEFAULT_HISTORY = 5
MIN_PAST = 10  # seasons of the baseline
BINS = (0.0, 0.02, 0.1, 0.3, 0.6, 1.0)
HEADERS = {
    "Scores": "league|seasons|method|" + "|".join(MEASURES),
    "Differences": f"league|{MODEL} minus|measure|difference (95 % interval)",
    "Calibration of the chances of the title": "league|method|chances (%)|teams|mean chance (%)|"
    "champions (%)",
}


class League(NamedTuple):
    """Matches of all seasons, with the columns first, second, time, outcome, advantage,
    counts (whether the match counts for the table), and season."""

    name: str
    matches: pd.DataFrame
    points: Points


def british() -> League:
    """The British Home Championship; a season ends in June."""
    frame = load_football().matches
    frame = frame[frame["tournament"] == "British Home Championship"]
    season = (frame["time"] + pd.DateOffset(months=6)).dt.year
    frame = frame.assign(season=season, counts=True)
    full = frame.groupby("season")["time"].transform("size") == 6
    return League("British Home Championship", frame[full], Points(2, 1, 0))


def nba() -> League:
    """The NBA since 1977; playoffs are in the training data, but not in the table."""
    games = load_nba().matches
    frame = games.query("1977 <= season <= 2019").reset_index(drop=True)
    sides = frame[["first", "second"]].stack().droplevel(1)
    season = frame["season"].loc[sides.index].to_numpy()
    of_team = sides.groupby([season, sides.to_numpy()])
    # about half of the teams are not in the playoffs and have the same number of games
    usual = of_team.size().groupby(level=0).agg(lambda sizes: sizes.mode().iloc[0])
    number = of_team.cumcount().groupby(level=0).max()
    regular = number < frame["season"].map(usual)
    return League("NBA", frame.assign(counts=regular), Points(1, 0, 0))


def of_file(path: str, points: Points) -> League:
    frame = pd.read_csv(path, parse_dates=["time"])
    frame = frame.sort_values("time", kind="stable", ignore_index=True)
    return League(Path(path).stem, frame.assign(advantage=True, counts=True), points)


def half_season(league: League, season: Any) -> Season | None:
    """A season at the first date after which at least half of its matches are played."""
    is_season = (league.matches["season"] == season) & league.matches["counts"]
    rows = league.matches.loc[is_season, :]
    middle = rows["time"].iloc[(len(rows) - 1) // 2]
    is_played = rows["time"] <= middle
    if is_played.all():
        return None
    names = sorted({*rows["first"], *rows["second"]})
    return Season(str(season), names, rows[is_played], rows[~is_played], 0)


def tables(season: Season, points: Points) -> tuple[Floats, Floats]:
    """Present and final ranks as matrices of shape (n, n); equal teams share ranks."""
    now = present_points(season, points)
    outcomes = season.to_come["outcome"].to_numpy()[None]
    final = final_points(season, points, lambda _: outcomes, 1)
    return rank_chances(now[None]), rank_chances(final)


# ---- Forecasts


def of_past_tables(
    now: Floats, past: list[tuple[Floats, Floats]], constant: float
) -> Floats:
    """Chances of final ranks given the present ranks, from past seasons."""
    n = len(now)
    moved = np.full((n, n), constant or 1 / n)
    for before, after in past:
        place = np.rint(np.linspace(0, n - 1, len(before))).astype(int)
        moved[np.ix_(place, place)] += before.T @ after
    chances = now @ (moved / moved.sum(axis=1, keepdims=True))
    for _ in range(100):  # rows and columns have the sum 1
        chances /= chances.sum(axis=0)
        chances /= chances.sum(axis=1, keepdims=True)
    return chances


def of_model(league: League, season: Season, seed: int) -> Floats:
    """Chances of final ranks by simulation, as in the report on matches."""
    frame = league.matches
    end = season.played["time"].iloc[-1]
    labels = frame["season"].unique().tolist()
    now = labels.index(season.played["season"].iloc[0])
    known = labels[max(0, now - HISTORY.get(league.name, DEFAULT_HISTORY)) : now + 1]
    frame = frame[frame["season"].isin(known) & (frame["time"] <= end)]
    columns = {"first": "first", "second": "second", "time": "time"}
    matches, y = Matches.from_frame(
        frame, outcome="outcome", outcomes="labels", advantage="advantage", **columns
    )
    has_ties = bool((y == 0).any())
    likelihood = OrdinalProbit(0.4) if has_ties else Probit()
    start = Matern12(1.0, lengthscale=float(np.ptp(matches.time)))
    covariance = {"advantage": Constant(0.1), "*": start}
    model = DynamicComparisons(covariance, likelihood, tol=1e-4)
    best = maximise_evidence(model, matches, y, gtol=0.1, max_iter=25).model
    joint = DynamicComparisons(
        best.covariance, best.likelihood, tol=1e-4, posterior="joint"
    )
    fixed = ["likelihood.margin"] * has_ties
    fixed.append("advantage: Constant.variance")
    averaged = average_over_hyperparameters(joint, matches, y, fixed=fixed)
    rng = np.random.default_rng(seed)
    final = final_points(
        season,
        league.points,
        lambda n: averaged.simulate(season.to_come, n, rng, unseen="ignore"),
    )
    # A rank that no simulation has is not impossible.
    chances = N_SEASONS * rank_chances(final) + 1 / len(season.names)
    return chances / (N_SEASONS + 1)


# ---- Scores


def scores(chances: Floats, final: Floats) -> tuple[float, float, float]:
    """The three measures of one season; `final` has a fraction for each rank."""
    title, won = chances[:, 0], final[:, 0]
    apart = np.cumsum(chances - final, axis=1)[:, :-1]
    return (
        float(-won @ np.log(title)),
        float(((title - won) ** 2).sum()),
        float((apart**2).mean()),
    )


class Scored(NamedTuple):
    season: Any
    method: str
    values: tuple[float, float, float]
    title: Floats
    won: Floats


def held_out(league: League, n_seasons: int) -> Iterator[Scored]:
    """Forecasts of the last seasons, or of all with enough past seasons."""
    past: list[tuple[Floats, Floats]] = []
    labels = league.matches["season"].unique().tolist()
    for number, label in enumerate(labels):
        season = half_season(league, label)
        if season is None:
            continue
        now, final = tables(season, league.points)
        if number >= max(MIN_PAST, len(labels) - n_seasons):
            forecasts = {MODEL: of_model(league, season, number)}
            for name, constant in BASELINES.items():
                forecasts[name] = of_past_tables(now, past, constant)
            for method, chances in forecasts.items():
                values = scores(chances, final)
                print(league.name, label, method, np.round(values, 3), file=sys.stderr)
                yield Scored(label, method, values, chances[:, 0], final[:, 0])
        past.append((now, final))


def lines(league: League, found: list[Scored]) -> dict[str, list[list[object]]]:
    """Rows of the three tables of one league."""
    of_method = {
        method: [one for one in found if one.method == method]
        for method in (MODEL, *BASELINES)
    }
    values = {m: np.array([one.values for one in of_method[m]]) for m in of_method}
    result: dict[str, list[list[object]]] = {title: [] for title in HEADERS}
    n = len(values[MODEL])
    for method, array in values.items():
        means = [f"{x:.3f}" for x in array.mean(axis=0)]
        result["Scores"].append([league.name, n, method, *means])
    for method in BASELINES:
        for k, measure in enumerate(MEASURES):
            gap = compare(values[MODEL][:, k], values[method][:, k], "season")
            result["Differences"].append([league.name, method, measure, str(gap)])
    *_, last = HEADERS
    for method, ones in of_method.items():
        title = np.concatenate([one.title for one in ones])
        won = np.concatenate([one.won for one in ones])
        for low, high in pairwise(BINS):
            inside = (title > low) & (title <= high)
            if inside.any():
                result[last].append(
                    [
                        league.name,
                        method,
                        f"{100 * low:.0f} to {100 * high:.0f}",
                        int(inside.sum()),
                        f"{100 * title[inside].mean():.1f}",
                        f"{100 * won[inside].mean():.1f}",
                    ]
                )
    return result


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="five seasons per league")
    parser.add_argument("--seasons", type=int, default=10_000, help="last seasons")
    parser.add_argument("--league", choices=("British", "NBA"), help="only this league")
    parser.add_argument("--file", help="a CSV file instead of the leagues")
    parser.add_argument("--points", default="", help="points in the file")
    options = parser.parse_args()
    if options.file:
        leagues = [of_file(options.file, read_points(options.points))]
    else:
        makers = {"British": british, "NBA": nba}
        wanted = [options.league] if options.league else list(makers)
        leagues = [makers[name]() for name in wanted]
    n_seasons = 5 if options.quick else options.seasons
    results: dict[str, list[list[object]]] = {title: [] for title in HEADERS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for league in leagues:
            for title, rows in lines(league, [*held_out(league, n_seasons)]).items():
                results[title] += rows
    print_tables(HEADERS, results)


if __name__ == "__main__":
    main()
