"""The public behavior of DynamicComparisons: forecasts, symmetries, updates, names, and
bad input."""

import itertools
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from dynamics import dense, problems
from dynamics.problems import (
    LIKELIHOODS,
    NAMES,
    both_methods,
    curves,
    fit_small,
    is_finite,
    matches_of,
    random_matches,
    small,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from property_examples import examples
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from preflearn.core import NotIdentifiedWarning
from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Gaussian,
    Linear,
    Logit,
    Matern12,
    Matern32,
    OrdinalLogit,
    OrdinalProbit,
    Poisson,
    Probit,
    Skellam,
    Wiener,
    load,
)
from preflearn.matches import Matches, OutcomeWarning, TimeWarning, concatenate
from preflearn.pairs import Incidence

STATIONARY = Constant(0.3) + Matern32(0.6, 1.5)
TIES, TIES_DENSITY, _ = LIKELIHOODS["OrdinalProbit"]
MATCHES, Y = small()


def fitted(matches, y, covariance=STATIONARY, likelihood=TIES, method="ep", **options):
    return problems.fitted(
        covariance, likelihood, matches, y, method, **({"tol": 1e-12} | options)
    )


def assert_same(model, other, names=NAMES, times=(-1.0, 0.0, 0.6, 2.75, 9.0)):
    np.testing.assert_allclose(
        curves(other, names, times), curves(model, names, times), atol=1e-9
    )
    assert other.log_marginal_likelihood_ == pytest.approx(
        model.log_marginal_likelihood_, abs=1e-9
    )


# ---- Forecasts


def test_forecasts_are_integrals_over_the_scores():
    """Win, tie, and loss probabilities are integrals over x·s with its mean and
    variance, by quadrature."""
    model = fitted(MATCHES, Y)
    later = Matches([[1, -1, 0, 0], [0, 2, -1, -0.5]], [1.1, 5.0], NAMES)
    found = model.predict_proba(later)
    for row, mean, variance in zip(found, *model.moments(later), strict=True):
        expected, *_ = dense.log_partition(
            TIES_DENSITY, [-1, 0, 1], [mean] * 3, [variance] * 3
        )
        np.testing.assert_allclose(row, np.exp(expected), rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(later), np.argmax(found, axis=1) - 1)


def test_score_is_the_fraction_of_results_that_were_predicted():
    model = fitted(MATCHES, Y)
    right = model.predict(MATCHES) == Y
    assert model.score(MATCHES, Y) == right.mean()
    weights = np.arange(12.0)
    assert model.score(MATCHES, Y, weights) == pytest.approx(
        np.average(right, weights=weights)
    )
    points = fitted(MATCHES, 2.5 * Y + 0.1, likelihood=Gaussian(1.0))
    signs = np.sign(2.5 * Y + 0.1)
    assert points.score(MATCHES, 2.5 * Y + 0.1) == np.mean(
        points.predict(MATCHES) == signs
    )
    goals = fitted(MATCHES, np.abs(Y), likelihood=Poisson())
    with pytest.raises(ValueError, match="Poisson"):
        goals.score(MATCHES, np.abs(Y))


# ---- Symmetries


some_problem = st.integers(0, 2**32 - 1).map(
    lambda seed: random_problem(np.random.default_rng(seed))
)
some_method = st.sampled_from(["ep", "kl"])
some_likelihood = st.sampled_from(
    [OrdinalProbit(0.3), OrdinalLogit(0.5), Gaussian(0.7), Skellam(0.8)]
)
curves_of = partial(curves, names=("f0", "f1", "f2", "f3"))


def random_problem(rng):
    n = int(rng.integers(1, 11))
    size = int(rng.integers(1, 4))
    signs = rng.choice([1.0, -1.0, 0.5], size)
    return random_matches(rng, n, size=size, signs=signs), rng.choice([-1, 0, 1], n)


@given(some_problem, some_method, some_likelihood)
def test_exchanging_the_sides_and_the_outcomes_changes_nothing(
    problem, method, likelihood
):
    matches, y = problem
    model = fitted(matches, y, likelihood=likelihood, method=method)
    mirrored = Matches(-matches.design, matches.time, matches.features)
    other = fitted(mirrored, -y, likelihood=likelihood, method=method)
    assert_same(model, other, matches.features)
    np.testing.assert_allclose(
        other.predict_proba(mirrored)[:, ::-1], model.predict_proba(matches), atol=1e-9
    )


