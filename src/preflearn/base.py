"""What all estimators of the package share: from a ranking function to a comparison function."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from preflearn.metrics import comparison_loss
from preflearn.pairs import Pairs, as_pairs, check_items, check_labels

__all__ = ["NEGATIVE_BIAS", "ComparisonEstimator", "DegenerateBiasError", "check_number", "threshold"]

NEGATIVE_BIAS = -1e-8  # beta below this counts as negative; its unit is that of the margin


class DegenerateBiasError(ValueError):
    """beta >= 0: every pair counts as a significant difference, and -u / beta is no ranking function."""


def check_number(estimator: BaseEstimator, name: str, positive: bool = False) -> float:
    """The value of a parameter, or ValueError if it is no such number."""
    value = getattr(estimator, name)
    if not isinstance(value, Real) or not (0 if positive else -math.inf) < value < math.inf:
        raise ValueError(f"{name} is {value!r}; expected a {'positive' if positive else 'finite'} number")
    return float(value)


def threshold(differences: ArrayLike, tau: float) -> NDArray[np.int8]:
    """The function t_tau, eq. 4 of [Venuto2017]_: -1 below -tau, +1 above tau, 0 between.

    Parameters
    ----------
    differences : array-like of shape (m,)
        r(first) - r(second).
    tau : float
        The largest difference that does not count, not negative.

    Returns
    -------
    labels : ndarray of shape (m,)

    Raises
    ------
    ValueError
        If tau is negative, or tau or a difference is NaN.

    Examples
    --------
    >>> threshold([-2.0, -1.0, 0.5, 3.0], tau=1.0).tolist()
    [-1, 0, 0, 1]
    """
    if not tau >= 0:
        raise ValueError(f"tau is {tau}; expected a threshold of at least 0")
    differences = np.asarray(differences, dtype=np.float64)
    if np.isnan(differences).any():
        where = np.flatnonzero(np.isnan(differences))[0]
        raise ValueError(f"differences[{where}] is nan; expected numbers")
    return (differences > tau).astype(np.int8) - (differences < -tau).astype(np.int8)


class ComparisonEstimator(ClassifierMixin, BaseEstimator):
    """A ranking function r with a threshold: c(first, second) = t_tau(r(first) - r(second)).

    A subclass defines `fit(pairs, y)`, which sets `n_features_in_`, and `rank_function(X)`.
    It may set `tau_`, the smallest difference that counts; the papers' convention is 1.
    """

    tau_: float = 1.0
    classes_ = np.array([-1, 0, 1], dtype=np.int8)

    def rank_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores r(x) of items, shape (n,); larger is better."""
        raise AttributeError(f"{type(self).__name__} defines no ranking function")

    def _checked_features(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self, "n_features_in_")
        X = check_items(X, "X")
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features; expected {self.n_features_in_}, as in the pairs of the fit"
            )
        return X

    def decision_function(self, pairs: Pairs | ArrayLike) -> NDArray[np.float64]:
        """r(first) - r(second) for each pair, shape (m,), eq. 5 of [Venuto2017]_."""
        pairs = as_pairs(pairs)
        used, place = np.unique(pairs.index, return_inverse=True)
        first, second = self.rank_function(pairs.items[used])[place.reshape(-1, 2)].T
        return first - second

    def predict(self, pairs: Pairs | ArrayLike) -> NDArray[np.int8]:
        """Labels -1, 0, 1 for each pair, shape (m,)."""
        return threshold(self.decision_function(pairs), self.tau_)

    def score(self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The weighted share of pairs that are predicted correctly: 1 minus the loss of eq. 2."""
        pairs = as_pairs(pairs)
        y = check_labels(y, len(pairs))
        return 1.0 - comparison_loss(y, self.predict(pairs), sample_weight)
