import pickle
import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optional import optional_import
from scipy import sparse
from sklearn.model_selection import TimeSeriesSplit

from preflearn.matches import Matches, OutcomeWarning, TimeWarning, concatenate


def frame(**changes):
    columns = {
        "first": ["Bob", "Ann", "Cy"],
        "second": ["Ann", "Cy", "Ann"],
        "time": [0.0, 1.5, 1.5],
        "outcome": [1, 0, -1],
        "home": [True, False, True],
    }
    return pd.DataFrame(columns | changes)


def times(time):
    """Return the times that are read from a column. Any warning is an error."""
    with warnings.catch_warnings(action="error"):
        return Matches.from_frame(frame(time=time))[0].time.tolist()


@pytest.mark.parametrize(
    "names",
    [{}, {"first": "white", "second": "black", "time": "month", "outcome": "s"}],
)
def test_rows_are_first_minus_second(names):
    matches, y = Matches.from_frame(frame().rename(columns=names), **names)
    assert matches.features == ("Ann", "Bob", "Cy")
    np.testing.assert_array_equal(
        matches.design.toarray(), [[-1, 1, 0], [1, 0, -1], [-1, 0, 1]]
    )
    np.testing.assert_array_equal(matches.time, [0, 1.5, 1.5])
    np.testing.assert_array_equal(y, [1, 0, -1])
    np.testing.assert_array_equal(matches.players(), [[1, 0], [0, 2], [2, 0]])
    assert (matches.shape, len(matches)) == ((3, 3), 3)


@pytest.mark.parametrize("home", [[True, False, True], [0.5, -1.0, 0.0]])
def test_advantage_and_interactions_are_features(home):
    """Section 4.2.3 of P4: d = s_i - s_j + s_ij, with s_ji = -s_ij."""
    matches, _ = Matches.from_frame(
        frame(home=home), advantage="home", interactions=True
    )
    assert matches.features == (
        "Ann",
        "Bob",
        "Cy",
        "advantage",
        ("Ann", "Bob"),
        ("Ann", "Cy"),
    )
    np.testing.assert_array_equal(matches.design.toarray()[:, 3], home)
    np.testing.assert_array_equal(
        matches.design.toarray()[:, 4:], [[-1, 0], [0, 1], [0, -1]]
    )
    np.testing.assert_array_equal(matches.players(), [[1, 0], [0, 2], [2, 0]])


