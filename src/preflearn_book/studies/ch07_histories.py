"""Features of matches from earlier matches of both players, section 5.1 of [Venuto2017]_.

All features of a row are computed from earlier rows. The module also has the splits of
section 5.2: each season is split into a first part for training and a rest for
prediction, and no split trains on later matches.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from preflearn.core.validation import require
from preflearn.matches import Matches

_UNKNOWN = 0.5  # the authors' value; on the scale of points, it means a draw
_MONTH = 365.25 / 12  # days
_MIN_MATCHES = 10  # training matches of a player


def match_features(
    matches: pd.DataFrame,
    elo: NDArray,
    glicko: NDArray,
    *,
    past: Literal["rows", "times"] = "rows",
    elite: float = 2400.0,
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The 16 features of both players of each match, from earlier matches only.

    They are described in section 5.1 of [Venuto2017]_. "Better" and "worse" compare the
    Elo ratings before a match. A draw that is an upset counts both as a win and as a
    loss. The gap of a match is the Elo rating of the opponent minus that of the player.

    Parameters
    ----------
    matches : DataFrame
        One row per match, in the order of time: first, second, time (datetime64, or
        numbers that count months), outcome (+1, 0, -1), advantage (bool: the first has
        the first move, or plays at home).
    elo, glicko : ndarray of shape (N, 2)
        Ratings of first and second before each match, in points.
    past : {"rows", "times"}
        Definition of the past of a match: all earlier rows, or all rows with strictly
        earlier times. If times are coarse (months), the order of rows within one time
        may contain information that was not known before the match.
    elite : float
        Elo rating from which a player counts as elite for all later matches. FIDE uses
        2400 as the bound for its smallest update step.

    Returns
    -------
    X : ndarray of shape (N, 2, 16)
        Features of the first and of the second player; an unknown value is 0.5.
    names : tuple of str
        Names of the features. Counts are numbers of games, and fractions refer to all
        earlier games. "earlier encounters" is the mean of the points (1, 1/2, 0) of a
        player against this opponent. Gaps are means, in points.

    Examples
    --------
    >>> frame = pd.DataFrame({"first": ["a", "b"], "second": ["b", "a"], "time": [0, 2],
    ...                       "outcome": [1, 0], "advantage": True})
    >>> X, names = match_features(frame, np.full((2, 2), 1200), np.full((2, 2), 2200))
    >>> dict(zip(names, X[1, 1].tolist()))["earlier encounters"]  # a, who has won
    1.0
    """
    parsed, outcome = Matches.from_frame(matches)
    players = parsed.players()
    time = parsed.time
    if pd.api.types.is_datetime64_any_dtype(matches["time"]):
        time = time / _MONTH
    table: Any = _features_by_rows(players, outcome, time, elo, glicko, elite)
    if past == "times":
        # A player's first row at a time has seen strictly earlier times only, and so
        # has that of a pair.
        player = players.ravel()
        opponent = players[:, ::-1].ravel()
        time = np.repeat(time, 2)
        encounters = table.groupby([player, opponent, time])["earlier encounters"]
        first_encounters = encounters.transform("first")
        table = table.groupby([player, time]).transform("first")
        table["earlier encounters"] = first_encounters
    table["first move"] = 0.0
    table.loc[::2, "first move"] = matches["advantage"].to_numpy(dtype=np.float64)
    return table.to_numpy().reshape(len(players), 2, -1), tuple(table)


