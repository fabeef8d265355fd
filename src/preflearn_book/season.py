"""The rest of a season: the table so far, and simulations of the matches to come.

A simulated season consists of the results so far and one joint draw of all outcomes to
come. The real rules for equal points are unknown: if k players have equal points, each of
them gets 1/k of each of their k ranks, as if lots were drawn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata

from preflearn_book.reading.columns import Frame, first_few
from preflearn_book.reading.labels import escape_markdown, plot_labels
from preflearn_book.report_tables import percent
from preflearn_book.sentences import between, join_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

N_SEASONS = 10_000
"""Number of simulated seasons."""

BREAK = pd.Timedelta(days=60)
"""A longer time without a match ends a season, if the file does not name seasons."""

MAX_PLAYERS = 40
MAX_RATIO = 2
"""Largest ratio of the numbers of matches of two players; tables of points are unfair
above it."""

_BLOCK = 1 << 20  # number of outcomes drawn at once
_DIGITS = 9  # to which equal sums of points agree
_MIN_CHANCE = 0.05  # of a title in the summary
_MIN_LABEL = 0.01  # of a number in the heat map
_CELL = (0.0, 0.62, 0.45)  # the green of Okabe and Ito
_OPACITY = 0.55  # at which numbers have a contrast of at least 4.5 in both themes
_MAX_LARGE = 12  # players whose names and numbers have large letters
_MAX_NUMBERS = 20  # players above which only the most likely rank has a number
_MAX_TICKS = 12
_POINTS = re.compile(r"(\d+\.?\d*)[\s,;/-]+(\d+\.?\d*)[\s,;/-]+(\d+\.?\d*)")


class Points(NamedTuple):
    """Points for one match."""

    win: float
    tie: float
    loss: float

    def __str__(self) -> str:
        return f"{self.win:g} for a win, {self.tie:g} for a tie, and {self.loss:g} for a loss"


def read_points(text: str, has_ties: bool = True) -> Points:
    """Points from a parameter such as "3 1 0"; by default 3-1-0, or wins without ties.

    Raises
    ------
    ValueError
        If the text does not have three numbers, of which the first is the largest and
        the last the smallest.

    Examples
    --------
    >>> read_points("1 0.5 0", True), read_points("", False)
    (Points(win=1.0, tie=0.5, loss=0.0), Points(win=1.0, tie=0.0, loss=0.0))
    """
    if not text.strip():
        return Points(3.0, 1.0, 0.0) if has_ties else Points(1.0, 0.0, 0.0)
    found = _POINTS.fullmatch(text.strip())
    points = Points(*map(float, found.groups())) if found else Points(0.0, 0.0, 0.0)
    if not points.win >= points.tie >= points.loss < points.win:
        raise ValueError(
            f"points={text!r} are not points for a win, a tie, and a loss, from the most to the fewest; "
            f"write them like '3 1 0'"
        )
    return points


class Season(NamedTuple):
    """The current season.

    Attributes
    ----------
    label : str
        Words after "the season", such as "2025/26", not escaped.
    names : list of str
        Players who meet in the season, directly or through others.
    played, to_come : DataFrame
        Matches among these players, with the columns first and second.
    n_apart : int
        Number of other players, who do not meet these in the season.
    """

    label: str
    names: list[str]
    played: Frame
    to_come: Frame
    n_apart: int


def current_season(played: Frame, to_come: Frame) -> Season | None:
    """The season of the first match to come; None if fewer than two matches are left.

    A column "season" decides if there is one. Otherwise, a season ends at a break of more
    than 60 days between matches, and times without dates have a single season. If the
    players form groups that do not meet in the season, such as divisions, the group with
    the most matches to come is taken.

    Parameters
    ----------
    played, to_come : DataFrame
        Matches sorted by time, as in `MatchFile`.
    """
    if to_come.empty:
        return None
    label, known, future = _rows_of_season(played, to_come)
    both = pd.concat([known, future])
    ids, names = pd.factorize(pd.concat([both["first"], both["second"]]))
    first, second = ids.reshape(2, -1)
    graph = sparse.csr_array(
        (np.ones(len(first)), (first, second)), shape=(len(names),) * 2
    )
    _, group = connected_components(graph, directed=False)
    chosen = np.bincount(group[first[len(known) :]]).argmax()
    is_inside = group[first] == chosen
    season = Season(
        label,
        [name for name, k in zip(names, group, strict=True) if k == chosen],
        known[is_inside[: len(known)]],
        future[is_inside[len(known) :]],
        int((group != chosen).sum()),
    )
    return season if len(season.to_come) > 1 else None


def _rows_of_season(played: Frame, to_come: Frame) -> tuple[str, Frame, Frame]:
    """Name of the season, and its matches with and without an outcome."""
    if "season" in played:
        label = to_come["season"].iloc[0] or played["season"].iloc[-1]
        known = played[played["season"] == label]
        return label, known, to_come[to_come["season"].isin([label, ""])]
    times = pd.concat([played["time"], to_come["time"]], ignore_index=True)
    if not pd.api.types.is_datetime64_any_dtype(times):
        return "of all matches in the file", played, to_come
    number = (times.diff() > BREAK).cumsum().to_numpy()
    now = number[len(played)]
    label = f"since the last break of more than {BREAK.days} days"
    if now == 0:
        label = f"of all matches in the file, which has no break of more than {BREAK.days} days"
    is_current = number == now
    return (
        label,
        played[is_current[: len(played)]],
        to_come[is_current[len(played) :]],
    )


def obstacle(season: Season, group_of: Mapping[str, int]) -> str:
    """Why final ranks of a season cannot be forecast, as Markdown; "" if they can.

    Parameters
    ----------
    season : Season
    group_of : mapping of str to int
        Group of each player with a result; players of two groups never met.
    """
    n = len(season.names)
    if n > MAX_PLAYERS:
        return (
            f"The season has {n:,} competitors. The report forecasts tables of up to "
            f"{MAX_PLAYERS}."
        )
    of_group: dict[int, str] = {}
    for name in season.names:
        if name in group_of:
            of_group.setdefault(group_of[name], name)
    if len(of_group) > 1:
        one, other = map(escape_markdown, list(of_group.values())[:2])
        return (
            f"No forecast of the final ranks is possible, because competitors of the season are in "
            f"groups that never met, such as {one} and {other}."
        )
    total = _n_matches(season.names, season.played) + _n_matches(
        season.names, season.to_come
    )
    most, fewest = int(total.argmax()), int(total.argmin())
    if total[most] > MAX_RATIO * total[fewest]:
        return (
            f"The report has no table of points, because the numbers of matches differ too much: "
            f"{escape_markdown(season.names[most])} has {total[most]:,} matches in the season, and "
            f"{escape_markdown(season.names[fewest])} has {total[fewest]:,}. If the season is another "
            f"one, name it with `-p season`."
        )
    return ""


def _n_matches(names: list[str], matches: Frame) -> NDArray[np.int64]:
    counts = pd.concat([matches["first"], matches["second"]]).value_counts()
    return counts.reindex(names, fill_value=0).to_numpy()


def points_of(
    outcomes: ArrayLike, matches: Frame, names: list[str], points: Points
) -> Floats:
    """Points of each player from the outcomes of matches.

    Parameters
    ----------
    outcomes : array-like of shape (n_draws, N)
        1 if the first won, 0 for a tie, -1 if the second won.
    matches : DataFrame of N rows
    names : list of n names
    points : Points

    Returns
    -------
    ndarray of shape (n_draws, n)

    Examples
    --------
    >>> matches = pd.DataFrame({"first": ["Ann", "Bob"], "second": ["Bob", "Cy"]})
    >>> points_of([[1, 0], [-1, 1]], matches, ["Ann", "Bob", "Cy"], Points(3, 1, 0)).tolist()
    [[3.0, 1.0, 1.0], [0.0, 6.0, 0.0]]
    """
    result = np.asarray(outcomes).astype(np.int8)
    value = np.array([points.loss, points.tie, points.win])
    total = np.zeros((len(names), len(result)))
    for side, sign in (("first", 1), ("second", -1)):
        player = pd.Index(names).get_indexer(matches[side])
        takes_part: Any = sparse.csr_array(
            (np.ones(len(player)), (player, np.arange(len(player)))),
            shape=(len(names), len(player)),
        )
        total += takes_part @ value[1 + sign * result].T
    return np.round(total.T, _DIGITS)


def present_points(season: Season, points: Points) -> Floats:
    """Points of each player so far, shape (n,)."""
    outcomes = season.played["outcome"].to_numpy()[None]
    return points_of(outcomes, season.played, season.names, points)[0]


def final_points(
    season: Season,
    points: Points,
    draw: Callable[[int], ArrayLike],
    n_seasons: int = N_SEASONS,
) -> Floats:
    """Points at the end of each simulated season, shape (n_seasons, n).

    Parameters
    ----------
    season : Season
    points : Points
    draw : callable
        Draws the outcomes of `season.to_come`: from a number of draws to an array of
        shape (number, N).
    n_seasons : int
    """
    size = max(1, _BLOCK // len(season.to_come))
    parts = [
        points_of(
            draw(min(size, n_seasons - begin)), season.to_come, season.names, points
        )
        for begin in range(0, n_seasons, size)
    ]
    return np.round(present_points(season, points) + np.concatenate(parts), _DIGITS)


def rank_chances(points: Floats) -> Floats:
    """Chance of each player (row) to have each final rank (column), shape (n, n).

    Parameters
    ----------
    points : ndarray of shape (n_seasons, n)
        Final points. Players with equal points share their ranks equally, so rows and
        columns have the sum 1.

    Examples
    --------
    >>> rank_chances(np.array([[6.0, 4.0, 4.0], [3.0, 4.0, 1.0]])).tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.25, 0.25], [0.0, 0.25, 0.75]]
    """
    n_seasons, n = points.shape
    best = rankdata(-points, method="min", axis=1).astype(np.int64) - 1
    end = rankdata(-points, method="max", axis=1).astype(np.int64)
    share = 1 / (end - best)
    player = np.broadcast_to(np.arange(n), points.shape)
    steps = np.zeros((n, n + 1))
    np.add.at(steps, (player, best), share)
    np.add.at(steps, (player, end), -share)
    return np.maximum(np.cumsum(steps, axis=1)[:, :n], 0.0) / n_seasons


class SeasonForecast(NamedTuple):
    """Forecast of the final table, the players with the most expected points first.

    Attributes
    ----------
    table : DataFrame
        name; played and left, numbers of matches; points, so far; final, low, and high,
        the mean and the 95 % interval of the final points.
    chances : ndarray of shape (n, n)
        Result of `rank_chances`.
    """

    table: pd.DataFrame
    chances: Floats


def forecast_season(
    season: Season, points: Points, draw: Callable[[int], ArrayLike]
) -> SeasonForecast:
    """Simulate the rest of a season; the arguments are those of `final_points`."""
    final = final_points(season, points, draw)
    low, high = np.quantile(final, [0.025, 0.975], axis=0, method="nearest")
    table = pd.DataFrame(
        {
            "name": season.names,
            "played": _n_matches(season.names, season.played),
            "left": _n_matches(season.names, season.to_come),
            "points": present_points(season, points),
            "final": final.mean(axis=0),
            "low": low,
            "high": high,
        }
    )
    order = np.lexsort((np.array(season.names), -table["final"].to_numpy()))
    return SeasonForecast(
        table.iloc[order].reset_index(drop=True), rank_chances(final)[order]
    )


def n_last(n: int) -> int:
    """Number of last places that the report shows: three of at least ten, else one."""
    return 3 if n >= 10 else 1


def title_sentence(forecast: SeasonForecast, n_seasons: int = N_SEASONS) -> str:
    """Chances of the title of at most three players, as Markdown.

    Examples
    --------
    >>> table = pd.DataFrame({"name": ["Ann", "Bob", "Cy"]})
    >>> chances = np.array([[0.7, 0.2, 0.1], [0.26, 0.5, 0.24], [0.04, 0.3, 0.66]])
    >>> title_sentence(SeasonForecast(table, chances))
    'In 10,000 simulated seasons, Ann finishes first in 70 % and Bob in 26 %.'
    """
    title = forecast.chances[:, 0]
    order = np.argsort(-title, kind="stable")[:3]
    kept = order[title[order] >= min(_MIN_CHANCE, title.max())]
    verbs = [" finishes first", *[""] * (len(kept) - 1)]
    parts = [
        f"{escape_markdown(forecast.table['name'].iloc[k])}{verb} in {percent(float(title[k]))}"
        for k, verb in zip(kept, verbs, strict=True)
    ]
    return f"In {n_seasons:,} simulated seasons, {join_names(parts)}."


def unseen_sentence(season: Season, known: Mapping[str, int]) -> str:
    """Name the players without a result, as Markdown; "" if there are none."""
    unseen = [name for name in season.names if name not in known]
    if not unseen:
        return ""
    have = "have"
    scores = "these scores"
    if len(unseen) == 1:
        have = "has"
        scores = "this score"
    return (
        f"{first_few(unseen)} {have} no result in the file, so the simulation draws {scores} "
        f"from the distribution that the model assumes for all competitors."
    )


def season_table(forecast: SeasonForecast) -> pd.DataFrame:
    """The columns of a forecast that the report shows, with chances in percent."""
    table = forecast.table
    n = len(table)
    has_fractions = (table[["points", "low"]].to_numpy() % 1).any()
    digits = 1 if has_fractions else 0
    ends = zip(table["low"], table["high"], strict=True)
    bottom = n_last(n)
    last = forecast.chances[:, n - bottom :].sum(axis=1)
    return pd.DataFrame(
        {
            "name": table["name"],
            "points": table["points"] if digits else table["points"].astype(int),
            "final points": table["final"],
            "95 % interval": [between(low, high, digits) for low, high in ends],
            "1st (%)": np.rint(100 * forecast.chances[:, 0]).astype(int),
            f"last{f' {bottom}' * (bottom > 1)} (%)": np.rint(100 * last).astype(int),
            "played": table["played"],
            "left": table["left"],
        }
    )


def draw_rank_chances(axis: Axes, forecast: SeasonForecast) -> None:
    """Draw the chances of all ranks as a heat map with numbers in percent.

    Cells have a transparent color, so that the numbers are readable on light and on dark
    pages.
    """
    from matplotlib.colors import LinearSegmentedColormap

    n = len(forecast.table)
    colors = [(*_CELL, 0.0), (*_CELL, _OPACITY)]
    cells = LinearSegmentedColormap.from_list("chances", colors)
    axis.pcolormesh(forecast.chances, cmap=cells, vmin=0, vmax=forecast.chances.max())
    has_number = forecast.chances >= _MIN_LABEL
    if n > _MAX_NUMBERS:
        has_number = np.eye(n, dtype=bool)[forecast.chances.argmax(axis=1)]
    is_small = n > _MAX_LARGE
    for row, rank in np.argwhere(has_number):
        label = f"{100 * forecast.chances[row, rank]:.0f}"
        place = rank + 0.5, row + 0.5
        axis.text(
            *place, label, ha="center", va="center", fontsize=7 if is_small else 9
        )
    names = plot_labels(forecast.table["name"], 16 if is_small else 18)
    axis.set_yticks(np.arange(n) + 0.5, names, fontsize=9 if is_small else 11)
    ranks = np.arange(0, n, -(-n // _MAX_TICKS))
    axis.set_xticks(ranks + 0.5, (ranks + 1).astype(str))
    axis.set(xlabel="final rank", ylim=(n, 0), xlim=(0, n))
    axis.tick_params(length=0)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
