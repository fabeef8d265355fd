"""The parts of a state: independent blocks, of which all but a few are chains.

A *chain* of rate r and size K holds

    x_j = c^j (d/dt + r)^j s,   j = 0 ... K-1,   c = 1/r, or 1 where r = 0,

so that s = x_0, and the transition over a gap g is e^{-rg} times the powers (g/c)^k / k! on the k-th upper
diagonal, whatever the covariance is. Hence chains of one rate add up in one block, and the product of chains
of K1 and K2 is a chain of K1 + K2 - 1, not of K1 K2: by Leibniz' rule the derivatives of s1 s2 are sums of
the products of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb, factorial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from preflearn.checks import Floats

Origin = float | str  # a time, or "first": each feature's own first time

GAP, START, AGE = "gap", "start", "age"  # what a transition may depend on: end - start, start, start - first
Needs = frozenset[str | tuple[float, ...]]  # some of these, and boundaries that a step may cross

_FAR = 1e3  # e^-1000 is 0 in floating point


class Chain(NamedTuple):
    """What fixes the transitions of a chain but for its size; no state crosses a boundary."""

    rate: float  # per unit of time
    boundaries: tuple[float, ...]


class Block(Protocol):
    """A part of the state, independent of the other parts; its first entry is what it adds to the score."""

    @property
    def size(self) -> int: ...

    @property
    def chain(self) -> Chain | None:
        """Set for a chain; transitions of others are their own."""
        ...

    @property
    def noisy(self) -> bool:
        """Whether there is noise between two times."""
        ...

    @property
    def depends(self) -> Needs:
        """What transition and noise depend on."""
        ...

    @property
    def varies(self) -> Needs:
        """What the covariance at the start of a step depends on; nothing if stationary."""
        ...

    def covariance(self, time: Floats, first: Floats | None) -> Floats:
        """(n, K, K) prior covariance at these times, of features whose first times are `first`."""
        ...

    def transition(self, start: Floats, end: Floats) -> Floats:
        """(n, K, K) matrices A."""
        ...

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        """(n, K, K) covariances Q, computed without differences of large numbers."""
        ...


@dataclass(frozen=True)
class Trend:
    """A level, or a level and its slope, with known variances at the origin; a Wiener process may move it."""

    variances: tuple[float, ...]  # of the level, and of the slope if there is one
    drift: float = 0.0  # added to the variance of the level, per unit of time
    origin: Origin = 0.0

    @property
    def size(self) -> int:
        return len(self.variances)

    @property
    def chain(self) -> Chain:
        return Chain(0.0, ())

    @property
    def noisy(self) -> bool:
        return self.drift > 0

    @property
    def depends(self) -> Needs:
        return frozenset({GAP} if self.noisy or self.size > 1 else ())

    @property
    def varies(self) -> Needs:
        return frozenset({AGE if self.origin == "first" else START} if self.depends else ())

    def covariance(self, time: Floats, first: Floats | None) -> Floats:
        origin = first if self.origin == "first" else float(self.origin)
        assert origin is not None
        since = time - origin
        if self.noisy and since.min(initial=0.0) < 0:
            raise ValueError(
                f"a time is {time[np.argmin(since)]:g}, before the origin {self.origin} of a Wiener process; "
                "expected times from its origin on: choose an earlier origin, or 'first'"
            )
        covariance = _congruence(self.transition(np.zeros(len(since)), since), np.diag(self.variances))
        covariance[:, 0, 0] += self.drift * since
        return covariance

    def transition(self, start: Floats, end: Floats) -> Floats:
        return _chain_transition(self, start, end)

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        Q = np.zeros((len(start), self.size, self.size))
        Q[:, 0, 0] = self.drift * (end - start)
        return Q


@dataclass(frozen=True)
class Interval:
    """A level that is drawn anew in each interval between boundaries."""

    variance: float
    boundaries: tuple[float, ...]
    size = 1
    noisy = True
    varies: Needs = frozenset()

    @property
    def chain(self) -> Chain:
        return Chain(0.0, self.boundaries)

    @property
    def depends(self) -> Needs:
        return frozenset({self.boundaries})

    def covariance(self, time: Floats, first: Floats | None) -> Floats:
        return np.full((len(time), 1, 1), self.variance)

    def transition(self, start: Floats, end: Floats) -> Floats:
        return _chain_transition(self, start, end)

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        drawn = crossed(self.boundaries, start, end).astype(np.float64)
        return self.variance * drawn[:, None, None]


@dataclass(frozen=True)
class Decay:
    """The stationary Matérn process of smoothness size - 1/2: white noise through a chain.

    Noise enters the last entry only, and reaches entry i after a time u as e^{-ru} (ru)^a / a!,
    a = size - 1 - i. With m = a + b, Q_ij is its integral of e^{-2ru} (ru)^m / (a! b!): P_ij times the
    incomplete gamma function, P the stationary covariance.
    """

    variance: float
    rate: float
    size: int
    noisy = True
    depends: Needs = frozenset({GAP})
    varies: Needs = frozenset()

    @property
    def chain(self) -> Chain:
        return Chain(self.rate, ())

    @cached_property
    def _powers(self) -> NDArray[np.int64]:
        below = np.arange(self.size - 1, -1, -1)
        return below[:, None] + below

    @cached_property
    def _stationary(self) -> Floats:
        last, below = 2 * self.size - 2, range(self.size - 1, -1, -1)
        ratios = [[comb(a + b, a) * 2.0 ** (last - a - b) for b in below] for a in below]
        return self.variance * np.array(ratios) / comb(last, self.size - 1)

    def covariance(self, time: Floats, first: Floats | None) -> Floats:
        return np.broadcast_to(self._stationary, (len(time), self.size, self.size))

    def transition(self, start: Floats, end: Floats) -> Floats:
        return _chain_transition(self, start, end)

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        passed = 2 * self.rate * (end - start)[:, None, None]
        return self._stationary * gammainc(self._powers + 1, passed)


@dataclass(frozen=True)
class Kronecker:
    """Two blocks whose covariances are multiplied: the state is a part of the products of their entries."""

    left: Block
    right: Block

    @property
    def chain(self) -> Chain | None:
        a, b = self.left.chain, self.right.chain
        if a is None or b is None:
            return None
        return Chain(a.rate + b.rate, tuple(sorted({*a.boundaries, *b.boundaries})))

    @property
    def size(self) -> int:
        p, q = self.left.size, self.right.size
        return p * q if self.chain is None else p + q - 1

    @property
    def noisy(self) -> bool:
        return self.left.noisy or self.right.noisy

    @property
    def depends(self) -> Needs:
        a, b = self.left, self.right
        return a.depends | b.depends | (a.varies if b.noisy else set()) | (b.varies if a.noisy else set())

    @property
    def varies(self) -> Needs:
        return self.left.varies | self.right.varies

    def covariance(self, time: Floats, first: Floats | None) -> Floats:
        return self._folded(self.left.covariance(time, first), self.right.covariance(time, first))

    def transition(self, start: Floats, end: Floats) -> Floats:
        if self.chain is None:
            return _kronecker(self.left.transition(start, end), self.right.transition(start, end))
        return _chain_transition(self, start, end)

    def noise(self, start: Floats, end: Floats, first: Floats | None) -> Floats:
        """P(end) - A P(start) A' of the products, multiplied out, so that no terms cancel."""
        left, right = (block.noise(start, end, first) for block in (self.left, self.right))
        noise = self._folded(left, right)
        if self.left.noisy:
            noise += self._folded(left, _carried(self.right, start, end, first))
        if self.right.noisy:
            noise += self._folded(_carried(self.left, start, end, first), right)
        return noise

    def _folded(self, left: Floats, right: Floats) -> Floats:
        both = _kronecker(left, right)
        return both if self.chain is None else _congruence(self._leibniz, both)

    @cached_property
    def _leibniz(self) -> Floats:
        """(K, K1 K2) matrix that takes products of two chains' entries to those of the product's chain."""
        p, q = self.left.size, self.right.size
        assert self.left.chain
        assert self.right.chain
        assert self.chain
        unit, first, second = (
            (1 / chain.rate if chain.rate else 1.0)
            for chain in (self.chain, self.left.chain, self.right.chain)
        )
        fold = np.zeros((p + q - 1, p, q))
        for i in range(p):
            for j in range(q):
                fold[i + j, i, j] = comb(i + j, i) * (unit / first) ** i * (unit / second) ** j
        return fold.reshape(p + q - 1, p * q)


