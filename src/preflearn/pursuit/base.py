"""Base class of the learners from scored items, and checks of training data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from preflearn.core.estimator import check_new_items
from preflearn.core.expansion import (
    Expansion,
    Functions,
    KernelParameters,
    functions_of,
)
from preflearn.core.kernels import Kernel
from preflearn.core.validation import (
    Floats,
    Ids,
    check_array,
    check_items,
    check_scale,
    check_shape,
)
from preflearn.metrics import disagreement_error, threshold
from preflearn.pairs import Pairs, as_pairs
from preflearn.pursuit.quadratic_forms import QueryForm, form_of


class TrainingData(NamedTuple):
    """Validated items and scores, and the quadratic form that compares them."""

    X: Floats  # (n, p); a copy, since the model stores it
    y: Floats  # (n,), up to constants to which the form is invariant
    form: QueryForm


def check_training_data(
    X: ArrayLike, y: ArrayLike, qid: ArrayLike | None, mix: float, kernel: Any = None
) -> TrainingData:
    """Check scored items, and return them with the form that compares them.

    Sparse items remain sparse if the kernel is linear and there are fewer items than
    features.
    """
    keep: Any = False
    if kernel == "linear":
        keep = "few"
    X = check_items(X, "X", keep=keep).copy()
    y = check_array(y, "y", X.shape[:1], "one score per item").copy()
    check_scale(y, "y")
    form = form_of(len(y), qid, mix)
    if not mix:
        y = form.without_offsets(y)
    return TrainingData(X, y, form)


def functions_at_items(estimator: Any, X: Floats) -> Functions:
    """Return the kernel functions of an estimator, centered at all items.

    With kernel="precomputed" X is the Gram matrix of the items.
    """
    if estimator.kernel == "precomputed":
        meaning = "with kernel='precomputed' the Gram matrix of the items"
        check_shape(X, "X", ("n", "n"), meaning)
    return functions_of(estimator, X)


class ScoredItemsEstimator(KernelParameters, BaseEstimator):
    """Base class of estimators that learn a kernel expansion from scored items.

    The ranking function is r(x) = sum_j coef_j k(x, center of basis_j).

    `fit` of a subclass sets `basis_`, `coef_`, `n_features_in_` and `_functions`.
    """

    kernel: Kernel
    tau_: float = 0.0
    n_features_in_: int
    basis_: Ids
    coef_: Floats
    _functions: Functions

    def rank_function(self, X: ArrayLike) -> Floats:
        """Return the scores r(x) of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Items; with ``kernel="precomputed"`` the values of the N functions of the
            dictionary, shape (n, N).
        """
        X = check_new_items(self, X)
        return self._ranking_function(1.0)(X)

    def decision_function(self, pairs: Pairs | ArrayLike) -> Floats:
        """Return r(first) - r(second) for each pair, shape (m,)."""
        pairs = as_pairs(pairs, keep=True)
        return pairs.B.differences(
            self._relative_scores(check_new_items(self, pairs.items))
        )

    def predict(self, pairs: Pairs | ArrayLike) -> NDArray[np.int8]:
        """Predict a label -1, 0, or 1 for each pair: the sign of the difference."""
        return threshold(self.decision_function(pairs), self.tau_)

    def score(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """Return 1 minus the normalized disagreement error of eq. 1.

        The error is computed over pairs of items of the same query with different
        scores.
        """
        predicted = self._relative_scores(check_new_items(self, X))
        return 1.0 - disagreement_error(y, predicted, qid, ties="drop")

    def _relative_scores(self, X: Floats) -> Floats:
        """Return r up to a constant, to full precision also if k is close to 1."""
        return self._ranking_function(0.0)(X)

    def _ranking_function(self, mix: float) -> Expansion:
        """Return r, or with mix = 0 return r up to a constant."""
        return self._functions.seen(mix).expansion(self.basis_, self.coef_)
