"""Base classes of the estimators, and a transformer for the items of pairs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from preflearn.core.kernels import distinct_items
from preflearn.core.validation import Floats, check_items, require
from preflearn.metrics import comparison_loss, threshold
from preflearn.pairs import Pairs, as_pairs


class ComparisonEstimator(ClassifierMixin, BaseEstimator):
    """Base class of estimators with a ranking function r and a threshold tau.

    Derive from it to write an estimator that predicts comparisons. The prediction for a
    pair is c(first, second) = t_tau(r(first) - r(second)).

    A subclass defines `fit(pairs, y)`, which sets `n_features_in_`, and
    `rank_function(X)`. It may set `tau_`, the largest score difference that is
    predicted as a tie; the papers' convention is 1. In `cross_val_score` and searches,
    pass `ItemKFold`, `QueryKFold` or `DateSplit` as `cv`.

    `cross_val_predict` of scikit-learn works with method="predict" only. With other
    methods it replaces the labels by 0, 1, 2 before it fits. To get decision values or
    probabilities, loop over the splits and fit a clone on each.
    """

    tau_: float = 1.0
    n_features_in_: int
    # For decisions and probabilities, scikit-learn's cross_val_predict encodes labels as
    # 0, 1, ... before it fits, and then uses classes_ as column numbers. Floats make it
    # fail there; integers would give wrong columns with a warning only.
    classes_ = np.array([-1.0, 0.0, 1.0])

    def rank_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores r(x) of items, shape (n,); larger is better."""
        raise AttributeError(
            f"{type(self).__name__} has no method rank_function; a subclass must define it"
        )

    def decision_function(self, pairs: Pairs | ArrayLike) -> NDArray[np.float64]:
        """Return r(first) - r(second) of pairs, eq. 5 of [Venuto2017]_."""
        pairs = as_pairs(pairs, keep=True)
        B = pairs.B
        scores = np.empty(pairs.items.shape[0])
        # If there are at least as many pairs as items, most items occur in a pair.
        # Finding the other items then takes longer than computing their scores.
        ids = slice(None) if len(scores) <= len(pairs) else B.occurring()
        scores[ids] = self.rank_function(pairs.items[ids])
        return B.differences(scores)

    def predict(self, pairs: Pairs | ArrayLike) -> NDArray[np.int8]:
        """Predict a label -1, 0, or 1 for each pair, shape (m,)."""
        return threshold(self.decision_function(pairs), self.tau_)

    def score(
        self,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the weighted fraction of correctly predicted pairs.

        It is 1 minus the loss of eq. 2.
        """
        return 1.0 - comparison_loss(y, self.predict(pairs), sample_weight)


class LinearComparison(ComparisonEstimator):
    """Base class of estimators with r(x) = w·x; `fit` sets `coef_`."""

    coef_: Floats

    def rank_function(self, X: ArrayLike) -> Floats:
        """Return the scores r(x) = w·x of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Raises
        ------
        ValueError
            If the number of features differs from that in `fit`.
        """
        return check_new_items(self, X) @ self.coef_


def check_new_items(estimator: BaseEstimator, X: ArrayLike, name: str = "X") -> Floats:
    """Return items (n, p) after checking that they suit a fitted estimator."""
    check_is_fitted(estimator, "n_features_in_")
    keep = (
        isinstance(estimator, LinearComparison)
        or getattr(estimator, "kernel", None) == "linear"
    )
    X = check_items(X, name, scaled=True, keep=keep)  # pyright: ignore[reportAttributeAccessIssue]
    p = estimator.n_features_in_  # pyright: ignore[reportAttributeAccessIssue]
    if X.shape[1] != p:
        raise ValueError(f"{name} has {X.shape[1]} features; expected {p}, as in fit")
    return X


class OnItems(TransformerMixin, BaseEstimator):
    """Apply a scikit-learn transformer to the items of pairs.

    Use it as a step of a pipeline, before a learner that takes pairs.

    scikit-learn's own transformers take a matrix and raise an error for pairs ("Found
    array with dim 3"). Write ``OnItems(StandardScaler())`` instead of
    ``StandardScaler()``. The transformer is then fitted to the distinct items of the
    training pairs, and the learner gets the same pairs with transformed items.

    Parameters
    ----------
    transformer : transformer of scikit-learn
        Object with `fit(X)` and `transform(X)` for items X of shape (n, p), such as a
        StandardScaler.

    Attributes
    ----------
    transformer_ : transformer
        Fitted transformer.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> pairs = Pairs([[0.0], [2.0], [100.0]], [[0, 1]])  # the third item is in no pair
    >>> OnItems(StandardScaler()).fit_transform(pairs).first.tolist()
    [[-1.0]]
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit a clone of the transformer to the distinct items of the pairs."""
        good = hasattr(self.transformer, "transform")
        require(
            good,
            self.transformer,
            "transformer",
            "a scikit-learn transformer with fit and transform",
        )
        pairs = as_pairs(pairs, keep=True)
        transformer: Any = clone(self.transformer)
        self.transformer_ = transformer.fit(pairs.items[distinct_items(pairs)[0]])
        return self

    def transform(self, pairs: Pairs | ArrayLike) -> Pairs:
        """Return the pairs with transformed items, of shape (m, 2, p')."""
        check_is_fitted(self, "transformer_")
        pairs = as_pairs(pairs, keep=True)
        return pairs.with_items(self.transformer_.transform(pairs.items))
