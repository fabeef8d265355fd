"""DynamicComparisons as its users see it: forecasts, symmetries, updates, files, threads, bad input."""

import warnings

import numpy as np
import pytest
from dynamics import dense
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
    PiecewiseConstant,
    Probit,
    Skellam,
    Wiener,
    load,
)
from preflearn.dynamics.engine import threads
from preflearn.matches import Matches

NAMES = ("Ann", "Bob", "Cy", "Dee")
STATIONARY = Constant(0.3) + Matern32(0.6, 1.5)
TIES = OrdinalProbit(margin=0.4)
EPS = np.finfo(float).eps

both_methods = pytest.mark.parametrize("method", ["ep", "kl"])


def small(seed=0, n=12, names=NAMES, outcomes=(1, 0, -1)):
    """Matches of two out of four players, on a few times that repeat, and outcomes."""
    rng = np.random.default_rng(seed)
    design = np.array([rng.permutation(np.r_[1.0, -1.0, np.zeros(len(names) - 2)]) for _ in range(n)])
    return Matches(design, np.sort(rng.integers(0, 12, n) / 4), names), rng.choice(outcomes, n)


def fitted(matches, y, covariance=STATIONARY, likelihood=TIES, method="ep", **options):
    options = {"tol": 1e-12, "max_iter": 500} | options
    return DynamicComparisons(covariance, likelihood, method, **options).fit(matches, y)


def curves(model, names=NAMES, times=(-1.0, 0.0, 0.6, 2.75, 9.0)):
    """Means and standard deviations of all scores at some times."""
    return np.array([model.scores(name, times) for name in names])


# ---- Forecasts


def test_forecasts_are_integrals_over_the_scores():
    """Win, tie and loss with the mean and the variance of x·s, by quadrature with the twin's likelihood."""
    matches, y = small()
    model = fitted(matches, y)
    later = Matches([[1, -1, 0, 0], [0, 2, -1, -0.5]], [1.1, 5.0], NAMES)
    found = model.predict_proba(later)
    for row, x, t in zip(found, later.design.toarray(), later.time, strict=True):
        scores = np.array([model.scores(name, t) for name in NAMES])
        mean, variance = x @ scores[:, 0], x**2 @ scores[:, 1] ** 2
        density = dense.ordinal_probit(0.4)
        expected = [dense.log_partition(density, [o], [mean], [variance])[0][0] for o in (-1, 0, 1)]
        np.testing.assert_allclose(row, np.exp(expected), rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(later), np.argmax(found, axis=1) - 1)


@both_methods
def test_every_feature_of_a_row_counts(method):
    """One feature more, or another one, changes the forecast."""
    design = np.array([[1.0, -1, 0, 1], [0, 1, -1, 1], [1, 0, -1, 1], [1, -1, 0, 1]])
    matches = Matches(design, [0.0, 1, 2, 3], (*NAMES[:3], "advantage"))
    model = fitted(matches, [1, 1, 0, 1], method=method)
    ask = np.array(
        [[1.0, -1, 0, 0], [1, -1, 0, 1], [1, -1, 0, -1], [1, 0, -1, 0], [1, -1, 0.5, 0], [2, -1, 0, 0]]
    )
    found = model.predict_proba(Matches(ask, np.full(6, 4.0), matches.features))[:, 2]
    assert len(np.unique(found.round(9))) == 6
    assert found[1] > found[0] > found[2]


def test_forecasts_name_features_not_columns():
    matches, y = small()
    model = fitted(matches, y)
    ask = Matches([[1, -1, 0]], [3.0], ["Cy", "Ann", "Zoe"])
    same = Matches([[-1, 0, 1, 0]], [3.0], NAMES)
    np.testing.assert_array_equal(model.predict_proba(ask), model.predict_proba(same))


def test_features_that_were_never_seen_have_their_prior():
    matches, y = small(names=(*NAMES, "advantage"), n=3)
    silent = [m for m in range(5) if not matches.design.toarray()[:, m].any()]
    assert silent
    covariance = {
        "advantage": Constant(0.5),
        "Zoe": Matern12(2.0, 1.0),
        "*": Constant(0.3) + Wiener(0.5, "first"),
    }
    with pytest.warns(UserWarning, match="covariance names"):
        model = fitted(matches, y, covariance)
    mean, deviation = model.scores(matches.features[silent[0]], [0.0, 9.0])
    np.testing.assert_array_equal(mean, 0)
    prior = 0.5 if matches.features[silent[0]] == "advantage" else 0.3  # a newcomer at each of the times
    np.testing.assert_allclose(deviation, np.sqrt(prior))
    ask = Matches([[1, -1], [1, 0]], [1.0, 2.0], ["Zoe", "Yves"])
    mean, variance = model.moments(ask)
    np.testing.assert_array_equal(mean, 0)
    np.testing.assert_allclose(variance, [2.3, 2.0])
    np.testing.assert_allclose(model.predict_proba(ask)[:, 0], model.predict_proba(ask)[:, 2])


