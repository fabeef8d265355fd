"""Races from a user's file."""

import numpy as np
import pandas as pd
import pytest

from preflearn_book.reading.columns import UserTable
from preflearn_book.reading.comparisons import guess_kind
from preflearn_book.reading.races import find_race_columns, load_races


def as_table(frame):
    texts = frame.astype("string").fillna("")
    texts.index = np.arange(2, len(frame) + 2)
    return UserTable(texts, "own.csv")


def races(last="4", n=6):
    """Races of four drivers in random order, with a text as the last place."""
    rng = np.random.default_rng(0)
    rows = [
        (f"r{k}", driver, place)
        for k in range(n)
        for place, driver in zip(
            ["1", "2", "3", last], rng.permutation(list("abcd")), strict=True
        )
    ]
    return pd.DataFrame(rows, columns=["race", "driver", "place"])


def read(rows, **options):
    """Read these rows after five complete races."""
    frame = pd.concat([races(n=5), pd.DataFrame(rows, columns=races().columns)])
    return load_races(as_table(frame), **options)


def notes_of(file):
    return " ".join(file.notes)


def test_places_are_read_in_order_with_ties_and_retirements():
    rows = [("x", "a", "10"), ("x", "b", "9"), ("x", "c", "9")]
    file = read([*rows, ("x", "d", "DNF"), ("x", "e", "Engine")])
    assert file.events == ["r0", "r1", "r2", "r3", "r4", "x"]
    assert file.rankings[-1] == [("b", "c"), ("a",)]
    assert file.unranked[-1] == ["d", "e"]
    assert file.retired == {"DNF": 1, "Engine": 1}
    assert "share a place" in notes_of(file)
    assert "DNF (1), Engine (1)" in notes_of(file)
    assert "-p retired leave_out" in file.message("last")


def test_retired_participants_are_left_out_if_asked_for():
    rows = [("x", "a", "1"), ("x", "b", "2"), ("x", "d", "DQ"), ("y", "a", "1")]
    file = read([*rows, ("y", "b", "DNF")], retired="leave_out")
    assert file.events == ["r0", "r1", "r2", "r3", "r4", "x"]  # y has one participant
    assert file.unranked[-1] == []
    assert "'DQ'" in file.message("leave_out")
    with pytest.raises(ValueError, match=r"retired.*'first'.*'last'.*'leave_out'"):
        read(rows, retired="first")


@pytest.mark.parametrize("text", ["3rd", "T3", "=3", "3.", "P3", "3,0", " 3 "])
def test_places_with_marks_are_numbers(text):
    file = read([("x", "a", "1st"), ("x", "b", text), ("x", "c", "10")])
    assert file.rankings[-1] == [("a",), ("b",), ("c",)]


def test_an_event_without_places_is_to_come():
    rows = [("x", "a", ""), ("x", "new", ""), ("y", "a", "-"), ("y", "b", "")]
    file = read(rows)
    assert file.to_come == {"x": ["a", "new"], "y": ["a", "b"]}
    assert len(file.events) == 5
    assert file.notes == []
    assert "single participant**: z" in notes_of(read([*rows, ("z", "a", "")]))


def test_who_did_not_start_or_has_no_place_is_left_out_with_a_note():
    rows = [("x", "a", "1"), ("x", "b", "2"), ("x", "c", "dns"), ("x", "d", "")]
    file = read([*rows, ("y", "a", "DNF"), ("y", "b", "")])
    assert file.rankings[-1] == [("a",), ("b",)]
    assert file.unranked[-1] == []
    assert file.to_come == {}
    notes = notes_of(file)
    for words in ("did not start", "c in x", "d in x", "a in y", "b in y"):
        assert words in notes


def test_a_repeated_participant_is_left_out_or_an_error():
    again = pd.DataFrame([("r0", "a", "5")], columns=races().columns)
    file = load_races(as_table(pd.concat([races(n=50), again])))
    assert sum("a" in place for place in file.rankings[0]) <= 1
    assert "each participant once per event" in notes_of(file)
    with pytest.raises(ValueError, match="'a' in line 26, column 'driver'"):
        load_races(as_table(pd.concat([races(), again])), "race", "driver", "place")


def test_names_of_events_keep_their_order_and_markdown_is_escaped():
    frame = races("DNF").replace({"r1": "R_1", "a": "<b>", "DNF": "$x$"})
    file = load_races(as_table(frame.sort_values("driver", kind="stable")))
    assert set(file.events) == {"r0", "R_1", "r2", "r3", "r4", "r5"}
    assert r"\$x\$ (6)" in notes_of(file)


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        (races(), {"place": "rank"}, "'rank' not found"),
        (races().rename(columns={"place": "p"}), {}, "race, driver, p.*-p event"),
        (races(n=4), {}, "4 events.* 5"),
        (races("0"), {"event": "race"}, "'0' in line 5, column 'place'"),
        (races().assign(place="1"), {"event": "race"}, "0 events|not found"),
    ],
)
def test_what_is_wrong_with_a_file_of_races_is_named(frame, options, words):
    with pytest.raises(ValueError, match=words):
        load_races(as_table(frame), **options)


def test_columns_are_found_among_others():
    frame = races("DNF", n=20)
    frame.insert(1, "grid", frame.groupby("race").cumcount() + 1)
    frame.insert(0, "season", "2024")
    frame["time"] = [f"1:{k:02}" for k in range(len(frame))]
    table = as_table(frame.rename(columns={"place": "Finishing Position"}))
    assert find_race_columns(table) == ("race", "driver", "Finishing Position")
    assert find_race_columns(table, player="grid")[1] == "grid"


@pytest.mark.parametrize(
    ("frame", "given", "kind"),
    [
        (races(), [], "races"),
        (races("DNF").assign(date="2024-01-01"), [], "races"),
        (races().assign(first="a", second="b"), [], "judgements"),
        (races().drop(columns="driver"), [], "judgements"),
        (races(), ["time"], "matches"),
        (races().drop(columns="driver"), ["retired"], "races"),
    ],
)
def test_races_are_guessed_from_columns_and_parameters(frame, given, kind):
    assert guess_kind(as_table(frame), dict.fromkeys(given, "x")) == kind


def laps(n=6):
    """Races with the time of the best lap of each driver."""
    frame = races(n=n)
    return frame.assign(lap=[f"0:4{k % 10}.5" for k in range(len(frame))])


def test_columns_that_no_parameter_names_are_noted():
    notes = notes_of(load_races(as_table(laps().assign(day="2024-01-01"))))
    assert "Columns not used: lap, day." in notes


def test_times_are_not_places():
    match = "'lap' in own.csv contains times, not places.*-p place place"
    with pytest.raises(ValueError, match=match):
        load_races(as_table(laps()), place="lap")
    frame = laps().drop(columns="place")
    with pytest.raises(ValueError, match="needs places, and 'lap' contains times"):
        load_races(as_table(frame))


def test_a_named_place_needs_no_other_name():
    points = races().assign(points=races()["place"].map(lambda x: 10 + int(x)))
    assert find_race_columns(as_table(points), place="points") == (
        "race",
        "driver",
        "points",
    )
