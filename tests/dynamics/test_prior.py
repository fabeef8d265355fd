"""Which covariance each feature has, and length scales that are absurd for the span of the data."""

import warnings

import numpy as np
import pandas as pd
import pytest
from dynamics import dense
from dynamics.problems import LIKELIHOODS, MOVING, NAMES, PRIOR, both_methods, fit_small, fitted, small
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Linear,
    Matern12,
    OrdinalProbit,
    Periodic,
    Probit,
    Wiener,
)
from preflearn.matches import Matches, TimeWarning, UnseenWarning

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
    with pytest.warns(
        UserWarning, match=r"covariance names 'Zoe' \(the .* 'Dee'\), but no match has"
    ) as found:
        model = DynamicComparisons(covariance, likelihood).fit(matches, y)
    assert found[0].filename == __file__
    later = Matches([[1, -1]], [matches.time[-1]], ["Zoe", "Ann"])
    with warnings.catch_warnings(action="error"):
        model.update(later, [1])
        DynamicComparisons(covariance | {"Ann": Constant(3.0)}, likelihood).fit(later, [1])
    assert model.features_ == (*NAMES, "Zoe")


# ---- Units of time, and origins


def season(time):
    rng = np.random.default_rng(0)
    design = np.array([rng.permutation([1.0, -1.0, 0.0]) for _ in time])
    return Matches(design, time, ["a", "b", "c"]), rng.choice([1, -1], len(time))


DAYS_OF_2020 = 18262.0 + np.arange(0, 400, 10.0)  # since 1970


@pytest.mark.parametrize(
    ("process", "before", "said"),
    [(Wiener, 4.27, "4.39"), (Linear, 183, "183"), (lambda v, **k: Affine(v, v, **k), 183, "183")],
    ids=["Wiener", "Linear", "Affine"],
)
def test_scores_begin_at_the_first_match_and_not_in_1970(process, before, said):
    """Dates become days, and 1970 was the default: a prior of 4.3, or 183, at the first match of 2020."""
    variance = 1e-3 if process is Wiener else 1e-4
    old, new = process(variance, origin=0.0), process(variance)
    first = DAYS_OF_2020[:1]
    assert np.sqrt(old.gram(first)[0, 0]) == pytest.approx(before, rel=0.01)
    assert np.sqrt(new.gram(first)[0, 0]) < 0.1
    problem = season(DAYS_OF_2020)
    with pytest.warns(TimeWarning, match=rf"18262 after the origin of .* deviation {said}") as found:
        DynamicComparisons(Constant(1.0) + old, Probit()).fit(*problem)
    assert found[0].filename == __file__
    with warnings.catch_warnings(action="error"):  # what the message asks for
        for origin in ("first", 18262.0 - 1):
            covariance = Constant(1.0) + process(variance, origin=origin)
            DynamicComparisons(covariance, Probit()).fit(*problem)


def test_times_in_milliseconds_against_rates_in_days_are_warned_of():
    covariance, (matches, y) = Constant(1.0) + Wiener(0.01), season(DAYS_OF_2020)
    wrong = Matches(matches.design, 86_400_000 * matches.time, matches.features)
    with (
        pytest.warns(ConvergenceWarning),
        pytest.warns(TimeWarning, match=r"a score moves by 1.8e\+04 .*expected rates in the unit"),
    ):
        DynamicComparisons(covariance, Probit(), max_iter=1).fit(wrong, y)


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (Constant(1.0) + Wiener(0.2 / 365.25), "a score moves by 0.093 from the first match to the last"),
        (Matern12(1.0, lengthscale=2 * 365.25), "the lengthscale 730.5 is very long .* expected one between"),
    ],
)
def test_times_in_years_against_rates_in_days_are_warned_of(covariance, message):
    years = 2004 + np.arange(0, 16, 0.1)
    matches, y = season(years)
    with pytest.warns(TimeWarning, match=message):
        DynamicComparisons(covariance, Probit()).fit(matches, y)
    with warnings.catch_warnings(action="error"):
        DynamicComparisons(covariance, Probit()).fit(*season(365.25 * (years - 1970)))
        DynamicComparisons(Constant(1.0) + Wiener(0.2), Probit()).fit(matches, y)


# ---- Means


