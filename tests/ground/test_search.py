"""Searches over named parameters: what is drawn, what is judged, and what is near an end."""

import numpy as np
import pytest
from joblib import delayed

from preflearn.checks import tell
from preflearn.ground.search import Range, check_ranges, drawn, grid, in_parallel, judged, near_boundary

RANGES = {"rate": Range(0.01, 1.0), "angle": Range(-2.0, 2.0, "linear")}


def squares(at):
    return {"square": at["rate"] ** 2, "of": at["angle"]}


def test_draws_are_even_on_the_scale_of_each_range():
    table = drawn(RANGES, 2000, random_state=0)
    assert list(table) == ["rate", "angle"]
    for name, found in RANGES.items():
        position = table[name].map(found.position)
        assert position.between(0, 1).all()
        assert position.mean() == pytest.approx(0.5, abs=0.03)  # four standard errors
    assert table.equals(drawn(RANGES, 2000, random_state=np.random.default_rng(0)))


def test_the_number_of_processes_changes_nothing():
    candidates = drawn(RANGES, 20, random_state=1)
    one, two = (judged(squares, candidates, n_jobs) for n_jobs in (1, 2))
    assert one.equals(two)
    np.testing.assert_allclose(one["square"], candidates["rate"] ** 2)
    assert list(one) == ["rate", "angle", "square", "of"]


def test_a_grid_is_searched_like_draws():
    table = judged(squares, grid({"rate": [2, 1], "angle": ["a", "b"]}))
    assert table[["square", "of"]].to_numpy().tolist() == [[4, "a"], [4, "b"], [1, "a"], [1, "b"]]


def test_some_rows_of_a_grid_keep_what_was_found_of_them():
    candidates = grid({"rate": [1, 2, 3], "angle": [0]})
    table = judged(squares, candidates[candidates["rate"] > 1])
    assert table.index.tolist() == [1, 2]
    assert table["square"].tolist() == [4, 9]


def test_values_near_an_end_are_named_with_the_end():
    assert near_boundary({"rate": 0.0125, "angle": 0.0}, RANGES) == {
        "rate": "low"
    }  # log 1.25 / log 100 = 0.048
    assert near_boundary({"rate": 0.0126, "angle": 1.81}, RANGES) == {"angle": "high"}
    tried = {"C": [1e-4, 1.0, 1e4], "kernel": ["rbf", "linear"], "degree": [3]}
    assert near_boundary({"C": 1.0, "kernel": "rbf", "degree": 3}, tried) == {}
    assert near_boundary({"C": 1e4, "kernel": "rbf", "degree": 3}, tried) == {"C": "high"}


def test_bad_input_is_named():
    for ranges in ({}, None, [1]):
        with pytest.raises(ValueError, match=r"ranges is .*; expected a range of at least one of rate"):
            check_ranges(ranges, RANGES)
    with pytest.raises(ValueError, match=r"a parameter with a range is 'x'; expected one of rate, angle"):
        check_ranges({"x": (1, 2)}, RANGES)
    for wrong in ((2, 1), (0, 1), (1, np.inf), (1, 1), 3, "ab", (1, 2, 3), (1, 2, "cubic"), (1e-101, 1)):
        with pytest.raises(ValueError, match=r"ranges\['rate'\] is .*; expected two positive numbers"):
            check_ranges({"rate": wrong}, RANGES)
    with pytest.raises(ValueError, match=r"expected two numbers up to 1e100 in size, the smaller one first"):
        check_ranges({"rate": (1, -1, "linear")}, RANGES)
    with pytest.raises(ValueError, match="n_configurations is 0; expected a whole number of at least 1"):
        drawn(RANGES, 0, random_state=0)
    for wrong in (None, -1, True, 1.5, "a"):
        with pytest.raises(ValueError, match=r"random_state is .*; expected a seed, a whole number"):
            drawn(RANGES, 2, random_state=wrong)
        if wrong not in (None, -1):
            with pytest.raises(ValueError, match=r"n_jobs is .*; expected a whole number of processes"):
                judged(squares, grid({"rate": [1]}), wrong)


@pytest.mark.parametrize("n_jobs", [0, True, 2**40, 1.0, np.timedelta64(1, "D"), "all"])
def test_a_number_of_processes(n_jobs):
    with pytest.raises(
        ValueError,
        match=r"n_jobs is .*; expected a whole number of processes, -1 for all processors, or None",
    ):
        in_parallel([], n_jobs)


def test_a_warning_points_to_the_line_that_asked_for_the_search():
    with pytest.warns(UserWarning, match="far") as caught:
        in_parallel([delayed(tell)("far", UserWarning)])
    assert caught[0].filename == __file__
