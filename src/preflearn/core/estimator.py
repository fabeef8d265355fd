"""What all estimators of the package share: from a ranking function to a comparison
function."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from preflearn.core.diagnosis import indicated
from preflearn.core.kernels import distinct_items, distinct_rows
from preflearn.core.validation import Floats, check_items, require, warn_user
from preflearn.metrics import comparison_loss, threshold
from preflearn.pairs import Pairs, as_pairs


class LeakageWarning(UserWarning):
    """Pairs are judged that did not train, but whose items did: a learner may know them
    by heart."""


_JUDGED = 10  # pairs: of fewer nobody takes the share that is right
_TOLD: set[bytes] = set()  # tokens of origins of which somebody was warned


class ComparisonEstimator(ClassifierMixin, BaseEstimator):
    """A ranking function r with a threshold: c(first, second) = t_tau(r(first) -
    r(second)).

    A subclass defines `fit(pairs, y)`, which calls `_remember(pairs)`, and
    `rank_function(X)`. It may set `tau_`, the largest difference that does not count;
    the papers' convention is 1. In `cross_val_score` and searches take folds of
    `ItemKFold`, `QueryKFold` or `DateSplit`.
    """

    tau_: float = 1.0
    n_features_in_: int
    # origin, rows and index of the pairs of the fit
    _met: tuple[Any, Any, Any] = None, None, None
    # As floats, which cannot be column numbers: scikit-learn's cross_val_predict
    # encodes labels as 0, 1, ... before it fits probabilities or decisions, and fails
    # now; it would report what -1 as 0, 1 as 1 gave.
    classes_ = np.array([-1.0, 0.0, 1.0])

    def _remember(self, pairs: Pairs) -> None:
        """What a fit learned from: the number of features, and which pairs."""
        self.n_features_in_ = pairs.shape[2]
        self._met = (pairs.origin, pairs.rows, pairs.index)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_met": (None, None, None)}  # pyright: ignore[reportOperatorIssue]  (they may be many)

    def rank_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores r(x) of items, shape (n,); larger is better."""
        raise AttributeError(f"{type(self).__name__} defines no ranking function")

    def decision_function(self, pairs: Pairs | ArrayLike) -> NDArray[np.float64]:
        """r(first) - r(second) for each pair, shape (m,), eq. 5 of [Venuto2017]_.

        Warns
        -----
        LeakageWarning
            Here, and in all that follows from it, once for slices of the same pairs:
            where none of these, ten at least, trained, but both items of some did,
            unless `QueryKFold` or `DateSplit` has parted them, or items have no
            features, and so are known only if they trained.
        """
        pairs = as_pairs(pairs, keep=True)
        self._warn_of_leakage(pairs)
        B = pairs.B
        scores = np.empty(pairs.items.shape[0])
        # Among as many pairs as items most items occur, and finding out costs more than
        # their scores.
        ids = slice(None) if len(scores) <= len(pairs) else B.occurring()
        scores[ids] = self.rank_function(pairs.items[ids])
        return B.differences(scores)

    def predict(self, pairs: Pairs | ArrayLike) -> NDArray[np.int8]:
        """Labels -1, 0, 1 for each pair, shape (m,)."""
        return threshold(self.decision_function(pairs), self.tau_)

    def score(
        self,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The weighted share of pairs that are predicted correctly: 1 minus the loss of
        eq. 2."""
        return 1.0 - comparison_loss(y, self.predict(pairs), sample_weight)

    def _warn_of_leakage(self, pairs: Pairs) -> None:
        asked = pairs.origin
        (origin, rows, trained) = self._met
        same = (
            origin is not None
            and origin.token == asked.token
            and asked.token not in _TOLD
        )
        if not (same and len(pairs) >= _JUDGED and asked.leaks(rows, pairs.rows)):
            return
        # without features, who did not train has no score at all
        if indicated(pairs.items) is not None:
            return
        kinds = distinct_rows(pairs.items)[1]
        if met := int(np.isin(kinds[pairs.index], kinds[trained]).all(axis=1).sum()):
            _TOLD.add(asked.token)
            warn_user(
                f"{type(self).__name__} met both items of {met} of these {len(pairs)} pairs in others of its "
                "fit, and may know them by heart: make folds by ItemKFold, QueryKFold or DateSplit of "
                "preflearn.core or, where the same items will be compared again, ignore LeakageWarning",
                LeakageWarning,
            )


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
        return check_asked(self, X) @ self.coef_


def check_asked(estimator: BaseEstimator, X: ArrayLike, name: str = "X") -> Floats:
    """Return items (n, p) that a fitted estimator is asked about, or say where they
    differ from its fit."""
    check_is_fitted(estimator, "n_features_in_")
    keep = (
        isinstance(estimator, LinearComparison)
        or getattr(estimator, "kernel", None) == "linear"
    )
    X = check_items(X, name, scaled=True, keep=keep)  # pyright: ignore[reportAttributeAccessIssue]
    p = estimator.n_features_in_  # pyright: ignore[reportAttributeAccessIssue]
    if X.shape[1] != p:
        raise ValueError(
            f"{name} has {X.shape[1]} features; expected {p}, the features of the fit"
        )
    return X


class OnItems(TransformerMixin, BaseEstimator):
    """A transformer of scikit-learn for the items of pairs, as a step of a pipeline
    before a learner.

    scikit-learn's own steps ask for a matrix. This one gives the transformer each
    distinct item of the training pairs once, and the learner the same pairs of
    transformed items.

    Parameters
    ----------
    transformer : transformer of scikit-learn
        What has `fit(X)` and `transform(X)` for items X of shape (n, p), such as a
        StandardScaler.

    Attributes
    ----------
    transformer_ : transformer
        The one that was fitted.

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
        """Fit a clone of the transformer to the distinct items of the pairs; y is
        ignored."""
        good = hasattr(self.transformer, "transform")
        require(good, self.transformer, "transformer", "one of scikit-learn")
        pairs = as_pairs(pairs, keep=True)
        self.transformer_ = clone(self.transformer).fit(
            pairs.items[distinct_items(pairs)[0]]
        )  # pyright: ignore[reportAttributeAccessIssue]
        return self

    def transform(self, pairs: Pairs | ArrayLike) -> Pairs:
        """The pairs (m, 2, p) of transformed items, as Pairs (m, 2, p')."""
        check_is_fitted(self, "transformer_")
        pairs = as_pairs(pairs, keep=True)
        return pairs.with_items(self.transformer_.transform(pairs.items))
