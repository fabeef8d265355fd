"""DynamicComparisons as its users see it: forecasts, symmetries, updates, and bad input."""

import itertools
import re
import warnings

import numpy as np
import pytest
from dynamics import dense
from dynamics.problems import LIKELIHOODS, NAMES, both_methods, curves, fit_small, is_finite, small
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Linear,
    Logit,
    Matern12,
    Matern32,
    OrdinalLogit,
    OrdinalProbit,
    Probit,
    Skellam,
    Wiener,
    load,
)
from preflearn.matches import Matches

STATIONARY = Constant(0.3) + Matern32(0.6, 1.5)
TIES, TIES_TWIN, _ = LIKELIHOODS["ordinal probit"]


def fitted(matches, y, covariance=STATIONARY, likelihood=TIES, method="ep", **options):
    options = {"tol": 1e-12, "max_iter": 500} | options
    return DynamicComparisons(covariance, likelihood, method, **options).fit(matches, y)


# ---- Forecasts


def test_forecasts_are_integrals_over_the_scores():
    """Win, tie and loss with the mean and the variance of x·s, by quadrature with the twin's likelihood."""
    model = fitted(*small())
    later = Matches([[1, -1, 0, 0], [0, 2, -1, -0.5]], [1.1, 5.0], NAMES)
    found = model.predict_proba(later)
    for row, mean, variance in zip(found, *model.moments(later), strict=True):
        expected, *_ = dense.log_partition(TIES_TWIN, [-1, 0, 1], [mean] * 3, [variance] * 3)
        np.testing.assert_allclose(row, np.exp(expected), rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(later), np.argmax(found, axis=1) - 1)


def test_forecasts_name_features_not_columns():
    model = fitted(*small())
    ask = Matches([[1, -1, 0]], [3.0], ["Cy", "Ann", "Zoe"])
    same = Matches([[-1, 0, 1, 0]], [3.0], NAMES)
    np.testing.assert_array_equal(model.predict_proba(ask), model.predict_proba(same))


# ---- Symmetries


@st.composite
def problems(draw):
    n, size = draw(st.integers(1, 10)), draw(st.integers(1, 3))

    def several(values, length=n):
        return draw(st.lists(values, min_size=length, max_size=length))

    columns = several(st.permutations(range(4)).map(lambda order: order[:size]))
    design = np.zeros((n, 4))
    coefficients = several(st.sampled_from([1.0, -1.0, 0.5]), n * size)
    design[np.arange(n)[:, None], columns] = np.reshape(coefficients, (n, size))
    time = np.sort(several(st.sampled_from([0.0, 0.25, 1.0, 2.5, 30.0])))
    return Matches(design, time, NAMES), np.array(several(st.sampled_from([-1, 0, 1])))


some_method = st.sampled_from(["ep", "kl"])
some_likelihood = st.sampled_from([OrdinalProbit(0.3), OrdinalLogit(0.5), Gaussian(0.7), Skellam(0.8)])


def assert_same(model, other, names=NAMES, times=(-1.0, 0.0, 0.6, 2.75, 9.0)):
    np.testing.assert_allclose(curves(other, names, times), curves(model, names, times), atol=1e-9)
    assert other.log_marginal_likelihood_ == pytest.approx(model.log_marginal_likelihood_, abs=1e-9)


@given(problems(), some_method, some_likelihood)
def test_exchanging_the_sides_and_the_outcomes_changes_nothing(problem, method, likelihood):
    matches, y = problem
    model = fitted(matches, y, likelihood=likelihood, method=method)
    mirrored = Matches(-matches.design, matches.time, NAMES)
    other = fitted(mirrored, -y, likelihood=likelihood, method=method)
    assert_same(model, other)
    np.testing.assert_allclose(
        other.predict_proba(mirrored)[:, ::-1], model.predict_proba(matches), atol=1e-9
    )


