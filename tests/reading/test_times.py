"""Times of a user's file."""

import numpy as np
import pandas as pd
import pytest

from preflearn_book.reading.columns import UserTable
from preflearn_book.reading.times import TimeScale, read_times


def read(values, form=""):
    """Return the times, their scale, and the notes."""
    days = pd.DataFrame({"day": [str(value) for value in values]})
    days.index += 2
    table = UserTable(days, "own.csv")
    times, scale = read_times(table, "day", form)
    return times.reset_index(drop=True), scale, table.notes


@pytest.mark.parametrize(
    ("column", "form", "expected"),
    [
        (["2024-01-31", "2024-02-01 18:00"], "", "2024-01-31"),
        (["31.01.2024", "01.02.2024"], "", "2024-01-31"),
        (["1/31/2024", "2/1/2024"], "", "2024-01-31"),
        (["31/01/24", "01/02/24"], "", "2024-01-31"),
        (["January 31, 2024", "February 1, 2024"], "", "2024-01-31"),
        ([20240131, 20240201], "", "2024-01-31"),
        ([202401, 202403], "", "2024-01-01"),
        ([1860, 2019], "", "1860-01-01"),
        ([1706745600, 1706832000], "", "2024-02-01"),
        ([1706745600000, 1706832000000], "", "2024-02-01"),
        (["2019/20", "2020/21"], "", "2019-01-01"),
        (["2019-2020", "2018-2019"], "", "2019-01-01"),
        (["2019-05", "2019-12"], "", "2019-05-01"),  # these are months
        (["03/04/2024", "05/04/2024"], "%d/%m/%Y", "2024-04-03"),
        # ISO dates are unambiguous, so they may be mixed with the given format
        (["31/01/2024", "2024-02-01"], "%d/%m/%Y", "2024-01-31"),
        ([3.5, 7], "", 3.5),
        ([1, 1990], "", 1),  # these are numbers of rounds
    ],
)
def test_times_are_read_by_the_only_form_that_fits(column, form, expected):
    times, scale, _ = read(column, form)
    if isinstance(expected, str):
        expected = pd.Timestamp(expected)
    assert times[0] == expected
    assert scale.dated == isinstance(expected, pd.Timestamp)


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (["2019/20", "2020/21"], "2019/20"),
        ([1860, 2019], "1860"),
        ([202401, 202403], "2024-01"),
        (["2024-01-31", "2025-01-01"], "2024-01-31"),
        ([1706745600, 1706749200], "2024-02-01 00:00"),
        ([12, 13], "12"),
        ([0.25, 13], "0.25"),
    ],
)
def test_times_are_shown_as_the_file_writes_them(column, shown):
    times, scale, _ = read(column)
    assert scale.moment(times[0]) == shown
    if scale.dated:
        days = (times[0] - pd.Timestamp(0)) / pd.Timedelta(days=1)
        assert scale.moment(days) == shown


def test_a_year_ago_is_the_first_year_that_begins_later():
    days = (pd.Timestamp("2017-12-31 18:00") - pd.Timestamp(0)) / pd.Timedelta(days=1)
    assert TimeScale("year").moment(days) == "2018"
    assert TimeScale("month").moment(days) == "2018-01"


@pytest.mark.parametrize(
    ("column", "form", "until", "n_known"),
    [
        (["04/06/2021", "05/06/2021", "06/06/2021"], "%d/%m/%Y", "05/06/2021", 2),
        (["04/06/2021", "05/06/2021", "06/06/2021"], "%d/%m/%Y", "2021-06-05", 2),
        # read in the format of the column
        (["13/06/2021", "05/06/2021", "06/06/2021"], "", "06/06/2021", 2),
        (["2021-06-04 20:00", "2021-06-05 21:00", "2021-06-06"], "", "2021-06-05", 2),
        (["2021-06-04 20:00", "2021-06-05 21:00"], "", "2021-06-05 20:00", 1),
        (["2021-06-30", "2021-07-01"], "", "2021-06", 1),
        ([2019, 2020, 2021], "", "2020", 2),
        (["2019/20", "2020/21", "2021/22"], "", "2020/21", 2),
        ([1706745600, 1706832000], "", "2024-02-01", 1),
        ([1706745600, 1706832000], "", "1706745600", 1),
        ([1, 2, 3], "", "2", 2),
    ],
)
def test_until_is_read_as_the_file_and_its_day_counts(column, form, until, n_known):
    times, scale, _ = read(column, form)
    assert scale.is_until(times, until).sum() == n_known


