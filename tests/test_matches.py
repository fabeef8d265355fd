import pickle
import re
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import TimeSeriesSplit

from preflearn.matches import Matches, OutcomeWarning, TimeWarning, joined


def frame(**changes):
    columns = {
        "first": ["Bob", "Ann", "Cy"],
        "second": ["Ann", "Cy", "Ann"],
        "time": [0.0, 1.5, 1.5],
        "outcome": [1, 0, -1],
        "home": [True, False, True],
    }
    return pd.DataFrame(columns | changes)


@pytest.mark.parametrize(
    "names", [{}, {"first": "white", "second": "black", "time": "month", "outcome": "s"}]
)
def test_rows_are_first_minus_second(names):
    matches, y = Matches.from_frame(frame().rename(columns=names), **names)
    assert matches.features == ("Ann", "Bob", "Cy")
    np.testing.assert_array_equal(matches.design.toarray(), [[-1, 1, 0], [1, 0, -1], [-1, 0, 1]])
    np.testing.assert_array_equal(matches.time, [0, 1.5, 1.5])
    np.testing.assert_array_equal(y, [1, 0, -1])
    np.testing.assert_array_equal(matches.players(), [[1, 0], [0, 2], [2, 0]])
    assert (matches.shape, len(matches)) == ((3, 3), 3)


@pytest.mark.parametrize(
    ("home", "column"), [([True, False, True], [1, 0, 1]), ([0.5, -1.0, 0.0], [0.5, -1, 0])]
)
def test_advantage_is_a_feature(home, column):
    matches, _ = Matches.from_frame(frame(home=home), advantage="home")
    assert matches.features == ("Ann", "Bob", "Cy", "advantage")
    np.testing.assert_array_equal(matches.design.toarray()[:, 3], column)
    np.testing.assert_array_equal(matches.players(), [[1, 0], [0, 2], [2, 0]])


def test_interactions_are_antisymmetric_features_of_two_players():
    """Section 4.2.3 of P4: d = s_i - s_j + s_ij, with s_ji = -s_ij."""
    matches, _ = Matches.from_frame(frame(), advantage="home", interactions=True)
    assert matches.features == ("Ann", "Bob", "Cy", "advantage", ("Ann", "Bob"), ("Ann", "Cy"))
    np.testing.assert_array_equal(matches.design.toarray()[:, 4:], [[-1, 0], [0, 1], [0, -1]])
    np.testing.assert_array_equal(matches.players(), [[1, 0], [0, 2], [2, 0]])


def test_dates_become_days_since_1970():
    days = pd.to_datetime(["1969-12-31", "1970-01-01 12:00", "2000-01-01"], format="ISO8601")
    matches, _ = Matches.from_frame(frame(time=days))
    np.testing.assert_array_equal(matches.time, [-1, 0.5, 10957])
    assert Matches.from_frame(frame(time=days.as_unit("s")))[0].time.tolist() == matches.time.tolist()
    zoned = Matches.from_frame(frame(time=days.tz_localize("UTC").tz_convert("Asia/Tokyo")))[0]
    np.testing.assert_array_equal(zoned.time, matches.time)


