"""Reference implementations for the engine of P4: exact posteriors, EP, and reverse-KL,
by dense matrices.

This module does not use state spaces. An *entry* is a number x != 0 of the design, in
the order of the rows. Each entry has one unknown: the score of its feature at the time
of its match. There are E entries and N matches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.special import gammaln, ive, log_expit, log_ndtr, logsumexp
from scipy.stats import multivariate_normal

Density = Callable[[np.ndarray, np.ndarray], np.ndarray]  # log p(y | d)


# ---- Likelihoods (Table 1), and their integrals against a Gaussian


def probit(y, d):
    return log_ndtr(y * d)


def logit(y, d):
    return log_expit(y * d)


def poisson(y, d):
    return y * d - np.exp(d) - gammaln(y + 1)


def ordinal(log_cdf, margin) -> Density:
    """Return F(d - margin) for a win, F(-d - margin) for a loss, and the rest for a
    tie. F is symmetric."""

    def density(y, d):
        inner = log_cdf(margin - np.abs(d))
        outer = log_cdf(-margin - np.abs(d))
        with np.errstate(divide="ignore"):
            tie = inner + np.log(-np.expm1(outer - inner))
        return np.where(y == 0, tie, log_cdf(y * d - margin))

    return density


def gaussian(variance) -> Density:
    return lambda y, d: -0.5 * ((y - d) ** 2 / variance + np.log(2 * np.pi * variance))


def skellam(base_rate) -> Density:
    """Difference of two Poisson counts with the rates base_rate·e^(d/2) and
    base_rate·e^(-d/2)."""

    def density(y, d):
        log_bessel = np.log(ive(np.abs(y), 2 * base_rate)) + 2 * base_rate
        return -2 * base_rate * np.cosh(d / 2) + y * d / 2 + log_bessel

    return density


# nodes of the trapezoid rule, which is exponentially accurate for analytic integrands
_NODES = np.linspace(-12, 12, 1201)
# wider nodes, for an outcome that is very unlikely under a cavity
_WIDE_NODES = np.linspace(-32, 32, 3201)


def _log_weights(z):
    return -0.5 * z**2 - np.log(np.sqrt(2 * np.pi)) + np.log(z[1] - z[0])


def log_partition(density: Density, y, mean, variance):
    """log E p(y | u) over u ~ N(mean, variance), and its two derivatives by the mean;
    arrays (N,).

    Good for deviations up to some 20 times the width of p(y | u), the nodes being
    0.02 of them apart. With the mean m and the variance w of u under N(mean,
    variance)·p, the derivatives of log Z are (m - mean)/variance and w/variance² -
    1/variance: differentiate the Gaussian under the integral.
    """
    y, mean, deviation = _columns(y, mean, variance)
    logs = _log_weights(_WIDE_NODES) + density(y, mean + deviation * _WIDE_NODES)
    value = logsumexp(logs, axis=1)
    tilted = np.exp(logs - value[:, None])
    first = tilted @ _WIDE_NODES
    second = np.sum(tilted * (_WIDE_NODES - first[:, None]) ** 2, axis=1)
    deviation = deviation[:, 0]
    return value, first / deviation, (second - 1) / deviation**2


def expected(density: Density, y, mean, variance):
    """E log p(y | u) over u ~ N(mean, variance), and its two derivatives with respect
    to the mean; arrays (N,)."""
    y, mean, deviation = _columns(y, mean, variance)
    values = density(y, mean + deviation * _NODES)
    weights = np.exp(_log_weights(_NODES))
    deviation = deviation[:, 0]
    return (
        values @ weights,
        values @ (weights * _NODES) / deviation,
        values @ (weights * (_NODES**2 - 1)) / deviation**2,
    )


def _columns(y, mean, variance):
    return [np.asarray(a, dtype=float)[:, None] for a in (y, mean, np.sqrt(variance))]


# ---- The problem with all scores side by side


class Problem:
    """Matches, and the covariance of each feature: one for all, or a dict name ->
    covariance with "*" for the rest.

    .row .feature .x .time (E,)    .gram (E, E), zero between features    .design (N, E), u = design @ scores
    """

    def __init__(self, matches, covariance):
        entries = matches.design.tocoo()
        self.row, self.feature = entries.coords
        self.x = entries.data
        self.time = matches.time[self.row]
        self.features = list(matches.features)
        self.covariance = covariance
        self.gram = np.zeros((len(self.x), len(self.x)))
        for m in np.unique(self.feature):
            mine = np.flatnonzero(self.feature == m)
            self.gram[np.ix_(mine, mine)] = self.covariance_of(m).gram(self.time[mine])
        self.design = np.zeros((len(matches), len(self.x)))
        self.design[self.row, np.arange(len(self.x))] = self.x

    def covariance_of(self, m):
        if not isinstance(self.covariance, dict):
            return self.covariance
        return self.covariance.get(self.features[m], self.covariance.get("*"))

    def with_new(self, m, times):
        """Gram matrix of the entries, followed by the new times of feature m: (E + T, E
        + T)."""
        mine = np.flatnonzero(self.feature == m)
        n = len(self.x)
        both = np.concatenate([self.time[mine], times])
        whole = block_diag(self.gram, np.zeros((len(times), len(times))))
        ids = np.concatenate([mine, np.arange(n, n + len(times))])
        whole[np.ix_(ids, ids)] = self.covariance_of(m).gram(both)
        return whole


def joint(chain):
    """Covariance of the scores implied by a chain of (h, P, A): h'A...APh, where A
    leads to the later time."""
    K = np.zeros((len(chain), len(chain)))
    for i, (h, P, _) in enumerate(chain):
        ahead = P @ h
        K[i, i] = h @ ahead
        for j in range(i + 1, len(chain)):
            ahead = chain[j][2] @ ahead
            K[i, j] = K[j, i] = chain[j][0] @ ahead
    return K


class ImpliedCovariance:
    """The covariance that a state-space model implies, computed step by step from the
    first time."""

    def __init__(self, space):
        self.space = space

    def gram(self, times):
        order = np.argsort(times)
        t = times[order]
        A, Q = self.space.transitions(t[:-1], t[1:], np.full(len(t) - 1, t[0]))
        P = self.space.initial(t[:1])[0]
        h = self.space.measurement
        chain = [(h, P, None)]
        for step, noise in zip(A, Q, strict=True):
            P = step @ P @ step.T + noise
            chain.append((h, P, step))
        places = np.argsort(order)
        return joint(chain)[np.ix_(places, places)]


# ---- (1) The exact posterior for a Gaussian likelihood


def exact_gaussian(covariance, noise, X, time, y):
    """Means and variances of all features at all matches (N, M), and the evidence, for
    one covariance."""
    K = covariance.gram(time)
    n = len(X)
    C = (X @ X.T) * K + noise * np.eye(n)
    gains = [np.linalg.solve(C, (K * x).T).T for x in X.T]
    mean = np.transpose([gain @ y for gain in gains])
    variance = np.transpose(
        [np.diag(K - gain @ (K * x).T) for gain, x in zip(gains, X.T, strict=True)]
    )
    return mean, variance, multivariate_normal(np.zeros(n), C).logpdf(y)


# ---- (2) EP and reverse-KL: Algorithm 1 with sites exp(alpha·s - beta·s²/2)


@dataclass(frozen=True)
class State:
    """Sites and the resulting posterior. All arrays have shape (E,), except the
    covariance (E, E)."""

    alpha: np.ndarray
    beta: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    log_z: float  # sum over features of log ∫ prior x sites

    @property
    def variance(self):
        return np.diag(self.covariance)

    @property
    def cavity(self):
        """Mean and variance of each entry's score without its own site."""
        precision = 1 / self.variance - self.beta
        return (self.mean / self.variance - self.alpha) / precision, 1 / precision


