"""Tables of races, or of other events: one row per participant of an event."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from preflearn.core.validation import check_choice
from preflearn.matches import NOT_STARTED_CODES
from preflearn_book.reading.columns import (
    MAX_FRACTION_LEFT_OUT,
    MAX_LISTED_ROWS,
    NOTHING,
    Column,
    Frame,
    UserTable,
    first_few,
    spaced_title,
    to_numbers,
)
from preflearn_book.reading.formats import table_of
from preflearn_book.reading.labels import code_span
from preflearn_book.reading.names import note_similar_names, read_names
from preflearn_book.sentences import counted

PLACE_TITLES = (
    "rank",
    "ranking",
    "place",
    "placing",
    "placement",
    "position",
    "pos",
    "finish",
    "finish position",
    "finishing position",
)
"""Titles of columns with places, in lower case."""

LAST, LEAVE_OUT = "last", "leave_out"
"""Treatments of participants who started, and whose place is a text such as DNF."""

MIN_EVENTS = 5
MAX_PARTICIPANTS = 2_000
_DURATION = r"\d+:\d{2}(:\d{2})?([.,]\d+)?"
# a place with a mark, such as 3rd, T3 or =3 (shared), or P3
_MARKED_PLACE = r"^(?:T|=|P)?\s*(\d+)\s*(?:ST|ND|RD|TH|\.|=|T)?$"


@dataclass
class RaceFile:
    """Events of a file, in the order in which the file first names them.

    Attributes
    ----------
    source : str
    event, player, place : str
        Names of the columns.
    events : list of str
        Names of the events that took place.
    rankings : list of lists of tuples
        For each event, the participants at each place, best first.
    unranked : list of lists of str
        For each event, the participants after all others, in unknown order.
    to_come : dict of str to list of str
        Participants of each event without any place.
    retired : dict of str to int
        Texts instead of places, and their numbers of rows.
    notes : list of str
        Markdown for the reader of the report.
    doubtful : dict of str to str
        Names that may be misspelled, each with the name that may be meant.
    omitted : list of str
        Short texts that count the rows left out.
    """

    source: str
    event: str
    player: str
    place: str
    events: list[str]
    rankings: list[list[tuple[str, ...]]]
    unranked: list[list[str]]
    to_come: dict[str, list[str]]
    retired: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    doubtful: dict[str, str] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)

    def message(self, retired: str) -> str:
        """Say in one line how the file was read, and name the parameter `retired`."""
        text = (
            f"{self.source}: one row per participant of an event (columns {self.event!r}, {self.player!r}, "
            f"{self.place!r})"
        )
        if not self.retired:
            return text
        text += f"; {counted(sum(self.retired.values()), 'place is a text', 'places are texts')}"
        texts = ", ".join(f"{title!r}" for title in list(self.retired)[:5])
        if retired == LEAVE_OUT:
            return f"{text} ({texts}), left out by retired={LEAVE_OUT}"
        return (
            f"{text} ({texts}), behind all others of the event; -p retired {LEAVE_OUT} leaves these "
            f"participants out"
        )


def load_races(
    data: str | Path | UserTable,
    event: str = "",
    player: str = "",
    place: str = "",
    retired: str = LAST,
) -> RaceFile:
    """Read events, their participants, and their places.

    Parameters
    ----------
    data : str, Path, or UserTable
    event, player, place : str
        Names of the columns; "" decides by titles and values.
    retired : {"last", "leave_out"}
        Participants whose place is a text such as DNF: "last" ranks them after all
        others of their event, in unknown order.

    Raises
    ------
    ValueError
        If the columns are not found, or there are fewer than five events.
    """
    check_choice(retired, "retired", (LAST, LEAVE_OUT))
    raw = table_of(data)
    event, player, place = _columns(raw, event, player, place)
    table = _read_rows(raw, event, player, place)
    texts = table.loc[table["retired"], "text"].value_counts()
    if retired == LEAVE_OUT:
        table = table[~table["retired"]]
    _note_retired(raw, texts, retired)
    is_played = table["number"].notna() | table["retired"]
    events, rankings, unranked = _rankings(raw, _most_frequent(raw, table[is_played]))
    _check_races(raw.source, rankings)
    names = [name for row in rankings for group in row for name in group]
    names += [name for row in unranked for name in row]
    doubtful = note_similar_names(raw, pd.Series(names, dtype="string").value_counts())
    to_come = _to_come(raw, table[~is_played])
    raw.note_unused_columns()
    return RaceFile(
        raw.source,
        event,
        player,
        place,
        events,
        rankings,
        unranked,
        to_come,
        {str(text): int(n) for text, n in texts.items()},
        raw.notes,
        doubtful,
        raw.omitted,
    )


def find_race_columns(
    table: UserTable, event: str = "", player: str = "", place: str = ""
) -> tuple[str, str, str] | None:
    """Columns with the event, the participant, and the place, or None.

    A named column is used without a test of its values.
    """
    once = table.unique_titles()
    texts = {title: table.texts(title) for title in once}
    by_title = [title for title in once if _names_a_place(title)]
    for third in [place] if place else by_title:
        others = [title for title in once if title != third]
        for first in [event] if event else others:
            if not event and not _are_places_within(texts[third], texts[first]):
                continue
            found = player or _participants(texts, first, third)
            if found:
                return first, found, third
    if place:  # the columns that fit another column with places
        others = find_race_columns(table, event, player)
        return others and (*others[:2], place)
    return None


def find_duration_columns(table: UserTable) -> list[str]:
    """Names of the columns with durations such as 0:45.415."""
    titles = table.unique_titles()
    return [title for title in titles if _are_durations(table.texts(title))]


def _are_durations(texts: Column) -> bool:
    given = texts[texts != ""]
    return bool(len(given) and given.str.fullmatch(_DURATION).mean() > 0.5)


def _columns(
    table: UserTable, event: str, player: str, place: str
) -> tuple[str, str, str]:
    for name, title in (("event", event), ("player", player), ("place", place)):
        if title:
            texts = table.column(title, name)  # an error if the column is missing
            if name == "place" and _are_durations(texts):
                titles = [str(title) for title in table.frame.columns]
                other = next(filter(_names_a_place, titles), "NAME")
                raise ValueError(
                    f"column {title!r} in {table.source} contains times, not places: 1, 2, 3; name another "
                    f"column with -p place {shlex.quote(other)}, or add the rank of each time in its event"
                )
    found = find_race_columns(table, event, player, place)
    if found is None:
        text = (
            f"the columns with the event, the participant, and the place were not found in "
            f"{table.source}; the file has: {table.titles()}. Name the columns with -p event NAME -p player "
            f"NAME -p place NAME"
        )
        if durations := find_duration_columns(table):
            text += f". The report needs places, and {durations[0]!r} contains times"
        raise ValueError(text)
    return found


def _names_a_place(title: str) -> bool:
    return spaced_title(title) in PLACE_TITLES


def _are_places_within(place: Column, event: Column) -> bool:
    """Whether most events with places have a first place, and several participants."""
    numbers = _place_numbers(place)
    events = numbers.groupby(event)
    took_place = events.count() > 0
    if not took_place.any():
        return False
    parts = (events.min() == 1, events.size() > 1, events.nunique() > 1)
    return all(bool(part[took_place].mean() > 0.5) for part in parts)


def _participants(texts: dict[str, Column], event: str, place: str) -> str:
    """The column with participants; of several, texts with the fewest values."""
    found = [
        (bool(to_numbers(values).notna().all()), values.nunique(), title)
        for title, values in texts.items()
        if title not in (event, place) and _takes_part_once(values, texts[event])
    ]
    return min(found)[2] if found else ""


def _takes_part_once(participant: Column, event: Column) -> bool:
    """Whether a name nearly always occurs once per event, and some in several events."""
    rows = pd.DataFrame({"event": event, "player": participant})
    copies = rows.duplicated().mean()
    return bool(copies <= MAX_FRACTION_LEFT_OUT and participant.duplicated().any())


def _place_numbers(texts: Column) -> Column:
    """Places as numbers, also 3rd, T3, =3, and P3; NaN for other texts."""
    marked = texts.str.upper().str.extract(_MARKED_PLACE, expand=False).fillna("")
    return to_numbers(texts).fillna(to_numbers(marked))


def _read_rows(raw: UserTable, event: str, player: str, place: str) -> Frame:
    """Rows with event, player, text, number, and whether the participant retired.

    Rows of future events have neither a number nor retired participants.
    """
    events = read_names(raw, event, "event")
    players = read_names(raw, player, "player")
    texts = raw.column(place, "place")
    numbers = _place_numbers(texts)
    expected = "a place from 1 on, or a text such as DNF"
    raw.reject(numbers <= 0, texts, place, expected)
    table = pd.DataFrame({"event": events, "player": players, "text": texts})
    table["number"] = numbers
    is_again = table.duplicated(["event", "player"]) & (players != "")
    raw.reject(is_again, players, player, "each participant once per event")
    table = table.drop(index=list(raw.left_out))
    is_empty = table["text"].str.lower().isin(NOTHING)
    took_place = table["number"].notna().groupby(table["event"]).transform("any")
    is_text = table["number"].isna() & ~is_empty
    not_started = is_text & table["text"].str.upper().isin(NOT_STARTED_CODES)
    without_numbers = ~took_place & is_text.groupby(table["event"]).transform("any")
    left_out = {
        "did not start (such as DNS)": not_started & took_place,
        "have no place in an event that took place": is_empty & took_place,
        "are in an event without any place that is a number": without_numbers,
    }
    for words, rows in left_out.items():
        _note_left_out(raw, table[rows], words)
    kept = ~pd.concat(left_out, axis=1).any(axis=1)
    return table.assign(retired=is_text & took_place)[kept]


def _note_left_out(raw: UserTable, rows: Frame, words: str) -> None:
    if len(rows):
        participations = rows["player"] + " in " + rows["event"]
        raw.note_left_out(
            f"{counted(len(rows), 'row', 'rows')} of participants who {words}",
            first_few(participations, MAX_LISTED_ROWS),
        )


def _note_retired(raw: UserTable, texts: Column, retired: str) -> None:
    if not len(texts):
        return
    n_rows = counted(
        int(texts.sum()),
        "place is a text instead of a number",
        "places are texts instead of numbers",
    )
    listed = first_few(f"{text} ({n:,})" for text, n in texts.items())
    if retired == LEAVE_OUT:
        raw.note(
            f"**{n_rows}**: {listed}. The report leaves these participants out of "
            f"their events, as {code_span(f'retired={LEAVE_OUT}')} asks for."
        )
    else:
        raw.note(
            f"**{n_rows}**: {listed}. These participants share the place after all "
            f"others of their event; which of them was better is unknown. "
            f"{code_span(f'-p retired {LEAVE_OUT}')} leaves them out instead."
        )


def _most_frequent(raw: UserTable, table: Frame) -> Frame:
    """The rows of the participants with the most events."""
    counts = table["player"].value_counts()
    if len(counts) <= MAX_PARTICIPANTS:
        return table
    raw.note(
        f"**Only the {MAX_PARTICIPANTS:,} participants with the most events, of {len(counts):,}, are in "
        f"the report**, because the standard errors of more would need too much memory."
    )
    return table[table["player"].isin(counts.index[:MAX_PARTICIPANTS])]


def _rankings(
    raw: UserTable, table: Frame
) -> tuple[list[str], list[list[tuple[str, ...]]], list[list[str]]]:
    """Names, rankings, and unranked participants of the events with a result."""
    events, rankings, unranked, single = [], [], [], []
    for name, ranking, rest in _events(table):
        if len(ranking) + bool(rest) < 2:
            single.append(name)
            continue
        events.append(name)
        rankings.append(ranking)
        unranked.append(rest)
    if single:
        n_events = counted(len(single), "event", "events")
        raw.note_left_out(
            f"{n_events} with a single participant or a single place",
            first_few(single, MAX_LISTED_ROWS),
        )
    n_tied = sum(any(len(group) > 1 for group in row) for row in rankings)
    if n_tied:
        n_events = counted(n_tied, "event", "events")
        raw.note(f"In {n_events}, participants share a place. The model has such ties.")
    return events, rankings, unranked


def _to_come(raw: UserTable, table: Frame) -> dict[str, list[str]]:
    """Participants of each event to come, if there are at least two."""
    groups = table.groupby("event", sort=False)["player"]
    players = {str(event): list(names) for event, names in groups}
    single = [event for event, names in players.items() if len(names) == 1]
    if single:
        n_events = counted(len(single), "event", "events")
        raw.note_left_out(
            f"{n_events} to come with a single participant",
            first_few(single, MAX_LISTED_ROWS),
        )
    return {event: names for event, names in players.items() if len(names) > 1}


def _events(table: Frame) -> Iterator[tuple[str, list[tuple[str, ...]], list[str]]]:
    """The name of each event, its ranking, and its unranked participants."""
    number = table["number"].fillna(np.inf)
    table = table.assign(code=pd.factorize(table["event"])[0], number=number)
    table = table.sort_values(["code", "number"], kind="stable")
    for _, rows in table.groupby("code", sort=True):
        is_ranked = np.isfinite(rows["number"])
        places = rows[is_ranked].groupby("number", sort=True)["player"]
        ranking = [tuple(players) for _, players in places]
        yield rows["event"].iloc[0], ranking, rows["player"][~is_ranked].tolist()


def _check_races(source: str, rankings: list[list[tuple[str, ...]]]) -> None:
    if len(rankings) < MIN_EVENTS:
        n_events = counted(len(rankings), "event", "events")
        raise ValueError(
            f"{source} has {n_events} with at least two different places, and a report on races needs "
            f"{MIN_EVENTS}; check -p event and -p place"
        )
