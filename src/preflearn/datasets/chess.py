"""Chess games of the FIDE/Deloitte rating challenge, section 5 of [Venuto2017]_."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from preflearn.datasets.matches import match_frame
from preflearn.datasets.storage import CorruptedFile, provenance, read

__all__ = ["ChessData", "load_chess"]

_PARTS = tuple(f"primary_training_part{number}" for number in (1, 2, 3))
_COLUMNS = ("PTID", "MonthID", "WhitePlayer", "BlackPlayer", "WhiteScore")
_START = np.datetime64("1999-01", "M")  # month 1 of the games
_LARGEST = 2**28  # bytes of an unpacked table


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
    `DatasetUnavailable` says where the files are, where to put them, and how to record their hashes. What was
    recorded may be another file: `CorruptedFile` then also says that an archive can't be unpacked, or that a
    table lacks a column or holds a score other than 0, 0.5 and 1.

    Returns
    -------
    ChessData
    """
    games = pd.concat([_part(name) for name in _PARTS], ignore_index=True)
    ratings = _table("initial_ratings.csv", read("chess", "initial_ratings.csv"))
    frame, names = match_frame(
        first=games["WhitePlayer"],
        second=games["BlackPlayer"],
        time=(_START + (games["MonthID"].to_numpy() - 1)).astype("datetime64[s]"),
        outcome=(2 * games["WhiteScore"] - 1).astype(np.int8),
        advantage=True,
        month=games["MonthID"],
    )
    return ChessData(frame, names, provenance("chess"), ratings)


def _part(name: str) -> pd.DataFrame:
    file, member = f"{name}.zip", f"{name}.csv"
    kinds = dict.fromkeys(_COLUMNS, np.int64) | {"WhiteScore": np.float64}
    frame = _table(file, _unpacked(file, member), dtype=kinds)
    missing = [column for column in _COLUMNS if column not in frame]
    if missing:
        raise _damage(file, f"{member} has columns {list(frame)}; expected also {missing}")
    wrong = np.flatnonzero(~frame["WhiteScore"].isin([0.0, 0.5, 1.0]))
    if len(wrong):
        found = f"{member} has WhiteScore {frame['WhiteScore'].iloc[wrong[0]]} in row {wrong[0]}"
        raise _damage(file, f"{found}; expected 0, 0.5 or 1")
    return frame[list(_COLUMNS)]


def _unpacked(file: str, member: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(read("chess", file))) as archive:
            size = archive.getinfo(member).file_size
            if size <= _LARGEST:
                return archive.read(member)  # which never gives more than that size
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError) as error:
        raise _damage(file, f"{error}; expected a zip archive without password that holds {member}") from None
    raise _damage(file, f"{member} would unpack to {size} bytes; expected at most {_LARGEST}")


def _table(file: str, content: bytes, **how: Any) -> pd.DataFrame:
    try:
        return pd.read_csv(io.BytesIO(content), **how)
    except (ValueError, OverflowError) as error:
        raise _damage(file, f"{error}; expected a table of the challenge") from None


def _damage(file: str, what: str) -> CorruptedFile:
    return CorruptedFile(f"chess/{file}: {what}. Put the original file back, and its hash into SHA256SUMS")
