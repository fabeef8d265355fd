"""The entire regularization path of the support vector machine with bias, for every C at once.

With lambda = 1/C and F = lambda f, the dual weights of the machine are piecewise linear in lambda, and so
is F [Hastie2004]_. `svm_path` starts at the largest lambda where anything changes and follows them down.

References
----------
.. [Hastie2004] T. Hastie, S. Rosset, R. Tibshirani, J. Zhu, "The entire regularization path for the
   support vector machine", Journal of Machine Learning Research 5, 2004.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from preflearn._gram import check_finite, check_gram, check_semidefinite
from preflearn._homotopy import BOUND, Homotopy, Middle
from preflearn.pairs import check_labels

__all__ = ["RegularizationPath", "Selection", "svm_path"]

Floats = NDArray[np.float64]

_REFRESH = 50  # events between two computations of F from scratch
_LAST = 1e-9  # breakpoints below this part of the first are rounding
_ACCURACY = 1e-9  # where the optimality conditions hold less well, the path ends
_BLOCK = 128  # breakpoints whose decision values are computed by one matrix product


class Selection(NamedTuple):
    """The best lambda, its loss, and the loss along the path (see `RegularizationPath.select`)."""

    lam: float
    loss: float
    lambdas: Floats
    losses: Floats


class _Piece(NamedTuple):
    """Weights `values` + (start - lambda) `moves` of the points `index`; the others rest at 0 or 1."""

    index: NDArray[np.int64]
    values: Floats
    moves: Floats


class RegularizationPath:
    """The solutions of a support vector machine for all lambda = 1/C, as made by `svm_path`.

    Attributes
    ----------
    breakpoints : ndarray of shape (k,)
        Values of lambda, decreasing, between which alpha and lambda times the bias are linear. Above the
        first alpha is constant. Empty if alpha is constant for all lambda.
    events : list of (lambda, index, kind)
        What happened: point `index` came to the margin ("enter"), or left it ("leave at 0", "leave at 1").
    lambda_end : float
        The path is known for all lambda >= lambda_end > 0, or lambda > 0 if this is 0.
    """

    def __init__(self, K: Floats, y: Floats, start: Floats, tail: float):
        self._K, self._y, self._start, self._tail = K, y, start, tail
        self._knots: list[float] | Floats = []
        self._offsets: list[float] | Floats = []
        self._pieces: list[_Piece] = []
        self._leaves: list[tuple[int, int, float]] = []
        self.events: list[tuple[float, int, str]] = []

    def alpha(self, lam: float) -> Floats:
        """The dual weights at lambda, shape (m,), each in [0, 1]; those of libsvm are C times as large.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        lam = self._check(lam)
        piece = min(int(np.searchsorted(-self._knots, -lam, side="right")), len(self._pieces)) - 1
        return self._start.copy() if piece < 0 else self._alpha_on(piece, lam)

    def bias(self, lam: float) -> float:
        """b of f(x) = w·x + b; where an interval of values is optimal, its middle.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        lam = self._check(lam)
        return self._offset(lam) / lam

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
        K_new = self._check_kernel(K_new)
        return K_new @ (self._y * self.alpha(lam)) / float(lam) + self.bias(lam)

    def kkt_residual(self, lam: float) -> float:
        """The largest violation of the optimality conditions at lambda, over max(1, max |f|).

        It covers y f = 1 at weights inside (0, 1), y f >= 1 at 0, y f <= 1 at 1, and sum(y alpha) = 0.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        alpha, f = self.alpha(lam), self.decision_function(lam, self._K)
        excess = self._y * f - 1
        low, high = alpha <= BOUND, alpha >= 1 - BOUND
        wrong = np.where(low, -excess, np.where(high, excess, np.abs(excess)))
        return float(max(0.0, wrong.max(), abs(self._y @ alpha)) / max(1.0, np.abs(f).max()))

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
        >>> x, y = np.array([-3.0, -1.0, 1.0, 2.0]), [-1, 1, -1, 1]
        >>> path = svm_path(np.outer(x, x), y)
        >>> path.select(np.outer([-2.0, 4.0], x), [-1, 1]).loss
        0.0
        """
        K_valid = self._check_kernel(K_valid)
        if len(self.breakpoints) == 0:
            raise ValueError("the path has no breakpoint: every C gives the same weights, nothing to select")
        if loss is not None:
            values = (F[:, i] / lam for lams, F in self._blocks(K_valid) for i, lam in enumerate(lams[:-1]))
            losses = np.array([float(loss(y_valid, f)) for f in values])
            lambdas = self._knots[:-1]
            best = int(np.argmin(losses))
            return Selection(float(lambdas[best]), float(losses[best]), lambdas, losses)
        lambdas, losses = self._zero_one(K_valid, check_labels(y_valid, len(K_valid), allow=(-1, 1)))
        lower = np.append(lambdas[1:], min(lambdas[-1], self.breakpoints[-1]))
        width = np.where(losses <= losses.min(), np.log(lambdas / lower), -1.0)
        best = int(np.argmax(width))
        return Selection(float(np.sqrt(lambdas[best] * lower[best])), float(losses[best]), lambdas, losses)

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
            places.append(lams[piece] - (lams[piece] - lams[piece + 1]) * before / (before - after))
            changes.append(change[row, piece])
        place, change = np.concatenate(places), np.concatenate(changes)
        place, change = place[place > 0], change[place > 0]
        edges, which = np.unique(-place, return_inverse=True)
        steps = np.bincount(which, weights=change, minlength=len(edges))
        counts = wrong + np.append(0.0, np.cumsum(steps))
        lambdas = np.append(self._knots[0], -edges)
        last = np.append(lambdas[1:] < lambdas[:-1], True)  # of the steps at one lambda
        return lambdas[last], counts[last] / len(y_valid)

    def _blocks(self, K_new: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Runs of knots, each ending where the next begins, and F of new points there, (n, knots)."""
        for first in range(0, len(self._pieces), _BLOCK):
            pieces = range(first, min(first + _BLOCK, len(self._pieces)))
            lams = self._knots[first : pieces[-1] + 2]
            alphas = np.array([self._alpha_on(k, self._knots[k]) for k in pieces])
            alphas = np.vstack([alphas, self._alpha_on(pieces[-1], lams[-1])])
            moved = np.flatnonzero((alphas != alphas[0]).any(axis=0))
            change = (alphas - alphas[0])[:, moved] * self._y[moved]
            F = K_new @ (self._y * alphas[0])
            yield lams, F[:, None] + K_new[:, moved] @ change.T + self._offsets[first : pieces[-1] + 2]

    def _alpha_on(self, piece: int, lam: float) -> Floats:
        alpha, (index, values, moves) = self._start.copy(), self._pieces[piece]
        count = np.searchsorted(self._leave_piece, piece, side="right")
        alpha[self._leave_point[:count]] = self._leave_bound[:count]  # of several, the last one counts
        alpha[index] = np.clip(values + (self._knots[piece] - lam) * moves, 0.0, 1.0)
        return alpha

    def _offset(self, lam: float) -> float:
        if lam >= self._knots[0]:
            return float(self._offsets[0] + self._tail * (lam - self._knots[0]))
        return float(np.interp(-lam, -self._knots, self._offsets))

    def _check(self, lam: float) -> float:
        lam = float(lam)
        if not (0 < lam < np.inf):
            raise ValueError(f"lambda is {lam}; expected a positive finite number (1/C)")
        if lam < self.lambda_end:
            raise ValueError(f"lambda is {lam}, below the end of the path at {self.lambda_end}")
        return lam

    def _check_kernel(self, K_new: ArrayLike) -> Floats:
        K_new = np.asarray(K_new, dtype=np.float64)
        if K_new.ndim != 2 or K_new.shape[1] != len(self._y):
            raise ValueError(f"K of new points has shape {K_new.shape}; expected (n, {len(self._y)})")
        check_finite(K_new)
        return K_new

    def _record(self, lam: float, state: Homotopy) -> _Piece:
        for point, kind in state.log:
            self.events.append((float(lam), point, kind))
            if kind != "enter":
                self._leaves.append((len(self._pieces), point, float(kind[-1])))
        state.log.clear()
        index = state.elbow.index.copy()
        return _Piece(index, state.alpha[index], state.moves.copy())

    def _append(self, lam: float, offset: float, piece: _Piece | None = None) -> None:
        self._knots.append(float(lam))
        self._offsets.append(float(offset))
        if piece is not None:
            self._pieces.append(piece)

    def _cut(self, count: int) -> RegularizationPath:
        self._pieces, self._knots = self._pieces[:count], self._knots[: count + 1]
        self._offsets, end = self._offsets[: count + 1], self._knots[-1]
        self.events = [event for event in self.events if event[0] > end]
        warnings.warn(
            f"svm_path: rounding ends the path at lambda = {end:.3g}", ConvergenceWarning, stacklevel=4
        )
        return self._finish()

    def _finish(self) -> RegularizationPath:
        self._knots, self._offsets = np.array(self._knots), np.array(self._offsets)
        leaves = np.array(self._leaves).reshape(-1, 3)
        self._leave_piece, self._leave_point = leaves[:, 0].astype(np.int64), leaves[:, 1].astype(np.int64)
        self._leave_bound = leaves[:, 2]
        self.breakpoints, self.lambda_end = self._knots[: len(self._pieces)], float(self._knots[-1])
        return self