@given(
    st.lists(st.permutations(range(5)), min_size=1, max_size=20), st.integers(0, 10**6)
)
def test_design_gives_differences_of_scores(order, seed):
    index = np.array(order)[:, :2]
    names = np.array(["e", "b", "d", "a", "c"])
    matches, _ = Matches.from_frame(
        pd.DataFrame(
            {
                "first": names[index[:, 0]],
                "second": names[index[:, 1]],
                "time": 0,
                "outcome": 1,
            }
        )
    )
    scores = dict(
        zip(names, np.random.default_rng(seed).standard_normal(5), strict=True)
    )
    expected = [scores[names[i]] - scores[names[j]] for i, j in index]
    by_feature = np.array([scores[name] for name in matches.features])
    np.testing.assert_allclose(matches.design @ by_feature, expected, atol=1e-12)
    first, second = matches.players().T
    np.testing.assert_allclose(
        by_feature[first] - by_feature[second], expected, atol=1e-12
    )


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"first": ["Bob", None, "Cy"]}, "'first'"),
        ({"first": ["Bob", "Cy", "Cy"]}, "'Cy'"),
        ({"time": [0.0, 2.0, 1.0]}, "time"),
        ({"time": [0.0, np.nan, 1.0]}, "'time'"),
        ({"time": [0.0, 1.0, np.inf]}, "'time'"),
        ({"time": [0.0, 1.0, 1e200]}, "time"),
        ({"time": ["a", "b", "c"]}, "'a'"),
        # this may be a day in April or in March
        ({"time": ["03/04/2020"] * 3}, "03/04/2020"),
        ({"time": ["2020-02-31"] * 3}, "2020-02-31"),
        ({"outcome": [1, np.nan, 0]}, "'outcome'"),
        ({"outcome": pd.array([1, 0, None], "Int64")}, "'outcome'"),
        ({"outcome": [True, False, True]}, "'outcome'"),
        ({"outcome": [10**400, 0, 1]}, "'outcome'"),
        ({"home": [1.0, np.inf, 0.0]}, "'home'"),
        ({"first": [1.0, 2.0, 3.0], "second": [2, 3, 1]}, r"'second'.*astype\(int\)"),
        ({"first": ["Bob", "Ann", "advantage"]}, "'advantage'"),
        ({"first": [b"Bob", "Ann", "Cy"]}, "b'Bob'"),
        ({"second": pd.to_datetime(["2020-01-01"] * 3)}, "Timestamp"),
        # Line-ups
        ({"first": [["Bob", "Ann"], "Ann", "Cy"]}, "'Ann'"),
        ({"first": [["Bob", "Bob"], "Ann", "Cy"]}, "'Bob'"),
        ({"first": ["Bob", [], "Cy"]}, "row 1"),
        ({"first": ["Bob", {"Ann": -1.0}, "Cy"]}, "-1.0"),
        ({"first": ["Bob", ["Ann", None], "Cy"]}, "row 1"),
        ({"first": ["Bob", {"Ann", "Dee"}, "Cy"]}, "row 1"),
        ({"first": [[3], [3.0], "Cy"]}, "3.0"),
        ({"first": [["Bob"], [np.nan], "Cy"]}, "row 1"),
        ({"first": [[1], [True], "Cy"]}, "True"),
    ],
)
def test_bad_values_in_a_frame_are_rejected_and_named(changes, named):
    with pytest.raises(ValueError, match=named):
        Matches.from_frame(frame(**changes), advantage="home")


@pytest.mark.parametrize(
    ("table", "arguments", "named"),
    [
        ([1, 2], {}, "frame"),
        (frame(), {"outcome": "won", "advantage": "ground"}, "won.*ground"),
        (frame(), {"first": ["first"]}, "first"),
        (frame(), {"advantage": True}, "advantage is True.*name of a column"),
        (pd.concat([frame(), frame()["time"]], axis=1), {}, "'time'"),
        (frame()[:0], {}, "row"),
        (frame(), {"interactions": None}, "interactions"),
        (
            frame(first=[["Bob", "Dee"], "Ann", "Cy"]),
            {"interactions": True},
            "interactions",
        ),
        (frame(outcome=[1, 0.5, 0]), {"outcomes": "wins"}, "outcomes"),
        (frame(outcome=[1, -1, 1]), {"outcomes": "win-loss"}, "'outcome'"),
    ],
)
def test_bad_arguments_are_rejected_and_named(table, arguments, named):
    with pytest.raises(ValueError, match=named):
        Matches.from_frame(table, **arguments)


def test_a_missing_column_is_named_with_the_columns_of_the_frame():
    table = frame().rename(columns={"first": "First", "second": "scond"})
    columns = "the frame has: First, scond, time, outcome, home"
    suggested = "Did you mean first='First', second='scond'"
    with pytest.raises(ValueError, match=f"'first', 'second'.*{columns}.*{suggested}"):
        Matches.from_frame(table)


def test_no_column_is_suggested_if_none_is_similar():
    table = frame(**{f"x{k}": 0 for k in range(30)})
    with pytest.raises(ValueError, match=r"'won' not found.* and 15 more\.$"):
        Matches.from_frame(table, advantage="won")


def test_a_column_with_the_name_of_its_argument_is_suggested():
    with pytest.raises(ValueError, match="Did you mean time='time'"):
        Matches.from_frame(frame(), time="date")


# ---- From arrays