def test_outcomes_may_be_points():
    _, y = Matches.from_frame(frame(outcome=[12.0, -3.0, 0.5]))
    np.testing.assert_array_equal(y, [12, -3, 0.5])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": ["Bob", None, "Cy"]}, r"column 'first'\[1\] is \S+; expected a value in each"),
        ({"second": ["Ann", "Cy", np.nan]}, r"column 'second'\[2\] is \S+; expected a value in each"),
        ({"first": ["Bob", "Cy", "Cy"]}, "'Cy' meets himself in row 1"),
        ({"time": [0.0, 2.0, 1.0]}, r"time\[2\] is 1\.0; expected at least 2, the one before"),
        ({"time": [0.0, np.nan, 1.0]}, r"column 'time'\[1\] is \S+; expected a value in each"),
        ({"time": [0.0, 1.0, np.inf]}, r"column 'time'\[2\] is inf; expected finite"),
        ({"time": ["a", "b", "c"]}, r"column 'time'\[0\] is 'a'; expected numbers, or dates"),
        (
            {"time": [pd.Timestamp(0), pd.NaT, pd.NaT]},
            r"column 'time'\[1\] is \S+; expected a value in each",
        ),
        ({"outcome": [1, np.nan, 0]}, r"column 'outcome'\[1\] is \S+; expected a value in each"),
        ({"outcome": [True, False, True]}, "column 'outcome' has dtype bool; expected numbers"),
        (
            {"first": [1.0, 2.0, 3.0], "second": [2, 3, 1]},
            r"in row 0 of column 'second' is 2; expected .* 1.0 in row 0 of column 'first'.*; astype\(int\)",
        ),
        ({"home": [1.0, np.inf, 0.0]}, r"column 'home'\[1\] is inf; expected finite"),
        ({"first": ["Bob", "Ann", "advantage"]}, "a player's name is 'advantage'; expected another"),
    ],
)
def test_bad_frames_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        Matches.from_frame(frame(**changes), advantage="home")


def test_missing_columns_and_rows_are_named():
    with pytest.raises(ValueError, match=r"expected also \['won', 'ground'\]"):
        Matches.from_frame(frame(), outcome="won", advantage="ground")
    with pytest.raises(ValueError, match="the number of rows of the frame is 0; expected at least one"):
        Matches.from_frame(frame()[:0])


@pytest.mark.parametrize(
    ("design", "time", "features", "message"),
    [
        ([1, -1], [0], ["a", "b"], r"design has shape \(2,\)"),
        (np.empty((0, 2)), [], ["a", "b"], r"the shape of design is \(0, 2\)"),
        ([[1, np.nan]], [0], ["a", "b"], r"design\[0, 1\] is nan; expected finite numbers"),
        (
            [[1, -1], [0, 0]],
            [0, 1],
            ["a", "b"],
            r"entries of design\[1\] is 0; expected two that differ, first",
        ),
        ([[1, -1]], [0], ["a"], "there are 1 features; expected 2"),
        ([[1, -1]], [0], ["a", "a"], "features holds 'a' more than once"),
        ([[1, -1]], [0, 1], ["a", "b"], r"time has shape \(2,\); expected \(1,\)"),
        ([[1, -1], [1, -1]], [1, 0], ["a", "b"], r"time\[1\] is 0\.0; expected at least 1, the one before"),
        ([[1, -1]], [np.nan], ["a", "b"], r"time\[0\] is nan; expected finite numbers"),
    ],
)
def test_bad_input_is_named(design, time, features, message):
    with pytest.raises(ValueError, match=message):
        Matches(design, time, features)


def damaged(kind, **changes):
    """A sparse design of 4 matches and 3 features, some of whose numbers are overwritten."""
    design = kind(np.tile([[1.0, -1, 0], [0, 1, -1]], (2, 1)))
    for name, (place, value) in changes.items():
        getattr(design, name)[place] = value
    return design


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.bsr_array])
@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": (1, 400_000)},
        {"indptr": (1, -5)},
        {"indptr": (-1, 400_000)},
        {"indptr": ([1, -1], [400_000, -1])},  # which scipy's own check overlooks
        {"indptr": ([1, -1], [400_000, 0])},
        {"indptr": (0, 1)},
        {"indices": (0, 1_000_000)},
        {"indices": (0, -1)},
    ],
    ids=str,
)
def test_a_damaged_design_is_refused_before_anything_reads_it(kind, changes):
    with pytest.raises(ValueError, match=r"design is no \w{3} array: "):
        Matches(damaged(kind, **changes), [0, 1, 2, 3], ["a", "b", "c"])


