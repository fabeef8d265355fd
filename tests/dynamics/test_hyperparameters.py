"""The names of hyperparameters, and the random search over them."""

import math
import warnings

import numpy as np
import pytest
from dynamics.problems import MOVING, informative, small

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Matern12,
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


def test_names_are_those_of_features_classes_and_parameters():
    covariance = {
        "advantage": Constant(1.0),
        ("a", "b"): Matern12(2.0, 3.0) * Periodic(4.0, 5.0, 6.0) + Matern12(7.0, 8.0),
        "*": Wiener(9.0, "first"),
    }
    found = parameters_of(
        DynamicComparisons(covariance, Gaussian(variance=10.0, margin=0.5))
    )
    assert found == {
        "advantage: Constant.variance": 1.0,
        "('a', 'b'): Matern12.variance": 2.0,
        "('a', 'b'): Matern12.lengthscale": 3.0,
        "('a', 'b'): Periodic.variance": 4.0,
        "('a', 'b'): Periodic.lengthscale": 5.0,
        "('a', 'b'): Periodic.period": 6.0,
        "('a', 'b'): Matern12_2.variance": 7.0,
        "('a', 'b'): Matern12_2.lengthscale": 8.0,
        "*: Wiener.variance": 9.0,
        "likelihood.variance": 10.0,
    }
    twice = DynamicComparisons({1: Constant(), "1": Constant()}, Probit())
    with pytest.raises(ValueError, match=r"1: Constant\.variance"):
        parameters_of(twice)


def test_values_go_where_their_names_say():
    covariance = {"advantage": Constant(1.0), "*": Constant(2.0) + Matern12(3.0, 4.0)}
    model = DynamicComparisons(covariance, Skellam(1.4), "kl", tol=1e-4)
    changed = with_parameters(
        model, {"*: Matern12.lengthscale": 9, "likelihood.base_rate": 1.5}
    )
    assert changed.covariance == {
        "advantage": Constant(1.0),
        "*": Constant(2.0) + Matern12(3.0, 9.0),
    }
    assert (changed.likelihood, changed.method, changed.tol) == (
        Skellam(1.5),
        "kl",
        1e-4,
    )
    assert model.covariance == covariance

    for values, named in (
        ({"*: Constant.variance": -1.0}, r"\*: Constant\.variance"),
        ({"*: Constant.variance": True}, r"\*: Constant\.variance"),
        ({"Matern.variance": 1.0}, r"Matern\.variance"),
        (None, "values"),
    ):
        with pytest.raises(ValueError, match=named):
            with_parameters(model, values)
    with pytest.raises(ValueError, match="model"):
        parameters_of(Probit())


RANGES = {"Matern12.variance": (0.01, 10.0), "Matern12.lengthscale": (0.1, 100.0)}


@pytest.mark.nightly
def test_search_is_reproducible_for_any_number_of_processes():
    matches, y = small(n=40, outcomes=(1, -1))
    model = DynamicComparisons(MOVING, Probit())
    one, two, other = (
        random_search(model, matches, y, RANGES, 9, random_state=seed, n_jobs=n)
        for seed, n in ((5, 1), (np.random.default_rng(5), 2), (6, 1))
    )
    assert one.configurations.equals(two.configurations)
    assert one.model.log_marginal_likelihood_ == two.model.log_marginal_likelihood_
    assert not one.configurations.equals(other.configurations)


def test_search_keeps_the_best_and_all_others():
    matches, y = small(n=40, outcomes=(1, -1))
    model = DynamicComparisons(MOVING, Probit())
    known = {
        "sample_weight": np.arange(40) % 3,
        "offset": np.random.default_rng(0).normal(size=40),
    }
    found = random_search(model, matches, y, RANGES, 60, random_state=0, **known)
    table = found.configurations
    for name, (low, high) in RANGES.items():
        place = (np.log(table[name]) - math.log(low)) / math.log(high / low)
        assert place.between(0, 1).all()
        assert abs(place.mean() - 0.5) < 0.15  # four standard errors for uniform draws
    assert found.best == table["evidence"].argmax()
    best = table.iloc[found.best]
    assert found.model.covariance == Constant(0.3) + Matern12(*best[list(RANGES)])
    assert found.model.log_marginal_likelihood_ == best["evidence"]
    again = with_parameters(model, table.loc[7, list(RANGES)].to_dict()).fit(
        matches, y, **known
    )
    assert again.log_marginal_likelihood_ == table.loc[7, "evidence"]


def test_search_says_where_the_best_is_near_the_boundary():
    # random outcomes, for which the smallest variance is best
    matches, y = small(n=40, outcomes=(1, -1))
    model = DynamicComparisons(Constant(1.0), Probit())
    found = random_search(
        model, matches, y, {"Constant.variance": (0.5, 50)}, 60, random_state=0
    )
    assert found.near_boundary == {"Constant.variance": "low"}
    matches, y = informative(margin=0)
    best = maximise_evidence(model, matches, y).parameters["Constant.variance"]
    around = {"Constant.variance": (best / 20, best * 20)}
    assert (
        random_search(model, matches, y, around, 60, random_state=0).near_boundary == {}
    )


def test_search_loses_nothing_by_a_failure():
    matches, y = small(n=40, outcomes=(0, 1, 3))
    model = DynamicComparisons(Constant(1.0), Poisson(), "kl")
    found = random_search(
        model, matches, y, {"Constant.variance": (0.1, 1e90)}, 20, random_state=0
    )
    table = found.configurations
    failed = table["error"] != ""
    assert 0 < failed.sum() < 20
    assert table.loc[failed, "evidence"].isna().all()
    assert table.loc[failed, "error"].str.contains("deviation").all()
    assert table.loc[found.best, "converged"]
    with pytest.raises(ValueError, match="deviation"):
        random_search(
            model, matches, y, {"Constant.variance": (1e88, 1e90)}, 3, random_state=0
        )
    model.set_params(max_iter=1)
    with pytest.raises(ValueError, match="max_iter"):
        random_search(
            model, matches, y, {"Constant.variance": (0.1, 0.2)}, 3, random_state=0
        )


def test_bad_input_of_the_search():
    matches, y = small(n=40, outcomes=(1, -1))
    model = DynamicComparisons(Constant(1.0), Probit())
    for wrong, name, named in (
        (model, "x", "'x'"),
        (None, "Constant.variance", "model"),
    ):
        with pytest.raises(ValueError, match=named):
            random_search(wrong, matches, y, {name: (1, 2)}, 3, random_state=0)


@pytest.mark.parametrize(
    ("name", "low", "high", "n_warnings"),
    [
        ("lengthscale", 1e-5, 1e-4, 1),
        ("lengthscale", 1e5, 1e6, 1),
        ("lengthscale", 1e-5, 1e6, 0),
        ("variance", 0.1, 1.0, 0),
    ],
)
def test_a_search_warns_once_where_all_lengths_are_absurd(name, low, high, n_warnings):
    matches, y = small(n=40, outcomes=(1, -1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranges = {f"Matern12.{name}": (low, high)}
        random_search(
            DynamicComparisons(MOVING, Probit()), matches, y, ranges, 5, random_state=0
        )
    assert [warning.category for warning in caught] == [TimeWarning] * n_warnings
