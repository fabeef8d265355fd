"""The theorem boxes of chapter 14, sentence by sentence."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import poisson

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Logit,
    Matern12,
    OrdinalProbit,
    Probit,
    Skellam,
    Wiener,
)
from preflearn.matches import Matches

LINKS = {
    "probit": (ndtr, ndtri),
    "logit": (lambda u: 1 / (1 + np.exp(-u)), lambda p: np.log(p / (1 - p))),
}


def random_chances(n, rng):
    upper = np.triu(rng.uniform(0.02, 0.98, size=(n, n)), 1)
    return upper + np.tril(1 - upper.T, -1) + np.eye(n) / 2


@pytest.mark.theorem("prop-sports-interactions")
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("n", [2, 3, 7])
def test_any_chances_have_interactions(link, n):
    """(a), with any scores of the players, including zero and equal scores."""
    F, inverse = LINKS[link]
    rng = np.random.default_rng(n)
    for s in (rng.normal(size=n), np.zeros(n), 3 * np.ones(n)):
        P = random_chances(n, rng)
        own = inverse(P) - s[:, None] + s[None]
        np.testing.assert_allclose(own, -own.T, atol=1e-9)
        np.testing.assert_allclose(F(s[:, None] - s[None] + own), P, atol=1e-12)
        other = own + 1e-3 * (
            np.triu(np.ones((n, n)), 1) - np.tril(np.ones((n, n)), -1)
        )
        # the interactions are unique
        assert (
            np.abs(F(s[:, None] - s[None] + other) - P)[~np.eye(n, dtype=bool)].min()
            > 0
        )


@pytest.mark.theorem("prop-sports-interactions")
@pytest.mark.parametrize("link", LINKS)
def test_without_interactions_only_sums_of_zero(link):
    """(b): both directions, transitivity, and a counterexample to its converse."""
    F, inverse = LINKS[link]
    rng = np.random.default_rng(0)
    for n in (2, 3, 6):
        t = rng.normal(size=n).round(1)  # some strengths are equal
        d = inverse(F(t[:, None] - t[None]))
        sums = d[:, :, None] + d[None] + d.T[:, None, :]  # the sums d_ij + d_jk + d_ki
        np.testing.assert_allclose(sums, 0, atol=1e-9)
        for k in range(n):  # the scores of the proof
            np.testing.assert_allclose(d[:, k][:, None] - d[:, k][None], d, atol=1e-9)
        P = F(d)
        for i, j, k in np.ndindex(n, n, n):
            if min(P[i, j], P[j, k]) >= 0.5:
                assert P[i, k] >= max(P[i, j], P[j, k]) - 1e-12
    P = np.full((3, 3), 0.5)
    P[0, 1] = P[1, 2] = P[0, 2] = 0.6
    d = inverse(P)
    assert P[0, 2] >= max(P[0, 1], P[1, 2])  # the probabilities are transitive
    assert d[0, 1] + d[1, 2] - d[0, 2] > 0.1  # but they do not come from scores


def tournament(kind, rng):
    """Return rows over players and pairs, with names. Some players meet once, and pairs
    meet many times."""
    if kind == "one pair":
        pairs = [(0, 1)] * 4
    elif kind == "a path":
        pairs = [(0, 1), (1, 2), (1, 2), (2, 3)]
    else:
        pairs = [tuple(sorted(rng.choice(6, 2, replace=False))) for _ in range(25)]
    couples = sorted(set(pairs))
    n = 1 + max(max(pair) for pair in pairs)
    X = np.zeros((len(pairs), n + len(couples)))
    for row, (i, j) in zip(X, pairs, strict=True):
        sign = rng.choice([-1.0, 1.0])
        row[i], row[j], row[n + couples.index((i, j))] = sign, -sign, sign
    used = [k for k in range(n) if X[:, k].any()]
    names = [f"p{k}" for k in used] + [(f"p{i}", f"p{j}") for i, j in couples]
    return X[:, used + list(range(n, X.shape[1]))], names, couples, used


def sums_over_opponents(own, couples, used):
    return np.array(
        [
            sum(
                v * (int(i == k) - int(j == k))
                for v, (i, j) in zip(own, couples, strict=True)
            )
            for k in used
        ]
    )


@pytest.mark.theorem("prop-sports-interactions")
@pytest.mark.parametrize("kind", ["one pair", "a path", "random"])
@pytest.mark.parametrize("method", ["ep", "kl"])
def test_players_are_sums_of_their_interactions(kind, method):
    """(c) at fixed points of both methods, for four likelihoods and also for equal
    outcomes."""
    rng = np.random.default_rng(1)
    X, names, couples, used = tournament(kind, rng)
    outcomes = {
        Probit(): rng.choice([-1, 1], size=len(X)),
        Logit(): np.ones(len(X), dtype=int),
        OrdinalProbit(0.4): rng.choice([-1, 0, 1], size=len(X)),
        Gaussian(2.0): rng.normal(size=len(X)),
    }
    for likelihood, y in outcomes.items():
        for kappa, eta in ((1.0, 1.0), (4.996, 4.342), (0.3, 2.0)):
            prior = {
                name: Constant(eta if isinstance(name, tuple) else kappa)
                for name in names
            }
            model = DynamicComparisons(prior, likelihood, method, tol=1e-12)
            model.fit(Matches(X, np.zeros(len(X)), names), y)
            mean = np.array([float(model.scores(name, 0.0)[0]) for name in names])
            player, own = np.split(mean, [len(used)])
            np.testing.assert_allclose(
                player, kappa / eta * sums_over_opponents(own, couples, used), atol=1e-6
            )


@pytest.mark.theorem("prop-sports-interactions")
@pytest.mark.parametrize("kind", ["one pair", "a path", "random"])
def test_the_mode_has_the_same_split(kind):
    """(c) at the mode, found by a general optimizer. The parts of the sum belong to the
    opponents."""
    rng = np.random.default_rng(2)
    X, _, couples, used = tournament(kind, rng)
    y = rng.choice([-1, 1], size=len(X))
    (kappa, eta) = (2.0, 0.7)
    variance = np.r_[np.full(len(used), kappa), np.full(len(couples), eta)]

    def minus_log(s):
        return -log_ndtr(y * (X @ s)).sum() + (s**2 / variance).sum() / 2

    s = minimize(
        minus_log, np.zeros(X.shape[1]), method="BFGS", options={"gtol": 1e-10}
    ).x
    u = X @ s
    # the derivative with respect to d
    g = y * np.exp(-(u**2) / 2 - log_ndtr(y * u)) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(s / variance, X.T @ g, atol=1e-5)
    player, own = np.split(s, [len(used)])
    np.testing.assert_allclose(
        player, kappa / eta * sums_over_opponents(own, couples, used), atol=1e-5
    )


@pytest.mark.theorem("prop-sports-interactions")
@pytest.mark.parametrize("n", [2, 3, 8])
def test_known_differences_are_split_by_the_variances(n):
    """(d), by least squares under the condition that the differences are d. Some
    strengths are equal."""
    rng = np.random.default_rng(n)
    t = rng.normal(size=n).round(0)
    (kappa, eta) = (1.3, 0.8)
    couples = [(i, j) for i in range(n) for j in range(i + 1, n)]
    d = np.array([t[i] - t[j] for i, j in couples])
    A = np.zeros((len(couples), n + len(couples)))
    for row, (i, j), k in zip(A, couples, range(len(couples)), strict=True):
        row[i] = 1
        row[j] = -1
        row[n + k] = 1
    root = np.sqrt(np.r_[np.full(n, kappa), np.full(len(couples), eta)])
    # solution of least norm in units of the prior
    s = root * np.linalg.lstsq(A * root, d, rcond=None)[0]
    np.testing.assert_allclose(A @ s, d, atol=1e-9)
    player, own = np.split(s, [n])
    np.testing.assert_allclose(own, eta / (n * kappa + eta) * d, atol=1e-9)
    np.testing.assert_allclose(
        player, kappa / eta * sums_over_opponents(own, couples, range(n)), atol=1e-9
    )


@pytest.mark.theorem("prop-sports-rates")
@pytest.mark.parametrize("r", [1.0, 0.02, 1.4, 100.0])
def test_rates_of_one_score_have_one_product_and_a_least_sum(r):
    d = np.array([0.0, 1e-9, -0.3, 0.3, 2.0, -5.0])
    first = r * np.exp(d)
    second = r * np.exp(-d)
    assert np.allclose(first * second, r**2)
    assert np.allclose(first + second, 2 * r * np.cosh(d))


@pytest.mark.theorem("prop-sports-rates")
@pytest.mark.parametrize("r", [1.0, 0.02, 1.4, 90.0])
def test_points_inform_about_one_score_by_their_difference_only(r):
    d = np.linspace(-1.5, 1.5, 31)
    for x, y in [(0, 0), (0, 3), (3, 0), (2, 2), (5, 1), (110, 95)]:
        both = poisson.logpmf(x, r * np.exp(d)) + poisson.logpmf(y, r * np.exp(-d))
        apart = Skellam(r).log_density(np.full(len(d), x - y), 2 * d)
        assert np.ptp(both - apart) < 1e-8 * (1 + np.abs(both).max())
        # other points with the same difference give the same function of d
        more = poisson.logpmf(x + 4, r * np.exp(d)) + poisson.logpmf(
            y + 4, r * np.exp(-d)
        )
        assert np.ptp(both - more) < 1e-8 * (1 + np.abs(more).max())
        # points with another difference give another function
        other = poisson.logpmf(x + 1, r * np.exp(d)) + poisson.logpmf(y, r * np.exp(-d))
        assert np.ptp(both - other) > 1


@pytest.mark.theorem("prop-sports-rates")
@pytest.mark.parametrize(
    "covariance",
    [
        Constant(5.47),
        Matern12(0.2, lengthscale=3.0),
        Constant(0.3) + Wiener(0.1, origin=0.0),
    ],
)
def test_attack_and_defence_are_a_score_and_an_offset(covariance):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 5))
    a[1], b[1] = a[0], b[0]  # two equal teams
    s = (a + b) / 2
    t = (a - b) / 2
    for i in range(5):
        for j in range(5):
            d = s[i] - s[j]
            r = np.exp(t[i] + t[j])
            assert np.allclose(
                [a[i] - b[j], a[j] - b[i]], np.log(r) + np.array([d, -d])
            )
    time = np.array([0.5, 0.5, 2.0, 7.0])
    K = covariance.gram(time)
    half = np.kron([[0.5, 0.5], [0.5, -0.5]], np.eye(4))  # maps (a, b) to (s, t)
    both = half @ np.kron(np.eye(2), K) @ half.T
    assert np.allclose(both, np.kron(np.eye(2), K / 2))
    # with other covariances, s and t are not independent
    unequal = half @ np.kron(np.diag([1.0, 2.0]), K) @ half.T
    assert np.abs(unequal[:4, 4:]).max() > 0.01
