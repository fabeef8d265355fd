"""Outcomes of comparisons in a user's file."""

import numpy as np
import pandas as pd
import pytest

from preflearn_book.reading.columns import UserTable
from preflearn_book.reading.outcomes import Sides, read_outcomes


def read(values, first=("Ann", "Bob"), second=("Bob", "Cy"), titles=("home", "away")):
    """Return the outcomes of rows that repeat the given sides, and the notes."""
    n = len(values)
    frame = pd.DataFrame(
        {
            titles[0]: np.resize(first, n),
            titles[1]: np.resize(second, n),
            "x": ["" if value is None else str(value) for value in values],
        },
        dtype="string",
        index=range(2, n + 2),
    )
    table = UserTable(frame, "own.csv")
    sides = Sides(titles, frame[titles[0]], frame[titles[1]])
    outcomes = read_outcomes(table, "x", sides)
    return outcomes, " ".join(table.notes)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1, 0, 0, 1], [1, -1, -1, 1]),  # won (1) or lost (0)
        ([1, 0.5, 0, None], [1, 0, -1, None]),
        (["1", "0,5", "0", "½"], [1, 0, -1, 0]),
        ([3, 0, -2, None], [1, 0, -1, None]),
        (["H", "d", "A", None], [1, 0, -1, None]),
        (["Ann", "Bob", "tie (both bad)", ""], [1, 1, 0, None]),  # names of the winners
        (["Home", "away", "tie", "home"], [1, -1, 0, 1]),  # column names
        (["1-0", "0-1", "1/2-1/2", None], [1, -1, 0, None]),
        (["1–0", "½-½", "0-1F", "*"], [1, 0, -1, None]),
        (["3-0", "1 : 1", "10–2 (4–1)", "?"], [1, 0, 1, None]),
        (["3-2 OT", "2-3 SO", "1-1", "0-0"], [1, -1, 0, 0]),
        (["True", "False", "No preference", "n/a"], [1, -1, 0, None]),
        (["T", "F", "F", "T"], [1, -1, -1, 1]),
        (["W", "L", "T", "W"], [1, -1, 0, 1]),
        # A and B are the sides, and A does not mean "away"
        (["A", "b", "tie", "B"], [1, -1, 0, -1]),
        (["1", "X", "2", "2"], [1, 0, -1, -1]),
        (["+/-", "-/+", "1/2-1/2", "1-0"], [1, -1, 0, 1]),
    ],
)
def test_outcomes_are_read_as_they_are_meant(column, expected):
    outcomes, _ = read(column)
    np.testing.assert_array_equal(outcomes.sign, np.array(expected, dtype=float))


@pytest.mark.parametrize(
    ("first", "second", "winners", "expected"),
    [
        (["0", "1", "2"], ["1", "2", "0"], ["1", "1", "0"], [-1, 1, -1]),
        (["31", "36"], ["34", "31"], ["34", "31.0"], [-1, -1]),
        (["Home", "Draw"], ["Draw", "Win"], ["Draw", "Win"], [-1, -1]),
        (["José", "Bob"], ["Bob", "José"], ["Jose\u0301", "BOB "], [1, 1]),
        (["None", "Bob"], ["Bob", "None"], ["None", "tie"], [1, 0]),
    ],
)
def test_a_name_of_its_own_row_is_the_winner(first, second, winners, expected):
    outcomes, _ = read(winners * 4, first, second)
    assert outcomes.sign.tolist() == expected * 4


def test_numbers_that_are_sometimes_a_name_are_numbers():
    rng = np.random.default_rng(3)
    index = np.array([rng.choice(4, 2, replace=False) for _ in range(200)]).astype(str)
    outcomes, notes = read(["1", "0"] * 100, index[:, 0], index[:, 1])
    assert outcomes.sign.tolist() == [1, -1] * 100
    assert "also names" in notes


def test_names_that_are_numbers_are_named_as_such():
    _, notes = read(["1", "1", "0"], ["0", "1", "2"], ["1", "2", "0"])
    assert "read as names of winners" in notes


