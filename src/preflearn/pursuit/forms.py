"""The squared loss of pairs as a quadratic form v'Lv, and its mixture with regression.

Of the n x n Laplacian only products are asked for: within a query of q items, L v = q (v - mean of v).

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from preflearn.checks import LARGEST, Floats, Ids, as_floats, check_query_ids, check_shape, refuse, require


class QuadraticForm(Protocol):
    """L~ = mix I + (1 - mix) L, eq. 5 of [Tsivtsivadze2013]_, for a graph with the Laplacian L."""

    n: int
    mix: float

    def times(self, V: Floats) -> Floats:
        """L~ V, for V of shape (n,) or (n, k)."""
        ...

    def squares(self, V: Floats) -> Floats:
        """The diagonal of V'L~V, shape (k,), for V of shape (n, k); not negative."""
        ...


class QueryForm:
    """All pairs of items of one query, each of weight 1; a product costs O(n).

    Parameters
    ----------
    query : ndarray of int, shape (n,)
        From 0 on.
    mix : float
        From 0 (ranking) to 1 (regression).

    Examples
    --------
    >>> form = QueryForm(np.array([0, 0, 1]))
    >>> form.times(np.array([1.0, 3.0, 5.0])).tolist()
    [-2.0, 2.0, 0.0]
    """

    def __init__(self, query: Ids, mix: float = 0.0):
        self.n, self.mix, self.query = len(query), mix, query
        self.sizes = np.bincount(query).astype(np.float64)
        self._weight = (1 - mix) * self.sizes[query]
        if len(self.sizes) > 1:
            entries = (np.ones(self.n), query, np.arange(self.n + 1))
            self._members = sparse.csr_array(entries, shape=(self.n, len(self.sizes))).T.tocsr()

    def means(self, V: Floats) -> Floats:
        """The mean of each item's query, for V of shape (n,) or (n, k)."""
        if len(self.sizes) == 1:
            return V.mean(axis=0, keepdims=True)
        return ((self._members @ V) / _as_column(self.sizes, V))[self.query]

    def centred(self, V: Floats) -> Floats:
        """V less the mean of each query."""
        return V - self.means(V)

    def times(self, V: Floats) -> Floats:
        product = _as_column(self._weight, V) * self.centred(V)
        return product + self.mix * V if self.mix else product

    def squares(self, V: Floats) -> Floats:
        moved = self.centred(V)
        found = np.einsum("i,ij,ij->j", self._weight, moved, moved)
        return found + self.mix * np.einsum("ij,ij->j", V, V) if self.mix else found

    def root(self, V: Floats) -> Floats:
        """R V with R = R' and R R = L~: within a query of q items the eigenvalues of L~ are mix, at the
        constant vector, and mix + (1 - mix) q."""
        means = self.means(V)
        product = _as_column(np.sqrt(self.mix + self._weight), V) * (V - means)
        return product + np.sqrt(self.mix) * means if self.mix else product


class GraphForm:
    """Pairs with weights, by the Laplacian of a symmetric sparse matrix W; a product costs O(edges).

    Parameters
    ----------
    W : sparse array of shape (n, n)
        Symmetric, not negative.
    mix : float
    """

    def __init__(self, W: sparse.csr_array, mix: float = 0.0):
        self.n, self.mix = len(W.indptr) - 1, mix
        edges = sparse.triu(W, k=1).tocoo()
        weights = np.sqrt((1 - mix) * edges.data)
        n_edges, rows = len(weights), np.arange(len(weights))
        ends = np.concatenate([rows, rows]), np.concatenate([edges.row, edges.col])
        # sqrt(weight) B: L~ v is computed by differences, which a constant in v does not spoil.
        values = np.concatenate([weights, -weights])
        self._edges = sparse.csr_array((values, ends), shape=(n_edges, self.n))
        self._adjoint = self._edges.T.tocsr()

    def times(self, V: Floats) -> Floats:
        product = self._adjoint @ (self._edges @ V)
        return product + self.mix * V if self.mix else product

    def squares(self, V: Floats) -> Floats:
        found = np.square(self._edges @ V).sum(axis=0)
        return found + self.mix * np.einsum("ij,ij->j", V, V) if self.mix else found

    def root(self, V: Floats) -> Floats:
        """R V with R'R = L~: a row for each edge, and n more where mix is not 0."""
        rows = self._edges @ V
        return np.concatenate([rows, np.sqrt(self.mix) * V]) if self.mix else rows


def form_of(n: int, qid: ArrayLike | None, graph: object | None, mix: float) -> QueryForm | GraphForm:
    """The form of n items whose pairs are those of equal query ids, or the edges of a graph.

    Parameters
    ----------
    qid : array-like of shape (n,), optional
        None: one query.
    graph : sparse or dense matrix W of shape (n, n), optional
        In place of qid: the weight of each ordered pair, not negative; the diagonal does not count. With
        the loss 1/2 sum_ij W_ij (...)² a directed graph is that of (W + W') / 2.

    Raises
    ------
    ValueError
        If both are given, a weight is negative, below 1e-100 but not 0, or above 1e100,
        or where no pair is left and mix < 1.
    """
    if graph is None:
        checked = check_query_ids(qid, n)
        query = np.zeros(n, dtype=np.int64) if checked is None else np.unique(checked, return_inverse=True)[1]
        form = QueryForm(query, mix)
        pairs = bool((form.sizes > 1).any())
    else:
        if qid is not None:
            raise ValueError(
                "both qid and graph are given; expected one of them, which says what is compared"
            )
        W = graph_weights(graph, n)
        form, pairs = GraphForm(W, mix), W.nnz > 0
    if mix < 1 and not pairs:
        what = "an edge" if graph is not None else "a query with two items"
        raise ValueError(
            f"no two of the {n} items are compared; expected {what} (regression needs none: mix=1, or RLS)"
        )
    return form


def levelled(form: QueryForm | GraphForm, y: Floats) -> Floats:
    """Scores less that of the first item of their query, so that equal ones are 0 exactly."""
    if isinstance(form, GraphForm):  # which takes differences
        return y
    return y - y[np.unique(form.query, return_index=True)[1]][form.query]


def graph_weights(graph: object, n: int) -> sparse.csr_array:
    """(W + W') / 2 without its diagonal, checked."""
    if sparse.issparse(graph):
        W = sparse.coo_array(graph)
        values = as_floats(W.data, "graph")
    else:
        dense = as_floats(graph, "graph")  # pyright: ignore[reportArgumentType]  (checked there)
        check_shape(dense, "graph", (n, n), "the weight of each pair of items")
        W = sparse.coo_array(dense)
        values = W.data
        refuse(~np.isfinite(dense), dense, "graph", "finite weights")
    if W.shape != (n, n):
        raise ValueError(f"graph has shape {W.shape}; expected ({n}, {n}): the weight of each pair of items")
    wrong = ~((values == 0) | ((values >= 1 / LARGEST) & (values <= LARGEST)))
    if wrong.any():
        k = int(np.argmax(wrong))
        expected = f"0, or from {1 / LARGEST:g} to {LARGEST:g}"
        require(False, float(values[k]), f"the weight graph[{W.row[k]}, {W.col[k]}]", expected)
    kept = (W.row != W.col) & (values > 0)
    W = sparse.coo_array((values[kept], (W.row[kept], W.col[kept])), shape=(n, n)).tocsr()
    return sparse.csr_array((W + W.T) / 2)


def _as_column(values: NDArray, V: Floats) -> NDArray:
    return values if V.ndim == 1 else values[:, None]