def state(gram, alpha, beta) -> State:
    """q ∝ N(s | 0, K)·exp(alpha's - s'Bs/2): covariance (K⁻¹ + B)⁻¹ = (I + KB)⁻¹K, mean
    = covariance·alpha.

    ∫ of it is det(I + KB)^(-1/2)·exp(alpha'·covariance·alpha/2).
    """
    system = np.eye(len(alpha)) + gram * beta
    covariance = np.linalg.solve(system, gram)
    covariance = (covariance + covariance.T) / 2
    mean = covariance @ alpha
    return State(
        alpha,
        beta,
        mean,
        covariance,
        -0.5 * np.linalg.slogdet(system)[1] + 0.5 * alpha @ mean,
    )


def ep_sites(problem: Problem, density: Density, y, q: State):
    """The sites after one full update, and EP's estimate of the log marginal likelihood
    at q's sites.

    Under the cavity times p(y | x's) the score s_m has mean c + v·x·d1 and variance v +
    v²·x²·d2. The site is the ratio of that Gaussian and of the cavity.
    """
    cavity_mean, cavity_variance = q.cavity
    x = problem.x
    row = problem.row
    log_z, d1, d2 = log_partition(
        density, y, problem.design @ cavity_mean, problem.design**2 @ cavity_variance
    )
    tilted_mean = cavity_mean + cavity_variance * x * d1[row]
    tilted_variance = cavity_variance + cavity_variance**2 * x**2 * d2[row]
    alpha = tilted_mean / tilted_variance - cavity_mean / cavity_variance
    beta = 1 / tilted_variance - 1 / cavity_variance
    return (
        alpha,
        beta,
        q.log_z + log_z.sum() - _log_site_masses(q, cavity_mean, cavity_variance).sum(),
    )


def _log_site_masses(q: State, c, v):
    """log ∫ N(s | c, v)·exp(alpha·s - beta·s²/2) ds: complete the square."""
    return -0.5 * np.log1p(v * q.beta) + (
        q.alpha * c - 0.5 * q.beta * c**2 + 0.5 * q.alpha**2 * v
    ) / (1 + v * q.beta)


