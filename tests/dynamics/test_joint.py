"""The joint posterior, which is exact for Gaussian outcomes, and EP for Gaussian
processes otherwise."""

import itertools
from functools import partial

import numpy as np
import pytest
from dynamics import dense, problems
from dynamics.problems import (
    LIKELIHOODS,
    MOVING,
    NAMES,
    every_covariance,
    every_likelihood,
    matches_of,
    random_matches,
    small,
    with_three_covariances,
)
from dynamics.test_standings import chain_of_performances, race
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from preflearn.core import NotIdentifiedWarning
from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Matern12,
    Matern52,
    OrdinalProbit,
    PiecewiseConstant,
    Probit,
    Skellam,
    StudentT,
    Wiener,
    load,
    maximise_evidence,
    parameters_of,
    with_parameters,
)
from preflearn.dynamics.engine import joint
from preflearn.dynamics.model_selection.evidence import gradient_of
from preflearn.matches import Matches

# constant scores that the engine treats as changing ones
STILL = partial(PiecewiseConstant, boundaries=(1e6,))
fitted = partial(problems.fitted, posterior="joint")
some_seed = st.integers(0, 2**32 - 1)


# ---- Dense algebra


def gram_of(problem):
    """Return the prior covariance of z = x·s over all matches."""
    return problem.design @ problem.gram @ problem.design.T


def exact_gaussian(problem, noise, y, features, times):
    """Return mean and covariance of the scores of features at times, and the
    evidence."""
    entries = len(problem.x)
    both = np.append(problem.feature, features)
    when = np.append(problem.time, times)
    K = np.zeros((len(both), len(both)))
    for m in np.unique(both):
        mine = np.flatnonzero(both == m)
        K[np.ix_(mine, mine)] = problem.covariance_of(m).gram(when[mine])
    X = problem.design
    C = X @ K[:entries, :entries] @ X.T + noise * np.eye(len(y))
    gain = np.linalg.solve(C, X @ K[:entries, entries:]).T
    covariance = K[entries:, entries:] - gain @ X @ K[:entries, entries:]
    return gain @ y, covariance, multivariate_normal(np.zeros(len(y)), C).logpdf(y)


def ep_by_dense_algebra(G, density, y, max_iter=3000):
    """Run EP with a site exp(alpha z - beta z²/2) for each match, z ~ N(0, G). Return
    moments of z and the evidence."""
    alpha, beta = np.zeros((2, len(y)))
    for _ in range(max_iter):
        q = dense.state(G, alpha, beta)
        c, v = q.cavity
        value, d1, d2 = dense.log_partition(density, y, c, v)
        site = dense._log_site_masses(q, c, v)
        before = alpha
        alpha, beta = np.array([d1 - c * d2, -d2]) / (1 + v * d2)
        if np.abs(alpha - before).max() < 1e-12:
            break
    return q.mean, q.covariance, q.log_z + value.sum() - site.sum()


@every_covariance
@pytest.mark.parametrize("size", [2, 3])
def test_gaussian_outcomes_are_exact(covariance, size):
    rng = np.random.default_rng(size)
    matches = random_matches(rng, 15, 5, size, signs=(1.0, -1.0, 0.5)[:size])
    y = rng.normal(size=15)
    model = fitted(covariance, Gaussian(0.6), matches, y)
    problem = dense.Problem(matches, covariance)
    features = np.unique(matches.design.indices)
    names = [matches.features[m] for m in features]
    last = matches.time[-1]
    for time in (1.55, last, last + 0.7):
        first = [matches.time[problem.row[problem.feature == m][0]] for m in features]
        seen = np.array(first) <= time
        asked = [name for name, before in zip(names, seen, strict=True) if before]
        mean, cov, evidence = exact_gaussian(
            problem, 0.6, y, features[seen], np.full(seen.sum(), time)
        )
        found = model.joint_scores(asked, time)
        np.testing.assert_allclose(found[0], mean, atol=1e-8)
        np.testing.assert_allclose(found[1], cov, atol=1e-8)
        for k, name in enumerate(asked):
            np.testing.assert_allclose(
                model.scores(name, time), [mean[k], np.sqrt(cov[k, k])], atol=1e-8
            )
        a, b = model.difference(asked[0], asked[1], time)
        assert a == pytest.approx(mean[0] - mean[1], abs=1e-8)
        spread = cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]
        assert b == pytest.approx(np.sqrt(max(spread, 0)), abs=1e-7)
    assert model.log_marginal_likelihood_ == pytest.approx(evidence, abs=1e-8)