# ---- Symmetries


@st.composite
def problems(draw):
    n, size = draw(st.integers(1, 10)), draw(st.integers(1, 3))
    rows = st.permutations(range(4)).map(lambda order: order[:size])
    columns = draw(st.lists(rows, min_size=n, max_size=n))
    coefficients = draw(st.lists(st.sampled_from([1.0, -1.0, 0.5]), min_size=n * size, max_size=n * size))
    design = np.zeros((n, 4))
    design[np.arange(n)[:, None], columns] = np.reshape(coefficients, (n, size))
    time = np.sort(draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, 2.5, 30.0]), min_size=n, max_size=n)))
    y = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n))
    return Matches(design, time, NAMES), np.array(y)


some_method = st.sampled_from(["ep", "kl"])
some_likelihood = st.sampled_from([OrdinalProbit(0.3), OrdinalLogit(0.5), Gaussian(0.7), Skellam(0.8)])


@given(problems(), some_method, some_likelihood)
def test_exchanging_the_sides_and_the_outcomes_changes_nothing(problem, method, likelihood):
    matches, y = problem
    model = fitted(matches, y, likelihood=likelihood, method=method)
    mirrored = Matches(-matches.design, matches.time, NAMES)
    other = fitted(mirrored, -y, likelihood=likelihood, method=method)
    np.testing.assert_allclose(curves(other), curves(model), atol=1e-9)
    assert other.log_marginal_likelihood_ == pytest.approx(model.log_marginal_likelihood_, abs=1e-9)
    np.testing.assert_allclose(
        other.predict_proba(mirrored)[:, ::-1], model.predict_proba(matches), atol=1e-9
    )


@given(problems(), some_method, st.permutations(range(4)))
def test_the_order_of_features_changes_nothing(problem, method, order):
    matches, y = problem
    covariance = {"Ann": Matern12(1.0, 2.0), "*": STATIONARY}
    model = fitted(matches, y, covariance, method=method)
    permuted = Matches(matches.design[:, order], matches.time, [NAMES[k] for k in order])
    other = fitted(permuted, y, covariance, method=method)
    np.testing.assert_allclose(curves(other), curves(model), atol=1e-9)
    assert other.log_marginal_likelihood_ == pytest.approx(model.log_marginal_likelihood_, abs=1e-9)


@given(problems(), some_method, st.sampled_from([-3.0, 0.5, 4096.0]))
def test_a_stationary_covariance_does_not_know_the_date(problem, method, shift):
    matches, y = problem
    model = fitted(matches, y, method=method)
    other = fitted(Matches(matches.design, matches.time + shift, NAMES), y, method=method)
    times = np.array([-1.0, 0.0, 0.6, 2.75, 9.0])
    np.testing.assert_allclose(curves(other, times=times + shift), curves(model, times=times), atol=1e-9)


