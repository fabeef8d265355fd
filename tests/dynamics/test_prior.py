"""Which covariance each feature has, and length scales that are absurd for the span of the data."""

import warnings

import numpy as np
import pytest
from dynamics.problems import NAMES, PRIOR, fit_small, small

from preflearn.dynamics import Constant, DynamicComparisons, Matern12, OrdinalProbit, Periodic, Probit
from preflearn.matches import Matches

DAYS = Matches([[1, -1], [1, -1], [-1, 1]], [-8000.0, 3000.0, 18_000.0], ["a", "b"])


def fit(covariance, matches=DAYS):
    return DynamicComparisons(covariance, Probit()).fit(matches, [1, -1, 1])


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (Constant(1.0) + Matern12(1.0, lengthscale=3.3), "lengthscale 3.3 is very short"),
        (Matern12(1.0, lengthscale=3.3e6), "lengthscale 3.3e.06 is very long"),
        (Matern12(1.0, 1000.0) * Periodic(1.0, 1.0, period=1.0), "period 1 is very short"),
        ({"a": Constant(1.0), "*": Matern12(1.0, 2.0)}, "lengthscale 2 is very short"),
    ],
)
def test_absurd_lengths_are_named(covariance, message):
    with pytest.warns(UserWarning, match=message + r".* span 26000, from -8000 to 18000; .* between 26 and"):
        fit(covariance)


@pytest.mark.parametrize("covariance", [Constant(2.0), Matern12(1.0, 1200.0), Periodic(1.0, 1.0, 365.25)])
def test_sensible_lengths_are_not(covariance):
    with warnings.catch_warnings(action="error"):
        fit(covariance)
        fit(covariance, Matches(DAYS.design, [5.0, 5.0, 5.0], ["a", "b"]))  # no span


def test_a_mapping_that_changes_after_the_fit_changes_nothing():
    covariance = {"Ann": Constant(1.0), "*": PRIOR}
    model = fit_small(covariance)
    ask = Matches([[1.0, -1.0]], [12.0], ["Zoe", "Ann"])
    before = model.moments(ask)
    covariance["*"] = Constant(100.0)
    np.testing.assert_array_equal(model.moments(ask), before)


def test_a_covariance_of_what_is_no_feature_is_warned_of():
    matches, y = small()
    covariance, likelihood = {"Zoe": Constant(2.0), "*": Constant(1.0)}, OrdinalProbit(0.4)
    with pytest.warns(UserWarning, match=r"covariance names \['Zoe'\], but no match has") as found:
        model = DynamicComparisons(covariance, likelihood).fit(matches, y)
    assert found[0].filename == __file__
    later = Matches([[1, -1]], [matches.time[-1]], ["Zoe", "Ann"])
    with warnings.catch_warnings(action="error"):
        model.update(later, [1])
        DynamicComparisons(covariance | {"Ann": Constant(3.0)}, likelihood).fit(later, [1])
    assert model.features_ == (*NAMES, "Zoe")