@both_methods
def test_prior_means_are_scores_that_start_elsewhere(method):
    """By the dense twin: the likelihood of x·(s + m), and m added to the scores."""
    matches, y = small(n=14)
    mean = {"Ann": 0.7, "Cy": -0.4}
    model = fitted(MOVING, LIKELIHOODS["ordinal probit"][0], matches, y, method, mean=mean)
    known = matches.design @ [0.7, 0.0, -0.4, 0.0]
    density = LIKELIHOODS["ordinal probit"][1]
    problem = dense.Problem(matches, MOVING)

    def shifted(y, d):
        return density(y, d + np.reshape(known, (-1, 1)))

    fixed = dense.fixed_point(problem, shifted, y, method, rate=0.5, tol=1e-12)
    for m, name in enumerate(NAMES):
        expected, std = dense.scores(problem, fixed.state, m, np.array([0.0, 1.0, 400.0]))
        found = model.scores(name, [0.0, 1.0, 400.0])
        np.testing.assert_allclose(found, [expected + mean.get(name, 0.0), std], atol=1e-8)
    for name, score in model.standings().set_index("name")["score"].items():
        assert score == model.scores(name, matches.time[-1])[0]
    assert model.log_marginal_likelihood_ == pytest.approx(fixed.log_evidence, abs=1e-8)
    plain = fitted(MOVING, LIKELIHOODS["ordinal probit"][0], matches, y, method)
    plain.fit(matches, y, offset=known)
    np.testing.assert_allclose(model.predict_proba(matches), plain.predict_proba(matches, known), atol=1e-10)


def test_bad_means_are_named():
    for mean, message in (
        (3.0, "mean is 3.0; expected a mapping"),
        ({"Ann": np.nan}, r"mean\['Ann'\] is nan"),
    ):
        with pytest.raises(ValueError, match=message):
            DynamicComparisons(PRIOR, Probit(), mean=mean).fit(*small(outcomes=(1, -1)))


@pytest.mark.parametrize("process", [Wiener(0.01), Linear(1e-4), Wiener(0.01) * Constant(2.0)], ids=repr)
def test_a_score_that_is_0_for_certain_at_the_first_match_is_warned_of(process):
    """A newcomer who won stayed at 0 +- 0, and so did all who had not played, for ever."""
    problem = season(DAYS_OF_2020)
    with pytest.warns(TimeWarning, match=r"everybody's score is 0 .*: Constant\(variance\) \+") as told:
        DynamicComparisons(process, Probit()).fit(*problem)
    assert told[0].filename == __file__
    with warnings.catch_warnings(action="error"):  # as it advises
        model = DynamicComparisons(Constant(1.0) + process, Probit()).fit(*problem)
    assert model.standings()["std"].min() > 0.1


def test_updates_and_forecasts_ahead_warn_of_units_too():
    covariance, (matches, y) = Constant(1.0) + Wiener(0.01), season(np.arange(40.0))
    model = DynamicComparisons(covariance, Probit()).fit(matches, y)
    later = Matches(matches.design, 86_400_000 * (18262 + matches.time), matches.features)
    with pytest.warns(TimeWarning, match=r"a score moves by .*unit='ms'") as told:
        model.update(later, y)
    assert told[0].filename == __file__
    dates = pd.to_datetime(pd.Series(later.time), unit="ms")  # as it advises
    assert ((dates - pd.Timestamp(0)) / pd.Timedelta(days=1)).tolist() == (18262 + matches.time).tolist()
    with warnings.catch_warnings(action="error"):
        years = pd.to_datetime(pd.Series([2004, 2005]).astype(str), format="%Y")
    assert years.dt.year.tolist() == [2004, 2005]


def test_prior_means_of_nobody_are_told_and_numbers_name_players():
    frame = pd.DataFrame({"first": [1, 3], "second": [2, 1], "time": [0, 1], "outcome": [1, -1]})
    matches, y = Matches.from_frame(frame)
    with warnings.catch_warnings(action="error"):
        models = [DynamicComparisons(PRIOR, Probit(), mean={key: 0.7}).fit(matches, y) for key in (1, "1")]
    assert models[0].scores("1", 0.5) == models[1].scores("1", 0.5)
    assert models[0].scores("1", 0.5)[0] > 0.5
    with pytest.warns(UnseenWarning, match=r"mean names '4' \(the nearest .*\), but no match has") as told:
        DynamicComparisons(PRIOR, Probit(), mean={4: 0.7}).fit(matches, y)
    assert told[0].filename == __file__
