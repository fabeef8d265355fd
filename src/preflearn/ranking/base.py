"""What all learners of rankings share: `fit(X, rank, qid)`, `rank(Q)` of a query,
checks of input, seeds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator

from preflearn.core.validation import (
    Floats,
    check_array,
    check_items,
    check_left,
    check_real,
    query_numbers,
)


def positions(worths: ArrayLike) -> NDArray[np.int64]:
    """Ranks of items by worth, 1 is the largest; items of equal worth share the best of
    their ranks.

    Examples
    --------
    >>> positions([0.5, 2.0, 0.5]).tolist()
    [2, 1, 2]
    """
    worths = check_array(worths, "worths", ("n",), "one value an item")
    return rankdata(-worths, method="min").astype(np.int64)


def check_rankings(
    X: ArrayLike, rank: ArrayLike, qid: ArrayLike | None
) -> tuple[Floats, Floats, NDArray]:
    """Items (n, p), their ranks (n,) and query numbers 0, 1, ... (n,); rank 1 is best.

    Raises ValueError on bad input, features above 1e100 in size, or where no query has
    two items of different ranks.
    """
    X = check_items(X, "X", scaled=True)
    ranks = check_array(rank, "rank", (len(X),), "one rank an item, 1 is best")
    given = np.asarray(rank)
    # beyond 2^53 neighbours became one float; the order is what counts
    if given.dtype.kind in "iu":
        ranks = np.unique(given, return_inverse=True)[1].astype(np.float64)
    query = query_numbers(qid, len(X))
    first = np.unique(query, return_index=True)[1]
    check_left(
        float(np.count_nonzero(ranks != ranks[first][query])),
        len(X),
        " with different ranks",
    )
    return X, ranks, query


def check_size(value: object, name: str, most: float, other: str = "") -> float:
    """Return a number from 1/most to most, or say that it or the `other` word is
    expected."""
    return check_real(
        value, name, f"a number from {1 / most:g} to {most:g}{other}", 1 / most, most
    )


class RankingLearner(ABC, BaseEstimator):
    """Ranks the items of a new query by their worths, section 2 of
    [AhmadiFahandar2019]_.

    A subclass defines `fit(X, rank, qid)`, which sets `n_features_in_`, and
    `worths(Q)`.
    """

    n_features_in_: int

    @abstractmethod
    def fit(self, X: ArrayLike, rank: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Learn from ranked items.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Sparse features become dense, up to a gigabyte.
        rank : array-like of shape (n,)
            1 is best. Items of one query that share a rank make no pair.
        qid : array-like of shape (n,), optional
            Query ids: only items of one query are compared. None: one query.

        Returns
        -------
        self
        """

    @abstractmethod
    def worths(self, Q: ArrayLike) -> Floats:
        """Scores of the items of one query, shape (n,); large is good.

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
            Items of equal worth share the best of their ranks, as teams of equal points
            do in a table.

        Raises
        ------
        ValueError
            If Q has other features than the items of the fit, or values that are not
            finite or above 1e100 in size.
        """
        return positions(self.worths(Q))