@given(
    some_problem,
    some_method,
    st.permutations(range(4)),
    st.randoms(use_true_random=False),
)
def test_the_order_of_features_and_of_simultaneous_matches_changes_nothing(
    problem, method, order, random
):
    matches, y = problem
    covariance = {"f0": Matern12(1.0, 2.0), "*": STATIONARY}
    permuted = Matches(matches.design[:, order], matches.time, [f"f{k}" for k in order])
    rows = sorted(range(len(y)), key=lambda n: (matches.time[n], random.random()))
    assert_same(
        fitted(matches, y, covariance, method=method),
        fitted(permuted[rows], y[rows], covariance, method=method),
        matches.features,
    )


@given(
    some_problem,
    some_method,
    st.sampled_from([-3.0, 0.5, 4096.0]),
    st.sampled_from([1e-3, 10.0]),
)
def test_the_date_and_the_unit_of_points_change_nothing(problem, method, shift, unit):
    """This holds for a stationary covariance. If the unit of Gaussian outcomes changes,
    so does the unit of scores."""
    matches, y = problem
    model = fitted(
        matches, y, Matern12(1.0, 2.0), Gaussian(variance=0.5), method=method
    )
    moved = Matches(matches.design, matches.time + shift, matches.features)
    other = fitted(
        moved, unit * y, Matern12(unit**2, 2.0), Gaussian(0.5 * unit**2), method=method
    )
    times = np.array([-1.0, 0.0, 0.6, 2.75, 9.0])
    np.testing.assert_allclose(
        curves_of(other, times=times + shift) / unit,
        curves_of(model, times=times),
        atol=1e-9,
    )
    change = -len(y) * np.log(unit)
    assert (
        other.log_marginal_likelihood_ - model.log_marginal_likelihood_
        == pytest.approx(change, abs=1e-8)
    )


# ---- Updates


@both_methods
@pytest.mark.parametrize(
    "covariance",
    [STATIONARY, Constant(0.3) + Wiener(0.5, "first"), Linear(0.3, origin=0.0)],
    ids=repr,
)
def test_updates_equal_one_fit_of_all(method, covariance):
    """The matches come in three parts. The last one begins at the time of the part
    before and has a new player in another column."""
    matches, y = small(n=14)
    weights = np.arange(1, 17) % 3
    offset = np.random.default_rng(0).normal(size=16)
    mean = {"Ann": 0.3}
    fit = partial(fitted, covariance=covariance, method=method, mean=mean)
    model = fit(matches[:6], y[:6], sample_weight=weights[:6], offset=offset[:6])
    for part in (slice(6, 7), slice(7, 14)):
        model.update(matches[part], y[part], weights[part], offset[part])
    unseen = Matches([[1, -1], [-1, 1]], [5.0, 6.0], ["Zoe", "Bob"])
    assert model.update(unseen, [1, 0], weights[14:], offset[14:]) is model
    design = np.pad(matches.design.toarray(), [(0, 2), (0, 1)])
    design[14:, [4, 1]] = unseen.design.toarray()
    whole = Matches(design, np.append(matches.time, unseen.time), (*NAMES, "Zoe"))
    y = np.append(y, [1, 0])
    assert_same(
        model,
        fit(whole, y, sample_weight=weights, offset=offset),
        whole.features,
        (6.0, 8.0),
    )
    assert model.features_ == whole.features
    np.testing.assert_array_equal(
        model.observations_, np.column_stack([y, weights, offset])
    )
    assert model.pseudo_observations_.shape == (32, 2)


def test_an_update_takes_fewer_sweeps_than_a_fit():
    matches, y = small(n=200)
    model = fitted(matches[:199], y[:199], Constant(1.0), tol=1e-8)
    whole = fitted(matches, y, Constant(1.0), tol=1e-8).n_iter_
    assert model.update(matches[199:], y[199:]).n_iter_ < whole