# ---- Arrays of matrices


def _chain_transition(block: Block, start: Floats, end: Floats) -> Floats:
    assert block.chain
    rate, boundaries = block.chain
    gap = end - start
    weight = np.exp(-rate * gap)
    if boundaries:
        weight = weight * ~crossed(boundaries, start, end)
    passed = np.minimum(rate * gap, _FAR) if rate else gap
    A = np.zeros((len(gap), block.size, block.size))
    for k in range(block.size):
        rows = np.arange(block.size - k)
        A[:, rows, rows + k] = (weight * passed**k / factorial(k))[:, None]
    return A


def crossed(boundaries: tuple[float, ...], start: Floats, end: Floats) -> NDArray[np.bool_]:
    """Whether a boundary b is in start < b <= end."""
    before, after = (np.searchsorted(boundaries, time, side="right") for time in (start, end))
    return before != after


def _carried(block: Block, start: Floats, end: Floats, first: Floats | None) -> Floats:
    """A P(start) A'."""
    return _congruence(block.transition(start, end), block.covariance(start, first))


def _congruence(A: Floats, P: Floats) -> Floats:
    return A @ P @ np.swapaxes(A, -1, -2)


def _kronecker(left: Floats, right: Floats) -> Floats:
    n, size = len(left), left.shape[1] * right.shape[1]
    return np.einsum("nij,nkl->nikjl", left, right).reshape(n, size, size)
