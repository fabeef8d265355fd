"""What all learners of rankings share: `fit(X, y, qid)`, `rank(Q)` of a query, and
checks of input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator

from preflearn.core.estimator import check_asked
from preflearn.core.validation import (
    Floats,
    check_array,
    check_items,
    check_left,
    check_real,
    query_numbers,
    warn_user,
)


class RankTargetWarning(FutureWarning):
    """A target looks like ranks, and is taken as scores: larger is better."""


def positions(scores: ArrayLike) -> NDArray[np.int64]:
    """Ranks of items, 1 for the largest score; equal scores share the best of theirs.

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
    """Items (n, p), scores in their order (n,) and query numbers 0, 1, ... (n,).

    Raises ValueError on bad input, features above 1e100 in size, or where no query has
    two items of different scores. Warns of scores that are ranks in every query.
    """
    X = check_items(X, "X", scaled=True)
    scores = check_array(y, "y", (len(X),), "one score per item, larger is better")
    query = query_numbers(qid, len(X))
    # 1, ..., n in some order in every query
    ranks = pd.Series(scores).groupby(query).rank("first")
    are_ranks = np.array_equal(scores, ranks)
    values = np.asarray(y)
    # beyond 2^53 neighbours became one float; the order is what counts
    if values.dtype.kind in "iu":
        scores = np.unique(values, return_inverse=True)[1].astype(np.float64)
    first = np.unique(query, return_index=True)[1]
    check_left(
        float(np.count_nonzero(scores != scores[first][query])),
        len(X),
        " with different scores",
    )
    if are_ranks:
        warn_user(
            "y is a permutation of 1, ..., n in every query: since version 0.3 fit takes "
            "scores (larger is better) and not ranks (1 is best), so ranks give the "
            "reversed order; pass preflearn.pairs.ranks_to_scores(rank) for ranks, or "
            "y - 1 for scores",
            RankTargetWarning,
        )
    return X, scores, query


def check_size(value: object, name: str, most: float, other: str = "") -> float:
    """Return a number from 1/most to most, or say that it or the `other` word is
    expected."""
    return check_real(
        value, name, f"a number from {1 / most:g} to {most:g}{other}", 1 / most, most
    )


class RankingLearner(ABC, BaseEstimator):
    """Ranks the items of a new query by their scores, section 2 of
    [AhmadiFahandar2019]_.

    A subclass defines `fit(X, y, qid)`, which sets `n_features_in_`, and
    `rank_function(X)`.
    """

    n_features_in_: int

    @abstractmethod
    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Learn from scored items.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Sparse features become dense, up to a gigabyte.
        y : array-like of shape (n,)
            Scores; larger is better. Only their order within a query counts, and items
            of one query with equal scores make no pair. For ranks pass
            `preflearn.pairs.ranks_to_scores(rank)`.
        qid : array-like of shape (n,), optional
            Query ids: only items of one query are compared. None: one query.

        Returns
        -------
        self

        Warns
        -----
        RankTargetWarning
            If y is 1, ..., n in some order in every query, as ranks are.
        """

    @abstractmethod
    def rank_function(self, X: ArrayLike) -> Floats:
        """Scores of the items of one query, shape (n,); larger is better.

        Equal items must have equal scores: sum products row by row, since those of
        matrices are rounded in ways that differ from row to row.
        """

    def rank(self, Q: ArrayLike) -> NDArray[np.int64]:
        """Ranks of the items of one query, shape (n,); 1 is best.

        Parameters
        ----------
        Q : array-like of shape (n, p)
            All items of the query; one item has rank 1.

        Returns
        -------
        rank : ndarray of int, shape (n,)
            Items of equal scores share the best of their ranks, as teams of equal
            points do in a table.

        Raises
        ------
        ValueError
            If Q has other features than the items of the fit, or values that are not
            finite or above 1e100 in size.
        """
        return positions(self.rank_function(check_asked(self, Q, "Q")))
