"""Kalman filter and smoother of one feature after the other, over flat arrays, compiled.

A feature's score is h·s of a Gauss-Markov state s of K numbers, s' = A s + noise of covariance Q (section 3.2
of [Maystre2019]_). Its visits are the entries of the design in its column, in the order of time. The visit i
has a pseudo-observation exp(alpha z - beta z²/2) of z = h·s, and beta = 0 is allowed: it says nothing.

Forward, with the prediction N(m, P) of the state before a visit, p = h·m, k = P h, c = h·k::

    u = 1/(1 + beta c),   m+ = m + k (alpha - beta p) u,   P+ = P - k k' beta u.

Backward, r and N say what the later visits tell: given them too, the state after the visit has mean
m+ + P+ r and covariance P+ - P+ N P+ (the smoother of Bryson and Frazier, [deJong1989]_). Before the visit
they are, with e = (alpha - beta p) u, w = beta u, t = N k, q = k·t::

    r + h (e - w k·r),   N - w (h t' + t h') + (w + w² q) h h',

and A'r, A'N A after the visit before. No matrix is inverted. The moments that the callers want are free of
cancellation between a pseudo-observation and the rest, however strong it is: with g = q u² and D = u + beta g

    marginal:   mean ((p + alpha c) + k·r) u,               variance c u - g
    cavity:     mean ((p + k·r) u + alpha g) / D,           variance (c u - g) / D   (without this visit).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
.. [deJong1989] P. de Jong, "Smoothing and interpolation with the state-space model", JASA 84, 1989.
"""

from __future__ import annotations

import math

import numpy as np

from preflearn.checks import Floats
from preflearn.dynamics.engine.threads import njit_free, njit_free_inside

ALPHA, BETA, MEAN, VARIANCE = 0, 1, 2, 3  # the columns of an entry: a match of two features is 64 bytes
_SMALL = 1e-200  # a product of factors is turned into a sum of logarithms before it falls below


def packed(A: Floats, Q: Floats) -> Floats:
    """A table of transitions, one row each: A by rows, the upper triangle of Q, and zeros up to 8 or 16.

    It has a row at least.
    """
    size = A.shape[1]
    rows, columns = np.triu_indices(size)
    both = np.hstack([A.reshape(len(A), size * size), Q[:, rows, columns]])
    width = {2: 8, 3: 16}.get(size) or both.shape[1]  # whole cache lines
    table = np.zeros((max(len(A), 1), width))
    table[: len(A), : both.shape[1]] = both
    return table


@njit_free
def smooth(size, entries, entry, step, start, h, initial, table, features, cavity):
    """Moments of all visits of some features into `entries`; returns the sum of their log Z~.

    Parameters
    ----------
    size : int
        K, of the state.
    entries : ndarray of shape (E, 4)
        alpha, beta, mean, variance of each entry of the design; the last two are written.
    entry : ndarray of int, shape (V,)
        That of each visit.
    step : ndarray of int, shape (V,)
        The row of `table` for the transition to a visit from the one before, at a feature's first visit the
        row of `initial`.
    start : ndarray of int, shape (M + 1,)
        Where the visits of each feature begin.
    h : ndarray of shape (K,)
    initial : ndarray of shape (rows, K, K)
        Covariances of the state at a first visit.
    table : ndarray
        As of `packed`.
    features : ndarray of int
    cavity : bool
        Whether to leave out each visit's own pseudo-observation.

    Returns
    -------
    float
        Of log ∫ p(s_m) ∏ exp(alpha z - beta z²/2) ds_m, the sum over these features.
    """
    total, nothing = 0.0, np.empty((0, 0))
    for feature in features:
        first, last = start[feature], start[feature + 1]
        own, steps = np.empty((last - first, 5 + size)), step[first:last]
        for i in range(last - first):
            e = entry[first + i]
            own[i, ALPHA], own[i, BETA] = entries[e, ALPHA], entries[e, BETA]
        if size == 1:
            total += _smooth_1(own, steps, h, initial, table, cavity)
        elif size == 2:
            total += _smooth_2(own, steps, h, initial, table, cavity)
        elif size == 3:  # a constant: the loops over the state are unrolled
            total += _smooth_any(3, own, steps, h, initial, table, cavity, nothing, nothing)
        else:
            total += _smooth_any(size, own, steps, h, initial, table, cavity, nothing, nothing)
        for i in range(last - first):
            e = entry[first + i]
            entries[e, MEAN], entries[e, VARIANCE] = own[i, 0], own[i, 1]
    return total


