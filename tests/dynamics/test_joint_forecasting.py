"""Forecasts of the joint posterior: dense algebra and a new fit at every time."""

import numpy as np
import pandas as pd
import pytest
from dynamics import dense
from dynamics.problems import (
    MOVING,
    both_methods,
    every_covariance,
    every_likelihood,
    matches_of,
    random_design,
    random_matches,
    with_three_covariances,
)
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Lapse,
    Logit,
    OrdinalProbit,
    Poisson,
    Probit,
    StudentT,
    one_step_ahead,
)
from preflearn.dynamics.engine import joint
from preflearn.matches import Matches

NOISE = 0.6
both_kinds = pytest.mark.parametrize("covariance", [Constant(0.8), MOVING], ids=repr)


def model_of(covariance, likelihood, method="ep", **options):
    return DynamicComparisons(
        covariance, likelihood, method, posterior="joint", **options
    )


def gram_of(matches, covariance):
    """The prior covariance of z = x·s of all matches."""
    problem = dense.Problem(matches, covariance)
    return problem.design @ problem.gram @ problem.design.T


def days(time, start):
    """Rows of each day from that of row `start` on, as (first, end)."""
    for day in np.unique(time[time >= time[start]]):
        yield np.searchsorted(time, day), np.searchsorted(time, day, side="right")


# ---- Dense algebra


def exact_forecasts(G, y, variance, time, start):
    """Conditional Gaussians of z at each day given y = z + noise of earlier days."""
    moments = []
    for first, end in days(time, start):
        past = slice(0, first)
        C = G[past, past] + np.diag(variance[:first])
        gain = np.linalg.solve(C, G[past, first:end]).T
        spread = np.diag(G[first:end, first:end]) - np.sum(
            gain * G[first:end, past], axis=1
        )
        moments.append([gain @ y[:first], spread])
    return np.hstack(moments)


def ep_forecasts(G, density, y, time, start):
    """EP on the matches of earlier days, by dense matrices, from zero at each day."""
    moments = []
    for first, end in days(time, start):
        alpha = np.zeros(end)
        beta = np.zeros(end)
        for _ in range(3000):
            q = dense.state(G[:end, :end], alpha, beta)
            c, v = (part[:first] for part in q.cavity)
            _, d1, d2 = dense.log_partition(density, y[:first], c, v)
            before = alpha.copy()
            alpha[:first] = (d1 - c * d2) / (1 + v * d2)
            beta[:first] = -d2 / (1 + v * d2)
            if np.abs(alpha - before).max() < 1e-13:
                break
        moments.append([q.mean[first:], np.diag(q.covariance)[first:]])
    return np.hstack(moments)


@every_covariance
@pytest.mark.filterwarnings("ignore:lengthscale")
@pytest.mark.parametrize("size", [2, 3])
def test_forecasts_of_gaussian_outcomes_are_exact(covariance, size):
    rng = np.random.default_rng(size)
    matches = random_matches(rng, 25, 6, size, signs=(1.0, -1.0, 0.5)[:size])
    y = rng.normal(size=25)
    start = int(np.searchsorted(matches.time, matches.time[6]))
    found = one_step_ahead(model_of(covariance, Gaussian(NOISE)), matches, y, start)
    G = gram_of(matches, covariance)
    noise = np.full(25, NOISE)
    mean, variance = exact_forecasts(G, y, noise, matches.time, start)
    np.testing.assert_allclose(found.mean, mean, atol=1e-8)
    np.testing.assert_allclose(found.variance, variance, atol=1e-8)
    np.testing.assert_array_equal(found.residual, 0)


@both_kinds
@both_methods
def test_weights_offsets_and_prior_means_of_gaussian_outcomes(covariance, method):
    """A weight divides the variance of the noise; a match of weight 0 does not count."""
    rng = np.random.default_rng(0)
    matches = random_matches(rng, 30, 5)
    y = rng.normal(size=30)
    offset = rng.normal(size=30)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], 30)
    means = {"f0": 0.7, "f2": -0.4}
    found = one_step_ahead(
        model_of(covariance, Gaussian(NOISE), method, mean=means),
        matches,
        y,
        12,
        sample_weight=weight,
        offset=offset,
    )
    shift = matches.design @ np.array([0.7, 0, -0.4, 0, 0]) + offset
    noise = NOISE / np.maximum(weight, 1e-12)
    G = gram_of(matches, covariance)
    mean, variance = exact_forecasts(G, y - shift, noise, matches.time, 12)
    skip = 12 - np.searchsorted(matches.time, matches.time[12])
    np.testing.assert_allclose(found.mean, mean[skip:] + shift[12:], atol=1e-8)
    np.testing.assert_allclose(found.variance, variance[skip:], atol=1e-8)


def test_features_with_different_covariances():
    matches, covariance = with_three_covariances(25)
    y = np.random.default_rng(1).normal(size=25)
    found = one_step_ahead(model_of(covariance, Gaussian(NOISE)), matches, y, 5)
    expected = exact_forecasts(
        gram_of(matches, covariance), y, np.full(25, NOISE), matches.time, 5
    )
    np.testing.assert_allclose([found.mean, found.variance], expected, atol=1e-8)


