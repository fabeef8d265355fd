"""The theorem boxes of chapter 13, sentence by sentence."""

import warnings
from functools import partial

import numpy as np
import pytest
from dynamics import dense
from dynamics.problems import (
    curves,
    every_likelihood,
    fitted,
    matches_of,
    random_design,
)
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal
from scipy.stats import t as student

from preflearn.dynamics import (
    Affine,
    Constant,
    Gaussian,
    Matern12,
    Matern32,
    Probit,
    Wiener,
)

PRIORS = [
    Constant(1.0),
    Constant(0.5) + Matern12(1.0, lengthscale=4.0),
    Constant(0.3) + Wiener(0.4, origin=0.0),
    Matern12(2.0, lengthscale=1.0),
]


def fit(covariance, likelihood, method, X, time, y, **options):
    with warnings.catch_warnings(action="ignore"):
        return fitted(
            covariance,
            likelihood,
            matches_of(X, time),
            y,
            method,
            **({"tol": 1e-12} | options),
        )


def moments(model, time):
    """Return means and variances of all features at all times, (T, M) each."""
    mean, deviation = curves(model, model.features_, time).transpose(1, 2, 0)
    return mean, deviation**2


DENSITIES = {
    "probit": lambda u: log_ndtr(u),
    "logit": lambda u: -np.logaddexp(0, -u),
    "Gaussian": lambda u: -((u - 3) ** 2) / 0.2,
    "steep": lambda u: log_ndtr(5 * (u - 0.5)),
    "flat": lambda u: np.zeros_like(u),
    "two peaks": lambda u: np.logaddexp(-((u - 2) ** 2) / 0.1, -((u + 2) ** 2) / 0.1),
    "Student": lambda u: student(1.5, loc=4.0, scale=0.3).logpdf(u),
}
CONCAVE = ("probit", "logit", "Gaussian", "steep", "flat")


@pytest.mark.theorem("prop-inference-ep")
@pytest.mark.parametrize("name", DENSITIES)
def test_ep_of_one_match(name):
    rng = np.random.default_rng(3)
    seconds = []
    for _ in range(6):
        x = rng.choice([-2.0, -1, 1, 1.5], size=2)
        c = rng.normal(size=2)
        v = rng.uniform(0.2, 2.0, size=2)
        shifted = partial(shifted_density, DENSITIES[name], x @ c)
        tilted = dense.brute_force([x], v, shifted, [0.0], n_points=601, width=12.0)
        mean = tilted.mean + c
        variance = tilted.variance
        _, (d1,), (d2,) = dense.log_partition(shifted, [0.0], [0.0], [x**2 @ v])
        np.testing.assert_allclose(mean, c + v * x * d1, atol=1e-7)  # (a)
        np.testing.assert_allclose(variance, v + v**2 * x**2 * d2, atol=1e-7)
        D = 1 + v * x**2 * d2
        assert (D > 0).all()  # (b)
        alpha = (x * d1 - c * x**2 * d2) / D
        beta = -(x**2) * d2 / D
        np.testing.assert_allclose(1 / (1 / v + beta), variance, atol=1e-7)
        np.testing.assert_allclose((c / v + alpha) / (1 / v + beta), mean, atol=1e-7)
        assert ((beta >= -1e-9) == (d2 <= 1e-9)).all()  # (c)
        seconds.append(d2)
    if name in CONCAVE:
        assert max(seconds) < 1e-9
    else:
        assert max(seconds) > 0.01  # without the condition, it does not hold


def shifted_density(log_density, shift, y, d):
    return log_density(d + shift)