@pytest.mark.parametrize(
    ("design", "time", "features", "named"),
    [
        ([1, -1], [0], "ab", "design"),
        (np.empty((0, 2)), [], "ab", "design"),
        ([[1, np.nan]], [0], "ab", "design"),
        (sparse.csr_array([[1j, 0]]), [0], "ab", "design"),
        ([[0, 1e200]], [0], "ab", "design"),
        (sparse.csr_array([[1, np.longdouble(10) ** 400]]), [0], "ab", "design"),
        ([[1, -1], [0, 0]], [0, 1], "ab", r"design\[1\]"),
        ([[1, -1]], [0], "a", "features"),
        ([[1, -1]], [0], "aa", "'a'"),
        ([[1, -1]], [0], [["a"], ["b"]], "features"),
        ([[1, -1]], [0, 1], "ab", "time"),
        ([[1, -1], [1, -1]], [1, 0], "ab", r"time\[1\].*sort"),
        ([[1, -1]], [np.nan], "ab", "time"),
        ([[1, -1]], np.ma.array([2.0], mask=[True]), "ab", "time"),
    ],
)
def test_bad_arrays_are_rejected_and_named(design, time, features, named):
    with pytest.raises(ValueError, match=named):
        Matches(design, time, features)


def sparse_design(kind, **changes):
    """A sparse design of 4 matches and 3 features, some of whose numbers are
    overwritten."""
    design = kind(np.tile([[1.0, -1, 0], [0, 1, -1]], (2, 1)))
    for name, (place, value) in changes.items():
        getattr(design, name)[place] = value
    return design


@pytest.mark.parametrize(
    "kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.bsr_array]
)
@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": (1, 400_000)},
        {"indptr": (1, -5)},
        {"indptr": (-1, 400_000)},
        {"indptr": ([1, -1], [400_000, -1])},  # SciPy's own check does not detect this
        {"indptr": ([1, -1], [400_000, 0])},
        {"indptr": (0, 1)},
        {"indices": (0, 1_000_000)},
        {"indices": (0, -1)},
    ],
    ids=str,
)
def test_a_damaged_sparse_design_is_rejected_before_it_is_read(kind, changes):
    with pytest.raises(ValueError, match="design"):
        Matches(sparse_design(kind, **changes), [0, 1, 2, 3], "abc")


def test_coordinates_out_of_range_are_rejected():
    design = sparse_design(sparse.coo_array)
    design.coords[1][0] = 7
    with pytest.raises(ValueError, match="design"):
        Matches(design, [0, 1, 2, 3], "abc")


@pytest.mark.parametrize(
    "kind", [sparse.csr_array, sparse.csc_array, sparse.bsr_array, sparse.coo_array]
)
def test_a_sparse_design_of_any_kind_is_copied(kind):
    design = sparse_design(kind)
    found = Matches(design, [0, 1, 2, 3], "abc").design
    np.testing.assert_array_equal(found.toarray(), design.toarray())
    assert found.format == "csr"
    assert not np.shares_memory(found.data, design.data)


def test_repeated_entries_of_a_sparse_design_add_up():
    """If a player is on both sides, the entries cancel."""
    design = sparse.coo_array(
        ([1.0, -1.0, 1.0, -1.0], ([0, 0, 0, 0], [0, 1, 2, 2])), shape=(1, 3)
    )
    matches = Matches(design, [0], "abc")
    assert matches.design.nnz == 2
    np.testing.assert_array_equal(matches.players(), [[0, 1]])


@pytest.mark.parametrize(
    "row", [[1, 1, -1, -1], [2, -1, 0, 0], [1, 0, 0, 0], [1, -1, 0.5, 0]]
)
def test_a_match_of_line_ups_has_no_two_players(row):
    matches = Matches([[1, -1, 0, 0], row], [0, 0], "abcd")
    with pytest.raises(ValueError, match="match 1"):
        matches.players()