def test_updates_that_are_rejected_change_nothing():
    """A rejected update has earlier matches, bad outcomes, or a new likelihood that does
    not allow the known outcomes."""
    matches, y = small(outcomes=(-1.5, 1.5))
    model = fitted(matches, y, likelihood=Gaussian(1.0))
    before = curves(model)
    too_large = Matches([[1e90]], matches.time[-1:], ["new"])
    for wrong, outcomes, message in (
        (matches[:1], y[:1], "last match"),
        (matches[-1], [np.nan], "y"),
        (too_large, [1.0], "deviation"),
    ):
        with pytest.raises(ValueError, match=message):
            model.update(wrong, outcomes)
    with pytest.raises(ValueError, match=r"1\.5"):
        model.set_params(likelihood=Probit()).update(matches[-1], [1])
    np.testing.assert_array_equal(curves(model), before)
    assert len(model.matches_) == 12


# ---- As an estimator


def test_it_is_an_estimator():
    model = DynamicComparisons(STATIONARY, TIES, "kl", rate=0.3)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(method="ep").method == "ep"
    for ask in (
        lambda: model.predict_proba(MATCHES),
        lambda: model.scores("Ann", 0.0),
        lambda: model.save("nowhere.npz"),
    ):
        with pytest.raises(NotFittedError):
            ask()
    assert model.fit(MATCHES, Y) is model


def test_an_unknown_name_is_shown_with_the_closest_one():
    matches, y = small()
    model = DynamicComparisons(STATIONARY, TIES).fit(matches, y)
    for name, shown in (
        ("Anna", r"'Anna' \(closest: 'Ann'\)"),
        (3, "3;"),
        ([3], r"\[3\];"),
    ):
        with pytest.raises(ValueError, match=f"feature is {shown}"):
            model.scores(name, 0.0)


def test_a_fit_leaves_its_input_alone_and_forgets_the_fit_before():
    matches, y = small()
    design = matches.design.toarray()
    time = matches.time.copy()
    outcomes = y.copy()
    model = fitted(matches, y)
    first = curves(model)
    np.testing.assert_array_equal(
        curves(model.fit(matches[:3], y[:3]).fit(matches, y)), first
    )
    for kept, before in (
        (matches.design.toarray(), design),
        (matches.time, time),
        (y, outcomes),
    ):
        np.testing.assert_array_equal(kept, before)
    y[:] = 0  # the model keeps its own copy of the outcomes
    one_more = [[1.0, -1, 0, 0]]
    whole = Matches(np.vstack([design, one_more]), np.append(time, 9.0), NAMES)
    assert_same(
        model.update(Matches(one_more, [9.0], NAMES), [1]),
        fitted(whole, [*outcomes, 1]),
    )


def test_parameters_that_are_set_after_a_fit_wait_for_the_next_one(tmp_path):
    """Forecasts and saved files are those of the fitted model."""
    model = fit_small()
    (later, y) = small(n=5, seed=1, outcomes=(1, -1), begin=10.0)
    unseen = Matches([[1.0, -1.0]], [12.0], ["Zoe", "Ann"])
    before = model.predict_proba(unseen, unseen="ignore")
    for changes in (
        {"covariance": Constant(9.0), "likelihood": OrdinalProbit(2.0)},
        {"covariance": 5},
    ):
        model.set_params(**changes).save(tmp_path / "model.npz")
        for same in (model, load(tmp_path / "model.npz")):
            np.testing.assert_array_equal(
                same.predict_proba(unseen, unseen="ignore"), before
            )
    model.set_params(covariance=Constant(2.0), likelihood=Probit(), tol=1e-10).update(
        later, y
    )
    refit = DynamicComparisons(Constant(2.0), Probit(), tol=1e-10).fit(
        model.matches_, model.outcomes_
    )
    np.testing.assert_allclose(
        model.predict_proba(later), refit.predict_proba(later), atol=1e-8
    )


