"""Averages over hyperparameters, compared with integration on a fine regular grid."""

import numpy as np
import pytest
from dynamics.problems import informative, small
from scipy import stats
from scipy.special import logsumexp, ndtr, ndtri

from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Gaussian,
    Linear,
    Matern12,
    OrdinalProbit,
    Probit,
    Wiener,
    average_over_hyperparameters,
    parameters_of,
    with_parameters,
)
from preflearn.dynamics.model_selection.hyperprior import HyperPrior
from preflearn.matches import Matches


def duel(won, lost):
    matches = Matches([[1, -1]] * (won + lost), np.arange(won + lost), ["Ann", "Bob"])
    return matches, np.repeat([1, -1], [won, lost])


def log_density_of(name, value):
    """The default prior of a logarithm, by SciPy, for noise and span 1."""
    if name.endswith("variance"):
        return stats.lomax(2).logpdf(value) + np.log(value)
    if name.endswith("lengthscale"):
        return stats.norm(0, 1.5).logpdf(np.log(value))
    return stats.norm(np.log(0.3), 2).logpdf(np.log(value))


def integrate(model, matches, y, logs):
    """Return the evidence, weights, and fits on a regular grid of logarithms of the
    parameters."""
    names = list(parameters_of(model))
    axes = np.meshgrid(*logs, indexing="ij")
    fits = []
    log_weights = []
    cell = np.prod([axis[1] - axis[0] for axis in logs])
    for at in np.exp(np.column_stack([axis.ravel() for axis in axes])):
        fits.append(
            with_parameters(model, dict(zip(names, at, strict=True))).fit(matches, y)
        )
        prior = sum(map(log_density_of, names, at))
        log_weights.append(fits[-1].log_marginal_likelihood_ + prior + np.log(cell))
    evidence = logsumexp(log_weights)
    return evidence, np.exp(log_weights - evidence), fits


