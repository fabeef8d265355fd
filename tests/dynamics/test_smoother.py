"""Smoothing with sums and products of covariances with one or more states, compared
with dense algebra."""

import numpy as np
import pytest
from dynamics import dense
from dynamics.problems import (
    COVARIANCES,
    LIKELIHOODS,
    SIZES,
    assert_equals_dense,
    both_methods,
    fitted,
    matches_of,
    random_design,
    random_matches,
)
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples

from preflearn.dynamics import (
    Affine,
    Constant,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Probit,
    SquaredExponential,
    Wiener,
)
from preflearn.dynamics.engine.smoother import (
    StateTables,
    Visits,
    _of_size,
    loop_for,
    smooth,
)

TERMS = (
    Constant(0.3),
    Wiener(0.2, -1.0),
    Affine(0.5, 0.2, origin=0.0),
    Matern12(0.6, 1.3),
    Matern32(0.6, 1.1),
    Matern52(0.8, 2.0),
    Matern52(0.5, 0.7),
    SquaredExponential(0.4, 0.8, order=2),  # two numbers without a chain structure
    SquaredExponential(0.4, 0.9, order=4),
    Periodic(0.4, 1.5, 2.5, order=2) * Matern12(1.0, 3.0),
)
# products of a process without noise and a process that starts at each feature's first
# match
FROM_FIRST = [
    Constant(0.5) * Wiener(1.0, "first") + Constant(0.2),
    Affine(0.5, 0.2, origin=0.0) * (Constant(1.0) + Wiener(0.5, "first")),
]
SUMS = st.lists(st.sampled_from(TERMS), min_size=1, max_size=5).map(
    lambda terms: sum(terms[1:], terms[0])
)


@pytest.mark.parametrize(
    ("method", "covariance"),
    [
        *(("ep", covariance) for covariance in (*COVARIANCES, *FROM_FIRST)),
        *(("kl", k) for k in SIZES),
    ],
    ids=repr,
)
def test_fixed_points_equal_the_dense_ones_by_covariance(method, covariance):
    rng = np.random.default_rng(2)
    assert_equals_dense(
        fitted(
            covariance, Probit(), random_matches(rng), rng.choice([1, -1], 9), method
        ),
        dense.probit,
    )