def test_coordinates_out_of_range_are_refused():
    design = damaged(sparse.coo_array)
    design.coords[1][0] = 7
    with pytest.raises(ValueError, match="design is no coo array: "):
        Matches(design, [0, 1, 2, 3], ["a", "b", "c"])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.bsr_array, sparse.coo_array])
def test_a_sparse_design_of_any_kind_is_the_dense_one(kind):
    design = damaged(kind)
    found = Matches(design, [0, 1, 2, 3], ["a", "b", "c"]).design
    np.testing.assert_array_equal(found.toarray(), design.toarray())
    assert found.format == "csr"
    assert not np.shares_memory(found.data, design.data)


def test_names_of_one_kind_are_kept():
    for names in ([1, 2], [1.0, 2.0], ["1", "2"]):
        pair = pd.DataFrame({"first": names, "second": names[::-1], "time": [0, 1], "outcome": [1, 1]})
        assert len(Matches.from_frame(pair)[0].features) == 2


@pytest.mark.parametrize("time", [[20010101, 20010131, 20010201], [20010101.0, 20010101.0, 21991231.0]])
def test_numbers_that_read_as_dates_are_warned_of(time):
    with pytest.warns(
        UserWarning, match=r"column 'time' read as dates \(20010101\).*format='%Y%m%d'"
    ) as found:
        matches, _ = Matches.from_frame(frame(time=time))
    assert found[0].filename == __file__
    np.testing.assert_array_equal(matches.time, time)


@pytest.mark.parametrize(
    "time",
    [
        [20010101.5, 20010102, 20010103],
        [20010101, 20010102, 20010199],
        [20011301, 20011302, 20011303],
        [15991231, 15991231, 15991231],
        [22010101, 22010101, 22010101],
        [0, 1, 2],
    ],
)
def test_other_numbers_are_times_without_a_word(time):
    with warnings.catch_warnings(action="error"):
        Matches.from_frame(frame(time=time))


def test_a_sparse_design_is_copied_and_cleaned():
    """Entries that are repeated add up; those of a player on both sides cancel."""
    rows, columns = [0, 0, 0, 0], [0, 1, 2, 2]
    design = sparse.coo_array(([1.0, -1.0, 1.0, -1.0], (rows, columns)), shape=(1, 3))
    matches = Matches(design, [0], ["a", "b", "c"])
    assert matches.design.nnz == 2
    np.testing.assert_array_equal(matches.players(), [[0, 1]])


@pytest.mark.parametrize("row", [[1, 1, -1, -1], [2, -1, 0, 0], [1, 0, 0, 0], [1, -1, 0.5, 0]])
def test_line_ups_have_no_two_players(row):
    matches = Matches([[1, -1, 0, 0], row], [0, 0], ["a", "b", "c", "d"])
    with pytest.raises(ValueError, match=r"match 1 is .* expected one \+1 and one -1"):
        matches.players()


def test_selections_keep_the_features():
    matches, _ = Matches.from_frame(frame())
    dense = matches.design.toarray()
    for key in (slice(1, None), np.array([False, True, True]), [1, 2], np.array([1, 2]), ([1, 2], ...)):
        np.testing.assert_array_equal(matches[key].design.toarray(), dense[1:])
        np.testing.assert_array_equal(matches[key].time, [1.5, 1.5])
        assert matches[key].features == matches.features
    np.testing.assert_array_equal(matches[-1].design.toarray(), dense[2:])
    assert len(matches[[]]) == len(matches[3:]) == 0
    again = pickle.loads(pickle.dumps(matches))
    np.testing.assert_array_equal(again.design.toarray(), dense)
    assert again.features == matches.features
    assert repr(matches[[]]) == "Matches(0 matches, 3 features)"


def test_a_shuffled_selection_is_refused():
    matches, _ = Matches.from_frame(frame())
    with pytest.raises(ValueError, match=r"time\[1\] is 0\.0; expected at least 1\.5"):
        matches[[1, 0]]
    with pytest.raises(ValueError, match="first axis"):
        matches[[0], [1]]