def svm_path(K: ArrayLike, y: ArrayLike, *, lambda_min: float = 0.0) -> RegularizationPath:
    """All solutions of the support vector machine with bias, for every C = 1/lambda.

    Solves, for each lambda, the problem of [Hastie2004]_::

        minimise sum_i max(0, 1 - y_i f(x_i)) + lambda/2 |w|^2,    f(x) = w·x + b,
        w·x = 1/lambda sum_i alpha_i y_i K(x, x_i),    0 <= alpha_i <= 1,    sum_i alpha_i y_i = 0.

    Parameters
    ----------
    K : array-like of shape (m, m)
        Kernel values of the points: symmetric, positive semi-definite. Kept, not copied.
    y : array-like of shape (m,)
        Labels -1 and +1, both.
    lambda_min : float
        Where to stop. At 0 the path ends where no event is left, or at 1e-9 of the first breakpoint. It
        ends sooner, with a ConvergenceWarning, where rounding exceeds 1e-9 of the largest F.

    Returns
    -------
    RegularizationPath

    Raises
    ------
    ValueError
        On a K that is not square, finite, symmetric or (as far as seen) positive semi-definite, labels
        other than -1 and 1, one class only, or a negative lambda_min.
    ArithmeticError
        If rounding keeps the path from going on; stop at a larger lambda_min.

    Examples
    --------
    >>> path = svm_path([[1.0, -1.0], [-1.0, 1.0]], [1, -1])
    >>> path.breakpoints.tolist(), path.alpha(1.0).tolist(), path.bias(1.0)
    ([2.0], [0.5, 0.5], 0.0)
    """
    K, y = _check_problem(K, y)
    if not (0 <= lambda_min < np.inf):
        raise ValueError(f"lambda_min is {lambda_min}; expected a finite number of at least 0")
    alpha, pins, tail = _start(K, y)
    F = K @ (y * alpha)
    sign = y[pins[0]]
    rest = -float(np.mean(F[pins]))  # the pins stay on the margin with offset = sign lambda + rest
    lam = float(np.max(-sign * (F[y == -sign] + rest))) / 2
    if lam <= max(lambda_min, 1e-12 * np.abs(np.diag(K)).max()):
        return _constant(K, y, alpha, tail, rest + sign * lam, max(lam, 0.0), lambda_min)
    state = Homotopy(K, y, alpha.copy(), np.zeros(len(y)), sign * lam + rest, lam,
                     elbow=pins, drop=1.0, inflow=0.0)  # fmt: skip
    return _follow(state, RegularizationPath(K, y, alpha, tail), lambda_min)


