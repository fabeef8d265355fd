"""The squared loss of pairs as a quadratic form v'Lv, and its mixture with regression.

With a Laplacian L a form is L~ = mix I + (1 - mix) L, eq. 5 of [Tsivtsivadze2013]_. It
has two kinds, of which only products are asked for: within a query of q items, L v = q
(v - mean of v). Both know

n, mix, trace : numbers of items, from 0 (ranking) to 1 (regression), and the trace of L~;
height : rows of R, where R'R = L~;
compares : whether there is a pair of items;
times(V), root(V) : L~ V and R V, for V of shape (n,) or (n, k); squares(V) : the
diagonal of V'L~V, shape (k,), or v'L~v; without_offsets(y) : scores up to constants that
L does not see, so that equal scores of a query are exactly 0.

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from preflearn.core.validation import (
    LARGEST,
    Floats,
    Ids,
    as_floats,
    check_array,
    query_numbers,
    raise_if_any,
)


class QueryForm:
    """All pairs of items of one query, each of weight 1; a product costs O(n).

    Parameters
    ----------
    query : ndarray of int, shape (n,)
        From 0 on.
    mix : float

    Examples
    --------
    >>> form = QueryForm(np.array([0, 0, 1]))
    >>> form.times(np.array([1.0, 3.0, 5.0])).tolist()
    [-2.0, 2.0, 0.0]
    """

    def __init__(self, query: Ids, mix: float = 0.0):
        self.n = self.height = len(query)
        self.mix = mix
        self.query = query
        self.sizes = np.bincount(query).astype(np.float64)
        self.compares = bool(self.sizes.max() > 1)
        self.trace = float((1 - mix) * self.sizes @ (self.sizes - 1) + mix * self.n)
        self._weight = (1 - mix) * self.sizes[query]
        self._root = np.sqrt(mix + self._weight)
        if len(self.sizes) > 1:
            entries = (np.ones(self.n), query, np.arange(self.n + 1))
            self._members = sparse.csr_array(
                entries, shape=(self.n, len(self.sizes))
            ).T.tocsr()

    def means(self, V: Floats) -> Floats:
        """The mean of each item's query, for V of shape (n,) or (n, k)."""
        if len(self.sizes) == 1:
            return V.sum(axis=0, keepdims=True) / self.n
        return ((self._members @ V).T / self.sizes).T[self.query]

    def centred(self, V: Floats) -> Floats:
        """V less the mean of each query."""
        return V - self.means(V)

    def times(self, V: Floats) -> Floats:
        product = (self._weight * self.centred(V).T).T
        if self.mix:
            product = product + self.mix * V
        return product

    def root(self, V: Floats) -> Floats:
        """R V with R = R' and R R = L~.

        Within a query of q items the eigenvalues of L~ are mix, at the constant vector,
        and mix + (1 - mix) q.
        """
        means = self.means(V)
        product = (self._root * (V - means).T).T
        if self.mix:
            product = product + np.sqrt(self.mix) * means
        return product

    def squares(self, V: Floats) -> Floats:
        return _squared(self.root(V))

    def without_offsets(self, y: Floats) -> Floats:
        return y - y[np.unique(self.query, return_index=True)[1]][self.query]


class GraphForm:
    """Pairs with weights, by the Laplacian of a symmetric sparse matrix W; a product
    costs O(edges).

    Parameters
    ----------
    W : sparse array of shape (n, n)
        Symmetric, not negative; the diagonal does not count.
    mix : float
    """

    def __init__(self, W: sparse.csr_array, mix: float = 0.0):
        edges = sparse.triu(W, k=1).tocoo()
        weights = np.sqrt((1 - mix) * edges.data)
        rows = np.arange(edges.nnz)
        self.n = len(W.indptr) - 1
        self.mix = mix
        self.compares = edges.nnz > 0
        self.trace = float(2 * np.square(weights).sum() + mix * self.n)
        ends = np.concatenate([rows, rows]), np.concatenate([edges.row, edges.col])
        # sqrt(weight) B: L~ v is computed by differences, which a constant in v does
        # not spoil.
        values = np.concatenate([weights, -weights])
        self._edges = sparse.csr_array((values, ends), shape=(edges.nnz, self.n))
        self._adjoint = self._edges.T.tocsr()
        self.height = edges.nnz
        if mix:
            self.height += self.n

    def times(self, V: Floats) -> Floats:
        product = self._adjoint @ (self._edges @ V)
        if self.mix:
            product = product + self.mix * V
        return product

    def root(self, V: Floats) -> Floats:
        """R V with R'R = L~: a row for each edge, and n more where mix is not 0."""
        rows = self._edges @ V
        if self.mix:
            rows = np.concatenate([rows, np.sqrt(self.mix) * V])
        return rows

    def squares(self, V: Floats) -> Floats:
        return _squared(self.root(V))

    def without_offsets(self, y: Floats) -> Floats:
        return y - np.median(y)


Form = QueryForm | GraphForm


def form_of(n: int, qid: ArrayLike | None, graph: object | None, mix: float) -> Form:
    """The form of n items whose pairs are those of equal query ids, or the edges of a
    graph.

    Parameters
    ----------
    qid : array-like of shape (n,), optional
        None: one query.
    graph : sparse or dense matrix W of shape (n, n), optional
        In place of qid: the weight of each ordered pair, not negative; the diagonal
        does not count. With the loss 1/2 sum_ij W_ij (...)² a directed graph is that of
        (W + W') / 2.

    Raises
    ------
    ValueError
        If both are given, a weight is negative, below 1e-100 but not 0, or above 1e100,
        or where no pair is left and mix < 1.
    """
    if graph is not None and qid is not None:
        raise ValueError(
            "both qid and graph are given; expected one of them, which says what is compared"
        )
    form = QueryForm(query_numbers(qid, n), mix)
    if graph is not None:
        weights = _graph_weights(graph, n)
        if mix < 1:  # regression does not depend on the graph
            form = GraphForm(weights, mix)
    if mix < 1 and not form.compares:
        what = "an edge"
        if graph is None:
            what = "a query with two items"
        raise ValueError(
            f"no two of the {n} items are compared; expected {what} (regression needs none: mix=1, or RLS)"
        )
    return form


def _graph_weights(graph: object, n: int) -> sparse.csr_array:
    """(W + W') / 2, checked."""
    meaning = "the weight of each pair of items"
    if not sparse.issparse(graph):
        graph = check_array(graph, "graph", (n, n), meaning)  # pyright: ignore[reportArgumentType]
    W = sparse.coo_array(graph)
    values = as_floats(W.data, "graph")
    if W.shape != (n, n):
        raise ValueError(f"graph has shape {W.shape}; expected ({n}, {n}): {meaning}")
    wrong = ~((values == 0) | ((values >= 1 / LARGEST) & (values <= LARGEST)))
    raise_if_any(wrong, W, "graph", f"0, or from {1 / LARGEST:g} to {LARGEST:g}")
    W = sparse.coo_array((values, (W.row, W.col)), shape=(n, n)).tocsr()
    W.eliminate_zeros()
    return sparse.csr_array((W + W.T) / 2)


def _squared(V: Floats) -> Floats:
    return np.einsum("i...,i...->...", V, V)