def test_selections_keep_the_features():
    matches = Matches.from_frame(frame())[0]
    dense = matches.design.toarray()
    for key in (
        slice(1, None),
        np.array([False, True, True]),
        [1, 2],
        np.array([1, 2]),
        ([1, 2], ...),
    ):
        np.testing.assert_array_equal(matches[key].design.toarray(), dense[1:])
        np.testing.assert_array_equal(matches[key].time, [1.5, 1.5])
        assert matches[key].features == matches.features
    np.testing.assert_array_equal(matches[-1].design.toarray(), dense[2:])
    assert len(matches[[]]) == len(matches[3:]) == 0
    assert "0 matches" in repr(matches[[]])
    again = pickle.loads(pickle.dumps(matches))
    np.testing.assert_array_equal(again.design.toarray(), dense)
    assert (again.features, again.columns) == (matches.features, matches.columns)
    with pytest.raises(ValueError, match="time"):
        matches[[1, 0]]
    sizes = [
        (len(matches[train]), len(matches[test]))
        for train, test in TimeSeriesSplit(2).split(matches)
    ]
    assert sizes == [(1, 1), (2, 1)]


def test_joined_matches_keep_how_their_frame_was_read():
    plain = Matches([[1, -1]], [0.0], "ab")
    read = Matches([[1, -1]], [1.0], "ac")
    read.columns = {"first": "home", "dates": True}
    assert concatenate(plain, read).columns == read.columns
    assert concatenate(read, Matches([[1, -1]], [2.0], "ab")).columns == read.columns


# ---- Names


def test_names_of_one_kind_are_kept():
    for names in ([1, 2, 3], [1.0, 2.0, 3.0], ["1", "2", "3"]):
        matches, _ = Matches.from_frame(
            frame(first=names, second=[*names[1:], names[0]])
        )
        assert matches.features == tuple(map(str, names))
    ids = pd.array([1, 2, 3], "Int64")
    assert Matches.from_frame(frame(first=ids, second=[2, 3, 1]))[0].features == (
        "1",
        "2",
        "3",
    )


def test_a_list_is_a_line_up():
    first = [["Ann", "Bob"], ("Cy",), {"Ann": 1.0, "Dee": 0.25}]
    second = ["Cy", {"Dee": 2}, ["Bob", "Cy"]]
    matches, _ = Matches.from_frame(frame(first=first, second=second), advantage="home")
    assert matches.features == ("Ann", "Bob", "Cy", "Dee", "advantage")
    expected = [[1, 1, -1, 0, 1], [0, 0, 1, -2, 0], [1, -1, -1, 0.25, 1]]
    np.testing.assert_array_equal(matches.design.toarray(), expected)


def test_a_line_up_of_one_is_a_player():
    matches, _ = Matches.from_frame(
        frame(first=[["Bob"], ["Ann"], ["Cy"]]), interactions=True
    )
    plain, _ = Matches.from_frame(frame(), interactions=True)
    assert matches.features == plain.features
    np.testing.assert_array_equal(matches.design.toarray(), plain.design.toarray())


# ---- Times

DAYS = ["1969-12-31", "1970-01-01 12:00", "2000-01-01"]
DATES = pd.to_datetime(DAYS, format="ISO8601")


@pytest.mark.parametrize(
    "time",
    [
        DATES,
        DATES.as_unit("s"),
        DATES.tz_localize("UTC").tz_convert("Asia/Tokyo"),
        [*DAYS[:2], "2000-01-01T00:00Z"],
        [date.to_pydatetime() for date in DATES],
        pd.Series(DAYS, dtype=object),
    ],
)
def test_dates_become_days_since_1970(time):
    assert times(time) == [-1, 0.5, 10957]


def date_arguments(unit):
    """Return times since 1970 in this unit."""
    days = pd.to_datetime(["2020-01-01", "2020-06-01", "2021-01-01"])
    return (
        (days - pd.Timestamp(0)) // pd.Timedelta(1, unit)
    ).tolist(), f"unit='{unit}'"


