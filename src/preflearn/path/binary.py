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

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from preflearn.checks import check_labels
from preflearn.ground.gram import check_gram, check_semidefinite
from preflearn.path.homotopy import BOUND, Homotopy, Stretch
from preflearn.path.regularization import Pieces, RegularizationPath, constant

__all__ = ["svm_path"]

Floats = NDArray[np.float64]

_LAST = 1e-9  # breakpoints below this part of the first are rounding
_ACCURACY = 1e-9  # where the optimality conditions hold less well, the path ends
_REFRESH = 100  # points for each stretch between two computations of F from scratch


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
        end = max(lam, lambda_min)
        offset = rest + sign * lam + tail * (end - max(lam, 0.0))
        return RegularizationPath(K, y, alpha, tail, constant(end, offset))
    floor = max(lambda_min, _LAST * lam)
    begin = K, y, alpha.copy(), np.zeros(len(y)), sign * lam + rest, lam
    time = {"left": lam - lambda_min, "spare": lambda_min, "least": floor - lambda_min}
    state = Homotopy(*begin, elbow=pins, drop=1.0, inflow=0.0, **time)
    record = _Record(floor)
    sound, ended = _follow(state, record)
    pieces = record.pieces(lambda_min if state.left == 0 else floor)
    path = RegularizationPath(K, y, alpha, tail, pieces)
    if ended and path.kkt_residual(path.breakpoints[-1]) <= 10 * _ACCURACY:
        return path
    path = RegularizationPath(K, y, alpha, tail, pieces.until(sound))
    warnings.warn(
        f"svm_path: rounding ends the path at lambda = {path.lambda_end:.3g}",
        ConvergenceWarning,
        stacklevel=2,
    )
    return path


def _follow(state: Homotopy, record: _Record) -> tuple[int, bool]:
    """Record the path; returns how many pieces are sound for sure, and if it came to its end."""
    sound, often = 1, max(1, len(state.y) // _REFRESH)
    for count in range(1, _limit(state)):
        before, tolerance = record.count, _ACCURACY * max(state.margin, np.abs(state.F).max())
        record.add(state.advance())
        if state.drift > tolerance:
            return max(before, 1), False
        if state.done:
            return sound, True
        if count % often == 0:
            if state.refresh() > _ACCURACY * max(state.margin, np.abs(state.F).max()):
                return sound, False
            sound = record.count
    raise ArithmeticError(f"the path did not end in {record.count} events; it came to {state.margin}")


def _limit(state: Homotopy) -> int:
    """More stretches than a problem of this size ever takes."""
    return 1000 + 100 * len(state.y)


class _Record:
    """Collects stretches of events as the pieces of a path down to lambda = floor."""

    def __init__(self, floor: float):
        self.count, self._floor, self._listed = 0, floor, 0
        self._parts: list[Pieces] = []
        self._ends: tuple[Floats, Floats] = (np.zeros(0), np.zeros(0))  # of the last piece: lambda, offset

    def add(self, stretch: Stretch) -> None:
        knots, offsets = stretch.margins[:-1], stretch.offsets[:-1].copy()
        events, places, kinks, middles = np.arange(len(knots)), [], [], []
        self._ends = (stretch.margins[-2:], stretch.offsets[-2:])
        for event, middle in stretch.free:
            begin, end = stretch.margins[event], max(stretch.margins[event + 1], self._floor)
            inner = [kink for kink in middle.kinks() if end < kink < begin]
            offsets[event] = middle.at(begin)
            places += [event + 1] * len(inner)
            kinks += inner
            middles += [middle.at(kink) for kink in inner]
            if event == len(knots) - 1:
                self._ends = (np.array([begin, end]), np.array([0.0, middle.at(end)]))
        events = np.insert(events, places, np.array(places, dtype=np.int64) - 1)
        first = self._listed + np.append(0, np.cumsum(stretch.sizes))[events]
        event, point, weight = stretch.changes
        piece = self.count + np.searchsorted(events, event)
        changes = np.column_stack([piece, point, weight])
        knots, offsets = np.insert(knots, places, kinks), np.insert(offsets, places, middles)
        weights = stretch.index, stretch.values, stretch.moves
        self._parts.append(Pieces(knots, offsets, first, stretch.sizes[events], *weights, changes))
        self.count, self._listed = self.count + len(events), self._listed + len(stretch.index)

    def pieces(self, end: float) -> Pieces:
        """Everything so far, with the last knot at lambda = end."""
        lambdas, offsets = self._ends
        all_parts = Pieces(*map(np.concatenate, zip(*self._parts, strict=True)))
        return all_parts._replace(
            knots=np.append(all_parts.knots, end),
            offsets=np.append(all_parts.offsets, np.interp(-end, -lambdas, offsets)),
        )


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
    block = np.ascontiguousarray(K[np.ix_(big, big)])
    begin = block, np.ones(len(big)), np.zeros(len(big)), linear, -linear[first], 0.0
    time = {"left": float(len(small)), "spare": 0.0, "least": BOUND}
    state = Homotopy(*begin, elbow=np.array([first]), drop=0.0, inflow=1.0, **time)
    for count in range(1, _limit(state)):
        state.advance()
        if state.done:
            break
        if count % max(1, len(big) // _REFRESH) == 0:
            state.refresh()
    else:
        raise ArithmeticError(f"no solution for large lambda was found in {count} stretches of events")
    state.refresh()
    inner = (state.alpha > BOUND) & (state.alpha < 1 - BOUND)
    alpha[big] = np.where(inner, state.alpha, np.round(state.alpha))
    if inner.any():
        return alpha, big[state.elbow], sign
    return alpha, big[[np.argmin(np.where(alpha[big] == 0, state.F, np.inf))]], sign


def _check_problem(K: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    K = check_gram(K)
    y = check_labels(y, len(K), allow=(-1, 1)).astype(np.float64)
    if np.all(y == y[0]):
        raise ValueError(f"all {len(y)} labels are {y[0]:+.0f}; expected both -1 and +1")
    check_semidefinite(K)
    return K, y
