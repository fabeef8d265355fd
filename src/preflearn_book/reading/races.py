"""Tables of rankings: one row per participant of an event, instead of one per pair."""

from __future__ import annotations

import shlex

from preflearn_book.reading.columns import Column, UserTable, to_numbers

PLACE_TITLES = (
    "rank",
    "ranking",
    "place",
    "placing",
    "placement",
    "position",
    "pos",
    "finish",
    "finish_position",
    "finishing_position",
)
"""Titles of columns with places, in lower case."""


def check_is_not_rankings(table: UserTable) -> None:
    """Raise ValueError, with the command to use, if a table holds rankings.

    Raises
    ------
    ValueError
        If the table has columns with an event, a participant, and a place.
    """
    found = _ranking_columns(table)
    if found is None:
        return
    event, participant, place = found
    words = shlex.join([table.source, event, participant, place])
    raise ValueError(
        f"{table.source} has one row per participant of an event (columns {event!r}, {participant!r}, "
        f"{place!r}), and a report needs one row per comparison of two sides; to rank the participants, run "
        f"in the clone of the repository: python examples/rank_races.py {words}"
    )


def _ranking_columns(table: UserTable) -> tuple[str, str, str] | None:
    """Columns with the event, the participant, and the place, or None."""
    titles = [str(title) for title in table.frame.columns]
    once = [title for title in titles if titles.count(title) == 1]
    texts = {title: table.column(title, "first") for title in once}
    for place in once:
        if place.lower().replace(" ", "_") not in PLACE_TITLES:
            continue
        others = [title for title in once if title != place]
        for event in others:
            if not _are_places_within(texts[place], texts[event]):
                continue
            for participant in others:
                if _takes_part_once(texts[participant], texts[event]):
                    return event, participant, place
    return None


def _are_places_within(place: Column, event: Column) -> bool:
    """Whether most events have a first place, and more than one participant."""
    numbers = to_numbers(place)
    events = numbers.groupby(event)
    return bool(
        (events.min() == 1).mean() > 0.5
        and (events.size() > 1).mean() > 0.5
        and (events.nunique() > 1).mean() > 0.5
    )


def _takes_part_once(participant: Column, event: Column) -> bool:
    """Whether a name occurs at most once per event, and some in several events."""
    listed_once = (
        not participant.groupby(event).apply(lambda x: x.duplicated().any()).any()
    )
    return bool(listed_once and participant.duplicated().any())
