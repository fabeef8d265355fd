"""The dense twins of dense.py: what the package, which they are compared with, does not show."""

import numpy as np
import pytest
from dynamics import dense

from preflearn.dynamics import Constant, Linear, Matern12
from preflearn.matches import Matches

DENSITIES = {
    "probit": (dense.probit(), [1, -1]),
    "logit": (dense.logit(), [1, -1]),
    "ordinal probit": (dense.ordinal_probit(0.4), [1, 0, -1]),
    "ordinal logit": (dense.ordinal_logit(0.4), [1, 0, -1]),
    "Poisson": (dense.poisson(), [0, 2]),
    "Gaussian": (dense.gaussian(0.5), [0.7, -1.2]),
    "Skellam": (dense.skellam(1.3), [0, 2, -1]),
}
every_density = pytest.mark.parametrize(("density", "outcomes"), DENSITIES.values(), ids=DENSITIES)


def problem(design, time, covariance):
    design = np.asarray(design, dtype=float)
    return dense.Problem(Matches(design, time, [f"f{k}" for k in range(design.shape[1])]), covariance)


def random_problem(rng, n, n_features, size, covariance):
    design = np.zeros((n, n_features))
    for row in design:
        row[rng.choice(n_features, size, replace=False)] = rng.choice([-1.0, 1.0, 0.5], size)
    return problem(design, np.sort(rng.uniform(0, 3, n)), covariance)


def test_brute_force_agrees_with_the_exact_gaussian():
    design = np.array([[1, -1, 0], [0, 1, -1], [1, 0.5, -1], [1, -1, 0]])
    y, variances = np.array([0.5, -1, 0.3, 2]), np.array([1.0, 2.0, 0.7])
    true = dense.brute_force(design, variances, dense.gaussian(0.8), y, n_points=101)
    covariance = {f"f{k}": Constant(v) for k, v in enumerate(variances)}
    this = problem(design, np.arange(4.0), covariance)
    exact = dense.exact_gaussian(this, y, 0.8)
    np.testing.assert_allclose(exact.mean, true.mean[this.feature], atol=1e-9)
    np.testing.assert_allclose(np.diag(exact.covariance), true.variance[this.feature], atol=1e-9)
    assert exact.log_evidence == pytest.approx(true.log_evidence, abs=1e-9)
    mean, deviation = dense.exact_gaussian_scores(this, y, 0.8, 1, np.array([-3.0, 9.0]))
    np.testing.assert_allclose(mean, true.mean[1], atol=1e-9)
    np.testing.assert_allclose(deviation**2, true.variance[1], atol=1e-9)


@every_density
def test_kl_is_the_highest_bound(density, outcomes):
    """Against all Gaussians nearby, and equal to the bound without sites."""
    rng = np.random.default_rng(1)
    this = random_problem(rng, 5, 3, 2, Matern12(1, 1))
    y = rng.choice(outcomes, 5)
    fixed = dense.fixed_point(this, density, y, "kl", rate=0.5)
    assert fixed.converged
    mean, covariance = fixed.state.mean, fixed.state.covariance
    best = dense.kl_bound(this, density, y, mean, covariance)
    assert fixed.log_evidence == pytest.approx(best, abs=1e-10)
    same = this.feature[:, None] == this.feature
    for _ in range(20):
        stretch = np.eye(len(mean)) + 1e-2 * same * rng.standard_normal(same.shape)
        other = dense.kl_bound(
            this, density, y, mean + 1e-2 * rng.standard_normal(mean.shape), stretch @ covariance @ stretch.T
        )
        assert other < best


@every_density
def test_ep_evidence_is_stationary_at_the_fixed_point(density, outcomes):
    """Its derivatives by all sites vanish where moments match: a second way to the same sites."""
    rng = np.random.default_rng(2)
    this = random_problem(rng, 4, 3, 2, Matern12(1, 1))
    y = rng.choice(outcomes, 4).astype(float)
    fixed = dense.fixed_point(this, density, y, "ep")
    assert fixed.converged
    sites = np.concatenate([fixed.state.alpha, fixed.state.beta])

    def evidence(sites):
        return dense.ep_sites(this, density, y, dense.state(this, *np.split(sites, 2)))[2]

    for step in 1e-4 * np.eye(len(sites)):
        assert abs(evidence(sites + step) - evidence(sites - step)) / 2e-4 < 1e-7


def test_scores_at_the_matches_are_the_marginals():
    rng = np.random.default_rng(4)
    this = random_problem(rng, 6, 3, 2, Matern12(1, 1) + Linear(0.3))
    fixed = dense.fixed_point(this, dense.probit(), rng.choice([-1, 1], 6), "ep")
    for m in range(3):
        mine = this.feature == m
        mean, deviation = dense.scores(this, fixed.state, m, this.time[mine])
        np.testing.assert_allclose(mean, fixed.state.mean[mine], atol=1e-12)
        np.testing.assert_allclose(deviation**2, fixed.state.variance[mine], atol=1e-12)


# ---- What converges (chapter 13): the conditions and counterexamples that were derived


def test_one_match_is_enough_for_a_two_cycle_of_reverse_kl():
    """3.1.2 of P4 promises convergence for log-concave likelihoods: not at rate 1, with a prior this wide."""
    this = problem([[1.0]], [0.0], Constant(25.0))
    cycle = dense.fixed_point(this, dense.probit(), [1], "kl", max_iter=300, keep=True)
    means = [q.mean[0] for q in cycle.history[-4:]]
    np.testing.assert_allclose(means[:2], means[2:], atol=1e-9)
    assert abs(means[0] - means[1]) > 1
    assert np.diff(cycle.evidences).min() < -0.5
    assert dense.fixed_point(this, dense.probit(), [1], "kl", rate=0.5).converged
