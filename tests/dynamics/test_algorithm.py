"""Sweeps and fixed points of the engine, compared with dense.py and with brute
force."""

import warnings

import numpy as np
import pytest
from dynamics import dense
from dynamics.problems import (
    LIKELIHOODS,
    assert_equals_dense,
    both_methods,
    every_covariance,
    every_likelihood,
    fitted,
    line_ups,
    matches_of,
    random_matches,
    updated,
)
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Affine,
    Constant,
    Gaussian,
    Linear,
    Matern12,
    Matern32,
    OrdinalLogit,
    OrdinalProbit,
    Periodic,
    Probit,
)

# ---- Sweeps, one by one


def assert_sweeps_equal_dense(
    covariance, name, matches, method, rate, n_sweeps=6, rtol=1e-8
):
    likelihood, density, outcomes = LIKELIHOODS[name]
    y = np.random.default_rng(1).choice(outcomes, len(matches))
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model = fitted(
            covariance, likelihood, matches, y, method, rate=rate, max_iter=n_sweeps
        )
    reference = dense.fixed_point(
        dense.Problem(matches, covariance),
        density,
        y,
        method,
        rate=rate,
        max_iter=n_sweeps,
        keep=True,
    )
    np.testing.assert_allclose(model.trace_["residual"], reference.residuals, rtol=rtol)
    np.testing.assert_allclose(model.trace_["evidence"], reference.evidences, rtol=rtol)
    sites = np.column_stack(
        [reference.history[-1].alpha, reference.history[-1].beta]
    )  # the sites before the last step
    np.testing.assert_allclose(model.pseudo_observations_, sites, rtol=rtol, atol=rtol)
    assert model.n_iter_ == n_sweeps == len(model.trace_)
    assert not model.converged_


@every_covariance
@both_methods
def test_every_sweep_equals_the_dense_one_by_covariance(covariance, method):
    matches = random_matches(np.random.default_rng(0), n=12)
    assert_sweeps_equal_dense(covariance, "OrdinalProbit", matches, method, 0.7)


@pytest.mark.parametrize("name", LIKELIHOODS)
@both_methods
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_sweep_equals_the_dense_one_by_likelihood(name, method, size):
    matches = random_matches(
        np.random.default_rng(1), size=size, signs=(1.0, -1.0, 0.5)
    )
    assert_sweeps_equal_dense(Matern32(0.6, 1.5), name, matches, method, 0.6)


# ---- Fixed points


@every_likelihood
@both_methods
def test_fixed_points_equal_the_dense_ones_by_likelihood(
    likelihood, density, outcomes, method
):
    rng = np.random.default_rng(3)
    matches = random_matches(rng, n=7)
    model = fitted(
        Constant(0.2) + Matern12(0.5, 1.0),
        likelihood,
        matches,
        rng.choice(outcomes, 7),
        method,
    )
    assert_equals_dense(model, density)


@every_likelihood
def test_moments_match_at_the_fixed_point_of_ep(likelihood, density, outcomes):
    """The cavity times p(y | x's) of each match, by brute force, has the means and
    variances of q."""
    rng = np.random.default_rng(5)
    matches = random_matches(rng, n=6, n_features=3)
    y = rng.choice(outcomes, 6)
    q, *_ = updated(fitted(Matern12(0.8, 1.0), likelihood, matches, y), density)
    for n, (mean, variance) in enumerate(
        zip(*(np.reshape(part, (6, 2)) for part in q.cavity), strict=True)
    ):
        x = matches.design[[n]].data
        tilted = dense.brute_force(
            [x],
            variance,
            lambda y, d, shift=x @ mean: density(y, d + shift),
            y[n : n + 1],
            n_points=121,
        )
        mine = slice(2 * n, 2 * n + 2)
        np.testing.assert_allclose(tilted.mean + mean, q.mean[mine], atol=1e-7)
        np.testing.assert_allclose(tilted.variance, q.variance[mine], atol=1e-7)


@every_likelihood
def test_evidence_and_bound_against_brute_force(likelihood, density, outcomes):
    design = np.array([[1.0, -1, 0], [0, 1, -1], [1, 0, -1], [1, -1, 0]])
    y = np.random.default_rng(6).choice(outcomes, 4)
    covariance = {"f0": Constant(0.8), "f1": Constant(0.5), "*": Constant(0.3)}
    true = dense.brute_force(design, [0.8, 0.5, 0.3], density, y, n_points=71)
    ep, kl = (
        fitted(covariance, likelihood, matches_of(design), y, method)
        for method in ("ep", "kl")
    )
    assert kl.log_marginal_likelihood_ < true.log_evidence
    assert abs(ep.log_marginal_likelihood_ - true.log_evidence) < 0.3
    for model, atol in ((ep, 0.1), (kl, 0.15)):
        mean, deviation = np.transpose(
            [model.scores(name, 2.0) for name in model.features_]
        )
        np.testing.assert_allclose(mean, true.mean, atol=atol, rtol=0)
        np.testing.assert_allclose(deviation, np.sqrt(true.variance), atol=atol, rtol=0)