@njit_free
def _moments(cavity, alpha, beta, p, c, u, kr, q):
    """Mean and variance of z, by what the filter (p, c, u) and the later visits (kr, q) say."""
    g = q * u * u
    variance = max(c * u - g, 1e-15 * c * u)  # rounding leaves no more of it
    if cavity:
        rest = 1.0 / (u + beta * g)
        return ((p + kr) * u + alpha * g) * rest, variance * rest
    return (p + alpha * c + kr) * u, variance


@njit_free_inside
def _told(total, product, alpha, beta, p, c, u):
    """The sum of log Z~ with one more visit, but for half the logarithm of a product."""
    total += 0.5 * u * (alpha * (alpha * c + 2.0 * p) - beta * p * p)
    product *= u
    if product < _SMALL:
        total += 0.5 * math.log(product)
        product = 1.0
    return total, product


@njit_free
def _smooth_1(kept, step, h, initial, table, cavity):
    """One feature with a state of one number: kept is alpha, beta, p, c, u, then mean and variance."""
    n = len(kept)
    scale = h[0] * h[0]  # the state is measured in units of the score
    total, product = 0.0, 1.0
    m, P = 0.0, initial[step[0], 0, 0] * scale
    for i in range(n):
        if i > 0:
            row = step[i]
            a = table[row, 0]
            m *= a
            P = a * a * P + table[row, 1] * scale
        alpha, beta = kept[i, 0], kept[i, 1]
        u = 1.0 / (1.0 + beta * P)
        kept[i, 2], kept[i, 3], kept[i, 4] = m, P, u
        total, product = _told(total, product, alpha, beta, m, P, u)
        m = (m + alpha * P) * u
        P *= u
    r, N = 0.0, 0.0
    for i in range(n - 1, -1, -1):
        alpha, beta, p, c, u = kept[i, 0], kept[i, 1], kept[i, 2], kept[i, 3], kept[i, 4]
        kr, q = c * r, c * c * N
        kept[i, 0], kept[i, 1] = _moments(cavity, alpha, beta, p, c, u, kr, q)
        if i > 0:
            a = table[step[i], 0]
            r = a * (r * u + (alpha - beta * p) * u)  # 1 - w c = u
            N = a * a * (N * u * u + beta * u)
    return total + 0.5 * math.log(product)