@given(problems(), some_method, st.randoms(use_true_random=False))
def test_the_order_of_simultaneous_matches_changes_nothing(problem, method, random):
    matches, y = problem
    order = sorted(range(len(y)), key=lambda n: (matches.time[n], random.random()))
    model, other = fitted(matches, y, method=method), fitted(matches[order], y[order], method=method)
    np.testing.assert_allclose(curves(other), curves(model), atol=1e-9)


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
    single = dense.ordinal_probit(0.4)
    fixed = dense.fixed_point(problem, lambda y, d: 2 * single(y, d), y, "kl", rate=0.5)
    np.testing.assert_allclose(model.pseudo_observations_[::2].shape, (12, 2))
    for m, name in enumerate(NAMES):
        mean, deviation = dense.scores(problem, fixed.state, m, np.array([0.0, 1.0, 5.0]))
        np.testing.assert_allclose(model.scores(name, [0.0, 1.0, 5.0]), [mean, deviation], atol=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(fixed.log_evidence, abs=1e-9)


def test_a_match_twice_is_half_the_variance_for_a_gaussian_of_one_feature():
    matches = Matches([[1.0, 0], [0, -1], [0.5, 0]], [0.0, 1, 2], ["a", "b"])
    y, twice = np.array([1.0, 0.2, -1]), np.repeat(np.arange(3), 2)
    for method in ("ep", "kl"):
        model = fitted(matches[twice], y[twice], likelihood=Gaussian(0.8), method=method)
        other = fitted(matches, y, likelihood=Gaussian(0.4), method=method)
        np.testing.assert_allclose(curves(model, ["a", "b"]), curves(other, ["a", "b"]), atol=1e-9)


# ---- Updates


@both_methods
@pytest.mark.parametrize(
    "covariance", [STATIONARY, Constant(0.3) + Wiener(0.5, "first"), Linear(0.3)], ids=repr
)
def test_updates_equal_one_fit_of_all(method, covariance):
    """In three parts, the last one at the time of the part before, and with a newcomer in another column."""
    matches, y = small(n=14)
    newcomer = Matches([[1, -1], [-1, 1]], [5.0, 6.0], ["Zoe", "Bob"])
    model = fitted(matches[:6], y[:6], covariance, method=method)
    for part in (slice(6, 7), slice(7, 14)):
        model.update(matches[part], y[part])
    assert model.update(newcomer, [1, 0]) is model
    design = np.zeros((16, 5))
    design[:14, :4] = matches.design.toarray()
    design[14:, [4, 1]] = [[1, -1], [-1, 1]]
    whole = Matches(design, np.append(matches.time, [5.0, 6.0]), (*NAMES, "Zoe"))
    other = fitted(whole, np.append(y, [1, 0]), covariance, method=method)
    names, times = (*NAMES, "Zoe"), (6.0, 8.0)
    np.testing.assert_allclose(curves(model, names, times), curves(other, names, times), atol=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(other.log_marginal_likelihood_, abs=1e-9)
    assert model.features_ == names
    assert len(model.matches_) == len(model.outcomes_) == 16
    assert model.pseudo_observations_.shape == (32, 2)


def test_an_update_takes_fewer_sweeps_than_a_fit():
    matches, y = small(n=200)
    model = fitted(matches[:199], y[:199], Constant(1.0), tol=1e-8)
    whole = fitted(matches, y, Constant(1.0), tol=1e-8).n_iter_
    assert model.update(matches[199:], y[199:]).n_iter_ < whole


def test_updates_are_later_than_what_was_learned():
    matches, y = small()
    model = fitted(matches, y)
    before = curves(model)
    with pytest.raises(ValueError, match=r"the first match is at time 0.* expected later matches only"):
        model.update(matches[:1], y[:1])
    with pytest.raises(ValueError, match=r"y\[0\] is 7"):
        model.update(matches[-1], [7])
    np.testing.assert_array_equal(curves(model), before)


# ---- Files


@both_methods
def test_a_model_is_what_was_saved(tmp_path, method):
    matches, y = small()
    covariance = {("Ann", "Bob"): Constant(0.2), "Cy": PiecewiseConstant(1.0, (1.0,)), "*": STATIONARY}
    names = ("Ann", "Bob", "Cy", ("Ann", "Bob"))
    renamed = Matches(matches.design, matches.time, names)
    model = fitted(renamed, y, covariance, method=method, rate=0.7, tol=1e-10, n_threads=1)
    path = tmp_path / "model.npz"
    model.save(path)
    read = load(path)
    assert read.get_params() == model.get_params()
    assert read.features_ == names
    assert (read.converged_, read.n_iter_) == (model.converged_, model.n_iter_)
    assert read.log_marginal_likelihood_ == model.log_marginal_likelihood_
    assert read.trace_.equals(model.trace_)
    np.testing.assert_array_equal(curves(read, names), curves(model, names))
    np.testing.assert_array_equal(read.predict_proba(renamed), model.predict_proba(renamed))
    later = Matches([[1, -1]], [5.0], ["Cy", "Zoe"])
    np.testing.assert_array_equal(
        curves(read.update(later, [1]), names), curves(model.update(later, [1]), names)
    )
    with np.load(path, allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive)


# ---- Threads


@both_methods
@pytest.mark.parametrize("likelihood", [TIES, Logit()], ids=repr)
def test_threads_change_no_bit(method, likelihood, monkeypatch):
    """Cut into parts of a few matches, so that there is something to share."""
    rng = np.random.default_rng(0)
    design = np.array([rng.permutation(np.r_[1.0, -1, 1, np.zeros(9)]) for _ in range(120)])
    matches = Matches(design, np.sort(rng.uniform(0, 5, 120)), [f"p{k}" for k in range(12)])
    y = rng.choice([1, -1], 120)
    results = []
    for n_threads, chunk in [(1, 7), (2, 7), (3, 7), (1, 15_000)]:
        monkeypatch.setattr(threads, "_CHUNK", chunk)
        model = fitted(matches, y, likelihood=likelihood, method=method, n_threads=n_threads, tol=1e-8)
        results.append(model)
    for other in results[1:3]:
        np.testing.assert_array_equal(other.pseudo_observations_, results[0].pseudo_observations_)
        assert other.trace_.equals(results[0].trace_)
        np.testing.assert_array_equal(other.predict_proba(matches), results[0].predict_proba(matches))
    np.testing.assert_allclose(
        results[3].pseudo_observations_, results[0].pseudo_observations_, atol=1e-6
    )  # the size of parts is part of the program, not of the machine


# ---- As an estimator, and bad input


def test_it_is_an_estimator():
    model = DynamicComparisons(STATIONARY, TIES, "kl", rate=0.3)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(method="ep").method == "ep"
    matches, y = small()
    with pytest.raises(NotFittedError):
        model.predict_proba(matches)
    with pytest.raises(NotFittedError):
        model.scores("Ann", 0.0)
    with pytest.raises(NotFittedError):
        model.save("nowhere.npz")
    assert model.fit(matches, y) is model


def test_a_fit_leaves_its_input_alone_and_forgets_the_fit_before():
    matches, y = small()
    design, time, outcomes = matches.design.toarray(), matches.time.copy(), y.copy()
    model = fitted(matches, y)
    first = curves(model)
    model.fit(matches[:3], y[:3])
    model.fit(matches, y)
    np.testing.assert_array_equal(curves(model), first)
    np.testing.assert_array_equal(matches.design.toarray(), design)
    np.testing.assert_array_equal(matches.time, time)
    np.testing.assert_array_equal(y, outcomes)
    y[:] = 0
    one_more = [[1.0, -1, 0, 0]]
    whole = Matches(np.vstack([design, one_more]), np.append(time, 9.0), NAMES)
    updated = model.update(Matches(one_more, [9.0], NAMES), [1])
    np.testing.assert_allclose(curves(updated), curves(fitted(whole, [*outcomes, 1])), atol=1e-9)


@pytest.mark.parametrize("y", [[1], [1, 1, 1], [[1, 1]], 1])
def test_outcomes_are_as_many_as_matches(y):
    matches = Matches([[1, -1], [1, -1]], [0, 1], ["a", "b"])
    with pytest.raises(ValueError, match=r"y .*(2|shape|one outcome a match)"):
        DynamicComparisons(STATIONARY, Probit()).fit(matches, y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "mcmc"}, "method is 'mcmc'; expected 'ep' or 'kl'"),
        ({"rate": 0}, "rate is 0"),
        ({"rate": 1.5}, "rate is 1.5"),
        ({"rate": "slow"}, "rate is 'slow'"),
        ({"rate": np.nan}, "rate is nan"),
        ({"tol": 0}, "tol is 0"),
        ({"tol": -1.0}, "tol is -1"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"max_iter": 2.5}, "max_iter is 2.5"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"covariance": 1.0}, "covariance is 1.0"),
        ({"covariance": {}}, "covariance is an empty mapping"),
        ({"covariance": {"Ann": STATIONARY}}, "the feature 'Bob' has no covariance.*'\\*'"),
        ({"covariance": {"*": None}}, "covariance is None"),
        ({"likelihood": "probit"}, "likelihood is 'probit'"),
        ({"likelihood": Probit}, "likelihood is .*Probit"),
    ],
)
def test_bad_parameters_are_named(changes, message):
    matches, y = small()
    model = DynamicComparisons(STATIONARY, TIES).set_params(**changes)
    with pytest.raises(ValueError, match=message):
        model.fit(matches, y)