@every_likelihood
@pytest.mark.parametrize("covariance", [Constant(0.8), MOVING], ids=repr)
def test_fixed_points_equal_those_of_dense_algebra(
    likelihood, density, outcomes, covariance
):
    rng = np.random.default_rng(3)
    matches = random_matches(rng, 12, 4)
    y = rng.choice(outcomes, 12)
    model = fitted(covariance, likelihood, matches, y)
    G = gram_of(dense.Problem(matches, covariance))
    mean, cov, evidence = ep_by_dense_algebra(G, density, y)
    assert model.converged_
    assert model.log_marginal_likelihood_ == pytest.approx(evidence, abs=1e-8)
    found = model.moments(matches)
    np.testing.assert_allclose(found[0], mean, atol=1e-8)
    np.testing.assert_allclose(found[1], np.diag(cov), atol=1e-8)


def test_features_of_different_covariances_share_the_stack():
    """The problem has a constant advantage in all rows, players who enter and leave,
    and two kinds of state."""
    matches, covariance = with_three_covariances(20)
    y = np.random.default_rng(1).normal(size=20)
    model = fitted(covariance, Gaussian(0.6), matches, y)
    problem = dense.Problem(matches, covariance)
    expected = exact_gaussian(problem, 0.6, y, np.arange(6), np.full(6, 4.4))
    found = model.joint_scores(matches.features, 4.4)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-8)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-8)
    assert model.log_marginal_likelihood_ == pytest.approx(expected[2], abs=1e-8)


def test_a_player_may_enter_after_an_origin_that_others_precede():
    """The transition to the player's first time is not defined, and not necessary."""
    matches = matches_of(
        [[1, -1, 0], [1, -1, 0], [1, 0, -1], [0, 1, -1]], [0.0, 1.0, 10.0, 11.0]
    )
    late = Wiener(0.4, origin=5.0) * Matern12(1.0, 3.0)
    covariance = {matches.features[2]: late, "*": Constant(1.0)}
    y = np.array([1.0, 0.0, 1.0, -1.0])
    model = fitted(covariance, Gaussian(1.0), matches, y)
    problem = dense.Problem(matches, covariance)
    expected = exact_gaussian(problem, 1.0, y, np.arange(3), np.full(3, 10.5))
    found = model.joint_scores(matches.features, 10.5)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-9)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(expected[2], abs=1e-9)
    early = model.joint_scores(matches.features[:2], 0.5)[1]
    before = exact_gaussian(problem, 1.0, y, np.arange(2), np.full(2, 0.5))[1]
    np.testing.assert_allclose(early, before, atol=1e-9)


# ---- Exact integration and sampling


@every_likelihood
@pytest.mark.parametrize("n_players", [2, 3])
def test_a_few_players_against_exact_integration(
    likelihood, density, outcomes, n_players
):
    rng = np.random.default_rng(n_players)
    matches = matches_of(problems.random_design(rng, 8, n_players))
    y = rng.choice(outcomes, 8)
    design = matches.design.toarray()
    exact = dense.brute_force(design, [0.8] * n_players, density, y, n_points=81)
    model = fitted(Constant(0.8), likelihood, matches, y)
    factorized = problems.fitted(Constant(0.8), likelihood, matches, y)
    error = abs(model.log_marginal_likelihood_ - exact.log_evidence)
    assert error < 0.01
    assert error < 0.2 * abs(factorized.log_marginal_likelihood_ - exact.log_evidence)
    mean, covariance = model.joint_scores(matches.features, 0.0)
    np.testing.assert_allclose(mean, exact.mean, atol=0.01)
    np.testing.assert_allclose(np.diag(covariance), exact.variance, rtol=0.02)


@every_likelihood
@pytest.mark.parametrize("row", [[1.0, -1.0], [1.0, 0.5, -2.0]], ids=str)
def test_one_match_is_exact(likelihood, density, outcomes, row):
    for y in outcomes:
        model = fitted(Constant(0.7), likelihood, matches_of([row]), [y])
        v = 0.7 * np.square(row).sum()
        value, d1, d2 = (a[0] for a in dense.log_partition(density, [y], [0.0], [v]))
        mean, variance = model.moments(matches_of([row]))
        assert model.log_marginal_likelihood_ == pytest.approx(value, abs=1e-9)
        assert mean[0] == pytest.approx(v * d1, abs=1e-9)
        assert variance[0] == pytest.approx(v + v * v * d2, abs=1e-9)


