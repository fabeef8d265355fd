"""What the learners from scored items share: checks of what is given, and answers by
sums of functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
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
    check_query_ids,
    check_real,
    check_scale,
    check_shape,
    require,
)
from preflearn.metrics import disagreement_error, threshold
from preflearn.pairs import Pairs, as_pairs
from preflearn.pursuit.quadratic_forms import Form, form_of


class Held(NamedTuple):
    """Scored items that choose a parameter, and do not train."""

    X: Floats
    y: Floats
    qid: NDArray | None

    def errors(self, predicted: Floats, squared: bool) -> Floats:
        """Mean squared errors of columns, or the shares of pairs of different scores in
        the wrong order."""
        if squared:
            return np.square(self.y[:, None] - predicted).mean(axis=0)
        return np.array(
            [disagreement_error(self.y, f, self.qid, ties="drop") for f in predicted.T]
        )


class Given(NamedTuple):
    """What a fit learns from, checked."""

    X: Floats  # (n, p); a copy, since a fit keeps it
    y: Floats  # (n,), but for constants that the form does not see
    form: Form
    held: Held | None

    def errors(
        self, predict: Callable[[Floats], Floats], squared: bool
    ) -> Floats | None:
        """`Held.errors` of predictions for the held-out items, if there are some."""
        return (
            None
            if self.held is None
            else self.held.errors(predict(self.held.X), squared)
        )


def given(
    X: ArrayLike,
    y: ArrayLike,
    qid: ArrayLike | None,
    graph: object | None,
    mix: float,
    validation: object | None = None,
    keep: Any = False,
) -> Given:
    """Scored items, what compares them, and held-out items, (X, y) or (X, y, qid), if
    there are some.

    What `keep` says of sparse items, `check_items` knows.
    """
    X = check_items(X, "X", keep=keep).copy()
    y = check_array(y, "y", X.shape[:1], "one score an item").copy()
    check_scale(y, "y")
    form = form_of(len(y), qid, graph, mix)
    return Given(X, y if mix else form.levelled(y), form, _held_out(validation, X))


def _held_out(validation: Any, fit: Floats) -> Held | None:
    if validation is None:
        return None
    expected = "a tuple (X, y) or (X, y, qid) of items that do not train"
    require(
        isinstance(validation, tuple) and len(validation) in (2, 3),
        validation,
        "validation",
        expected,
    )
    X = check_items(validation[0], "the X of validation", keep=sparse.issparse(fit))
    check_shape(
        X, "the X of validation", ("n", fit.shape[1]), "the features of the fit"
    )
    y = check_array(
        validation[1], "the y of validation", X.shape[:1], "one score an item"
    )
    qid = check_query_ids(
        validation[2] if len(validation) == 3 else None, len(y), "the qid of validation"
    )
    disagreement_error(y, y, qid, ties="drop")  # says so where no pair is left
    return Held(X, y, qid)


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
        return self._learned(1.0)(X)

    def decision_function(self, pairs: Pairs | ArrayLike) -> Floats:
        """r(first) - r(second) for each pair, shape (m,)."""
        pairs = as_pairs(pairs, keep=True)
        return pairs.B.differences(self._levelled(check_asked(self, pairs.items)))

    def predict(self, pairs: Pairs | ArrayLike) -> NDArray[np.int8]:
        """Labels -1, 0, 1 for each pair, shape (m,): the sign of the difference."""
        return threshold(self.decision_function(pairs), self.tau_)

    def score(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """1 less the normalised disagreement error (eq.

        1), over pairs of one query with different scores.
        """
        return 1.0 - disagreement_error(
            y, self._levelled(check_asked(self, X)), qid, ties="drop"
        )

    def _levelled(self, X: Floats) -> Floats:
        """r up to a constant, to full precision where a kernel is so wide that its 1
        would hide the rest."""
        return self._learned(0.0)(X)

    def _learned(self, mix: float) -> Expansion:
        """r, or with mix = 0 r up to a constant."""
        return self._functions.seen(mix).expansion(self.basis_, self.coef_)

    def _set_errors(self, name: str, errors: Floats | None) -> None:
        """Errors of held-out items, which an attribute has only if this fit had some."""
        vars(self).pop(name, None)
        if errors is not None:
            setattr(self, name, errors)


class OneDictionaryEstimator(ScoredItemsEstimator):
    """One whose functions are those of one kernel at given centres, usually the items;
    `_learn` fits them."""

    mix: float = 0.0  # of the loss, from 0 (ranking) to 1 (regression)
    _training: Given

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        validation: tuple[ArrayLike, ...] | None = None,
        graph: object | None = None,
    ) -> Self:
        """Learn from scored items.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Sparse features stay so where the kernel is linear and n < p; else they
            become dense.
        y : array-like of shape (n,)
            Scores; larger is better.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.
        validation : tuple (X, y) or (X, y, qid), optional
            Items that choose the number of functions of a pursuit, or one of several
            alphas: the first one of least error, of alphas the largest.
        graph : matrix W of shape (n, n), sparse or dense, optional
            In place of qid: the weight of each pair in eq. 2; of a directed graph (W +
            W') / 2.

        Raises
        ------
        NotPositiveSemidefiniteError
            If the kernel of RLS, RankRLS or SparseRankRLS is not positive semi-definite
            on its items.
        ValueError
            On bad parameters, shapes or values, sizes whose squares leave the floats,
            an alpha that rounding hides, several alphas with nothing to choose one by
            (neither validation nor, with all items, a second query), held-out items
            without two of different scores in one query, or where no two items are
            compared and the loss is not that of regression.
        """
        mix = check_real(
            self.mix,
            "mix",
            "a number from 0 (ranking) to 1 (regression)",
            least=0.0,
            most=1.0,
        )
        data = given(
            X, y, qid, graph, mix, validation, keep=self.kernel == "linear" and "few"
        )
        functions = self._functions_at(data.X)
        self._learn(functions, data)
        self._functions = functions
        self._training = data
        self.n_features_in_ = data.X.shape[1]
        return self

    def _functions_at(self, X: Floats) -> Functions:
        """Those centred at the items; "precomputed": X is their Gram matrix."""
        if self.kernel == "precomputed":
            check_shape(
                X,
                "X",
                ("n", "n"),
                "with kernel='precomputed' the Gram matrix of the items",
            )
        return functions_of(self, X)

    @abstractmethod
    def _learn(self, functions: Functions, data: Given) -> None:
        """Set `basis_`, `coef_` and what else the estimator names."""
