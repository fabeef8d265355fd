"""Base class of learners of rankings, and checks of scored items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator

from preflearn.core.estimator import check_new_items
from preflearn.core.validation import (
    Floats,
    check_array,
    check_items,
    check_real,
    query_numbers,
    require_pairs,
    warn_user,
)


class RankTargetWarning(FutureWarning):
    """Warning that y looks like ranks, but is used as scores (larger is better)."""


def positions(scores: ArrayLike) -> NDArray[np.int64]:
    """Return ranks, 1 for the largest score; equal scores share the best rank.

    Examples
    --------
    >>> positions([0.5, 2.0, 0.5]).tolist()
    [2, 1, 2]
    """
    scores = check_array(scores, "scores", ("n",), "one value per item")
    return rankdata(-scores, method="min").astype(np.int64)


def check_scored_items(
    X: ArrayLike, y: ArrayLike, qid: ArrayLike | None
) -> tuple[Floats, Floats, NDArray]:
    """Check items (n, p), scores (n,), and query ids; return query numbers from 0.

    It raises ValueError if the input is not valid, features exceed 1e100 in absolute
    value, or no query has two items of different scores. It warns if the scores look
    like ranks in every query.
    """
    X = check_items(X, "X", scaled=True)
    scores = check_array(y, "y", (len(X),), "one score per item, larger is better")
    query = query_numbers(qid, len(X))
    # whether y is a permutation of 1, ..., n in every query
    ranks = pd.Series(scores).groupby(query).rank("first")
    are_ranks = np.array_equal(scores, ranks)
    values = np.asarray(y)
    # beyond 2^53 different integers become the same float, and only the order counts
    if values.dtype.kind in "iu":
        scores = np.unique(values, return_inverse=True)[1].astype(np.float64)
    first = np.unique(query, return_index=True)[1]
    require_pairs(
        float(np.count_nonzero(scores != scores[first][query])),
        len(X),
        " with different scores",
    )
    if are_ranks:
        warn_user(
            "y is a permutation of 1, ..., n in every query, like ranks. But fit takes "
            "scores (larger is better), so ranks (1 is best) give the reversed order. For "
            "ranks pass preflearn.pairs.ranks_to_scores(rank); for scores, y - 1 avoids "
            "this warning",
            RankTargetWarning,
        )
    return X, scores, query


def check_size(value: object, name: str, most: float, other: str = "") -> float:
    """Return a number from 1/most to most.

    `other` is added to the message, for a word that the caller accepts too.
    """
    return check_real(
        value, name, f"a number from {1 / most:g} to {most:g}{other}", 1 / most, most
    )


class RankingLearner(ABC, BaseEstimator):
    """Base class of learners that rank the items of new queries.

    See section 2 of [AhmadiFahandar2019]_.

    A subclass defines `fit(X, y, qid)`, which sets `n_features_in_`, and
    `rank_function(X)`.
    """

    n_features_in_: int

    @abstractmethod
    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Fit the model to scored items.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Features. Sparse features become dense, up to one gigabyte.
        y : array-like of shape (n,)
            Scores; larger is better. Only their order within a query matters, and
            items of the same query with equal scores give no pair. For ranks pass
            `preflearn.pairs.ranks_to_scores(rank)`.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.

        Returns
        -------
        self

        Warns
        -----
        RankTargetWarning
            If y is a permutation of 1, ..., n in every query, like ranks.
        """

    @abstractmethod
    def rank_function(self, X: ArrayLike) -> Floats:
        """Return scores of the items of one query, shape (n,); larger is better.

        Equal items must have equal scores. Implementations therefore sum products row
        by row, since rounding errors of matrix products may differ between rows.
        """

    def rank(self, Q: ArrayLike) -> NDArray[np.int64]:
        """Rank the items of one query; 1 is best.

        Parameters
        ----------
        Q : array-like of shape (n, p)
            All items of the query.

        Returns
        -------
        rank : ndarray of int, shape (n,)
            Ranks. Items of equal scores share the best of their ranks, like teams with
            equal points in a table.

        Raises
        ------
        ValueError
            If Q has another number of features than in `fit`, or values that are
            infinite, NaN, or above 1e100 in absolute value.
        """
        return positions(self.rank_function(check_new_items(self, Q, "Q")))