@pytest.mark.parametrize("variance", [0.2, 5.0])
def test_a_race_keeps_score_and_error_together(variance):
    """The error is a tenth of that of the factorized posterior."""
    mean, square, chance = chain_of_performances([variance] * 3)
    model = fitted(Constant(variance), Probit(), *race("abc"), tol=1e-8)
    found = np.array([model.scores(name, 0.0) for name in "abc"])
    np.testing.assert_allclose(found[:, 0], mean, atol=2e-3)
    np.testing.assert_allclose(found[:, 1], np.sqrt(square), rtol=3e-3)
    assert model.log_marginal_likelihood_ == pytest.approx(np.log(chance[0]), abs=2e-3)


def gibbs(X, y, prior_variance, n_draws, seed):
    """Draw scores of static players under Probit, where an outcome is the sign of z
    plus noise."""
    rng = np.random.default_rng(seed)
    covariance = np.linalg.inv(X.T @ X + np.eye(X.shape[1]) / prior_variance)
    root = np.linalg.cholesky(covariance)
    gain = covariance @ X.T
    s = np.zeros(X.shape[1])
    draws = np.empty((n_draws, len(s)))
    for i in range(n_draws):
        z = X @ s
        below = ndtr(-y * z)
        latent = z + y * ndtri(below + rng.random(len(y)) * (1 - below))
        s = gain @ latent + root @ rng.standard_normal(len(s))
        draws[i] = s
    return draws[n_draws // 20 :]


def test_ten_players_in_two_leagues_against_a_sampler():
    """One match links two leagues. Differences between leagues are far less certain
    than in the factorized posterior."""
    rng = np.random.default_rng(5)
    X = np.zeros((61, 10))
    for row in X[:-1]:
        league = 5 * int(rng.integers(2))
        first, second = league + rng.choice(5, 2, replace=False)
        row[first] = 1.0
        row[second] = -1.0
    X[-1, [0, 5]] = 1.0, -1.0
    y = np.sign(X @ rng.normal(size=10) + rng.normal(size=61))
    model = fitted(Constant(1.5), Probit(), matches_of(X), y)
    draws = gibbs(X, y, 1.5, 30_000, 0)
    mean, covariance = model.joint_scores(model.features_, 0.0)
    sampled = np.cov(draws.T)
    pairs = np.array([(a, b) for a in range(10) for b in range(a)])

    def spread(cov):
        a, b = pairs.T
        return np.sqrt(cov[a, a] + cov[b, b] - 2 * cov[a, b])

    gaps = mean[pairs[:, 0]] - mean[pairs[:, 1]]
    other = draws.mean(axis=0)
    np.testing.assert_allclose(gaps, other[pairs[:, 0]] - other[pairs[:, 1]], atol=0.06)
    # EP underestimates deviations by up to 7 % if a posterior is skewed
    np.testing.assert_allclose(spread(covariance), spread(sampled), rtol=0.1)
    plain = problems.fitted(Constant(1.5), Probit(), matches_of(X), y)
    wrong = spread(plain.joint_scores(model.features_, 0.0)[1])
    between = (pairs[:, 0] >= 5) & (pairs[:, 1] < 5)
    assert wrong[between].mean() < 0.8 * spread(sampled)[between].mean()


# ---- Invariances


def problem_of(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 11))
    size = int(rng.integers(1, 4))
    signs = rng.choice([1.0, -1.0, 0.5], size)
    return random_matches(rng, n, size=size, signs=signs), rng.choice([-1, 0, 1], n)


def summary_of(model, names, times=(-1.0, 0.3, 1.1, 9.0)):
    """Return the evidence and the moments of all scores and their differences."""
    covariances = [model.joint_scores(names, time)[1] for time in times]
    curves = [model.scores(name, times) for name in names]
    return [
        np.array([model.log_marginal_likelihood_]),
        np.array(covariances),
        np.array(curves),
    ]


def assert_same(one, other, atol=1e-8):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


some_covariance = st.sampled_from([Constant(0.7), Constant(0.3) + Matern52(0.6, 1.5)])
some_likelihood = st.sampled_from([OrdinalProbit(0.3), Gaussian(0.7), Skellam(0.8)])
FEATURES = ("f0", "f1", "f2", "f3")


