"""What is known of two players before they meet: features of matches, section 5.1 of [Venuto2017]_.

Every number of a row comes from earlier rows. The protocol of its section 5.2 stands here too: seasons, each
cut into a first part to learn from and a rest to predict, and splits that never learn from what comes later.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import check_labels

__all__ = ["FEATURES", "SeasonSplit", "forward_splits", "match_features", "season_split"]

FEATURES = (
    "elo",
    "glicko",
    "upset wins",
    "upset wins, share",
    "upset losses",
    "upset losses, share",
    "games",
    "wins",
    "draws",
    "months since the last game",
    "ever elite",
    "earlier encounters",
    "gap to opponents",
    "gap where not lost",
    "gap where not won",
    "first move",
)

_UNKNOWN = 0.5  # the authors' value; on the scale of points it is a draw
_COLUMNS = ("first", "second", "time", "outcome", "advantage")
_MONTH = np.timedelta64(2_629_800, "s")  # a twelfth of 365.25 days


def match_features(
    matches: pd.DataFrame,
    elo: ArrayLike,
    glicko: ArrayLike,
    *,
    past: Literal["rows", "times"] = "rows",
    elite: float = 2400.0,
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The 16 features of both players of each match, from the past only (section 5.1 of [Venuto2017]_).

    "Better" and "worse" compare the Elo ratings before a match. A draw counts both as a win and as a loss
    where it is an upset. The gap of a match is the opponent's Elo rating minus one's own.

    Parameters
    ----------
    matches : DataFrame
        One row a match, in the order of time: first, second, time (datetime64, or numbers that count
        months), outcome (+1, 0, -1), advantage (bool: the first has the first move, or plays at home).
    elo, glicko : array-like of shape (N, 2)
        Ratings of first and second before each match, in points.
    past : {"rows", "times"}
        What counts as the past of a match: all earlier rows, or those of strictly earlier times. If times
        are coarse (months), the order of rows within one time may tell more than was known.
    elite : float
        From this Elo rating on a player is elite, for ever; 2400 is the bound of the FIDE for its smallest
        step of updates.

    Returns
    -------
    X : ndarray of shape (N, 2, 16)
        Features of the first and of the second player; an unknown value is 0.5.
    names : tuple of str
        `FEATURES`. Counts are of games; shares are of all games before; "earlier encounters" is the mean of
        the points (1, 1/2, 0) that a player made against this opponent; gaps are means, in points.

    Raises
    ------
    ValueError
        If a column is missing, times decrease or are missing, an outcome is unknown, a player meets
        himself, ratings have another shape or are not finite, or `past` is unknown.

    Examples
    --------
    >>> frame = pd.DataFrame({"first": ["a", "b"], "second": ["b", "a"], "time": [0, 2],
    ...                       "outcome": [1, 0], "advantage": True})
    >>> X, names = match_features(frame, [[1200, 1200], [1190, 1210]], [[2200, 2200], [2100, 2300]])
    >>> dict(zip(names, X[1, 1].tolist()))["earlier encounters"]  # a, who has won
    1.0
    """
    if past not in ("rows", "times"):
        raise ValueError(f"past is {past!r}; expected 'rows' or 'times'")
    codes, outcome = _checked_matches(matches)
    elo, glicko = _checked_ratings(elo, "elo", len(codes)), _checked_ratings(glicko, "glicko", len(codes))
    # An appearance is a player in a match; flattened arrays hold two of them a row, in the order of rows.
    player, time = codes.ravel(), np.repeat(matches["time"].to_numpy(), 2)
    result = np.stack([outcome, -outcome], axis=1).ravel()
    gap = (elo[:, ::-1] - elo).ravel()
    table = _totals(player, result, gap)
    table.insert(0, "elo", elo.ravel())
    table.insert(1, "glicko", glicko.ravel())
    table.insert(9, "months", _months_since_last(player, time))
    table.insert(10, "elite", _ever(player, elo.ravel() >= elite))
    table.insert(11, "encounters", _encounters(codes, outcome))
    X = table.to_numpy(dtype=np.float64)
    if past == "times":
        # A player's first row at a time has seen strictly earlier times only, and so has that of a pair.
        meeting = np.repeat(np.sort(codes, axis=1), 2, axis=0)
        encounters = X[_first_rows(player, meeting[:, 0], meeting[:, 1], time), 11]
        X = X[_first_rows(player, time)]
        X[:, 11] = encounters
    first_move = np.zeros((len(codes), 2))
    first_move[:, 0] = matches["advantage"].to_numpy(dtype=bool)
    return np.column_stack([X, first_move.ravel()]).reshape(len(codes), 2, -1), FEATURES


