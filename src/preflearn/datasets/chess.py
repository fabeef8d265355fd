"""Chess games of the FIDE/Deloitte rating challenge, section 5 of [Venuto2017]_."""

from __future__ import annotations

import io
import zipfile
from typing import NamedTuple

import numpy as np
import pandas as pd

from preflearn.datasets.matches import sorted_matches
from preflearn.datasets.storage import provenance, read

__all__ = ["ChessData", "load_chess"]

_PARTS = tuple(f"primary_training_part{number}" for number in (1, 2, 3))
_COLUMNS = ("PTID", "MonthID", "WhitePlayer", "BlackPlayer", "WhiteScore")
_START = np.datetime64("1999-01", "M")  # month 1 of the games


class ChessData(NamedTuple):
    """What `load_chess` returns.

    Attributes
    ----------
    matches : DataFrame
        first (who plays White), second: numbers of players as str; time: the first day of the month;
        outcome; advantage (True: White moves first); month: 1 is January 1999.
    names : tuple of str
    provenance : tuple of dict
    initial_ratings : DataFrame
        The ratings before month 1, with the columns of the file.
    """

    matches: pd.DataFrame
    names: tuple[str, ...]
    provenance: tuple[dict[str, str], ...]
    initial_ratings: pd.DataFrame


def load_chess() -> ChessData:
    """1.8 million chess games, 1999 to 2009; White is the first.

    The hashes of these files are not registered, and the package downloads nothing that it can't verify:
    `DatasetUnavailable` says where the files are, where to put them, and how to record their hashes.

    Returns
    -------
    ChessData

    Raises
    ------
    DatasetUnavailable
        If a file, or the record of its hash, is not here.
    ValueError
        If a file lacks a column, or holds a score other than 0, 0.5 and 1; as `CorruptedFile` if a
        file is not the one whose hash was recorded.
    """
    games = pd.concat([_part(name) for name in _PARTS], ignore_index=True)
    ratings = pd.read_csv(io.BytesIO(read("chess", "initial_ratings.csv")))
    months = games["MonthID"].to_numpy(dtype=np.int64)
    frame = pd.DataFrame(
        {
            "first": games["WhitePlayer"].astype(str),
            "second": games["BlackPlayer"].astype(str),
            "time": (_START + (months - 1)).astype("datetime64[s]"),
            "outcome": (2 * games["WhiteScore"] - 1).astype(np.int8),
            "advantage": True,
            "month": months,
        }
    )
    return ChessData(*sorted_matches(frame), provenance("chess"), ratings)


def _part(name: str) -> pd.DataFrame:
    with zipfile.ZipFile(io.BytesIO(read("chess", f"{name}.zip"))) as archive:
        content = archive.read(f"{name}.csv")
    frame = pd.read_csv(io.BytesIO(content))
    missing = [column for column in _COLUMNS if column not in frame]
    if missing:
        raise ValueError(f"{name}.csv has columns {list(frame)}; expected also {missing}")
    wrong = ~frame["WhiteScore"].isin([0.0, 0.5, 1.0])
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        found = frame["WhiteScore"].iloc[row]
        raise ValueError(f"{name}.csv has WhiteScore {found} in row {row}; expected 0, 0.5 or 1")
    return frame[list(_COLUMNS)]