@examples(15)
@given(some_seed, some_covariance, some_likelihood)
def test_sides_features_and_the_date_are_conventions(seed, covariance, likelihood):
    matches, y = problem_of(seed)
    expected = summary_of(fitted(covariance, likelihood, matches, y), FEATURES)
    turned = Matches(-matches.design, matches.time, matches.features)
    assert_same(
        summary_of(fitted(covariance, likelihood, turned, -y), FEATURES), expected
    )
    backward = Matches(matches.design[:, ::-1], matches.time, matches.features[::-1])
    assert_same(
        summary_of(fitted(covariance, likelihood, backward, y), FEATURES), expected
    )
    later = Matches(matches.design, matches.time + 7.0, matches.features)
    model = fitted(covariance, likelihood, later, y)
    assert_same(summary_of(model, FEATURES, (6.0, 7.3, 8.1, 16.0)), expected)


@examples(15)
@given(some_seed, some_covariance, some_likelihood)
def test_a_weight_counts_equal_matches(seed, covariance, likelihood):
    matches, y = problem_of(seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(y))
    weights[0] = 2
    again = np.repeat(np.arange(len(y)), weights)
    one = fitted(covariance, likelihood, matches, y, sample_weight=weights)
    many = fitted(covariance, likelihood, matches[again], y[again])
    names = [many.features_[k] for k in np.unique(matches[again].design.indices)]
    assert_same(summary_of(one, names), summary_of(many, names))
    np.testing.assert_allclose(
        one.pseudo_observations_[again] / weights[again, None],
        many.pseudo_observations_,
        atol=1e-8,
    )


@pytest.mark.parametrize("variance", [1e-8, 1.0, 1e4])
def test_both_engines_agree_at_all_variances(variance):
    matches, y = small(n=40)
    one = fitted(Constant(variance), OrdinalProbit(0.4), matches, y)
    other = fitted(STILL(variance), OrdinalProbit(0.4), matches, y)
    assert one.log_marginal_likelihood_ == pytest.approx(
        other.log_marginal_likelihood_, abs=1e-7
    )
    for a, b in itertools.pairwise(NAMES):
        np.testing.assert_allclose(
            one.difference(a, b, 2.0), other.difference(a, b, 2.0), rtol=1e-6
        )
        np.testing.assert_allclose(
            one.difference(a, b, 99.0), other.difference(a, b, 99.0), rtol=1e-6
        )


@pytest.mark.parametrize("covariance", [Constant(0.8), MOVING], ids=repr)
def test_threads_change_nothing(covariance):
    matches, y = small(n=60)
    one, two = (
        fitted(covariance, OrdinalProbit(0.4), matches, y, n_threads=n) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.pseudo_observations_, two.pseudo_observations_)
    assert one.log_marginal_likelihood_ == two.log_marginal_likelihood_


# ---- Degenerate cases


@pytest.mark.parametrize("covariance", [Constant(0.8), MOVING], ids=repr)
def test_groups_that_never_meet_are_independent(covariance):
    matches, y = small(n=20, outcomes=(1, -1))
    design = matches.design.toarray()
    both = np.block([[design, 0 * design], [0 * design, design]])
    order = np.argsort(np.tile(matches.time, 2), kind="stable")
    names = [*NAMES, *(name + "'" for name in NAMES)]
    united = Matches(both[order], np.tile(matches.time, 2)[order], names)
    with pytest.warns(NotIdentifiedWarning):
        model = fitted(covariance, Probit(), united, np.tile(y, 2)[order])
    alone = fitted(covariance, Probit(), matches, y)
    assert model.log_marginal_likelihood_ == pytest.approx(
        2 * alone.log_marginal_likelihood_, abs=1e-9
    )
    _, found = model.joint_scores(names, 3.0)
    _, expected = alone.joint_scores(NAMES, 3.0)
    np.testing.assert_allclose(found[4:, 4:], expected, atol=1e-9)
    np.testing.assert_allclose(found[4:, :4], 0.0, atol=1e-12)


