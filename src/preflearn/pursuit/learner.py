"""What the learners from scored items share: functions of a dictionary, and answers by sums of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from preflearn.checks import (
    LARGEST,
    Floats,
    Ids,
    check_array,
    check_items,
    check_query_ids,
    check_scale,
    shown,
)
from preflearn.ground.expansion import KernelChoice, origin
from preflearn.ground.kernels import (
    SHIFTED,
    check_kernel,
    kernel_less_one,
    kernel_matrix,
    kernel_parameters,
)
from preflearn.metrics import disagreement_error, threshold
from preflearn.pairs import Pairs, as_pairs


class Functions(NamedTuple):
    """A dictionary of functions k(x, centre_j), j = 0 ... N - 1, as columns of values at items."""

    k: Callable[[Floats, NDArray], Floats]
    less_one: Callable[[Floats, NDArray], Floats]  # k but for a constant a function, which may be large
    centres: NDArray
    own: bool  # whether the centres are the training items, and k is symmetric

    @property
    def size(self) -> int:
        return len(self.centres)

    def columns(self, X: Floats, ids: Ids | slice = slice(None)) -> Floats:
        """The functions with these ids at the rows of X, shape (n, k)."""
        return self.k(X, self.centres[ids])

    def differ(self, X: Floats, ids: Ids | slice = slice(None)) -> Floats:
        """`columns` but for a constant, where only differences between items matter."""
        return self.less_one(X, self.centres[ids])

    def seen(self, mix: float) -> Self:
        """Functions for a loss with this mix: a loss of differences sees no constant."""
        return self if mix else self._replace(k=self.less_one)


def functions_of(choice: KernelChoice, X: Floats, dictionary: ArrayLike | None = None) -> Functions:
    """The functions of an estimator's kernel, centred at the rows of `dictionary`, or of X.

    With ``kernel="precomputed"`` X holds the values of N functions, shape (n, N).
    """
    check_kernel(choice.kernel)
    if choice.kernel == "precomputed":
        if dictionary is not None:
            raise ValueError("dictionary is given with kernel='precomputed', where the columns of X are it")
        return Functions(_picked, _picked, np.arange(X.shape[1]), False)
    check_scale(X, "X")
    centres = X if dictionary is None else check_array(dictionary, "dictionary", ("N", X.shape[1])).copy()
    parameters = kernel_parameters(choice.kernel, X, choice.gamma, choice.degree, choice.coef0)
    k = less_one = partial(kernel_matrix, choice.kernel, **parameters)
    if choice.kernel in SHIFTED:  # an offset would spoil the squares in |x - x'|²
        middle = origin(centres)
        k = partial(_moved, k, middle)
        less_one = partial(_moved, partial(kernel_less_one, choice.kernel, parameters["gamma"]), middle)
    own = dictionary is None and not callable(choice.kernel)
    if choice.kernel == "linear":  # x·c but for a constant, which an offset of x would make large
        less_one, own = partial(_moved_items, k, origin(X)), False
    return Functions(k, less_one, centres, own)


def _moved(k: Callable[[Floats, Floats], Floats], middle: Floats, X: Floats, Y: Floats) -> Floats:
    return k(X - middle, Y - middle)


def _moved_items(k: Callable[[Floats, Floats], Floats], middle: Floats, X: Floats, Y: Floats) -> Floats:
    return k(X - middle, Y)


def _picked(X: Floats, ids: Ids) -> Floats:
    return X[:, ids]


class Held(NamedTuple):
    """Scored items that choose a parameter, and do not train."""

    X: Floats
    y: Floats
    qid: NDArray | None

    def error(self, predicted: Floats) -> float:
        """The share of pairs of different scores in the wrong order."""
        return disagreement_error(self.y, predicted, self.qid, ties="drop")


def held_out(validation: object | None, n_features: int) -> Held | None:
    """`validation` as (X, y) or (X, y, qid), checked; None where there is none."""
    if validation is None:
        return None
    if not isinstance(validation, tuple) or len(validation) not in (2, 3):
        raise ValueError(
            f"validation is {shown(validation)}; expected a tuple (X, y) or (X, y, qid) of items that do not "
            "train"
        )
    X = check_array(validation[0], "the X of validation", ("n", n_features), "the features of the fit")
    y = check_array(validation[1], "the y of validation", (len(X),), "one score an item")
    qid = check_query_ids(validation[2] if len(validation) == 3 else None, len(X), "the qid of validation")
    disagreement_error(y, y, qid, ties="drop")  # says so where no pair is left
    return Held(X, y, qid)


def scored(X: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Items (n, p) and their scores (n,), checked; copies, since a fit keeps them."""
    X = check_items(X, "X").copy()
    y = check_array(y, "y", (len(X),), "one score an item").copy()
    check_scale(y, "y")
    return X, y


def summed(columns: Callable[[Floats, Ids], Floats], X: Floats, basis: Ids, coef: Floats) -> Floats:
    """The sum of these functions, of which there may be none, at the rows of X, shape (n,)."""
    return columns(X, basis) @ coef if len(basis) else np.zeros(len(X))


def check_size(largest: float, name: str) -> None:
    """Raise ValueError where squares of values of this size, times weights, might leave the floats."""
    if not (largest == 0 or 1 / LARGEST <= largest <= LARGEST):
        raise ValueError(
            f"{name} are up to {largest:.3g} in size; expected 0, or from {1 / LARGEST:g} to {LARGEST:g}, "
            "since the squares of others leave the range of floats: rescale"
        )


class ScoredItemsEstimator(BaseEstimator):
    """A ranking function r(x) = sum_j coef_j k(x, centre of basis_j), learned from scores of items.

    A subclass's `fit` sets `basis_`, `coef_`, `n_features_in_` and `_functions`.
    """

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
            With ``kernel="precomputed"``: the values of the N functions of the dictionary, (n, N).
        """
        return self._sum(self._functions_checked().columns, self._features(X))

    def decision_function(self, pairs: Pairs | ArrayLike) -> Floats:
        """r(first) - r(second) for each pair, shape (m,)."""
        pairs = as_pairs(pairs)
        return pairs.B.differences(self._levelled(self._features(pairs.items)))

    def predict(self, pairs: Pairs | ArrayLike) -> NDArray[np.int8]:
        """Labels -1, 0, 1 for each pair, shape (m,): the sign of the difference."""
        return threshold(self.decision_function(pairs), self.tau_)

    def score(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """1 less the normalised disagreement error (eq. 1), over pairs of one query with different scores."""
        return 1.0 - disagreement_error(y, self._levelled(self._features(X)), qid, ties="drop")

    def _levelled(self, X: Floats) -> Floats:
        """r up to a constant, to full precision where a kernel is so wide that its 1 would hide the rest."""
        return self._sum(self._functions_checked().differ, X)

    def _sum(self, columns: Callable[[Floats, Ids], Floats], X: Floats) -> Floats:
        return summed(columns, X, self.basis_, self.coef_)

    def _functions_checked(self) -> Functions:
        check_is_fitted(self, "n_features_in_")
        return self._functions

    def _features(self, X: ArrayLike) -> Floats:
        check_is_fitted(self, "n_features_in_")
        return check_array(X, "X", ("n", self.n_features_in_), "the features of the fit")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
