"""Matches of teams and players, as DataFrames.

Most data sets are those of section 4 of [Maystre2019]_.
"""

import io
import zipfile
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from preflearn.core.validation import check_choice, raise_if_any
from preflearn.datasets.registry import CorruptedFile
from preflearn.datasets.storage import csv_table, provenance, r_arrays, read

_ATP_FILES = {
    "main": "atp_matches",
    "qual_chall": "atp_matches_qual_chall",
    "futures": "atp_matches_futures",
}
_ATP_COLUMNS = (
    "tourney_date",
    "winner_name",
    "loser_name",
    "surface",
    "tourney_level",
    "score",
)


class MatchData(NamedTuple):
    """A DataFrame of matches, and its sources.

    Attributes
    ----------
    matches : DataFrame
        One row per match, sorted by time; matches of one day are in the order of the
        file. The columns are:

        - first, second: names (str)
        - time: the day, datetime64[s] without time zone
        - outcome: +1 first won, 0 draw, -1 second won (int8)
        - other columns of the source, such as first_score and second_score (points,
          int64), or advantage (bool: first plays at home or has the first move)
    provenance : tuple of dict
        Sources and licenses of the files.
    """

    matches: pd.DataFrame
    provenance: tuple[dict[str, str], ...]


def load_nba() -> MatchData:
    """Load basketball games of the NBA and its predecessors since 1946.

    The home team is the first. [Maystre2019]_ uses the 67,642 games until the end of
    2018. Games without a score are left out (88 games of 2020 that had not been played
    when the file was made).

    Returns
    -------
    MatchData
        Games with the further columns first_score, second_score, advantage (False on
        neutral ground), and season (the year in which it ends).
    """
    return _match_data("nba", **r_arrays("nba", "nba_elo.rda", _nba_columns))


def _nba_columns(objects: dict[str, Any]) -> dict[str, ArrayLike]:
    games = objects["nba_elo"].dropna(subset=["score1", "score2"])
    return {
        "first": games["team1"].to_numpy(dtype="U"),
        "second": games["team2"].to_numpy(dtype="U"),
        "time": _days(games["date"], unit="D"),
        **_points(games["score1"], games["score2"]),
        "advantage": ~games["neutral"].to_numpy(dtype=bool),
        "season": games["season"].to_numpy(dtype=np.int64),
    }


def load_football() -> MatchData:
    """Load international matches of men's football since 1872.

    The home team is the first. The source uses the present name of each team at all
    times, so the matches of the Soviet Union are listed under Russia. A match decided
    by penalties is a draw. [Maystre2019]_ has 19,158 matches from another source.

    Returns
    -------
    MatchData
        Matches with the further columns first_score, second_score, advantage (False on
        neutral ground), and tournament.
    """
    results = csv_table("football", "results.csv")
    return _match_data(
        "football",
        first=results["home_team"],
        second=results["away_team"],
        time=_days(results["date"], format="%Y-%m-%d"),
        **_points(results["home_score"], results["away_score"]),
        advantage=~results["neutral"].to_numpy(dtype=bool),
        tournament=results["tournament"],
    )