@every_likelihood
@pytest.mark.parametrize("row", [[2.0], [1.0, -1.0], [0.5, -1.0, 1.5]])
def test_one_match_is_exact_under_ep(likelihood, density, outcomes, row):
    model = fitted(Constant(0.7), likelihood, matches_of([row]), outcomes[:1])
    true = dense.brute_force(
        [row],
        [0.7] * len(row),
        density,
        outcomes[:1],
        n_points=71 if len(row) == 3 else 161,
    )
    assert model.log_marginal_likelihood_ == pytest.approx(true.log_evidence, abs=1e-8)
    mean, deviation = np.transpose(
        [model.scores(name, 0.0) for name in model.features_]
    )
    np.testing.assert_allclose([mean, deviation**2], true[:2], atol=1e-8, rtol=0)


@both_methods
def test_surprises_in_the_far_tails(method):
    """A player who is almost certain to win loses. The results are finite and equal the
    references."""
    pair = [1.0, -1.0]
    sure = fitted(
        Matern12(400.0, 50.0),
        Gaussian(1.0),
        matches_of([pair] * 3),
        [30.0, 28.0, 31.0],
        method,
    )
    assert_equals_dense(sure, dense.gaussian(1.0), atol=1e-7)
    covariance = {"f0": Constant(400.0), "f1": Constant(1e-6)}
    upset = fitted(
        covariance,
        Probit(),
        matches_of([pair] * 40),
        np.resize([1, 1, 1, -1], 40),
        method,
    )
    assert np.all(np.isfinite(upset.pseudo_observations_))
    tie = fitted(
        Constant(400.0),
        OrdinalProbit(0.4),
        matches_of([pair] * 9),
        np.r_[np.ones(8), 0],
        method,
    )
    assert_equals_dense(tie, LIKELIHOODS["OrdinalProbit"][1], rate=0.3)


# ---- No convergence


def test_one_match_is_enough_for_a_two_cycle_of_reverse_kl():
    """Section 3.1.2 of P4 promises convergence for log-concave likelihoods. With such a
    wide prior, rate 1 does not converge."""
    one = matches_of([[1.0]])
    with pytest.warns(ConvergenceWarning, match="300.* rate"):
        cycle = fitted(Constant(25.0), Probit(), one, [1], "kl", rate=1.0, max_iter=300)
    assert not cycle.converged_
    last = cycle.trace_["evidence"].to_numpy()[-4:]
    np.testing.assert_allclose(last[:2], last[2:], atol=1e-9)
    assert abs(last[0] - last[1]) > 0.5
    assert np.all(np.isfinite(cycle.scores("f0", [0.0, 3.0])))
    assert fitted(Constant(25.0), Probit(), one, [1], "kl", rate=0.5).converged_


@both_methods
def test_weights_below_one_converge(method):
    """Power EP would not converge: its cavity leaves out 1/w of what a match of weight
    w has added."""
    design = [
        [0, 0, -1, 0, 1],
        [0, 1, -1, 0, 0],
        [1, -1, 0, 0, 0],
        [-1, 0, 0, 1, 0],
        [0, 0, 0, -1, 1],
        [0, -1, 0, 1, 0],
        [0, -1, 0, 0, 1],
        [-1, 1, 0, 0, 0],
        [0, 0, -1, 0, 1],
        [0, 0, -1, 1, 0],
        [0, 0, -1, 1, 0],
    ]
    matches = matches_of(design, [0, 2, 4, 6, 14, 17, 27, 30, 37, 37, 38])
    y = [0, 0, 1, 0, 0, 0, 0, -1, 0, 0, 0]
    weights = [0.96, 0.43, 0.15, 0.91, 0.57, 0.63, 0.16, 0.76, 0.92, 0.24, 0.30]
    covariance = Matern32(0.5, 3.0) * Periodic(1.0, 1.0, 7.0, order=2) + Affine(
        origin="first"
    )
    assert fitted(
        covariance,
        OrdinalLogit(0.3),
        matches,
        y,
        method,
        sample_weight=weights,
        max_iter=300,
    ).converged_


def test_overflow_is_an_error():
    rows = line_ups(np.random.default_rng(0), "same 5v5")
    with pytest.raises(ValueError, match="rate"):
        fitted(
            Constant(30.0), Gaussian(0.5), rows, np.arange(10), rate=1.0, max_iter=1000
        )
    with pytest.raises(ValueError, match="log p"):
        fitted(Constant(1.0), Gaussian(1e-100), matches_of([[1e-43]]), [1e100], "kl")


@every_likelihood
@both_methods
@pytest.mark.parametrize(
    ("covariance", "largest"),
    [(Constant(1.0), 1e7), (Linear(1.0, origin=0.0), 1e7 / 11)],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_designs_too_large_for_arithmetic_are_rejected(
    covariance, largest, likelihood, density, outcomes, method
):
    """A fit of the largest allowed design returns forecasts. The last match is at time
    11."""
    y = np.resize(outcomes, 12)
    unit = likelihood.noise
    for size in (1e20, 1e100):
        with pytest.raises(ValueError, match="deviation of a score"):
            fitted(covariance, likelihood, matches_of([[size], [-size]] * 6), y, method)
    matches = matches_of([[largest * unit], [-largest * unit]] * 6)
    model = fitted(covariance, likelihood, matches, y, method, max_iter=60)
    chances = model.predict_proba(matches)
    assert model.log_marginal_likelihood_ < 0
    assert (chances >= 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)


def test_the_largest_design_is_in_units_of_noise():
    one = matches_of([[1.0, -1.0]])
    for unit in (1e-30, 1e30):
        moments = fitted(
            Constant(2.0 * unit**2), Gaussian(unit**2), one, [unit]
        ).scores("f0", 0.0)
        np.testing.assert_allclose(moments, [0.4 * unit, np.sqrt(1.2) * unit])
