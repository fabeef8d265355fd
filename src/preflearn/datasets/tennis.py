"""Matches of professional tennis, the largest public data set of [Maystre2019]_."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pandas as pd

from preflearn.datasets.matches import MatchData, sorted_matches
from preflearn.datasets.storage import provenance, read

__all__ = ["ATP_LEVELS", "load_atp"]

_PREFIX = {"main": "atp_matches", "qual_chall": "atp_matches_qual_chall", "futures": "atp_matches_futures"}
_YEARS = range(1991, 2018)
ATP_LEVELS = tuple(_PREFIX)
_COLUMNS = ("tourney_date", "winner_name", "loser_name", "surface", "tourney_level", "score")


def load_atp(levels: str | Sequence[str] = ATP_LEVELS) -> MatchData:
    """Men's singles of the ATP, 1991 to 2017.

    The source lists winners first. Here the first is the player whose name sorts first, so that the
    place says nothing about the outcome. The time of a match is the first day of its tournament; within
    a tournament, matches stay in the order of the file. Four rows in which a player meets himself are
    left out; walkovers (score "W/O") are kept, as [Maystre2019]_ counts them. That paper used the data
    as they were in autumn 2017: 618,934 matches of 20,046 players, which the 619,154 matches up to
    2017-09-22 of the present files come close to.

    Parameters
    ----------
    levels : str or sequence of str
        Of "main" (89,498 matches of the tour, Davis Cup and Grand Slams), "qual_chall" (qualifying
        and Challengers) and "futures" (Futures and satellites). All by default.

    Returns
    -------
    MatchData
        Also surface, tourney_level (the source's letter), score (as the winner's), and level.

    Raises
    ------
    ValueError
        On an unknown level; as `CorruptedFile` if a file is not the registered one.
    DatasetUnavailable
        If a file can't be had.
    """
    levels = [levels] if isinstance(levels, str) else list(levels)
    if not levels or not set(levels) <= set(ATP_LEVELS):
        raise ValueError(f"levels is {levels}; expected some of {list(ATP_LEVELS)}")
    files = {f"{_PREFIX[level]}_{year}.csv": level for level in dict.fromkeys(levels) for year in _YEARS}
    table = pd.concat([_year(file).assign(level=level) for file, level in files.items()], ignore_index=True)
    table = table[table["winner_name"] != table["loser_name"]]

    won = (table["winner_name"] < table["loser_name"]).to_numpy()
    dates = pd.to_datetime(table["tourney_date"], format="%Y%m%d")
    frame = pd.DataFrame(
        {
            "first": table["winner_name"].where(won, table["loser_name"]),
            "second": table["loser_name"].where(won, table["winner_name"]),
            "time": dates.astype("datetime64[s]"),
            "outcome": np.where(won, 1, -1).astype(np.int8),
            "surface": table["surface"],
            "tourney_level": table["tourney_level"],
            "score": table["score"].fillna("").str.strip(),
            "level": table["level"],
        }
    )
    return MatchData(*sorted_matches(frame), provenance("atp_tennis", list(files)))


def _year(file: str) -> pd.DataFrame:
    text = dict.fromkeys(_COLUMNS, str)
    return pd.read_csv(
        io.BytesIO(read("atp_tennis", file)), usecols=list(_COLUMNS), dtype=text, encoding="utf-8"
    )
