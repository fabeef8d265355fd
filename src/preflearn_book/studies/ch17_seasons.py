"""Windows of matches for the arena "time" of chapter 17, what is known of players, and
how forecasts count.

What is to be forecast comes with its outcomes; `ch17_time` says how learners are kept
from those to come. Nothing here uses an outcome before the day after it.

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
"""How many matches of a player are his form."""


class Games(NamedTuple):
    """Matches and their outcomes; those from `start` on are to be forecast, or none.

    Attributes
    ----------
    matches : Matches
    y : ndarray of shape (N,)
        1, 0 or -1.
    features : ndarray of shape (N, 5)
        Of `rolling`.
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
        """Matches begin..end, of which none is to be forecast."""
        some = slice(begin, end)
        return Games(
            self.matches[some],
            self.y[some],
            self.features[some],
            self.ties,
            end - begin,
        )


def rolling(matches: Matches, y: ArrayLike) -> Floats:
    """What is known of the players of a match from earlier days, first less second, and
    the advantage.

    Returns
    -------
    ndarray of shape (N, 5)
        The sum of the outcomes (1, 0, -1) of the last `RECENT` matches over `RECENT`;
        that of all over their number and `RECENT` more, as if so many ties had gone
        before; the mean of this over the opponents of the last `RECENT`, as it was on
        that day; log(1 + number of matches); and the advantage.

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
                place = count[players[k, side]] % RECENT
                recent[who, place], against[who, place] = (
                    sign * results[k],
                    usual[players[k, 1 - side]],
                )
                total[who] += sign * results[k]
                count[who] += 1
        for who in players[begin:end].ravel():
            usual[who] = total[who] / (count[who] + RECENT)
    return x


def judge(outcomes: NDArray[np.int8], probabilities: Floats) -> dict[str, float]:
    """Log loss in nats; share of results foretold wrongly; and by how much the most
    probable ones fall short.

    Where k results share the largest probability, one of them counts 1/k, as in
    `ResultForecasts`.
    """
    right = float(ResultForecasts(probabilities, outcomes).hits().mean())
    sure = float(probabilities.max(axis=1).mean())
    return {
        "loss": log_loss(outcomes, probabilities),
        "error": 1 - right,
        "overconfidence": sure - right,
    }


# ---- Problems

_YEARS = range(1993, 2018, 3)  # that are forecast: no match is in two windows
_HISTORIES = (0.25, 0.5, 1, 2, 4)


def tasks(profile: str) -> list[str]:
    """Names of problems: "NBA/2002" asks for the season that ends in 2002, after two
    others.

    Three years of the NBA and of football are asked for after 1/4 to 4 seasons, too:
    "NBA by history/2002 after 0.5". Of "quick" some, of "full" all.
    """
    if profile == "quick":
        return ["ATP/2002"]
    usual = [
        f"{sport}/{year}" for sport, year in product(("NBA", "ATP", "football"), _YEARS)
    ]
    kinds = product(("NBA", "football"), _YEARS[1::3], _HISTORIES)
    lengths = [
        f"{sport} by history/{year} after {history:g}" for sport, year, history in kinds
    ]
    return [*usual, "StarCraft/HotS", "StarCraft/WoL", *lengths]


def problem(name: str) -> Problem:
    """The problem of a name, one of `tasks`.

    - NBA: a season, from all games of the two before. Football: a year of
      internationals, from two. ATP: the first half of a year on the main tour, from the
      year before.
    - By history: from as many seasons or years as it says; if less than one, from the
      last part of its games.
    - StarCraft: the split of the authors of [Maystre2019]_, which has no dates. Rows to
      learn from are in the order of the file, within a day; all to validate by are
      asked for on the next day, and the test on the third. So skills stand still, and
      the test is forecast from 70 percent of the rows.

    If the matches are not available, a league is simulated instead.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
       flexible time-dynamics", KDD 2019.
    """
    return problem_or_simulation(name, _problem, _simulated)


def _problem(name: str) -> Problem:
    domain, unit = name.split("/")
    if domain == "StarCraft":
        return _starcraft(unit)
    sport = domain.removesuffix(" by history")
    (year, _, long) = unit.partition(" after ")
    history, months = (1.0, 6) if sport == "ATP" else (2.0, 12)
    history = float(long or history)
    begin: Any = pd.Timestamp(
        f"{int(year) - 1}-08-01" if sport == "NBA" else f"{year}-01-01"
    )
    span = (
        begin - pd.DateOffset(years=math.ceil(history)),
        begin,
        begin + pd.DateOffset(months=months),
    )
    return posed(domain, unit, _window(_frame(sport), sport, *span, min(history, 1.0)))


def new_user() -> list[Problem]:
    """A league of 18 teams, 5 seasons: the NBA from autumn 1971 to 1976; half seasons,
    each from all before.

    The file also has a second league of these years, whose teams never met those of the
    first. If the games are not available, leagues are simulated instead.
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
    found = []
    frame = frame[frame["season"].between(1972, 1976)]
    league = next(
        teams
        for teams in diagnose(Matches.from_frame(frame)[0]).components
        if "BOS" in teams
    )
    frame = frame[frame["first"].isin(list(league))]
    for year in (1974, 1975, 1976):
        days = frame.loc[frame["season"] == year, "time"].unique()
        dates = days[0], days[len(days) // 2], days[-1] + pd.Timedelta(days=1)
        for half, (begin, end) in zip(
            ("first", "second"), pairwise(dates), strict=True
        ):
            window = _window(frame, "NBA", frame["time"].min(), begin, end)
            found.append(
                posed("a league of 18 teams", f"{half} half of {year}", window)
            )
    return found


def posed(
    domain: str, unit: str, whole: Games, validation: int | None = None
) -> Problem:
    """A problem of this arena; validation begins at this match, or at that after two
    thirds of the days."""
    known = whole.block(0, whole.start)
    days = np.unique(known.matches.time)
    players = known.matches.players()
    third = np.searchsorted(known.matches.time, days[2 * len(days) // 3])
    fold = known._replace(start=int(third) if validation is None else validation)
    parts = [Split(of.block(0, of.start), of, of.y[of.start :]) for of in (whole, fold)]
    ties = round(float((known.y == 0).mean()), 4)
    n = whole.start
    n_players = len(np.unique(players))
    facts = {
        "n_train": n,
        "n_test": len(whole.y) - n,
        "players": n_players,
        "per_player": round(2 * n / n_players, 1),
    }
    arena = "history" if domain.endswith(" by history") else "time"
    return Problem(
        arena, domain, unit, parts[0], parts[1:], judge, facts | {"ties": ties}
    )


def _simulated(name: str, n_teams: int = 20, n_matches: int = 1500) -> Problem:
    """Three years of a league whose scores are random walks by month; the last year is
    to be forecast."""
    domain, unit = name.split("/")
    sport = domain.removeprefix(SIMULATED).removesuffix(" by history")
    rng = np.random.default_rng([17, *name.encode()])
    days = np.sort(rng.integers(0, 3 * 360, n_matches))
    sides = np.argsort(rng.random((n_matches, n_teams)), axis=1)[:, :2]
    moves = rng.normal(scale=0.1, size=(36, n_teams))
    scores = rng.normal(scale=0.7, size=n_teams) + np.cumsum(moves, axis=0)
    home = 0.3 if sport in ("NBA", "football") else 0.0
    gap = np.subtract(*scores[days[:, None] // 30, sides].T) + rng.logistic(
        home, size=n_matches
    )
    teams = np.char.add("team ", (sides + 1).astype("U"))
    columns = {
        "first": teams[:, 0],
        "second": teams[:, 1],
        "time": days.astype(float),
        "advantage": True,
    }
    columns["outcome"] = threshold(gap, 0.4 if sport == "football" else 0.0)
    return posed(
        domain,
        unit,
        _games(pd.DataFrame(columns), sport, int(np.searchsorted(days, 2 * 360))),
    )


@cache
def _frame(sport: str) -> Any:
    if sport == "NBA":
        return datasets.load_nba().matches
    return (
        datasets.load_atp("main").matches
        if sport == "ATP"
        else datasets.load_football().matches
    )


def _window(
    frame: Any, sport: str, learn: Any, begin: Any, end: Any, last: float = 1.0
) -> Games:
    """Matches between dates, to be forecast from one of them on; of those before it the
    last part counts."""
    frame = frame[(frame["time"] >= learn) & (frame["time"] < end)].reset_index(
        drop=True
    )
    days = frame["time"].to_numpy()
    start = int(np.searchsorted(days, np.datetime64(begin)))
    first = int(np.searchsorted(days, days[math.floor((1 - last) * start)]))
    return _games(frame[first:], sport, start - first)


def _games(frame: Any, sport: str, start: int) -> Games:
    advantage = "advantage" if sport in ("NBA", "football") else None
    matches, y = Matches.from_frame(frame.reset_index(drop=True), advantage=advantage)
    return Games(matches, y, rolling(matches, y), sport == "football", start)


def _starcraft(name: str) -> Problem:
    frame = datasets.load_starcraft(name).matches
    parts = split_rows(name)
    sizes = [len(part) for part in parts]
    times = np.repeat([0.0, 1.0, 2.0], sizes)
    times[: sizes[0]] = np.linspace(0.0, 1.0, sizes[0], endpoint=False)
    rows = frame.iloc[np.concatenate(parts)].assign(time=times)
    return posed(
        "StarCraft", name, _games(rows, "StarCraft", sizes[0] + sizes[1]), sizes[0]
    )


def split_rows(name: str) -> list[Ids]:
    """The authors' split, in rows of `load_starcraft`: a half, a fifth, and three
    tenths of the file's rows.

    They shuffle all rows, with random.seed(42). Those in which a player meets himself,
    which the loader leaves out, are left out of the parts.
    """
    lines = read("starcraft", f"{name}.txt").decode("utf-8").splitlines()
    sides = [
        line.split()[0].split(":") for line in lines[int(lines[0].split()[1]) + 2 :]
    ]
    own = np.array([first == second for first, second in sides])
    order = list(range(len(own)))
    random.Random(42).shuffle(order)
    parts = np.split(np.array(order), [len(own) // 2, int(0.7 * len(own))])
    number = np.cumsum(~own) - 1
    return [np.sort(number[part[~own[part]]]) for part in parts]