def kl_sites(problem: Problem, density: Density, y, q: State):
    """The sites after one full update, and the bound on the log marginal likelihood at
    q.

    A stationary q has the natural parameters of the prior plus the derivatives of E log
    p by E s, which is alpha, and by E s², which is -beta/2. With m = E s and v = E s² -
    m² these are x·d1 - m·x²·d2 and x²·d2/2.
    """
    x = problem.x
    row = problem.row
    value, d1, d2 = expected(
        density, y, problem.design @ q.mean, problem.design**2 @ q.variance
    )
    alpha = x * d1[row] - q.mean * x**2 * d2[row]
    beta = -(x**2) * d2[row]
    sites = q.alpha * q.mean - q.beta * (q.variance + q.mean**2) / 2
    return alpha, beta, value.sum() - sites.sum() + q.log_z


UPDATES = {"ep": ep_sites, "kl": kl_sites}


def kl_bound(problem: Problem, density: Density, y, mean, covariance):
    """E log p - KL(q | prior) for any q = N(mean, covariance), with one block per
    feature and without sites."""
    value = expected(
        density, y, problem.design @ mean, problem.design**2 @ np.diag(covariance)
    )[0].sum()
    ratio = np.linalg.solve(problem.gram, covariance)
    distance = mean @ np.linalg.solve(problem.gram, mean) + np.trace(ratio) - len(mean)
    return value - 0.5 * (distance - np.linalg.slogdet(ratio)[1])


@dataclass(frozen=True)
class FixedPoint:
    """The last state, its evidence, and the residual and the evidence at each
    evaluation of the map."""

    state: State
    log_evidence: float
    n_iter: int
    residuals: np.ndarray
    evidences: np.ndarray
    history: tuple = ()

    @property
    def converged(self):
        return bool(self.residuals[-1] < 1e-9)


def fixed_point(
    problem: Problem,
    density: Density,
    y,
    method,
    rate=1.0,
    tol=1e-13,
    max_iter=2000,
    keep=False,
) -> FixedPoint:
    """Algorithm 1: all sites at once, damped by the rate, until a full update changes
    none.

    The change of a site is measured in units of its feature's posterior standard
    deviation, sqrt(v)·|d alpha| and v·|d beta|. Stops as well where something is no
    longer finite, or a cavity no longer a Gaussian.
    """
    y = np.asarray(y, dtype=float)
    q = state(problem.gram, *np.zeros((2, len(problem.x))))
    residuals = []
    evidences = []
    history = []
    with np.errstate(all="ignore"):
        for _ in range(max_iter):
            alpha, beta, evidence = UPDATES[method](problem, density, y, q)
            v = q.variance
            change = np.max(
                np.maximum(
                    np.sqrt(v) * np.abs(alpha - q.alpha), v * np.abs(beta - q.beta)
                )
            )
            residuals.append(change)
            evidences.append(evidence)
            if keep:
                history.append(q)
            if not change < 1e12 or change < tol:
                break
            q = state(
                problem.gram,
                q.alpha + rate * (alpha - q.alpha),
                q.beta + rate * (beta - q.beta),
            )
    return FixedPoint(
        q,
        evidences[-1],
        len(residuals),
        np.array(residuals),
        np.array(evidences),
        tuple(history),
    )


def scores(problem: Problem, q: State, m, times):
    """Mean and standard deviation of the score of feature m at any times, given the
    sites."""
    sites = np.pad([q.alpha, q.beta], [(0, 0), (0, len(times))])
    whole = state(problem.with_new(m, times), *sites)
    new = slice(len(q.alpha), None)
    return whole.mean[new], np.sqrt(whole.variance[new])


# ---- (3) Brute force: features whose scores stay constant, any likelihood


class Brute(NamedTuple):
    mean: np.ndarray  # shape (M,)
    variance: np.ndarray
    log_evidence: float


def brute_force(
    design, variances, density: Density, y, n_points=161, width=8.0
) -> Brute:
    """The posterior of 1 to 3 constant scores on a product grid, by the trapezoid rule.

    design (N, M) and prior variances (M,).
    """
    design = np.asarray(design, dtype=float)
    y = np.asarray(y, dtype=float)
    axis = np.linspace(-width, width, n_points)
    axes = np.meshgrid(*[axis * np.sqrt(v) for v in variances], indexing="ij")
    points = np.stack([a.ravel() for a in axes], axis=1)
    cell = len(variances) * np.log((axis[1] - axis[0]) / np.sqrt(2 * np.pi))
    logs = cell - 0.5 * np.sum(points**2 / variances, axis=1)
    for x, outcome in zip(design, y, strict=True):
        logs = logs + density(np.array(outcome), points @ x)
    log_evidence = logsumexp(logs)
    weights = np.exp(logs - log_evidence)
    mean = weights @ points
    return Brute(mean, weights @ (points - mean) ** 2, float(log_evidence))