def load_starcraft(name: str) -> MatchData:
    """Load matches of the computer game StarCraft II, without dates.

    Parameters
    ----------
    name : {"WoL", "HotS"}
        Name of the game: "Wings of Liberty", 61,657 matches of 4381 players, or
        "Heart of the Swarm", 28,582 matches of 2287 players.

    Returns
    -------
    MatchData
        Matches in the order of the file, with time 0.0 in each row. If two players have
        the same name, or a name is empty, the player's number in the file is appended
        to the name. Rows in which both players are the same, 5 of "WoL" and 1 of
        "HotS", are left out, and with them a player who has no other match. The numbers
        above, which are those of the paper, include these rows.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    check_choice(name, "name", ("WoL", "HotS"))
    file = f"{name}.txt"
    lines = read("starcraft", file).decode("utf-8").splitlines()
    n_players = int(lines[0].removeprefix("numPlayers: "))
    labels = [line.partition(":")[2].strip() for line in lines[1 : n_players + 1]]
    uses = Counter(labels) | {"": 2}
    for k, label in enumerate(labels):
        if uses[label] > 1:
            labels[k] = f"{label}#{k}"
    players = np.array(labels)
    text = " ".join(lines[n_players + 2 :]).replace(":", " ")
    rows = np.array(text.split(), dtype=np.int64).reshape(-1, 4)
    first, second, *scores = rows[rows[:, 0] != rows[:, 1]].T
    return _match_data(
        "starcraft",
        [file],
        first=players[first],
        second=players[second],
        time=0.0 * first,
        **_points(*scores),
    )


def load_atp(level: str | None = None) -> MatchData:
    """Load men's singles tennis matches of the ATP, 1991 to 2017.

    The source lists winners first. Here the first player is the one whose name comes
    first in alphabetical order, so the order does not depend on the outcome. The
    time of a match is the first day of its tournament; within a tournament, matches are
    in the order of the file. Four rows in which both players are the same are left out.
    Walkovers (score "W/O") are kept, as in [Maystre2019]_. That paper used the data of
    autumn 2017, 618,934 matches of 20,046 players; the present files have 619,154
    matches until 2017-09-22.

    Parameters
    ----------
    level : {"main", "qual_chall", "futures"}, optional
        Level of the matches: "main" (89,498 matches of the tour, Davis Cup, and Grand
        Slams), "qual_chall" (qualifying and Challengers), or "futures" (Futures and
        satellites). All levels by default.

    Returns
    -------
    MatchData
        Matches with the further columns surface, tourney_level (the letter of the
        source), score (from the winner's side), and level.

    Raises
    ------
    ValueError
        If the level is unknown.
    """
    levels = tuple(_ATP_FILES)
    if level is not None:
        check_choice(level, "level", levels)
        levels = (level,)
    files = {
        f"{_ATP_FILES[name]}_{year}.csv": name
        for name in levels
        for year in range(1991, 2018)
    }
    text = {"usecols": list(_ATP_COLUMNS), "dtype": str}
    years = [
        csv_table("atp_tennis", file, **text).assign(level=name)
        for file, name in files.items()
    ]
    table = pd.concat(years, ignore_index=True).query("winner_name != loser_name")

    won = (table["winner_name"] < table["loser_name"]).to_numpy()
    return _match_data(
        "atp_tennis",
        list(files),
        first=table["winner_name"].where(won, table["loser_name"]),
        second=table["loser_name"].where(won, table["winner_name"]),
        time=_days(table["tourney_date"], format="%Y%m%d"),
        outcome=np.where(won, 1, -1).astype(np.int8),
        surface=table["surface"],
        tourney_level=table["tourney_level"],
        score=[score.strip() for score in table["score"].fillna("").tolist()],
        level=table["level"],
    )


def load_chess() -> MatchData:
    """Load 1.8 million chess games, 1999 to 2009 ([Venuto2017]_, section 5).

    White is the first player. The hashes of these files are not registered, and the
    package does not download files that it cannot verify. The error
    `DatasetUnavailable` says where to find the files, where to put them, and how to
    record their hashes. `CorruptedFile` is also raised if a recorded file is not the
    file of the challenge. This is the case if an archive cannot be unpacked, or a table
    lacks a column or has a score other than 0, 0.5, and 1.

    Returns
    -------
    MatchData
        Games whose names are player numbers, as str, and whose time is the first day of
        the month. Further columns are advantage (True: White moves first) and month (1
        is January 1999).
    """
    games = pd.concat(
        [_chess_games(f"primary_training_part{k}") for k in (1, 2, 3)],
        ignore_index=True,
    )
    month = np.datetime64("1999-01") + (games["MonthID"].to_numpy() - 1)
    return _match_data(
        "chess",
        first=games["WhitePlayer"],
        second=games["BlackPlayer"],
        time=month.astype("datetime64[s]"),
        outcome=(2 * games["WhiteScore"] - 1).astype(np.int8),
        advantage=True,
        month=games["MonthID"],
    )


def _chess_games(name: str) -> pd.DataFrame:
    """Read the table of an archive and check it.

    The check is necessary because its hash comes from the user.
    """
    archive = io.BytesIO(read("chess", f"{name}.zip"))
    dtypes: Any = {
        "MonthID": np.int64,
        "WhitePlayer": np.int64,
        "BlackPlayer": np.int64,
        "WhiteScore": float,
    }
    try:
        with zipfile.ZipFile(archive).open(f"{name}.csv") as table:
            games = pd.read_csv(table, usecols=list(dtypes), dtype=dtypes)
        scores = games["WhiteScore"].to_numpy()
        raise_if_any(~np.isin(scores, (0, 0.5, 1)), scores, "WhiteScore", "0, 0.5 or 1")
    except Exception as error:  # any type is possible
        raise CorruptedFile(
            f"chess/{name}.zip is not the file of the challenge: {error}. Replace it by this "
            "file, and record its hash in SHA256SUMS"
        ) from None
    return games


def _days(dates: Any, **how: Any) -> pd.Series:
    return pd.to_datetime(dates, **how).astype("datetime64[s]")


def _points(first: ArrayLike, second: ArrayLike) -> dict[str, NDArray]:
    """Outcome and score columns of matches that are decided by points."""
    first = np.asarray(first, dtype=np.int64)
    second = np.asarray(second, dtype=np.int64)
    return {
        "outcome": np.sign(first - second).astype(np.int8),
        "first_score": first,
        "second_score": second,
    }


def _match_data(
    dataset: str, files: list[str] | None = None, /, **columns: ArrayLike
) -> MatchData:
    """Create MatchData from the columns first, second, time, outcome, and others."""
    frame = pd.DataFrame(columns).astype({"first": "str", "second": "str"})
    frame = frame.sort_values("time", kind="stable", ignore_index=True)
    return MatchData(frame, provenance(dataset, files))