class SeasonSplit(NamedTuple):
    """Row numbers of the matches of a season to learn from, and of those to predict."""

    train: NDArray[np.int64]
    test: NDArray[np.int64]


def season_split(
    matches: pd.DataFrame, start: object, cut: object, stop: object, *, min_matches: int = 10
) -> SeasonSplit:
    """Cut a season in two and drop players of whom little is known (section 5.1 of [Venuto2017]_).

    Parameters
    ----------
    matches : DataFrame
        As in `match_features`: all matches, also those before the season.
    start, cut, stop : datetime64 or number
        The matches to learn from have start <= time < cut, those to predict cut <= time < stop.
    min_matches : int
        A match stays, in both parts, if both players have at least so many in the first part.

    Returns
    -------
    SeasonSplit
        From `train`, matches that are the first of a player in the whole frame are dropped too.

    Raises
    ------
    ValueError
        If the frame is not as in `match_features`, the three times do not increase, or a part is empty.
    """
    codes, _ = _checked_matches(matches)
    if not start < cut < stop:
        raise ValueError(f"start, cut and stop are {start}, {cut}, {stop}; expected increasing times")
    time = matches["time"].to_numpy()
    learn, predict = (time >= start) & (time < cut), (time >= cut) & (time < stop)
    counts = np.bincount(codes[learn].ravel(), minlength=codes.max() + 1)
    known = (counts[codes] >= min_matches).all(axis=1)
    debut = ~pd.Series(codes.ravel()).duplicated().to_numpy().reshape(-1, 2)
    parts = SeasonSplit(np.flatnonzero(learn & known & ~debut.any(axis=1)), np.flatnonzero(predict & known))
    for name, rows, total in zip(parts._fields, parts, (learn.sum(), predict.sum()), strict=True):
        if len(rows) == 0:
            raise ValueError(
                f"no match of {total} is left to {name} between {start} and {stop} (cut at {cut}); "
                f"expected players with at least {min_matches} matches before the cut"
            )
    return parts


