"""The entire regularization path of the support vector machine with bias, for every C
at once.

With lambda = 1/C and F = lambda f, the dual weights of the machine are piecewise linear
in lambda, and so is F [Hastie2004]_. `svm_path` starts at the largest lambda where
anything changes and follows them down.

References
----------
.. [Hastie2004] T. Hastie, S. Rosset, R. Tibshirani, J. Zhu, "The entire regularization
   path for the support vector machine", Journal of Machine Learning Research 5, 2004.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from preflearn.core.gram import check_gram, fixed
from preflearn.core.kernels import check_definite
from preflearn.core.validation import Floats, Ids, check_array, check_labels, check_real
from preflearn.path.graph import BOUND, Graph, check_entries, retrace
from preflearn.path.regularization import RegularizationPath, Selection, steps, widest
from preflearn.path.walk import Course, Walk, still
from preflearn.solvers.newton import warn_about_gap

_NOTHING = 1e-12  # of the largest entry of K: a first breakpoint that is rounding
_INACCURATE = 1e-4  # a duality gap, in units of the objective, that is worth a warning
_LEVEL = 10.0  # a constant in K is taken out if it is so much larger than the rest
# of what no eigenvalue of K exceeds: the rounding of its entries that is let pass
_SLACK = 1e-10
# of the sum to which weights grew: so near to 0 or 1 they are there, but for its
# rounding
_GROWN = 1e-14
_ROUNDED = 2e-15  # of that constant: a rest which is its rounding, and no Gram matrix


class BinaryPath(RegularizationPath):
    """The solutions of the machine with bias for all lambda, as made by `svm_path`."""

    def __init__(
        self,
        graph: Graph,
        course: Course,
        status: str,
        y: Floats,
        centre: Floats | float,
    ):
        super().__init__(graph, course, status, np.arange(len(y)))
        self._K = graph.K
        self._y = y
        self._centre = centre  # taken from the rows of each kernel; K is without it

    def alpha(self, lam: float) -> Floats:
        """The dual weights at lambda, shape (m,), each in [0, 1]; those of libsvm are C
        times as large.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        return self._weights(self._check(lam))

    def bias(self, lam: float) -> float:
        """b of f(x) = w·x + b; where an interval of values is optimal, its middle.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        lam, alpha = self._check(lam), self.alpha(lam)
        return (
            float(self._offset(lam, alpha) - np.sum(self._centre * self._y * alpha))
            / lam
        )

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
        alpha = self._weights(lam)
        return (K_new @ (self._y * alpha) + self._offset(lam, alpha)) / lam

    def kkt_residual(self, lam: float) -> float:
        """The largest violation of the optimality conditions at lambda, over max(1, max
        |f|).

        It covers y f = 1 at weights inside (0, 1), y f >= 1 at 0, y f <= 1 at 1, and
        sum(y alpha) = 0.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        alpha = self.alpha(lam)
        f = self._decide(self._check(lam), self._K)
        excess = self._y * f - 1
        low = alpha <= BOUND
        high = alpha >= 1 - BOUND
        wrong = np.where(low, -excess, np.where(high, excess, np.abs(excess)))
        return float(
            max(0.0, wrong.max(), abs(self._y @ alpha)) / max(1.0, np.abs(f).max())
        )

    def _values(self, lam: float) -> tuple[float, float]:
        alpha = self._weights(lam)
        w = self._K @ (self._y * alpha) / lam
        bias = self._offset(lam, alpha) / lam
        half = float((self._y * alpha) @ w) / 2
        primal = half + float(np.maximum(0.0, 1 - self._y * (w + bias)).sum())
        return primal, float(alpha.sum()) - half - (1 + abs(bias)) * abs(
            float(self._y @ alpha)
        )

    def select(
        self,
        K_valid: ArrayLike,
        y_valid: ArrayLike,
        loss: Callable[[NDArray, Floats], float] | None = None,
    ) -> Selection:
        """The lambda with the least validation loss.

        Without `loss` it is the zero-one loss of sign(f), with +1 at f = 0, as a
        function of every lambda up to the first breakpoint: since F is piecewise
        linear, the places where predictions change are computed. Then ``losses[i]``
        holds from ``lambdas[i]`` down to ``lambdas[i + 1]``, and the best lambda is the
        geometric middle of the widest of the best intervals. With `loss`, it is its
        least value over the breakpoints, at the largest such lambda.

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
            truth = np.asarray(y_valid)
            return self._at_breakpoints(K_valid, lambda f: loss(truth, f))
        y = check_labels(y_valid, len(K_valid), allow=(-1, 1))
        wrong = 0
        places = []
        changes = []
        for block, (lams, F) in enumerate(self._blocks(K_valid)):
            # on the boundary, but for rounding
            F[np.abs(F) <= 1e-12 * np.abs(F).max()] = 0.0
            missed = (F >= 0) != (y > 0)[:, None]
            if block == 0:
                wrong = int(missed[:, 0].sum())
            change = missed[:, 1:].astype(int) - missed[:, :-1]
            row, piece = np.nonzero(change)
            before = F[row, piece]
            after = F[row, piece + 1]
            crossed = lams[piece] - (lams[piece] - lams[piece + 1]) * before / (
                before - after
            )
            # rounding may pass the end
            places.append(np.clip(crossed, lams[piece + 1], lams[piece]))
            changes.append(change[row, piece])
        lambdas, counts = steps(wrong, float(self.breakpoints[0]), places, changes)
        return widest(lambdas, counts / len(y), self._end(lambdas))

    def _offsets(self, knots: Floats, nets: Floats) -> Floats:
        alphas = np.abs(nets)
        share = np.minimum(alphas, 1 - alphas)
        pins = share.argmax(axis=1)
        rows = np.arange(len(knots))
        offsets = knots * self._y[pins] - np.einsum("km,km->k", self._K[pins], nets)
        for k in np.flatnonzero(
            (share[rows, pins] <= BOUND) | (knots < self._course.knots[-1])
        ):
            offsets[k] = self._offset(knots[k], alphas[k])
        return offsets

    def _runs(self) -> Iterator[tuple[Floats, Floats]]:
        """Those of the graph, with knots where the middle of a free offset bends; y
        alpha of the points."""
        for lams, nets in super()._runs():
            nets = nets[:, :-1]
            start = np.abs(nets[0])
            inner = (nets != nets[0]).any(axis=0) | (
                np.minimum(start, 1 - start) > BOUND
            )
            middles = np.abs(nets[1:, inner] + nets[:-1, inner]) / 2
            free = np.flatnonzero(
                np.minimum(middles, 1 - middles).max(axis=1, initial=0.0) <= BOUND
            )
            for piece in free[::-1]:
                middle = np.abs(nets[piece + 1] + nets[piece]) / 2
                one_plus, one_minus, zero_plus, zero_minus = _ends(
                    self._y, middle, self._K @ nets[piece]
                )
                kinks = {(one_minus + zero_plus) / 2, (one_plus + zero_minus) / 2}
                kinks = [
                    k
                    for k in sorted(kinks, reverse=True)
                    if lams[piece + 1] < k < lams[piece]
                ]
                lams = np.insert(lams, piece + 1, kinks)
                nets = np.insert(nets, [piece + 1] * len(kinks), nets[piece], axis=0)
            yield lams, nets

    def _carry(
        self, stretch: int, alpha: Floats, knots: Floats, changes: Ids, nets: Floats
    ) -> None:
        """By the weights that were noted."""
        elbow, size = self._elbow(stretch, changes)
        noted = self._course.noted[slice(*self._course.marks[stretch : stretch + 2, 2])]
        retrace(self._graph, elbow, size, changes, noted, nets)

    def _weights_within(self, stretch: int, lam: float) -> Floats:
        """A point's part of B'alpha is y alpha, which is linear between two knots."""
        knots, nets = self._replay(stretch)
        piece = (
            min(int(np.searchsorted(-knots, -lam, side="right")), len(knots) - 1) - 1
        )
        share = (knots[piece] - lam) / (knots[piece] - knots[piece + 1])
        alpha = np.abs(
            nets[piece, :-1] + share * (nets[piece + 1, :-1] - nets[piece, :-1])
        )
        whole = np.rint(alpha)
        # so none is above 1
        return np.where(np.abs(alpha - whole) <= BOUND, whole, alpha)

    def _offset(self, lam: float, alpha: Floats) -> float:
        """lambda times the bias of f without centre: a point of weight inside (0, 1) is
        on the margin."""
        last = self._course.knots[-1]
        if lam < last:  # f stays
            return self._offset(last, self._weights(last)) * (lam / last)
        signed = self._y * alpha
        share = np.minimum(alpha, 1 - alpha)
        pin = int(np.argmax(share))
        if share[pin] > BOUND:
            return float(lam * self._y[pin] - self._K[pin] @ signed)
        one_plus, one_minus, zero_plus, zero_minus = _ends(
            self._y, alpha, self._K @ signed
        )
        low = max(one_minus - lam, lam - zero_plus)
        return (low + min(lam - one_plus, zero_minus - lam)) / 2

    def _check_kernel(self, K_new: ArrayLike) -> Floats:
        """Values of a kernel between new points and those of the fit, less what K is
        without."""
        return check_array(K_new, "K of new points", ("n", len(self._y))) - self._centre


def _ends(y: Floats, alpha: Floats, w: Floats) -> tuple[float, float, float, float]:
    """Extreme y_i (K y alpha)_i of the points at weight 1 and 0, which bound the offset
    where it is free.

    max(one_minus - lambda, lambda - zero_plus) <= offset <= min(lambda - one_plus,
    zero_minus - lambda)
    """
    values = y * w
    one = alpha > 0.5
    plus = y > 0
    one_plus = np.max(values[one & plus])
    one_minus = np.max(values[one & ~plus])
    zero_plus, zero_minus = (
        np.min(values[~one & s], initial=np.inf) for s in (plus, ~plus)
    )
    return one_plus, one_minus, zero_plus, zero_minus


def svm_path(K: ArrayLike, y: ArrayLike, *, lambda_min: float = 0.0) -> BinaryPath:
    """All solutions of the support vector machine with bias, for every C = 1/lambda.

    Solves, for each lambda, the problem of [Hastie2004]_::

        minimise sum_i max(0, 1 - y_i f(x_i)) + lambda/2 |w|^2,    f(x) = w·x + b,
        w·x = 1/lambda sum_i alpha_i y_i K(x, x_i),    0 <= alpha_i <= 1,    sum_i alpha_i y_i = 0.

    Parameters
    ----------
    K : array-like of shape (m, m)
        Kernel values of the points: symmetric, positive semi-definite. Kept, not copied
        (unless rounding makes it asymmetric, or a constant dominates it).
    y : array-like of shape (m,)
        Labels -1 and +1, both.
    lambda_min : float
        Where to stop, but not below 1e-9 of the first breakpoint, unless no point is
        inside the margin any more, as where the classes are separable: then f stays,
        and at 0 the path has no end. Where no event is left, it ends where a bound on
        the rounding of F (not the rounding itself, which differs between machines)
        exceeds 2e-7 of the largest F, or of lambda if that is larger; above a positive
        lambda_min this gives a ConvergenceWarning.

        With one it also ends: at the first event where that bound exceeds 1e-9 of
        these; where F, computed anew from time to time, violates the optimality
        conditions by more than 1e-8 of its largest value, and more than that bound
        explains; or where rounding leaves open which points stay on the margin.

    Returns
    -------
    RegularizationPath

    Raises
    ------
    ValueError
        On a K that is not square, finite and symmetric, or has an eigenvalue below
        -1e-8 of its 1-norm; labels other than -1 and 1, one class only, or a negative
        lambda_min.
    ArithmeticError
        If rounding keeps the path from going on; stop at a larger lambda_min.

    Notes
    -----
    A constant added to K changes the bias only. Where it dominates K, it is taken out
    first.

    The path costs some ten to twenty fits of libsvm at a moderate C
    (`benchmarks/path.md` has the numbers): for one known C, fit; for the best of many,
    or of all, follow the path.

    Examples
    --------
    >>> path = svm_path([[1.0, -1.0], [-1.0, 1.0]], [1, -1])
    >>> path.breakpoints.tolist(), path.alpha(1.0).tolist(), path.bias(1.0)
    ([2.0], [0.5, 0.5], 0.0)
    """
    K, y = _check_problem(K, y)
    lambda_min = check_real(
        lambda_min, "lambda_min", "a finite number of at least 0", least=0.0
    )
    path = trusted_path(K, y, lambda_min)._warned("svm_path")
    if lambda_min > 0:
        gap = path.duality_gap(max(lambda_min, path.lambda_end))
        warn_about_gap(
            "svm_path", gap, _INACCURATE, "raise lambda_min, and see duality_gap"
        )
    return path


def trusted_path(K: Floats, y: Floats, lambda_min: float) -> BinaryPath:
    """`svm_path` of a K and labels that need no check; its status is "rounding" where
    `svm_path` warns."""
    K, centre = _centred(K)
    graph = _against_null(K, y)
    sign = 1.0 if np.count_nonzero(y > 0) >= np.count_nonzero(y < 0) else -1.0
    walk, pin = _at_large_lambda(graph, y, sign)
    # the pin is on the margin if the free score is rest - sign lambda
    g = walk.g[:-1]
    rest = walk.g[pin]
    lam = float(np.max(-sign * (g[y == -sign] - rest))) / 2
    if lam <= max(lambda_min, _NOTHING * graph.largest):
        course = still(walk.alpha, max(lambda_min, lam))
        status = "complete"
    else:
        walk.g[-1] = rest - sign * lam
        course, status = walk.down(lam, lambda_min)
    return BinaryPath(graph, course, status, y, centre)


def _against_null(K: Floats, y: Floats) -> Graph:
    """The points as pairs with one more item, on the better side if y = +1; its score
    is minus the bias."""
    m = len(K)
    diagonal = np.diag(K)
    points = np.arange(m)
    null = np.full(m, m)
    first, second = (
        np.where(y * side > 0, points, null).astype(np.uint32) for side in (1, -1)
    )
    largest = float(np.abs(diagonal).max())
    tau = float(np.mean(diagonal)) or 1.0
    return Graph(fixed(K), m + 1, largest, first, second, np.ones(m), tau)


def _at_large_lambda(graph: Graph, y: Floats, sign: float) -> tuple[Walk, int]:
    """The weights for large lambda, and a point of the larger class, that of this sign,
    on the margin there.

    All weights of the smaller class are 1. Those of the larger have the same sum, and
    the least norm of w: the end of the path of these solutions in that sum, from 0 on.
    """
    big = np.flatnonzero(y == sign)
    few = int(np.count_nonzero(y == -sign))
    if len(big) == few:
        walk = Walk(graph, np.ones(len(y)))
        pin = int(big[np.argmax(sign * walk.g[big])])
        walk.rest(np.array([pin]))
        return walk, pin
    walk = Walk(graph, (y == -sign) * 1.0)
    walk.grow(big, few, sign)
    share = np.minimum(walk.alpha, 1 - walk.alpha)
    elbow = walk.elbow
    pin = int(np.argmax(share))
    whole = share <= max(BOUND, _GROWN * few)
    walk.alpha[whole] = np.round(walk.alpha[whole])
    if whole[pin]:
        pin = int(
            big[np.argmin(np.where(walk.alpha[big] == 0, sign * walk.g[big], np.inf))]
        )
        elbow = np.array([pin])
    walk.rest(elbow)
    return walk, pin


def _centred(K: Floats) -> tuple[Floats, Floats | float]:
    """K without a constant that outweighs what varies, and what was taken from each row
    of the kernel.

    Since sum(y alpha) = 0, the path of HKH, with H = I - 11'/m, is that of K, and f(x)
    has k(x) - mean of the rows of K where it had k(x).
    """
    mean = K.mean(axis=0)
    level = float(mean.mean())
    if level <= _LEVEL * (float(np.trace(K)) / len(K) - level):
        return K, 0.0
    K = K - mean
    K -= mean[:, None]
    K += level
    if np.abs(K).max() <= _ROUNDED * level:
        return np.zeros_like(K), mean
    return (K + K.T) / 2, mean


def _check_problem(K: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    K = check_gram(K)
    y = check_labels(y, len(K), allow=(-1, 1)).astype(np.float64)
    if np.all(y == y[0]):
        raise ValueError(
            f"all {len(y)} labels are {y[0]:+.0f}; expected both -1 and +1"
        )
    check_entries(max(float(K.max()), -float(K.min())), "the largest entry of K")
    check_definite(K, _SLACK * float(linalg.norm(K, 1, check_finite=False)))
    return K, y
