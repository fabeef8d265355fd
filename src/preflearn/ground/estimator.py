"""What all estimators of the package share: from a ranking function to a comparison function."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from preflearn.checks import Floats, check_items
from preflearn.metrics import comparison_loss, threshold
from preflearn.pairs import Pairs, as_pairs


class ComparisonEstimator(ClassifierMixin, BaseEstimator):
    """A ranking function r with a threshold: c(first, second) = t_tau(r(first) - r(second)).

    A subclass defines `fit(pairs, y)`, which sets `n_features_in_`, and `rank_function(X)`.
    It may set `tau_`, the largest difference that does not count; the papers' convention is 1.
    """

    tau_: float = 1.0
    n_features_in_: int
    # As floats, which cannot be column numbers: scikit-learn's cross_val_predict encodes labels as 0, 1, ...
    # before it fits probabilities or decisions, and fails now; it would report what -1 as 0, 1 as 1 gave.
    classes_ = np.array([-1.0, 0.0, 1.0])

    def rank_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores r(x) of items, shape (n,); larger is better."""
        raise AttributeError(f"{type(self).__name__} defines no ranking function")

    def _checked_features(self, X: ArrayLike) -> NDArray[np.float64]:
        return check_asked(self, X)

    def decision_function(self, pairs: Pairs | ArrayLike) -> NDArray[np.float64]:
        """r(first) - r(second) for each pair, shape (m,), eq. 5 of [Venuto2017]_."""
        pairs = as_pairs(pairs)
        B, scores = pairs.B, np.empty(len(pairs.items))
        # Among as many pairs as items most items occur, and finding out costs more than their scores.
        ids = slice(None) if len(scores) <= len(pairs) else B.occurring()
        scores[ids] = self.rank_function(pairs.items[ids])
        return B.differences(scores)

    def predict(self, pairs: Pairs | ArrayLike) -> NDArray[np.int8]:
        """Labels -1, 0, 1 for each pair, shape (m,)."""
        return threshold(self.decision_function(pairs), self.tau_)

    def score(self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The weighted share of pairs that are predicted correctly: 1 minus the loss of eq. 2."""
        return 1.0 - comparison_loss(y, self.predict(pairs), sample_weight)


class LinearComparison(ComparisonEstimator):
    """What has the ranking function r(x) = w·x; `fit` sets `coef_`."""

    coef_: Floats

    def rank_function(self, X: ArrayLike) -> Floats:
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


def check_asked(estimator: BaseEstimator, X: ArrayLike, name: str = "X") -> Floats:
    """Return items (n, p) that a fitted estimator is asked about, or say where they differ from its fit."""
    check_is_fitted(estimator, "n_features_in_")
    X, p = check_items(X, name, scaled=True), estimator.n_features_in_  # pyright: ignore[reportAttributeAccessIssue]
    if X.shape[1] != p:
        raise ValueError(f"{name} has {X.shape[1]} features; expected {p}, the features of the fit")
    return X