@pytest.mark.parametrize(
    ("time", "advice"),
    [
        ([202001, 202006, 202101], "format="),
        ([20200101.0, 20200601.0, 20210101.0], "format="),
        *map(date_arguments, ["s", "ms", "us", "ns"]),
    ],
)
def test_numbers_that_read_as_dates_are_warned_of(time, advice):
    """With the arguments in the warning, pandas.to_datetime converts the numbers to the
    right days."""
    with pytest.warns(TimeWarning, match=r"'time'.*pandas\.to_datetime") as caught:
        matches, _ = Matches.from_frame(frame(time=time))
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(matches.time, time)
    call = re.search(r"pandas\.to_datetime\((.*)\)", str(caught[0].message))[0]
    assert advice in call
    with warnings.catch_warnings(action="error"):
        assert times(eval(call, {"pandas": pd, "time": pd.Series(time)})) == [
            18262,
            18414,
            18628,
        ]


@pytest.mark.parametrize(
    "time",
    [
        [20010101.5, 20010102, 20010103],
        [20010101, 20010102, 20010199],
        [20011301, 20011302, 20011303],
        [15991231, 15991231, 15991231],
        [22010101, 22010101, 22010101],
        [0, 1, 2],
        pd.Series([0, 1, 1], dtype=object),
        pd.array([0, 1.5, 1.5], "Float64"),
    ],
)
def test_other_numbers_are_times_without_conversion(time):
    assert times(time) == list(time)


# ---- Outcomes


def repeated(outcome):
    return pd.DataFrame(
        {"first": "a", "second": "b", "time": range(len(outcome)), "outcome": outcome}
    )


def outcomes(outcome, meant=None):
    """Return the outcomes that are read from a column. Any warning is an error."""
    with warnings.catch_warnings(action="error"):
        y = Matches.from_frame(repeated(outcome), outcomes=meant)[1]
    return y.tolist(), y.dtype.kind


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ([12.0, -3.0, 0.5], "f"),
        ([1, 0, -1, 0, 1], "i"),
        ([2, 0, 1, 0, 1], "i"),  # points of the first side
        ([1, 1, 1, 1, 1], "i"),
        ([1, 0, 1, 1], "i"),  # three wins and one tie are plausible
    ],
)
def test_outcomes_are_read_without_conversion(given, dtype):
    assert outcomes(given) == (given, dtype)
    assert outcomes(pd.Series(given, dtype=object)) == (given, dtype)


def test_nullable_outcomes_are_integers():
    assert outcomes(pd.array([1, 0, -1], "Int64")) == ([1, 0, -1], "i")


def test_wins_and_losses_as_1_and_0_are_warned_of():
    """Sixty wins and forty losses must not become sixty wins and forty ties without a
    warning."""
    scores = [1] * 60 + [0] * 40
    with pytest.warns(
        OutcomeWarning, match="'outcome'.*outcomes='labels'.*outcomes='win-loss'"
    ) as caught:
        _, y = Matches.from_frame(repeated(scores))
    assert caught[0].filename == __file__
    assert y.tolist() == scores
    assert outcomes(scores, "win-loss") == ([1] * 60 + [-1] * 40, "i")
    assert outcomes(scores, "labels") == (scores, "i")


def test_half_points_are_ties():
    half = [1.0, 0.5, 0.0, 0.5]
    with pytest.warns(OutcomeWarning, match="'outcome'"):
        _, y = Matches.from_frame(repeated(half))
    assert (y.tolist(), y.dtype.kind) == ([1, 0, -1, 0], "i")
    assert outcomes(half, "win-loss") == ([1, 0, -1, 0], "i")
    assert outcomes(half, "labels") == (half, "f")


def test_fixtures_have_no_outcomes():
    matches = Matches.from_frame(frame().drop(columns="outcome"), outcome=None)
    both, _ = Matches.from_frame(frame())
    np.testing.assert_array_equal(matches.design.toarray(), both.design.toarray())
    assert (
        both[1:].columns == both.columns == matches.columns | {"outcomes": [-1, 0, 1]}
    )


# ---- Rankings


