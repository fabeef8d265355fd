"""Searches over named parameters: draws, results, values near the end of a range, and
parallel workers."""

import numpy as np
import pytest
from joblib import delayed

from preflearn.core.validation import warn_user
from preflearn.solvers.search import (
    Range,
    check_ranges,
    evaluate_candidates,
    grid,
    in_parallel,
    near_boundary,
    sample_candidates,
)

RANGES = {"rate": Range(0.01, 1.0), "angle": Range(-2.0, 2.0, "linear")}


def squares(at):
    return {"square": at["rate"] ** 2, "of": at["angle"]}


def test_draws_are_uniform_on_the_scale_of_each_range():
    table = sample_candidates(RANGES, 2000, random_state=0)
    assert list(table) == ["rate", "angle"]
    for name, found in RANGES.items():
        position = table[name].map(found.position)
        assert position.between(0, 1).all()
        # the tolerance is four standard errors
        assert position.mean() == pytest.approx(0.5, abs=0.03)
    assert table.equals(
        sample_candidates(RANGES, 2000, random_state=np.random.default_rng(0))
    )


@pytest.mark.nightly
def test_the_number_of_processes_changes_nothing():
    candidates = sample_candidates(RANGES, 20, random_state=1)
    one, two = (evaluate_candidates(squares, candidates, n_jobs) for n_jobs in (1, 2))
    assert one.equals(two)


def test_results_join_the_rows_of_a_grid():
    candidates = grid({"rate": [2, 1], "angle": ["a", "b"]})
    table = evaluate_candidates(squares, candidates[1:])
    assert list(table) == ["rate", "angle", "square", "of"]
    assert table.index.tolist() == [1, 2, 3]
    assert table[["square", "of"]].to_numpy().tolist() == [[4, "b"], [1, "a"], [1, "b"]]


def test_values_near_the_end_of_their_range_are_named():
    # this is at 4.8 % of the range
    assert near_boundary({"rate": 0.0125, "angle": 0.0}, RANGES) == {"rate": "low"}
    assert near_boundary({"rate": 0.0126, "angle": 1.81}, RANGES) == {"angle": "high"}
    tried = {"C": [1e-4, 1.0, 1e4], "kernel": ["rbf", "linear"], "degree": [3]}
    assert near_boundary({"C": 1.0, "kernel": "rbf", "degree": 3}, tried) == {}
    assert near_boundary({"C": 1e4, "kernel": "rbf", "degree": 3}, tried) == {
        "C": "high"
    }


@pytest.mark.parametrize("ranges", [{}, None, [1], {"x": (1, 2)}])
def test_ranges_of_unknown_parameters_are_named_with_the_known_ones(ranges):
    with pytest.raises(ValueError, match=r"range.*rate, angle"):
        check_ranges(ranges, RANGES)


RANGE = [
    (2, 1),
    (0, 1),
    (1, np.inf),
    3,
    "ab",
    (1, 2, 3),
    (1, 2, "cubic"),
    (1e-101, 1),
    (1, -1, "linear"),
]


@pytest.mark.parametrize("wrong", RANGE, ids=str)
def test_a_bad_range_is_named(wrong):
    with pytest.raises(ValueError, match=r"ranges\['rate'\]"):
        check_ranges({"rate": wrong}, RANGES)


def test_bad_counts_and_seeds_are_named():
    with pytest.raises(ValueError, match="n_configurations is 0"):
        sample_candidates(RANGES, 0, random_state=0)
    with pytest.raises(ValueError, match="random_state is None"):
        sample_candidates(RANGES, 2, random_state=None)


@pytest.mark.parametrize("n_jobs", [0, True, 2**40, 1.0, np.timedelta64(1, "D"), "all"])
def test_a_bad_number_of_processes_is_named(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs is .*-1"):
        in_parallel([], n_jobs)


def test_a_warning_points_to_the_caller_of_the_search():
    with pytest.warns(UserWarning, match="far") as caught:
        in_parallel([delayed(warn_user)("far", UserWarning)])
    assert caught[0].filename == __file__