def forward_splits(
    n: int, shares: tuple[float, ...] = (0.5, 0.75, 0.8, 0.85)
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Splits of n matches in order of time into the first ones and the rest (section 5.2 of [Venuto2017]_).

    Parameters
    ----------
    n : int
    shares : tuple of float
        Shares of the matches to learn from, each between 0 and 1.

    Returns
    -------
    list of (train, validation)
        Row numbers, one couple a share: what scikit-learn takes as `cv`.

    Raises
    ------
    ValueError
        If a share leaves one of the two parts empty.

    Examples
    --------
    >>> [(train.tolist(), rest.tolist()) for train, rest in forward_splits(4, (0.5, 0.75))]
    [([0, 1], [2, 3]), ([0, 1, 2], [3])]
    """
    cuts = [int(share * n) for share in shares]
    if not all(0 < cut < n for cut in cuts):
        raise ValueError(
            f"shares {shares} of {n} matches leave {cuts} to learn from; expected 1 to {n - 1} each"
        )
    return [(np.arange(cut), np.arange(cut, n)) for cut in cuts]


def _totals(player: NDArray, result: NDArray, gap: NDArray) -> pd.DataFrame:
    """Sums over the earlier appearances of each player, and the means and shares made of them."""
    not_lost, not_won = result >= 0, result <= 0
    now = pd.DataFrame(
        {
            "upset wins": not_lost & (gap > 0),
            "upset losses": not_won & (gap < 0),
            "games": True,
            "wins": result > 0,
            "draws": result == 0,
        }
    ).astype(np.float64)
    now["gap"], now["gap not lost"], now["gap not won"] = gap, gap * not_lost, gap * not_won
    past = _sums_before(player, now)
    past.insert(1, "upset wins share", _mean(past["upset wins"], past["games"]))
    past.insert(3, "upset losses share", _mean(past["upset losses"], past["games"]))
    losses = past["games"] - past["wins"] - past["draws"]
    past["gap"] = _mean(past["gap"], past["games"])
    past["gap not lost"] = _mean(past["gap not lost"], past["wins"] + past["draws"])
    past["gap not won"] = _mean(past["gap not won"], losses + past["draws"])
    return past


def _sums_before(group: NDArray, values: pd.DataFrame) -> pd.DataFrame:
    """Sums over the earlier rows of the same group.

    Shifted, not current row subtracted: then a later value can't even change the rounding.
    """
    sums = values.groupby(group, sort=False).cumsum()
    return sums.groupby(group, sort=False).shift(fill_value=0.0)


def _mean(total: pd.Series, count: pd.Series) -> NDArray[np.float64]:
    total, count = total.to_numpy(), count.to_numpy()
    return np.divide(total, count, out=np.full(len(total), _UNKNOWN), where=count > 0)


def _months_since_last(player: NDArray, time: NDArray) -> NDArray[np.float64]:
    passed = pd.Series(time).groupby(player, sort=False).diff()
    months = passed / _MONTH if passed.dtype.kind == "m" else passed
    return months.fillna(_UNKNOWN).to_numpy(dtype=np.float64)


def _ever(player: NDArray, elite: NDArray) -> NDArray[np.float64]:
    return pd.Series(elite.astype(np.float64)).groupby(player, sort=False).cummax().to_numpy()


def _encounters(codes: NDArray, outcome: NDArray) -> NDArray[np.float64]:
    """Mean points against this opponent so far, one an appearance."""
    low, high = np.sort(codes, axis=1).T
    swapped = codes[:, 0] != low
    points = np.where(swapped, 1 - outcome, 1 + outcome) / 2  # of the player with the lower code
    before = _sums_before(low * (codes.max() + 1) + high, pd.DataFrame({"low": points, "high": 1 - points}))
    games = before["low"] + before["high"]
    means = [_mean(before[name], games) for name in ("low", "high")]
    return np.where(swapped, means[::-1], means).T.ravel()


def _first_rows(*keys: NDArray) -> NDArray[np.int64]:
    """For each row, the first row with the same keys."""
    numbers = pd.DataFrame({str(k): key for k, key in enumerate(keys)})
    group = numbers.groupby(list(numbers), sort=False).ngroup().to_numpy()
    _, start = np.unique(group, return_index=True)
    return start[group]


def _checked_matches(matches: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Numbers of the players, shape (N, 2), and outcomes; the frame is as `match_features` wants it."""
    missing = [name for name in _COLUMNS if name not in matches]
    if missing:
        raise ValueError(f"matches has columns {list(matches)}; expected also {missing}")
    if len(matches) == 0:
        raise ValueError("matches has no rows; expected at least one match")
    time = matches["time"]
    if time.isna().any() or not time.is_monotonic_increasing:
        row = int(np.argmax(time.isna() | (time.diff() < time.iloc[0] - time.iloc[0])))
        raise ValueError(f"time is {time.iloc[row]} in row {row}; expected times that never decrease")
    names = pd.concat([matches["first"], matches["second"]])
    codes = pd.factorize(names)[0].astype(np.int64).reshape(2, -1).T
    for wrong, text in (
        ((codes < 0).any(axis=1), "names no player"),
        (codes[:, 0] == codes[:, 1], "lets a player meet himself"),
    ):
        if wrong.any():
            raise ValueError(f"row {np.argmax(wrong)} {text}; expected two different names")
    return codes, check_labels(matches["outcome"].to_numpy(), len(matches))


def _checked_ratings(ratings: ArrayLike, name: str, n: int) -> NDArray[np.float64]:
    ratings = np.asarray(ratings, dtype=np.float64)
    if ratings.shape != (n, 2):
        raise ValueError(f"{name} has shape {ratings.shape}; expected ({n}, 2): first and second player")
    if not np.isfinite(ratings).all():
        row = int(np.argmax(~np.isfinite(ratings).all(axis=1)))
        raise ValueError(f"{name} is {ratings[row].tolist()} in row {row}; expected finite ratings")
    return ratings
