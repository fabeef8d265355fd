"""The parts of a state: independent blocks, of which all but a few are chains.

A *chain* of rate r and size K holds

    x_j = c^j (d/dt + r)^j s,   j = 0 ... K-1,   c = 1/r, or 1 where r = 0,

so that s = x_0, and the transition over a gap g is e^{-rg} times the powers (g/c)^k /
k! on the k-th upper diagonal, for any covariance. Hence chains of one rate add
up in one block, and the product of chains of K1 and K2 is a chain of K1 + K2 - 1, not
of K1 K2: by Leibniz' rule the derivatives of s1 s2 are sums of the products of theirs.
"""

from __future__ import annotations

from math import comb, factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from preflearn.core.validation import Floats, raise_if_any, require

Origin = float | str  # a time, or "first": each feature's own first time

# what a transition may depend on: end - start, start, start - first
GAP = "gap"
START = "start"
AGE = "age"
# some of these, and boundaries that a step may cross
Needs = frozenset[str | tuple[float, ...]]

_MAX_DECAY = 1e3  # e^-1000 is 0 in floating point


class Chain(NamedTuple):
    """What fixes the transitions of a chain of any size; no state crosses a boundary."""

    rate: float = 0.0  # per unit of time
    boundaries: tuple[float, ...] = ()

    @property
    def unit(self) -> float:
        if self.rate == 0:
            return 1.0
        return 1 / self.rate


class Block:
    """A part of the state, independent of the other parts; its first entry is what it
    adds to the score.

    Unless it says otherwise it is a stationary chain with noise.

    Attributes
    ----------
    size : int
    chain : Chain or None
        None where the transition is its own.
    noisy : bool
        Whether there is noise between two times.
    depends : Needs
        What transition and noise depend on.
    varies : Needs
        What the covariance at the start of a step depends on; nothing if stationary.
    stationary : ndarray of shape (K, K)
        The covariance at all times, where it is one.
    """

    size = 1
    chain: Chain | None = None
    noisy = True
    depends: Needs = frozenset({GAP})
    varies: Needs = frozenset()
    stationary: Floats

    def covariance(self, time: Floats, first: Floats | None) -> Floats:
        """(n, K, K) prior covariance at these times, of features whose first times are
        `first`."""
        return np.broadcast_to(self.stationary, (len(time), self.size, self.size))

    def transition(self, start: Floats, end: Floats) -> Floats:
        """(n, K, K) matrices A."""
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
        """(n, K, K) covariances Q, computed without differences of large numbers."""
        return np.zeros((len(start), self.size, self.size))


class Trend(Block):
    """A level, or a level and its slope, with known variances at the origin; a Wiener
    process may move it.

    The variance of a Wiener process, `drift`, is what it adds to that of the level in a
    unit of time.
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
        expected = "the first time of each feature, for a covariance that multiplies one with origin 'first'"
        require(origin is not None, origin, "first", expected)
        since = time - origin  # pyright: ignore[reportOperatorIssue]  (checked above)
        expected = f"none before the origin {self.origin} of a Wiener process: an earlier one, or 'first'"
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
    """A level that is drawn anew in each interval between boundaries."""

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
    """The stationary Matérn process of smoothness size - 1/2: white noise through a
    chain.

    Noise enters the last entry only, and reaches entry i after a time u as e^{-ru}
    (ru)^a / a!, a = size - 1 - i. With m = a + b, Q_ij is its integral of e^{-2ru}
    (ru)^m / (a! b!): P_ij times the incomplete gamma function of order m + 1, P the
    stationary covariance. That of order n is the one of order n + 1 plus x^n e^{-x} /
    n!.
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
    """Two blocks whose covariances are multiplied: the state is a part of the products
    of their entries."""

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
        # noise times the other block's covariance at the start of a step
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
        """P(end) - A P(start) A' of the products, multiplied out, so that no terms
        cancel."""
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
    """(K, K1 K2) matrix that takes products of two chains' entries to those of the
    product's chain."""
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
    """A P(start) A'."""
    return _congruence(block.transition(start, end), block.covariance(start, first))


def _congruence(A: Floats, P: Floats) -> Floats:
    return A @ P @ np.swapaxes(A, -1, -2)


def _kronecker(left: Floats, right: Floats) -> Floats:
    n = len(left)
    size = left.shape[1] * right.shape[1]
    return np.einsum("nij,nkl->nikjl", left, right).reshape(n, size, size)