# ---- Bad input, and input at the edge


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"method": "mcmc"}, "method"),
        ({"method": np.array(["ep", "kl"])}, "method"),
        ({"rate": 0}, "rate"),
        ({"rate": "slow"}, "rate"),
        ({"rate": np.array([0.5, 1])}, "rate"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_threads": 0}, "n_threads"),
        ({"covariance": 1.0}, "covariance"),
        ({"covariance": {}}, "covariance"),
        ({"covariance": {"Ann": STATIONARY}}, r"covariance.*Bob.*\*"),
        ({"covariance": {"*": None}}, "covariance"),
        ({"covariance": Wiener(1.0, origin=0.6)}, "origin"),
        ({"likelihood": "probit"}, "likelihood"),
        ({"likelihood": Probit}, "likelihood"),
        ({"mean": 3.0}, "mean"),
        ({"mean": {"Ann": np.nan}}, "mean.*Ann"),
    ],
)
def test_bad_parameters_are_named(changes, named):
    with pytest.raises(ValueError, match=named):
        DynamicComparisons(STATIONARY, TIES).set_params(**changes).fit(MATCHES, Y)


def test_whole_numbers_may_be_floats():
    assert is_finite(fit_small(max_iter=500.0, n_threads=2.0))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"matches": MATCHES[[]], "y": []}, "matches"),
        ({"matches": [[1, -1]], "y": [1]}, "matches"),
        ({"y": np.full(12, 3)}, r"y\[0\]"),
        ({"y": [1]}, "y "),
        ({"sample_weight": [1.0]}, "sample_weight"),
        ({"sample_weight": np.full(12, -1.0)}, r"sample_weight\[0\]"),
        ({"sample_weight": np.zeros(12)}, "sample_weight"),
        ({"offset": np.full(12, np.nan)}, r"offset\[0\]"),
        ({"offset": np.full(12, 1e101)}, r"offset\[0\]"),
    ],
)
def test_bad_matches_are_named(changes, named):
    with pytest.raises(ValueError, match=named):
        DynamicComparisons(STATIONARY, TIES).fit(
            **({"matches": MATCHES, "y": Y} | changes)
        )


def test_bad_questions_are_named():
    model = fitted(MATCHES, Y, Constant(0.5) + Wiener(1.0, "first"))
    with pytest.raises(ValueError, match="matches"):
        model.predict_proba(np.eye(2))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="unseen"):
        model.predict_proba(MATCHES, unseen="skip")
    with pytest.raises(ValueError, match="first match"):
        model.scores("Ann", -1.0)


@pytest.mark.parametrize(
    "covariance", [Wiener(origin=0.0), Linear(origin=0.0)], ids=repr
)
def test_forecasts_at_far_times_are_finite_or_rejected(covariance):
    """The variance of a line grows as t², and that of the difference also as the
    square of the design."""
    model = fitted(MATCHES, Y, covariance)
    for size, time in itertools.product([1.0, 1e60, 1e99], [1e40, 4e91, 1e100]):
        far = Matches([[size, -size]], [time], NAMES[:2])
        assert np.isfinite(model.scores("Ann", far.time)).all()
        try:
            assert np.isfinite(model.predict_proba(far)).all()
            assert size * time < 1e100
        except ValueError:
            assert size * time > 1e50
    if covariance == Linear(origin=0.0):
        with pytest.raises(ValueError, match="overflow"):
            model.moments(far)
    else:
        assert np.isfinite(model.moments(far)).all()


def test_nothing_warns_and_nothing_is_nan():
    """Extreme but valid input: hundreds of certain results, and huge and tiny
    variances."""
    matches = Matches(np.tile([1.0, -1.0], (300, 1)), np.arange(300.0), ["a", "b"])
    with warnings.catch_warnings(action="error"):
        warnings.simplefilter("ignore", TimeWarning)
        warnings.simplefilter("ignore", OutcomeWarning)
        for covariance in (
            Constant(1e6),
            Constant(1e-12),
            Matern12(1e4, 1e-3),
            Matern32(1.0, 1e6),
        ):
            for likelihood in (Probit(), TIES, Logit()):
                model = fitted(
                    matches,
                    np.ones(300),
                    covariance,
                    likelihood,
                    tol=1e-6,
                    max_iter=2000,
                )
                found = model.predict_proba(matches)
                assert np.all(found >= 0)
                np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)


# ---- Weights, offsets and prior means