def race(**changes):
    columns = {
        "event": "x",
        "player": ["Cy", "Ann", "Dee", "Bob"],
        "rank": [3, 1, 3, 2],
        "time": 5.0,
    }
    return pd.DataFrame(columns | changes)


def test_neighbors_in_rank_are_compared_by_their_performances():
    two = pd.concat([race(event="y", time=7.0).iloc[:2], race()], ignore_index=True)
    matches, y = Matches.from_rankings(two)
    assert matches.features[:4] == ("Ann", "Bob", "Cy", "Dee")
    names = [("performance", "x", name) for name in ("Ann", "Bob", "Cy", "Dee")]
    assert list(matches.features[4:]) == [
        *names,
        ("performance", "y", "Ann"),
        ("performance", "y", "Cy"),
    ]
    players = [[1, -1, 0, 0], [0, 1, -1, 0], [0, 1, 0, -1], [1, 0, -1, 0]]
    np.testing.assert_array_equal(
        matches.design.toarray()[:, :4], 100 * np.array(players)
    )
    np.testing.assert_array_equal(
        matches.design.toarray()[:3, 4:8], 100 * np.array(players)[:3]
    )
    np.testing.assert_array_equal(matches.design.toarray()[3, 8:], [100, -100])
    assert (matches.time.tolist(), y.tolist()) == ([5, 5, 5, 7], [1, 1, 1, 1])


def test_players_of_two_events_at_one_time_are_not_compared():
    others = {"player": ["Eve", "Fay", "Gus", "Hal"]}
    matches, _ = Matches.from_rankings(pd.concat([race(), race(event="y", **others)]))
    met = [
        {
            matches.features[k]
            for k in row.indices
            if isinstance(matches.features[k], str)
        }
        for row in matches.design
    ]
    assert len(met) == 6
    assert all(names <= {"Ann", "Bob", "Cy", "Dee"} for names in met[:3])
    assert all(names <= set(others["player"]) for names in met[3:])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"player": ["Cy", "Ann", "Cy", "Bob"]}, "'Cy'"),
        ({"time": [1, 1, 2, 1]}, "'time'"),
        ({"rank": 1}, "rank"),
        ({"rank": ["1st", "2nd", "3rd", "4th"]}, "'rank'"),
        ({"player": ["Cy", "advantage", "Dee", "Bob"]}, "'advantage'"),
        ({"player": [["Cy"], "Ann", "Dee", "Bob"]}, "'player'"),
    ],
)
def test_bad_rankings_are_rejected_and_named(changes, named):
    with pytest.raises(ValueError, match=named):
        Matches.from_rankings(race(**changes))


def test_retirements_are_ranked_last_or_left_out_as_asked():
    frame = race(rank=["DNF", "1", " nc ", "2"])
    last, _ = Matches.from_rankings(frame, unranked="last")
    same, _ = Matches.from_rankings(race())
    np.testing.assert_array_equal(last.design.toarray(), same.design.toarray())
    dropped, _ = Matches.from_rankings(frame, unranked="drop")
    finishers, _ = Matches.from_rankings(race().iloc[[1, 3]])
    assert dropped.features == finishers.features
    # a player who did not start is not ranked behind those who retired
    frame.loc[0, "rank"] = "DNS"
    started, _ = Matches.from_rankings(frame, unranked="last")
    assert [name for name in started.features if isinstance(name, str)] == [
        "Ann",
        "Bob",
        "Dee",
    ]


def test_retirements_without_a_rule_name_the_remedy():
    with pytest.raises(ValueError, match=r"'DNF'.*unranked='last'.*unranked='drop'"):
        Matches.from_rankings(race(rank=["DNF", "1", "3", "2"]))
    with pytest.raises(ValueError, match="'1st'"):
        Matches.from_rankings(race(rank=["1st", "1", "3", "2"]), unranked="last")