def test_matches_can_be_split_by_scikit_learn():
    matches, _ = Matches.from_frame(frame())
    sizes = [(len(matches[train]), len(matches[test])) for train, test in TimeSeriesSplit(2).split(matches)]
    assert sizes == [(1, 1), (2, 1)]


@given(st.lists(st.permutations(range(5)), min_size=1, max_size=20), st.integers(0, 10**6))
def test_design_gives_differences_of_scores(order, seed):
    index = np.array(order)[:, :2]
    names = np.array(["e", "b", "d", "a", "c"])
    matches, _ = Matches.from_frame(
        pd.DataFrame({"first": names[index[:, 0]], "second": names[index[:, 1]], "time": 0, "outcome": 1})
    )
    scores = dict(zip(names, np.random.default_rng(seed).standard_normal(5), strict=True))
    expected = [scores[names[i]] - scores[names[j]] for i, j in index]
    by_feature = np.array([scores[name] for name in matches.features])
    np.testing.assert_allclose(matches.design @ by_feature, expected, atol=1e-12)
    first, second = matches.players().T
    np.testing.assert_allclose(by_feature[first] - by_feature[second], expected, atol=1e-12)


# ---- Line-ups, and what else a cell may hold


def test_a_list_is_a_line_up_and_no_name():
    """It was read as one player, called "['Ann', 'Bob']"."""
    first = [["Ann", "Bob"], ("Cy",), {"Ann": 1.0, "Dee": 0.25}]
    second = ["Cy", {"Dee": 2}, ["Bob", "Cy"]]
    matches, _ = Matches.from_frame(frame(first=first, second=second), advantage="home")
    assert matches.features == ("Ann", "Bob", "Cy", "Dee", "advantage")
    expected = [[1, 1, -1, 0, 1], [0, 0, 1, -2, 0], [1, -1, -1, 0.25, 1]]
    np.testing.assert_array_equal(matches.design.toarray(), expected)


def test_line_ups_of_one_are_players():
    matches, _ = Matches.from_frame(frame(first=[["Bob"], ["Ann"], ["Cy"]]), interactions=True)
    plain, _ = Matches.from_frame(frame(), interactions=True)
    assert matches.features == plain.features
    np.testing.assert_array_equal(matches.design.toarray(), plain.design.toarray())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": [["Bob", "Ann"], "Ann", "Cy"]}, "'Ann' meets himself in row 0; expected two different"),
        ({"first": [["Bob", "Bob"], "Ann", "Cy"]}, "'Bob' meets himself in row 0"),
        ({"first": ["Bob", [], "Cy"]}, r"the line-up in row 1 of column 'first' is \[\]; expected a name"),
        ({"first": ["Bob", {"Ann": -1.0}, "Cy"]}, r"a weight in row 1 of .* is -1.0; expected a positive"),
        ({"first": ["Bob", ["Ann", None], "Cy"]}, r"the name in row 1 of .* is None; expected a text or a n"),
        ({"first": ["Bob", [["Ann"]], "Cy"]}, r"the name in row 1 of .* is \['Ann'\]; expected a text"),
        ({"first": ["Bob", {"Ann", "Dee"}, "Cy"]}, r"the name in row 1 of column 'first' is {.*; expected a"),
        (
            {"first": [[3], [3.0], "Cy"]},
            r"row 1 of column 'first' is 3.0; expected names of one kind, as 3 in",
        ),
        (
            {"first": [["Bob"], [np.nan], "Cy"]},
            r"row 1 of column 'first' is nan; expected a text",
        ),
        ({"first": [[1], [True], "Cy"]}, r"the name in row 1 of column 'first' is True; expected a text"),
        ({"first": ["Bob", "Ann", "advantage"]}, "a player's name is 'advantage'; expected another"),
        ({"first": [b"Bob", "Ann", "Cy"]}, r"the name in row 0 of column 'first' is b'Bob'; expected a text"),
        ({"second": [True, False, True]}, "the name in row 0 of column 'second' is True; expected a text"),
        ({"second": pd.to_datetime(["2020-01-01"] * 3)}, r"the name in row 0 of .* is Timestamp"),
    ],
)
def test_what_is_no_name_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Matches.from_frame(frame(**changes))