@both_methods
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_match_of_weight_two_is_two_matches(name, method):
    """A weight of 2 gives the same digits as two matches, and a weight of 0 that of
    none. With "kl", two halves equal one match, but EP approximates each half."""
    likelihood, _, outcomes = LIKELIHOODS[name]
    matches, y = small(outcomes=outcomes)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    weights[:4] = 1
    several = np.repeat(np.arange(len(y)), weights)
    several_twice = np.repeat(np.arange(len(y)), 2 * (weights > 0))
    halves = weights[several_twice] / 2
    fit = partial(fitted, likelihood=likelihood, method=method)
    twice = fit(matches[several], y[several])
    assert_same(twice, fit(matches, y, sample_weight=weights))
    if method == "kl":
        found = fit(matches[several_twice], y[several_twice], sample_weight=halves)
        assert_same(twice, found)


@both_methods
def test_a_small_weight_is_a_fractional_power_of_the_likelihood(method):
    """EP is exact for one match of two constant scores. The reference computes the
    power by brute force."""
    matches = matches_of([[1.0, -1.0]])
    weight = 0.3
    model = fitted(
        matches, [1], Constant(1.0), Probit(), method, sample_weight=[weight]
    )
    exact = dense.brute_force(
        [[1, -1]], [1, 1], lambda y, d: weight * dense.probit(y, d), [1]
    )
    mean, std = curves(model, ("f0", "f1"), (0.0,))[..., 0].T
    atol = 1e-8 if method == "ep" else 0.02
    np.testing.assert_allclose(mean, exact.mean, atol=atol)
    np.testing.assert_allclose(std**2, exact.variance, atol=atol)
    assert model.log_marginal_likelihood_ == pytest.approx(exact.log_evidence, abs=atol)


TREE = (
    [[0, 0, 1, -1, 0], [-1, 0, 0, 1, 0], [1, -1, 0, 0, 0], [-1, 0, 0, 0, 1]],
    [6.0, 29.0, 31.0, 38.0],
)


@pytest.mark.parametrize("covariance", [Constant(100.0), Affine(1.0, 0.4, "first")])
@given(weights=arrays(float, 4, elements=st.floats(0.05, 1.0)))
@examples(8)
def test_a_weight_divides_the_variance_of_a_gaussian(covariance, weights):
    """This holds for EP. The dense reference uses N(y; d, variance / weight) for each
    match."""
    matches = matches_of(*TREE)
    y = np.array([-1.0, 0.0, 1.0, 0.0])
    model = fitted(matches, y, covariance, Gaussian(0.7), sample_weight=weights)
    noise = 0.7 / weights[:, None]

    def divided(y, d):
        return -0.5 * ((y - d) ** 2 / noise + np.log(2 * np.pi * noise))

    problem = dense.Problem(matches, covariance)
    fixed = dense.fixed_point(problem, divided, y, "ep", rate=0.5)
    assert fixed.converged
    assert model.converged_
    for m, name in enumerate(model.features_):
        np.testing.assert_allclose(
            model.scores(name, [40.0]),
            dense.scores(problem, fixed.state, m, [40.0]),
            atol=1e-8,
            rtol=1e-8,
        )


@both_methods
@pytest.mark.parametrize("weight", [1e-6, 0.01, 0.3])
def test_small_weights_converge_under_wide_priors(method, weight):
    """The first cavities may not be Gaussian, so these sweeps are rejected."""
    matches, y = small(outcomes=(1, -1))
    weights = np.full(len(y), weight)
    model = fitted(
        matches, y, Constant(100.0), Probit(), method, tol=1e-6, sample_weight=weights
    )
    assert model.converged_
    assert np.isfinite(curves(model)).all()


