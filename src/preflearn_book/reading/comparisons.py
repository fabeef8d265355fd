"""Tables of matches, judgments, and races for the report templates."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from preflearn_book.reading.columns import (
    MAX_LISTED_ROWS,
    Column,
    Frame,
    UserTable,
    first_few,
    listed_rows,
    read_flags,
    read_numbers,
)
from preflearn_book.reading.formats import table_of
from preflearn_book.reading.labels import code_span, escape_markdown
from preflearn_book.reading.names import note_similar_names, read_names, read_pair
from preflearn_book.reading.outcomes import FIRST_WON, Outcomes, Sides, read_outcomes
from preflearn_book.reading.races import (
    LAST,
    RaceFile,
    find_duration_columns,
    find_race_columns,
    load_races,
)
from preflearn_book.reading.times import TimeScale, find_time_columns, read_times
from preflearn_book.sentences import counted

MIN_MATCHES = 30
MIN_TIMES = 4
MIN_JUDGEMENTS = 10
MAX_ITEMS = 2_000
MAX_ROWS = 5_000_000
"""Maximum number of single comparisons after weights and counts are expanded."""


@dataclass(frozen=True)
class Columns:
    """Column names of a file and how to read them: the parameters of a template.

    Attributes
    ----------
    first, second, time, outcome : str
        Columns with both sides, the time, and the outcome; see `read_outcomes`.
    weight : str
        Column with the number of comparisons in a row, or "".
    counts : {"auto", "yes", "no"}
        Whether two outcome columns count comparisons.
    neutral : str
        Column that marks comparisons in which the first side has no advantage; if it is
        "", the column "neutral" is used if the file has it.
    judge : str
        Column with the judge; if it is "", the column "judge" is used if the file has
        it.
    features : str
        Names of features, separated by commas: "length" means the columns
        "first_length" and "second_length".
    season : str
        Column with the season, or the first time of the current season; if it is "",
        the column "season" is used if the file has it.
    until : str
        Last time to learn from, or "".
    time_format : str
        Format of dates, or "".
    pair : str
        Two names, "ONE - OTHER", or "".
    event, player, place : str
        Columns of races; "" decides by titles and values. See `load_races`.
    retired : {"last", "leave_out"}
        Treatment of participants of races whose place is a text.
    """

    first: str = "first"
    second: str = "second"
    time: str = "time"
    outcome: str = "outcome"
    weight: str = ""
    counts: str = "auto"
    neutral: str = ""
    judge: str = ""
    features: str = ""
    season: str = ""
    until: str = ""
    time_format: str = ""
    pair: str = ""
    event: str = ""
    player: str = ""
    place: str = ""
    retired: str = LAST

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Columns:
        """Take the columns from the parameters of a template; ignore all others."""
        names = {entry.name for entry in fields(cls)}
        return cls(**{k: str(v) for k, v in parameters.items() if k in names})


@dataclass
class MatchFile:
    """Matches of a file in the order of their times.

    Attributes
    ----------
    source : str
    played : DataFrame
        Columns first, second, time, outcome (1, 0, -1), at_home (1 or 0), season (a
        text) if the seasons are known, and margin (points of the first minus points of
        the second) if the file has points.
    to_come : DataFrame
        Matches to forecast: without an outcome, or later than `until`.
    scale : TimeScale
    last : Timestamp or float
        Time of the last match to learn from.
    has_neutral : bool
        Whether a column marks matches without an advantage.
    asked : tuple of str, optional
        Pair named by the parameter `pair`.
    notes : list of str
        Markdown for the reader of the report.
    doubtful : dict of str to str
        Names that may be misspelled, each with the name that may be meant.
    omitted : list of str
        Short texts that count the rows left out.
    """

    source: str
    played: Frame
    to_come: Frame
    scale: TimeScale
    last: Any
    has_neutral: bool
    asked: tuple[str, str] | None = None
    notes: list[str] = field(default_factory=list)
    doubtful: dict[str, str] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)


@dataclass
class JudgementFile:
    """Judgments, or other comparisons without times, of a file.

    Attributes
    ----------
    source : str
    table : DataFrame
        Columns first, second, outcome (1, 0, -1), judge if there are judges, and
        first_NAME and second_NAME of each feature.
    judge : str
        Name of the column with judges, or "".
    features : list of str
    notes : list of str
        Markdown for the reader of the report.
    doubtful, doubtful_judges : dict of str to str
        Names of items and of judges that may be misspelled, each with the name that may
        be meant.
    omitted : list of str
        Short texts that count the rows left out.
    """

    source: str
    table: Frame
    judge: str
    features: list[str]
    notes: list[str] = field(default_factory=list)
    doubtful: dict[str, str] = field(default_factory=dict)
    doubtful_judges: dict[str, str] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)


def guess_kind(table: UserTable, parameters: Mapping[str, Any]) -> str:
    """Whether a file holds "matches", "judgements", or "races".

    Parameters that only one template has decide. Then a file without columns for two
    sides, but with an event, a participant, and a place, holds races; a column "judge"
    means judgments; and a column with times means matches. A file without times holds
    judgments, or undated matches, which have the same report.

    Examples
    --------
    >>> frame = pd.DataFrame({"first": ["a"], "second": ["b"], "played": ["2024-01-31"]})
    >>> guess_kind(UserTable(frame, "own.csv"), {})
    'matches'
    >>> guess_kind(UserTable(frame[["first", "second"]], "own.csv"), {})
    'judgements'
    """
    given = set(parameters)
    if given & {"event", "player", "place", "retired"}:
        return "races"
    if given & {"judge", "features"}:
        return "judgements"
    if given & {"time", "neutral", "pair", "season", "points"}:
        return "matches"
    columns = Columns.of(parameters)
    has_sides = columns.first in table and columns.second in table
    if not has_sides and find_race_columns(table) is not None:
        return "races"
    if "judge" in table:
        return "judgements"
    has_times = Columns.time in table or _time_columns(table, columns)
    return "matches" if has_times else "judgements"


def _time_columns(table: UserTable, columns: Columns) -> list[str]:
    """Columns that look like times and are not used for anything else."""
    used = {columns.first, columns.second, columns.outcome, columns.weight}
    return find_time_columns(table, used | set(columns.outcome.split(" - ")))


def load(
    data: str | Path | UserTable, kind: str, columns: Columns
) -> MatchFile | JudgementFile | RaceFile:
    """Read a file, or its rows, as matches, judgments, or races."""
    table = table_of(data)
    if kind == "races":
        names = columns.event, columns.player, columns.place
        return load_races(table, *names, columns.retired)
    if kind == "judgements":
        return load_judgements(table, columns)
    return load_matches(table, columns)


def load_matches(data: str | Path | UserTable, columns: Columns) -> MatchFile:
    """Read matches with times.

    Raises
    ------
    ValueError
        If the file cannot be read, or has too few matches to choose a model.
    OSError
        If the file does not exist.
    """
    raw = table_of(data)
    _check_roles(raw, columns, ("first", "second", "time", "outcome"))
    sides = _read_sides(raw, columns)
    _note_copies(raw, sides)
    candidates = _time_columns(raw, columns)
    otherwise = f", such as -p time {shlex.quote(candidates[0])}" if candidates else ""
    otherwise += ", or pass --judgements for comparisons without times"
    times, scale = read_times(raw, columns.time, columns.time_format, otherwise)
    outcomes = read_outcomes(raw, columns.outcome, sides, columns.counts)
    table = pd.DataFrame({"first": sides.first, "second": sides.second, "time": times})
    neutral = columns.neutral or ("neutral" if "neutral" in raw else "")
    table["at_home"] = 1
    if neutral:
        table["at_home"] = 1 - read_flags(raw, neutral, "neutral").astype(int)
    seasons = _read_seasons(raw, times, scale, columns.season)
    if seasons is not None:
        table["season"] = seasons
    table = _single_comparisons(raw, table, outcomes, columns)
    if columns.outcome == FIRST_WON:
        _turn_half(raw, table)
    table = table.sort_values("time", kind="stable")
    is_known = table["outcome"].notna()
    last = table["time"].max()
    if columns.until:
        is_early = scale.is_until(table["time"], columns.until)
        is_known &= is_early
        last = table["time"][is_early].max()
    played = table[is_known].astype({"outcome": int}).reset_index(drop=True)
    _check_matches(raw.source, played)
    names = pd.concat([played["first"], played["second"]]).value_counts()
    doubtful = note_similar_names(raw, names)
    asked = read_pair(columns.pair, set(names.index)) if columns.pair else None
    to_come = _future_matches(raw, table[~is_known], played["time"].iloc[-1])
    raw.note_unused_columns()
    return MatchFile(
        raw.source,
        played,
        to_come,
        scale,
        last,
        bool(neutral),
        asked,
        raw.notes,
        doubtful,
        raw.omitted,
    )


def load_judgements(data: str | Path | UserTable, columns: Columns) -> JudgementFile:
    """Read judgments, with or without judges, or undated matches.

    Raises
    ------
    ValueError
        If the file cannot be read, or has too few judgments.
    OSError
        If the file does not exist.
    """
    raw = table_of(data)
    _check_roles(raw, columns, ("first", "second", "outcome"))
    sides = _read_sides(raw, columns)
    outcomes = read_outcomes(raw, columns.outcome, sides, columns.counts)
    table = pd.DataFrame({"first": sides.first, "second": sides.second})
    judge = columns.judge or ("judge" if "judge" in raw else "")
    time = columns.time if columns.time != Columns.time or columns.until else ""
    if judge or time:
        _note_copies(raw, sides)
    if judge:
        table["judge"] = read_names(raw, judge, "judge")
    if not judge and not time:
        _note_that_times_are_unused(raw, columns)
    features = [name.strip() for name in columns.features.split(",") if name.strip()]
    for name in features:
        for side, title in (("first", columns.first), ("second", columns.second)):
            table[f"{side}_{name}"] = read_numbers(raw, f"{title}_{name}", "features")
    is_early = pd.Series(True, table.index)
    if columns.until:
        if time not in raw:
            raise ValueError(
                f"until={columns.until!r} needs a column with times; name it with -p time NAME"
            )
        times, scale = read_times(raw, time, columns.time_format)
        is_early = scale.is_until(times, columns.until)
        raw.note(
            f"The report uses only comparisons up to {escape_markdown(columns.until)}."
        )
    raw.left_out.update(table.index[~is_early])
    table = _single_comparisons(raw, table, outcomes, columns)
    _note_without_answer(raw, table, columns.outcome)
    table = table[table["outcome"].notna()].astype({"outcome": int})
    table = _most_judged(raw, table.reset_index(drop=True))
    _check_judgements(raw.source, table, columns.outcome)
    names = pd.concat([table["first"], table["second"]]).value_counts()
    doubtful = note_similar_names(raw, names)
    doubtful_judges = dict[str, str]()
    if judge:
        answers = table["judge"].value_counts()
        doubtful_judges = note_similar_names(raw, answers, "names of judges")
    raw.note_unused_columns()
    return JudgementFile(
        raw.source,
        table,
        judge,
        features,
        raw.notes,
        doubtful,
        doubtful_judges,
        raw.omitted,
    )


def _check_roles(raw: UserTable, columns: Columns, roles: tuple[str, ...]) -> None:
    """Raise ValueError that names all missing columns, if there are several.

    The message has one command with a placeholder for each missing column.
    """
    titles = {role: str(getattr(columns, role)) for role in roles}
    missing = {role: title for role, title in titles.items() if title not in raw}
    parts = [part.strip() for part in columns.outcome.split(" - ")]
    if columns.outcome == FIRST_WON or all(part in raw for part in parts):
        missing.pop("outcome", None)
    if not {"first", "second"} <= set(missing):
        if len(missing) < 2:  # the message on a single column has its own advice
            return
    elif found := find_race_columns(raw):
        raise ValueError(_advice_on_races(raw, columns, found))
    times = _time_columns(raw, columns)
    command = ["preflearn", "report", raw.source]
    if "time" not in roles:
        command.append("--judgements")
    for role, title in titles.items():
        value = title
        if role in missing:
            value = times[0] if role == "time" and times else "COLUMN"
        command += ["-p", role, value]
    text = (
        f"columns {', '.join(map(repr, missing.values()))} not found in {raw.source}; the file has: "
        f"{raw.titles()}. Name its columns: {shlex.join(command)}"
    )
    if durations := find_duration_columns(raw):
        text += (
            f". If its rows are participants of races, the report needs a column with places, not only "
            f"times such as those of {durations[0]!r}: pass --races -p event COLUMN -p player COLUMN -p "
            f"place COLUMN"
        )
    raise ValueError(text)


def _advice_on_races(
    raw: UserTable, columns: Columns, found: tuple[str, str, str]
) -> str:
    """Say that a file of races has its own report."""
    command = shlex.join(["preflearn", "report", raw.source, "--races"])
    without = ""
    if columns.time != Columns.time:
        without = ", without -p time"
    return (
        f"{raw.source} looks like races, with one row per participant (columns "
        f"{', '.join(map(repr, found))}), and not like comparisons of two sides; for the report on races, "
        f"run {command}{without}"
    )


def _note_without_answer(raw: UserTable, table: Frame, outcome: str) -> None:
    """Note the rows without an outcome."""
    rows = table.index[table["outcome"].isna()].unique()
    if len(rows):
        column = escape_markdown(repr(outcome))
        raw.note_left_out(
            f"{counted(len(rows), 'row', 'rows')} without an answer in column {column}",
            listed_rows(raw.unit, rows),
        )


def _read_sides(raw: UserTable, columns: Columns) -> Sides:
    first = read_names(raw, columns.first, "first")
    second = read_names(raw, columns.second, "second")
    expected = f"a name that differs from that in column {columns.first!r}"
    raw.reject((first == second) & (first != ""), second, columns.second, expected)
    return Sides((columns.first, columns.second), first, second)


def _read_seasons(
    raw: UserTable, times: Column, scale: TimeScale, season: str
) -> Column | None:
    """The season of each row; None if the file does not have it."""
    name = season or "season"
    if name in raw:
        return raw.column(name, "season")
    if not season:
        return None
    try:
        is_current = scale.is_from(times, season)
    except ValueError:
        raise ValueError(
            f"season={season!r} is neither a column of {raw.source} nor a time like those of its matches; "
            f"the file has: {raw.titles()}"
        ) from None
    return is_current.map({True: f"since {season}", False: f"before {season}"})


def _single_comparisons(
    raw: UserTable, table: Frame, outcomes: Outcomes, columns: Columns
) -> Frame:
    """One row per comparison with its outcome; counts and weights repeat rows."""
    table = table.assign(outcome=outcomes.sign)
    if outcomes.margin is not None:
        table["margin"] = outcomes.margin
    times = np.ones(len(table), dtype=np.int64)
    if columns.weight:
        times = _read_weights(raw, columns.weight)
    is_kept = ~table.index.isin(list(raw.left_out))
    counts = outcomes.counts
    if counts is None:
        return _repeated(raw, table[is_kept], times[is_kept])
    parts = [
        _repeated(
            raw,
            table[is_kept].assign(outcome=value),
            (times * counts[side].to_numpy(np.int64))[is_kept],
        )
        for side, value in (("first", 1.0), ("tie", 0.0), ("second", -1.0))
    ]
    to_come = table[is_kept & outcomes.sign.isna().to_numpy()]
    return pd.concat([*parts, to_come]).sort_index(kind="stable")


def _read_weights(raw: UserTable, title: str) -> np.ndarray:
    """Number of comparisons in each row."""
    numbers = read_numbers(raw, title, "weight", "the number of comparisons in the row")
    texts = raw.column(title, "weight")
    wrong = (numbers < 0) | (numbers != np.round(numbers))
    expected = "the number of comparisons in the row: 0, 1, 2, and so on"
    raw.reject(wrong & numbers.notna(), texts, title, expected)
    numbers = numbers.where(~wrong, 0.0).fillna(0.0)
    raw.note(
        f"The column {code_span(title)} gives the number of comparisons in each row: {len(numbers):,} "
        f"rows are {int(numbers.sum()):,} comparisons."
    )
    return numbers.to_numpy(np.int64)


def _repeated(raw: UserTable, table: Frame, times: np.ndarray) -> Frame:
    total = int(times.sum())
    if total > MAX_ROWS:
        raise ValueError(
            f"{raw.source} contains {total:,} comparisons, and the maximum is {MAX_ROWS:,}; use a "
            f"part of the rows, or divide all counts by the same number"
        )
    if (times == 1).all():
        return table
    return table.iloc[np.repeat(np.arange(len(table)), times)]


def _turn_half(raw: UserTable, table: Frame) -> None:
    """Exchange the sides of a random half of the rows."""
    turned = np.random.default_rng(0).random(len(table)) < 0.5
    rows = table.index[turned]
    sides = table.loc[turned, ["second", "first"]].to_numpy()
    is_turned = pd.Series(turned, table.index)
    table["first"] = table["first"].mask(is_turned, pd.Series(sides[:, 0], rows))
    table["second"] = table["second"].mask(is_turned, pd.Series(sides[:, 1], rows))
    table["outcome"] = table["outcome"].mask(is_turned, -table["outcome"])
    raw.note(
        "Each row names its winner first. The report exchanges the two sides in a random half of the "
        "rows, so that the order carries no information."
    )


def _future_matches(raw: UserTable, unknown: Frame, last: Any) -> Frame:
    """Matches without an outcome that are not earlier than the last match; note the
    others."""
    is_past = unknown["time"] < last
    past = unknown[is_past]
    if len(past):
        rows = counted(len(past), "row", "rows")
        raw.omitted.append(f"{rows} without an outcome before the last match")
        rows_have = counted(len(past), "row has", "rows have")
        raw.note(
            f"**Left out: {rows_have} no outcome, but an earlier date than the last match**: "
            f"{_listed_rows(raw, past)}. If they are still to come, enter their new dates."
        )
    return unknown[~is_past].reset_index(drop=True)


def _listed_rows(raw: UserTable, rows: Frame) -> str:
    """The first rows with the names of both sides, as Markdown."""
    rows = rows[~rows.index.duplicated()]
    texts = [
        f"{raw.unit} {row} ({first} against {second})"
        for row, first, second in zip(
            rows.index, rows["first"], rows["second"], strict=True
        )
    ]
    return first_few(texts, MAX_LISTED_ROWS)


def _note_copies(raw: UserTable, sides: Sides) -> None:
    """Note identical rows, which are suspicious if rows have a time or a judge."""
    is_copy = raw.frame.duplicated()
    n_copies = int(is_copy.sum())
    if n_copies:
        rows_are = counted(n_copies, "row is a copy", "rows are copies")
        copies = pd.DataFrame({"first": sides.first, "second": sides.second})[is_copy]
        raw.note(
            f"**{rows_are} of another row**: {_listed_rows(raw, copies)}. Each counts; if they are "
            f"entered twice by mistake, correct the file."
        )


def _note_that_times_are_unused(raw: UserTable, columns: Columns) -> None:
    candidates = _time_columns(raw, columns)
    if candidates:
        command = f"--matches -p time {shlex.quote(candidates[0])}"
        raw.note(
            f"**The report does not use times**: one score describes an item over the whole file. "
            f"For scores that change over time, pass {code_span(command)}."
        )
    else:
        raw.note(
            "**The file has no column with times.** Its rows are read as judgments or undated "
            "matches, and one score describes an item over the whole file."
        )


def _most_judged(raw: UserTable, table: Frame) -> Frame:
    """The comparisons among the items that were compared most often."""
    counts = pd.concat([table["first"], table["second"]]).value_counts()
    if len(counts) <= MAX_ITEMS:
        return table
    kept = counts.index[:MAX_ITEMS]
    inside = table["first"].isin(kept) & table["second"].isin(kept)
    raw.note(
        f"**Only the {MAX_ITEMS:,} items with the most comparisons, of {len(counts):,}, are in the "
        f"report.** {int((~inside).sum()):,} comparisons with other items are left out, because the "
        f"standard errors of more items would need too much memory."
    )
    return table[inside].reset_index(drop=True)


def _check_matches(source: str, played: Frame) -> None:
    found = f"{source} has {len(played):,} matches with an outcome"
    fewer = f"use --judgements, which needs {MIN_JUDGEMENTS} comparisons and no times"
    n_times = played["time"].nunique()
    if len(played) < MIN_MATCHES:
        raise ValueError(
            f"{found}, and a report on matches needs {MIN_MATCHES}; {fewer}"
        )
    if n_times < MIN_TIMES:
        times = counted(n_times, "time", "times")
        raise ValueError(
            f"{found}, but at only {times}; a report on matches needs {MIN_TIMES} different times. Check the "
            f"column of -p time, or {fewer}"
        )
    if played["outcome"].abs().max() == 0:
        raise ValueError(
            f"{found}, and all are ties; scores need matches with a winner: check -p outcome"
        )
    if played["outcome"].nunique() == 1:
        raise ValueError(
            f"{found}, and the same side wins them all; check -p outcome, or pass -p outcome 'first won' "
            f"if each row names the winner first"
        )


def _check_judgements(source: str, table: Frame, outcome: str) -> None:
    n_won = int((table["outcome"] != 0).sum())
    found = f"{source} has {len(table):,} comparisons, {n_won:,} of them without a tie"
    if len(table) < MIN_JUDGEMENTS or n_won == 0:
        raise ValueError(
            f"{found}; a report needs at least {MIN_JUDGEMENTS}, and not all may be ties: check -p outcome"
        )
    if table["outcome"].nunique() == 1 and outcome != FIRST_WON:
        raise ValueError(
            f"{found}, and the same side is always better; check -p outcome, or pass -p outcome "
            f"'first won' if each row names the better item first"
        )