@pytest.mark.parametrize(
    ("column", "start", "n_from"),
    [
        (["2021-06-04 20:00", "2021-06-05 21:00", "2021-06-06"], "2021-06-05", 2),
        (["04/06/2021", "13/06/2021", "14/06/2021"], "13/06/2021", 2),
        (["2019/20", "2020/21", "2021/22"], "2020/21", 2),
        ([1, 2, 3], "2", 2),
    ],
)
def test_the_start_of_a_season_is_read_as_the_file(column, start, n_from):
    times, scale, _ = read(column)
    assert scale.is_from(times, start).sum() == n_from


@pytest.mark.parametrize(
    ("column", "until"), [([1, 2], "soon"), (["2024-01-31", "2024-02-01"], "32")]
)
def test_until_that_is_not_a_time_is_rejected(column, until):
    times, scale, _ = read(column)
    with pytest.raises(ValueError, match=f"until='{until}'"):
        scale.is_until(times, until)


@pytest.mark.parametrize("form", ["", "%d/%m/%Y"])
def test_dates_of_two_forms_are_read_and_noted(form):
    day = pd.Series(pd.date_range("2023-01-01", periods=300))
    mixed = day.dt.strftime("%Y-%m-%d").where(
        np.arange(300) % 20 > 0, day.dt.strftime("%d/%m/%Y")
    )
    times, _, (note,) = read(mixed[::-1], form)
    assert times.tolist() == [*day[::-1]]
    assert "15 of 300" in note


@pytest.mark.parametrize(
    ("days", "form", "named"),
    [
        (["03.11.2026", "", "24.11.2026"], "", "line 3.*delete"),
        (
            ["13/01/2024", "14/01/2024", "02/03/2024", "01/15/2024"],
            "",
            "'01/15/2024' in line 5",
        ),
        # the last date can be read in two ways
        (["2024-01-31", "2024-02-01", "01/02/2024"], "", "'01/02/2024'.*time_format"),
        (["2024-01-31"] * 3, "%d.%m.%Y", "'2024-01-31' in line 2"),
        (["2024-01-31", "9999-12-31"], "", "'9999-12-31' in line 3.*2200"),
        (["2024-01-31"] * 3, "%d.%Q", "time_format|line 2"),
    ],
)
def test_dates_that_cannot_be_read_are_an_error(days, form, named):
    with pytest.raises(ValueError, match=named):
        read(days, form)


@pytest.mark.parametrize("far", ["1926-03-01", "2062-11-03"])
def test_a_date_far_from_all_others_is_noted(far):
    days = [*pd.date_range("2026-01-01", periods=12).strftime("%Y-%m-%d")] * 2
    assert read(days)[2] == []
    assert f"{pd.Timestamp(far):%d %B %Y}" in read([*days, far])[2][0]


@pytest.mark.parametrize(
    ("form", "codes"),
    [
        ("dd.mm.yyyy", "%d.%m.%Y"),
        ("TT.MM.JJJJ", "%d.%m.%Y"),
        ("m/d/yy", "%m/%d/%y"),
        ("European", "%d.%m.%Y"),
    ],
)
def test_a_format_without_codes_is_an_error_with_the_codes(form, codes):
    with pytest.raises(ValueError, match=f"'{form}' contains no codes.*write {codes}"):
        read(["31.01.2024"], form)