@both_methods
def test_offsets_and_prior_means_shift_the_difference_of_scores(method):
    """In the dense reference, the likelihood is that of x·(s + m) + offset, and m is
    added to the scores."""
    offset = np.random.default_rng(1).normal(size=len(Y))
    mean = {"Ann": 0.7, "Cy": -0.4}
    model = fitted(MATCHES, Y, method=method, mean=mean, offset=offset)
    known = MATCHES.design @ [0.7, 0.0, -0.4, 0.0] + offset
    problem = dense.Problem(MATCHES, STATIONARY)

    def shifted(y, d):
        return TIES_DENSITY(y, d + known[:, None])

    fixed = dense.fixed_point(problem, shifted, Y, method, rate=0.5)
    for m, name in enumerate(NAMES):
        expected, std = dense.scores(
            problem, fixed.state, m, np.array([0.0, 1.0, 400.0])
        )
        found = model.scores(name, [0.0, 1.0, 400.0])
        np.testing.assert_allclose(
            found, [expected + mean.get(name, 0.0), std], atol=1e-9
        )
    assert model.log_marginal_likelihood_ == pytest.approx(fixed.log_evidence, abs=1e-9)
    plain = fitted(MATCHES, Y, method=method, offset=known)
    for ask in ("predict_proba", "moments"):
        found = getattr(model, ask)(MATCHES, offset)
        expected = getattr(plain, ask)(MATCHES, known)
        np.testing.assert_allclose(found, expected, atol=1e-9)
    for name, score in model.standings().set_index("name")["score"].items():
        assert score == model.scores(name, MATCHES.time[-1])[0]


# ---- Outcomes, times, and names as users pass them


@pytest.mark.parametrize(
    ("likelihood", "other"),
    [(OrdinalProbit(0.4), "Probit"), (OrdinalLogit(0.5), "Logit")],
)
def test_a_likelihood_with_ties_of_matches_without_is_warned_of(likelihood, other):
    """Without the warning, ties had a probability of 0.28 in a sport without ties."""
    matches = Matches([[1, -1]] * 100, range(100), ["a", "b"])
    won = np.repeat([1, -1], [60, 40])
    model = DynamicComparisons(Constant(1.0), likelihood)
    with pytest.warns(OutcomeWarning, match=rf"\b{other}\(\)"):
        model.fit(matches, won)
    with warnings.catch_warnings(action="error"):
        model.fit(matches, np.where(np.arange(100) == 50, 0, won))
        model.fit(matches[:20], won[:20])  # a lack of ties in 20 matches may be chance


def test_scores_and_standings_have_the_times_of_the_matches():
    """A model of numeric times returned scores of 1e-287 at dates."""
    days = pd.DataFrame(
        {"first": ["a"], "second": ["b"], "time": ["2020-01-01"], "outcome": [1]}
    )
    numbers = days.assign(time=[18264.0])
    by_date, by_number = (
        DynamicComparisons(STATIONARY, Probit()).fit(*Matches.from_frame(frame))
        for frame in (days, numbers)
    )
    for call in (by_number.standings, partial(by_number.scores, "a")):
        with pytest.raises(ValueError, match="expected numbers"):
            call("2020-01-02")
    asked = ["2020-01-02", "2020-02-01"]
    for dates in (asked, pd.to_datetime(asked), list(pd.to_datetime(asked, utc=True))):
        np.testing.assert_array_equal(
            by_date.scores("a", dates), by_date.scores("a", [18263.0, 18293.0])
        )
    assert by_date.scores("a", asked[0]) == by_date.scores("a", 18263.0)
    for call in (by_date.standings, partial(by_date.scores, "a")):
        with pytest.raises(ValueError, match=r"05/01/2024.*ISO"):
            call("05/01/2024")


# ---- Comparisons that do not identify all differences


def test_groups_that_never_meet_are_warned_of():
    """Without a warning, the deviation of a difference between leagues was far too
    small."""
    pairs = np.column_stack(np.triu_indices(8, 1))
    # pairs within two leagues, and between them
    index = np.vstack([pairs, pairs + 8, pairs + np.array([0, 8])])
    inside = np.ptp(index // 8, axis=1) == 0
    matches = matches_of(Incidence(index, 16).matrix().toarray(), np.zeros(len(index)))
    y = np.ones(len(index))
    fit = partial(fitted, covariance=Constant(1.0), likelihood=Gaussian(1.0), tol=1e-6)
    with pytest.warns(NotIdentifiedWarning, match="2 groups"):
        fit(matches[inside], y[inside])
    with pytest.warns(NotIdentifiedWarning):  # comparisons of weight 0 do not count
        fit(matches, y, sample_weight=inside)
    pair = Matches([[1, -1]], [0.0], ["q", "r"])
    with warnings.catch_warnings(action="error"):
        fit(matches, y)
        # two unconnected players of eighteen are too few for a warning
        fit(concatenate(matches, pair), np.append(y, 1.0))