@every_likelihood
@both_kinds
def test_forecasts_are_those_of_dense_ep(likelihood, density, outcomes, covariance):
    rng = np.random.default_rng(3)
    matches = random_matches(rng, 14, 4)
    y = rng.choice(outcomes, 14)
    start = int(np.searchsorted(matches.time, matches.time[7]))
    model = model_of(covariance, likelihood)
    found = one_step_ahead(model, matches, y, start, tol=1e-11)
    G = gram_of(matches, covariance)
    expected = ep_forecasts(G, density, y, matches.time, start)
    np.testing.assert_allclose([found.mean, found.variance], expected, atol=1e-8)


# ---- The definition: a new fit at every time


def season(seed, likelihood, n=90, n_players=6, n_times=25):
    """Matches on days; the last player enters late."""
    rng = np.random.default_rng(seed)
    early = random_design(rng, n // 2, n_players - 1)
    late = random_design(rng, n - n // 2, n_players)
    design = np.vstack([np.pad(early, [(0, 0), (0, 1)]), late])
    time = np.sort(rng.integers(0, n_times, n)).astype(float)
    d = design @ np.linspace(-1, 1, n_players) + rng.normal(size=n)
    if isinstance(likelihood, Poisson):
        return matches_of(design, time), rng.poisson(np.exp(0.5 * d))
    if isinstance(likelihood, Gaussian | StudentT):
        return matches_of(design, time), 2 * d
    margin = 0.3 if likelihood.has_ties else 0.0
    return matches_of(design, time), np.sign(d) * (np.abs(d) >= margin)


def refits(model, matches, y, weights, offset, start):
    """Forecasts of a fit to convergence at each time."""
    found = []
    for first, end in days(matches.time, start):
        earlier = slice(0, first)
        model.fit(matches[earlier], y[earlier], weights[earlier], offset[earlier])
        asked = matches[first:end], offset[first:end], "ignore"
        found.append(
            np.column_stack([*model.moments(*asked), model.predict_proba(*asked)])
        )
    return np.vstack(found)


CASES = {
    "points": Gaussian(2.0, margin=0.5),
    "probit": Probit(),
    "ties": OrdinalProbit(margin=0.3),
    "logit": Logit(),
    "counts": Poisson(),
    "lapses": Lapse(Probit(), 0.05),
    "outliers": StudentT(1.0, 4.0),
}


@both_methods
@both_kinds
@pytest.mark.parametrize("case", CASES)
def test_forecasts_are_those_of_new_fits(case, covariance, method):
    likelihood = CASES[case]
    matches, y = season(0, likelihood)
    weights = np.arange(90) % 3 + (0.5 if likelihood.log_concave else 0.0)
    offset = 0.3 * np.random.default_rng(1).normal(size=90)
    start = int(np.searchsorted(matches.time, matches.time[65]))
    options = {"mean": {"f0": 0.8, "f3": -0.5}, "max_iter": 3000}
    model = model_of(covariance, likelihood, method, tol=1e-10, **options)
    expected = refits(model, matches, y, weights, offset, start)
    known = {"sample_weight": weights, "offset": offset}
    found = one_step_ahead(model, matches, y, start, tol=1e-9, **known)
    moments = np.column_stack([found.mean, found.variance, found.probabilities])
    np.testing.assert_allclose(moments, expected, atol=1e-6)
    assert found.residual.shape == (len(np.unique(matches.time[start:])),)
    assert found.residual.max() <= 1e-9
    loose = one_step_ahead(model, matches, y, start, **known)
    np.testing.assert_allclose(loose.probabilities, expected[:, 2:], atol=0.02)
    assert loose.residual.max() <= 0.02


def test_equal_rows_at_two_times_are_forecast_without_their_own_outcomes():
    """If scores are constant, such rows share a pseudo-observation in the fit."""
    matches = Matches([[1, -1]] * 4, [0.0, 1.0, 2.0, 3.0], ["a", "b"])
    y = np.ones(4)
    model = model_of(Constant(1.0), Probit(), tol=1e-11)
    found = one_step_ahead(model, matches, y, 1, tol=1e-11)
    expected = [
        model.fit(matches[:n], y[:n]).predict_proba(matches[n : n + 1])[0]
        for n in (1, 2, 3)
    ]
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-9)


def test_races():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        [
            (f"race {day}", name, rank, float(day))
            for day in range(6)
            for rank, name in enumerate(rng.permutation(list("abcd"))[:3], start=1)
        ],
        columns=["event", "player", "rank", "time"],
    )
    columns = {name: name for name in frame}
    matches, y = Matches.from_rankings(frame, **columns)
    model = model_of(MOVING, Probit(), tol=1e-10)
    start = int(np.searchsorted(matches.time, 3.0))
    found = one_step_ahead(model, matches, y, start, tol=1e-9)
    n = len(matches)
    expected = refits(model, matches, y, np.ones(n), np.zeros(n), start)
    moments = np.column_stack([found.mean, found.variance, found.probabilities])
    np.testing.assert_allclose(moments, expected, atol=1e-6)


