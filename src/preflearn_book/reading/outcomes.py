"""Outcomes of comparisons from names of winners, words, numbers, points, or counts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from preflearn_book.reading.columns import (
    NOTHING,
    Column,
    Frame,
    UserTable,
    first_few,
    spaced_title,
    to_numbers,
)
from preflearn_book.reading.labels import code_span, escape_markdown
from preflearn_book.reading.names import normalized_name
from preflearn_book.sentences import counted

FIRST_WON = "first won"
"""Value of `outcome` for files that name the winner first in each row."""

WORDS = {"h": 1, "d": 0, "a": -1, "w": 1, "l": -1, "win": 1, "loss": -1}
WORDS |= {"won": 1, "lost": -1, "first": 1, "second": -1, "true": 1, "false": -1}
WORDS |= {"left": 1, "right": -1, "yes": 1, "no": -1}
TIES = ("tie", "draw", "drawn", "tied", "no preference", "neither", "equal", "same")
WORDS |= dict.fromkeys(TIES, 0)
_SIDES = {"a": 1, "b": -1}  # in files without h and d
_TRUTH = {"t": 1, "f": -1}
_FORFEITS = {"+/-": 1, "+:-": 1, "-/+": -1, "-:+": -1}
_BETTING = {"1": 1, "x": 0, "2": -1}
_POINTS = re.compile(
    r"^(?P<first>\d+(?:\.\d+)?)\s*[-:]\s*(?P<second>\d+(?:\.\d+)?)"
    r"(?P<forfeit>\s*f{1,2}\b)?[a-z. ]*$"
)
# months in English, German, French, and Spanish
_MONTHS = "jan|ene|f[eé][bv]|m[aä]r|mrz|a[pvb]r|ma[iy]|ju[nli]|aug|ago|ao[uû]|sep|o[ck]t|nov|d[eéi][cz]"
_DATE = re.compile(
    rf"\d{{1,4}}[-. /]+({_MONTHS})[a-zéû]*\.?|({_MONTHS})[a-zéû]*[-. /]+\d{{1,4}}"
    r"|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([t ].*)?"
)
_TURNED_INTO_A_DATE = (
    "a result such as 11-9. A spreadsheet may have turned a result into a date: set the format of "
    "the column to text before you enter the results again, or put the points into two columns"
)
_COUNT_TITLE = re.compile(
    r"(?<![a-z])(wins?|victories|votes?|prefer(red|s|ences)?)(?![a-z])"
)
_SIDE = {1: "a win", 0: "a tie", -1: "a loss"}
_NEARLY_ALL = 0.99


@dataclass(frozen=True)
class Sides:
    """Titles of the two columns with the sides, and the names in them."""

    titles: tuple[str, str]
    first: Column
    second: Column


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of the rows of a file.

    Attributes
    ----------
    sign : Series of float
        1 if the first won, 0 for a tie, -1 if the second won, NaN if not yet known.
    margin : Series of float, optional
        Points of the first minus points of the second.
    counts : DataFrame of float, optional
        Numbers of wins of the first, wins of the second, and ties, if a row summarizes
        several comparisons.
    """

    sign: Column
    margin: Column | None = None
    counts: Frame | None = None


def read_outcomes(
    table: UserTable, outcome: str, sides: Sides, counts: str = "auto"
) -> Outcomes:
    """Read the outcomes of a file.

    Values are read as names of winners if nearly all of them are a name in their row,
    even if they are numbers or letters. A majority is enough if some values are neither
    numbers nor known words.

    Parameters
    ----------
    table : UserTable
    outcome : str
        Name of a column; two names, "ONE - OTHER"; three names with that of the ties,
        "ONE - OTHER - TIES"; or "first won".
    sides : Sides
    counts : {"auto", "yes", "no"}
        Whether two columns count the wins of each side, instead of points of one
        comparison; "auto" decides by the titles.

    Raises
    ------
    ValueError
        If a column is missing, has many values that cannot be read, or is ambiguous.
    """
    if counts not in ("auto", "yes", "no"):
        raise ValueError(f"counts={counts!r} is unknown; use auto, yes, or no")
    if outcome == FIRST_WON:
        return Outcomes(_all_won(table))
    parts = [outcome]
    if outcome not in table:
        parts = [part.strip() for part in outcome.split(" - ")]
    if len(parts) == 1:
        return _read_column(table, parts[0], sides)
    if len(parts) > 3:
        raise ValueError(
            f"outcome={outcome!r} names {len(parts)} columns; name one, or two or three with ' - ' "
            f"between them"
        )
    numbers = pd.concat([_numbers_or_nothing(table, part) for part in parts], axis=1)
    by_title = all(_COUNT_TITLE.search(spaced_title(part)) for part in parts[:2])
    if counts == "yes" or (counts == "auto" and (by_title or len(parts) == 3)):
        return _count_outcomes(table, numbers, parts)
    if len(parts) == 3:
        raise ValueError(
            f"outcome={outcome!r} names three columns, but points have two; name two columns, or pass "
            f"-p counts yes for wins, losses, and ties"
        )
    return _point_outcomes(table, numbers, parts)