PROBLEMS = {
    "one": (
        DynamicComparisons(Constant(1.0), Probit()),
        duel(9, 7),
        [np.linspace(-12, 6, 90)],
    ),
    "two": (
        DynamicComparisons(Constant(0.3), OrdinalProbit(0.3)),
        informative(30),
        [np.linspace(-6, 5, 20), np.linspace(-3, 0.5, 18)],
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_mixture_is_that_of_a_fine_regular_grid(problem):
    model, (matches, y), logs = PROBLEMS[problem]
    found = average_over_hyperparameters(model, matches, y)
    evidence, weights, fits = integrate(model, matches, y, logs)
    assert found.log_marginal_likelihood_ == pytest.approx(evidence, abs=0.01)
    moments = np.array([fit.moments(matches[:3]) for fit in fits])
    mean = weights @ moments[:, 0]
    variance = weights @ (moments[:, 1] + moments[:, 0] ** 2) - mean**2
    got = found.moments(matches[:3])
    np.testing.assert_allclose(got[0], mean, atol=0.01)
    np.testing.assert_allclose(np.sqrt(got[1]), np.sqrt(variance), rtol=0.02)
    chances = sum(
        w * fit.predict_proba(matches[:3]) for w, fit in zip(weights, fits, strict=True)
    )
    np.testing.assert_allclose(found.predict_proba(matches[:3]), chances, atol=0.003)
    for end, q in zip(found.interval(matches[:3], 0.9).T, (0.05, 0.95), strict=True):
        z = (end - moments[:, 0]) / np.sqrt(moments[:, 1])
        np.testing.assert_allclose(weights @ ndtr(z), q, atol=0.003)


@pytest.mark.nightly
def test_more_points_change_little():
    model = DynamicComparisons(Constant(0.5) + Matern12(0.5, 1.0), Probit())
    matches, y = informative(margin=0)
    few, many = (
        average_over_hyperparameters(model, matches, y, n_points=n) for n in (30, 90)
    )
    assert few.log_marginal_likelihood_ == pytest.approx(
        many.log_marginal_likelihood_, abs=0.03
    )
    np.testing.assert_allclose(
        few.interval(matches[:5]), many.interval(matches[:5]), atol=0.04
    )


def test_importance_sampling_agrees_with_the_grid(monkeypatch):
    model = DynamicComparisons(Constant(0.3), OrdinalProbit(0.3))
    data = informative(30)
    grid = average_over_hyperparameters(model, *data)
    averaging = average_over_hyperparameters.__globals__
    monkeypatch.setitem(averaging, "_MAX_GRID_DIMENSION", 0)
    drawn = average_over_hyperparameters(model, *data, n_points=256)
    assert drawn.log_marginal_likelihood_ == pytest.approx(
        grid.log_marginal_likelihood_, abs=0.05
    )
    np.testing.assert_allclose(
        drawn.interval(data[0][:5]), grid.interval(data[0][:5]), atol=0.05
    )


def test_intervals_keep_their_width_where_the_evidence_is_largest_at_variance_zero():
    """With equal numbers of wins and losses, the interval is about the binomial one."""
    for n in (20, 200):
        matches, y = duel(n // 2, n // 2)
        model = DynamicComparisons(Constant(1.0), Probit(), posterior="joint")
        low, high = average_over_hyperparameters(model, matches, y).proba_interval(
            matches[:1]
        )[0]
        binomial = 2 * 1.96 * np.sqrt(0.25 / n)
        assert 0.7 * binomial < high - low < 1.1 * binomial


# the error of a mixture of Gaussians increases with the skewness of the exact posterior
@pytest.mark.parametrize(
    ("won", "lost", "error"),
    [(5, 5, 0.01), (86, 74, 0.01), (9, 1, 0.04), (12, 0, 0.15)],
)
def test_two_players_by_exact_integration(won, lost, error):
    """Compare the joint posterior with the integral over difference and variance."""
    d = np.linspace(-12, 12, 6001)
    logs = np.linspace(-14, 10, 400)
    variances = np.exp(logs)
    prior = stats.lomax(2).pdf(variances) * variances * (logs[1] - logs[0])
    density = stats.norm.pdf(d[:, None], 0, np.sqrt(2 * variances)) @ prior
    log_likelihood = won * stats.norm.logcdf(d) + lost * stats.norm.logcdf(-d)
    joint = density * np.exp(log_likelihood) * (d[1] - d[0])
    matches, y = duel(won, lost)
    found = average_over_hyperparameters(
        DynamicComparisons(Constant(1.0), Probit(), posterior="joint"), matches, y
    )
    assert found.log_marginal_likelihood_ == pytest.approx(
        np.log(joint.sum()), abs=0.06
    )
    share = np.cumsum(joint) / joint.sum()
    exact = np.interp([0.025, 0.975], share, d)
    spread = exact[1] - exact[0]
    np.testing.assert_allclose(
        found.interval(matches[:1])[0], exact, atol=error * spread
    )
    chance = (joint / joint.sum()) @ ndtr(d)
    assert found.predict_proba(matches[:1])[0, 1] == pytest.approx(chance, abs=0.004)


def test_an_unbeaten_player_has_finite_moments():
    matches, y = duel(12, 0)
    found = average_over_hyperparameters(
        DynamicComparisons(Constant(1.0), Probit()), matches, y
    )
    mean, std = found.difference("Ann", "Bob", 5.0)
    assert 1 < mean < 5
    assert 0.3 < std < 4


def test_the_default_prior_is_the_documented_one():
    time = np.array([0.0, 1.0, 4.0])
    matches = Matches([[1, -1]] * 3, time, ["Ann", "Bob"])
    noise = 2.5
    covariances = {
        "Constant.variance": (Constant(0.4), 1.0),
        "Wiener.variance": (Wiener(0.4, origin=-7.0), 4.0),
        "Linear.variance": (Linear(0.4), 16.0),
        "Affine.slope_variance": (Affine(0.4, 0.2), 16.0),
        "Matern12.variance": (Matern12(0.4, 3.0), 1.0),
    }
    for name, (covariance, growth) in covariances.items():
        model = DynamicComparisons(covariance, Gaussian(noise))
        value = parameters_of(model)[name]
        expected = stats.lomax(2, scale=noise / growth).logpdf(value) + np.log(value)
        prior = HyperPrior(model, matches, [name])
        assert prior(np.log([value])) == pytest.approx(expected)
        # the scale of the prior is the variance of the noise, so it changes with this
        # parameter
        both = HyperPrior(model, matches, [name, "likelihood.variance"])
        other = stats.lomax(2, scale=3 / growth).logpdf(value) + np.log(value)
        other += stats.norm(np.log(noise), 2).logpdf(np.log(3))
        assert both(np.log([value, 3.0])) == pytest.approx(other)
    length = HyperPrior(
        DynamicComparisons(Matern12(0.4, 3.0), Probit()),
        matches,
        ["Matern12.lengthscale"],
    )
    assert length(np.log([3.0])) == pytest.approx(
        stats.norm(np.log(4), 1.5).logpdf(np.log(3))
    )


def test_a_prior_of_the_user_is_a_density_of_the_logarithm():
    """The logarithm of a lognormal variable is normal."""
    matches, _ = duel(3, 1)
    model = DynamicComparisons(Constant(1.0), Probit())
    given = {"Constant.variance": stats.lognorm(s=0.8, scale=2.0)}
    prior = HyperPrior(model, matches, ["Constant.variance"], given)
    for log_value in (-3.0, 0.0, 1.5):
        expected = stats.norm(np.log(2.0), 0.8).logpdf(log_value)
        assert prior(np.array([log_value])) == pytest.approx(expected)


def test_a_prior_of_the_user_counts_in_its_own_unit():
    matches, y = duel(5, 5)
    model = DynamicComparisons(Constant(1.0), Probit())
    given = {"Constant.variance": stats.lognorm(0.05, scale=0.7)}
    found = average_over_hyperparameters(model, matches, y, given)
    values = found.hyperparameters_["Constant.variance"]
    mean = values @ found.hyperparameters_["weight"]
    assert mean == pytest.approx(0.7, rel=0.02)
    fixed = DynamicComparisons(Constant(0.7), Probit()).fit(matches, y)
    np.testing.assert_allclose(
        found.moments(matches[:1]), fixed.moments(matches[:1]), rtol=0.03, atol=1e-6
    )


def test_a_fixed_parameter_stays():
    matches, y = small(n=30, outcomes=(1, -1))
    model = DynamicComparisons(Matern12(0.5, 2.0), Probit())
    found = average_over_hyperparameters(
        model, matches, y, fixed=["Matern12.lengthscale"]
    )
    assert {part.covariance.lengthscale for part in found.models_} == {2.0}
    assert len({part.covariance.variance for part in found.models_}) > 3


@pytest.mark.nightly
def test_coverage_where_parameters_come_from_the_prior():
    """For two players, the posterior of their difference is exact, and so is the
    Bayesian coverage."""
    rng = np.random.default_rng(5)
    model = DynamicComparisons(Constant(1.0), Gaussian(1.0))
    inside = 0
    for _ in range(80):
        variance = stats.lomax(2).rvs(random_state=rng)
        scores = rng.normal(0, np.sqrt(variance), 2)
        n = int(rng.integers(3, 20))
        matches = Matches([[1, -1]] * n, np.arange(n), ["Ann", "Bob"])
        d = scores[0] - scores[1]
        found = average_over_hyperparameters(
            model, matches, d + rng.normal(size=n), fixed=["likelihood.variance"]
        )
        low, high = found.interval(matches[:1])[0]
        inside += low < d < high
    assert inside >= stats.binom.ppf(0.001, 80, 0.95)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"prior": {"Matern12.variance": stats.lomax(2)}}, "Constant.variance"),
        ({"prior": {"Constant.variance": 1.0}}, "lomax"),
        ({"prior": 3}, "mapping"),
        ({"fixed": ["Constant.variance"]}, "free"),
        ({"fixed": ["variance"]}, "Constant.variance"),
        ({"n_points": 0}, "n_points"),
    ],
)
def test_wrong_arguments_are_named(options, named):
    matches, y = duel(3, 2)
    with pytest.raises(ValueError, match=named):
        average_over_hyperparameters(
            DynamicComparisons(Constant(1.0), Probit()), matches, y, **options
        )


def test_the_interval_of_a_chance_is_that_of_the_difference_without_other_parameters():
    matches, y = duel(9, 4)
    found = average_over_hyperparameters(
        DynamicComparisons(Constant(1.0), Probit()), matches, y
    )
    ends = found.proba_interval(matches[:1])
    np.testing.assert_allclose(ends, ndtr(found.interval(matches[:1])), atol=2e-3)
    assert ndtri(found.predict_proba(matches[:1])[0, 1]) > 0