def test_line_ups_have_no_interactions():
    with pytest.raises(ValueError, match="interactions is True; expected False where there are line-ups"):
        Matches.from_frame(frame(first=[["Bob", "Dee"], "Ann", "Cy"]), interactions=True)


# ---- Times and outcomes as they come


@pytest.mark.parametrize(
    "time",
    [
        ["1969-12-31", "1970-01-01 12:00", "2000-01-01T00:00Z"],
        [pd.Timestamp(day).to_pydatetime() for day in ("1969-12-31", "1970-01-01 12:00", "2000-01-01")],
        pd.Series(["1969-12-31", "1970-01-01 12:00", "2000-01-01"], dtype=object),
    ],
)
def test_dates_may_be_texts(time):
    np.testing.assert_array_equal(Matches.from_frame(frame(time=time))[0].time, [-1, 0.5, 10957])


@pytest.mark.parametrize("time", [["03/04/2020"] * 3, ["2020"] * 3, ["20200101"] * 3, ["2020-02-31"] * 3])
def test_texts_of_two_meanings_are_refused(time):
    with pytest.raises(
        ValueError, match=r"column 'time'.*expected numbers, or dates: ISO texts such as 2024"
    ):
        Matches.from_frame(frame(time=time))


def as_told(told, time):
    """The days that come of doing what a message says."""
    how = str(told[0].message).rpartition("expected dates: ")[2]
    with warnings.catch_warnings(action="error"):
        dates = eval(how, {"pandas": pd, "time": pd.Series(time)})
        return Matches.from_frame(frame(time=dates))[0].time


@pytest.mark.parametrize("time", [[202001, 202002, 202012], [20200101.0, 20200201.0, 20201201.0]])
def test_what_reads_as_dates_is_read_as_it_is_told(time):
    """Months were not seen, and of whole numbers the advice was one that pandas warns of."""
    with pytest.warns(TimeWarning, match="read as dates .*format=") as told:
        Matches.from_frame(frame(time=time))
    np.testing.assert_array_equal(as_told(told, time), [18262, 18293, 18597])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_since_1970_in_another_unit_are_warned_of(unit):
    """And what the message says makes days of them."""
    days = pd.to_datetime(["2020-01-01", "2020-06-01", "2021-01-01"])
    time = (days - pd.Timestamp(0)) // pd.Timedelta(1, unit)
    with pytest.warns(TimeWarning, match=rf"read as dates .*unit='{unit}'\)") as told:
        Matches.from_frame(frame(time=time))
    np.testing.assert_array_equal(as_told(told, time), [18262, 18414, 18628])


def test_nullable_numbers_are_numbers():
    changes = {"outcome": pd.array([1, 0, -1], "Int64"), "time": pd.array([0, 1.5, 1.5], "Float64")}
    matches, y = Matches.from_frame(frame(**changes, home=pd.array([True, False, True], "boolean")))
    assert (y.tolist(), y.dtype.kind, matches.time.tolist()) == ([1, 0, -1], "i", [0, 1.5, 1.5])
    with pytest.raises(ValueError, match=r"column 'outcome'\[2\] is \S+; expected a value in each"):
        Matches.from_frame(frame(outcome=pd.array([1, 0, None], "Int64")))
    ids = pd.array([1, 2, 3], "Int64")
    assert Matches.from_frame(frame(first=ids, second=[2, 3, 1]))[0].features == ("1", "2", "3")