def _constant(
    K: Floats, y: Floats, alpha: Floats, tail: float, offset: float, lam: float, lambda_min: float
) -> RegularizationPath:
    path = RegularizationPath(K, y, alpha, tail)
    path._append(max(lam, lambda_min), offset + tail * (max(lam, lambda_min) - lam))
    return path._finish()


def _follow(state: Homotopy, path: RegularizationPath, lambda_min: float) -> RegularizationPath:
    lam = state.margin
    floor, sound = max(lambda_min, _LAST * lam), 1
    for count in range(1, 1000 + 100 * len(state.y)):
        state.turn(lam)
        piece, offset, slope = path._record(lam, state), state.offset, state.slope
        middle = Middle.of(state) if _is_flat(piece, lam) else None
        passed = state.advance(lam - lambda_min)
        last = passed >= lam - lambda_min or state.margin <= floor
        end = (lambda_min if passed >= lam - lambda_min else floor) if last else state.margin
        path._append(lam, offset if middle is None else middle.at(lam), piece)
        if middle is not None:
            for kink in middle.kinks():
                if end < kink < lam:
                    path._append(kink, middle.at(kink), piece._replace(moves=0 * piece.moves))
        if last:
            path._append(end, offset + (lam - end) * slope if middle is None else middle.at(end))
            path._finish()
            return path if path.kkt_residual(lam) <= 10 * _ACCURACY else path._cut(sound)
        lam = end
        if count % _REFRESH == 0:
            if state.refresh() > _ACCURACY * max(lam, np.abs(state.F).max()):
                return path._cut(sound)
            sound = len(path._pieces)
    raise ArithmeticError(f"the path did not end in {count} events; it came to lambda = {lam}")


