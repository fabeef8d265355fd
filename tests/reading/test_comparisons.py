"""Matches and judgments from a user's file."""

import numpy as np
import pandas as pd
import pytest

from preflearn_book.reading.columns import UserTable
from preflearn_book.reading.comparisons import (
    Columns,
    guess_kind,
    load_judgements,
    load_matches,
)


def games(n=60):
    rng = np.random.default_rng(1)
    sides = [
        rng.choice(["Ann", "Bob", "Cy", "Dee"], 2, replace=False) for _ in range(n)
    ]
    day = pd.date_range("2024-01-01", periods=n, freq="3D").strftime("%Y-%m-%d")
    frame = pd.DataFrame(sides, columns=["first", "second"])
    return frame.assign(time=day, outcome=rng.choice([1, 0, -1], n))


def as_table(frame):
    texts = frame.astype("string").fillna("")
    texts.index = np.arange(2, len(frame) + 2)
    return UserTable(texts, "own.csv")


def matches_of(frame, **columns):
    return load_matches(as_table(frame), Columns(**columns))


def judgements_of(frame, **columns):
    return load_judgements(as_table(frame), Columns(time="", **columns))


@pytest.mark.parametrize(
    ("titles", "parameters", "kind"),
    [
        (["first", "second", "time"], [], "matches"),
        (["first", "judge"], [], "judgements"),
        (["first", "judge"], ["outcome"], "judgements"),
        (["first", "judge"], ["time"], "matches"),
        (["first"], ["judge"], "judgements"),
        (["first"], ["features", "time"], "judgements"),
        (["first", "second", "outcome"], [], "judgements"),
        (["first", "second", "outcome"], ["pair"], "matches"),
        (["first", "second", "outcome"], ["season"], "matches"),
        (["first", "second", "outcome"], ["points"], "matches"),
    ],
)
def test_the_kind_is_guessed_from_parameters_then_columns(titles, parameters, kind):
    table = as_table(pd.DataFrame([["x"] * len(titles)], columns=titles))
    assert guess_kind(table, dict.fromkeys(parameters, "x")) == kind


@pytest.mark.parametrize(
    ("title", "values", "kind"),
    [
        ("played", ["2024-01-31", "2024-02-01"], "matches"),
        ("when", ["31.01.2024", "01.02.2024"], "matches"),
        ("when", ["2022/23", "2023/24"], "matches"),
        ("kickoffTime", ["1706652000", "1706738400"], "matches"),
        ("year", ["2022", "2023"], "matches"),
        ("home_wins", ["5", "7"], "judgements"),
        ("time_control", ["600+5", "180"], "judgements"),
        ("venue", ["Oslo", "Bern"], "judgements"),
        ("date", ["", ""], "judgements"),
    ],
)
def test_a_file_without_times_holds_judgements(title, values, kind):
    sides = {"first": ["Ann", "Bob"], "second": ["Bob", "Ann"], "outcome": ["1", "0"]}
    table = as_table(pd.DataFrame(sides | {title: values}))
    assert guess_kind(table, {}) == kind


def test_a_report_without_times_says_so():
    frame = games().drop(columns="time")
    file = judgements_of(frame)
    assert "no column with times" in " ".join(file.notes)
    file = judgements_of(frame.assign(day=games()["time"]))
    assert "`--matches -p time day`" in " ".join(file.notes)
    file = judgements_of(frame.assign(judge="eve"))
    assert "times" not in " ".join(file.notes)


def test_a_match_without_an_outcome_is_to_come():
    frame = games()
    frame.loc[59, "outcome"] = None
    file = matches_of(frame)
    assert len(file.played) == 59
    assert len(file.to_come) == 1


@pytest.mark.parametrize("text", ["1.0", "T", "yes", "TRUE"])
def test_neutral_places_are_read_from_a_named_column(text):
    frame = games().assign(where=[text, "0"] * 30, neutral="no")
    assert matches_of(frame).played["at_home"].all()
    at_home = matches_of(frame, neutral="where").played["at_home"]
    assert at_home.tolist() == [0, 1] * 30


def test_a_neutral_column_with_other_values_is_rejected():
    with pytest.raises(ValueError, match="'maybe' in line 2, column 'neutral'"):
        matches_of(games().assign(neutral="maybe"))


def test_a_season_is_named_by_a_column_or_by_its_first_day():
    frame = games().assign(season=["A", "B"] * 30, year="C")
    assert matches_of(frame).played["season"].tolist() == ["A", "B"] * 30
    assert set(matches_of(frame, season="year").played["season"]) == {"C"}
    season = matches_of(frame, season="2024-01-31").played["season"]
    assert season.tolist() == ["before 2024-01-31"] * 10 + ["since 2024-01-31"] * 50
    assert "season" not in matches_of(frame.drop(columns="season")).played
    with pytest.raises(ValueError, match=r"season='soon'.*own\.csv.*first, second"):
        matches_of(frame, season="soon")


def test_weights_and_counts_are_single_comparisons():
    frame = (
        games(12).drop(columns="outcome").assign(wins_1=[2, 0] * 6, wins_2=[1, 3] * 6)
    )
    table = judgements_of(frame, outcome="wins_1 - wins_2").table
    assert table["outcome"].value_counts().to_dict() == {-1: 24, 1: 12}
    frame = games(40).assign(n=[3, 1] * 20)
    counted = judgements_of(frame, weight="n").table
    repeated = judgements_of(frame.loc[np.repeat(frame.index, frame["n"])]).table
    pd.testing.assert_frame_equal(counted, repeated)
    file = matches_of(frame, weight="n")
    assert len(file.played) == 80
    assert "40 rows are 80 comparisons" in " ".join(file.notes)


