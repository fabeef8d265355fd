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
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from preflearn.checks import Floats, check_labels, check_real, check_scale
from preflearn.ground.gram import DenseGram, check_gram, check_semidefinite
from preflearn.path.binary_path import BinaryPath, Pieces, constant
from preflearn.path.events import BOUND
from preflearn.path.homotopy import Homotopy, Stretch

_LAST = 1e-9  # breakpoints below this part of the first are rounding
_ACCURACY = 1e-9  # the path ends where the rounding of F may exceed this share of it
_TOLERANCE = 5e-9  # or sooner, where the optimality conditions hold less well
_EPS = 1.1e-16  # the rounding of one number
_INACCURATE = 1e-4  # a duality gap, in units of the objective, that is worth a warning
_BLURRED = 2e-7  # the optimality conditions at the end, where no event is left
_LEVEL = 10.0  # a constant in K is taken out if it is so much larger than the rest
_REFRESH = 100  # points for each stretch between two computations of F from scratch


def svm_path(K: ArrayLike, y: ArrayLike, *, lambda_min: float = 0.0) -> BinaryPath:
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
        Where to stop. At 0 the path ends where no event is left and F / lambda would be rounding, or at 1e-9
        of the first breakpoint. It ends sooner, with a ConvergenceWarning, at the first event where a bound
        on the rounding of F (not the rounding itself, which differs between machines) exceeds 1e-9 of the
        largest F.

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

    Notes
    -----
    A constant added to K changes the bias only. Where it dominates K, it is taken out first.

    The path costs some ten to twenty fits of libsvm at a moderate C (`benchmarks/README.md` has the numbers):
    for one known C, fit; for the best of many, or of all, follow the path.

    Examples
    --------
    >>> path = svm_path([[1.0, -1.0], [-1.0, 1.0]], [1, -1])
    >>> path.breakpoints.tolist(), path.alpha(1.0).tolist(), path.bias(1.0)
    ([2.0], [0.5, 0.5], 0.0)
    """
    K, y = _check_problem(K, y)
    lambda_min = check_real(lambda_min, "lambda_min", "a finite number of at least 0", least=0.0)
    path = trusted_path(K, y, lambda_min)
    if path.status == "rounding":
        warnings.warn(
            f"svm_path: rounding ends the path at lambda = {path.lambda_end:.3g}",
            ConvergenceWarning,
            stacklevel=2,
        )
    if lambda_min > 0 and (gap := path.duality_gap(max(lambda_min, path.lambda_end))) > _INACCURATE:
        warnings.warn(
            f"svm_path: at the end the duality gap is {gap:.1e} of the objective; expected at most "
            f"{_INACCURATE:g}: raise lambda_min, and see duality_gap",
            ConvergenceWarning,
            stacklevel=2,
        )
    return path


def trusted_path(K: Floats, y: Floats, lambda_min: float) -> BinaryPath:
    """`svm_path` of a K and labels that need no check; its status is "rounding" where `svm_path` warns."""
    K, centre = _centred(K)
    gram = DenseGram(K)
    alpha, pins, tail = _start(gram, y)
    F = gram.times(y * alpha)
    sign = float(y[pins[0]])
    rest = -float(np.mean(F[pins]))  # the pins stay on the margin with offset = sign lambda + rest
    lam = float(np.max(-sign * (F[y == -sign] + rest))) / 2
    make = partial(BinaryPath, K, centre, y, alpha, tail)
    if lam <= max(lambda_min, 1e-12 * np.abs(gram.diagonal()).max()):
        end = max(lam, lambda_min)
        offset = rest + sign * lam + tail * (end - max(lam, 0.0))
        return make(constant(end, offset))
    floor = max(lambda_min, _LAST * lam)
    state = Homotopy(
        gram, y, alpha.copy(), lam, offset=sign * lam + rest, elbow=pins,
        left=lam - lambda_min, spare=lambda_min, least=floor - lambda_min,
    )  # fmt: skip
    record = _Record(floor, (lam, state.offset))
    sound, ended = _follow(gram, state, record)
    path = make(record.pieces(lambda_min if state.left == 0 else floor))
    end = _blurred_below(gram, path, state.F)
    status = "rounding" if end > lambda_min > 0 else "complete"
    if ended and len(path.breakpoints) and path.kkt_residual(path.breakpoints[-1]) <= 2 * _TOLERANCE:
        return path if end <= path.lambda_end else make(record.pieces(end), status=status)
    return make(record.pieces(max(floor, end), sound), status="rounding")


def _centred(K: Floats) -> tuple[Floats, Floats | float]:
    """K without a constant that outweighs what varies, and what was taken from each row of the kernel.

    Since sum(y alpha) = 0, the path of HKH, with H = I - 11'/m, is that of K, and f(x) has
    k(x) - mean of the rows of K where it had k(x).
    """
    mean = K.mean(axis=0)
    level = float(mean.mean())
    if level <= _LEVEL * (float(np.trace(K)) / len(K) - level):
        return K, 0.0
    K = K - mean
    K -= mean[:, None]
    K += level
    return (K + K.T) / 2, mean


def _blurred_below(gram: DenseGram, path: BinaryPath, F: Floats) -> float:
    """The lambda below which the rounding of F / lambda may exceed `_BLURRED`; 0 if F stays above it."""
    if len(path.breakpoints) == 0:
        return 0.0
    alpha = path.alpha(path.breakpoints[-1])
    bound = _EPS * float(alpha.sum()) * float(np.abs(gram.diagonal()).max()) / _BLURRED
    return bound if bound > np.abs(F).max() and bound < path.breakpoints[-1] else 0.0


def _follow(gram: DenseGram, state: Homotopy, record: _Record) -> tuple[int, bool]:
    """Record the path; returns how many pieces are sound for sure, and if it came to its end."""
    sound, often = 1, max(1, len(state.y) // _REFRESH)
    for count in range(1, _limit(state)):
        before, tolerance = record.count, _TOLERANCE * max(state.margin, np.abs(state.F).max())
        w = state.F - state.offset
        stretch = state.advance()
        clear = _clear(gram, state, stretch)
        record.add(stretch.until(clear), _free(gram, state.y, w, stretch.until(clear)))
        if clear < len(stretch.moves) or state.lost:
            return record.count, False
        if state.done:
            return sound, True
        if state.drift > tolerance:
            return max(before, 1), False
        if len(state.elbow) == 0:
            _jump(state)
        if count % often == 0:
            if state.refresh() > _TOLERANCE * max(state.margin, np.abs(state.F).max()):
                return sound, False
            sound = record.count
    raise ArithmeticError(f"the path did not end in {record.count} events; it came to {state.margin}")


def _clear(gram: DenseGram, state: Homotopy, stretch: Stretch) -> int:
    """How many events come before the rounding of F may exceed _ACCURACY of its largest value.

    The bound is one of sizes, which rounding does not touch: the path ends at the same event on any machine.
    """

    def blurred(alpha: Floats, F: Floats, margin: float) -> bool:
        return _EPS * alpha.sum() * largest > _ACCURACY * max(margin, np.abs(F).max())

    largest = gram.diagonal().max()
    if blurred(state.alpha, state.F, state.margin):
        alpha = stretch.start.copy()
        for event, offset in enumerate(stretch.offsets[:-1]):
            alpha[stretch.ids] = stretch.alphas[event]
            if blurred(alpha, gram.times(state.y * alpha) + offset, stretch.margins[event]):
                return event
    return len(stretch.moves)


def _jump(state: Homotopy) -> None:
    """With no point left on the margin the offset is free, up to the next that can take weight."""
    gaps = np.where(state.alpha < 0.5, state.y * state.F - state.margin, np.inf)
    point = np.argmin(gaps)
    jump = state.y[point] * gaps[point]
    state.F -= jump
    state.offset -= jump
    state.elbow = np.array([point])


def _free(gram: DenseGram, y: Floats, w: Floats, stretch: Stretch) -> list[tuple[int, Middle]]:
    """Events of which all weights rest at 0 or 1; w is K (y alpha) before the first."""
    alphas, moves = stretch.alphas[:-1], stretch.moves * stretch.margins[:-1, None]
    inner = (alphas > BOUND) & (alphas < 1 - BOUND)
    alpha, found = stretch.start.copy(), []
    for event in np.flatnonzero(~(stretch.inside & (inner | (np.abs(moves) > BOUND))).any(axis=1)):
        alpha[stretch.ids] = alphas[event]
        found.append((int(event), Middle.of(y, alpha, w + gram.times(y * (alpha - stretch.start)))))
    return found


class Middle(NamedTuple):
    """Extreme y_i (K y alpha)_i of the points at weight 1 and 0, which bound the offset where it is free.

    max(one_minus - lambda, lambda - zero_plus) <= offset <= min(lambda - one_plus, zero_minus - lambda)
    """

    one_plus: float
    one_minus: float
    zero_plus: float
    zero_minus: float

    @classmethod
    def of(cls, y: Floats, alpha: Floats, w: Floats) -> Middle:
        values, one, plus = y * w, alpha > 0.5, y > 0
        return cls(
            np.max(values[one & plus]),
            np.max(values[one & ~plus]),
            np.min(values[~one & plus], initial=np.inf),
            np.min(values[~one & ~plus], initial=np.inf),
        )

    def at(self, lam: float) -> float:
        low = max(self.one_minus - lam, lam - self.zero_plus)
        return (low + min(lam - self.one_plus, self.zero_minus - lam)) / 2

    def kinks(self) -> list[float]:
        return sorted({(self.one_minus + self.zero_plus) / 2, (self.one_plus + self.zero_minus) / 2})[::-1]


def _limit(state: Homotopy) -> int:
    """More stretches than a problem of this size ever takes."""
    return 1000 + 100 * len(state.y)


class _Record:
    """Collects stretches of events as the pieces of a path down to lambda = floor."""

    def __init__(self, floor: float, begin: tuple[float, float]):
        self.count, self._floor, self._begin, self._listed = 0, floor, begin, 0
        self._parts: list[Pieces] = []
        self._ends: tuple[Floats, Floats] = (np.zeros(0), np.zeros(0))  # of the last piece: lambda, offset

    def add(self, stretch: Stretch, free: list[tuple[int, Middle]]) -> None:
        knots, offsets = stretch.margins[:-1], stretch.offsets[:-1].copy()
        if len(knots) == 0:
            return
        inside, alphas, ids = stretch.inside, stretch.alphas[:-1], stretch.ids
        events, places, kinks, middles = np.arange(len(knots)), [], [], []
        self._ends = (stretch.margins[-2:], stretch.offsets[-2:])
        for event, middle in free:
            begin, end = stretch.margins[event], max(stretch.margins[event + 1], self._floor)
            inner = [kink for kink in middle.kinks() if end < kink < begin]
            offsets[event] = middle.at(begin)
            places += [event + 1] * len(inner)
            kinks += inner
            middles += [middle.at(kink) for kink in inner]
            if event == len(knots) - 1:
                self._ends = (np.array([begin, end]), np.array([0.0, middle.at(end)]))
        events = np.insert(events, places, np.array(places, dtype=np.int64) - 1)
        sizes, (rows, columns) = inside.sum(axis=1), np.nonzero(inside)
        first = self._listed + np.append(0, np.cumsum(sizes))[events]
        event, place = np.nonzero(inside != np.vstack([stretch.before, inside[:-1]]))
        weight = np.where(inside[event, place], -1, np.round(alphas[event, place])).astype(np.int64)
        changes = np.column_stack([self.count + np.searchsorted(events, event), ids[place], weight])
        knots, offsets = np.insert(knots, places, kinks), np.insert(offsets, places, middles)
        weights = ids[columns], alphas[inside], stretch.moves[inside]
        self._parts.append(Pieces(knots, offsets, first, sizes[events], *weights, changes))
        self.count, self._listed = self.count + len(events), self._listed + len(rows)

    def pieces(self, end: float, count: int | None = None) -> Pieces:
        """Everything so far, or the first pieces; the last knot is at `end` if the path comes there."""
        if not self._parts:
            return constant(*self._begin)
        lambdas, offsets = self._ends
        end = end if lambdas[-1] <= self._floor else lambdas[-1]
        every = Pieces(*map(np.concatenate, zip(*self._parts, strict=True)))
        every = every._replace(
            knots=np.append(every.knots, end),
            offsets=np.append(every.offsets, np.interp(-end, -lambdas, offsets)),
        )
        return every.until(self.count if count is None else count).merged()


def _start(gram: DenseGram, y: Floats) -> tuple[Floats, NDArray[np.int64], float]:
    """Weights for large lambda, points on the margin there, and the slope of the offset in lambda.

    All weights of the smaller class are 1. Those of the larger have the same sum, and the least norm of w:
    the end of the path of these solutions in that sum, from 0 on.
    """
    sign = 1.0 if np.count_nonzero(y > 0) >= np.count_nonzero(y < 0) else -1.0
    big, small = np.flatnonzero(y == sign), np.flatnonzero(y == -sign)
    alpha = np.ones(len(y))
    if len(big) == len(small):
        return alpha, big[[np.argmax(sign * gram.times(y)[big])]], 0.0
    linear = -gram.times((y == -sign) * 1.0)[big]
    first = int(np.argmin(linear))
    state = Homotopy(
        DenseGram(gram.block(big, big)), np.ones(len(big)), np.zeros(len(big)), 0.0, drop=0.0,
        inflow=1.0, linear=linear, offset=-linear[first], elbow=np.array([first]), left=float(len(small)),
        least=BOUND,
    )  # fmt: skip
    for count in range(1, _limit(state)):
        state.advance()
        if state.done or state.lost:
            break
        if len(state.elbow) == 0:
            _jump(state)
        if count % max(1, len(big) // _REFRESH) == 0:
            state.refresh()
    if not state.done:
        raise ArithmeticError(
            "rounding hides the solution for large lambda; scale K, or remove near-duplicates"
        )
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
    check_scale(K, "K")
    check_semidefinite(K)
    return K, y
