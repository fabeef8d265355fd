"""Covariances of the features, and lengths, rates, and origins that do not suit the
times."""

import warnings

import numpy as np
import pytest
from dynamics.problems import NAMES, PRIOR, fit_small, small
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Linear,
    Matern12,
    Periodic,
    Probit,
    Wiener,
)
from preflearn.matches import Matches, TimeWarning, UnseenWarning

TIMES = {
    "days": 18262.0 + np.arange(0, 400, 10.0),  # days of 2020, counted since 1970
    "days of 16 years": 12418.0 + 365.25 * np.arange(0, 16, 0.1),
    "milliseconds": 86_400_000 * (18262.0 + np.arange(0, 400, 10.0)),
    "years": 2004 + np.arange(0, 16, 0.1),
    "one day": np.full(9, 18262.0),
}


def season(time):
    rng = np.random.default_rng(0)
    design = np.array([rng.permutation([1.0, -1.0, 0.0]) for _ in time])
    return Matches(design, time, ["a", "b", "c"]), rng.choice([1, -1], len(time))


def fit(covariance, unit="days", **options):
    return DynamicComparisons(covariance, Probit(), **options).fit(*season(TIMES[unit]))


@pytest.mark.parametrize(
    ("covariance", "unit", "named"),
    [
        (Constant(1.0) + Matern12(1.0, lengthscale=0.3), "days", "lengthscale=0.3 "),
        (Matern12(1.0, lengthscale=4e4), "days", "lengthscale=40000 "),
        (Matern12(1.0, 100.0) * Periodic(1.0, 1.0, period=0.1), "days", "period=0.1 "),
        ({"a": Constant(1.0), "*": Matern12(1.0, 0.2)}, "days", "lengthscale=0.2 "),
        (Matern12(1.0, lengthscale=2 * 365.25), "years", "lengthscale=730.5 "),
        (Constant(1.0) + Wiener(0.2 / 365.25), "years", r"variance=0\.000547"),
        (Constant(1.0) + Wiener(0.01), "milliseconds", r"variance=0\.01.*unit='ms'"),
        # with the origin in 1970, the prior deviation at the first match of 2020 is
        # 4.39 or 183
        (
            Constant(1.0) + Wiener(1e-3, origin=0.0),
            "days",
            "deviation 4.39.* origin='first'",
        ),
        (
            Constant(1.0) + Linear(1e-4, origin=0.0),
            "days",
            "deviation 183.* origin='first'",
        ),
        (Affine(1.0, 1e-4, origin=0.0), "days", "deviation 183.* origin='first'"),
        # without a constant, a new player had a score of exactly 0 with no uncertainty,
        # even after a win
        (Wiener(0.01), "days", r"Constant\(variance\)"),
        (Linear(1e-4), "days", r"Constant\(variance\)"),
        (Wiener(0.01) * Constant(2.0), "days", r"Constant\(variance\)"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_does_not_suit_the_times_is_warned_of(covariance, unit, named):
    with pytest.warns(TimeWarning, match=named) as found:
        fit(covariance, unit, max_iter=2)
    assert found[0].filename == __file__


@pytest.mark.parametrize(
    ("covariance", "unit"),
    [
        (Constant(2.0), "days"),
        (Matern12(1.0, 100.0), "days"),
        (Matern12(1.0, 100.0), "one day"),
        (Periodic(1.0, 1.0, 365.25), "days"),
        (Constant(1.0) + Wiener(0.2), "years"),
        (Constant(1.0) + Wiener(0.2 / 365.25), "days of 16 years"),
        *(
            (Constant(1.0) + process(1e-3, origin=origin), "days")
            for process in (Wiener, Linear)
            for origin in ("first", 18261.0)
        ),
    ],
    ids=repr,
)
def test_what_suits_the_times_is_not_warned_of(covariance, unit):
    with warnings.catch_warnings(action="error"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit(covariance, unit, max_iter=2)


def weekly(n_rounds=40):
    """Return four players, each with a match every 7 days."""
    rounds = [[[1.0, -1, 0, 0], [0, 0, 1, -1]], [[1, 0, -1, 0], [0, 1, 0, -1]]]
    rows = np.reshape([rounds[k % 2] for k in range(n_rounds)], (-1, 4))
    time = 18262.0 + 7 * np.repeat(np.arange(n_rounds), 2)
    matches = Matches(rows, time, ["a", "b", "c", "d"])
    return matches, np.resize([1, -1, -1], len(rows))


@pytest.mark.parametrize(
    ("covariance", "named"),
    [
        (Constant(1.0) + Matern12(1.0, lengthscale=2.0), "lengthscale=2 .* 7,"),
        ({"a": Matern12(1.0, 1.5), "*": Constant(1.0)}, "lengthscale=1.5 "),
        ({"a": Constant(1.0), "*": Matern12(1.0, 1.5)}, "lengthscale=1.5 "),
        (Matern12(1.0, lengthscale=2 * 365.25), None),
        (Matern12(1.0, lengthscale=7.5), None),
        (Matern12(1.0, 100.0) * Periodic(1.0, 1.0, period=5.0), None),
    ],
)
def test_lengths_in_years_are_warned_of_where_times_are_days(covariance, named):
    matches, y = weekly()
    model = DynamicComparisons(covariance, Probit())
    if named is None:
        with warnings.catch_warnings(action="error"):
            model.fit(matches, y)
        return
    with pytest.warns(TimeWarning, match=named) as found:
        model.fit(matches, y)
    assert found[0].filename == __file__


def test_updates_are_warned_of_units_too():
    matches, y = season(np.arange(40.0))
    model = DynamicComparisons(Constant(1.0) + Wiener(0.01), Probit()).fit(matches, y)
    later = Matches(
        matches.design, 86_400_000 * (18262 + matches.time), matches.features
    )
    with pytest.warns(TimeWarning, match="unit='ms'"):
        model.update(later, y)


def test_a_mapping_that_changes_after_the_fit_changes_nothing():
    covariance = {"Ann": Constant(1.0), "*": PRIOR}
    model = fit_small(covariance)
    ask = Matches([[1.0, -1.0]], [12.0], ["Zoe", "Ann"])
    before = model.moments(ask)
    covariance["*"] = Constant(100.0)
    np.testing.assert_array_equal(model.moments(ask), before)


def test_a_covariance_of_what_is_no_feature_is_warned_of():
    matches, y = small(outcomes=(1, -1))
    covariance = {"Zoe": Constant(2.0), "*": Constant(1.0)}
    with pytest.warns(UnseenWarning, match="covariance names 'Zoe'"):
        model = DynamicComparisons(covariance, Probit()).fit(matches, y)
    later = Matches([[1, -1]], [matches.time[-1]], ["Zoe", "Ann"])
    with warnings.catch_warnings(action="error"):
        model.update(later, [1])
        DynamicComparisons(covariance | {"Ann": Constant(3.0)}, Probit()).fit(
            later, [1]
        )
    assert model.features_ == (*NAMES, "Zoe")
