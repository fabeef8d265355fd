"""State-space models of covariance functions (section 3.2 of [Maystre2019]_).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from preflearn.core.validation import Floats, Ids, as_array, check_shape, require
from preflearn.dynamics.covariances.blocks import (
    AGE,
    GAP,
    START,
    Block,
    Kronecker,
    Needs,
    crossed,
)

# check_finite raises an error with a clearer message
OVERFLOW: Any = {"over": "ignore", "invalid": "ignore"}
_TOGETHER = 1000  # number of steps whose full matrices are computed at once


class StateSpace:
    """A Gaussian process in time as a Gauss-Markov process of state vectors.

    `Covariance.state_space` returns it. Use it to run your own Kalman filter, or to
    derive a new covariance from blocks.

    The state x of a feature is Gaussian with mean 0 at its first time t. Then x(t') = A
    x(t) + noise of covariance Q, and the score is s = h'x. With P(t) the covariance of
    x(t), k(t, t') = h' A P(t) h for t <= t' (section 3.2 of [Maystre2019]_).

    Parameters
    ----------
    blocks : iterable of Block
        Independent parts. Chains with the same rate and the same boundaries share
        entries of the state.

    Attributes
    ----------
    size : int
        Size K of the state.
    measurement : ndarray of shape (K,)
        Vector h, whose entries are 0 or 1.
    layout : ndarray of int, shape (K, 6)
        Position of the nonzero entries of A. For each k: the first column in row k and
        the one after the last; the first row in column k and the one after the last;
        the position of row k in `steps`, minus its first column; and h_k. The blocks of
        a state with two entries count as one.
    depends : Needs
        Quantities on which A and Q depend.

    Examples
    --------
    >>> import numpy as np
    >>> from preflearn.dynamics import Affine, Wiener
    >>> model = (Affine(4.0, 0.5, origin=0.0) + Wiener(2.0, origin=0.0)).state_space()
    >>> model.size, model.measurement.tolist()
    (2, [1.0, 0.0])
    >>> A, Q = model.transitions(np.array([1.0]), np.array([4.0]))
    >>> A[0].tolist(), Q[0].tolist()
    ([[1.0, 3.0], [0.0, 1.0]], [[6.0, 0.0], [0.0, 0.0]])
    >>> model.initial(np.array([1.0]))[0].tolist()
    [[6.5, 0.5], [0.5, 0.5]]
    """

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = tuple(blocks)
        groups: dict[object, list[Block]] = {}
        for block in self.blocks:
            groups.setdefault(block.chain or id(block), []).append(block)
        self._groups = [
            max(group, key=lambda block: block.size) for group in groups.values()
        ]
        starts = np.cumsum([0, *(block.size for block in self._groups)]).tolist()
        offset = dict(zip(groups, starts, strict=False))
        self._parts = [offset[block.chain or id(block)] for block in self.blocks]
        self.size: int = starts[-1]
        self.measurement: Floats = np.zeros(self.size)
        self.measurement[starts[:-1]] = 1.0
        filled = np.zeros((self.size, self.size), dtype=bool)
        if self.size == 2:  # the compiled loop for size 2 expects a full triangle
            filled = np.tri(2, dtype=bool).T
        for where, block in zip(starts, self._groups, strict=False):
            here = slice(where, where + block.size)
            filled[here, here] |= np.tri(block.size, dtype=bool).T | (
                block.chain is None
            )
        self._entries = np.nonzero(filled), np.nonzero(np.triu(filled))
        low = filled.argmax(axis=1)
        left = filled.argmax(axis=0)
        high = low + filled.sum(axis=1)
        right = left + filled.sum(axis=0)
        place = np.cumsum(high - low) - high
        self.layout: Ids = np.column_stack(
            [low, high, left, right, place, self.measurement]
        ).astype(np.int64)
        self.depends: Needs = frozenset().union(
            *(block.depends for block in self.blocks)
        )

    def __add__(self, other: StateSpace) -> StateSpace:
        return StateSpace(self.blocks + other.blocks)

    def __mul__(self, other: StateSpace) -> StateSpace:
        entries = sum(a.size for a in self.blocks) * sum(b.size for b in other.blocks)
        expected = "at most 1000; use fewer factors, or a lower order"
        require(entries <= 1000, entries, "the state size of the product", expected)
        return StateSpace(Kronecker(a, b) for a in self.blocks for b in other.blocks)

    def initial(self, time: Floats) -> Floats:
        """Prior covariance of the state at the first time of a feature.

        Parameters
        ----------
        time : array-like of shape (n,)
            First times of features.

        Returns
        -------
        P : ndarray of shape (n, K, K)

        Raises
        ------
        ValueError
            If the shape is wrong, a time is before the origin of a Wiener process, or
            the covariance overflows.
        """
        time = as_array(time, "time")
        check_shape(time, "time", ("n",), "first times")
        with np.errstate(**OVERFLOW):
            return self._sum([block.covariance(time, time) for block in self.blocks])

    def transitions(
        self, start: Floats, end: Floats, first: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Matrices A and noise covariances Q of x(end) = A x(start) + noise.

        Parameters
        ----------
        start, end : array-like of shape (n,)
            Times with start <= end.
        first : array-like of shape (n,), optional
            First time of each step's feature. It is necessary if "age" is in `depends`:
            for a product with a covariance whose origin is "first".

        Returns
        -------
        A, Q : ndarray of shape (n, K, K)

        Raises
        ------
        ValueError
            If a shape is wrong, `first` is necessary but missing, or a number
            overflows.
        """
        start = as_array(start, "start")
        check_shape(start, "start", ("n",), "times")
        end = as_array(end, "end")
        check_shape(end, "end", start.shape, "times")
        if first is not None:
            first = as_array(first, "first")
            check_shape(first, "first", start.shape, "times")
        with np.errstate(**OVERFLOW):
            noise = [block.noise(start, end, first) for block in self.blocks]
        return self.moves(start, end), self._sum(noise)

    def moves(self, start: Floats, end: Floats) -> Floats:
        """The matrices A of `transitions`."""
        A = np.zeros((len(start), self.size, self.size))
        where = 0
        with np.errstate(**OVERFLOW):
            for block in self._groups:
                here = slice(where, where := where + block.size)
                A[:, here, here] = block.transition(start, end)
        return check_finite(A)

    def steps(self, start: Floats, end: Floats, first: Floats) -> Floats:
        """The entries of A and Q that may be nonzero, one row per step.

        With independent blocks, most entries are 0. Parameters and errors are those of
        `transitions`.

        Returns
        -------
        table : ndarray
            For each step, the rows of A, in the columns that `layout` gives; then the
            rows of Q, from the diagonal to the last of these columns.
        """
        moves, noise = self._entries
        width = len(moves[0]) + len(noise[0])
        table = np.empty((len(start), width))
        for low in range(0, len(start), _TOGETHER):
            part = slice(low, low + _TOGETHER)
            A, Q = self.transitions(start[part], end[part], first[part])
            table[part] = np.hstack([A[:, *moves], Q[:, *noise]])
        return table

    def keys(self, start: Floats, end: Floats, first: Floats) -> list[Floats]:
        """Keys of steps, such that steps with equal keys have the same transition.

        The parameters are those of `transitions`.

        Returns
        -------
        keys : list of ndarray, shape (n,)
            At least one key: the gap `end - start` for most covariances; whether a
            boundary is crossed (0 or 1); also the start, or the time since `first`, for
            products with a process that is not stationary.
        """
        known: Any = {GAP: end - start, START: start, AGE: start - first}
        values = [
            crossed(need, start, end).astype(np.float64)
            if isinstance(need, tuple)
            else known[need]
            for need in sorted(self.depends, key=repr)
        ]
        return values or [np.zeros(len(start))]

    def _sum(self, parts: list[Floats]) -> Floats:
        """Sum of the blocks' matrices, each at its position."""
        total = np.zeros((len(parts[0]), self.size, self.size))
        for where, part in zip(self._parts, parts, strict=True):
            here = slice(where, where + part.shape[1])
            total[:, here, here] += part
        return check_finite(total)


def is_static(space: StateSpace) -> bool:
    """Whether a score is the same at all times."""
    return space.size == 1 and not space.depends


def check_finite(values: Floats) -> Floats:
    if not np.isfinite(values).all():
        raise ValueError(
            "the covariance overflows; rescale the times, variances, or the design to smaller numbers"
        )
    return values
