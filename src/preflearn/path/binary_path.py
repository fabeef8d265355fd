"""What the path of the machine with bias answers: weights, bias and decisions at every lambda."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import Floats, Ids, check_array, check_labels
from preflearn.path.events import BOUND
from preflearn.path.regularization import SHORT, RegularizationPath, Selection, named, steps, widest

_BLOCK = 128  # breakpoints whose decision values are computed by one matrix product


class Pieces(NamedTuple):
    """A path in arrays: at knot k begins piece k, and the last knot is the end.

    On piece k the points `index[first[k] : first[k] + size[k]]` have the weights values + (knot - lambda)
    moves; the others rest at 0 or 1. `changes` are rows (piece, point, weight) of the points that come to
    the margin (weight -1), or leave it for a weight of 0 or 1.
    """

    knots: Floats  # (k + 1,)
    offsets: Floats  # (k + 1,), lambda times the bias
    first: Ids  # (k,)
    size: Ids  # (k,)
    index: Ids
    values: Floats
    moves: Floats
    changes: Ids  # (c, 3)

    def until(self, count: int) -> Pieces:
        """The first pieces only."""
        changes = self.changes[self.changes[:, 0] < count]
        knots, offsets = self.knots[: count + 1], self.offsets[: count + 1]
        return self._replace(
            knots=knots, offsets=offsets, first=self.first[:count], size=self.size[:count], changes=changes
        )

    def merged(self) -> Pieces:
        """Without pieces as short as rounding; what happens at their knots happens at the next one."""
        kept = self.knots[1:] < self.knots[:-1] * (1 - SHORT)
        place = np.cumsum(kept) - kept
        changes = np.column_stack([place[self.changes[:, 0]], self.changes[:, 1:]])
        knots, offsets = (np.append(values[:-1][kept], values[-1]) for values in (self.knots, self.offsets))
        first, size = self.first[kept], self.size[kept]
        return self._replace(knots=knots, offsets=offsets, first=first, size=size, changes=changes)


def constant(end: float, offset: float) -> Pieces:
    """A path without pieces, known down to lambda = end."""
    none, floats = np.zeros(0, dtype=np.int64), np.zeros(0)
    knots, offsets = np.array([end]), np.array([offset])
    return Pieces(knots, offsets, none, none, none, floats, floats, none.reshape(0, 3))


class BinaryPath(RegularizationPath):
    """The solutions of the machine with bias for all lambda, as made by `svm_path`."""

    def __init__(
        self, K: Floats, centre: Floats | float, y: Floats, start: Floats, tail: float, pieces: Pieces,
        status: str = "complete",
    ):  # fmt: skip
        self._K, self._y, self._start, self._tail, self._pieces = K, y, start, tail, pieces
        self._centre = centre  # taken from the rows of each kernel; K is without it
        self._knots, self._offsets = pieces.knots, pieces.offsets
        super().__init__(self._knots[:-1], float(self._knots[-1]), status)
        self._leaves = pieces.changes[pieces.changes[:, 2] >= 0]

    @property
    def events(self) -> list[tuple[float, int, str]]:
        return named(self._knots, self._pieces.changes)

    def alpha(self, lam: float) -> Floats:
        """The dual weights at lambda, shape (m,), each in [0, 1]; those of libsvm are C times as large.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        lam = self._check(lam)
        piece = min(int(np.searchsorted(-self._knots, -lam, side="right")), len(self.breakpoints)) - 1
        return self._start.copy() if piece < 0 else self._alpha_on(piece, lam)

    def bias(self, lam: float) -> float:
        """b of f(x) = w·x + b; where an interval of values is optimal, its middle.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        lam = self._check(lam)
        shift = float(np.sum(self._centre * self._y * self.alpha(lam))) if np.any(self._centre) else 0.0
        return (self._offset(lam) - shift) / lam

    def decision_function(self, lam: float, K_new: ArrayLike) -> Floats:
        """f(x) at lambda of new points, shape (n,).

        Parameters
        ----------
        lam : float
        K_new : array-like of shape (n, m)
            Kernel values of new points (rows) with those of the fit.

        Raises
        ------
        ValueError
            On a bad lambda (as in `alpha`) or bad kernel values.
        """
        return self._decide(self._check(lam), self._check_kernel(K_new))

    def _decide(self, lam: float, K_new: Floats) -> Floats:
        return (K_new @ (self._y * self.alpha(lam)) + self._offset(lam)) / lam

    def kkt_residual(self, lam: float) -> float:
        """The largest violation of the optimality conditions at lambda, over max(1, max |f|).

        It covers y f = 1 at weights inside (0, 1), y f >= 1 at 0, y f <= 1 at 1, and sum(y alpha) = 0.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        alpha, f = self.alpha(lam), self._decide(self._check(lam), self._K)
        excess = self._y * f - 1
        low, high = alpha <= BOUND, alpha >= 1 - BOUND
        wrong = np.where(low, -excess, np.where(high, excess, np.abs(excess)))
        return float(max(0.0, wrong.max(), abs(self._y @ alpha)) / max(1.0, np.abs(f).max()))

    def duality_gap(self, lam: float) -> float:
        """How far lambda/2 w·w + sum of hinges may be above its minimum, relative to its value.

        At a small lambda it says more than `kkt_residual`: where the data are nearly separable, margins that
        are right to many digits can still leave much of a small objective.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        lam = self._check(lam)
        alpha, bias = self.alpha(lam), self._offset(lam) / lam
        f = self._decide(lam, self._K)
        half = float((self._y * alpha) @ (f - bias)) / 2
        primal = half + float(np.maximum(0.0, 1 - self._y * f).sum())
        gap = primal - float(alpha.sum()) + half + (1 + abs(bias)) * abs(float(self._y @ alpha))
        return max(0.0, gap) / primal if primal > 0 else 0.0

    def select(
        self,
        K_valid: ArrayLike,
        y_valid: ArrayLike,
        loss: Callable[[NDArray, Floats], float] | None = None,
    ) -> Selection:
        """The lambda with the least validation loss.

        Without `loss` it is the zero-one loss of sign(f), with +1 at f = 0, as a function of every lambda
        up to the first breakpoint: since F is piecewise linear, the places where predictions change are
        computed. Then ``losses[i]`` holds from ``lambdas[i]`` down to ``lambdas[i + 1]``, and the best
        lambda is the geometric middle of the widest of the best intervals. With `loss`, it is its least
        value over the breakpoints, at the largest such lambda.

        Parameters
        ----------
        K_valid : array-like of shape (n, m)
            Kernel values of validation points (rows) with those of the fit.
        y_valid : array-like of shape (n,)
            Labels -1 or +1; with `loss`, whatever it takes.
        loss : callable, optional
            ``loss(y_valid, f)``, smaller is better.

        Raises
        ------
        ValueError
            On bad kernel values or labels, or if the path has no breakpoint.

        Examples
        --------
        >>> from preflearn.path import svm_path
        >>> x, y = np.array([-3.0, -1.0, 1.0, 2.0]), [-1, 1, -1, 1]
        >>> path = svm_path(np.outer(x, x), y)
        >>> path.select(np.outer([-2.0, 4.0], x), [-1, 1]).loss
        0.0
        """
        K_valid = self._check_kernel(K_valid)
        self._check_choice()
        if loss is not None:
            values = (F[:, i] / lam for lams, F in self._blocks(K_valid) for i, lam in enumerate(lams[:-1]))
            losses = np.array([float(loss(np.asarray(y_valid), f)) for f in values])
            return self._least(losses)
        lambdas, losses = self._zero_one(K_valid, check_labels(y_valid, len(K_valid), allow=(-1, 1)))
        return widest(lambdas, losses, self._end(lambdas))

    def _zero_one(self, K_valid: Floats, y_valid: NDArray) -> tuple[Floats, Floats]:
        wrong, places, changes = 0, [], []
        for block, (lams, F) in enumerate(self._blocks(K_valid)):
            F[np.abs(F) <= 1e-12 * np.abs(F).max()] = 0.0  # on the boundary, but for rounding
            missed = (F >= 0) != (y_valid > 0)[:, None]
            if block == 0:
                wrong = int(missed[:, 0].sum())
            change = missed[:, 1:].astype(int) - missed[:, :-1]
            row, piece = np.nonzero(change)
            before, after = F[row, piece], F[row, piece + 1]
            crossed = lams[piece] - (lams[piece] - lams[piece + 1]) * before / (before - after)
            places.append(np.clip(crossed, lams[piece + 1], lams[piece]))  # rounding may pass the end
            changes.append(change[row, piece])
        lambdas, counts = steps(wrong, float(self._knots[0]), places, changes)
        return lambdas, counts / len(y_valid)

    def _blocks(self, K_new: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Runs of knots, each ending where the next begins, and F of new points there, (n, knots)."""
        for first in range(0, len(self.breakpoints), _BLOCK):
            last = min(first + _BLOCK, len(self.breakpoints)) - 1
            lams = self._knots[first : last + 2]
            alphas = np.vstack([self._alphas_at_knots(first, last), self._alpha_on(last, lams[-1])])
            moved = np.flatnonzero((alphas != alphas[0]).any(axis=0))
            change = (alphas - alphas[0])[:, moved] * self._y[moved]
            F = K_new @ (self._y * alphas[0])
            yield lams, F[:, None] + K_new[:, moved] @ change.T + self._offsets[first : last + 2]

    def _alphas_at_knots(self, first: int, last: int) -> Floats:
        """The weights where these pieces begin, shape (pieces, m)."""
        pieces, leaves = self._pieces, self._leaves
        alphas = np.tile(self._alpha_on(first, self._knots[first]), (last + 1 - first, 1))
        begin, end = np.searchsorted(leaves[:, 0], [first, last], side="right")
        for piece, point, weight in leaves[begin:end].tolist():
            alphas[piece - first :, point] = weight
        size = pieces.size[first : last + 1]
        shift = pieces.first[first : last + 1] - np.cumsum(size) + size
        place = np.arange(size.sum()) + np.repeat(shift, size)
        row = np.repeat(np.arange(len(size)), size)
        alphas[row, pieces.index[place]] = np.clip(pieces.values[place], 0.0, 1.0)
        return alphas

    def _alpha_on(self, piece: int, lam: float) -> Floats:
        alpha, pieces = self._start.copy(), self._pieces
        leaves = self._leaves[: np.searchsorted(self._leaves[:, 0], piece, side="right")]
        alpha[leaves[:, 1]] = leaves[:, 2]  # of several, the last one counts
        part = slice(pieces.first[piece], pieces.first[piece] + pieces.size[piece])
        values = pieces.values[part] + (pieces.knots[piece] - lam) * pieces.moves[part]
        alpha[pieces.index[part]] = np.clip(values, 0.0, 1.0)
        return alpha

    def _offset(self, lam: float) -> float:
        if lam >= self._knots[0]:
            return float(self._offsets[0] + self._tail * (lam - self._knots[0]))
        return float(np.interp(-lam, -self._knots, self._offsets))

    def _check_kernel(self, K_new: ArrayLike) -> Floats:
        """Values of a kernel between new points and those of the fit, less what K is without."""
        return check_array(K_new, "K of new points", ("n", len(self._y))) - self._centre
