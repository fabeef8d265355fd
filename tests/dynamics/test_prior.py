"""Length scales that are absurd for the span of the data are named, with the span."""

import warnings

import pytest

from preflearn.dynamics import Constant, DynamicComparisons, Matern12, Periodic, Probit
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