def _all_won(table: UserTable) -> Column:
    """Count every row as won by the first; note rows with gaps, which may be future."""
    frame = table.frame
    most = frame.loc[:, ((frame != "").mean() > 0.9).to_numpy()]
    has_gap = (most == "").to_numpy(bool)
    if has_gap.any():
        rows = frame.index[has_gap.any(axis=1)]
        title = escape_markdown(repr(str(most.columns[has_gap.any(axis=0)][0])))
        plural = "s" if len(rows) > 1 else ""
        table.note(
            f"**Counted as wins despite a missing value in {title}: {table.unit}{plural} "
            f"{first_few(rows)}.** If these matches are not played yet, exclude them with "
            f"`-p until DATE`, the date of the last match that was played."
        )
    return pd.Series(1.0, frame.index)


# ---- Two or three columns


def _numbers_or_nothing(table: UserTable, title: str) -> Column:
    text = table.column(title, "outcome")
    text = text.mask(text.str.lower().isin(NOTHING), "")
    numbers = to_numbers(_plain(text))
    table.reject(numbers.isna() & (text != ""), text, title, "a number")
    return numbers.rename(title)


def _point_outcomes(table: UserTable, numbers: Frame, titles: list[str]) -> Outcomes:
    margin = numbers.iloc[:, 0] - numbers.iloc[:, 1]
    both = " and ".join(code_span(title) for title in titles)
    table.note(
        f"The columns {both} are read as the points of one comparison in each row. The "
        f"scores use only the winner, not the point difference. If the columns count wins in several "
        f"comparisons, such as games or sets, pass `-p counts yes`."
    )
    return Outcomes(np.sign(margin), margin)


def _count_outcomes(table: UserTable, numbers: Frame, titles: list[str]) -> Outcomes:
    """Counts of wins of both sides and of ties; rows without counts are unknown."""
    known = numbers.notna().any(axis=1)
    counts = numbers.fillna(0.0)
    for title in titles:
        wrong = (counts[title] < 0) | (counts[title] != np.round(counts[title]))
        texts = table.column(title, "outcome")
        table.reject(wrong, texts, title, "a count: 0, 1, 2, and so on")
    if len(titles) == 2:
        counts["ties"] = 0.0
    counts.columns = ["first", "second", "tie"]
    counts = counts.where(known, 0.0)
    total = int(counts.to_numpy().sum())
    columns = " and ".join(code_span(title) for title in titles)
    table.note(
        f"The columns {columns} are read as counts of wins: {len(counts):,} rows are {total:,} "
        f"comparisons. If they are the points of one comparison in each row, pass `-p counts no`."
    )
    sign = np.sign(counts["first"] - counts["second"])
    return Outcomes(sign.where(known), counts=counts)


# ---- One column


def _read_column(table: UserTable, title: str, sides: Sides) -> Outcomes:
    text = table.column(title, "outcome")
    text = text.mask(text.str.lower().isin(NOTHING) & ~_is_own_name(text, sides), "")
    given = text != ""
    named = _named_sides(table, text, sides)
    low = _words(text)
    by_title = _titled_sides(low, sides)
    is_neutral = low.isin(TIES) | by_title.notna() | _is_half(low)
    n_named = int(named.notna().sum())
    n_other = int((given & named.isna() & ~is_neutral).sum())
    numbers = to_numbers(_plain(text))
    other_reading: Any = (
        numbers.notna() | low.isin(list(_meanings(low))) | by_title.notna()
    )
    least = _NEARLY_ALL if other_reading[given].all() else 0.5
    if n_named > least * (n_named + n_other):
        _check_other_reading(table, text, named, sides, title)
        return _read_winners(table, text, named, by_title, title)
    if n_named:
        example = escape_markdown(text[named.notna()].iloc[0])
        table.note(
            f"**Values such as {example} are also names.** They are not read as names of winners, because "
            f"other values of the column are not names in their row."
        )
    betting = set(low[given].unique())
    if betting <= set(_BETTING) and "2" in betting:
        return _read_words(table, text, low, by_title, (title, _BETTING))
    n_wrong = int((numbers.isna() & given).sum())
    if n_wrong <= (1 - _NEARLY_ALL) * given.sum():
        return _read_single_numbers(table, text, numbers, title)
    return _read_words(table, text, low, by_title, (title, _meanings(low)))