@pytest.mark.parametrize(
    "kind", ["category", "string[pyarrow]", "large_string", "date32", "timestamp"]
)
def test_dates_of_other_column_types_are_days(kind):
    frame = pd.DataFrame(
        {"first": ["Ann", "Bob"], "second": ["Bob", "Ann"], "outcome": [1, -1]}
    )
    days = pd.Series(["1970-01-02", "1970-01-04"])
    if kind in ("large_string", "date32", "timestamp"):
        arrow = optional_import("pyarrow")
        types = {
            "large_string": arrow.large_string(),
            "date32": arrow.date32(),
            "timestamp": arrow.timestamp("us"),
        }
        days = pd.to_datetime(days) if kind != "large_string" else days
        days = days.dt.date if kind == "date32" else days
        frame["time"] = days.astype(pd.ArrowDtype(types[kind]))
    else:
        frame["time"] = days.astype(kind)
    assert Matches.from_frame(frame)[0].time.tolist() == [1.0, 3.0]


def test_a_missing_column_of_rankings_is_named():
    with pytest.raises(ValueError, match="place"):
        Matches.from_rankings(race(), rank="place")


# ---- Names as categories, as in some Parquet files

GAMES = {
    "first": ["Bob", "Ann", "Cy"] * 5,
    "second": ["Ann", "Cy", "Ann"] * 5,
    "time": pd.date_range("2000-01-01", periods=15),
    "outcome": [1, 0, -1] * 5,
    "home": [True, False, True] * 5,
}


def changed(column, value):
    """Return the column with another value in row 9."""
    values = list(GAMES[column])
    values[9] = value
    return {column: values}


@pytest.mark.parametrize(
    "games",
    [
        {},
        {"first": [10, 2, 3] * 5, "second": [2, 3, 10] * 5},
        {"first": [10, 2, 3] * 5},
        {
            "first": np.array([2**64 - 1, 2**64 - 2, 3] * 5, np.uint64),
            "second": [2, 3, 10] * 5,
        },
        {"first": [1.5, 2.5, 3.5] * 5, "second": [2.5, 3.5, 1.5] * 5},
    ],
)
def test_categories_are_names(games):
    """Categories use less memory than strings, and name the same players."""
    frame = pd.DataFrame(GAMES | games)
    options = {"advantage": "home", "interactions": True}
    (expected, _), (matches, _) = (
        Matches.from_frame(frame.astype(types), **options)
        for types in ({}, {"first": "category", "second": "category"})
    )
    assert matches.features == expected.features
    assert (matches.design != expected.design).nnz == 0


@pytest.mark.parametrize(
    ("games", "message"),
    [
        (changed("first", None), r"'first'\[9\]"),
        (changed("second", "Bob"), "'Bob' plays against themselves in row 9"),
        ({"second": [1.0, 2.0, 3.0] * 5, "first": [2, 3, 1] * 5}, "one type"),
        ({"first": [True] * 15}, "row 0 of column 'first'"),
    ],
)
def test_errors_in_categories_name_the_row(games, message):
    frame = pd.DataFrame(GAMES | games).astype(
        {"first": "category", "second": "category"}
    )
    with pytest.raises(ValueError, match=message):
        Matches.from_frame(frame)


def test_each_name_of_a_parquet_file_is_held_in_memory_once(tmp_path):
    """A frame stores each name once per row, here with 400 letters. The ids of the
    names use a hundredth of this memory."""
    optional_import("pyarrow")
    n = 20_000
    long = "x" * 400
    path = tmp_path / "games.parquet"
    rng = np.random.default_rng(0)
    first = rng.integers(0, 100, n)
    games = {"first": first, "second": first + rng.integers(1, 100, n)}
    games = pd.DataFrame(
        {name: [f"{long}{k}" for k in ids] for name, ids in games.items()}
    )
    games.assign(time=np.arange(n), outcome=1.0).to_parquet(path)
    tracemalloc.start()
    frame = pd.read_parquet(path, engine="pyarrow", read_dictionary=["first", "second"])
    Matches.from_frame(frame)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * n
