"""The task family "time" of chapter 17: windows of matches, player features, and losses.

The test matches include their outcomes, which become known day by day. `ch17_time`
describes how learners are prevented from using later outcomes. Features use only outcomes
of earlier days. Validation is forward in time: models are trained on the first two thirds
of the days and forecast the last third.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
import random
from functools import cache
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from preflearn import datasets
from preflearn.core.compilation import njit
from preflearn.core.diagnosis import diagnose
from preflearn.core.validation import Floats, Ids
from preflearn.datasets.storage import read
from preflearn.matches import ADVANTAGE, Matches
from preflearn.metrics import log_loss, threshold
from preflearn_book.studies.ch14_sports import ResultForecasts
from preflearn_book.studies.ch17_protocol import (
    SIMULATED,
    Problem,
    Split,
    problem_or_simulation,
)

RECENT = 20
"""Number of recent matches that determine the form of a player."""


class Games(NamedTuple):
    """Matches and their outcomes. Matches from `start` on, if any, are test matches.

    Attributes
    ----------
    matches : Matches
    y : ndarray of shape (N,)
        1, 0 or -1.
    features : ndarray of shape (N, 5)
        Result of `rolling`.
    ties : bool
        Whether the sport has ties.
    start : int
    """

    matches: Matches
    y: NDArray[np.int8]
    features: Floats
    ties: bool
    start: int

    def block(self, begin: int, end: int) -> Games:
        """The matches from begin to end, of which none is to be forecast."""
        rows = slice(begin, end)
        return Games(
            self.matches[rows],
            self.y[rows],
            self.features[rows],
            self.ties,
            end - begin,
        )


def rolling(matches: Matches, y: ArrayLike) -> Floats:
    """Differences of player features from earlier days, and the advantage.

    Returns
    -------
    ndarray of shape (N, 5)
        The first four columns are values of the first player minus values of the second
        player:

        - the sum of the outcomes (1, 0, -1) of the last `RECENT` matches, divided by
          `RECENT`;
        - the sum of all outcomes, divided by their number plus `RECENT`, as if the
          player had started with `RECENT` ties;
        - the mean of the second value over the opponents of the last `RECENT` matches,
          on the day of the match;
        - log(1 + number of matches).

        The last column is the advantage.

    Examples
    --------
    >>> matches = Matches([[1, -1], [1, -1], [1, -1]], [0, 1, 1], ["Ann", "Bob"])
    >>> rolling(matches, [1, 1, -1])[:, :2].round(3).tolist()
    [[0.0, 0.0], [0.1, 0.095], [0.1, 0.095]]
    """
    names = matches.features
    column = np.zeros(len(matches))
    if ADVANTAGE in names:
        column = matches.design[:, [names.index(ADVANTAGE)]].toarray().ravel()
    days = np.append(
        np.flatnonzero(np.diff(matches.time, prepend=-np.inf)), len(matches)
    )
    x = _rolled(matches.players(), np.asarray(y, dtype=np.float64), days, len(names))
    return np.column_stack([x, column])


@njit
def _rolled(players, results, days, n):
    x = np.zeros((len(players), 4))
    recent = np.zeros((n, RECENT))
    against = np.zeros((n, RECENT))
    total = np.zeros(n)
    count = np.zeros(n, dtype=np.int64)
    usual = np.zeros(n)
    for day in range(len(days) - 1):
        begin = days[day]
        end = days[day + 1]
        for k in range(begin, end):
            for side, sign in enumerate((1.0, -1.0)):
                who = players[k, side]
                x[k, 0] += sign * recent[who].mean()
                x[k, 1] += sign * usual[who]
                x[k, 2] += sign * against[who].mean()
                x[k, 3] += sign * np.log(1.0 + count[who])
        for k in range(begin, end):
            for side, sign in enumerate((1.0, -1.0)):
                who = players[k, side]
                place = count[who] % RECENT
                recent[who, place] = sign * results[k]
                against[who, place] = usual[players[k, 1 - side]]
                total[who] += sign * results[k]
                count[who] += 1
        for who in players[begin:end].ravel():
            usual[who] = total[who] / (count[who] + RECENT)
    return x


def judge(outcomes: NDArray[np.int8], probabilities: Floats) -> dict[str, float]:
    """Log loss in nats, error rate, and overconfidence.

    The overconfidence is the mean of the largest probability minus the accuracy. If k
    results have the same largest probability, each of them counts 1/k, as in
    `ResultForecasts`.
    """
    accuracy = float(ResultForecasts(probabilities, outcomes).hits().mean())
    confidence = float(probabilities.max(axis=1).mean())
    return {
        "loss": log_loss(outcomes, probabilities),
        "error": 1 - accuracy,
        "overconfidence": confidence - accuracy,
    }


# ---- Problems

_YEARS = range(1993, 2018, 3)  # years of the test matches; no match is in two windows
_HISTORIES = (0.25, 0.5, 1, 2, 4)
WITH_ADVANTAGE = ("NBA", "football")


def tasks(profile: str) -> list[str]:
    """Names such as "NBA/2002", the season that ends in 2002, after two training seasons.

    Five years of the NBA and of football are also forecast from 1/4 to 4 seasons, such
    as "NBA by history/2002 after 0.5".
    """
    if profile == "quick":
        return ["ATP/2002"]
    usual = [
        f"{sport}/{year}" for sport, year in product(("NBA", "ATP", "football"), _YEARS)
    ]
    kinds = product(("NBA", "football"), _YEARS[::2], _HISTORIES)
    lengths = [
        f"{sport} by history/{year} after {history:g}" for sport, year, history in kinds
    ]
    return [*usual, "StarCraft/HotS", "StarCraft/WoL", *lengths]


def problem(name: str) -> Problem:
    """The problem with a given name, one of `tasks`.

    - NBA: a season is forecast from all games of the two seasons before it.
    - Football: a year of international matches is forecast from the two years before.
    - ATP: the first half of a year on the main tour is forecast from the year before.
    - By history: the training data are the given number of seasons or years. If the
      number is below one, they are the last part of the games of one season or year.
    - StarCraft: the split of the authors of [Maystre2019]_, which has no dates. The
      training rows are on one day, in the order of the file. The validation rows are on
      the second day, and the test rows on the third. Therefore skills are constant, and
      the test rows are forecast from 70 percent of the rows.

    If the matches are not available, a league is simulated instead.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
       flexible time-dynamics", KDD 2019.
    """
    return problem_or_simulation(name, _real_problem, _simulated)


def _real_problem(name: str) -> Problem:
    domain, unit = name.split("/")
    if domain == "StarCraft":
        return _starcraft(unit)
    sport = domain.removesuffix(" by history")
    year, _, seasons = unit.partition(" after ")
    months, usual_history = (6, 1.0) if sport == "ATP" else (12, 2.0)
    history = float(seasons or usual_history)
    begin: Any = pd.Timestamp(f"{year}-01-01")
    if sport == "NBA":
        begin -= pd.DateOffset(months=5)
    first_date = begin - pd.DateOffset(years=math.ceil(history))
    dates = first_date, begin, begin + pd.DateOffset(months=months)
    window = _window(_frame(sport), sport, dates, min(history, 1.0))
    return make_problem(domain, unit, window)


def new_user() -> list[Problem]:
    """A league of 18 teams over 5 seasons: the NBA from 1971 to 1976, by half seasons.

    Each half season is forecast from all earlier matches. The file also has a second
    league of these years, whose teams never played against teams of the first league. If
    the games are not available, leagues are simulated instead.
    """
    try:
        return _league_of_1972()
    except datasets.DatasetUnavailable:
        return [
            _simulated(f"{SIMULATED}league of 18 teams/{k}", n_teams=18)
            for k in range(6)
        ]


def _league_of_1972() -> list[Problem]:
    frame = _frame("NBA")
    frame = frame[frame["season"].between(1972, 1976)]
    components = diagnose(Matches.from_frame(frame)[0]).components
    league = next(teams for teams in components if "BOS" in teams)
    frame = frame[frame["first"].isin(list(league))]
    problems = []
    for year in (1974, 1975, 1976):
        days = frame.loc[frame["season"] == year, "time"].unique()
        ends = days[0], days[len(days) // 2], days[-1] + pd.Timedelta(days=1)
        for half, span in zip(("first", "second"), pairwise(ends), strict=True):
            window = _window(frame, "NBA", (frame["time"].min(), *span))
            unit = f"{half} half of {year}"
            problems.append(make_problem("a league of 18 teams", unit, window))
    return problems


def make_problem(
    domain: str, unit: str, whole: Games, validation: int | None = None
) -> Problem:
    """The problem of a window of matches.

    Parameters
    ----------
    domain, unit : str
    whole : Games
    validation : int, optional
        Number of the first validation match; by default, the first one after two
        thirds of the training days.
    """
    known = whole.block(0, whole.start)
    if validation is None:
        days = np.unique(known.matches.time)
        first_day = days[2 * len(days) // 3]
        validation = int(np.searchsorted(known.matches.time, first_day))
    fold = known._replace(start=validation)
    family = "history" if domain.endswith(" by history") else "time"
    n_players = len(np.unique(known.matches.players()))
    facts = {"n_train": whole.start, "players": n_players}
    return Problem(family, domain, unit, _split(whole), [_split(fold)], judge, facts)


def _split(games: Games) -> Split:
    return Split(games.block(0, games.start), games, games.y[games.start :])


def _simulated(name: str, n_teams: int = 20) -> Problem:
    """Three simulated years of a league, with the last year for testing.

    Scores are random walks by month.
    """
    n_matches = 1500
    domain, unit = name.split("/")
    sport = domain.removeprefix(SIMULATED).removesuffix(" by history")
    rng = np.random.default_rng([17, *name.encode()])
    days = np.sort(rng.integers(0, 3 * 360, n_matches))
    sides = np.argsort(rng.random((n_matches, n_teams)), axis=1)[:, :2]
    moves = rng.normal(scale=0.1, size=(36, n_teams))
    scores = rng.normal(scale=0.7, size=n_teams) + np.cumsum(moves, axis=0)
    home = 0.3 if sport in WITH_ADVANTAGE else 0.0
    margin = 0.4 if sport == "football" else 0.0
    noise = rng.logistic(home, size=n_matches)
    gap = np.subtract(*scores[days[:, None] // 30, sides].T) + noise
    teams = np.char.add("team ", (sides + 1).astype("U"))
    frame = pd.DataFrame(
        {
            "first": teams[:, 0],
            "second": teams[:, 1],
            "time": days.astype(float),
            "advantage": True,
            "outcome": threshold(gap, margin),
        }
    )
    start = int(np.searchsorted(days, 2 * 360))
    return make_problem(domain, unit, _games(frame, sport, start))


@cache
def _frame(sport: str) -> Any:
    if sport == "NBA":
        return datasets.load_nba().matches
    if sport == "ATP":
        return datasets.load_atp("main").matches
    return datasets.load_football().matches


def _window(
    frame: Any, sport: str, dates: tuple[Any, Any, Any], fraction: float = 1.0
) -> Games:
    """Matches between dates.

    Parameters
    ----------
    frame : DataFrame
    sport : str
    dates : tuple
        First date of the training matches, first date of the test matches, and the day
        after the last test match.
    fraction : float
        Fraction of the training matches to use, starting from the last match.
    """
    first_date, begin, end = dates
    inside = (frame["time"] >= first_date) & (frame["time"] < end)
    frame = frame[inside].reset_index(drop=True)
    days = frame["time"].to_numpy()
    start = int(np.searchsorted(days, np.datetime64(begin)))
    # Days are not split.
    first_day = days[math.floor((1 - fraction) * start)]
    first = int(np.searchsorted(days, first_day))
    return _games(frame[first:], sport, start - first)


def _games(frame: Any, sport: str, start: int) -> Games:
    advantage = "advantage" if sport in WITH_ADVANTAGE else None
    matches, y = Matches.from_frame(frame.reset_index(drop=True), advantage=advantage)
    return Games(matches, y, rolling(matches, y), sport == "football", start)


def _starcraft(name: str) -> Problem:
    frame = datasets.load_starcraft(name).matches
    parts = split_rows(name)
    sizes = [len(part) for part in parts]
    times = np.repeat([0.0, 1.0, 2.0], sizes)
    times[: sizes[0]] = np.linspace(0.0, 1.0, sizes[0], endpoint=False)
    rows = frame.iloc[np.concatenate(parts)].assign(time=times)
    games = _games(rows, "StarCraft", sizes[0] + sizes[1])
    return make_problem("StarCraft", name, games, sizes[0])


def split_rows(name: str) -> list[Ids]:
    """The authors' split in 50, 20, and 30 percent, as rows of `load_starcraft`.

    The authors shuffle all rows of the file with random.seed(42). The loader leaves out
    rows in which both players are the same, so these rows are not in the parts.
    """
    lines = read("starcraft", f"{name}.txt").decode("utf-8").splitlines()
    n_players = int(lines[0].split()[1])
    sides = [line.split()[0].split(":") for line in lines[n_players + 2 :]]
    own = np.array([first == second for first, second in sides])
    order = list(range(len(own)))
    random.Random(42).shuffle(order)
    parts = np.split(np.array(order), [len(own) // 2, int(0.7 * len(own))])
    number = np.cumsum(~own) - 1
    return [np.sort(number[part[~own[part]]]) for part in parts]