def _is_own_name(text: Column, sides: Sides) -> Column:
    return ((text == sides.first) | (text == sides.second)).astype(bool)


def _named_sides(table: UserTable, text: Column, sides: Sides) -> Column:
    """1 or -1 if a value is the first or the second name in its row, else NaN."""
    named = pd.Series(np.nan, text.index)
    named[(text == sides.first).to_numpy(bool)] = 1.0
    named[(text == sides.second).to_numpy(bool)] = -1.0
    left = text[named.isna() & (text != "")]
    known = pd.concat([sides.first, sides.second, left]).unique()
    key = {name: normalized_name(name) for name in known}
    value = left.map(key)
    is_first = value == sides.first[left.index].map(key)
    is_second = value == sides.second[left.index].map(key)
    found = is_first ^ is_second
    keys: Column = pd.Series(np.where(is_first, 1.0, -1.0), left.index)[found]
    named[keys.index] = keys
    if len(keys):
        example = escape_markdown(repr(text[keys.index[0]]))
        table.note(
            f"{counted(len(keys), 'winner is', 'winners are')} spelled differently from the name in the "
            f"row, such as {example}, and read as that name: only case, spaces, or the encoding of a "
            f"letter differ."
        )
    return named


def _words(text: Column) -> Column:
    """Values in lower case without a remark in parentheses: "tie (both bad)" is a tie."""
    return _plain(text).str.lower().str.partition("(")[0].str.strip()


def _plain(text: Column) -> Column:
    """Values with halves as 0.5, decimal points, and hyphens instead of dashes."""
    plain = text.str.replace(r"(\d)½", r"\1.5", regex=True)
    plain = plain.str.replace("½", "0.5", regex=False)
    plain = plain.str.replace(r"(?<![\d.])1/2(?!\d)", "0.5", regex=True)
    plain = plain.str.replace(r"(?<=\d),(?=\d)", ".", regex=True)
    return plain.str.replace(r"[−–—]", "-", regex=True)


def _is_half(low: Column) -> Column:
    return low.isin(["0.5", "0.5-0.5"])


def _titled_sides(low: Column, sides: Sides) -> Column:
    """1 or -1 if a value is the title of the column of a side, else NaN."""
    titles = {sides.titles[0].lower(): 1.0, sides.titles[1].lower(): -1.0}
    return low.map(titles).astype(float)


def _read_winners(
    table: UserTable,
    text: Column,
    named: Column,
    by_title: Column,
    title: str,
) -> Outcomes:
    """Outcomes of a column with the names of winners."""
    low = _words(text)
    sign = named.fillna(by_title)
    is_tie = sign.isna() & (low.isin(TIES) | _is_half(low))
    sign[is_tie] = 0.0
    given = text != ""
    wrong = sign.isna() & given
    expected = "one of the two names in this row, or tie"
    tie = _advice_on_ties(text[wrong])
    table.reject(wrong, text, title, f"{expected}{tie and '. '}{tie}", expected)
    return Outcomes(sign)


def _advice_on_ties(invalid: Column) -> str:
    """Advice on a word that most invalid rows have, and that may mean a tie, or ""."""
    n_same = int((invalid == invalid.iloc[0]).sum()) if len(invalid) else 0
    if n_same < 2 or 2 * n_same < len(invalid):
        return ""
    return f"If {invalid.iloc[0]!r} means a tie, replace it by tie"


