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
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from preflearn.checks import Floats, check_labels, check_real
from preflearn.ground.gram import check_gram, check_semidefinite, fixed
from preflearn.path.binary_path import BinaryPath
from preflearn.path.graph import BOUND, Graph, check_entries
from preflearn.path.walk import Walk, still

_NOTHING = 1e-12  # of the largest entry of K: a first breakpoint that is rounding
_INACCURATE = 1e-4  # a duality gap, in units of the objective, that is worth a warning
_LEVEL = 10.0  # a constant in K is taken out if it is so much larger than the rest
_ROUNDED = 2e-15  # of that constant: a rest which is its rounding, and no Gram matrix


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
    graph = _against_null(K, y)
    sign = 1.0 if np.count_nonzero(y > 0) >= np.count_nonzero(y < 0) else -1.0
    walk, pin = _at_large_lambda(graph, y, sign)
    g, rest = walk.g[:-1], walk.g[pin]  # the pin is on the margin if the free score is rest - sign lambda
    lam = float(np.max(-sign * (g[y == -sign] - rest))) / 2
    if lam <= max(lambda_min, _NOTHING * graph.largest):
        course, status = still(walk.alpha, max(lambda_min, lam)), "complete"
    else:
        walk.g[-1] = rest - sign * lam
        course, status = walk.down(lam, lambda_min)
    return BinaryPath(graph, course, status, y, centre)


def _against_null(K: Floats, y: Floats) -> Graph:
    """The points as pairs with one more item, on the better side if y = +1; its score is minus the bias."""
    m, diagonal = len(K), np.diag(K)
    bordered = np.zeros((m + 1, m + 1))
    bordered[:m, :m], bordered[m, m] = K, float(np.mean(diagonal)) or 1.0
    points, null = np.arange(m), np.full(m, m)
    first, second = (np.where(y * side > 0, points, null).astype(np.uint32) for side in (1, -1))
    largest = float(np.abs(diagonal).max())
    return Graph(fixed(bordered), largest, first, second, np.ones(m), float(bordered[m, m]))


def _at_large_lambda(graph: Graph, y: Floats, sign: float) -> tuple[Walk, int]:
    """The weights for large lambda, and a point of the larger class, that of this sign, on the margin there.

    All weights of the smaller class are 1. Those of the larger have the same sum, and the least norm of w:
    the end of the path of these solutions in that sum, from 0 on.
    """
    big, few = np.flatnonzero(y == sign), int(np.count_nonzero(y == -sign))
    if len(big) == few:
        walk = Walk(graph, np.ones(len(y)))
        pin = int(big[np.argmax(sign * walk.g[big])])
        walk.elbow = np.array([pin])
        return walk, pin
    walk = Walk(graph, (y == -sign) * 1.0)
    walk.grow(big, few, sign)
    share = np.minimum(walk.alpha, 1 - walk.alpha)
    elbow, pin = walk.elbow, int(np.argmax(share))
    if share[pin] <= BOUND:
        pin = int(big[np.argmin(np.where(walk.alpha[big] < 0.5, sign * walk.g[big], np.inf))])
        elbow = np.array([pin])
    walk.alpha[share <= BOUND] = np.round(walk.alpha[share <= BOUND])
    walk.elbow = elbow
    return walk, pin


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
    if np.abs(K).max() <= _ROUNDED * level:
        return np.zeros_like(K), mean
    return (K + K.T) / 2, mean


def _check_problem(K: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    K = check_gram(K)
    y = check_labels(y, len(K), allow=(-1, 1)).astype(np.float64)
    if np.all(y == y[0]):
        raise ValueError(f"all {len(y)} labels are {y[0]:+.0f}; expected both -1 and +1")
    check_entries(max(float(K.max()), -float(K.min())), "the largest entry of K")
    check_semidefinite(K)
    return K, y