@given(problems(), some_method, st.permutations(range(4)), st.randoms(use_true_random=False))
def test_the_order_of_features_and_of_simultaneous_matches_changes_nothing(problem, method, order, random):
    matches, y = problem
    covariance = {"Ann": Matern12(1.0, 2.0), "*": STATIONARY}
    permuted = Matches(matches.design[:, order], matches.time, [NAMES[k] for k in order])
    rows = sorted(range(len(y)), key=lambda n: (matches.time[n], random.random()))
    assert_same(
        fitted(matches, y, covariance, method=method),
        fitted(permuted[rows], y[rows], covariance, method=method),
    )


@given(problems(), some_method, st.sampled_from([-3.0, 0.5, 4096.0]))
def test_a_stationary_covariance_does_not_know_the_date(problem, method, shift):
    matches, y = problem
    model = fitted(matches, y, method=method)
    other = fitted(Matches(matches.design, matches.time + shift, NAMES), y, method=method)
    times = np.array([-1.0, 0.0, 0.6, 2.75, 9.0])
    np.testing.assert_allclose(curves(other, times=times + shift), curves(model, times=times), atol=1e-9)


@given(problems(), st.sampled_from([1e-3, 10.0]), some_method)
def test_the_unit_of_points_changes_nothing(problem, unit, method):
    """Gaussian outcomes in another unit: scores in that unit too."""
    matches, y = problem
    model = fitted(matches, y, Matern12(1.0, 2.0), Gaussian(variance=0.5), method=method)
    other = fitted(matches, unit * y, Matern12(unit**2, 2.0), Gaussian(0.5 * unit**2), method=method)
    np.testing.assert_allclose(curves(other) / unit, curves(model), atol=1e-9)
    change = -len(y) * np.log(unit)
    assert other.log_marginal_likelihood_ - model.log_marginal_likelihood_ == pytest.approx(change, abs=1e-8)