@pytest.mark.parametrize("covariance", [Constant(1e4), STILL(1e4)], ids=repr)
def test_an_unbeaten_player_under_a_wide_prior(covariance):
    matches = matches_of([[1, -1, 0], [1, -1, 0], [0, 1, -1], [0, -1, 1]])
    model = fitted(covariance, Probit(), matches, [1, 1, 1, 1])
    G = gram_of(dense.Problem(matches, covariance))
    mean, cov, _ = ep_by_dense_algebra(G, dense.probit, np.ones(4))
    found = model.moments(matches)
    np.testing.assert_allclose(found[0], mean, rtol=1e-5)
    np.testing.assert_allclose(found[1], np.diag(cov), rtol=1e-5)


@pytest.mark.parametrize("kind", problems.LINE_UPS)
def test_line_ups_converge_to_dense_algebra(kind):
    matches = problems.line_ups(np.random.default_rng(0), kind)
    y = np.random.default_rng(1).choice([1.0, -1.0], len(matches))
    model = fitted(Constant(0.8), Probit(), matches, y)
    G = gram_of(dense.Problem(matches, Constant(0.8)))
    mean, _, evidence = ep_by_dense_algebra(G, dense.probit, y)
    assert model.log_marginal_likelihood_ == pytest.approx(evidence, abs=1e-8)
    np.testing.assert_allclose(model.moments(matches)[0], mean, atol=1e-8)


def test_offsets_and_prior_means_shift_the_difference_of_scores():
    matches, y = small()
    offset = np.random.default_rng(0).normal(size=12)
    mean = {"Ann": 0.7, "Bob": -0.2}
    model = fitted(MOVING, Gaussian(0.5), matches, y, offset=offset, mean=mean)
    shift = matches.design @ np.array([0.7, -0.2, 0, 0]) + offset
    plain = fitted(MOVING, Gaussian(0.5), matches, y - shift)
    assert model.log_marginal_likelihood_ == pytest.approx(
        plain.log_marginal_likelihood_, abs=1e-9
    )
    difference = model.difference("Ann", "Bob", 1.0)[0]
    assert difference == pytest.approx(plain.difference("Ann", "Bob", 1.0)[0] + 0.9)


def test_features_without_matches_have_their_prior():
    matches, y = small(names=NAMES)
    wide = Matches(
        np.column_stack([matches.design.toarray(), np.zeros(12)]),
        matches.time,
        (*NAMES, "Eve"),
    )
    for covariance in (Constant(0.8), MOVING):
        model = fitted(covariance, OrdinalProbit(0.4), wide, y)
        std = np.sqrt(covariance.gram([0.0])[0, 0])
        for time in (0.5, 9.0):
            assert model.scores("Eve", time) == pytest.approx((0.0, std))
            _, cov = model.joint_scores(["Ann", "Eve"], time)
            assert cov[0, 1] == pytest.approx(0.0, abs=1e-12)


# ---- Evidence


@pytest.mark.parametrize("method", ["ep", "kl"])
@pytest.mark.parametrize("covariance", [Constant(0.8), MOVING], ids=repr)
def test_gradients_are_those_of_refitted_models(covariance, method):
    matches, y = small(n=30)
    model = fitted(covariance, OrdinalProbit(0.4), matches, y, method)
    names = list(parameters_of(model))
    found = gradient_of(model, names)
    for name, slope in zip(names, found, strict=True):
        value = parameters_of(model)[name]
        low, high = (
            with_parameters(model, {name: value * np.exp(step)}).fit(matches, y)
            for step in (-1e-3, 1e-3)
        )
        change = high.log_marginal_likelihood_ - low.log_marginal_likelihood_
        assert slope == pytest.approx(change / 2e-3, rel=1e-3, abs=1e-5)


def test_the_evidence_has_a_maximum_that_is_found():
    """For Gaussian outcomes, it is the maximum of the exact evidence."""
    matches, _ = small(n=60)
    rng = np.random.default_rng(2)
    y = matches.design @ np.array([2.0, 0.5, -0.5, -2.0]) + rng.normal(size=60)
    start = DynamicComparisons(Constant(1.0), Gaussian(1.0), posterior="joint")
    found = maximise_evidence(
        start, matches, y, fixed=["likelihood.variance"], gtol=1e-4
    )
    X = matches.design.toarray()

    def evidence(variance):
        C = variance * X @ X.T + np.eye(60)
        return multivariate_normal(np.zeros(60), C).logpdf(y)

    best = found.parameters["Constant.variance"]
    assert evidence(best) > max(evidence(best * 1.02), evidence(best / 1.02))
    assert found.evidence == pytest.approx(evidence(best), abs=1e-8)


