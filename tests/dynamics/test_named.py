"""The names of hyperparameters, and the random search over them."""

import math
import re
import warnings

import numpy as np
import pytest
from dynamics.problems import MOVING, small, telling

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Matern12,
    OrdinalProbit,
    Periodic,
    Poisson,
    Probit,
    Skellam,
    Wiener,
    maximise_evidence,
    parameters_of,
    random_search,
    with_parameters,
)
from preflearn.matches import TimeWarning


def test_names_are_readable_and_unique():
    covariance = Constant(1.0) + Matern12(2.0, 3.0) * Periodic(4.0, 5.0, 6.0) + Matern12(7.0, 8.0)
    found = parameters_of(DynamicComparisons(covariance, OrdinalProbit(margin=0.4)))
    assert found == {
        "Constant.variance": 1.0,
        "Matern12.variance": 2.0,
        "Matern12.lengthscale": 3.0,
        "Periodic.variance": 4.0,
        "Periodic.lengthscale": 5.0,
        "Periodic.period": 6.0,
        "Matern12_2.variance": 7.0,
        "Matern12_2.lengthscale": 8.0,
        "likelihood.margin": 0.4,
    }


def test_names_of_a_mapping_begin_with_the_feature():
    covariance = {"advantage": Constant(1.0), ("a", "b"): Constant(2.0), "*": Wiener(3.0, "first")}
    found = parameters_of(DynamicComparisons(covariance, Gaussian(variance=4.0, margin=0.5)))
    assert list(found) == [
        "advantage: Constant.variance",
        "('a', 'b'): Constant.variance",
        "*: Wiener.variance",
        "likelihood.variance",
    ]
    twice = DynamicComparisons({1: Constant(), "1": Constant()}, Probit())
    with pytest.raises(
        ValueError, match=r"the name of two parameters is '1: Constant.variance'; expected .* print"
    ):
        parameters_of(twice)


def test_values_go_where_their_names_say():
    covariance = {"advantage": Constant(1.0), "*": Constant(2.0) + Matern12(3.0, 4.0)}
    model = DynamicComparisons(covariance, Skellam(1.4), "kl", tol=1e-4)
    changed = with_parameters(model, {"*: Matern12.lengthscale": 9, "likelihood.base_rate": 1.5})
    assert changed.covariance == {"advantage": Constant(1.0), "*": Constant(2.0) + Matern12(3.0, 9.0)}
    assert (changed.likelihood, changed.method, changed.tol) == (Skellam(1.5), "kl", 1e-4)
    assert model.covariance == covariance

    def refused(message, values):
        with pytest.raises(ValueError, match=message):
            with_parameters(model, values)

    for wrong in (0, -1.0, np.nan, "1", True):
        refused(
            r"advantage: Constant.variance is .*; expected a positive number",
            {"advantage: Constant.variance": wrong},
        )
    refused("a parameter is 'Matern.variance'; expected one of advantage: Const", {"Matern.variance": 1.0})
    refused("values is None; expected a mapping of names to numbers", None)
    with pytest.raises(ValueError, match="model is Probit"):
        parameters_of(Probit())


RANGES = {"Matern12.variance": (0.01, 10.0), "Matern12.lengthscale": (0.1, 100.0)}


def test_search_is_reproducible_for_any_number_of_processes():
    matches, y = small(n=40, outcomes=(1, -1))
    model = DynamicComparisons(MOVING, Probit())
    one = random_search(model, matches, y, RANGES, 20, random_state=5)
    two = random_search(model, matches, y, RANGES, 20, random_state=np.random.default_rng(5), n_jobs=2)
    assert one.configurations.equals(two.configurations)
    assert one.model.log_marginal_likelihood_ == two.model.log_marginal_likelihood_
    other = random_search(model, matches, y, RANGES, 20, random_state=6)
    assert not one.configurations.equals(other.configurations)


def test_search_keeps_the_best_and_all_others():
    matches, y = small(n=40, outcomes=(1, -1))
    model = DynamicComparisons(MOVING, Probit())
    found = random_search(model, matches, y, RANGES, 200, random_state=0)
    table = found.configurations
    assert list(table) == [*RANGES, "evidence", "converged", "n_iter", "error"]
    for name, (low, high) in RANGES.items():
        place = (np.log(table[name]) - math.log(low)) / math.log(high / low)
        assert place.between(0, 1).all()
        assert abs(place.mean() - 0.5) < 0.08  # four standard errors, of uniform draws
    assert found.best == table["evidence"].argmax()
    best = table.iloc[found.best]
    assert found.model.covariance == Constant(0.3) + Matern12(*best[list(RANGES)])
    assert found.model.log_marginal_likelihood_ == best["evidence"]
    again = with_parameters(model, table.loc[7, list(RANGES)].to_dict()).fit(matches, y)
    assert again.log_marginal_likelihood_ == table.loc[7, "evidence"]