def test_columns_of_objects_that_are_numbers_are_numbers():
    changes = {"outcome": pd.Series([1, 0, -1], dtype=object), "time": pd.Series([0, 1, 1], dtype=object)}
    matches, y = Matches.from_frame(frame(**changes))
    assert (y.tolist(), matches.time.tolist()) == ([1, 0, -1], [0, 1, 1])


def repeated(outcome):
    return pd.DataFrame({"first": "a", "second": "b", "time": range(len(outcome)), "outcome": outcome})


def test_wins_and_losses_as_1_and_0_are_not_passed_over():
    """Sixty wins and forty losses were sixty wins and forty ties, without a word."""
    scores = repeated([1] * 60 + [0] * 40)
    with pytest.warns(
        OutcomeWarning, match="'outcome' holds only 1 and 0, read as 60 wins .* 40 ties"
    ) as found:
        _, y = Matches.from_frame(scores)
    assert found[0].filename == __file__
    np.testing.assert_array_equal(y, scores["outcome"])
    with warnings.catch_warnings(action="error"):
        _, y = Matches.from_frame(scores, outcomes="win-loss")
        np.testing.assert_array_equal(y, [1] * 60 + [-1] * 40)
        _, y = Matches.from_frame(scores, outcomes="labels")
        np.testing.assert_array_equal(y, scores["outcome"])
        Matches.from_frame(repeated([1, 0, -1, 0, 1]))
        Matches.from_frame(repeated([2, 0, 1, 0, 1]))  # points
        Matches.from_frame(repeated([1, 1, 1, 1, 1]))
        Matches.from_frame(repeated([1, 0, 1, 1]))  # three wins and a tie are no wonder


def test_half_points_are_ties():
    half = repeated([1.0, 0.5, 0.0, 0.5])
    with pytest.warns(OutcomeWarning, match="only 1, 1/2 and 0, read as wins, ties and losses"):
        _, y = Matches.from_frame(half)
    assert (y.tolist(), y.dtype.kind) == ([1, 0, -1, 0], "i")
    with warnings.catch_warnings(action="error"):
        np.testing.assert_array_equal(Matches.from_frame(half, outcomes="win-loss")[1], y)
        np.testing.assert_array_equal(Matches.from_frame(half, outcomes="labels")[1], half["outcome"])
    with pytest.raises(
        ValueError, match=r"column 'outcome'\[1\] is -1; expected 1 \(won\), 1/2 \(tie\) or 0"
    ):
        Matches.from_frame(repeated([1, -1]), outcomes="win-loss")
    with pytest.raises(ValueError, match="outcomes is 'wins'; expected 'labels' or 'win-loss'"):
        Matches.from_frame(half, outcomes="wins")


def test_fixtures_have_no_outcomes():
    matches = Matches.from_frame(frame().drop(columns="outcome"), outcome=None)
    both, _ = Matches.from_frame(frame())
    np.testing.assert_array_equal(matches.design.toarray(), both.design.toarray())
    assert both[1:].columns == both.columns == matches.columns | {"outcomes": [-1, 0, 1]}
    assert pickle.loads(pickle.dumps(matches)).columns == matches.columns


# ---- Races


def race(**changes):
    columns = {"event": "x", "player": ["Cy", "Ann", "Dee", "Bob"], "rank": [3, 1, 3, 2], "time": 5.0}
    return pd.DataFrame(columns | changes)


