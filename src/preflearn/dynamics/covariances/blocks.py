"""Blocks of a state: independent parts, most of which are chains.

A *chain* of rate r and size K has the entries

    x_j = c^j (d/dt + r)^j s,   j = 0 ... K-1,   c = 1/r, or 1 if r = 0,

so that s = x_0. For any covariance, the transition over a gap g is e^{-rg} times the
powers (g/c)^k / k! on the k-th upper diagonal. Therefore chains of the same rate can be
added in one block. The product of chains of sizes K1 and K2 is a chain of size K1 + K2
- 1, not K1 K2. The reason is Leibniz' rule: the derivatives of s1 s2 are sums of
products of the derivatives of s1 and s2.
"""

from __future__ import annotations

from math import comb, factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from preflearn.core.validation import Floats, raise_if_any, require

Origin = float | str  # a time, or "first": each feature's own first time

# quantities on which a transition may depend: end - start, start, start - first
GAP = "gap"
START = "start"
AGE = "age"
# a set of these, and of boundaries that a step may cross
Needs = frozenset[str | tuple[float, ...]]

_MAX_DECAY = 1e3  # e^-1000 is 0 in floating point


class Chain(NamedTuple):
    """Parameters of a chain that determine its transitions, for any size.

    The state after a boundary is independent of the state before it.
    """

    rate: float = 0.0  # per unit of time
    boundaries: tuple[float, ...] = ()

    @property
    def unit(self) -> float:
        if self.rate == 0:
            return 1.0
        return 1 / self.rate


class Block:
    """An independent part of the state, whose first entry is a summand of the score.

    By default a block is a stationary chain with noise.

    Attributes
    ----------
    size : int
        Number of entries.
    chain : Chain or None
        Chain that determines the transitions; None if the block defines its own.
    noisy : bool
        Whether there is noise between two times.
    depends : Needs
        Quantities on which transition and noise depend.
    varies : Needs
        Quantities on which the covariance at the start of a step depends; empty if the
        block is stationary.
    stationary : ndarray of shape (K, K)
        Covariance at all times, for a stationary block.
    """

    size = 1
    chain: Chain | None = None
    noisy = True
    depends: Needs = frozenset({GAP})
    varies: Needs = frozenset()
    stationary: Floats

    def covariance(self, time: Floats, first: Floats | None) -> Floats:
        """Prior covariances at these times, shape (n, K, K).

        `first` holds the first time of each feature.
        """
        return np.broadcast_to(self.stationary, (len(time), self.size, self.size))

    def transition(self, start: Floats, end: Floats) -> Floats:
        """Transition matrices A, shape (n, K, K)."""
        assert self.chain
        rate, boundaries = self.chain
        gap = end - start
        weight = np.exp(-rate * gap)
        if boundaries:
            weight *= ~crossed(boundaries, start, end)
        passed = gap
        if rate:
            passed = np.minimum(rate * gap, _MAX_DECAY)
        A = np.zeros((len(gap), self.size, self.size))
        for k in range(self.size):
            rows = np.arange(self.size - k)
            A[:, rows, rows + k] = (weight * passed**k / factorial(k))[:, None]
        return A

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        """Noise covariances Q, shape (n, K, K), without loss of digits by cancellation."""
        return np.zeros((len(start), self.size, self.size))


class Trend(Block):
    """A level, or a level and a slope, with known variances at the origin.

    A Wiener process may be added. `drift` is the variance that it adds to the
    variance of the level per unit of time.
    """

    def __init__(
        self, level: float, slope: float = 0.0, drift: float = 0.0, origin: Origin = 0.0
    ) -> None:
        self.variances = np.diag([level, slope])
        if slope == 0:
            self.variances = self.variances[:1, :1]
        self.drift = drift
        self.origin = origin
        self.chain = Chain()
        self.size = len(self.variances)
        self.noisy = drift > 0
        self.depends = frozenset()
        if self.noisy or self.size > 1:
            self.depends = frozenset({GAP})
            self.varies = frozenset({START})
            if origin == "first":
                self.varies = frozenset({AGE})

    def covariance(self, time: Floats, first: Floats | None) -> Floats:
        origin = first
        if self.origin != "first":
            origin = float(self.origin)
        expected = "the first time of each feature, since the covariance has a factor with origin='first'"
        require(origin is not None, origin, "first", expected)
        since = time - origin  # pyright: ignore[reportOperatorIssue]  (checked above)
        expected = (
            f"times of at least {self.origin}, the origin of a Wiener process; choose an "
            "earlier origin, or origin='first'"
        )
        raise_if_any(self.noisy & (since < 0), time, "time", expected)
        moved = _congruence(
            self.transition(np.zeros(len(since)), since), self.variances
        )
        moved[:, 0, 0] += self.drift * since
        return moved

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        Q = super().noise(start, end, first)
        Q[:, 0, 0] = self.drift * (end - start)
        return Q