@pytest.mark.theorem("prop-inference-ep")
def test_one_site_matches_a_whole_process():
    """(d): at other times, too, mean and variance are those of the exact posterior of
    one match."""
    K = Matern12(1.5, lengthscale=2.0)
    time = np.array([0.0, 1.0, 2.5])
    X = np.array([[1.0, -1.0]])
    model = fit(K, Probit(), "ep", X, time[1:2], [1])
    root = np.linalg.cholesky(K.gram(time))
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    z = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij")).reshape(4, -1)
    w = np.prod(
        np.stack(np.meshgrid(*[weights / weights.sum()] * 4, indexing="ij")).reshape(
            4, -1
        ),
        axis=0,
    )
    first = root @ z[:3]
    second = np.sqrt(1.5) * z[3]
    p = w * np.exp(log_ndtr(first[1] - second))
    p /= p.sum()
    mean = first @ p
    cov = (first * p) @ first.T - np.outer(mean, mean)
    found = model.scores("f0", time)
    np.testing.assert_allclose(found[0], mean, atol=1e-8)
    np.testing.assert_allclose(found[1] ** 2, np.diag(cov), atol=1e-8)
    beta = model.pseudo_observations_[0, 1]
    whole = np.linalg.inv(np.linalg.inv(K.gram(time)) + np.diag([0, beta, 0]))
    np.testing.assert_allclose(whole, cov, atol=1e-8)


@pytest.mark.theorem("prop-inference-kl")
@every_likelihood
def test_the_bound_has_one_stationary_point_of_this_form(likelihood, density, outcomes):
    y = np.resize(outcomes, 3)
    model = fit(
        PRIORS[1],
        likelihood,
        "kl",
        [[1.0, -1, 0], [0, 1, -1], [1, -1, 0]],
        np.array([0.0, 1, 3]),
        y,
    )
    problem = dense.Problem(model.matches_, PRIORS[1])
    alpha, beta = model.pseudo_observations_.T
    assert (beta >= 0).all()  # (b)
    covariance = np.linalg.inv(np.linalg.inv(problem.gram) + np.diag(beta))  # (a)
    # entries of the lower triangular factor of each feature's covariance
    own = np.tril(problem.feature[:, None] == problem.feature)

    def bound(at):
        factor = np.zeros((6, 6))
        factor[own] = at[6:]
        return dense.kl_bound(problem, density, y, at[:6], factor @ factor.T)

    at = np.append(covariance @ alpha, np.linalg.cholesky(covariance)[own])
    top = bound(at)
    assert top == pytest.approx(model.log_marginal_likelihood_, abs=1e-6)
    slopes = [
        (bound(at + step) - bound(at - step)) / 2e-4 for step in 1e-4 * np.eye(len(at))
    ]
    np.testing.assert_allclose(slopes, 0, atol=1e-5)
    rng = np.random.default_rng(1)
    for _ in range(30):
        a, b = (
            np.append(rng.normal(size=6), np.abs(rng.normal(size=own.sum())) + 0.05)
            for _ in range(2)
        )
        assert (bound(a) + bound(b)) / 2 < bound((a + b) / 2)
        assert bound(a) < top


@pytest.mark.theorem("thm-inference-gaussian")
@pytest.mark.parametrize(
    "covariance", [*PRIORS, Matern32(1.0, lengthscale=2.0)], ids=repr
)
def test_gaussian_rows_of_one_feature_take_one_iteration(covariance):
    """(a)"""
    rng = np.random.default_rng(2)
    time = np.arange(1.0, 7)
    X = np.eye(2)[rng.integers(0, 2, 6)] * rng.choice([-2.0, 1, 0.5], (6, 1))
    y = rng.normal(size=6)
    mean, variance, evidence = dense.exact_gaussian(covariance, 0.5, X, time, y)
    for method in ("ep", "kl"):
        model = fit(covariance, Gaussian(0.5), method, X, time, y, rate=1.0, tol=1e-9)
        assert len(model.trace_) == 2  # the second evaluation changes nothing
        np.testing.assert_allclose(moments(model, time), (mean, variance), atol=1e-9)
        assert model.log_marginal_likelihood_ == pytest.approx(evidence, abs=1e-9)


