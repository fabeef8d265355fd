"""Names in a user's file."""

import pandas as pd
import pytest

from preflearn_book.reading.columns import UserTable
from preflearn_book.reading.names import note_similar_names, read_names, read_pair


def notes_on(counts):
    table = UserTable(pd.DataFrame(), "own.csv")
    note_similar_names(table, pd.Series(counts))
    return " ".join(table.notes)


@pytest.mark.parametrize(
    ("rare", "noted"),
    [
        ("Red Lyon", True),
        ("red  lion", True),
        ("Red Lino", True),
        ("Rd Lion", True),
        ("Red Bull", False),
        ("LION, RÉDE", True),
        ("Team 1", False),  # resembles "Team 2", but only the number differs
        ("Ale", False),  # resembles "Pale", but is too short
    ],
)
def test_a_rare_name_that_resembles_a_frequent_one_is_noted(rare, noted):
    counts = {"Red Lion": 57, "Team 2": 30, "Pale": 20, "Red Lima": 4, rare: 2}
    assert (rare in notes_on(counts)) == noted


@pytest.mark.parametrize("other", ["Jose\u0301", "josé", "JOSÉ"])
def test_names_that_differ_in_form_only_are_noted_at_any_frequency(other):
    assert "43 rows" in notes_on({"José": 50, other: 43, "Bob": 60})
    assert notes_on({"José": 50, "Bob": 43}) == ""


@pytest.mark.parametrize("name", ["one\ntwo", "x" * 300])
def test_a_name_of_several_lines_or_hundreds_of_letters_is_rejected(name):
    frame = pd.DataFrame({"who": ["Ann"] * 500 + [name]}, index=range(2, 503))
    with pytest.raises(ValueError, match=r"line 502.*quotation mark"):
        read_names(UserTable(frame, "own.csv"), "who", "first")


def test_names_of_judges_are_called_so_and_rows_are_counted():
    table = UserTable(pd.DataFrame(), "own.csv")
    counts = pd.Series({"Anna": 40, "anna": 1, "Bernd": 30, "Berndt": 1})
    doubtful = note_similar_names(table, counts, "names of judges")
    assert doubtful == {"anna": "Anna", "Berndt": "Bernd"}
    notes = " ".join(table.notes)
    assert "anna (1 row)" in notes
    assert "Names of judges that differ" in notes
    assert "Rare names of judges" in notes


def test_a_pair_may_have_a_hyphen_in_its_names():
    assert read_pair("A - B - C", {"A - B", "C"}) == ("A - B", "C")
    with pytest.raises(ValueError, match="'A - Z'"):
        read_pair("A - Z", {"A", "B"})


def test_doubtful_names_are_returned_with_the_frequent_name():
    table = UserTable(pd.DataFrame(), "own.csv")
    counts = pd.Series({"Red Lion": 57, "Blue Boar": 40, "blue boar": 9, "Red Lyon": 1})
    doubtful = note_similar_names(table, counts)
    assert doubtful == {"blue boar": "Blue Boar", "Red Lyon": "Red Lion"}
