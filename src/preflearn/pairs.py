"""Pairs of items, and the incidence matrix B, on which every method is built.

Methods use four products of B: B f, B'v, B'WB and B K B' (`Incidence`).
"""

from __future__ import annotations

from numbers import Integral
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

__all__ = ["DifferenceGram", "Incidence", "Pairs", "as_pairs", "ranks_to_scores"]

_BLOCK = 1 << 15  # pairs
_LARGEST_EXACT = 2.0**53  # integers up to here are floats


class Incidence:
    """The incidence matrix B of m comparisons among n items, as an operator.

    Row k is +1 at the first item i of pair k and -1 at the second item j. So::

        (B f)_k = f_i - f_j,    (B'v)_i = sum of v_k where i is first - sum of v_k where i is second,
        f' B'WB f = sum over k of w_k (f_i - f_j)²,    (B K B')_kl = <x_i - x_j, x_i' - x_j'>

    for k = (i, j), l = (i', j') and K_ab = <x_a, x_b>. It needs no memory except for the
    (m, 2) index. Results are float64; NaN is passed on.

    Parameters
    ----------
    index : ndarray of int, shape (m, 2)
        First and second item of each pair; not checked again (`Pairs` checks it).
    n_items : int

    Raises
    ------
    ValueError
        If an argument of a method does not have one row per item, or per pair.

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
        """B f: score differences, first minus second; f (n,) gives (m,), (n, k) gives (m,
        k)."""
        f = _check_rows(f, "f", self.shape[1])
        values = np.empty((len(self.index), *f.shape[1:]))
        # in blocks, without copies of m rows
        for start in range(0, len(values), _BLOCK):
            first, second = self.index[start : start + _BLOCK].T
            np.subtract(f[first], f[second], out=values[start : start + _BLOCK])
        return values

    def adjoint(self, v: ArrayLike) -> Floats:
        """B'v: the sum over the pairs in which an item is first, less that over those
        in which it is second.

        v (m,) gives (n,), v (m, k) gives (n, k).
        """
        m, n = self.shape
        v = _check_rows(v, "v", m)
        if v.ndim == 2:
            return self.matrix().T @ v  # one pass over the pairs for all columns
        return np.bincount(self.first, v, n) - np.bincount(self.second, v, n)  # pyright: ignore[reportReturnType]  (weighted: floats)

    def laplacian(self, weights: ArrayLike) -> sparse.csr_array:
        """B'WB with W = diag(weights), shape (n, n): the Laplacian of the graph with
        weighted edges."""
        m, n = self.shape
        weights = as_floats(weights, "weights")
        check_shape(weights, "weights", (m,), "one weight per pair")
        off = sparse.coo_array(
            (-weights, (self.first, self.second)), shape=(n, n)
        ).tocsr()
        degree = np.bincount(self.first, weights, n)
        degree = degree + np.bincount(self.second, weights, n)
        return (off + off.T + sparse.diags_array(degree)).tocsr()

    def gram(self, K: Floats) -> DifferenceGram:
        """B K B' for a kernel matrix K of the items, shape (n, n): inner products of
        differences."""
        return DifferenceGram(self, K)

    def matrix(self) -> sparse.csr_array:
        """B itself, sparse."""
        m = self.shape[0]
        data = np.tile([1.0, -1.0], m)
        columns = self.index.flatten()  # a copy, which SciPy may sort in place
        return sparse.csr_array(
            (data, columns, np.arange(0, 2 * m + 1, 2)), shape=self.shape
        )

    def occurring(self) -> Ids:
        """The ids of the items that occur in a pair, in order."""
        marks = np.zeros(self.shape[1], dtype=bool)
        marks[self.index] = True
        return np.flatnonzero(marks)

    def compacted(self) -> tuple[Ids, Incidence]:
        """The ids of the items that occur in a pair, and B with only their columns."""
        ids = self.occurring()
        if len(ids) == self.shape[1]:
            return ids, self
        place = np.empty(self.shape[1], dtype=np.int64)
        place[ids] = np.arange(len(ids))
        return ids, Incidence(place[self.index], len(ids))


class DifferenceGram:
    """B K B' as an operator: its diagonal, its blocks, and its products with vectors.

    Parameters
    ----------
    B : Incidence
    K : ndarray of shape (n, n)
        Symmetric.
    """

    __slots__ = ("B", "K")

    def __init__(self, B: Incidence, K: Floats) -> None:
        n = B.shape[1]
        check_shape(K, "K", (n, n), "one row and one column per item")
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
        """The entries of some rows and columns, shape (len(rows), len(columns))."""
        # each row takes a pass over all n columns of K, so rows are the shorter side
        if len(rows) > len(columns):
            return self.block(columns, rows).T
        return _gather_block(self.K, self.B.index[rows], self.B.index[columns])

    def times(self, v: ArrayLike) -> Floats:
        """B K B' v; v (m,) gives (m,), v (m, k) gives (m, k)."""
        return self.B.differences(self.K @ self.B.adjoint(v))


@njit
def _gather_block(K, rows, columns):
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