def test_search_says_where_the_best_is_near_the_boundary():
    matches, y = small(n=40, outcomes=(1, -1))  # random outcomes: the less variance, the better
    model = DynamicComparisons(Constant(1.0), Probit())
    found = random_search(model, matches, y, {"Constant.variance": (0.5, 50)}, 60, random_state=0)
    assert found.near_boundary == {"Constant.variance": "low"}
    matches, y = telling(margin=0)
    best = maximise_evidence(model, matches, y).parameters["Constant.variance"]
    around = {"Constant.variance": (best / 20, best * 20)}
    assert random_search(model, matches, y, around, 60, random_state=0).near_boundary == {}


def test_search_loses_nothing_by_a_failure():
    matches, y = small(n=40, outcomes=(0, 1, 3))
    model = DynamicComparisons(Constant(1.0), Poisson(), "kl")
    found = random_search(model, matches, y, {"Constant.variance": (0.1, 1e90)}, 20, random_state=0)
    table = found.configurations
    failed = table["error"] != ""
    assert 0 < failed.sum() < 20
    assert table.loc[failed, "evidence"].isna().all()
    assert table.loc[failed, "error"].str.contains("expected").all()
    assert table.loc[found.best, "converged"]
    with pytest.raises(ValueError, match=r"none of 3 configurations converged .*deviation"):
        random_search(model, matches, y, {"Constant.variance": (1e88, 1e90)}, 3, random_state=0)
    model.set_params(max_iter=1)
    with pytest.raises(ValueError, match=r"none of 3 configurations converged .*too few sweeps"):
        random_search(model, matches, y, {"Constant.variance": (0.1, 0.2)}, 3, random_state=0)


def test_bad_input_of_the_search():
    """What is wrong with ranges, seeds and processes is said by ground/search.py."""
    matches, y = small(n=40, outcomes=(1, -1))
    model = DynamicComparisons(Constant(1.0), Probit())
    with pytest.raises(ValueError, match=r"a parameter with a range is 'x'; expected one of Const"):
        random_search(model, matches, y, {"x": (1, 2)}, 3, random_state=0)
    with pytest.raises(ValueError, match="model is None"):
        random_search(None, matches, y, {"Constant.variance": (1, 2)}, 3, random_state=0)


YEARS = {"Matern12.lengthscale": (1e-5, 1e-4)}


@pytest.mark.parametrize(
    ("ranges", "warned"),
    [
        (YEARS, "lengthscale 0.0001 is very short"),
        ({"Matern12.lengthscale": (1e5, 1e6)}, "lengthscale 100000 is very long"),
        ({"Matern12.lengthscale": (1e-5, 1e6)}, None),
        ({"Matern12.variance": (0.1, 1.0)}, None),
    ],
)
def test_a_search_warns_once_where_all_lengths_are_absurd(ranges, warned):
    matches, y = small(n=40, outcomes=(1, -1))
    model = DynamicComparisons(MOVING, Probit())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        random_search(model, matches, y, ranges, 12, random_state=0)
    assert len(caught) == (warned is not None)
    for warning in caught:
        assert warning.category is TimeWarning
        assert re.search(warned, str(warning.message))


def test_a_search_has_the_weights_and_offsets_of_a_fit():
    matches, y = small(n=30)
    weights, offset = np.arange(30) % 3, np.random.default_rng(0).normal(size=30)
    several = np.repeat(np.arange(30), weights)
    ask = {"Constant.variance": (0.1, 10.0)}, 5
    model = DynamicComparisons(Constant(1.0), OrdinalProbit(0.5), tol=1e-9)
    found = random_search(model, matches, y, *ask, sample_weight=weights, offset=offset, random_state=0)
    twice = random_search(model, matches[several], y[several], *ask, offset=offset[several], random_state=0)
    np.testing.assert_allclose(found.configurations["evidence"], twice.configurations["evidence"], rtol=1e-9)
    np.testing.assert_array_equal(found.model.played_[:, 1:], np.column_stack([weights, offset]))