def _is_flat(piece: _Piece, lam: float) -> bool:
    resting = (piece.values <= BOUND) | (piece.values >= 1 - BOUND)
    return bool(resting.all() and (np.abs(piece.moves) * lam <= BOUND).all())


def _start(K: Floats, y: Floats) -> tuple[Floats, NDArray[np.int64], float]:
    """Weights for large lambda, points on the margin there, and the slope of the offset in lambda.

    All weights of the smaller class are 1. Those of the larger have the same sum, and the least norm of w:
    the end of the path of these solutions in that sum, from 0 on.
    """
    sign = 1.0 if np.count_nonzero(y > 0) >= np.count_nonzero(y < 0) else -1.0
    big, small = np.flatnonzero(y == sign), np.flatnonzero(y == -sign)
    alpha = np.ones(len(y))
    if len(big) == len(small):
        return alpha, big[[np.argmax(sign * (K @ y)[big])]], 0.0
    linear = -K[np.ix_(big, small)].sum(axis=1)
    first = int(np.argmin(linear))
    state = Homotopy(K[np.ix_(big, big)], np.ones(len(big)), np.zeros(len(big)), linear, -linear[first], 0.0,
                     elbow=np.array([first]), drop=0.0, inflow=1.0)  # fmt: skip
    left = float(len(small))
    for count in range(1, 1000 + 100 * len(big)):
        state.turn(left)
        left -= state.advance(left)
        if left <= BOUND:
            break
        if count % _REFRESH == 0:
            state.refresh()
    else:
        raise ArithmeticError(f"no solution for large lambda was found in {count} events")
    state.refresh()
    inner = (state.alpha > BOUND) & (state.alpha < 1 - BOUND)
    alpha[big] = np.where(inner, state.alpha, np.round(state.alpha))
    if inner.any():
        return alpha, big[state.elbow.index], sign
    return alpha, big[[np.argmin(np.where(alpha[big] == 0, state.F, np.inf))]], sign


def _check_problem(K: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    K = check_gram(K)
    y = check_labels(y, len(K), allow=(-1, 1)).astype(np.float64)
    if np.all(y == y[0]):
        raise ValueError(f"all {len(y)} labels are {y[0]:+.0f}; expected both -1 and +1")
    check_semidefinite(K)
    return K, y
