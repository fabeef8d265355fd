"""Regularization path of the support vector machine with bias.

With lambda = 1/C and F = lambda f, the dual weights of the SVM are piecewise linear in
lambda, and so is F [Hastie2004]_. `svm_path` starts at the largest lambda at which
anything changes, and follows the solutions to smaller lambda.

References
----------
.. [Hastie2004] T. Hastie, S. Rosset, R. Tibshirani, J. Zhu, "The entire regularization
   path for the support vector machine", Journal of Machine Learning Research 5, 2004.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from preflearn.core.gram import check_gram, fixed
from preflearn.core.kernels import check_definite
from preflearn.core.validation import Floats, check_array, check_labels, check_real
from preflearn.path.follower import PathFollower, WeightPath, constant_path
from preflearn.path.graph import BOUND_TOL, PairGraph, check_entries
from preflearn.path.regularization import RegularizationPath, Selection

# a smaller first breakpoint, relative to the largest entry of K, is a rounding error
_MIN_BREAKPOINT = 1e-12
# A constant in K is removed if it exceeds the remainder by this factor. A remainder
# below the second number, relative to the constant, consists of rounding errors.
_MAX_CONSTANT = 10.0
_CONSTANT_ROUNDING = 2e-15
# allowed rounding errors of the entries of K, relative to the 1-norm of K
_INDEFINITE_TOL = 1e-10
# Weights that differ from 0 or 1 by less, relative to their sum, count as equal to it.
_WEIGHT_ROUNDING = 1e-14


class BinaryPath(RegularizationPath):
    """Solutions of the SVM with bias for all lambda, as returned by `svm_path`."""

    def __init__(
        self,
        graph: PairGraph,
        path: WeightPath,
        status: str,
        y: Floats,
        centre: Floats | float,
    ):
        super().__init__(graph, path, status, np.arange(len(y)))
        self._K = graph.K
        self._y = y
        self._centre = centre  # row means that were removed from K; subtracted from each kernel row

    def alpha(self, lam: float) -> Floats:
        """Return the dual weights at lambda, shape (m,), each in [0, 1].

        The dual weights of libsvm are C times as large.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        return self._weights(self._check_lambda(lam))

    def bias(self, lam: float) -> float:
        """Return b of f(x) = w·x + b; if an interval is optimal, its midpoint.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        lam = self._check_lambda(lam)
        alpha = self._weights(lam)
        centre = np.sum(self._centre * self._y * alpha)
        return float(self._offset(lam, alpha) - centre) / lam

    def decision_function(self, lam: float, K_new: ArrayLike) -> Floats:
        """Return f(x) for new points at lambda, shape (n,).

        Parameters
        ----------
        lam : float
            Value of lambda.
        K_new : array-like of shape (n, m)
            Kernel matrix between new points (rows) and training points.

        Raises
        ------
        ValueError
            If lambda is not valid (as in `alpha`), or kernel values are not valid.
        """
        return self._decide(self._check_lambda(lam), self._check_kernel(K_new))

    def _decide(self, lam: float, K_new: Floats) -> Floats:
        alpha = self._weights(lam)
        return (K_new @ (self._y * alpha) + self._offset(lam, alpha)) / lam

    def kkt_residual(self, lam: float) -> float:
        """Return the largest violation of the optimality conditions.

        It is relative to max(1, max |f|).

        The conditions are y f = 1 for weights inside (0, 1), y f >= 1 for weights 0, y
        f <= 1 for weights 1, and sum(y alpha) = 0.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        lam = self._check_lambda(lam)
        alpha = self._weights(lam)
        f = self._decide(lam, self._K)
        excess = self._y * f - 1
        low = alpha <= BOUND_TOL
        high = alpha >= 1 - BOUND_TOL
        wrong = np.select([low, high], [-excess, excess], np.abs(excess))
        worst = max(0.0, wrong.max(), abs(self._y @ alpha))
        return float(worst / max(1.0, np.abs(f).max()))

    def select(
        self,
        K_valid: ArrayLike,
        y_valid: ArrayLike,
    ) -> Selection:
        """Choose the lambda with the lowest validation loss.

        The loss is the zero-one loss of sign(f), with +1 at f = 0. It is computed for
        all lambda up to the first breakpoint: since F is piecewise linear, the
        values of lambda at which predictions change can be computed. ``losses[i]``
        holds from ``lambdas[i]`` down to ``lambdas[i + 1]``. The chosen lambda is the
        geometric mean of the ends of the widest interval of lowest loss.

        Parameters
        ----------
        K_valid : array-like of shape (n, m)
            Kernel matrix between validation points (rows) and training points.
        y_valid : array-like of shape (n,)
            Labels -1 or +1.

        Raises
        ------
        ValueError
            If kernel values or labels are not valid, or the path has no breakpoint.

        Examples
        --------
        >>> from preflearn.path import svm_path
        >>> x, y = np.array([-3.0, -1.0, 1.0, 2.0]), [-1, 1, -1, 1]
        >>> path = svm_path(np.outer(x, x), y)
        >>> path.select(np.outer([-2.0, 4.0], x), [-1, 1]).loss
        0.0
        """
        K_valid = self._check_kernel(K_valid)
        self._check_breakpoints()
        y = check_labels(y_valid, len(K_valid), allow=(-1, 1))
        n_wrong = 0
        places = []
        changes = []
        for block, (lams, F) in enumerate(self._score_blocks(K_valid)):
            # points on the boundary, up to rounding errors
            F[np.abs(F) <= 1e-12 * np.abs(F).max()] = 0.0
            wrong = (F >= 0) != (y > 0)[:, None]
            if block == 0:
                n_wrong = int(wrong[:, 0].sum())
            change = wrong[:, 1:].astype(int) - wrong[:, :-1]
            row, piece = np.nonzero(change)
            before = F[row, piece]
            after = F[row, piece + 1]
            upper = lams[piece]
            lower = lams[piece + 1]
            crossed = upper - (upper - lower) * before / (before - after)
            places.append(
                np.clip(crossed, lower, upper)
            )  # rounding errors may exceed the ends
            changes.append(change[row, piece])
        return self._select_by_count(n_wrong, places, changes, len(y))

    def _offsets(self, knots: Floats, coefs: Floats) -> Floats:
        return np.array(
            [
                self._offset(lam, np.abs(signed))
                for lam, signed in zip(knots.tolist(), coefs, strict=True)
            ]
        )

    def _coefficient_blocks(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield blocks of knots and y alpha there.

        Knots where the slope of the bias changes are included.
        """
        for lams, coefs in super()._coefficient_blocks():
            coefs = coefs[:, :-1]
            middles = np.abs(coefs[1:] + coefs[:-1]) / 2
            inside = np.minimum(middles, 1 - middles).max(axis=1) > BOUND_TOL
            for piece in np.flatnonzero(~inside)[::-1]:
                one_plus, one_minus, zero_plus, zero_minus = _extreme_values(
                    self._y, middles[piece], self._K @ coefs[piece]
                )
                bends = {(one_minus + zero_plus) / 2, (one_plus + zero_minus) / 2}
                bends = [
                    bend
                    for bend in sorted(bends, reverse=True)
                    if lams[piece + 1] < bend < lams[piece]
                ]
                lams = np.insert(lams, piece + 1, bends)
                coefs = np.insert(coefs, [piece + 1] * len(bends), coefs[piece], axis=0)
            yield lams, coefs

    def _weights_within(self, k: int, lam: float) -> Floats:
        """Return the weights at lambda.

        The part of a point in B'alpha is y alpha, which is linear between two knots.
        """
        knots = self._path.segments[k].knots
        coefs = self._segment_coefficients(k)
        # the last piece that begins at or above lambda
        piece = int(np.searchsorted(-knots, -lam, side="right"))
        piece = min(piece, len(knots) - 1) - 1
        upper = coefs[piece, :-1]
        fraction = (knots[piece] - lam) / (knots[piece] - knots[piece + 1])
        alpha = np.abs(upper + fraction * (coefs[piece + 1, :-1] - upper))
        whole = np.rint(alpha)
        # rounded to 0 or 1, so that none is above 1
        return np.where(np.abs(alpha - whole) <= BOUND_TOL, whole, alpha)

    def _offset(self, lam: float, alpha: Floats) -> float:
        """Return lambda times the bias of f, without the constant that was removed.

        A point with a weight inside (0, 1) is on the margin, which determines the bias.
        """
        last = self._path.last_knot
        if lam < last:  # f is constant below the last knot
            return self._offset(last, self._weights(last)) * (lam / last)
        signed = self._y * alpha
        inner = np.minimum(alpha, 1 - alpha)
        pin = int(np.argmax(inner))
        if inner[pin] > BOUND_TOL:
            return float(lam * self._y[pin] - self._K[pin] @ signed)
        one_plus, one_minus, zero_plus, zero_minus = _extreme_values(
            self._y, alpha, self._K @ signed
        )
        low = max(one_minus - lam, lam - zero_plus)
        return (low + min(lam - one_plus, zero_minus - lam)) / 2

    def _check_kernel(self, K_new: ArrayLike) -> Floats:
        """Check a kernel matrix of new points, and subtract the removed constant."""
        return check_array(K_new, "K of new points", ("n", len(self._y))) - self._centre


def _extreme_values(
    y: Floats, alpha: Floats, w: Floats
) -> tuple[float, float, float, float]:
    """Return the extremes of y_i (K y alpha)_i over points at weights 1 and 0.

    They bound the offset if no point is on the margin:

    max(one_minus - lambda, lambda - zero_plus) <= offset <= min(lambda - one_plus,
    zero_minus - lambda)
    """
    values = y * w
    one = alpha > 0.5
    plus = y > 0
    return (
        np.max(values[one & plus]),
        np.max(values[one & ~plus]),
        np.min(values[~one & plus], initial=np.inf),
        np.min(values[~one & ~plus], initial=np.inf),
    )


def svm_path(K: ArrayLike, y: ArrayLike, *, lambda_min: float = 0.0) -> BinaryPath:
    """Compute all solutions of the SVM with bias, for every C = 1/lambda.

    Use it to compare all values of C at once, for the cost of ten to twenty fits. If C
    is known, fit an SVM instead.

    For each lambda, it solves the problem of [Hastie2004]_::

        minimize sum_i max(0, 1 - y_i f(x_i)) + lambda/2 |w|^2,    f(x) = w·x + b,
        w·x = 1/lambda sum_i alpha_i y_i K(x, x_i),    0 <= alpha_i <= 1,    sum_i alpha_i y_i = 0.

    Parameters
    ----------
    K : array-like of shape (m, m)
        Kernel matrix of the points, symmetric and positive semi-definite. It is stored
        without a copy, unless it is asymmetric due to rounding errors or dominated by a
        constant.
    y : array-like of shape (m,)
        Labels -1 and +1; both must occur.
    lambda_min : float
        Smallest lambda of the path, which never goes below 1e-9 of the first breakpoint
        while points are inside the margin. If no point is inside the margin any more,
        as for separable classes, f does not change, and with lambda_min = 0 the path is
        valid for all lambda > 0. If no events are left, the path ends where a bound on
        the rounding errors of F exceeds 2e-7 of the largest F, or of lambda if that is
        larger. (The bound, unlike the errors, does not depend on the computer.) If this
        happens above a positive lambda_min, there is a ConvergenceWarning.

        The path also ends, with a ConvergenceWarning, in three other cases:

        - At an event, that bound exceeds 1e-9 of the same quantities.
        - F, which is recomputed from time to time, violates the optimality conditions
          by more than the bound and by more than 1e-8 of its largest value.
        - Rounding errors leave open which points stay on the margin.

    Returns
    -------
    RegularizationPath

    Raises
    ------
    ValueError
        If K is not square, finite, and symmetric, or has an eigenvalue below -1e-8 of
        its 1-norm. If y has labels other than -1 and 1, or only one of them. If
        lambda_min is negative.
    ArithmeticError
        If rounding errors prevent the next step; pass a larger lambda_min.

    Notes
    -----
    A constant added to K changes only the bias. If a constant dominates K, it is
    removed first.

    The path takes as long as ten to twenty fits of libsvm with a moderate C, see
    `benchmarks/path.md`.

    Examples
    --------
    >>> path = svm_path([[1.0, -1.0], [-1.0, 1.0]], [1, -1])
    >>> path.breakpoints.tolist(), path.alpha(1.0).tolist(), path.bias(1.0)
    ([2.0], [0.5, 0.5], 0.0)
    """
    K = check_gram(K)
    y = check_labels(y, len(K), allow=(-1, 1)).astype(np.float64)
    if np.all(y == y[0]):
        raise ValueError(
            f"all {len(y)} labels in y are {y[0]:+.0f}; expected both -1 and +1"
        )
    check_entries(max(float(K.max()), -float(K.min())), "the largest entry of K")
    check_definite(K, _INDEFINITE_TOL * float(linalg.norm(K, 1, check_finite=False)))
    lambda_min = check_real(
        lambda_min, "lambda_min", "a finite number of at least 0", least=0.0
    )
    return trusted_path(K, y, lambda_min)._with_warning("svm_path")


def trusted_path(K: Floats, y: Floats, lambda_min: float) -> BinaryPath:
    """Compute `svm_path` for K and labels that were already checked.

    Instead of a warning, the status of the path is "rounding".
    """
    K, centre = _without_constant(K)
    graph = _compare_with_bias(K, y)
    sign = 1.0 if np.count_nonzero(y > 0) >= np.count_nonzero(y < 0) else -1.0
    follower, pin = _start_at_large_lambda(graph, y, sign)
    # The pinned point is on the margin if the free score is rest - sign lambda.
    g = follower.g[:-1]
    rest = follower.g[pin]
    lam = float(np.max(-sign * (g[y == -sign] - rest))) / 2
    if lam <= max(lambda_min, _MIN_BREAKPOINT * graph.largest):
        weights = constant_path(follower.alpha, max(lambda_min, lam))
        status = "complete"
    else:
        follower.g[-1] = rest - sign * lam
        weights, status = follower.follow(lam, lambda_min)
    return BinaryPath(graph, weights, status, y, centre)


def _compare_with_bias(K: Floats, y: Floats) -> PairGraph:
    """Return the points as pairs with an additional item of score minus the bias.

    A point is the better item of its pair if y = +1.
    """
    m = len(K)
    diagonal = np.diag(K)
    points = np.arange(m)
    first = np.where(y > 0, points, m).astype(np.uint32)
    second = np.where(y < 0, points, m).astype(np.uint32)
    largest = float(np.abs(diagonal).max())
    tau = float(np.mean(diagonal)) or 1.0
    return PairGraph(fixed(K), m + 1, largest, first, second, np.ones(m), tau)


def _start_at_large_lambda(
    graph: PairGraph, y: Floats, sign: float
) -> tuple[PathFollower, int]:
    """Return the state at large lambda, and a point of the larger class on the margin.

    `sign` is the label of the larger class.

    All weights of the smaller class are 1. The weights of the larger class have the
    same sum, and minimize the norm of w. They are found by a path in their sum, from 0
    to this value.
    """
    larger = np.flatnonzero(y == sign)
    total = int(np.count_nonzero(y == -sign))
    if len(larger) == total:
        follower = PathFollower(graph, np.ones(len(y)))
        pin = int(larger[np.argmax(sign * follower.g[larger])])
        follower.set_margin(np.array([pin]))
        return follower, pin
    follower = PathFollower(graph, (y == -sign) * 1.0)
    follower.grow_sum(larger, total, sign)
    alpha = follower.alpha
    on_margin = follower.on_margin
    inner = np.minimum(alpha, 1 - alpha)
    pin = int(np.argmax(inner))
    at_bound = inner <= max(BOUND_TOL, _WEIGHT_ROUNDING * total)
    alpha[at_bound] = np.round(alpha[at_bound])
    if at_bound[pin]:
        gain = np.where(alpha[larger] == 0, sign * follower.g[larger], np.inf)
        pin = int(larger[np.argmin(gain)])
        on_margin = np.array([pin])
    follower.set_margin(on_margin)
    return follower, pin


def _without_constant(K: Floats) -> tuple[Floats, Floats | float]:
    """Remove a dominating constant from K; also return the row means to subtract.

    Since sum(y alpha) = 0, HKH with H = I - 11'/m has the same path as K. In f(x), the
    vector k(x) is replaced by k(x) minus the mean of the rows of K.
    """
    mean = K.mean(axis=0)
    level = float(mean.mean())
    if level <= _MAX_CONSTANT * (float(np.trace(K)) / len(K) - level):
        return K, 0.0
    K = K - mean
    K -= mean[:, None]
    K += level
    if np.abs(K).max() <= _CONSTANT_ROUNDING * level:
        return np.zeros_like(K), mean
    return (K + K.T) / 2, mean
