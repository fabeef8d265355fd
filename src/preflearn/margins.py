"""Maximum-margin comparison functions for separable data: section 3.1 of [Venuto2017]_.

With s = min w·(y_i d_i) over preferences and t = max |w·d_j| over ties, the linear program maximises
s / t, and the quadratic program (s - t) / |w|: the distance between the hulls of preferences and ties.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack
from scipy.optimize import nnls

from preflearn.base import ComparisonEstimator
from preflearn.pairs import Pairs, as_pairs, check_labels
from preflearn.separability import (
    NotSeparableError,
    Separability,
    Solution,
    column_scales,
    extremes,
    grow_working_set,
    largest_ratio,
    oriented_differences,
    separability,
)

__all__ = ["MarginLP", "MarginQP", "NotSeparableError", "Separability", "cone_distance", "separability"]

_EPS = np.finfo(np.float64).eps
_ACTIVE = 1e-9  # a slack of this size, where the decision boundary is at 1, counts as none
_RANK = 1e-12  # smallest singular value, relative to the largest, that counts


class _LinearComparison(ComparisonEstimator):
    """A linear ranking function r(x) = w·x, learned from preferences and ties that w separates."""

    coef_: NDArray[np.float64]

    def rank_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores r(x) = w·x of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Raises
        ------
        ValueError
            If X has another number of features than the pairs of the fit.
        """
        return self._checked_features(X) @ self.coef_

    def _load(self, pairs: Pairs | ArrayLike, y: ArrayLike) -> tuple[Pairs, NDArray, NDArray, NDArray]:
        pairs = as_pairs(pairs)
        y = check_labels(y, len(pairs))
        kinds = {0: "only ties (label 0)", len(y): "only preferences (labels +1 and -1), no ties"}
        if (found := kinds.get(int(np.count_nonzero(y)))) is not None:
            raise ValueError(
                f"y has {found}; {type(self).__name__} needs both, since its margin lies between them"
            )
        rows, ties = oriented_differences(pairs, y)
        self.n_features_in_ = rows.shape[1]
        return pairs, y, rows, ties


def _refuse(pairs: Pairs, y: NDArray) -> NoReturn:
    """Say why no weights with s > t were found."""
    answer = separability(pairs, y)
    if not answer.separable:
        raise NotSeparableError(answer, y)
    raise ValueError(
        "the comparisons are separable, but by a margin too small for double precision; "
        "scale the features, or use a method with slack variables"
    )


class MarginLP(_LinearComparison):
    """The linear ranking function with the largest margin in its own values.

    Solves the linear program, eq. 7 of [Venuto2017]_::

        maximise mu   s.t.   mu <= 1 - |w·d_j| (ties),   mu <= y_i w·d_i - 1 (preferences),

    with d = first - second. Invertible linear maps of the features leave mu as it is. Of several
    optimal w, the one of least Euclidean norm is taken: it is unique, and it is that of `MarginQP`
    whenever that is optimal here too.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        w, in 1 / (unit of the feature).
    margin_ : float
        mu, in (0, 1]: the least distance of a value w·d from the decision boundaries at -1 and 1.
    active_ : ndarray of int
        Ids of the pairs whose constraint holds with equality, to 1e-9.
    dual_coef_ : ndarray of shape (m,)
        Optimal dual weights: sum_i dual_coef_[i] d_i = 0, sum |dual_coef_| = 1 (less if mu = 1), and
        mu = 1 - 2 (sum of |dual_coef_| over preferences). Not zero for active pairs only.
    n_features_in_ : int

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> lp = MarginLP().fit(pairs, [0, 1])
    >>> lp.coef_.round(6).tolist(), round(lp.margin_, 6)
    ([0.5], 0.5)
    """

    coef_: NDArray[np.float64]
    margin_: float
    active_: NDArray[np.int64]
    dual_coef_: NDArray[np.float64]

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike) -> MarginLP:
        """Find the weights of the largest margin.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and preferences.

        Raises
        ------
        NotSeparableError
            If no linear ranking function is right on all pairs.
        ValueError
            On bad pairs or labels, only ties, or only preferences.
        """
        pairs, y, rows, ties = self._load(pairs, y)
        scales = column_scales(rows)
        scaled = rows / scales
        solution, work = largest_ratio(scaled, ties)
        tight = work[np.abs(solution.dual) > 0]
        coef = _best_ratio(
            [_least_norm_optimum(rows, scaled, ties, tight, work) / 1.0, solution.coef / scales], rows, ties
        )
        s, t = extremes(rows @ coef, ties)
        if not s > t:
            _refuse(pairs, y)
        self.coef_, self.margin_ = 2 * coef / (s + t), (s - t) / (s + t)
        slack = np.where(ties, 1 - np.abs(rows @ self.coef_), rows @ self.coef_ - 1) - self.margin_
        self.active_ = np.flatnonzero(slack <= _ACTIVE)
        self.dual_coef_ = np.zeros(len(y))
        self.dual_coef_[work] = solution.dual * np.where(y[work] == -1, -1, 1)
        return self
