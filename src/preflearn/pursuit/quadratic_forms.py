"""The squared loss of pairs as a quadratic form, and its mix with regression.

With the Laplacian L of the pairs, the matrix of the form is L~ = mix I + (1 - mix) L,
eq. 5 of [Tsivtsivadze2013]_. Only products are needed: within a query of q items, L v =
q (v - mean of v).

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from preflearn.core.validation import Floats, Ids, query_numbers, require_pairs


class QueryForm:
    """The form L~ for all pairs of items of the same query; a product takes O(n).

    Parameters
    ----------
    query : ndarray of int, shape (n,)
        Query numbers of the items, from 0 on.
    mix : float
        Mixing weight, from 0 (ranking) to 1 (regression).

    Attributes
    ----------
    n : int
        Number of items.
    sizes : ndarray of shape (queries,)
        Number of items of each query.
    trace : float
        Trace of L~.

    Examples
    --------
    >>> form = QueryForm(np.array([0, 0, 1]))
    >>> form.times(np.array([1.0, 3.0, 5.0])).tolist()
    [-2.0, 2.0, 0.0]
    """

    def __init__(self, query: Ids, mix: float = 0.0):
        self.n = len(query)
        self.mix = mix
        self.query = query
        self.sizes = np.bincount(query).astype(np.float64)
        self.trace = float((1 - mix) * self.sizes @ (self.sizes - 1) + mix * self.n)
        self._weight = (1 - mix) * self.sizes[query]
        self._root = np.sqrt(mix + self._weight)
        if len(self.sizes) > 1:
            entries = (np.ones(self.n), query, np.arange(self.n + 1))
            self._members = sparse.csr_array(
                entries, shape=(self.n, len(self.sizes))
            ).T.tocsr()

    def means(self, V: Floats) -> Floats:
        """Return the mean over each item's query, for V of shape (n,) or (n, k)."""
        if len(self.sizes) == 1:
            return V.sum(axis=0, keepdims=True) / self.n
        return ((self._members @ V).T / self.sizes).T[self.query]

    def centred(self, V: Floats) -> Floats:
        """Return V minus the mean of each query."""
        return V - self.means(V)

    def times(self, V: Floats) -> Floats:
        """Return L~ V, for V of shape (n,) or (n, k)."""
        product = (self._weight * self.centred(V).T).T
        if self.mix:
            product = product + self.mix * V
        return product

    def root(self, V: Floats) -> Floats:
        """Return R V, where R is the symmetric square root of L~.

        Within a query of q items the eigenvalues of L~ are mix, at the constant vector,
        and mix + (1 - mix) q.
        """
        if self.mix == 1:
            return V
        means = self.means(V)
        product = (self._root * (V - means).T).T
        if self.mix:
            product = product + np.sqrt(self.mix) * means
        return product

    def trace_of_gram(self, Z: Any) -> float:
        """Return the trace of R Z Z'R for dense or sparse Z.

        In a query of q items, R multiplies deviations from the mean by the square
        root of mix + (1 - mix) q, and the mean by the square root of mix.
        """
        members = sparse.csr_array(
            (np.ones(self.n), (self.query, np.arange(self.n))),
            shape=(len(self.sizes), self.n),
        )
        sums = members @ Z
        of_means = np.asarray((sums * sums).sum(axis=1)).ravel() / self.sizes
        squares = members @ np.asarray((Z * Z).sum(axis=1)).ravel()
        weight = self.mix + (1 - self.mix) * self.sizes
        return float(weight @ (squares - of_means) + self.mix * of_means.sum())

    def squares(self, V: Floats) -> Floats:
        """Return the diagonal of V'L~V, shape (k,), or v'L~v."""
        rows = self.root(V)
        return np.einsum("i...,i...->...", rows, rows)

    def without_offsets(self, y: Floats) -> Floats:
        """Subtract the score of the first item of each query.

        Equal scores of a query then become exactly 0.
        """
        return y - y[np.unique(self.query, return_index=True)[1]][self.query]


def form_of(n: int, qid: ArrayLike | None, mix: float) -> QueryForm:
    """Return the form of n items with these query ids; None means one query.

    Raises
    ------
    ValueError
        If no query has two items and mix < 1.
    """
    form = QueryForm(query_numbers(qid, n), mix)
    if mix < 1:
        n_compared = int(np.count_nonzero(form.sizes > 1))
        require_pairs(n_compared, n, " (mix=1 and RLS need no pairs)")
    return form