def test_a_match_twice_is_a_likelihood_squared_for_reverse_kl():
    matches, y = small(n=6)
    twice = np.repeat(np.arange(6), 2)
    model = fitted(matches[twice], y[twice], method="kl")
    problem = dense.Problem(matches, model.covariance)
    fixed = dense.fixed_point(problem, lambda y, d: 2 * TIES_TWIN(y, d), y, "kl", rate=0.5)
    for m, name in enumerate(NAMES):
        expected = dense.scores(problem, fixed.state, m, np.array([0.0, 1.0, 5.0]))
        np.testing.assert_allclose(model.scores(name, [0.0, 1.0, 5.0]), expected, atol=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(fixed.log_evidence, abs=1e-9)


# ---- Updates


@both_methods
@pytest.mark.parametrize(
    "covariance", [STATIONARY, Constant(0.3) + Wiener(0.5, "first"), Linear(0.3)], ids=repr
)
def test_updates_equal_one_fit_of_all(method, covariance):
    """In three parts, the last one at the time of the part before, and with a newcomer in another column."""
    matches, y = small(n=14)
    model = fitted(matches[:6], y[:6], covariance, method=method)
    for part in (slice(6, 7), slice(7, 14)):
        model.update(matches[part], y[part])
    newcomer = Matches([[1, -1], [-1, 1]], [5.0, 6.0], ["Zoe", "Bob"])
    assert model.update(newcomer, [1, 0]) is model
    design = np.pad(matches.design.toarray(), [(0, 2), (0, 1)])
    design[14:, [4, 1]] = newcomer.design.toarray()
    whole = Matches(design, np.append(matches.time, newcomer.time), (*NAMES, "Zoe"))
    assert_same(
        model, fitted(whole, np.append(y, [1, 0]), covariance, method=method), whole.features, (6.0, 8.0)
    )
    assert model.features_ == whole.features
    assert len(model.matches_) == len(model.outcomes_) == 16
    assert model.pseudo_observations_.shape == (32, 2)


def test_an_update_takes_fewer_sweeps_than_a_fit():
    matches, y = small(n=200)
    model = fitted(matches[:199], y[:199], Constant(1.0), tol=1e-8)
    whole = fitted(matches, y, Constant(1.0), tol=1e-8).n_iter_
    assert model.update(matches[199:], y[199:]).n_iter_ < whole


def test_updates_that_are_refused_change_nothing():
    """They are later than what was learned, whose outcomes another likelihood must allow."""
    matches, y = small(outcomes=(-1.5, 1.5))
    model = fitted(matches, y, likelihood=Gaussian(1.0))
    before = curves(model)
    with pytest.raises(ValueError, match=r"the first match is at time 0.* expected later matches only"):
        model.update(matches[:1], y[:1])
    with pytest.raises(ValueError, match=r"y\[0\] is nan"):
        model.update(matches[-1], [np.nan])
    with pytest.raises(ValueError, match=r"deviation of a score, .*; expected at most"):
        model.update(Matches([[1e90]], matches.time[-1:], ["new"]), [1.0])
    with pytest.raises(ValueError, match=r"y\[0\] is -?1.5; expected one of \[-1, 1\]"):
        model.set_params(likelihood=Probit()).update(matches[-1], [1])
    np.testing.assert_array_equal(curves(model), before)
    assert len(model.matches_) == 12


# ---- As an estimator


def test_it_is_an_estimator():
    model = DynamicComparisons(STATIONARY, TIES, "kl", rate=0.3)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(method="ep").method == "ep"
    matches, y = small()
    for asked in (
        lambda: model.predict_proba(matches),
        lambda: model.scores("Ann", 0.0),
        lambda: model.save("nowhere.npz"),
    ):
        with pytest.raises(NotFittedError):
            asked()
    assert model.fit(matches, y) is model


def test_a_fit_leaves_its_input_alone_and_forgets_the_fit_before():
    matches, y = small()
    design, time, outcomes = matches.design.toarray(), matches.time.copy(), y.copy()
    model = fitted(matches, y)
    first = curves(model)
    model.fit(matches[:3], y[:3])
    model.fit(matches, y)
    np.testing.assert_array_equal(curves(model), first)
    for kept, given_before in ((matches.design.toarray(), design), (matches.time, time), (y, outcomes)):
        np.testing.assert_array_equal(kept, given_before)
    y[:] = 0
    one_more = [[1.0, -1, 0, 0]]
    whole = Matches(np.vstack([design, one_more]), np.append(time, 9.0), NAMES)
    assert_same(model.update(Matches(one_more, [9.0], NAMES), [1]), fitted(whole, [*outcomes, 1]))


def test_whole_numbers_may_be_floats_and_choices_no_arrays():
    assert is_finite(fit_small(max_iter=500.0, n_threads=2.0))
    for changes in ({"method": np.array(["ep", "kl"])}, {"rate": np.array([0.5, 1])}, {"rate": ["auto"]}):
        with pytest.raises(ValueError, match=r"(method|rate) is .*; expected"):
            fit_small(**changes)


def test_parameters_that_are_set_after_a_fit_wait_for_the_next_one(tmp_path):
    """Forecasts, and what is saved, are of the model that was fitted."""
    model, (later, y) = fit_small(), small(n=5, seed=1, outcomes=(1, -1), begin=10.0)
    newcomer = Matches([[1.0, -1.0]], [12.0], ["Zoe", "Ann"])
    before = [model.predict_proba(later), model.predict_proba(newcomer)]
    for changes in ({"covariance": Constant(9.0), "likelihood": OrdinalProbit(2.0)}, {"covariance": 5}):
        model.set_params(**changes)
        for ask, expected in zip((later, newcomer), before, strict=True):
            np.testing.assert_array_equal(model.predict_proba(ask), expected)
        model.save(tmp_path / "model.npz")
        np.testing.assert_array_equal(load(tmp_path / "model.npz").predict_proba(newcomer), before[1])
    model.set_params(covariance=Constant(2.0), likelihood=Probit(), tol=1e-10).update(later, y)
    refit = DynamicComparisons(Constant(2.0), Probit(), tol=1e-10).fit(model.matches_, model.outcomes_)
    np.testing.assert_allclose(model.predict_proba(later), refit.predict_proba(later), atol=1e-8)


# ---- Bad input, and input at the edge


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "mcmc"}, "method is 'mcmc'; expected 'ep' or 'kl'"),
        ({"rate": 0}, "rate is 0"),
        ({"rate": "slow"}, "rate is 'slow'"),
        ({"rate": np.nan}, "rate is nan"),
        ({"tol": 0}, "tol is 0"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"covariance": 1.0}, "covariance is 1.0"),
        ({"covariance": {}}, "covariance is an empty mapping"),
        ({"covariance": {"Ann": STATIONARY}}, "the feature 'Bob' has no covariance.*'\\*'"),
        ({"covariance": {"*": None}}, "covariance is None"),
        ({"covariance": Wiener(1.0, origin=0.6)}, "before"),
        ({"likelihood": "probit"}, "likelihood is 'probit'"),
        ({"likelihood": Probit}, "likelihood is .*Probit"),
    ],
)
def test_bad_parameters_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        DynamicComparisons(STATIONARY, TIES).set_params(**changes).fit(*small())