@pytest.mark.theorem("thm-inference-gaussian")
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    "covariance", [*PRIORS, Matern32(1.0, lengthscale=2.0)], ids=repr
)
def test_gaussian_means_are_exact_and_variances_are_ordered(covariance, size):
    """(b), (c), and (e) for differences."""
    rng = np.random.default_rng(size)
    time = np.sort(rng.uniform(0.1, 6, 12))
    X = random_design(rng, 12, 4)
    y = rng.normal(size=12)
    if size == 3:
        X = np.column_stack([X, np.ones(12)])
    mean, variance, evidence = dense.exact_gaussian(covariance, 0.8, X, time, y)
    ep = fit(covariance, Gaussian(0.8), "ep", X, time, y)
    kl = fit(covariance, Gaussian(0.8), "kl", X, time, y)
    (ep_mean, ep_variance), (kl_mean, kl_variance) = (
        moments(ep, time),
        moments(kl, time),
    )
    np.testing.assert_allclose(ep_mean, mean, atol=1e-8)
    np.testing.assert_allclose(kl_mean, mean, atol=1e-8)
    K = covariance.gram(time)
    block = [
        np.diag(np.linalg.solve(np.eye(12) + K * X[:, m] ** 2 / 0.8, K))
        for m in range(X.shape[1])
    ]
    np.testing.assert_allclose(kl_variance, np.transpose(block), atol=1e-9)
    assert (kl_variance < variance + 1e-12).all()
    assert (kl_variance < ep_variance + 1e-12).all()
    assert kl.log_marginal_likelihood_ < evidence
    if size == 2 and covariance in PRIORS:
        assert (ep_variance < variance + 1e-10).all()


@pytest.mark.theorem("thm-inference-gaussian")
def test_eps_variances_have_one_fixed_point_and_rise_to_it():
    """(c): from 0, the precisions of the sites can only increase. Other starts have the
    same limit."""
    rng = np.random.default_rng(5)
    for M, size in ((3, 2), (5, 2), (4, 3)):
        time = np.sort(rng.uniform(0, 4, 9))
        X = random_design(rng, 9, M)
        if size == 3:
            X = np.column_stack([X, rng.choice([0.5, 1.0], 9)])
        K = PRIORS[1].gram(time)
        used = X != 0

        def swept(beta, K=K, X=X, used=used):
            after = np.transpose(
                [np.diag(np.linalg.solve(np.eye(9) + K * b, K)) for b in beta.T]
            )
            cavity = 1 / (1 / after - beta)
            others = (X**2 * cavity).sum(axis=1, keepdims=True) - X**2 * cavity
            return np.where(used, X**2 / (0.6 + others), 0)

        ends = []
        for start in (
            0 * X,
            X**2 / 0.6,
            np.where(used, rng.exponential(5.0, X.shape), 0),
        ):
            beta = start
            for _ in range(400):
                last = beta
                beta = swept(beta)
                if not start.any():
                    assert (beta >= last - 1e-12).all()
            ends.append(beta)
        np.testing.assert_allclose(ends[1], ends[0], atol=1e-9)
        np.testing.assert_allclose(ends[2], ends[0], atol=1e-9)


