"""Integrals of a likelihood with any number of digits, computed slowly and in other
ways than in the package.

The density is written as in the papers, and not rearranged. Derivatives are central
moments of the tilted normal distribution, not averages of the likelihood's derivatives.
The moments are integrals on both sides of the mode, where nodes are dense.
"""

import mpmath as mp
import numpy as np

from preflearn.dynamics import (
    Gaussian,
    Logit,
    OrdinalLogit,
    OrdinalProbit,
    Poisson,
    Probit,
    Skellam,
)

CASES = [
    (Probit(), 1),
    (Logit(), -1),
    (OrdinalProbit(0.5), 1),
    (OrdinalProbit(0.1), 0),
    (OrdinalProbit(4.0), 0),
    (OrdinalLogit(0.5), -1),
    (OrdinalLogit(0.5), 0),
    (OrdinalLogit(4.0), 0),
    (Gaussian(3.0), -2.5),
    (Poisson(), 0),
    (Poisson(), 100),
    (Skellam(0.05), 1),
    (Skellam(50.0), -7),
]


def log_density(likelihood, y):
    """Return the function u -> log p(y | u) in mpmath."""
    if isinstance(likelihood, Probit | OrdinalProbit):
        margin = mp.mpf(getattr(likelihood, "margin", 0))
        if y == 0:
            return lambda u: mp.log(
                upper_tail(abs(u) - margin) - upper_tail(abs(u) + margin)
            )
        return lambda u: mp.log(upper_tail(margin - y * u))
    if isinstance(likelihood, Logit | OrdinalLogit):
        margin = mp.mpf(getattr(likelihood, "margin", 0))
        if y == 0:
            return lambda u: mp.log(mp.sinh(margin) / (mp.cosh(margin) + mp.cosh(u)))
        return lambda u: -mp.log(1 + mp.exp(margin - y * u))
    if isinstance(likelihood, Poisson):
        return lambda u: y * u - mp.exp(u) - mp.loggamma(y + 1)
    if isinstance(likelihood, Gaussian):
        variance = mp.mpf(likelihood.variance)
        return lambda u: (
            -((y - u) ** 2) / (2 * variance) - mp.log(2 * mp.pi * variance) / 2
        )
    rate = mp.mpf(likelihood.base_rate)
    constant = mp.log(mp.besseli(abs(y), 2 * rate))
    return lambda u: y * u / 2 - 2 * rate * mp.cosh(u / 2) + constant


def upper_tail(z):
    return mp.erfc(z / mp.sqrt(2)) / 2


def integrals(likelihood, y, mean, variance, ep, digits=40):
    """Return log E p (`ep`) or E log p for u ~ N(mean, variance), and two derivatives
    with respect to the mean, as floats."""
    with mp.workdps(digits):
        mean = mp.mpf(mean)
        variance = mp.mpf(variance)
        deviation = mp.sqrt(variance)
        log_p = log_density(likelihood, y)

        def exponent(u):
            return (log_p(u) if ep else 0) - (u - mean) ** 2 / (2 * variance)

        mode = _mode(exponent, mean, deviation) if ep else mean
        top = exponent(mode)

        @mp.memoize
        def weight(u):
            return mp.exp(exponent(u) - top) * (1 if ep else log_p(u))

        def moment(power):
            def value(u):
                return ((u - mean) / deviation) ** power * weight(u)

            return mp.quad(
                value, [mode - 40 * deviation, mode, mode + 40 * deviation], maxdegree=9
            )

        zeroth, first, second = map(moment, range(3))
        unit = mp.sqrt(2 * mp.pi) * deviation
        if ep:
            average = first / zeroth
            spread = second / zeroth - average**2
            found = (
                top + mp.log(zeroth / unit),
                average / deviation,
                (spread - 1) / variance,
            )
        else:
            found = (
                zeroth / unit,
                first / unit / deviation,
                (second - zeroth) / unit / variance,
            )
        return tuple(map(float, found))


def _mode(exponent, mean, deviation):
    """Return the mode of a concave function, by trisection."""
    ends = []
    for sign in (-1, 1):
        end = mean
        step = deviation
        while exponent(end + sign * step) > exponent(end):
            end = end + sign * step
            step = 2 * step
        ends.append(end + sign * step)
    low, high = ends
    for _ in range(150):
        left = low + (high - low) / 3
        right = high - (high - low) / 3
        low, high = (left, high) if exponent(left) < exponent(right) else (low, right)
    return (low + high) / 2


def arrays(likelihood, y, mean, variance, ep):
    return np.array(
        (likelihood.log_partition if ep else likelihood.expected)(
            np.full(len(mean), y), mean, variance
        )
    )


def integral_at(likelihood, y, mean, variance, ep):
    return arrays(likelihood, y, [mean], [variance], ep)[:, 0]


def assert_near(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def assert_equals_plain_sum(likelihood, y, mean, variance):
    """Check that the integrals of reverse-KL equal sums over 20,000 nodes, for cases in
    which many digits take long."""
    x = np.linspace(-12, 12, 20_001)
    weights = np.exp(-(x**2) / 2)
    values = arrays(
        likelihood, y, mean + np.sqrt(variance) * x, np.zeros(len(x)), ep=False
    )
    assert_near(
        integral_at(likelihood, y, mean, variance, ep=False),
        values @ weights / weights.sum(),
        1e-9,
    )


def in_high_precision(F, density, gap):
    """Return A and Q of dx = F x dt + noise in the last entry, from one matrix
    exponential (Van Loan 1978)."""
    K = len(F)
    with mp.workdps(300):
        both = mp.zeros(2 * K)
        both[:K, :K], both[K:, K:] = mp.matrix(F), -mp.matrix(F).T
        both[K - 1, 2 * K - 1] = density
        both = mp.expm(both * gap)
        A = both[:K, :K]
        return np.array(A.tolist()), np.array((both[:K, K:] * A.T).tolist())


def relative(found, exact):
    """Return the largest relative error of an entry. Entries that underflow count as
    exact."""
    return max(
        (
            abs(float(abs(a - b) / abs(b)))
            for a, b in zip(found.ravel(), exact.ravel(), strict=True)
            if abs(b) > 1e-250
        ),
        default=0.0,
    )


def random_moments(n, seed, mean=50.0, low=-12, high=6):
    rng = np.random.default_rng(seed)
    return rng.uniform(-mean, mean, n), 10 ** rng.uniform(low, high, n)
