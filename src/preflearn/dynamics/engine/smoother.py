"""Compiled Kalman filter and smoother for one feature at a time.

A feature's score is h·s of a Gauss-Markov state s of K numbers, s' = A s + noise of
covariance Q (section 3.2 of [Maystre2019]_). Its visits are the entries of the design
in its column, in time order. Visit i has a pseudo-observation exp(alpha z - beta z²/2)
of z = h·s; with alpha = beta = 0 it has no information.

Forward, with the prediction N(m, P) of the state before a visit, p = h·m, k = P h, and
c = h·k::

    u = 1/(1 + beta c),   m+ = m + k (alpha - beta p) u,   P+ = P - k k' beta u.

Backward, r and N summarize the later visits. Given these visits as well, the state
after the visit has mean m+ + P+ r and covariance P+ - P+ N P+ (the smoother of Bryson
and Frazier, [deJong1989]_). Before the visit, r and N are, with e = (alpha - beta p) u,
w = beta u, t = N k, and q = k·t::

    r + h (e - w k·r),   N - w (h t' + t h') + (w + w² q) h h',

and after the previous visit A'r and A'N A. No matrix is inverted. The moments for the
callers have no cancellation between a pseudo-observation and the rest, no matter how
strong it is: with g = q u² and D = u + beta g

    marginal:   mean ((p + alpha c) + k·r) u,               variance c u - g
    cavity:     mean ((p + k·r) u + alpha g) / D,           variance (c u - g) / D   (without this visit).

beta is negative if an outcome makes a score less certain, for example an outlier with a
likelihood that is not log-concave. Then the filtered N(m, P) may have a negative
variance although later visits compensate for it, and all equations remain valid. The
posterior of all visits is a Gaussian exactly if the number of visits with beta < 0 and
u < 0 equals the number of visits with beta > 0 and u < 0. With K the prior covariance
of the scores and B = diag(beta), the u are the inverse pivots of I + K B. The number of
negative eigenvalues of K⁻¹ + B is the number for K + B⁻¹, whose pivots are 1/(beta u),
minus the number for B⁻¹ [Haynsworth1968]_. If the posterior is not a Gaussian, log Z~ and all
variances are NaN.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
.. [deJong1989] P. de Jong, "Smoothing and interpolation with the state-space model",
  JASA 84, 1989.
.. [Haynsworth1968] E. V. Haynsworth, "Determination of the inertia of a partitioned
   Hermitian matrix", Linear Algebra and its Applications 1, 1968.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import Floats, Ids
from preflearn.dynamics.engine.threads import njit_nogil, njit_nogil_inner

# a product is converted to a sum of logarithms before it leaves this range
_SMALL = 1e-200
_LARGE = 1e200
_NOTHING = np.empty((0, 0))


class Visits(NamedTuple):
    """Visits of all features, one feature after the other.

    Attributes
    ----------
    entry : ndarray of int, shape (V,)
        Entry of the design of each visit.
    step : ndarray of int, shape (V,)
        Row of `StateTables.steps` for the transition to a visit from the previous one;
        for a feature's first visit, row of `StateTables.initial`.
    start : ndarray of int, shape (M + 1,)
        First visit of each feature.
    """

    entry: NDArray
    step: NDArray
    start: NDArray


class StateTables(NamedTuple):
    """State-space model of some features.

    Attributes
    ----------
    layout : ndarray of int, shape (K, 6)
        `layout` of `StateSpace`.
    initial : ndarray of shape (rows, K, K)
        Covariances of the state at a first visit.
    steps : ndarray
        Table that `StateSpace.steps` returns.
    """

    layout: Ids
    initial: Floats
    steps: Floats


def smooth(
    entries: Floats,
    visits: Visits,
    tables: StateTables,
    features: Ids,
    cavity: bool,
    after: Floats = _NOTHING,
    before: Floats = _NOTHING,
) -> float:
    """Smooth some features, with the loop for states of their size.

    Parameters
    ----------
    entries : ndarray of shape (E, 4)
        alpha, beta, mean, and variance of each entry of the design; mean and variance
        are written. A match of two features has 64 bytes.
    visits : Visits
    tables : StateTables
    features : ndarray of int
        Features to smooth.
    cavity : bool
        Whether to leave out each visit's own pseudo-observation.
    after, before : ndarray of shape (V, at least K (K + 3) / 2), or (0, 0)
        Output arrays for forecasts at any time; nothing is written if they are empty.
        `after` has mean m and covariance P of the state, given a visit and all earlier
        ones; `before` has r and N of the module docstring, given a visit and all later
        ones. A row contains the matrix [P m] without the part below the diagonal, or [N
        r].

    Returns
    -------
    log_z : float
        log ∫ p(s_m) ∏ exp(alpha z - beta z²/2) ds_m, summed over these features.
    """
    loop = loop_for(tables.layout)
    return loop(entries, visits, tables, features, cavity, after, before)


def loop_for(layout: Ids) -> Any:
    """Return the loop for states of this layout, compiled at its first call."""
    if len(layout) == 2 and layout[1, 0] == 0:  # A is not triangular
        return _smooth_any
    return {1: _smooth_1, 2: _smooth_2, 3: _smooth_3}.get(len(layout), _smooth_any)


@njit_nogil_inner
def _moments(cavity, alpha, beta, p, c, u, kr, q):
    """Mean and variance of z from the filter (p, c, u) and the later visits (kr, q)."""
    g = q * u * u
    variance = max(c * u - g, 1e-15 * c * u)  # lower limit because of rounding
    if cavity:
        rest = 1.0 / (u + beta * g)
        return ((p + kr) * u + alpha * g) * rest, variance * rest
    return (p + alpha * c + kr) * u, variance


@njit_nogil_inner
def _add_log_z(total, product, alpha, beta, p, c, u):
    """Add a visit to the sum of log Z~, except half the logarithm of a product."""
    total += 0.5 * u * (alpha * (alpha * c + 2.0 * p) - beta * p * p)
    product *= abs(u)
    if product < _SMALL or product > _LARGE:
        total += 0.5 * math.log(product)
        product = 1.0
    return total, product


@njit_nogil_inner
def _count_negative(count, beta, u):
    """Number of negative eigenvalues of the posterior precision, with a further visit.

    It can only be below 0 because of rounding.
    """
    if u < 0.0:
        count += 1 if beta < 0.0 else -1
    return count


@njit_nogil_inner
def _finish_log_z(total, product, n_negative):
    """log Z~ after the last visit of a feature; NaN if not a Gaussian."""
    if n_negative > 0:
        return math.nan
    return total + 0.5 * math.log(product)


@njit_nogil_inner
def _gather(entries, entry, first, kept):
    """Copy alpha and beta of the visits of a feature to a contiguous array."""
    for i in range(len(kept)):
        kept[i, 0] = entries[entry[first + i], 0]
        kept[i, 1] = entries[entry[first + i], 1]


@njit_nogil_inner
def _scatter(entries, entry, first, kept, n_negative):
    """Write mean and variance, which replaced alpha and beta in `kept`."""
    for i in range(len(kept)):
        entries[entry[first + i], 2] = kept[i, 0]
        entries[entry[first + i], 3] = kept[i, 1] if n_negative <= 0 else math.nan


@njit_nogil
def _smooth_1(entries, visits, tables, features, cavity, after, before):
    """Smooth a state of one number, which is the score: c = k = P."""
    entry, step, start = visits
    _, initial, table = tables
    total = 0.0
    for feature in features:
        first = start[feature]
        n = start[feature + 1] - start[feature]
        # columns: alpha, beta, p, c, u
        kept = np.empty((n, 5))
        product = 1.0
        n_negative = 0
        _gather(entries, entry, first, kept)
        m = 0.0
        P = initial[step[first], 0, 0]
        for i in range(n):
            visit = first + i
            if i > 0:
                row = step[visit]
                a = table[row, 0]
                m *= a
                P = a * a * P + table[row, 1]
            alpha = kept[i, 0]
            beta = kept[i, 1]
            u = 1.0 / (1.0 + beta * P)
            kept[i, 2] = m
            kept[i, 3] = P
            kept[i, 4] = u
            total, product = _add_log_z(total, product, alpha, beta, m, P, u)
            n_negative = _count_negative(n_negative, beta, u)
            m = (m + alpha * P) * u
            P *= u
            if len(after):
                after[visit, 0] = P
                after[visit, 1] = m
        total = _finish_log_z(total, product, n_negative)
        r = 0.0
        N = 0.0
        for i in range(n - 1, -1, -1):
            visit = first + i
            alpha = kept[i, 0]
            beta = kept[i, 1]
            p = kept[i, 2]
            c = kept[i, 3]
            u = kept[i, 4]
            kept[i, 0], kept[i, 1] = _moments(
                cavity, alpha, beta, p, c, u, c * r, c * c * N
            )
            r = r * u + (alpha - beta * p) * u  # 1 - w c = u
            N = N * u * u + beta * u
            if len(before):
                before[visit, 0] = N
                before[visit, 1] = r
            if i > 0:
                a = table[step[visit], 0]
                r *= a
                N *= a * a
        _scatter(entries, entry, first, kept, n_negative)
    return total


@njit_nogil
def _smooth_2(entries, visits, tables, features, cavity, after, before):
    """Smooth a state of two numbers, with a triangular A.

    The second number is a summand of the score (h = 1) or not (h = 0).
    """
    entry, step, start = visits
    layout, initial, table = tables
    total = 0.0
    h = float(layout[1, -1])
    for feature in features:
        first = start[feature]
        n = start[feature + 1] - start[feature]
        # columns: alpha, beta, p, c, u, k
        kept = np.empty((n, 7))
        product = 1.0
        n_negative = 0
        _gather(entries, entry, first, kept)
        m1 = 0.0
        m2 = 0.0
        row = step[first]
        P11 = initial[row, 0, 0]
        P12 = initial[row, 0, 1]
        P22 = initial[row, 1, 1]
        for i in range(n):
            visit = first + i
            if i > 0:
                row = step[visit]
                a11 = table[row, 0]
                a12 = table[row, 1]
                a22 = table[row, 2]
                m1 = a11 * m1 + a12 * m2
                m2 = a22 * m2
                P11 = (a11 * a11 * P11 + table[row, 3]) + (
                    2.0 * a11 * a12 * P12 + a12 * a12 * P22
                )
                P12 = a11 * a22 * P12 + (a12 * a22 * P22 + table[row, 4])
                P22 = a22 * a22 * P22 + table[row, 5]
            alpha = kept[i, 0]
            beta = kept[i, 1]
            k1 = P11 + P12 * h
            k2 = P12 + P22 * h
            p = m1 + h * m2
            c = k1 + h * k2
            u = 1.0 / (1.0 + beta * c)
            kept[i, 2] = p
            kept[i, 3] = c
            kept[i, 4] = u
            kept[i, 5] = k1
            kept[i, 6] = k2
            total, product = _add_log_z(total, product, alpha, beta, p, c, u)
            n_negative = _count_negative(n_negative, beta, u)
            e = (alpha - beta * p) * u
            w = beta * u
            m1 += k1 * e
            m2 += k2 * e
            P11 -= k1 * k1 * w
            P12 -= k1 * k2 * w
            P22 -= k2 * k2 * w
            if len(after):
                after[visit, 0] = P11
                after[visit, 1] = P12
                after[visit, 2] = m1
                after[visit, 3] = P22
                after[visit, 4] = m2
        total = _finish_log_z(total, product, n_negative)
        r1 = 0.0
        r2 = 0.0
        N11 = 0.0
        N12 = 0.0
        N22 = 0.0
        for i in range(n - 1, -1, -1):
            visit = first + i
            alpha = kept[i, 0]
            beta = kept[i, 1]
            p = kept[i, 2]
            c = kept[i, 3]
            u = kept[i, 4]
            k1 = kept[i, 5]
            k2 = kept[i, 6]
            kr = k1 * r1 + k2 * r2
            t1 = N11 * k1 + N12 * k2
            t2 = N12 * k1 + N22 * k2
            q = k1 * t1 + k2 * t2
            kept[i, 0], kept[i, 1] = _moments(cavity, alpha, beta, p, c, u, kr, q)
            w = beta * u
            e = (alpha - beta * p) * u - w * kr
            f = w + w * w * q
            r1 = r1 + e
            r2 = r2 + h * e
            N11 += f - 2.0 * w * t1
            N12 += f * h - w * (t2 + h * t1)
            N22 += h * (f * h - 2.0 * w * t2)
            if len(before):
                before[visit, 0] = N11
                before[visit, 1] = N12
                before[visit, 2] = r1
                before[visit, 3] = N22
                before[visit, 4] = r2
            if i > 0:
                row = step[visit]
                a11 = table[row, 0]
                a12 = table[row, 1]
                a22 = table[row, 2]
                r2 = a12 * r1 + a22 * r2
                r1 = a11 * r1
                N22 = a22 * a22 * N22 + (2.0 * a12 * a22 * N12 + a12 * a12 * N11)
                N12 = a11 * a22 * N12 + a11 * a12 * N11
                N11 = a11 * a11 * N11
        _scatter(entries, entry, first, kept, n_negative)
    return total


def _of_size(fixed: int) -> Any:
    """Create the smoother for a fixed state size, with unrolled loops; 0: any size."""

    @njit_nogil
    def smooth(entries, visits, tables, features, cavity, after, before):
        entry, step, start = visits
        layout, initial, table = tables
        size = fixed
        if fixed == 0:
            size = len(layout)
        total = 0.0
        t = np.empty(size)
        S = np.empty((size, size + 1))
        B = np.empty((size, size + 1))
        C = np.empty((size, size + 1))
        for feature in features:
            first = start[feature]
            n = start[feature + 1] - start[feature]
            # columns: alpha, beta, p, c, u, k
            kept = np.empty((n, 5 + size))
            product = 1.0
            n_negative = 0
            _gather(entries, entry, first, kept)
            S.fill(0.0)
            for a in range(size):
                for b in range(size):
                    S[a, b] = initial[step[first], a, b]
            for i in range(n):  # S is [P m]
                if i > 0:
                    _carry(size, layout, table, step[first + i], 0, S, B, C)
                p, c, u = _filter(size, layout, S, kept, i)
                if len(after):
                    _record(size, S, after, first + i)
                total, product = _add_log_z(
                    total, product, kept[i, 0], kept[i, 1], p, c, u
                )
                n_negative = _count_negative(n_negative, kept[i, 1], u)
            total = _finish_log_z(total, product, n_negative)
            S.fill(0.0)
            for i in range(n - 1, -1, -1):  # S is [N r]
                kr, q = _smooth_back(size, layout, S, kept, i, t)
                alpha = kept[i, 0]
                beta = kept[i, 1]
                p = kept[i, 2]
                c = kept[i, 3]
                u = kept[i, 4]
                kept[i, 0], kept[i, 1] = _moments(cavity, alpha, beta, p, c, u, kr, q)
                if len(before):
                    _record(size, S, before, first + i)
                if i > 0:
                    _carry(size, layout, table, step[first + i], 1, S, B, C)
            _scatter(entries, entry, first, kept, n_negative)
        return total

    return smooth


@njit_nogil_inner
def _filter(size, layout, S, kept, i):
    """Update [P m] with a visit.

    p, c, u, and k = P h are stored; p, c, and u are returned.
    """
    alpha = kept[i, 0]
    beta = kept[i, 1]
    p = 0.0
    c = 0.0
    for b in range(size):
        kept[i, 5 + b] = 0.0
    for a in range(size):
        if layout[a, 5]:  # h_a = 1
            p += S[a, size]
            for b in range(size):
                kept[i, 5 + b] += S[a, b]
    for a in range(size):
        c += layout[a, 5] * kept[i, 5 + a]
    u = 1.0 / (1.0 + beta * c)
    e = (alpha - beta * p) * u
    w = beta * u
    for a in range(size):
        k = kept[i, 5 + a]
        for b in range(size):
            S[a, b] -= k * kept[i, 5 + b] * w
        S[a, size] += k * e
    kept[i, 2] = p
    kept[i, 3] = c
    kept[i, 4] = u
    return p, c, u


@njit_nogil_inner
def _smooth_back(size, layout, S, kept, i, t):
    """Update [N r] with a visit, going back; return k·r and k·N k."""
    alpha = kept[i, 0]
    beta = kept[i, 1]
    p = kept[i, 2]
    u = kept[i, 4]
    kr = 0.0
    q = 0.0
    t.fill(0.0)
    for a in range(size):
        k = kept[i, 5 + a]
        kr += k * S[a, size]
        for b in range(size):
            t[b] += k * S[a, b]
    for a in range(size):
        q += kept[i, 5 + a] * t[a]
    w = beta * u
    e = (alpha - beta * p) * u - w * kr
    f = w + w * w * q
    for a in range(size):
        if layout[a, 5]:
            S[a, size] += e
            for b in range(size):
                S[a, b] -= w * t[b]
                S[b, a] -= w * t[b]
            for b in range(size):
                if layout[b, 5]:
                    S[a, b] += f
    return kr, q


@njit_nogil_inner
def _carry(size, layout, table, row, back, S, B, C):
    """[A P A' + Q, A m] before the next visit, from [P m] after a visit.

    With back=1, [A' N A, A' r] from [N r].
    """
    _multiply(size, layout, table, row, back, S, B, True)
    for a in range(size):
        for b in range(size):
            C[b, a] = B[a, b]
    _multiply(size, layout, table, row, back, C, S, False)
    for a in range(size):
        S[a, size] = B[a, size]
        for b in range(a):
            S[b, a] = S[a, b]
    if back == 0:
        place = layout[size - 1, 4] + layout[size - 1, 1]
        for a in range(size):
            for b in range(a, layout[a, 1]):
                S[a, b] += table[row, place]
                S[b, a] = S[a, b]
                place += 1


@njit_nogil_inner
def _multiply(size, layout, table, row, back, X, Y, whole):
    """Y = A X, or A' X if back=1; without its last column unless `whole`."""
    for a in range(size):
        columns = size
        if whole:
            columns = size + 1
        low = layout[a, 2 * back]
        high = layout[a, 2 * back + 1]
        for d in range(low, high):
            i = a
            j = d
            if back:
                i = d
                j = a
            value = table[row, layout[i, 4] + j]
            if d == low:
                for b in range(columns):
                    Y[a, b] = value * X[d, b]
            else:
                for b in range(columns):
                    Y[a, b] += value * X[d, b]


@njit_nogil_inner
def _record(size, S, states, row):
    """Write the matrix without the part below the diagonal, row by row."""
    place = 0
    for a in range(size):
        for b in range(a, size + 1):
            states[row, place] = S[a, b]
            place += 1


_smooth_3 = _of_size(3)
_smooth_any = _of_size(0)