@pytest.mark.theorem("thm-inference-gaussian")
@pytest.mark.parametrize(
    ("rows", "longest"),
    [
        ([(0, 1)], 1),
        ([(0, 1), (1, 2), (2, 3)], 3),
        ([(0, 1), (0, 2), (0, 3)], 2),
        ([(0, 1, 2), (2, 3, 4)], 2),
    ],
)
def test_ep_is_exact_on_forests(rows, longest):
    """(d)"""
    X = np.zeros((len(rows), 5))
    for row, members in zip(X, rows, strict=True):
        row[list(members)] = [1, -1, 0.5][: len(members)]
    X = X[:, X.any(axis=0)]
    time = np.arange(len(rows), dtype=float)
    y = np.arange(1.0, len(rows) + 1)
    mean, variance, evidence = dense.exact_gaussian(PRIORS[1], 0.3, X, time, y)
    model = fit(PRIORS[1], Gaussian(0.3), "ep", X, time, y, rate=1.0, tol=1e-10)
    assert len(model.trace_) == longest + 1
    np.testing.assert_allclose(moments(model, time), (mean, variance), atol=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(evidence, abs=1e-9)


@pytest.mark.theorem("thm-inference-gaussian")
def test_eps_variances_can_be_above_the_exact_ones_where_rows_are_no_differences():
    """(e) needs its condition, but (b) and (c) do not."""
    X = np.array([[1.0, 1, 1], [1, 1, -1]])
    y = np.array([1.0, 0.3])
    mean, variance, _ = dense.exact_gaussian(Constant(1.0), 0.3, X, np.zeros(2), y)
    ep = moments(
        fit(Constant(1.0), Gaussian(0.3), "ep", X, np.zeros(2), y), np.zeros(2)
    )
    np.testing.assert_allclose(ep[0], mean, atol=1e-8)
    assert (ep[1] / variance)[0, 2] == pytest.approx(3.29, abs=0.01)
    assert (ep[1] >= 1 / (1 + 2 / 0.3) - 1e-9).all()


@pytest.mark.theorem("thm-inference-gaussian")
def test_eps_variances_can_be_above_the_exact_ones_where_v_has_negative_entries():
    """(e) needs V >= 0, even if all rows are differences."""
    X = np.array([[1.0, -1, 0], [0, 1, -1], [0, 1, -1]])
    time = np.array([-1.0, 1, 2])
    covariance = Affine(1.0, 1.0, origin=0.0)
    K = covariance.gram(time)
    ben = np.linalg.solve(np.eye(3) + K * X[:, 1] ** 2 / 0.01, K)
    assert ben.min() < 0
    _, variance, _ = dense.exact_gaussian(covariance, 0.01, X, time, np.zeros(3))
    model = fit(covariance, Gaussian(0.01), "ep", X, time, np.zeros(3), max_iter=5000)
    ratio = (moments(model, time)[1] / variance)[0, :2]
    np.testing.assert_allclose(ratio, [1.33, 1.34], atol=0.01)


@pytest.mark.theorem("thm-inference-gaussian")
def test_two_matches_of_a_pair_are_a_cycle():
    X = np.array([[1.0, -1], [1, -1]])
    time = np.array([0.0, 1])
    y = np.array([1.0, 0])
    model = fit(PRIORS[1], Gaussian(0.3), "ep", X, time, y)
    _, variance, evidence = dense.exact_gaussian(PRIORS[1], 0.3, X, time, y)
    assert (moments(model, time)[1] < variance - 1e-3).all()
    assert model.log_marginal_likelihood_ < evidence - 1e-3


@pytest.mark.theorem("lem-inference-concave")
@pytest.mark.parametrize(
    ("density", "outcomes"),
    [
        (dense.probit, (-1, 1)),
        (dense.logit, (-1, 1)),
        (dense.ordinal(log_ndtr, 0.4), (-1, 0, 1)),
        (dense.poisson, (0, 1, 7)),
        (dense.gaussian(0.5), (-0.3, 2.0)),
    ],
)
def test_the_five_likelihoods_are_log_concave(density, outcomes):
    u = np.linspace(-6, 6, 601)
    mean = np.linspace(-3, 3, 25)
    for y in outcomes:
        assert np.diff(density(float(y), u), 2).max() < 1e-9
        for variance in (0.01, 1.0, 9.0):
            for integral in (dense.log_partition, dense.expected):
                y_all = np.full(25, float(y))
                second = integral(density, y_all, mean, np.full(25, variance))[2]
                assert second.max() < 1e-8 / variance


@pytest.mark.theorem("lem-inference-concave")
def test_a_likelihood_that_is_not_log_concave_can_have_negative_precisions():
    _, _, (second,) = dense.log_partition(
        lambda y, d: DENSITIES["Student"](d), [0.0], [0.0], [2.0]
    )
    assert second > 0


def evidence_gap(covariance, noise, method, X, time, y):
    """Return the estimated minus the exact evidence."""
    model = fit(covariance, Gaussian(noise), method, X, time, y, max_iter=20_000)
    exact = dense.exact_gaussian(covariance, noise, X, time, y)[2]
    return model.log_marginal_likelihood_ - exact


@pytest.mark.theorem("cor-inference-evidence")
@pytest.mark.parametrize("method", ["ep", "kl"])
@pytest.mark.parametrize("covariance", PRIORS, ids=repr)
def test_the_error_of_the_evidence_does_not_depend_on_the_outcomes(covariance, method):
    """(a), also for rows that are not differences."""
    rng = np.random.default_rng(8)
    time = np.sort(rng.uniform(0.1, 6, 10))
    for X in (random_design(rng, 10, 4), rng.normal(size=(10, 3))):
        gaps = [
            evidence_gap(covariance, 0.8, method, X, time, y)
            for y in (np.zeros(10), rng.normal(size=10), 3 + 5 * rng.normal(size=10))
        ]
        np.testing.assert_allclose(gaps, gaps[0], atol=1e-6)


ROUND_ROBIN = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


@pytest.mark.theorem("cor-inference-evidence")
@pytest.mark.parametrize("method", ["ep", "kl"])
@pytest.mark.parametrize(
    "pairs", [[(0, 1)] * 3, [(0, 1)] * 20, ROUND_ROBIN, ROUND_ROBIN + [(3, 4)] * 3]
)
def test_the_error_of_the_evidence_grows_with_half_the_log_of_the_variance(
    pairs, method
):
    """(b)"""
    X = np.zeros((len(pairs), 1 + np.max(pairs)))
    for row, (i, j) in zip(X, pairs, strict=True):
        row[[i, j]] = 1, -1
    assert (X != 0).sum(axis=0).min() >= 3
    zeros = np.zeros(len(pairs))
    rest = [
        evidence_gap(Constant(v), 1.0, method, X, zeros, zeros) + np.log(v) / 2
        for v in (1e2, 1e4, 1e5)
    ]
    np.testing.assert_allclose(rest[1:], rest[1], atol=0.02)
    np.testing.assert_allclose(rest[0], rest[1], atol=0.2)


@pytest.mark.theorem("cor-inference-evidence")
def test_forests_have_no_such_error_under_ep():
    """(b) needs a minimum number of matches per player."""
    X = np.array([[1.0, -1, 0], [0, 1, -1]])
    gap = evidence_gap(Constant(1e4), 1.0, "ep", X, np.zeros(2), np.ones(2))
    assert gap == pytest.approx(0, abs=1e-6)


@pytest.mark.theorem("prop-inference-rates")
@pytest.mark.parametrize("noise", [0.01, 1.0])
@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_rates_of_reverse_kl(k, noise):
    """The residual is multiplied by the largest |1 - rate rho_i| in each sweep."""
    rng = np.random.default_rng(k)
    n = 8
    M = k + 2
    X = np.zeros((n, M))
    for row in X:
        row[rng.choice(M, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    X[:3] = X[0]
    X = X[:, X.any(axis=0)]
    time = np.arange(1.0, n + 1)
    y = rng.normal(size=n)
    precision = np.kron(np.eye(X.shape[1]), np.linalg.inv(PRIORS[1].gram(time)))
    design = np.hstack([np.diag(X[:, m]) for m in range(X.shape[1])])
    D = precision + np.diag((design**2).sum(axis=0)) / noise
    rho = np.linalg.eigvals(
        np.linalg.solve(D, precision + design.T @ design / noise)
    ).real
    assert rho.min() > 0
    assert rho.max() <= k + 1e-9
    limit = 2 / rho.max()
    for rate in (
        min(1.0, 0.98 * 2 / k),
        min(1.0, 0.96 * limit),
        0.3 / k,
        *(r for r in [1.05 * limit] if r < 1),
    ):
        model = fit(
            PRIORS[1],
            Gaussian(noise),
            "kl",
            X,
            time,
            y,
            rate=rate,
            max_iter=150,
            tol=1e-12,
        )
        left = model.trace_["residual"].to_numpy()
        factor = np.abs(1 - rate * rho).max()
        assert (factor < 1) == (rate < limit)
        if factor > 1:
            assert left[-1] > 10 * left[75]
        else:
            assert left[-1] < max(1.05 * left[len(left) // 2], 1e-9)
            # at rate 1, only rounding errors may remain after a few sweeps
            if rate < 1:
                assert (
                    left[-1]
                    <= 50 * left[0] * max(factor, 1 - rate) ** (len(left) - 1) + 1e-10
                )


@pytest.mark.theorem("prop-inference-rates")
def test_ep_has_no_such_rates():
    """For these rows of two features at rate 1, and a covariance that extrapolates,
    reverse-KL converges and EP does not."""
    rng = np.random.default_rng(29)
    time = np.sort(rng.uniform(0, 5, 10))
    X = random_design(rng, 10, 5)
    y = rng.normal(size=10)
    residual = {}
    for method in ("ep", "kl"):
        model = fit(
            Affine(1.0, 1.0, origin=0.0),
            Gaussian(0.002),
            method,
            X,
            time,
            y,
            rate=1.0,
            max_iter=400,
        )
        residual[method] = model.trace_["residual"].to_numpy()
    assert residual["ep"][-1] > 1e3 * residual["ep"][100]
    assert residual["kl"][-1] < 0.1 * residual["kl"][100]


def grid_moments(mean, covariance, x, log_density):
    """Return mean, covariance, and log integral of N(s; mean, covariance) p(x·s), by a
    grid over two scores."""
    deviation = np.sqrt(np.diag(covariance))
    z = np.linspace(-9, 9, 901)
    s = np.stack(np.meshgrid(*(mean[:, None] + deviation[:, None] * z), indexing="ij"))
    s = s.reshape(2, -1)
    prior = multivariate_normal(mean, covariance).logpdf(s.T)
    logs = prior + log_density(x @ s)
    weight = np.exp(logs - logs.max())
    cell = deviation.prod() * (z[1] - z[0]) ** 2
    log_total = np.log(weight.sum() * cell) + logs.max()
    weight /= weight.sum()
    center = s @ weight
    return center, (s * weight) @ s.T - np.outer(center, center), log_total


@pytest.mark.theorem("prop-inference-joint")
@pytest.mark.parametrize("name", ["probit", "logit", "Gaussian", "Student"])
def test_one_site_per_match_keeps_all_means_and_covariances(name):
    mean = np.array([0.4, -0.3])
    covariance = np.array([[1.5, 0.8], [0.8, 1.0]])
    x = np.array([1.0, -1.5])
    c = x @ mean
    v = x @ covariance @ x
    exact_mean, exact_covariance, log_z = grid_moments(
        mean, covariance, x, DENSITIES[name]
    )
    # moments of u, by a grid over u alone
    u = c + np.sqrt(v) * np.linspace(-12, 12, 40_001)
    logs = DENSITIES[name](u) - (u - c) ** 2 / (2 * v)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    d1 = (u @ weight - c) / v
    d2 = ((u - u @ weight) ** 2 @ weight - v) / v**2
    alpha = (d1 - c * d2) / (1 + v * d2)
    beta = -d2 / (1 + v * d2)
    after = np.linalg.inv(np.linalg.inv(covariance) + beta * np.outer(x, x))
    center = after @ (np.linalg.solve(covariance, mean) + alpha * x)
    assert center == pytest.approx(exact_mean, abs=1e-6)
    assert after == pytest.approx(exact_covariance, abs=1e-6)
    assert np.isfinite(log_z)


@pytest.mark.theorem("prop-inference-joint")
@pytest.mark.parametrize("covariance", PRIORS, ids=str)
def test_one_site_per_match_is_exact_for_gaussian_outcomes(covariance):
    rng = np.random.default_rng(5)
    X = random_design(rng, 25, 4)
    time = np.sort(rng.uniform(0.1, 6, size=25))
    y = rng.normal(size=25)
    model = fit(covariance, Gaussian(0.7), "ep", X, time, y, posterior="joint")
    total = (X @ X.T) * covariance.gram(time) + 0.7 * np.eye(25)
    log_p = multivariate_normal(np.zeros(25), total).logpdf(y)
    assert model.log_marginal_likelihood_ == pytest.approx(log_p, abs=1e-8)
    mean, found = model.joint_scores(model.features_, 3.0)
    # covariance of the scores at time 3 with the outcomes
    cross = X.T * covariance.gram([3.0], time)
    prior = covariance.gram([3.0]).item() * np.eye(4)
    assert mean == pytest.approx(cross @ np.linalg.solve(total, y), abs=1e-8)
    rest = prior - cross @ np.linalg.solve(total, cross.T)
    assert found == pytest.approx(rest, abs=1e-8)


@pytest.mark.theorem("prop-inference-joint")
def test_one_match_is_exact_with_one_site():
    X = np.array([[1.0, -1.0]])
    model = fit(Constant(2.0), Probit(), "ep", X, np.zeros(1), [1], posterior="joint")
    mean, covariance, log_z = grid_moments(
        np.zeros(2), 2 * np.eye(2), X[0], DENSITIES["probit"]
    )
    found = model.joint_scores(model.features_, 0.0)
    assert found[0] == pytest.approx(mean, abs=1e-6)
    assert found[1] == pytest.approx(covariance, abs=1e-6)
    assert model.log_marginal_likelihood_ == pytest.approx(log_z, abs=1e-6)
