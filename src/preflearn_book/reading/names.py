"""Names of players, items, and judges: invalid names, and names that may be the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from preflearn_book.reading.columns import Column, UserTable, first_few
from preflearn_book.sentences import counted

MAX_NAME_LENGTH = 200
_MIN_FREQUENT = 10  # rows of a frequent name, which rare names may misspell
_MAX_RARE = 2
_MIN_LETTERS = 4


def read_names(table: UserTable, column: str, parameter: str) -> Column:
    """Read the names in a column.

    Raises
    ------
    ValueError
        If a name has a line break or more than 200 characters, as after an unclosed
        quotation mark; or if many rows have no name.
    """
    values = table.column(column, parameter)
    too_long = values.str.len() > MAX_NAME_LENGTH
    wrong = too_long | values.str.contains(r"[\r\n]", regex=True)
    if wrong.any():
        row = wrong.idxmax()
        raise ValueError(
            f"{table.describe(row, values[row], column)}; expected a name of one line and at most "
            f"{MAX_NAME_LENGTH} characters: look for a quotation mark that is not closed"
        )
    table.reject(values == "", values, column, "a name: complete or delete the row")
    return values


def normalized_name(name: str) -> str:
    """Normalize the Unicode form, case, spaces, and a trailing ".0" of a name.

    Examples
    --------
    >>> normalized_name("  Ann   LEE"), normalized_name("12.0")
    ('ann lee', '12')
    """
    text = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"^(\d+)\.0$", r"\1", " ".join(text.split()))


def note_similar_names(
    table: UserTable, counts: Column, what: str = "names"
) -> dict[str, str]:
    """Note names that may mean the same: equal when normalized, or rare and similar.

    Parameters
    ----------
    table : UserTable
    counts : Series of int
        Number of rows of each name; the names are the index.
    what : str
        Plural noun for what is named in the notes, such as "names of judges".

    Returns
    -------
    dict of str to str
        Each doubtful name, and the more frequent name that may be meant.
    """
    groups: dict[str, list[str]] = {}
    for name in counts.index:
        groups.setdefault(normalized_name(name), []).append(name)
    alike = [
        " and ".join(f"{name} ({_rows(counts[name])})" for name in names)
        for names in groups.values()
        if len(names) > 1
    ]
    if alike:
        table.note(
            f"**{_capital(what)} that differ only in case, spaces, or the encoding of a letter**: "
            f"{first_few(alike)}. The report treats them as different; if they are the same, correct the "
            f"file."
        )
    listed = {name for names in groups.values() if len(names) > 1 for name in names}
    misspelt = {name: near for name, near in _misspelt(counts) if name not in listed}
    texts = [
        f"{name} ({_rows(counts[name])}; {near}: {_rows(counts[near])})"
        for name, near in misspelt.items()
    ]
    if texts:
        table.note(
            f"**Rare {what} that resemble a frequent one**: {first_few(texts)}. The report treats them as "
            f"different; if they are the same, correct the file."
        )
    doubtful = dict[str, str]()
    for names in groups.values():
        most, *others = sorted(names, key=lambda name: -counts[name])
        doubtful.update(dict.fromkeys(others, most))
    return doubtful | misspelt


def _rows(n: int) -> str:
    return counted(int(n), "row", "rows")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _misspelt(counts: Column) -> Iterator[tuple[str, str]]:
    """Rare names, each with a similar frequent name."""
    frequent: dict[str, str] = {}
    for name in counts.index[counts >= _MIN_FREQUENT]:
        for shape in _shapes(name):
            frequent.setdefault(shape, name)
    for name, n_rows in counts[counts <= _MAX_RARE].items():
        text = str(name)
        near = next((frequent[s] for s in _shapes(text) if s in frequent), None)
        if (
            near is not None
            and counts[near] >= _MIN_FREQUENT * n_rows
            and len(text) >= _MIN_LETTERS
        ):
            yield text, near


def _shapes(name: str) -> Iterator[str]:
    """A name without accents or word order, and the same without one letter each.

    Digits are never left out, because "Team 1" is not "Team 2".
    """
    low = unicodedata.normalize("NFKD", name).casefold()
    plain = "".join(c for c in low if not unicodedata.combining(c))
    words = plain.replace(",", " ").split()
    for text in (" ".join(words), " ".join(sorted(words))):
        yield text
        for k, letter in enumerate(text):
            if not letter.isdigit():
                yield text[:k] + text[k + 1 :]


def read_pair(pair: str, names: set[str]) -> tuple[str, str]:
    """The two names of "ONE - OTHER"; each may contain " - ".

    Raises
    ------
    ValueError
        If the text is not two known names.
    """
    parts = pair.split(" - ")
    for k in range(1, len(parts)):
        one = " - ".join(parts[:k]).strip()
        other = " - ".join(parts[k:]).strip()
        if {one, other} <= names and one != other:
            return one, other
    example = " - ".join(sorted(names)[:2])
    raise ValueError(
        f"pair={pair!r} does not consist of two names of the file; write it like {example!r}"
    )
