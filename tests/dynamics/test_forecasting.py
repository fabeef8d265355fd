"""Forecasts from all earlier matches, compared with refits at every time. They cost one
sweep."""

import warnings
from functools import partial

import numpy as np
import pytest
from dynamics.problems import both_methods, matches_of, random_design
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Logit,
    Matern12,
    Matern32,
    OrdinalProbit,
    Poisson,
    Probit,
    Wiener,
    one_step_ahead,
)
from preflearn.matches import Matches

CASES = {
    "probit": (Constant(0.3) + Matern12(0.8, 20.0), Probit()),
    "ties": (Matern32(1.0, 15.0), OrdinalProbit(margin=0.3)),
    "logit": (Constant(0.5) + Wiener(0.02, "first"), Logit()),
    "points": (Matern12(1.0, 10.0), Gaussian(2.0)),
    "counts": (Matern12(0.3, 10.0), Poisson()),
}


def season(seed, likelihood, n=120, n_players=7, n_times=30):
    """Return matches at repeated times, such as days."""
    rng = np.random.default_rng(seed)
    design = random_design(rng, n, n_players)
    time = np.sort(rng.integers(0, n_times, n)).astype(float)
    d = design @ np.linspace(-1, 1, n_players) + rng.normal(size=n)
    if isinstance(likelihood, Poisson):
        return matches_of(design, time), rng.poisson(np.exp(0.5 * d))
    if isinstance(likelihood, Gaussian):
        return matches_of(design, time), d
    return matches_of(design, time), np.sign(d) * (
        np.abs(d) >= (0.3 if likelihood.has_ties else 0.0)
    )


def refits(model, matches, y, weights, offset, start):
    """Return forecasts of fits to convergence, one for each match."""
    found = []
    for n in range(start, len(matches)):
        earlier = slice(np.searchsorted(matches.time, matches.time[n]))
        model.fit(matches[earlier], y[earlier], weights[earlier], offset[earlier])
        asked = matches[[n]], offset[[n]]
        found.append((model.predict_proba(*asked)[0], *model.moments(*asked)))
    return [np.array(parts) for parts in zip(*found, strict=True)]


@both_methods
@pytest.mark.parametrize("case", CASES)
def test_forecasts_are_those_of_refits(case, method):
    covariance, likelihood = CASES[case]
    matches, y = season(0, likelihood)
    weights = np.arange(120) % 3 + 0.5
    offset = 0.3 * np.random.default_rng(1).normal(size=120)
    model = DynamicComparisons(
        covariance, likelihood, method, tol=1e-9, mean={"f0": 0.8, "f3": -0.5}
    )
    probabilities, mean, variance = refits(
        model, matches, y, weights, offset, start=108
    )
    ahead = partial(
        one_step_ahead, model, matches, y, 108, sample_weight=weights, offset=offset
    )
    tight = ahead(tol=1e-4)
    np.testing.assert_allclose(tight.probabilities, probabilities, atol=2e-3)
    np.testing.assert_allclose(tight.mean, mean[:, 0], atol=5e-3)
    np.testing.assert_allclose(tight.variance, variance[:, 0], rtol=5e-3)
    assert tight.residual.shape == (len(np.unique(matches.time[108:])),)
    assert tight.residual.max() <= 1e-4
    if case == "probit":
        loose = ahead()
        np.testing.assert_allclose(loose.probabilities, probabilities, atol=0.02)
        assert 1e-4 < loose.residual.max() <= 0.02


def test_later_matches_change_no_forecast():
    covariance, likelihood = CASES["ties"]
    matches, y = season(1, likelihood)
    model = DynamicComparisons(covariance, likelihood)
    other = np.array(y)
    day = np.searchsorted(matches.time, matches.time[100])
    other[day:] = -other[day:]
    found, changed = (
        one_step_ahead(model, matches, outcomes, 80) for outcomes in (y, other)
    )
    end = np.searchsorted(matches.time, matches.time[100], side="right") - 80
    np.testing.assert_array_equal(
        found.probabilities[:end], changed.probabilities[:end]
    )
    assert np.any(found.probabilities[end:] != changed.probabilities[end:])


def test_the_number_of_threads_changes_nothing():
    covariance, likelihood = CASES["probit"]
    matches, y = season(3, likelihood, n=9000, n_players=60, n_times=40)
    found = [
        one_step_ahead(
            DynamicComparisons(covariance, likelihood, n_threads=n), matches, y, 8000
        )
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(found[0].mean, found[1].mean)


def test_sweeps_that_oscillate_are_damped():
    """Plain sweeps at rate 1 oscillate for consecutive logit matches with prior
    variance 64."""
    matches = Matches(np.tile([1.0, -1.0], (12, 1)), np.arange(12.0), ["a", "b"])
    model = DynamicComparisons(Constant(64.0), Logit(), "kl")
    found = one_step_ahead(model, matches, np.ones(12), 1, tol=1e-4)
    known = matches, np.ones(12), np.ones(12), np.zeros(12)
    wanted, *_ = refits(
        DynamicComparisons(Constant(64.0), Logit(), "kl", tol=1e-9), *known, start=1
    )
    np.testing.assert_allclose(found.probabilities, wanted, atol=0.02)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"start": 0}, "start is 0"),
        ({"start": True}, "start is True"),
        ({"start": 1}, "start is 1"),  # this match is on the first day
        ({"model": "Elo"}, "model"),
        ({"tol": 0}, "tol"),
        ({"y": np.where(np.arange(120) == 110, 3, 1)}, r"y\[110\]"),
        (
            {"matches": matches_of([[1.0, -1.0]] * 119 + [[1e80, -1e80]])},
            "deviation of a score",
        ),
    ],
)
def test_bad_input(changes, named):
    """In the last case, the input is bad in a later match."""
    matches, _ = season(0, Probit())
    usual = {
        "model": DynamicComparisons(Constant(1.0), Probit()),
        "matches": matches,
        "y": np.ones(120),
    }
    with pytest.raises(ValueError, match=named):
        one_step_ahead(**(usual | {"start": 90} | changes))


@both_methods
@pytest.mark.parametrize("points", [50.0, 1000.0])
def test_the_model_is_fitted_anew_where_sweeps_diverge(points, method):
    """The first step of reverse-KL overshoots to rates of e^19, so the model is fitted
    from the start instead."""
    matches = Matches([[1, -1]] * 6, [0, 1, 1, 2, 3, 3], ["a", "b"])
    y = [0, 0, 0, points, points, 0]
    model = DynamicComparisons(Constant(10.0), Poisson(), method)
    found = one_step_ahead(model, matches, y, 3)
    wanted = model.fit(matches[:4], y[:4]).moments(matches[4:])[0]
    np.testing.assert_allclose(found.mean[1:], wanted, rtol=1e-3)


@pytest.mark.filterwarnings("error")
def test_small_rates_warn_where_they_do_not_converge():
    matches, y = season(5, Probit(), n=60, n_players=6, n_times=60)

    def ahead(**options):
        return one_step_ahead(
            DynamicComparisons(Constant(1.0), Probit(), **options), matches, y, 50
        )

    np.testing.assert_allclose(
        ahead(rate=0.02, max_iter=10_000).mean, ahead().mean, atol=0.05
    )
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        assert ahead(rate=1e-4, max_iter=2).residual.max() > 0.02


def test_lengths_are_judged_by_the_whole_span():
    matches, y = season(6, Probit())
    with warnings.catch_warnings(action="error"):
        one_step_ahead(
            DynamicComparisons(Matern12(1.0, lengthscale=200.0), Probit()),
            matches,
            y,
            8,
        )