def season_split(
    matches: pd.DataFrame, start: Any, cut: Any, stop: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split a season in two, without players who have few matches.

    The rule is that of section 5.1 of [Venuto2017]_.

    Parameters
    ----------
    matches : DataFrame
        All matches, including those before the season, as in `match_features`.
    start, cut, stop : datetime64 or number
        Training matches have start <= time < cut, and test matches have cut <= time <
        stop. In both parts, a match is kept if both players have at least ten matches
        in the first part.

    Returns
    -------
    train, test : ndarray of int
        Row numbers. `train` also leaves out each match that is the first match of a
        player in the whole frame.

    Raises
    ------
    ValueError
        If a part is empty.
    """
    time = matches["time"].to_numpy()
    players: Any = pd.Series(matches[["first", "second"]].to_numpy().ravel())
    learn = (start <= time) & (time < cut)
    counts = players[np.repeat(learn, 2)].value_counts()
    known = _of_both_players(players.map(counts) >= _MIN_MATCHES)
    train = np.flatnonzero(learn & known & _of_both_players(players.duplicated()))
    test = np.flatnonzero((cut <= time) & (time < stop) & known)
    require(
        min(len(train), len(test)) > 0,
        (len(train), len(test)),
        f"the number of training and test matches from {start} to {stop}",
        f"players with at least {_MIN_MATCHES} matches before {cut}",
    )
    return train, test


def _of_both_players(of_player: Any) -> NDArray[np.bool_]:
    return of_player.to_numpy().reshape(-1, 2).all(axis=1)


def forward_splits(
    n: int, fractions: tuple[float, ...]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Split n matches in order of time into a first part and the rest.

    The splits are those of section 5.2 of [Venuto2017]_.

    Parameters
    ----------
    n : int
    fractions : tuple of float
        Fractions of training matches, each between 0 and 1.

    Returns
    -------
    list of (train, validation)
        Row numbers, one tuple per fraction, in the form of scikit-learn's `cv`.

    Examples
    --------
    >>> [(train.tolist(), rest.tolist()) for train, rest in forward_splits(4, (0.5, 0.75))]
    [([0, 1], [2, 3]), ([0, 1, 2], [3])]
    """
    cuts = [int(fraction * n) for fraction in fractions]
    return [(np.arange(cut), np.arange(cut, n)) for cut in cuts]


def _features_by_rows(
    players: NDArray,
    outcome: NDArray,
    time: NDArray,
    elo: NDArray,
    glicko: NDArray,
    elite: float,
) -> pd.DataFrame:
    """All features except the last, from earlier rows; one row per appearance.

    The appearances of the first and the second player of a match follow each other.
    """
    player = players.ravel()
    opponent = players[:, ::-1].ravel()
    result = np.stack([outcome, -outcome], axis=1).ravel()
    gap = (elo[:, ::-1] - elo).ravel()
    not_lost = result >= 0
    not_won = result <= 0
    now = pd.DataFrame(
        {
            "games": 1,
            "wins": result > 0,
            "draws": result == 0,
            "points": (1 + result) / 2,
            "upset wins": not_lost & (gap > 0),
            "upset losses": not_won & (gap < 0),
            "gap": gap,
            "gap not lost": gap * not_lost,
            "gap not won": gap * not_won,
        }
    )
    past = _sums_before(now, player)
    met = _sums_before(now, [player, opponent])
    games = past["games"]
    is_elite = pd.Series(elo.ravel() >= elite, dtype=np.float64)
    return pd.DataFrame(
        {
            "elo": elo.ravel(),
            "glicko": glicko.ravel(),
            "upset wins": past["upset wins"],
            "upset wins, share": _mean(past["upset wins"], games),
            "upset losses": past["upset losses"],
            "upset losses, share": _mean(past["upset losses"], games),
            "games": games,
            "wins": past["wins"],
            "draws": past["draws"],
            "months since the last game": pd.Series(np.repeat(time, 2))
            .groupby(player)
            .diff()
            .fillna(_UNKNOWN),
            "ever elite": is_elite.groupby(player).cummax(),
            "earlier encounters": _mean(met["points"], met["games"]),
            "gap to opponents": _mean(past["gap"], games),
            "gap where not lost": _mean(
                past["gap not lost"], past["wins"] + past["draws"]
            ),
            "gap where not won": _mean(past["gap not won"], games - past["wins"]),
        }
    )


def _sums_before(values: pd.DataFrame, group: Any) -> Any:
    """Sums over the earlier rows of the same group.

    The function shifts the cumulative sums instead of subtracting the current row.
    Otherwise later values could change the rounding.
    """
    sums = values.astype(np.float64).groupby(group, sort=False).cumsum()
    return sums.groupby(group, sort=False).shift(fill_value=0.0)


def _mean(total: Any, count: Any) -> Any:
    return (total / count).where(count > 0, _UNKNOWN)