# ---- Invariants

some_seed = st.integers(0, 2**32 - 1)
some_covariance = st.sampled_from([Constant(0.7), MOVING])
some_likelihood = st.sampled_from([OrdinalProbit(0.3), Gaussian(0.7, margin=0.2)])


def random_problem(seed):
    rng = np.random.default_rng(seed)
    matches = random_matches(rng, 20, 4)
    start = int(np.searchsorted(matches.time, matches.time[12]))
    return matches, rng.choice([1.0, 0.0, -1.0], 20), start, rng


def ahead(covariance, likelihood, matches, y, start, **known):
    model = model_of(covariance, likelihood)
    return one_step_ahead(model, matches, y, start, tol=1e-11, **known)


@examples(15)
@given(some_seed, some_covariance, some_likelihood)
def test_exchanged_sides_exchange_the_probabilities(seed, covariance, likelihood):
    matches, y, start, _ = random_problem(seed)
    expected = ahead(covariance, likelihood, matches, y, start)
    turned = Matches(-matches.design, matches.time, matches.features)
    found = ahead(covariance, likelihood, turned, -y, start)
    np.testing.assert_allclose(
        found.probabilities[:, ::-1], expected.probabilities, atol=1e-9
    )
    np.testing.assert_allclose(found.mean, -expected.mean, atol=1e-8)
    np.testing.assert_allclose(found.variance, expected.variance, atol=1e-8)


@examples(15)
@given(some_seed, some_covariance, some_likelihood)
def test_the_order_within_a_day_changes_nothing(seed, covariance, likelihood):
    matches, y, start, rng = random_problem(seed)
    expected = ahead(covariance, likelihood, matches, y, start)
    order = np.lexsort([rng.random(20), matches.time])
    mixed = Matches(matches.design[order], matches.time, matches.features)
    found = ahead(covariance, likelihood, mixed, y[order], start)
    later = order[start:] - start
    np.testing.assert_allclose(
        found.probabilities, expected.probabilities[later], atol=1e-9
    )


@examples(15)
@given(some_seed, some_covariance, some_likelihood)
def test_a_repeated_match_is_a_match_of_weight_two(seed, covariance, likelihood):
    matches, y, start, rng = random_problem(seed)
    weight = rng.integers(1, 3, 20)
    again = np.repeat(np.arange(20), weight)
    one = ahead(covariance, likelihood, matches, y, start, sample_weight=weight)
    first = int(np.searchsorted(again, start))
    many = ahead(covariance, likelihood, matches[again], y[again], first)
    np.testing.assert_allclose(
        many.probabilities, one.probabilities[again[first:] - start], atol=1e-9
    )


@examples(10)
@given(some_seed, some_covariance, some_likelihood)
def test_later_outcomes_change_no_forecast(seed, covariance, likelihood):
    matches, y, start, rng = random_problem(seed)
    day = int(np.searchsorted(matches.time, matches.time[16]))
    end = int(np.searchsorted(matches.time, matches.time[16], side="right"))
    other = y.copy()
    other[day:] = rng.choice([1.0, 0.0, -1.0], 20 - day)
    found = ahead(covariance, likelihood, matches, y, start)
    changed = ahead(covariance, likelihood, matches, other, start)
    np.testing.assert_allclose(
        found.mean[: end - start], changed.mean[: end - start], atol=1e-9
    )


# ---- Convergence and limits


def test_a_part_of_the_first_day_can_be_forecast():
    matches, y = season(2, Probit())
    first, end = next(days(matches.time, 60))
    assert end - first > 1
    model = model_of(MOVING, Probit())
    whole = one_step_ahead(model, matches, y, int(first))
    part = one_step_ahead(model, matches, y, int(first) + 1)
    np.testing.assert_array_equal(part.probabilities, whole.probabilities[1:])


def test_the_number_of_threads_changes_nothing():
    matches, y = season(3, Probit())
    found = [
        one_step_ahead(model_of(MOVING, Probit(), n_threads=n), matches, y, 60)
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(found[0].mean, found[1].mean)


@pytest.mark.filterwarnings("error")
def test_too_few_sweeps_warn():
    matches, y = season(5, Probit())
    model = model_of(Constant(1.0), Probit(), rate=1e-4, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        found = one_step_ahead(model, matches, y, 60)
    assert found.residual.max() > 0.02
    assert np.isfinite(found.probabilities).all()


@pytest.mark.parametrize("likelihood", [Probit(), Gaussian(1.0)], ids=repr)
def test_limits_are_checked_before_the_first_forecast(monkeypatch, likelihood):
    matches, y = season(0, likelihood)
    for limit in ("MAX_SIZE", "MAX_NUMBERS", "MAX_OPERATIONS"):
        with monkeypatch.context() as patch:
            patch.setattr(joint, limit, 3)
            with pytest.raises(ValueError, match="posterior='factorized'"):
                one_step_ahead(model_of(MOVING, likelihood), matches, y, 60)
    with pytest.raises(ValueError, match="deviation of a score"):
        one_step_ahead(model_of(Constant(1e10), likelihood), matches, y, 60)
