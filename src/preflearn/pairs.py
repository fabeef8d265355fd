"""Pairs of items, and the incidence matrix B that every method of the book is built on.

A method asks B for four things only: B f, B'v, B'WB and B K B' (`Incidence`).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from preflearn.core.compilation import njit
from preflearn.core.validation import (
    Floats,
    Ids,
    as_array,
    as_floats,
    check_array,
    check_choice,
    check_index,
    check_items,
    check_labels,
    check_left,
    check_query_ids,
    check_selection,
    check_shape,
)

__all__ = ["DifferenceGram", "Incidence", "Pairs", "as_pairs"]

_BLOCK = 1 << 15  # pairs


class Incidence:
    """The incidence matrix B of m comparisons among n items, as an operator.

    Row k is +1 at the first item i of pair k and -1 at the second item j. So::

        (B f)_k = f_i - f_j,    (B'v)_i = sum of v_k where i is first - sum of v_k where i is second,
        f' B'WB f = sum over k of w_k (f_i - f_j)²,    (B K B')_kl = <x_i - x_j, x_i' - x_j'>

    for k = (i, j), l = (i', j') and K_ab = <x_a, x_b>. It takes no memory beside the
    (m, 2) index. Results are float64, whatever goes in; NaN goes through.

    Parameters
    ----------
    index : ndarray of int, shape (m, 2)
        First and second item of each pair; not checked again (`Pairs` checks it).
    n_items : int

    Raises
    ------
    ValueError
        By the methods, if what B meets has not one row an item, or a pair.

    Examples
    --------
    >>> B = Incidence(np.array([[0, 1], [2, 0]]), 3)
    >>> B.differences([1.0, 4.0, 9.0]), B.adjoint([1.0, 10.0])
    (array([-3.,  8.]), array([-9., -1., 10.]))
    >>> B.laplacian([1.0, 1.0]).toarray()
    array([[ 2., -1., -1.],
           [-1.,  1.,  0.],
           [-1.,  0.,  1.]])
    >>> B.gram(np.diag([1.0, 2.0, 3.0])).diagonal()
    array([3., 4.])
    """

    __slots__ = ("first", "index", "second", "shape")

    def __init__(self, index: Ids, n_items: int) -> None:
        self.index = index
        self.shape = (len(index), n_items)
        self.first = index[:, 0]
        self.second = index[:, 1]

    def __getitem__(self, rows: NDArray | slice) -> Incidence:
        """B of some of the pairs."""
        return Incidence(self.index[rows], self.shape[1])

    def differences(self, f: ArrayLike) -> Floats:
        """B f: the differences of scores, first minus second; f (n,) gives (m,), f (n,
        k) gives (m, k)."""
        f = _rows(f, "f", self.shape[1])
        values = np.empty((len(self.index), *f.shape[1:]))
        # no copy of m rows beside the result
        for start in range(0, len(values), _BLOCK):
            first, second = self.index[start : start + _BLOCK].T
            np.subtract(f[first], f[second], out=values[start : start + _BLOCK])
        return values

    def adjoint(self, v: ArrayLike) -> Floats:
        """B'v: what each item gains from the pairs it is first in, and loses in those
        it is second in.

        v (m,) gives (n,), v (m, k) gives (n, k).
        """
        m, n = self.shape
        v = _rows(v, "v", m)
        if v.ndim == 2:
            return self.matrix().T @ v  # one pass over the pairs for all columns
        gains = np.bincount(self.first, v, n)
        losses = np.bincount(self.second, v, n)
        return gains - losses  # pyright: ignore[reportReturnType]  (weighted: floats)

    def laplacian(self, weights: ArrayLike) -> sparse.csr_array:
        """B'WB with W = diag(weights), shape (n, n): the Laplacian of the graph with
        weighted edges."""
        m, n = self.shape
        weights = as_floats(weights, "weights")
        check_shape(weights, "weights", (m,), "one weight a pair")
        off = sparse.coo_array(
            (-weights, (self.first, self.second)), shape=(n, n)
        ).tocsr()
        degree = np.bincount(self.first, weights, n) + np.bincount(
            self.second, weights, n
        )
        return (off + off.T + sparse.diags_array(degree)).tocsr()

    def gram(self, K: Floats) -> DifferenceGram:
        """B K B' for a kernel matrix K of the items, shape (n, n): inner products of
        differences."""
        return DifferenceGram(self, K)

    def matrix(self) -> sparse.csr_array:
        """B itself, sparse."""
        m = self.shape[0]
        data = np.tile([1.0, -1.0], m)
        return sparse.csr_array(
            (data, self.index.ravel(), np.arange(0, 2 * m + 1, 2)), shape=self.shape
        )

    def occurring(self) -> Ids:
        """The ids of the items that occur in a pair, in order."""
        marks = np.zeros(self.shape[1], dtype=bool)
        marks[self.index] = True
        return np.flatnonzero(marks)

    def compacted(self) -> tuple[Ids, Incidence]:
        """The ids of the items that occur in a pair, in order, and B over these columns
        only."""
        ids = self.occurring()
        if len(ids) == self.shape[1]:
            return ids, self
        place = np.empty(self.shape[1], dtype=np.int64)
        place[ids] = np.arange(len(ids))
        return ids, Incidence(place[self.index], len(ids))


class DifferenceGram:
    """B K B' without the m x m matrix: its diagonal, its blocks, and its products with
    vectors.

    Parameters
    ----------
    B : Incidence
    K : ndarray of shape (n, n)
        Symmetric.
    """

    __slots__ = ("B", "K")

    def __init__(self, B: Incidence, K: Floats) -> None:
        n = B.shape[1]
        check_shape(K, "K", (n, n), "one row and one column an item")
        self.B = B
        self.K = np.ascontiguousarray(K)

    def diagonal(self) -> Floats:
        """Squared norms of the differences, shape (m,): K_ii + K_jj - 2 K_ij for a pair
        (i, j)."""
        own = np.diag(self.K)
        first = self.B.first
        second = self.B.second
        return own[first] + own[second] - 2 * self.K[first, second]

    def block(self, rows: Ids, columns: Ids) -> Floats:
        """The entries of these pairs (rows) with those (columns), shape (len(rows),
        len(columns))."""
        # the shorter side first, since it meets all n columns of K
        if len(rows) > len(columns):
            return self.block(columns, rows).T
        return _block(self.K, self.B.index[rows], self.B.index[columns])

    def times(self, v: ArrayLike) -> Floats:
        """B K B' v; v (m,) gives (m,), v (m, k) gives (m, k)."""
        return self.B.differences(self.K @ self.B.adjoint(v))


@njit
def _block(K, rows, columns):
    block = np.empty((len(rows), len(columns)))
    row = np.empty(len(K))
    for i in range(len(rows)):
        first = K[rows[i, 0]]
        second = K[rows[i, 1]]
        for j in range(len(K)):
            row[j] = first[j] - second[j]
        for j in range(len(columns)):
            block[i, j] = row[columns[j, 0]] - row[columns[j, 1]]
    return block


def _rows(values: ArrayLike, name: str, length: int) -> Floats:
    array = as_floats(values, name)
    check_shape(array, name, (length,) if array.ndim < 2 else (length, "k"))
    return array


class Pairs:
    """Comparisons as edges of a graph: `items` are its vertices, `index` its edges.

    Parameters
    ----------
    items : array-like or sparse matrix of shape (n, p)
        Feature vectors of the n distinct items. Sparse ones are kept as CSR, and so
        used by learners with a linear kernel; other methods make them dense, if that
        takes no more than a gigabyte.
    index : array-like of int, shape (m, 2)
        Row numbers in `items` of the first and the second item of each pair.

    Raises
    ------
    ValueError
        If features are not finite, an index is out of range, a pair compares an item
        with itself, or there is no pair.

    Notes
    -----
    A label y belongs to each pair: +1 first better, -1 second better, 0 no difference.
    [Venuto2017]_ writes the pair as (x, x'), and its y = 1 says that x' is better: read
    x' as first and x as second.

    Pairs share items and so are not independent. To judge a learner hold out items,
    queries or dates, by the splitters of `preflearn.core`, and standardise features by
    its `OnItems` inside of the folds. Its `check_leakage` counts the test pairs of any
    other split whose items are both in training.

    Examples
    --------
    >>> pairs = Pairs([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]], [[0, 1], [2, 0]])
    >>> pairs.differences()
    array([[ 1., -2.],
           [ 2.,  3.]])
    >>> pairs.incidence().toarray().astype(int)
    array([[ 1, -1,  0],
           [-1,  0,  1]])
    """

    __slots__ = ("index", "items")

    def __init__(self, items: ArrayLike, index: ArrayLike) -> None:
        self.items = check_items(items, keep=True)
        self.index = check_index(index, self.items.shape[0])

    @classmethod
    def _trusted(cls, items: NDArray, index: NDArray) -> Pairs:
        """Pairs of arrays that were checked before."""
        pairs = cls.__new__(cls)
        pairs.items = items
        pairs.index = index
        return pairs

    @classmethod
    def from_arrays(cls, first: ArrayLike, second: ArrayLike) -> Pairs:
        """Pairs from two (m, p) arrays: row i of `first` was compared with row i of
        `second`."""
        first = check_items(first, "first", keep=True)
        second = check_items(second, "second", keep=True)
        check_shape(second, "second", first.shape, "the same as of first")
        m = first.shape[0]
        some = sparse.issparse(first) or sparse.issparse(second)
        items: Any = (
            sparse.vstack([first, second], "csr")
            if some
            else np.vstack([first, second])
        )
        return cls._trusted(items, np.arange(2 * m).reshape(2, m).T)

    @classmethod
    def from_scores(
        cls,
        X: ArrayLike,
        scores: ArrayLike,
        qid: ArrayLike | None = None,
        ties: Literal["drop", "keep"] = "drop",
    ) -> tuple[Pairs, NDArray[np.int8]]:
        """All pairs of items of the same query, labelled by the sign of the difference
        of scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        scores : array-like of shape (n,)
            Larger is better.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.
        ties : {"drop", "keep"}
            What becomes of two items with equal scores: no pair, or a pair with label
            0.

        Returns
        -------
        pairs : Pairs
            In each pair the first item stands before the second one in X.
        y : ndarray of shape (m,)

        Raises
        ------
        ValueError
            On wrong shapes, values that are not finite, or where no pair is left.

        Examples
        --------
        >>> pairs, y = Pairs.from_scores([[0.0], [1.0], [2.0]], [5, 5, 7], ties="keep")
        >>> pairs.index.tolist(), y.tolist()
        ([[0, 1], [0, 2], [1, 2]], [0, -1, -1])
        """
        items = check_items(X, "X", keep=True)
        scores = check_array(scores, "scores", items.shape[:1], "one value an item")
        qid = check_query_ids(qid, len(scores))
        check_choice(ties, "ties", ("drop", "keep"))
        order = np.arange(len(scores))
        ends = np.array([len(scores)])
        if qid is not None:
            order = np.argsort(qid, kind="stable")
            query = qid[order]
            ends = np.append(np.flatnonzero(query[1:] != query[:-1]) + 1, ends)
        index, y = _pairs_of_queries(order, ends, scores[order], ties == "keep")
        check_left(len(index), len(scores), " with different scores" * (ties == "drop"))
        return cls._trusted(items, index), y

    @classmethod
    def from_rankings(
        cls, X: ArrayLike, rank: ArrayLike, qid: ArrayLike | None = None
    ) -> tuple[Pairs, NDArray[np.int8]]:
        """All pairs of items of the same query, labelled by rank; rank 1 is best.

        Items that share a rank make no pair. Parameters, results and errors as in
        `from_scores`.

        Examples
        --------
        >>> pairs, y = Pairs.from_rankings([[0.0], [1.0], [2.0]], [1, 3, 2])
        >>> pairs.index.tolist(), y.tolist()
        ([[0, 1], [0, 2], [1, 2]], [1, 1, -1])
        """
        items = check_items(X, "X", keep=True)
        rank = check_array(rank, "rank", items.shape[:1], "one value an item")
        return cls.from_scores(items, -rank, qid)

    @property
    def first(self) -> NDArray[np.float64]:
        """Features of the first items, shape (m, p)."""
        return self.items[self.index[:, 0]]

    @property
    def second(self) -> NDArray[np.float64]:
        """Features of the second items, shape (m, p)."""
        return self.items[self.index[:, 1]]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(m, 2, p), the shape of the equivalent dense array."""
        return (len(self.index), 2, self.items.shape[1])

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        n, p = self.items.shape
        return f"Pairs({len(self)} pairs of {n} items, {p} features)"

    def __array__(
        self, dtype: np.dtype | None = None, copy: bool | None = None
    ) -> NDArray:
        if copy is False:
            raise ValueError(
                "a dense (m, 2, p) array of Pairs can only be made by copying"
            )
        return np.asarray(check_items(self.items)[self.index], dtype=dtype)

    def __getitem__(self, key: int | slice | ArrayLike) -> Pairs:
        """The pairs selected by a mask, by ids or by a slice, over the same items."""
        key = check_selection(key, len(self))
        return self._trusted(self.items, self.index[key])

    def with_items(self, items: NDArray) -> Pairs:
        """The same comparisons of the same items, told by other features, shape (n,
        p')."""
        items = check_items(items, keep=True)
        check_shape(items, "items", (self.items.shape[0], "p"), "one row an item")
        return self._trusted(items, self.index)

    def differences(self) -> NDArray[np.float64]:
        """First minus second, shape (m, p): the incidence matrix times the items."""
        return (
            self.B.matrix() @ self.items
            if sparse.issparse(self.items)
            else self.B.differences(self.items)
        )

    @property
    def B(self) -> Incidence:  # noqa: N802
        """The incidence matrix as an operator, for B f, B'v, B'WB and B K B'."""
        return Incidence(self.index, self.items.shape[0])

    def incidence(self) -> sparse.csr_array:
        """The (m, n) incidence matrix B, sparse: +1 at the first item of a pair, -1 at
        the second.

        For scores f of the items, B @ f are the differences of scores, and B.T @ B is
        the Laplacian of the comparison graph.
        """
        return self.B.matrix()

    def swapped(self) -> Pairs:
        """The same comparisons with first and second exchanged; labels change their
        sign."""
        return self._trusted(self.items, self.index[:, ::-1])

    def flipped(self, y: ArrayLike) -> tuple[Pairs, NDArray[np.int8]]:
        """The binary problem of eq. 8 of [Venuto2017]_: significant difference or not.

        Preferences are turned so that the better item comes first, with label +1; each
        tie appears in both orders, with label -1.

        Parameters
        ----------
        y : array-like of shape (m,)

        Returns
        -------
        flipped : Pairs
            The pairs with y = 1, those with y = -1 (swapped), the ties, and the ties
            swapped.
        y_flipped : ndarray of shape (m + number of ties,)

        Examples
        --------
        >>> flipped, labels = Pairs([[1.0], [2.0], [3.0]], [[0, 1], [1, 2]]).flipped([-1, 0])
        >>> flipped.index.tolist(), labels.tolist()
        ([[1, 0], [1, 2], [2, 1]], [1, -1, -1])
        """
        y = check_labels(y, len(self))
        better, worse, ties = (np.flatnonzero(y == label) for label in (1, -1, 0))
        found = self[np.concatenate([better, worse, ties, ties])]
        end = len(self) - len(ties)
        for turned in (slice(len(better), end), slice(len(self), None)):
            found.index[turned] = found.index[turned, ::-1].copy()
        labels = np.ones(len(found), dtype=np.int8)
        labels[end:] = -1
        return found, labels


def as_pairs(pairs: Pairs | ArrayLike, keep: bool = False) -> Pairs:
    """Return `pairs` as non-empty Pairs; an (m, 2, p) array holds first and second
    items.

    Items become dense if they are sparse, unless `keep` says that the caller takes them
    as they are.
    """
    if not isinstance(pairs, Pairs):
        array: Any = pairs if sparse.issparse(pairs) else as_array(pairs, "pairs")
        meaning = "first and second item of each pair, or Pairs; of items rank_function gives scores"
        check_shape(array, "pairs", ("m", 2, "p"), meaning)
        pairs = Pairs.from_arrays(array[:, 0], array[:, 1])
    if len(pairs) == 0:
        raise ValueError("there are no pairs; expected at least one")
    return (
        pairs.with_items(check_items(pairs.items))
        if sparse.issparse(pairs.items) and not keep
        else pairs
    )


@njit
def _pairs_of_queries(order, ends, scores, keep_ties):
    """Pairs of items of one query, and which of the two has the larger score.

    Items in this order have these scores; queries end at these places. Each item meets
    those behind it.
    """
    total = 0
    start = 0
    for end in ends:
        for i in range(start, end):
            for j in range(i + 1, end):
                total += keep_ties or scores[i] != scores[j]
        start = end
    index = np.empty((total, 2), dtype=np.int64)
    labels = np.empty(total, dtype=np.int8)
    k = 0
    start = 0
    for end in ends:
        for i in range(start, end):
            for j in range(i + 1, end):
                if keep_ties or scores[i] != scores[j]:
                    index[k, 0], index[k, 1] = order[i], order[j]
                    labels[k] = (
                        1
                        if scores[i] > scores[j]
                        else (-1 if scores[i] < scores[j] else 0)
                    )
                    k += 1
        start = end
    return index, labels
