"""Matches of teams and players, the data sets of section 4 of [Maystre2019]_, as frames."""

from __future__ import annotations

import io
from typing import NamedTuple

import numpy as np
import pandas as pd

from preflearn.datasets.rfiles import r_objects
from preflearn.datasets.storage import provenance, read

__all__ = ["FootballData", "MatchData", "load_football", "load_nba", "load_starcraft", "sorted_matches"]

STARCRAFT = ("WoL", "HotS")


class MatchData(NamedTuple):
    """A frame of matches.

    Attributes
    ----------
    matches : DataFrame
        One row a match, the earliest first; matches of one day stay in the order of the file.
        first, second: names (str); time: the day, datetime64[s] without time zone; outcome: +1 first
        won, 0 draw, -1 second won (int8); and what else the source has: first_score, second_score
        (points, int64), advantage (bool: first plays at home, or has the first move), surface, ...
    names : tuple of str
        All that appear as first or second, sorted.
    provenance : tuple of dict
    """

    matches: pd.DataFrame
    names: tuple[str, ...]
    provenance: tuple[dict[str, str], ...]


class FootballData(NamedTuple):
    """What `load_football` returns.

    Attributes
    ----------
    matches, names, provenance
        As in `MatchData`.
    former_names : DataFrame
        current, former, start_date, end_date: what a team was called between two days.
    """

    matches: pd.DataFrame
    names: tuple[str, ...]
    provenance: tuple[dict[str, str], ...]
    former_names: pd.DataFrame


def sorted_matches(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Sort matches by time, equal times in their order, and list the names in them."""
    frame = frame.sort_values("time", kind="stable", ignore_index=True)
    names = set(frame["first"].unique()) | set(frame["second"].unique())
    return frame, tuple(sorted(names))


def load_nba() -> MatchData:
    """Basketball games of the NBA and its forerunners since 1946; the home team is the first.

    [Maystre2019]_ uses the 67,642 games up to the end of 2018. Games without a score are left out
    (88 of 2020, not played when the file was made).

    Returns
    -------
    MatchData
        Also first_score, second_score, advantage (False on neutral ground) and season (the year in
        which it ends).

    Raises
    ------
    DatasetUnavailable
        If the file can't be had.
    CorruptedFile
        If it is not the registered one.
    """
    games = r_objects("nba", "nba_elo.rda")["nba_elo"]
    games = games[games["score1"].notna() & games["score2"].notna()]
    frame = _scored_matches(
        games["team1"],
        games["team2"],
        pd.to_datetime(games["date"], unit="D"),
        games["score1"],
        games["score2"],
    )
    frame["advantage"] = ~games["neutral"].to_numpy(dtype=bool)
    frame["season"] = games["season"].to_numpy(dtype=np.int64)
    return MatchData(*sorted_matches(frame), provenance("nba"))


def load_football() -> FootballData:
    """Full internationals of men's football since 1872; the home team is the first.

    The source writes every team under its present name, at all times (so the matches of the Soviet
    Union stand under Russia); `former_names` says what it was called when. A match decided by
    penalties is a draw. [Maystre2019]_ took 19,158 matches from another source.

    Returns
    -------
    FootballData
        Its matches also have first_score, second_score, advantage (False on neutral ground) and
        tournament.

    Raises
    ------
    DatasetUnavailable
        If a file can't be had.
    CorruptedFile
        If it is not the registered one.
    """
    results = pd.read_csv(io.BytesIO(read("football", "results.csv")), encoding="utf-8")
    frame = _scored_matches(
        results["home_team"],
        results["away_team"],
        pd.to_datetime(results["date"], format="%Y-%m-%d"),
        results["home_score"],
        results["away_score"],
    )
    frame["advantage"] = ~results["neutral"].to_numpy(dtype=bool)
    frame["tournament"] = results["tournament"].to_numpy()
    former = pd.read_csv(
        io.BytesIO(read("football", "former_names.csv")),
        encoding="utf-8",
        parse_dates=["start_date", "end_date"],
    )
    return FootballData(*sorted_matches(frame), provenance("football"), former)


def load_starcraft(name: str) -> MatchData:
    """Matches of the computer game StarCraft II, without dates.

    Parameters
    ----------
    name : {"WoL", "HotS"}
        "Wings of Liberty", 61,657 matches of 4381 players, or "Heart of the Swarm", 28,582 of 2287.

    Returns
    -------
    MatchData
        Its time is 0.0 in every row, and its order that of the file. A player's number in the file
        follows the name where two have the same or it is empty. Rows in which a player meets himself,
        5 of "WoL" and 1 of "HotS", are left out (and with them a player who meets nobody else); the
        numbers above, those of the paper, count them.

    Raises
    ------
    ValueError
        On another name; as `CorruptedFile` if the file is not the registered one.
    DatasetUnavailable
        If the file can't be had.
    """
    if name not in STARCRAFT:
        raise ValueError(f"unknown StarCraft data {name!r}; expected one of {list(STARCRAFT)}")
    lines = read("starcraft", f"{name}.txt").decode("utf-8").splitlines()
    n_players = int(lines[0].removeprefix("numPlayers: "))
    label = pd.Series([line.partition(":")[2].strip() for line in lines[1 : n_players + 1]])
    doubtful = label.duplicated(keep=False) | (label == "")
    label[doubtful] = label[doubtful] + "#" + label.index[doubtful].astype(str)
    numbers = np.array(" ".join(lines[n_players + 2 :]).replace(":", " ").split(), dtype=np.int64)
    rows = numbers.reshape(-1, 4)
    first, second, first_score, second_score = rows[rows[:, 0] != rows[:, 1]].T
    names = label.to_numpy()
    frame = _scored_matches(names[first], names[second], np.zeros(len(first)), first_score, second_score)
    return MatchData(*sorted_matches(frame), provenance("starcraft", [f"{name}.txt"]))


def _scored_matches(first, second, time, first_score, second_score) -> pd.DataFrame:
    first_score = np.asarray(first_score, dtype=np.int64)
    second_score = np.asarray(second_score, dtype=np.int64)
    time = np.asarray(time)
    return pd.DataFrame(
        {
            "first": np.asarray(first, dtype=object),
            "second": np.asarray(second, dtype=object),
            "time": time.astype("datetime64[s]") if time.dtype.kind == "M" else time,
            "outcome": np.sign(first_score - second_score).astype(np.int8),
            "first_score": first_score,
            "second_score": second_score,
        }
    ).astype({"first": "str", "second": "str"})
