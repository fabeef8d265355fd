"""Names of players, items, and judges: which are refused, and which may be the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from preflearn_book.reading.columns import Column, UserTable, first_few

MAX_NAME_LENGTH = 200
_MIN_FREQUENT = 10  # rows of a name that a rare one may be a misspelling of
_MAX_RARE = 2
_MIN_LETTERS = 4


def read_names(table: UserTable, column: str, parameter: str) -> Column:
    """The names in a column, one in each row.

    Raises
    ------
    ValueError
        If a name has a line break or hundreds of characters, which a quotation mark
        that is not closed causes; or if many rows have none.
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
    table.reject(values == "", values, column, "a name")
    return values


def normalized_name(name: str) -> str:
    """A name without differences of Unicode form, case, blanks, and a ".0" of numbers.

    Examples
    --------
    >>> normalized_name("  Ann   LEE"), normalized_name("12.0")
    ('ann lee', '12')
    """
    text = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"^(\d+)\.0$", r"\1", " ".join(text.split()))


def note_similar_names(table: UserTable, counts: Column) -> None:
    """Note names that may be one: alike but for their form, or rare and nearly alike.

    Parameters
    ----------
    table : UserTable
    counts : Series of int
        Rows of each name, the index.
    """
    groups: dict[str, list[str]] = {}
    for name in counts.index:
        groups.setdefault(normalized_name(name), []).append(name)
    alike = [
        " and ".join(f"{name} ({counts[name]:,} rows)" for name in names)
        for names in groups.values()
        if len(names) > 1
    ]
    if alike:
        table.note(
            f"**Names that differ only in case, blanks, or the encoding of a letter**: "
            f"{first_few(alike)}. Each counts as a name of its own; if they are the same, correct the file."
        )
    listed = {name for names in groups.values() if len(names) > 1 for name in names}
    texts = [
        f"{name} (in {counts[name]}; {near} in {counts[near]:,})"
        for name, near in _misspelt(counts)
        if name not in listed
    ]
    if texts:
        table.note(
            f"**Names in one or two rows that resemble another**: {first_few(texts)}. Each counts as a name "
            f"of its own; if two are the same, correct the file."
        )


def _misspelt(counts: Column) -> Iterator[tuple[str, str]]:
    """Rare names, each with a frequent name that it resembles."""
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
    """A name without accents and order of words, and without one of its letters.

    A digit is never left out: "Team 1" is not "Team 2".
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
    """The two names of "ONE - OTHER", which may have " - " in themselves.

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
        f"pair is {pair!r}; expected two names of the file, such as {example!r}"
    )
