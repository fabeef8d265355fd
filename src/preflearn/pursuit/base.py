"""What the learners from scored items share: checks of training items, and predictions
by sums of functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from preflearn.core.estimator import check_asked
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
    """Checked items and scores of a fit, and what compares them."""

    X: Floats  # (n, p); a copy, since a fit keeps it
    y: Floats  # (n,), up to constants that the form does not see
    form: QueryForm


def check_training_data(
    X: ArrayLike, y: ArrayLike, qid: ArrayLike | None, mix: float, kernel: Any = None
) -> TrainingData:
    """Scored items, and what compares them.

    Sparse items stay sparse if the kernel is linear and there are fewer items than
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
    """The kernel functions of an estimator centred at all items.

    With kernel="precomputed" X is their Gram matrix.
    """
    if estimator.kernel == "precomputed":
        meaning = "with kernel='precomputed' the Gram matrix of the items"
        check_shape(X, "X", ("n", "n"), meaning)
    return functions_of(estimator, X)


class ScoredItemsEstimator(KernelParameters, BaseEstimator):
    """A ranking function r(x) = sum_j coef_j k(x, centre of basis_j), learned from
    scores of items.

    A subclass's `fit` sets `basis_`, `coef_`, `n_features_in_` and `_functions`.
    """

    kernel: Kernel
    tau_: float = 0.0
    n_features_in_: int
    basis_: Ids
    coef_: Floats
    _functions: Functions

    def rank_function(self, X: ArrayLike) -> Floats:
        """Scores r(x) of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With ``kernel="precomputed"``: the values of the N functions of the
            dictionary, (n, N).
        """
        X = check_asked(self, X)
        return self._ranking_function(1.0)(X)

    def decision_function(self, pairs: Pairs | ArrayLike) -> Floats:
        """r(first) - r(second) for each pair, shape (m,)."""
        pairs = as_pairs(pairs, keep=True)
        return pairs.B.differences(
            self._relative_scores(check_asked(self, pairs.items))
        )

    def predict(self, pairs: Pairs | ArrayLike) -> NDArray[np.int8]:
        """Labels -1, 0, 1 for each pair, shape (m,): the sign of the difference."""
        return threshold(self.decision_function(pairs), self.tau_)

    def score(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """1 minus the normalised disagreement error of eq. 1.

        It counts pairs of items of one query with different scores.
        """
        predicted = self._relative_scores(check_asked(self, X))
        return 1.0 - disagreement_error(y, predicted, qid, ties="drop")

    def _relative_scores(self, X: Floats) -> Floats:
        """r up to a constant, to full precision where a kernel is so wide that its 1
        would hide the rest."""
        return self._ranking_function(0.0)(X)

    def _ranking_function(self, mix: float) -> Expansion:
        """r, or with mix = 0 r up to a constant."""
        return self._functions.seen(mix).expansion(self.basis_, self.coef_)