@both_methods
def test_a_process_that_is_certain_at_its_first_match(method):
    """A Wiener process has its origin at the first match. Its score is 0 there for any
    outcome."""
    matches = matches_of([[1.0, -1.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 2.0])
    model = fitted(Wiener(0.5, origin=0.0), Probit(), matches, [1, 1, -1], method)
    mean, deviation = model.scores("f0", [0.0, 1.0])
    assert (mean[0], deviation[0]) == pytest.approx((0, 0), abs=1e-12)
    later = fitted(Wiener(0.5, origin=0.0), Probit(), matches[1:], [1, -1], method)
    np.testing.assert_allclose(mean, later.scores("f0", [0.0, 1.0])[0], atol=1e-9)
    expected = later.log_marginal_likelihood_ + np.log(0.5)
    assert model.log_marginal_likelihood_ == pytest.approx(expected, abs=1e-9)


# ---- Degenerate schedules: one time, gaps of centuries or instants, one match per
# feature


@both_methods
@pytest.mark.parametrize(
    "time", [np.zeros(8), np.repeat([0.0, 1.0], 4)], ids=["one time", "two times"]
)
def test_simultaneous_matches(method, time):
    """The same two players and others meet at one time. All matches are at one or two
    times."""
    rng = np.random.default_rng(11)
    matches = matches_of(random_design(rng, 8, 3), time)
    y = rng.choice([1, 0, -1], 8)
    likelihood, density, _ = LIKELIHOODS["OrdinalProbit"]
    for covariance in (Matern32(1.0, 0.5), Wiener(1.0, origin=-1.0)):
        assert_equals_dense(fitted(covariance, likelihood, matches, y, method), density)


@both_methods
@pytest.mark.filterwarnings("ignore:lengthscale=.* is very short:UserWarning")
@pytest.mark.parametrize(
    "covariance",
    [Matern12(1.0, 0.5), Matern52(1.0, 0.5), Constant(0.5) + Wiener(0.01, origin=0.0)],
)
def test_gaps_of_centuries_and_of_an_instant(covariance, method):
    rng = np.random.default_rng(12)
    matches = matches_of(
        random_design(rng, 7, 3), [0.0, 1e-9, 0.3, 500.0, 500.0 + 1e-7, 900.0, 4000.0]
    )
    model = fitted(covariance, Probit(), matches, rng.choice([1, -1], 7), method)
    assert_equals_dense(model, dense.probit, rate=0.2)


@both_methods
@pytest.mark.parametrize("covariance", SIZES, ids=repr)
def test_features_that_are_seen_once(method, covariance):
    matches = matches_of(np.kron(np.eye(4), [1.0, -1.0, 0.5]))
    assert_equals_dense(
        fitted(covariance, Probit(), matches, [1, -1, -1, 1], method), dense.probit
    )


# ---- The compiled loops


class TwoFeatures:
    """Two features with n visits each, and random pseudo-observations, some of which
    contain no information."""

    def __init__(self, covariance, n, seed):
        rng = np.random.default_rng(seed)
        self.space = covariance.state_space()
        self.time = np.sort(rng.uniform(0, 5, (2, n)))
        self.n = n
        self.sites = np.stack(
            [rng.normal(size=2 * n), rng.uniform(0, 3, 2 * n)]
        ) * rng.choice([0, 1], 2 * n)
        self.entry = rng.permutation(2 * n)

    def smoothed(self, loop, cavity=False):
        """Return the sum of log Z~, the mean and variance of the visits, (2, 2, n), and
        what is stored for forecasts."""
        first = self.time[:, :1]
        n = self.n
        space = self.space
        begin = np.repeat(first, n - 1, axis=1).ravel()
        table = space.steps(self.time[:, :-1].ravel(), self.time[:, 1:].ravel(), begin)
        step = np.append(
            np.arange(2)[:, None], np.arange(2 * n - 2).reshape(2, n - 1), axis=1
        ).ravel()
        entries = np.zeros((2 * n, 4))
        entries[self.entry, :2] = self.sites.T
        kept = np.full((2, 2 * n, space.size * (space.size + 3) // 2), np.nan)
        total = loop(
            entries,
            Visits(self.entry, step, np.arange(3) * n),
            StateTables(space.layout, space.initial(first.ravel()), table),
            np.arange(2),
            cavity,
            *kept,
        )
        return total, entries[self.entry, 2:].T.reshape(2, 2, n), kept


def dense_moments(K, alpha, beta):
    """Return the log of the integral of N(z; 0, K) exp(alpha z - beta z²/2), and means
    and variances of z."""
    S = np.linalg.solve(np.eye(len(K)) + K * beta, K)
    return (
        0.5 * alpha @ S @ alpha - 0.5 * np.linalg.slogdet(np.eye(len(K)) + K * beta)[1],
        S @ alpha,
        np.diag(S),
    )


@given(SUMS, st.integers(1, 6), st.integers(0, 2**32 - 1))
@examples(60)
def test_the_loops_are_the_algebra_of_normal_distributions(covariance, n, seed):
    visits = TwoFeatures(covariance, n, seed)
    total, (mean, variance), _ = visits.smoothed(smooth)
    _, (cavity_mean, cavity_variance), _ = visits.smoothed(smooth, cavity=True)
    expected = 0.0
    for k, time in enumerate(visits.time):
        K = dense.ImpliedCovariance(visits.space).gram(time)
        alpha, beta = visits.sites[:, k * n : (k + 1) * n]
        value, *moments = dense_moments(K, alpha, beta)
        expected += value
        np.testing.assert_allclose(
            [mean[k], variance[k]], moments, rtol=1e-9, atol=1e-11
        )
        for i in range(n):
            others = np.arange(n) != i
            _, means, variances = dense_moments(K, alpha * others, beta * others)
            found = cavity_mean[k, i], cavity_variance[k, i]
            np.testing.assert_allclose(
                found, (means[i], variances[i]), rtol=1e-9, atol=1e-11
            )
    assert total == pytest.approx(expected, rel=1e-10, abs=1e-11)


@given(
    st.sampled_from(TERMS), st.integers(1, 6), st.integers(0, 2**32 - 1), st.booleans()
)
@examples(60)
def test_negative_precisions_are_smoothed_where_the_posterior_is_normal(
    covariance, n, seed, cavity
):
    """The prior with the first visits need not be a normal distribution. If the prior
    with all visits is not one, the result is NaN."""
    visits = TwoFeatures(covariance, n, seed)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], 2 * n, p=[0.3, 0.7])
    visits.sites[1] *= signs
    total, (mean, variance), _ = visits.smoothed(smooth, cavity)
    normal = []
    for k, time in enumerate(visits.time):
        K = dense.ImpliedCovariance(visits.space).gram(time)
        alpha, beta = visits.sites[:, k * n : (k + 1) * n]
        # eigenvalues of K^1/2 (K^-1 + B) K^1/2, which are real
        eigenvalues = np.linalg.eigvals(np.eye(n) + K * beta).real
        if np.abs(eigenvalues).min() < 1e-3:
            return
        normal.append(bool((eigenvalues > 0).all()))
        assert np.isfinite(variance[k]).all() == normal[-1]
        if not normal[-1] or cavity:
            continue
        _, *moments = dense_moments(K, alpha, beta)
        np.testing.assert_allclose(
            [mean[k], variance[k]], moments, rtol=1e-6, atol=1e-8
        )
    assert np.isfinite(total) == all(normal)


@given(
    st.sampled_from(TERMS), st.integers(1, 6), st.integers(0, 2**32 - 1), st.booleans()
)
@examples(40)
def test_the_loops_of_one_size_equal_that_of_any_size_and_interpreted_ones(
    covariance, n, seed, cavity
):
    visits = TwoFeatures(covariance, n, seed)
    loop = loop_for(visits.space.layout)
    general = _of_size(0)
    found = visits.smoothed(loop, cavity)
    for other in (general, getattr(loop, "py_func", loop)):
        for one, reference in zip(found, visits.smoothed(other, cavity), strict=True):
            np.testing.assert_allclose(one, reference, rtol=1e-10, atol=1e-12)