def _check_rows(values: ArrayLike, name: str, length: int) -> Floats:
    array = as_floats(values, name)
    shape: tuple[int | str, ...] = (length,)
    if array.ndim >= 2:
        shape = (length, "k")
    check_shape(array, name, shape)
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
        items: Any
        if sparse.issparse(first) or sparse.issparse(second):
            items = sparse.vstack([first, second], "csr")
        else:
            items = np.vstack([first, second])
        return cls._trusted(items, np.arange(2 * m).reshape(2, m).T)

    @classmethod
    def from_scores(
        cls,
        X: ArrayLike,
        scores: ArrayLike,
        qid: ArrayLike | None = None,
        ties: Literal["drop", "keep"] = "drop",
    ) -> tuple[Pairs, NDArray[np.int8]]:
        """All pairs of items of one query, labelled by the sign of their score difference.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        scores : array-like of shape (n,)
            Larger is better.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.
        ties : {"drop", "keep"}
            Treatment of two items with equal scores: no pair, or a pair with label 0.

        Returns
        -------
        pairs : Pairs
            In each pair the first item is before the second one in X.
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
        scores = _check_scores(scores, items.shape[0])
        qid = check_query_ids(qid, len(scores))
        check_choice(ties, "ties", ("drop", "keep"))
        order = np.arange(len(scores))
        ends = np.array([len(scores)])
        if qid is not None:
            order = np.argsort(qid, kind="stable")
            query = qid[order]
            ends = np.append(np.flatnonzero(query[1:] != query[:-1]) + 1, ends)
        index, y = _pairs_of_queries(order, ends, scores[order], ties == "keep")
        condition = ""
        if ties == "drop":
            condition = " with different scores"
        check_left(len(index), len(scores), condition)
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
        rank = check_array(rank, "rank", items.shape[:1], "one value per item")
        return cls.from_scores(items, ranks_to_scores(rank), qid)

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
        """The same comparisons of the same items with other features, shape (n, p')."""
        items = check_items(items, keep=True)
        check_shape(items, "items", (self.items.shape[0], "p"), "one row per item")
        return self._trusted(items, self.index)

    def differences(self) -> NDArray[np.float64]:
        """First minus second, shape (m, p): the incidence matrix times the items."""
        if sparse.issparse(self.items):
            return self.B.matrix() @ self.items
        return self.B.differences(self.items)

    @property
    def B(self) -> Incidence:  # noqa: N802
        """The incidence matrix as an operator, for B f, B'v, B'WB and B K B'."""
        return Incidence(self.index, self.items.shape[0])

    def incidence(self) -> sparse.csr_array:
        """The sparse (m, n) incidence matrix B: +1 at the first item, -1 at the second.

        For scores f of the items, B @ f are the score differences, and B.T @ B is the
        Laplacian of the comparison graph.
        """
        return self.B.matrix()

    def swapped(self) -> Pairs:
        """The same comparisons with first and second exchanged, so labels change sign."""
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
        swapped = self.index[:, ::-1]
        parts = self.index[better], swapped[worse], self.index[ties], swapped[ties]
        index = np.concatenate(parts)
        labels = np.ones(len(index), dtype=np.int8)
        labels[len(better) + len(worse) :] = -1
        return self._trusted(self.items, index), labels


def ranks_to_scores(rank: ArrayLike, qid: ArrayLike | None = None) -> Floats:
    """Scores of ranked items: minus the rank, so that larger is better.

    Every learner of items takes scores, `fit(X, y, qid)` with larger y for better
    items; write `fit(X, ranks_to_scores(rank), qid)` where 1 is best. Shared ranks
    become equal scores, and gaps between ranks stay as they are.

    Parameters
    ----------
    rank : array-like of shape (n,)
        Ranks; smaller is better. They may start again in each query.
    qid : array-like of shape (n,), optional
        Query ids. The scores do not depend on them, since learners compare items of
        one query only; that there is one id per item is checked.

    Returns
    -------
    scores : ndarray of shape (n,)

    Raises
    ------
    ValueError
        On ranks that are not finite, or another number of query ids.

    Examples
    --------
    >>> ranks_to_scores([1, 3, 1, 2, 1], qid=[7, 7, 7, 8, 8]).tolist()
    [-1.0, -3.0, -1.0, -2.0, -1.0]
    """
    scores = -check_array(rank, "rank", ("n",), "one rank per item")
    check_query_ids(qid, len(scores))
    return scores


def as_pairs(pairs: Pairs | ArrayLike, keep: bool = False) -> Pairs:
    """Return `pairs` as non-empty Pairs; an (m, 2, p) array holds first and second
    items.

    Sparse items become dense, unless the caller takes them too and asks to `keep` them.
    """
    if not isinstance(pairs, Pairs):
        array: Any = pairs
        if not sparse.issparse(pairs):
            array = as_array(pairs, "pairs")
        meaning = (
            "first and second item of each pair, or Pairs; for items use rank_function"
        )
        check_shape(array, "pairs", ("m", 2, "p"), meaning)
        pairs = Pairs.from_arrays(array[:, 0], array[:, 1])
    if len(pairs) == 0:
        raise ValueError("there are no pairs; expected at least one")
    if sparse.issparse(pairs.items) and not keep:
        return pairs.with_items(check_items(pairs.items))
    return pairs


def _check_scores(scores: ArrayLike, n_items: int) -> NDArray[np.float64]:
    """Return scores as floats; integers that floats merge become their ranks.

    Only the order of scores counts, and the floats next to 2^53 are 2 apart.
    """
    checked = check_array(scores, "scores", (n_items,), "one value per item")
    if (np.abs(checked) < _LARGEST_EXACT).all():
        return checked
    exact = np.asarray(scores)
    is_integer = exact.dtype.kind in "iu" or all(
        isinstance(value, Integral) for value in exact.tolist()
    )
    if not is_integer:
        return checked
    return np.unique(exact, return_inverse=True)[1].astype(np.float64)


@njit
def _pairs_of_queries(order, ends, scores, keep_ties):
    """Pairs of items of one query, and which of the two has the larger score.

    `scores` are those of the items in `order`, in which query q ends before `ends[q]`.
    Each item is compared with the later ones of its query.
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
                    index[k, 0] = order[i]
                    index[k, 1] = order[j]
                    labels[k] = np.sign(scores[i] - scores[j])
                    k += 1
        start = end
    return index, labels