def test_neighbours_in_rank_are_compared_by_their_performances():
    two = pd.concat([race(event="y", time=7.0).iloc[:2], race()], ignore_index=True)
    matches, y = Matches.from_rankings(two)
    assert matches.features[:4] == ("Ann", "Bob", "Cy", "Dee")
    names = [("performance", "x", name) for name in ("Ann", "Bob", "Cy", "Dee")]
    assert list(matches.features[4:]) == [*names, ("performance", "y", "Ann"), ("performance", "y", "Cy")]
    players = [[1, -1, 0, 0], [0, 1, -1, 0], [0, 1, 0, -1], [1, 0, -1, 0]]
    np.testing.assert_array_equal(matches.design.toarray()[:, :4], 100 * np.array(players))
    np.testing.assert_array_equal(matches.design.toarray()[:3, 4:8], 100 * np.array(players)[:3])
    np.testing.assert_array_equal(matches.design.toarray()[3, 8:], [100, -100])
    assert (matches.time.tolist(), y.tolist()) == ([5, 5, 5, 7], [1, 1, 1, 1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"player": ["Cy", "Ann", "Cy", "Bob"]}, r"column 'player'\[2\] is 'Cy'; expected each player once"),
        ({"time": [1, 1, 2, 1]}, r"column 'time'\[2\] is 2.0; expected one time in an event"),
        ({"rank": 1}, "the number of comparisons is 0; expected an event with two ranks"),
        ({"rank": ["1st", "2nd", "3rd", "4th"]}, "column 'rank' has dtype .*; expected numbers"),
        ({"player": ["Cy", "advantage", "Dee", "Bob"]}, "a player's name is 'advantage'; expected another"),
        ({"player": [["Cy"], "Ann", "Dee", "Bob"]}, r"the name in row 0 of column 'player' is \['Cy'\]"),
    ],
)
def test_bad_rankings_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        Matches.from_rankings(race(**changes))
    with pytest.raises(ValueError, match=r"expected also \['place'\], once each"):
        Matches.from_rankings(race(), rank="place")


def test_joined_matches_are_read_as_those_that_were_read_from_a_frame():
    plain, read = Matches([[1, -1]], [0.0], ["a", "b"]), Matches([[1, -1]], [1.0], ["a", "c"])
    read.columns = {"first": "home", "dates": True}
    assert joined(plain, read).columns == read.columns
    assert joined(read, Matches([[1, -1]], [2.0], ["a", "b"])).columns == read.columns


# ---- From a Parquet file: the same as from a frame of all of it, errors and their rows too

GAMES = {
    "first": ["Bob", "Ann", "Cy"] * 5,
    "second": ["Ann", "Cy", "Ann"] * 5,
    "time": pd.date_range("2000-01-01", periods=15),
    "outcome": [1, 0, -1] * 5,
    "home": [True, False, True] * 5,
}


def changed(column, row, value):
    values = list(GAMES[column])
    values[row] = value
    return {column: values}


def both(tmp_path, changes, chunk, **columns):
    pytest.importorskip("pyarrow")
    path = tmp_path / "games.parquet"
    pd.DataFrame(GAMES | changes).to_parquet(path)
    return (
        lambda: Matches.from_frame(pd.read_parquet(path), **columns),
        lambda: Matches.from_parquet(path, chunk=chunk, **columns),
    )