MATCHES, Y = small()


@pytest.mark.parametrize(
    ("matches", "y", "message"),
    [
        (MATCHES[[]], [], "there are no matches; expected at least one"),
        ([[1, -1]], [1], r"matches is \[\[1, -1\]\]; expected Matches"),
        (MATCHES, np.full(12, 3), r"y\[0\] is 3"),
        (MATCHES, [1], r"y has shape \(1,\); expected \(12,\): one outcome a match"),
        (MATCHES, 1, r"y has shape \(\); expected \(12,\)"),
    ],
)
def test_bad_matches_are_named(matches, y, message):
    with pytest.raises(ValueError, match=message):
        DynamicComparisons(STATIONARY, TIES).fit(matches, y)


def test_what_is_asked_is_named_where_it_is_wrong():
    model = fitted(MATCHES, Y, Constant(0.5) + Wiener(1.0, "first"))
    with pytest.raises(ValueError, match=r"matches is array.*; expected Matches"):
        model.predict_proba(np.eye(2))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="before the feature's first match"):
        model.scores("Ann", -1.0)


OVERFLOWS = "the covariance overflows; expected times, variances and designs of a moderate size"


@pytest.mark.parametrize("covariance", [Linear(), Wiener(), Linear() * Linear()])
def test_what_overflows_at_far_times_is_refused_without_a_warning(covariance):
    """A line's variance grows as t², its square's as t⁴, and that of the difference as the design squared."""
    model = fitted(MATCHES, Y, covariance)
    for size, time in itertools.product([1.0, 1e60, 1e99], [1e40, 4e91, 1e100]):
        far = Matches([[size, -size]], [time], NAMES[:2])
        for ask in (model.predict_proba, model.moments, lambda far: model.scores("Ann", far.time)):
            said = ""
            try:
                found = ask(far)
            except ValueError as error:
                found, said = 0.0, str(error)
            assert np.isfinite(found).all()
            assert re.fullmatch("|the covariance overflows; expected .*|.*; expected .* up to 1e.*", said)
    assert said == ("" if isinstance(covariance, Wiener | Linear) else OVERFLOWS)
    if not isinstance(covariance, Wiener):
        with pytest.raises(ValueError, match=OVERFLOWS):
            model.moments(far)


def test_nothing_warns_and_nothing_is_nan():
    """Extreme, but legal: sure results by the hundred, huge and tiny variances."""
    matches = Matches(np.tile([1.0, -1.0], (300, 1)), np.arange(300.0), ["a", "b"])
    with warnings.catch_warnings(action="error"):
        warnings.filterwarnings("default", "the lengthscale .* is very", UserWarning)
        for covariance in (Constant(1e6), Constant(1e-12), Matern12(1e4, 1e-3), Matern32(1.0, 1e6)):
            for likelihood in (Probit(), TIES, Logit()):
                model = fitted(matches, np.ones(300), covariance, likelihood, tol=1e-6, max_iter=2000)
                found = model.predict_proba(matches)
                assert np.all(np.isfinite(found))
                assert np.all(found >= 0)
                np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