@pytest.mark.parametrize("name", ["Probit", "OrdinalLogit", "Poisson", "Skellam"])
def test_the_bound_of_reverse_kl_is_tighter_than_the_factorized_one(name):
    likelihood, _, outcomes = LIKELIHOODS[name]
    matches, y = small(n=20, outcomes=outcomes)
    bound = fitted(MOVING, likelihood, matches, y, "kl").log_marginal_likelihood_
    plain = problems.fitted(MOVING, likelihood, matches, y, "kl")
    assert bound > plain.log_marginal_likelihood_
    assert (
        bound < fitted(MOVING, likelihood, matches, y).log_marginal_likelihood_ + 0.01
    )


# ---- Forecasts, updates, files


@pytest.mark.parametrize("posterior", ["factorized", "joint"])
@pytest.mark.parametrize("name", ["OrdinalProbit", "Gaussian", "Poisson", "Skellam"])
def test_simulated_outcomes_have_the_forecast_probabilities(posterior, name):
    likelihood, _, outcomes = LIKELIHOODS[name]
    matches, y = small(outcomes=outcomes)
    prior_mean = {"Ann": 0.7, "Dee": -0.4}
    model = fitted(MOVING, likelihood, matches, y, posterior=posterior, mean=prior_mean)
    names = (*NAMES, "Eve")
    fixtures = Matches(
        [[1, -1, 0, 0, 0], [0, 1, 0, 0, -1], [0, 0, 1, -1, 0]], [3.0, 3.5, 9.0], names
    )
    offset = np.array([0.0, 0.3, 0.0])
    draws = model.simulate(fixtures, 40_000, 0, offset=offset, unseen="ignore")
    mean, variance = model.moments(fixtures, offset, "ignore")
    assert draws.shape == (40_000, 3)
    if name == "OrdinalProbit":
        found = [(draws == label).mean(axis=0) for label in (-1, 0, 1)]
        expected = model.predict_proba(fixtures, offset, "ignore")
        np.testing.assert_allclose(np.transpose(found), expected, atol=0.01)
    if name == "Gaussian":
        np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.03)
        np.testing.assert_allclose(draws.var(axis=0), variance + 0.5, rtol=0.04)
    if name == "Poisson":
        expected = np.exp(mean + variance / 2)
        np.testing.assert_allclose(draws.mean(axis=0), expected, rtol=0.05)
    if name == "Skellam":
        half = np.exp(variance / 8)
        expected = 2 * 1.3 * half * np.sinh(mean / 2)
        np.testing.assert_allclose(draws.mean(axis=0), expected, atol=0.05)
    again = model.simulate(fixtures, 40_000, 0, offset=offset, unseen="ignore")
    np.testing.assert_array_equal(draws, again)


@pytest.mark.parametrize("time", [1.0, 9.0])
def test_moments_of_weighted_line_ups_are_those_of_the_joint_scores(time):
    """Also after the last match, where scores have moved on."""
    matches, y = small()
    model = fitted(MOVING, Gaussian(0.5), matches, y, posterior="joint")
    x = np.array([2.0, -0.5, 0.0, 0.25])
    mean, covariance = model.joint_scores(NAMES, time)
    found = model.moments(Matches([x], [time], NAMES))
    np.testing.assert_allclose(np.ravel(found), [x @ mean, x @ covariance @ x])


def test_simulated_scores_move_together():
    """With outcomes at two times that have little noise, the covariances of x·s are
    those of dense algebra."""
    rng = np.random.default_rng(0)
    matches = random_matches(rng, 15, 4)
    y = rng.normal(size=15)
    for covariance in (Constant(0.8), MOVING, Wiener(0.4, "first") + Constant(1.0)):
        model = fitted(covariance, Gaussian(1e-2), matches, y)
        fixtures = Matches([[1, -1, 0, 0], [1, 0, -1, 0]], [4.0, 6.0], FEATURES)
        draws = model.simulate(fixtures, 40_000, 1)
        features = np.array([0, 1, 0, 2])
        times = np.array([4.0, 4.0, 6.0, 6.0])
        problem = dense.Problem(matches, covariance)
        mean, cov, _ = exact_gaussian(problem, 1e-2, y, features, times)
        X = np.array([[1, -1, 0, 0], [0, 0, 1, -1]])
        np.testing.assert_allclose(draws.mean(axis=0), X @ mean, atol=0.03)
        expected = X @ cov @ X.T + 1e-2 * np.eye(2)
        np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.04)


