"""The integrals of a likelihood in as many digits as one likes, slowly and in other ways than the package.

The density is written as in the papers, not rearranged; the substitution is centred at the mode and scaled by
its width; derivatives are central moments of the normal distribution that is tilted, not averages of the
likelihood's derivatives; and the step is halved until nothing changes.
"""

import mpmath as mp
import numpy as np

from preflearn.dynamics import Gaussian, Logit, OrdinalLogit, OrdinalProbit, Poisson, Probit, Skellam

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
    """u -> log p(y | u) in mpmath."""
    if isinstance(likelihood, Probit | OrdinalProbit):
        margin = mp.mpf(getattr(likelihood, "margin", 0))
        if y == 0:
            return lambda u: mp.log(upper_tail(abs(u) - margin) - upper_tail(abs(u) + margin))
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
        return lambda u: -((y - u) ** 2) / (2 * variance) - mp.log(2 * mp.pi * variance) / 2
    rate = mp.mpf(likelihood.base_rate)
    constant = mp.log(mp.besseli(abs(y), 2 * rate))
    return lambda u: y * u / 2 - 2 * rate * mp.cosh(u / 2) + constant


def upper_tail(z):
    return mp.erfc(z / mp.sqrt(2)) / 2


def integrals(likelihood, y, mean, variance, ep, digits=50):
    """log E p (`ep`) or E log p, u ~ N(mean, variance), and two derivatives in the mean; floats."""
    with mp.workdps(digits):
        mean, variance = mp.mpf(mean), mp.mpf(variance)
        deviation, log_p = mp.sqrt(variance), log_density(likelihood, y)

        def exponent(u):
            return (log_p(u) if ep else 0) - (u - mean) ** 2 / (2 * variance)

        mode = _mode(exponent, mean, deviation) if ep else mean
        width = deviation if ep else min(deviation, mp.mpf(2))
        while ep and min(exponent(mode + width), exponent(mode - width)) < exponent(mode) - 1:
            width /= 2
        before, step = None, mp.mpf(1) / 4
        while True:
            mass, *moments = _moments(log_p, exponent, mode, width, step, mean, deviation, ep)
            if ep:
                spread = moments[1] / mass - (moments[0] / mass) ** 2
                value = exponent(mode) + mp.log(mass / (mp.sqrt(2 * mp.pi) * deviation))
                now = value, moments[0] / mass / deviation, (spread - 1) / variance
            else:
                zeroth, first, second = (moment / mass for moment in moments)
                now = zeroth, first / deviation, (second - zeroth) / variance
            if before and all(abs(a - b) < 1e-13 * max(1, abs(b)) for a, b in zip(before, now, strict=True)):
                return tuple(map(float, now))
            before, step = now, step / 2
            assert step > 1e-3, "no convergence"


def _mode(exponent, mean, deviation):
    """By bisection in three parts, of a concave function."""
    ends = []
    for sign in (-1, 1):
        end, step = mean, deviation
        while exponent(end + sign * step) > exponent(end):
            end, step = end + sign * step, 2 * step
        ends.append(end + sign * step)
    low, high = ends
    for _ in range(150):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if exponent(left) < exponent(right) else (low, right)
    return (low + high) / 2


def _moments(log_p, exponent, mode, width, step, mean, deviation, ep):
    """The mass, and the moments of (u - mean) / deviation; for reverse-KL from the zeroth on, of log p."""
    sums, negligible = [mp.mpf(0)] * 4, mp.mpf(10) ** (15 - mp.mp.dps)
    for sign in (-1, 1):
        k = 0 if sign > 0 else 1
        while True:
            u = mode + width * mp.sinh(sign * k * step)
            weight = mp.exp(exponent(u) - exponent(mode)) * width * step * mp.cosh(k * step)
            if k * step > 1 and weight < negligible * sums[0]:
                break
            x = (u - mean) / deviation
            powers = (x, x * x, 0) if ep else (log_p(u), log_p(u) * x, log_p(u) * x * x)
            sums = [total + weight * power for total, power in zip(sums, (1, *powers), strict=True)]
            k += 1
    return sums


def arrays(likelihood, y, mean, variance, ep):
    return np.array(
        (likelihood.log_partition if ep else likelihood.expected)(np.full(len(mean), y), mean, variance)
    )


def one(likelihood, y, mean, variance, ep):
    return arrays(likelihood, y, [mean], [variance], ep)[:, 0]


def near(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def near_a_plain_sum(likelihood, y, mean, variance):
    """Whether reverse-KL's integrals are those of 20,000 nodes, where many digits take long."""
    x = np.linspace(-12, 12, 20_001)
    weights = np.exp(-(x**2) / 2)
    values = arrays(likelihood, y, mean + np.sqrt(variance) * x, np.zeros(len(x)), ep=False)
    near(one(likelihood, y, mean, variance, ep=False), values @ weights / weights.sum(), 1e-9)


def in_high_precision(F, density, gap):
    """A and Q of dx = F x dt + noise in the last entry, from one matrix exponential (Van Loan 1978)."""
    K = len(F)
    with mp.workdps(300):
        both = mp.zeros(2 * K)
        both[:K, :K], both[K:, K:] = mp.matrix(F), -mp.matrix(F).T
        both[K - 1, 2 * K - 1] = density
        both = mp.expm(both * gap)
        A = both[:K, :K]
        return np.array(A.tolist()), np.array((both[:K, K:] * A.T).tolist())


def relative(found, exact):
    """Largest error of an entry; those that underflow count as exact."""
    return max(
        (
            abs(float(abs(a - b) / abs(b)))
            for a, b in zip(found.ravel(), exact.ravel(), strict=True)
            if abs(b) > 1e-250
        ),
        default=0.0,
    )


def moments(n, seed, mean=50.0, low=-12, high=6):
    rng = np.random.default_rng(seed)
    return rng.uniform(-mean, mean, n), 10 ** rng.uniform(low, high, n)