@njit_free
def _smooth_2(kept, step, h, initial, table, cavity):
    """One feature with a state of two numbers: kept is alpha, beta, p, c, u, k, then mean and variance."""
    n = len(kept)
    h1, h2 = h[0], h[1]
    total, product = 0.0, 1.0
    m1, m2 = 0.0, 0.0
    P11, P12, P22 = initial[step[0], 0, 0], initial[step[0], 0, 1], initial[step[0], 1, 1]
    for i in range(n):
        if i > 0:
            row = step[i]
            a11, a12, a21, a22 = table[row, 0], table[row, 1], table[row, 2], table[row, 3]
            if a12 == 0.0 and a21 == 0.0:  # as of a constant plus a Matérn 1/2 process
                m1, m2 = a11 * m1, a22 * m2
                P11 = a11 * a11 * P11 + table[row, 4]
                P12 = a11 * a22 * P12 + table[row, 5]
                P22 = a22 * a22 * P22 + table[row, 6]
            else:
                m1, m2 = a11 * m1 + a12 * m2, a21 * m1 + a22 * m2
                b11, b12 = a11 * P11 + a12 * P12, a11 * P12 + a12 * P22
                b21, b22 = a21 * P11 + a22 * P12, a21 * P12 + a22 * P22
                P11 = b11 * a11 + b12 * a12 + table[row, 4]
                P12 = b11 * a21 + b12 * a22 + table[row, 5]
                P22 = b21 * a21 + b22 * a22 + table[row, 6]
        alpha, beta = kept[i, 0], kept[i, 1]
        k1, k2 = P11 * h1 + P12 * h2, P12 * h1 + P22 * h2
        p, c = h1 * m1 + h2 * m2, h1 * k1 + h2 * k2
        u = 1.0 / (1.0 + beta * c)
        kept[i, 2], kept[i, 3], kept[i, 4], kept[i, 5], kept[i, 6] = p, c, u, k1, k2
        total, product = _told(total, product, alpha, beta, p, c, u)
        e, w = (alpha - beta * p) * u, beta * u
        m1 += k1 * e
        m2 += k2 * e
        P11 -= k1 * k1 * w
        P12 -= k1 * k2 * w
        P22 -= k2 * k2 * w
    r1, r2, N11, N12, N22 = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n - 1, -1, -1):
        alpha, beta, p, c, u = kept[i, 0], kept[i, 1], kept[i, 2], kept[i, 3], kept[i, 4]
        k1, k2 = kept[i, 5], kept[i, 6]
        kr = k1 * r1 + k2 * r2
        t1, t2 = N11 * k1 + N12 * k2, N12 * k1 + N22 * k2
        q = k1 * t1 + k2 * t2
        kept[i, 0], kept[i, 1] = _moments(cavity, alpha, beta, p, c, u, kr, q)
        if i > 0:
            w = beta * u
            e, f = (alpha - beta * p) * u - w * kr, w + w * w * q
            r1, r2 = r1 + h1 * e, r2 + h2 * e
            N11 += h1 * (f * h1 - 2.0 * w * t1)
            N12 += f * h1 * h2 - w * (h1 * t2 + h2 * t1)
            N22 += h2 * (f * h2 - 2.0 * w * t2)
            row = step[i]
            a11, a12, a21, a22 = table[row, 0], table[row, 1], table[row, 2], table[row, 3]
            if a12 == 0.0 and a21 == 0.0:
                r1, r2 = a11 * r1, a22 * r2
                N11, N12, N22 = a11 * a11 * N11, a11 * a22 * N12, a22 * a22 * N22
            else:
                r1, r2 = a11 * r1 + a21 * r2, a12 * r1 + a22 * r2
                b11, b12 = N11 * a11 + N12 * a21, N11 * a12 + N12 * a22
                b21, b22 = N12 * a11 + N22 * a21, N12 * a12 + N22 * a22
                N11, N12, N22 = a11 * b11 + a21 * b21, a11 * b12 + a21 * b22, a12 * b12 + a22 * b22
    return total + 0.5 * math.log(product)


@njit_free_inside
def _smooth_any(size, kept, step, h, initial, table, cavity, after, before):
    """One feature with a state of `size` numbers, as the two above; `after` and `before` as in `states`."""
    n = len(kept)
    m, r, t = np.zeros(size), np.zeros(size), np.empty(size)
    P, N, B = initial[step[0]].copy(), np.zeros((size, size)), np.empty((size, size))
    total, product = 0.0, 1.0
    for i in range(n):
        if i > 0:
            _predict(size, table[step[i]], m, P, t, B)
        alpha, beta = kept[i, 0], kept[i, 1]
        p, c, u = _learn(size, h, alpha, beta, m, P, kept[i, 5:])
        kept[i, 2], kept[i, 3], kept[i, 4] = p, c, u
        if len(after):
            after[i, :size], after[i, size : size + size * size] = m, P.ravel()
        total, product = _told(total, product, alpha, beta, p, c, u)
    for i in range(n - 1, -1, -1):
        alpha, beta, p, c, u = kept[i, 0], kept[i, 1], kept[i, 2], kept[i, 3], kept[i, 4]
        kr, q = _later(size, kept[i, 5:], r, N, t)
        kept[i, 0], kept[i, 1] = _moments(cavity, alpha, beta, p, c, u, kr, q)
        _absorb(size, h, alpha, beta, p, u, kr, q, r, N, t)
        if len(before):
            before[i, :size], before[i, size : size + size * size] = r, N.ravel()
        if i > 0:
            _return(size, table[step[i]], r, N, t, B)
    return total + 0.5 * math.log(product)