@pytest.mark.parametrize("covariance", [Constant(0.8), MOVING], ids=repr)
def test_updates_files_and_standings(covariance, tmp_path):
    matches, y = small(n=30)
    whole = fitted(covariance, OrdinalProbit(0.4), matches, y)
    part = fitted(covariance, OrdinalProbit(0.4), matches[:20], y[:20])
    part.update(matches[20:], y[20:])
    assert_same(summary_of(part, NAMES), summary_of(whole, NAMES))
    whole.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.posterior == "joint"
    assert_same(summary_of(again, NAMES), summary_of(whole, NAMES), 0)
    np.testing.assert_array_equal(
        again.predict_proba(matches), whole.predict_proba(matches)
    )
    assert again.score(matches, y) == whole.score(matches, y)
    table = whole.standings()
    for name, score, std, *_ in table.itertuples(index=False):
        assert (score, std) == pytest.approx(whole.scores(name, matches.time[-1]))
    with pytest.raises(ValueError, match="posterior"):
        again.set_params(posterior="factorized").update(matches[-1:], y[-1:])


def test_an_update_allows_large_filtered_variances():
    """Pseudo-observations of outliers have negative precisions: before the later matches
    are filtered, a variance can be far above that of the prior."""
    matches = matches_of([[1, -1]] * 4)
    model = DynamicComparisons(
        Wiener(0.5, "first") + Constant(4.0),
        StudentT(0.5, 2.0),
        posterior="joint",
        max_iter=300,
    )
    y = np.array([10.0, 10.0, 1.0, -1.0])
    with pytest.warns(ConvergenceWarning):
        model.fit(matches[:3], y[:3])
    assert model.pseudo_observations_[:, 1].min() < 0
    assert model.update(matches[3:], y[3:]).converged_


def test_ranks_are_drawn_jointly():
    """After 200 matches, the difference of two players is certain, although their
    scores are not."""
    design = np.array([[1.0, -1.0]] * 200)
    y = np.resize([1, 1, 1, -1], 200)
    model = fitted(Constant(50.0), Probit(), matches_of(design), y)
    table = model.standings()
    assert table["std"].min() > 3
    assert (table["rank_low"] == table["rank_high"]).all()


def test_sizes_and_questions_are_rejected_with_a_remedy(monkeypatch):
    matches, y = small(outcomes=(1, -1))
    model = fitted(MOVING, Probit(), matches, y)
    with pytest.raises(ValueError, match=r"posterior.*'all'.*'joint'"):
        fitted(MOVING, Probit(), matches, y, posterior="all")
    with pytest.raises(ValueError, match=r"fixture.*last match"):
        model.simulate(matches[:3])
    with pytest.raises(ValueError, match=r"second is 'Ann'"):
        model.difference("Ann", "Ann", 1.0)
    with pytest.raises(ValueError, match="features is 'Zoe'"):
        model.joint_scores(["Ann", "Zoe"], 1.0)
    with pytest.raises(ValueError, match=r"features.*once"):
        model.joint_scores(["Ann", "Ann"], 1.0)
    with pytest.raises(ValueError, match=r"deviation.*posterior='factorized'"):
        fitted(Constant(1e9), Probit(), matches, y)
    walk = fitted(Constant(1.0) + Wiener(0.1, "first"), Probit(), matches, y)
    with pytest.raises(ValueError, match="first match"):
        walk.joint_scores(NAMES, -5.0)
    for limit in ("MAX_SIZE", "MAX_NUMBERS", "MAX_OPERATIONS"):
        with monkeypatch.context() as patch:
            patch.setattr(joint, limit, 3)
            with pytest.raises(ValueError, match="posterior='factorized'"):
                fitted(MOVING, Probit(), matches, y)


def test_matches_that_are_far_apart_forget():
    """After a long gap, the transition is 0 and the score has its prior."""
    matches = matches_of([[1, -1], [1, -1]], [0.0, 1e6])
    model = fitted(Matern12(0.7, 1.0), Gaussian(0.5), matches, [1.0, -1.0])
    half = multivariate_normal(0, 1.9)
    assert model.log_marginal_likelihood_ == pytest.approx(
        half.logpdf(1.0) + half.logpdf(-1.0)
    )
    assert model.scores("f0", 5e5) == pytest.approx((0.0, np.sqrt(0.7)))
