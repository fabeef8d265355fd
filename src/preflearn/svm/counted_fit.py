"""Linear ranking SVM on all item pairs of each query, without listing them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from preflearn.core.compilation import njit
from preflearn.core.expansion import KernelChoice
from preflearn.core.validation import (
    Floats,
    Ids,
    check_array,
    check_items,
    check_query_ids,
    check_scale,
)
from preflearn.pairs import Pairs
from preflearn.svm.counted_pairs import CountedPairs, Queries
from preflearn.svm.near_margin import NearMargin, are_many, solve_near_margin


class CountedItems(NamedTuple):
    """Validated scored items, sorted by query and score."""

    X: Any  # (n, p), dense or sparse
    y: Floats  # (n,)
    qid: NDArray | None
    queries: Queries  # queries of the items sorted by `order`
    order: Ids  # sorts the items by query and y

    @classmethod
    def validate(
        cls, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None
    ) -> CountedItems:
        """Check the arguments of `fit`."""
        items = check_items(X, "X", keep="few")
        y = check_array(y, "scores", items.shape[:1], "one value per item")
        ids = check_query_ids(qid, len(y))
        queries, order = Queries.of(y, ids)
        return cls(items, y, ids, queries, order)

    @property
    def are_many(self) -> bool:
        """Return whether counting the pairs is faster than listing them."""
        return are_many(self.queries.n_preferences(), self.X.shape)

    def solve(self, choice: KernelChoice, C: float, tol: float) -> CountedFit:
        """Fit the ranking SVM to all pairs with different y."""
        X = self.X[self.order]
        squares = X.data if sparse.issparse(X) else X
        check_scale(squares, "X")
        solution = solve_near_margin(choice, CountedPairs(self.queries, C), X, tol)
        return CountedFit(self.y, self.qid, self.order, C, solution)


class CountedFit(NamedTuple):
    """Solution of a fit to counted pairs, with the dual weights of the pairs."""

    y: Floats
    qid: NDArray | None
    order: Ids
    C: float
    solution: NearMargin

    def dual_coef(self) -> Floats:
        """Return the dual weights of the pairs, u = sum_i dual_coef_i d_i.

        The pairs are those of `Pairs.from_scores` with ties="keep".
        """
        n = len(self.y)
        f = np.empty(n)
        f[self.order] = self.solution.f
        pairs, labels = Pairs.from_scores(f[:, None], self.y, self.qid, ties="keep")
        near = self.order[self.solution.index]
        keys = near.min(axis=1) * n + near.max(axis=1)
        rising = np.argsort(keys)
        weights = self.solution.dual[rising]
        low = 1 - self.solution.width
        beyond = self.C * self.solution.fraction
        return _dual_coef(pairs.index, labels, f, low, beyond, keys[rising], weights)


@njit
def _dual_coef(index, labels, f, low, beyond, keys, weights):
    """Return the weights of pairs; pairs near the margin are looked up by their keys."""
    coef = np.zeros(len(labels))
    for k in range(len(labels)):
        if labels[k] == 0:
            continue
        i = index[k, 0]
        j = index[k, 1]
        if labels[k] * (f[i] - f[j]) < low:
            coef[k] = labels[k] * beyond
            continue
        place = np.searchsorted(keys, min(i, j) * len(f) + max(i, j))
        if place < len(keys) and keys[place] == min(i, j) * len(f) + max(i, j):
            coef[k] = labels[k] * weights[place]
    return coef