@njit_free_inside
def _learn(size, h, alpha, beta, m, P, k):
    """m and P after a visit, from those before; k = P h is written, and p, c, u returned."""
    p, c = 0.0, 0.0
    for a in range(size):
        k[a] = 0.0
        for b in range(size):
            k[a] += P[a, b] * h[b]
        p += h[a] * m[a]
        c += h[a] * k[a]
    u = 1.0 / (1.0 + beta * c)
    for a in range(size):
        m[a] += k[a] * (alpha - beta * p) * u
        for b in range(size):
            P[a, b] -= k[a] * k[b] * (beta * u)
    return p, c, u


@njit_free_inside
def _predict(size, row, m, P, t, B):
    """m and P before a visit, from those after the one before."""
    for a in range(size):
        t[a] = 0.0
        for b in range(size):
            t[a] += row[a * size + b] * m[b]
            B[a, b] = 0.0
            for d in range(size):
                B[a, b] += row[a * size + d] * P[d, b]
    place = size * size
    for a in range(size):
        m[a] = t[a]
        for b in range(a, size):
            P[a, b] = row[place]
            for d in range(size):
                P[a, b] += B[a, d] * row[b * size + d]
            P[b, a] = P[a, b]
            place += 1


@njit_free_inside
def _later(size, k, r, N, t):
    """k·r and k·N k; t = N k is written."""
    kr, q = 0.0, 0.0
    for a in range(size):
        t[a] = 0.0
        for b in range(size):
            t[a] += N[a, b] * k[b]
        kr += k[a] * r[a]
        q += k[a] * t[a]
    return kr, q


@njit_free_inside
def _absorb(size, h, alpha, beta, p, u, kr, q, r, N, t):
    """r and N before a visit, from those after it."""
    w = beta * u
    e, f = (alpha - beta * p) * u - w * kr, w + w * w * q
    for a in range(size):
        r[a] += h[a] * e
        for b in range(size):
            N[a, b] += f * h[a] * h[b] - w * (h[a] * t[b] + h[b] * t[a])


@njit_free_inside
def _return(size, row, r, N, t, B):
    """r and N after a visit, from those before the next one."""
    for a in range(size):
        t[a] = 0.0
        for b in range(size):
            t[a] += row[b * size + a] * r[b]
            B[a, b] = 0.0
            for d in range(size):
                B[a, b] += N[a, d] * row[d * size + b]
    for a in range(size):
        r[a] = t[a]
        for b in range(a, size):
            N[a, b] = 0.0
            for d in range(size):
                N[a, b] += row[d * size + a] * B[d, b]
            N[b, a] = N[a, b]


@njit_free
def states(alpha, beta, step, start, h, initial, table, features, after, before):
    """What the visits of some features say at each of them, for forecasts at any time.

    Parameters
    ----------
    alpha, beta : ndarray of shape (V,)
        Pseudo-observations, one a visit.
    step, start, h, initial, table, features : ndarray
        As in `smooth`.
    after : ndarray of shape (V, at least K + K²)
        Written: mean and covariance of the state, given this visit and those before.
    before : ndarray of shape (V, at least K + K²)
        Written: r and N of the top of this module, given this visit and those after it.
    """
    for feature in features:
        visits = slice(start[feature], start[feature + 1])
        own = np.empty((visits.stop - visits.start, 5 + len(h)))
        own[:, ALPHA], own[:, BETA] = alpha[visits], beta[visits]
        _smooth_any(len(h), own, step[visits], h, initial, table, False, after[visits], before[visits])