def _check_other_reading(
    table: UserTable, text: Column, named: Column, sides: Sides, title: str
) -> None:
    """Note that names of winners are also words or numbers; raise if undecidable.

    With three names or more, words would not always be a name in their row.

    Raises
    ------
    ValueError
        If there are two names, and both readings fit all values.
    """
    low = _words(text)
    numbers = to_numbers(text)
    as_numbers = np.sign(2 * numbers - 1).where(numbers.isin([1, 0.5, 0]))
    other = low.map(_meanings(low)).astype(float).fillna(as_numbers)
    differs: Column = named.notna() & other.notna() & (named != other)
    if not bool(differs.any()):
        return
    row = differs.idxmax()
    players: Any = pd.concat([sides.first, sides.second])
    n_names = int(players.nunique())
    has_other: Any = other[text != ""].notna()
    if n_names <= 2 and bool(has_other.all()):
        raise ValueError(
            f"{table.describe(row, text[row], title)}, which can mean the name of the winner, or "
            f"{_SIDE[int(other[row])]} of the first side; rename the players, or write 1, 0, -1"
        )
    name = escape_markdown(text[row])
    table.note(
        f"**Values of {code_span(title)} are read as names of winners**, although they have another "
        f"meaning, too: {name} means that {name} won."
    )


def _read_single_numbers(
    table: UserTable, text: Column, numbers: Column, title: str
) -> Outcomes:
    """Outcomes from numbers: 1, 0, -1; or 1, 1/2, 0; or differences of points."""
    table.reject(numbers.isna() & (text != ""), text, title, "a number")
    if not (numbers.min() >= 0):
        margin = numbers if numbers.abs().max() > 1 else None
        return Outcomes(np.sign(numbers), margin)
    expected = (
        "1, 0, -1, or 1, 1/2, 0, or two columns with points: -p outcome 'ONE - OTHER'"
    )
    table.reject(numbers > 1, text, title, expected)
    table.note("The outcome 1 is read as a win of the first side, and 0 as a loss.")
    return Outcomes(np.sign(2 * numbers - 1))


def _meanings(low: Column) -> dict[str, int]:
    """Meanings of words: A and B are sides without an H, and T is true next to F."""
    present = set(low.unique())
    meanings = WORDS | _FORFEITS
    if {"b", "h", "d"} & present == {"b"}:
        return meanings | _SIDES
    if "t" in present and "f" in present:
        return meanings | _TRUTH
    return meanings | {"t": 0}


def _read_words(
    table: UserTable,
    text: Column,
    low: Column,
    by_title: Column,
    titled_meanings: tuple[str, dict[str, int]],
) -> Outcomes:
    """Outcomes from titles of columns, words, and points such as 3-0."""
    title, meanings = titled_meanings
    is_word = by_title.isna() & low.isin(list(meanings))
    sign = by_title.fillna(low.map(meanings).astype(float))
    margin = _margins_of_texts(table, text, low.where(sign.isna(), ""))
    sign = sign.fillna(np.sign(margin))
    sign[sign.isna() & _is_half(low)] = 0.0
    used = sorted(low[is_word].unique())
    if any(meanings[word] for word in used):  # a tie alone needs no explanation
        meaning = ", ".join(f"{word} as {_SIDE[meanings[word]]}" for word in used)
        table.note(f"Outcomes are read for the first side: {meaning}.")
    wrong = sign.isna() & (text != "")
    is_date = wrong & low.str.fullmatch(_DATE).fillna(False).astype(bool)
    table.reject(is_date, text, title, _TURNED_INTO_A_DATE)
    wrong &= ~is_date
    table.reject(wrong, text, title, _expected_words(text[wrong]), "")
    return Outcomes(sign, margin if margin.notna().any() else None)


def _expected_words(invalid: Column) -> str:
    tie = _advice_on_ties(invalid) or "Write tie if neither won"
    return (
        f"the name of the winner or of its column, points such as 3-0, only numbers, or one of "
        f"{', '.join(WORDS)}. {tie}, and delete rows that were not played or judged"
    )


def _margins_of_texts(table: UserTable, text: Column, low: Column) -> Column:
    """Point differences of texts such as 3-0, else NaN."""
    points = low.str.extract(_POINTS)
    first = to_numbers(points["first"].fillna(""))
    margin = first - to_numbers(points["second"].fillna(""))
    if margin.notna().any():
        example = escape_markdown(text[margin.notna()].iloc[0])
        table.note(
            f"Outcomes such as {example} are read as the points of both sides, the first side before the "
            f"second. The scores use only the winner, not the point difference."
        )
    forfeits = points["forfeit"].notna() & margin.notna()
    if forfeits.any():
        are = counted(
            int(forfeits.sum()),
            "result by forfeit (F) counts",
            "results by forfeit (F) count",
        )
        table.note(f"{are} like other wins.")
    return margin
