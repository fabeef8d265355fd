import numpy as np
import pytest

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Matern12,
    Matern32,
    Wiener,
)
from preflearn.matches import Matches
from preflearn_book.studies.ch13_weekly import (
    exact_weekly_moments,
    weekly_moments,
    weeks_of,
)

MOVING = Constant(0.5) + Matern12(1.0, lengthscale=4.0)


def season(n=30, n_players=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, n_players))
    for row in X:
        row[rng.choice(n_players, 2, replace=False)] = 1, -1
    time = np.sort(np.round(rng.uniform(0, 20, n), 1))
    return Matches(X, time, [f"player {m}" for m in range(n_players)]), rng.normal(
        size=n
    )


def dense_moments(covariance, variance, matches, y, week):
    """Condition on all outcomes before the week, by dense matrices."""
    X = matches.design.toarray()
    C = (X @ X.T) * covariance.gram(matches.time)
    before = slice(0, week.start)
    gain = C[week, before] @ np.linalg.inv(
        C[before, before] + variance * np.eye(week.start)
    )
    return gain @ y[before], np.diag(C[week, week] - gain @ C[before, week])


def test_weeks_cover_what_comes_after_the_beginning():
    matches = Matches([[1, -1]] * 7, [0, 1, 5, 5, 9.99, 12, 30], "AB")
    assert weeks_of(matches, 5, 5) == [slice(2, 5), slice(5, 6), slice(6, 7)]
    assert weeks_of(matches, 1.5, 100) == [slice(2, 7)]
    # a match at a boundary belongs to the later week
    boundaries = Matches([[1, -1]] * 3, [0, 7, 14], "AB")
    assert weeks_of(boundaries, 0, 7) == [slice(0, 1), slice(1, 2), slice(2, 3)]


@pytest.mark.parametrize(
    "covariance",
    [MOVING, Constant(2.0) + Wiener(0.3, origin=0.0), Matern32(1.0, lengthscale=3.0)],
    ids=repr,
)
@pytest.mark.parametrize("all_weeks", [True, False])
def test_one_filter_is_gaussian_conditioning(covariance, all_weeks):
    matches, y = season()
    weeks = weeks_of(matches, 8.0, 3.0) if all_weeks else [slice(10, 13), slice(20, 22)]
    found = exact_weekly_moments(covariance, 0.7, matches, y, weeks)
    expected = [dense_moments(covariance, 0.7, matches, y, week) for week in weeks]
    for part, dense in zip(
        found, map(np.concatenate, zip(*expected, strict=True)), strict=True
    ):
        np.testing.assert_allclose(part, dense, atol=1e-10)


def test_a_week_is_forecast_from_all_earlier_weeks_and_no_later_one():
    matches, y = season()
    weeks = weeks_of(matches, 8.0, 3.0)
    model = DynamicComparisons(MOVING, Gaussian(0.7), tol=1e-10)
    mean, variance = weekly_moments(model, matches, y, weeks)
    assert not hasattr(model, "matches_")
    week = weeks[1]
    own = model.fit(matches[: week.start], y[: week.start]).moments(matches[week])
    place = slice(week.start - weeks[0].start, week.stop - weeks[0].start)
    np.testing.assert_array_equal(mean[place], own[0])
    np.testing.assert_array_equal(variance[place], own[1])


@pytest.mark.parametrize("method", ["ep", "kl"])
def test_mean_field_has_the_exact_means_and_other_variances(method):
    matches, y = season(seed=3)
    weeks = weeks_of(matches, 8.0, 3.0)
    exact = exact_weekly_moments(MOVING, 0.7, matches, y, weeks)
    model = DynamicComparisons(MOVING, Gaussian(0.7), method, tol=1e-11)
    mean, variance = weekly_moments(model, matches, y, weeks)
    np.testing.assert_allclose(mean, exact[0], atol=1e-8)
    assert np.abs(variance / exact[1] - 1).max() > 0.01