@pytest.mark.parametrize("weight", ["0.5", "-1", "many"])
def test_weights_that_count_nothing_are_rejected(weight):
    with pytest.raises(ValueError, match=f"'{weight}' in line 2, column 'n'"):
        judgements_of(games().assign(n=weight), weight="n")


def test_winners_named_first_are_turned_at_random():
    file = matches_of(games(), outcome="first won")
    assert 10 < (file.played["outcome"] == 1).sum() < 50
    frame = games()
    named = frame["first"] < frame["second"]
    won = np.where(file.played["outcome"] == 1, "first", "second")
    winners = [
        row[side] for side, (_, row) in zip(won, file.played.iterrows(), strict=True)
    ]
    assert winners == frame["first"].tolist()
    assert named.any()


def test_until_leaves_later_judgements_out():
    frame = games().assign(day=games()["time"])
    file = load_judgements(as_table(frame), Columns(time="day", until="2024-02-01"))
    assert len(file.table) == (frame["day"] <= "2024-02-01").sum()
    with pytest.raises(ValueError, match=r"until.*-p time"):
        load_judgements(as_table(games()), Columns(time="", until="2024"))


@pytest.mark.parametrize(
    ("frame", "columns", "named"),
    [
        (games(), {"first": "guest"}, "'guest'.*first, second, time, outcome"),
        (games().rename(columns={"time": "day"}), {}, "-p time day.*--judgements"),
        (games(20), {}, "20 matches.* 30"),
        (games().assign(time="2024-01-01"), {}, "1 time"),
        (games().assign(outcome="tie"), {}, "ties"),
        (games().assign(outcome=1), {}, "first won"),
        (games().assign(first="Ann", second="Ann"), {}, "'Ann' in line 2"),
        (games(), {"pair": "Ann - Zoe"}, "'Ann - Zoe'"),
        (games().assign(first=None), {}, "'' in line 2.*a name"),
    ],
)
def test_what_is_wrong_with_matches_is_one_line(frame, columns, named):
    with pytest.raises(ValueError, match=named) as error:
        matches_of(frame, **columns)
    assert "\n" not in str(error.value)


def test_two_columns_of_one_name_are_rejected():
    frame = pd.concat([games(), games()["outcome"]], axis=1)
    with pytest.raises(ValueError, match="2 columns called 'outcome'"):
        matches_of(frame)
    twice = pd.concat(
        [games(), games()["time"].rename("x"), games()["time"].rename("x")], axis=1
    )
    assert len(matches_of(twice).played) == 60  # no parameter names this column


def test_rows_without_an_answer_and_unused_columns_are_noted():
    frame = games().assign(judge="eve", id=range(60))
    frame.loc[[5, 9], "outcome"] = None
    file = judgements_of(frame)
    assert file.omitted == ["2 rows without an answer in column 'outcome'"]
    notes = " ".join(file.notes)
    assert "lines 7, 11" in notes
    assert "Columns not used: time, id." in notes
    assert "Columns not used" not in " ".join(matches_of(games()).notes)


def test_names_of_judges_are_checked():
    file = judgements_of(
        games().assign(judge=["Anna"] * 30 + ["Bernd"] * 29 + ["anna"])
    )
    assert file.doubtful_judges == {"anna": "Anna"}
    assert file.doubtful == {}


def test_all_missing_columns_are_named_with_one_command():
    frame = games().rename(columns={"first": "player 1", "outcome": "won"})
    match = "'first', 'outcome' not found.*player 1, second, time, won.*"
    command = "-p first COLUMN -p second second -p time time -p outcome COLUMN"
    with pytest.raises(ValueError, match=match + command):
        matches_of(frame)
    with pytest.raises(ValueError, match="--judgements -p first COLUMN -p second"):
        judgements_of(frame)
    day = frame.rename(columns={"time": "day of play"})
    with pytest.raises(ValueError, match="-p time 'day of play'"):
        matches_of(day)


def test_a_file_of_races_has_another_report():
    rows = [
        (f"r{k}", name, place) for k in range(6) for place, name in enumerate("abc", 1)
    ]
    frame = pd.DataFrame(rows, columns=["race", "driver", "place"]).assign(day="2024")
    match = "looks like races.*'race', 'driver', 'place'.*--races, without -p time"
    with pytest.raises(ValueError, match=match):
        matches_of(frame, time="day")
    laps = frame.drop(columns="place").assign(lap="0:45.1")
    with pytest.raises(ValueError, match=r"a column with places.*'lap': pass --races"):
        matches_of(laps, time="day")


def test_up_to_ten_invalid_rows_are_listed_with_their_values():
    frame = pd.concat([games(60)] * 20, ignore_index=True)
    frame["outcome"] = frame["outcome"].astype("string")
    frame.loc[:11, "outcome"] = [f"x{k}" for k in range(12)]
    notes = " ".join(matches_of(frame).notes)
    assert "12 rows with an invalid value in column 'outcome'" in notes
    assert "'x0' in line 2, 'x1' in line 3" in notes
    assert "'x9' in line 11 and 2 more" in notes