def test_bad_matches_are_named():
    matches, y = small()
    model = fitted(matches, y)
    with pytest.raises(ValueError, match="there are no matches; expected at least one"):
        model.fit(matches[[]], [])
    with pytest.raises(ValueError, match="matches is a list; expected Matches"):
        model.fit([[1, -1]], [1])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="matches is a ndarray; expected Matches"):
        model.predict_proba(np.eye(2))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"y\[0\] is 3"):
        model.fit(matches, np.full(len(y), 3))
    with pytest.raises(ValueError, match="time falls"):
        Matches([[1, -1], [1, -1]], [1, 0], ["a", "b"])
    with pytest.raises(ValueError, match="row 0 of design has no entries"):
        Matches([[0, 0]], [0], ["a", "b"])


def test_a_covariance_of_what_is_no_feature_is_warned_of():
    matches, y = small()
    covariance = {"Zoe": Constant(2.0), "*": Constant(1.0)}
    with pytest.warns(UserWarning, match=r"covariance names \['Zoe'\], but no match has") as found:
        model = DynamicComparisons(covariance, TIES).fit(matches, y)
    assert found[0].filename == __file__
    later = Matches([[1, -1]], [matches.time[-1]], ["Zoe", "Ann"])
    with warnings.catch_warnings(action="error"):
        model.update(later, [1])
        DynamicComparisons(covariance | {"Ann": Constant(3.0)}, TIES).fit(later, [1])
    assert model.features_[-1] == "Zoe"


def test_times_before_the_prior_begins():
    matches, y = small()
    with pytest.raises(ValueError, match="before"):
        fitted(matches, y, Wiener(1.0, origin=0.6))
    model = fitted(matches, y, Constant(0.5) + Wiener(1.0, "first"))
    with pytest.raises(ValueError, match="before the feature's first match"):
        model.scores("Ann", -1.0)


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