class Interval(Block):
    """A level that is redrawn in each interval between boundaries."""

    def __init__(self, variance: float, boundaries: tuple[float, ...]) -> None:
        self.stationary = np.full((1, 1), variance)
        self.chain = Chain(0.0, boundaries)
        self.depends = frozenset({boundaries})

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        assert self.chain
        return (
            self.stationary * crossed(self.chain.boundaries, start, end)[:, None, None]
        )


class Decay(Block):
    """The stationary Matérn process of smoothness size - 1/2, as a chain with noise.

    White noise enters the last entry only. After a time u it has reached entry i with
    the factor e^{-ru} (ru)^a / a!, a = size - 1 - i. With m = a + b, Q_ij is the
    integral of e^{-2ru} (ru)^m / (a! b!): P_ij times the incomplete gamma function of
    order m + 1, with P the stationary covariance. The incomplete gamma function of
    order n is that of order n + 1 plus x^n e^{-x} / n!.
    """

    def __init__(self, variance: float, rate: float, size: int) -> None:
        self.size = size
        self.chain = Chain(rate)
        last = 2 * size - 2
        below = range(size - 1, -1, -1)
        ratios = [
            [
                comb(a + b, a) * 2.0 ** (last - a - b) / comb(last, size - 1)
                for b in below
            ]
            for a in below
        ]
        self.stationary = variance * np.array(ratios)
        self._powers = np.add.outer(below, below)

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        assert self.chain
        passed = np.minimum(2 * self.chain.rate * (end - start), _MAX_DECAY)
        last = 2 * self.size - 1
        term = np.exp(-passed)
        terms = [term := term * passed / n for n in range(1, last)]
        gammas = [-np.expm1(-passed)]
        if last > 1:
            gammas = [gammainc(last, passed)]
        for term in reversed(terms):
            gammas.append(gammas[-1] + term)
        return self.stationary * np.stack(gammas[::-1], axis=-1)[:, self._powers]


class Kronecker(Block):
    """Product of two blocks, whose covariances are multiplied.

    The state consists of products of the entries of both blocks, or of sums of such
    products if both blocks are chains.
    """

    def __init__(self, left: Block, right: Block) -> None:
        self.left = left
        self.right = right
        self.size = left.size * right.size
        self._fold = None
        if left.chain and right.chain:
            boundaries = {*left.chain.boundaries, *right.chain.boundaries}
            self.chain = Chain(
                left.chain.rate + right.chain.rate, tuple(sorted(boundaries))
            )
            self.size = left.size + right.size - 1
            self._fold = _leibniz(left, right, self.chain.unit)
        self.noisy = left.noisy or right.noisy
        self.varies = left.varies | right.varies
        self.depends = left.depends | right.depends
        # the noise is multiplied by the other block's covariance at the start of a step
        if right.noisy:
            self.depends |= left.varies
        if left.noisy:
            self.depends |= right.varies

    def covariance(self, time: Floats, first: Floats | None) -> Floats:
        return self._folded(
            self.left.covariance(time, first), self.right.covariance(time, first)
        )

    def transition(self, start: Floats, end: Floats) -> Floats:
        if self.chain:
            return super().transition(start, end)
        return _kronecker(
            self.left.transition(start, end), self.right.transition(start, end)
        )

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        """P(end) - A P(start) A' of the products, expanded so that no terms cancel."""
        left, right = (
            block.noise(start, end, first) for block in (self.left, self.right)
        )
        noise = self._folded(left, right)
        if self.left.noisy:
            noise += self._folded(left, _carried(self.right, start, end, first))
        if self.right.noisy:
            noise += self._folded(_carried(self.left, start, end, first), right)
        return noise

    def _folded(self, left: Floats, right: Floats) -> Floats:
        both = _kronecker(left, right)
        if self._fold is None:
            return both
        return _congruence(self._fold, both)


def _leibniz(left: Block, right: Block, unit: float) -> Floats:
    """Matrix from products of two chains' entries to the entries of the product chain.

    Its shape is (K, K1 K2).
    """
    assert left.chain
    assert right.chain
    p = left.size
    q = right.size
    fold = np.zeros((p + q - 1, p, q))
    for i in range(p):
        for j in range(q):
            fold[i + j, i, j] = (
                comb(i + j, i)
                * (unit / left.chain.unit) ** i
                * (unit / right.chain.unit) ** j
            )
    return fold.reshape(p + q - 1, p * q)


def crossed(
    boundaries: tuple[float, ...], start: Floats, end: Floats
) -> NDArray[np.bool_]:
    """Whether a boundary b is in start < b <= end."""
    before, after = (
        np.searchsorted(boundaries, time, side="right") for time in (start, end)
    )
    return before != after


def _carried(block: Block, start: Floats, end: Floats, first: Floats | None) -> Floats:
    """The covariance A P(start) A' at the end of a step, without noise."""
    return _congruence(block.transition(start, end), block.covariance(start, first))


def _congruence(A: Floats, P: Floats) -> Floats:
    return A @ P @ np.swapaxes(A, -1, -2)


def _kronecker(left: Floats, right: Floats) -> Floats:
    n = len(left)
    size = left.shape[1] * right.shape[1]
    return np.einsum("nij,nkl->nikjl", left, right).reshape(n, size, size)
