"""Shared parts of the analogy-based learners: checks, folds, and preferences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from preflearn.analogy.kernel import clipped
from preflearn.core.estimator import check_new_items
from preflearn.core.validation import Floats, Ids
from preflearn.pairs import Pairs
from preflearn.ranking.aggregation import check_degrees, fit_worths
from preflearn.ranking.base import RankingLearner, check_scored_items

Split = Literal["pairs", "objects"]

_UNIT = "features from 0 to 1: scale them, for example by DomainScaler"


class Fold(NamedTuple):
    """Numbers of the training examples and of the validation examples."""

    train: Ids
    valid: Ids


def halves(
    pairs: Pairs,
    split: Split,
    n_repeats: int,
    rng: np.random.Generator,
    copies: int = 1,
) -> Iterator[Fold]:
    """Yield folds of repeated 2-fold cross-validation, with copies of pairs together.

    With split="objects" the items are divided into halves. A pair belongs to a half if
    both of its items do, and is left out otherwise.
    """
    for _ in range(n_repeats):
        if split == "pairs":
            half = rng.permutation(len(pairs)) % 2
        else:  # 1/2 for pairs with one item in each half
            half = (rng.permutation(len(pairs.items)) % 2)[pairs.index].sum(axis=1) / 2
        first = np.flatnonzero(np.tile(half == 0, copies))
        second = np.flatnonzero(np.tile(half == 1, copies))
        yield Fold(first, second)
        yield Fold(second, first)


class PairwiseLearner(RankingLearner):
    """Base class of learners that predict and aggregate pairwise preferences.

    `bradley_terry` aggregates the degrees of preference between the items of a query.

    A subclass defines `_degrees(U)`.
    """

    def _preferences(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None
    ) -> tuple[Pairs, Floats]:
        """Return pairs with different scores, and better minus worse items, (m, d)."""
        X, scores, query = check_scored_items(X, y, qid)
        pairs, labels = Pairs.from_scores(clipped(X, "X", 0.0, _UNIT), scores, query)
        return pairs, pairs.differences() * labels[:, None]

    @abstractmethod
    def _degrees(self, U: Floats) -> Floats:
        """Return degrees for "the first item is better", shape (m,).

        U are the differences of the pairs, shape (m, d).
        """

    def preferences(self, Q: ArrayLike) -> Floats:
        """Predict the degrees of preference between the items of one query.

        Parameters
        ----------
        Q : array-like of shape (n, d)
            Features of all items of the query, in [0, 1].

        Returns
        -------
        P : ndarray of shape (n, n)
            Degrees P[i, j] in [0, 1] for "i is better than j". P[i, j] + P[j, i] is
            exactly 1, and P[i, i] is 1/2.

        Raises
        ------
        ValueError
            If Q has another number of features than in `fit`, or values outside [0, 1].
        """
        return self._degree_matrix(Q, "Q")

    def rank_function(self, X: ArrayLike) -> Floats:
        """Return log-worths of the items of one query, shape (n,); larger is better.

        The worths are computed from the matrix that `preferences` returns.
        """
        return fit_worths(check_degrees(self._degree_matrix(X, "X")))

    def _degree_matrix(self, Q: ArrayLike, name: str) -> Floats:
        Q = clipped(check_new_items(self, Q, name), name, 0.0, _UNIT)
        P = np.full((len(Q), len(Q)), 0.5)
        first, second = np.triu_indices(len(Q), 1)
        if len(first):
            P[first, second] = self._degrees(Q[first] - Q[second])
            P[second, first] = 1 - P[first, second]
        return P