def test_letters_that_are_also_names_are_read_by_the_whole_column():
    outcomes, notes = read(
        ["H", "A", "D", "A"] * 5, ["D", "C", "A", "B"], ["F", "A", "E", "D"]
    )
    assert outcomes.sign.tolist() == [1, -1, 0, -1] * 5
    assert "A are also names" in notes


def test_a_column_with_two_readings_is_rejected():
    with pytest.raises(ValueError, match="rename the players"):
        read(["A", "H", "A"], ["A", "H", "A"], ["H", "A", "H"])


def test_points_keep_their_margin():
    outcomes, _ = read(["3-0", "1-2", "", "4-4"])
    np.testing.assert_array_equal(outcomes.margin, [3, -1, np.nan, 0])


def read_columns(frame, outcome, counts="auto"):
    frame = pd.DataFrame({"a": ["Ann", "Bob"], "b": ["Bob", "Cy"], **frame}).astype(
        "string"
    )
    table = UserTable(frame, "own.csv")
    sides = Sides(("a", "b"), frame["a"], frame["b"])
    return read_outcomes(table, outcome, sides, counts), " ".join(table.notes)


@pytest.mark.parametrize(
    ("titles", "counts", "is_count"),
    [
        (("home_wins", "away_wins"), "auto", True),
        (("home.wins", "away.wins"), "auto", True),
        (("winsHome", "winsAway"), "auto", True),
        (("home_goals", "away_goals"), "auto", False),
        (("winnings", "other_winnings"), "auto", False),
        (("home_goals", "away_goals"), "yes", True),
        (("home_wins", "away_wins"), "no", False),
    ],
)
def test_two_columns_are_counts_or_points(titles, counts, is_count):
    frame = {titles[0]: ["6", "0"], titles[1]: ["1", "2"]}
    outcomes, notes = read_columns(frame, " - ".join(titles), counts)
    assert outcomes.sign.tolist() == [1, -1]
    assert (outcomes.counts is not None) == is_count
    if is_count:
        assert outcomes.counts.to_numpy().tolist() == [[6, 1, 0], [0, 2, 0]]
        assert "9 comparisons" in notes
    else:
        assert outcomes.margin.tolist() == [5, -2]
        assert "one comparison" in notes


def test_three_columns_count_ties():
    frame = {"w": ["6", "0"], "l": ["1", "2"], "t": ["3", ""]}
    outcomes, _ = read_columns(frame, "w - l - t")
    assert outcomes.counts["tie"].tolist() == [3, 0]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (["won by Dee", "Ann", "Bob"], "'won by Dee' in line 2.*the"),
        (["5", "3", "2"], "'5' in line 2.*ONE - OTHER"),
        (["H", "A", "later"], "'later' in line 4"),
        # reading must not take exponential time
        (["3-0 " + "a" * 40 + "!"] * 3, "line 2"),
    ],
)
def test_outcomes_that_cannot_be_read_are_an_error(values, named):
    with pytest.raises(ValueError, match=named):
        read(values)


def test_a_word_of_many_rows_may_mean_a_tie():
    match = (
        r"'unentschieden' in line 3.*replace it by tie \(1 more row has this value; 1"
    )
    with pytest.raises(ValueError, match=match):
        read(
            ["Ann", "unentschieden", "Bob", "unentschieden", "Ann", "both", "Bob", "Cy"]
        )
    with pytest.raises(ValueError, match="If 'remis' means a tie"):
        read(["H", "A", "remis"] * 3)


@pytest.mark.parametrize(
    "text", ["11. Sep", "11-Sep", "Nov 07", "7. Mär", "2025-11-07", "07.11.2025"]
)
def test_a_score_that_a_spreadsheet_made_a_date_is_named(text):
    with pytest.raises(ValueError, match=rf"'{text}' in line 3.*into a date.*to text"):
        read(["11-9", text] * 5)
    _, notes = read(["11-9", "9-11"] * 100 + [text])
    assert f"'{text}' in line 202" in notes
    assert "into a date" in notes


def test_a_note_on_a_wrong_value_does_not_list_all_words():
    _, notes = read(["H", "A"] * 100 + ["w.o."])
    assert "column 'x'**: 'w.o.' in line 202" in notes
    assert "drawn" not in notes
    with pytest.raises(ValueError, match="drawn"):
        read(["H", "A", "w.o."])