@pytest.mark.parametrize("chunk", [1, 4, 15, 1000])
@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({}, {}),
        ({}, {"advantage": "home", "interactions": True}),
        ({"outcome": [1, 0.5, 0] * 5}, {"outcomes": "win-loss"}),
        ({"first": [10, 2, 3] * 5, "second": [2, 3, 10] * 5}, {}),
        ({"first": [10, 2, 3] * 5}, {}),
        ({"first": np.array([2**64 - 1, 2**64 - 2, 3] * 5, np.uint64), "second": [2, 3, 10] * 5}, {}),
        ({"first": [1.5, 2.5, 3.5] * 5, "second": [2.5, 3.5, 1.5] * 5}, {}),
        ({"first": pd.Categorical(GAMES["first"])}, {}),
        ({"time": np.arange(15.0)}, {"outcome": None}),
        ({"time": [f"2000-01-{k:02}" for k in range(1, 16)]}, {}),
        ({"first": ["Ann"] * 5 + ["Bob"] * 5 + ["Ann"] * 5, "second": ["Cy"] * 15}, {}),
    ],
)
def test_parts_of_a_file_are_read_as_one_frame(tmp_path, changes, columns, chunk):
    whole, read = (one() for one in both(tmp_path, changes, chunk, **columns))
    if columns.get("outcome", "") is not None:
        (whole, y), (read, read_y) = whole, read
        np.testing.assert_array_equal(read_y, y)
        assert read_y.dtype == y.dtype
    for name in ("data", "indices", "indptr"):
        a, b = getattr(read.design, name), getattr(whole.design, name)
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    np.testing.assert_array_equal(read.time, whole.time)
    assert (read.features, read.columns) == (whole.features, whole.columns)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (changed("first", 9, None), r"column 'first'\[9\] is nan; expected a value in each row"),
        (changed("outcome", 9, None), r"column 'outcome'\[9\] is nan; expected a value in each row"),
        (changed("second", 9, "Bob"), "'Bob' meets himself in row 9"),
        ({"first": [1, 2, 3] * 5, "second": [2, 3, 3] * 5}, "^3 meets himself in row 2"),
        (changed("time", 9, pd.Timestamp("1999-01-01")), r"time\[9\] is 10592\.0; expected at least 10965"),
        (
            {"second": [1.0, 2.0, 3.0] * 5, "first": [2, 3, 1] * 5},
            "in row 0 of column 'second' is 1.0; expected",
        ),
        ({"first": [["Ann", "Bob"]] * 15}, "the name in row 0 of column 'first' is array"),
        ({"first": [True] * 15}, "the name in row 0 of column 'first' is True"),
        ({"first": ["advantage"] * 15}, "a player's name is 'advantage'"),
        ({"outcome": ["won"] * 15}, "column 'outcome' has dtype"),
    ],
)
def test_errors_name_the_row_in_the_file(tmp_path, changes, message):
    whole, read = both(tmp_path, changes, 4)
    with pytest.raises(ValueError, match=message) as expected:
        whole()
    with pytest.raises(ValueError, match=re.escape(str(expected.value))):
        read()


def test_what_is_no_such_file_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    (tmp_path / "text").write_text("first,second\n")
    with pytest.raises(ValueError, match=r"text' is no Parquet file: Parquet magic bytes not found"):
        Matches.from_parquet(tmp_path / "text")
    with pytest.raises(OSError, match="nothing"):
        Matches.from_parquet(tmp_path / "nothing")
    with pytest.raises(ValueError, match="chunk is 0; expected"):
        Matches.from_parquet(tmp_path / "text", chunk=0)
    pd.DataFrame(GAMES).to_parquet(tmp_path / "games")
    expected = r"the list of columns is \['first', .*'home'\]; expected also \['white'\], once each"
    with pytest.raises(ValueError, match=expected):
        Matches.from_parquet(tmp_path / "games", first="white")
    pd.DataFrame(GAMES)[:0].to_parquet(tmp_path / "none")
    with pytest.raises(ValueError, match="the number of rows of the frame is 0; expected at least one match"):
        Matches.from_parquet(tmp_path / "none")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"no pyarrow.*\[book\]"):
        Matches.from_parquet(tmp_path / "games")


def test_names_are_held_once(tmp_path):
    """A frame has each name once a row, here of 400 letters; numbers of names take a hundredth."""
    pytest.importorskip("pyarrow")
    n, long = 20_000, "x" * 400
    path, rng = tmp_path / "games.parquet", np.random.default_rng(0)
    first = rng.integers(0, 100, n)
    games = {"first": first, "second": first + rng.integers(1, 100, n)}
    games = pd.DataFrame({name: [f"{long}{k}" for k in ids] for name, ids in games.items()})
    games.assign(time=np.arange(n), outcome=1.0).to_parquet(path)
    tracemalloc.start()
    Matches.from_parquet(path, chunk=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * n
