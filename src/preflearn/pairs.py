"""Pairs of items, and the incidence matrix B that all methods use.

The class `Incidence` computes the four products that the methods need: B f, B'v, B'WB,
and B K B'.
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
    check_query_ids,
    check_selection,
    check_shape,
    require_pairs,
)

__all__ = ["DifferenceGram", "Incidence", "Pairs", "as_pairs", "ranks_to_scores"]

_BLOCK = 1 << 15  # pairs
_LARGEST_EXACT = 2.0**53  # largest integer up to which all integers are floats


class Incidence:
    """The incidence matrix B of m comparisons among n items, as a linear operator.

    Use it to compute products with B without storing the matrix; `Pairs.B` returns it.

    Row k is +1 at the first item i of pair k and -1 at the second item j. Therefore::

        (B f)_k = f_i - f_j,    (B'v)_i = sum of v_k where i is first - sum of v_k where i is second,
        f' B'WB f = sum over k of w_k (f_i - f_j)²,    (B K B')_kl = <x_i - x_j, x_i' - x_j'>

    for k = (i, j), l = (i', j') and K_ab = <x_a, x_b>. It needs no memory except for
    the (m, 2) index. Results are float64, and NaN in the input gives NaN in the result.

    Parameters
    ----------
    index : ndarray of int, shape (m, 2)
        Row numbers of the first and second item of each pair. They are not checked here
        (`Pairs` checks them).
    n_items : int
        Number n of items.

    Raises
    ------
    ValueError
        If the argument of a method does not have one row per item, or one row per pair.

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
        """Return the incidence matrix of some of the pairs."""
        return Incidence(self.index[rows], self.shape[1])

    def differences(self, f: ArrayLike) -> Floats:
        """Return the score differences B f, first minus second.

        The shape is (m,) for f of shape (n,), and (m, k) for (n, k).
        """
        f = _check_rows(f, "f", self.shape[1])
        values = np.empty((len(self.index), *f.shape[1:]))
        # in blocks, without copies of m rows
        for start in range(0, len(values), _BLOCK):
            first, second = self.index[start : start + _BLOCK].T
            np.subtract(f[first], f[second], out=values[start : start + _BLOCK])
        return values

    def adjoint(self, v: ArrayLike) -> Floats:
        """Return B'v, the signed sums of v over the pairs of each item.

        Pairs in which the item is first count with +1, pairs in which it is second with
        -1.

        The shape is (n,) for v of shape (m,), and (n, k) for (m, k).
        """
        m, n = self.shape
        v = _check_rows(v, "v", m)
        if v.ndim == 2:
            return self.matrix().T @ v  # one pass over the pairs for all columns
        return np.bincount(self.first, v, n) - np.bincount(self.second, v, n)  # pyright: ignore[reportReturnType]  (weighted: floats)

    def laplacian(self, weights: ArrayLike) -> sparse.csr_array:
        """Return the graph Laplacian B'WB with W = diag(weights)."""
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
        """Return the operator B K B' for a kernel matrix K of the items, shape (n, n)."""
        return DifferenceGram(self, K)

    def matrix(self) -> sparse.csr_array:
        """Return B as a sparse matrix."""
        m = self.shape[0]
        data = np.tile([1.0, -1.0], m)
        columns = self.index.flatten()  # a copy, which SciPy may sort in place
        return sparse.csr_array(
            (data, columns, np.arange(0, 2 * m + 1, 2)), shape=self.shape
        )

    def occurring(self) -> Ids:
        """Return the sorted ids of the items that occur in a pair."""
        marks = np.zeros(self.shape[1], dtype=bool)
        marks[self.index] = True
        return np.flatnonzero(marks)

    def compacted(self) -> tuple[Ids, Incidence]:
        """Return ids of the items that occur, and B with only their columns."""
        ids = self.occurring()
        if len(ids) == self.shape[1]:
            return ids, self
        place = np.empty(self.shape[1], dtype=np.int64)
        place[ids] = np.arange(len(ids))
        return ids, Incidence(place[self.index], len(ids))


class DifferenceGram:
    """The Gram matrix B K B' of item differences, as a linear operator.

    Use it to get the diagonal, blocks, and products with vectors without storing the
    (m, m) matrix; `Incidence.gram` returns it.

    Parameters
    ----------
    B : Incidence
        Incidence matrix of the pairs.
    K : ndarray of shape (n, n)
        Symmetric kernel matrix of the items.
    """

    __slots__ = ("B", "K")

    def __init__(self, B: Incidence, K: Floats) -> None:
        n = B.shape[1]
        check_shape(K, "K", (n, n), "one row and one column per item")
        self.B = B
        self.K = np.ascontiguousarray(K)

    def diagonal(self) -> Floats:
        """Return the squared norms of the differences, shape (m,).

        They are K_ii + K_jj - 2 K_ij for a pair (i, j).
        """
        own = np.diag(self.K)
        first = self.B.first
        second = self.B.second
        return own[first] + own[second] - 2 * self.K[first, second]

    def block(self, rows: Ids, columns: Ids) -> Floats:
        """Return the entries of some rows and columns."""
        # each row takes a pass over all n columns of K, so let rows be the shorter side
        if len(rows) > len(columns):
            return self.block(columns, rows).T
        return _gather_block(self.K, self.B.index[rows], self.B.index[columns])

    def times(self, v: ArrayLike) -> Floats:
        """Return B K B'v, for v of shape (m,) or (m, k)."""
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
    """Pairs of compared items: a graph with items as vertices and pairs as edges.

    Use it to pass comparisons to any learner. It stores the features of each item once,
    however many pairs the item is in.

    Parameters
    ----------
    items : array-like or sparse matrix of shape (n, p)
        Feature vectors of the n distinct items. A sparse matrix is stored as CSR, and
        learners with a linear kernel use it in this form. Other methods make it dense
        if this takes at most one gigabyte.
    index : array-like of int, shape (m, 2)
        Row numbers, in `items`, of the first and the second item of each pair.

    Raises
    ------
    ValueError
        If features are not finite, a row number is out of range, a pair compares an
        item with itself, or the pairs are empty.

    Notes
    -----
    Each pair has a label y: +1 first better, -1 second better, 0 no difference.
    [Venuto2017]_ writes a pair as (x, x'), where y = 1 means that x' is better. Its x'
    is the first item here, and its x is the second.

    Pairs share items, so they are not independent. To evaluate a learner, hold out
    items, queries, or dates with the splitters of `preflearn.core`. Standardize
    features inside the folds with `OnItems`. For any other split, `check_leakage`
    counts the test pairs whose items both occur in training pairs.

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
        """Make pairs from arrays that were already checked."""
        pairs = cls.__new__(cls)
        pairs.items = items
        pairs.index = index
        return pairs

    @classmethod
    def from_arrays(cls, first: ArrayLike, second: ArrayLike) -> Pairs:
        """Make pairs from two (m, p) arrays, whose rows are compared one by one.

        Row i of `first` was compared with row i of `second`.
        """
        first = check_items(first, "first", keep=True)
        second = check_items(second, "second", keep=True)
        check_shape(second, "second", first.shape, "the shape of first")
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
        """Make all pairs of items of the same query, with labels from their scores.

        The label is the sign of the score difference, first minus second.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Features of the items.
        scores : array-like of shape (n,)
            Scores of the items; larger is better.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.
        ties : {"drop", "keep"}
            Treatment of two items with equal scores: no pair, or a pair with label 0.

        Returns
        -------
        pairs : Pairs
            All pairs; in each pair the first item precedes the second one in X.
        y : ndarray of shape (m,)

        Raises
        ------
        ValueError
            If shapes are wrong, values are not finite, or no pair is left.

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
        require_pairs(len(index), len(scores), condition)
        return cls._trusted(items, index), y

    @classmethod
    def from_rankings(
        cls, X: ArrayLike, rank: ArrayLike, qid: ArrayLike | None = None
    ) -> tuple[Pairs, NDArray[np.int8]]:
        """Make all pairs of items of the same query, with labels from ranks.

        Rank 1 is best.

        Items with equal ranks give no pair. Parameters, results, and errors are as in
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
                "Pairs cannot be converted to a dense (m, 2, p) array without a copy; "
                "do not pass copy=False"
            )
        return np.asarray(check_items(self.items)[self.index], dtype=dtype)

    def __getitem__(self, key: int | slice | ArrayLike) -> Pairs:
        """Select pairs by a mask, by ids, or by a slice; the items stay the same."""
        key = check_selection(key, len(self))
        return self._trusted(self.items, self.index[key])

    def with_items(self, items: NDArray) -> Pairs:
        """Return the same comparisons with other features of the items, shape (n, p')."""
        items = check_items(items, keep=True)
        check_shape(items, "items", (self.items.shape[0], "p"), "one row per item")
        return self._trusted(items, self.index)

    def differences(self) -> NDArray[np.float64]:
        """Return the feature differences, first minus second, shape (m, p)."""
        if sparse.issparse(self.items):
            return self.B.matrix() @ self.items
        return self.B.differences(self.items)

    @property
    def B(self) -> Incidence:  # noqa: N802
        """The incidence matrix as a linear operator, for B f, B'v, B'WB and B K B'."""
        return Incidence(self.index, self.items.shape[0])

    def incidence(self) -> sparse.csr_array:
        """Return the sparse (m, n) incidence matrix B.

        Each row is +1 at the first item of a pair and -1 at the second.

        For scores f of the items, B @ f are the score differences, and B.T @ B is the
        Laplacian of the comparison graph.
        """
        return self.B.matrix()

    def swapped(self) -> Pairs:
        """Exchange the first and second items; labels then change their sign."""
        return self._trusted(self.items, self.index[:, ::-1])

    def flipped(self, y: ArrayLike) -> tuple[Pairs, NDArray[np.int8]]:
        """Return the binary problem of eq. 8 of [Venuto2017]_: preference or tie.

        Preferences are oriented so that the better item comes first, and get the label
        +1. Each tie appears in both orders, with the label -1.

        Parameters
        ----------
        y : array-like of shape (m,)

        Returns
        -------
        flipped : Pairs
            The pairs with y = 1, the pairs with y = -1 (swapped), the ties, and the
            ties swapped.
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
    """Convert ranks (1 is best) to scores (larger is better).

    The scores are minus the ranks. The method `fit` of all learners from items takes
    scores, which are larger for better items. If you have ranks, pass
    `ranks_to_scores(rank)`. Equal ranks become equal scores, and gaps between ranks are
    kept.

    Parameters
    ----------
    rank : array-like of shape (n,)
        Ranks; smaller is better. They may start again in each query.
    qid : array-like of shape (n,), optional
        Query ids. They do not change the scores, since learners compare items of the
        same query only; only their number is checked.

    Returns
    -------
    scores : ndarray of shape (n,)

    Raises
    ------
    ValueError
        If ranks are not finite, or there is not one query id per item.

    Examples
    --------
    >>> ranks_to_scores([1, 3, 1, 2, 1], qid=[7, 7, 7, 8, 8]).tolist()
    [-1.0, -3.0, -1.0, -2.0, -1.0]
    """
    scores = -check_array(rank, "rank", ("n",), "one rank per item")
    check_query_ids(qid, len(scores))
    return scores


def as_pairs(pairs: Pairs | ArrayLike, keep: bool = False) -> Pairs:
    """Return Pairs, or an array of shape (m, 2, p), as non-empty Pairs.

    Sparse items become dense unless `keep` is True.
    """
    if not isinstance(pairs, Pairs):
        array: Any = pairs
        if not sparse.issparse(pairs):
            array = as_array(pairs, "pairs")
        meaning = "first and second item of each pair, or Pairs; for single items use rank_function"
        check_shape(array, "pairs", ("m", 2, "p"), meaning)
        pairs = Pairs.from_arrays(array[:, 0], array[:, 1])
    if len(pairs) == 0:
        raise ValueError("there are no pairs; expected at least one")
    if sparse.issparse(pairs.items) and not keep:
        return pairs.with_items(check_items(pairs.items))
    return pairs


def _check_scores(scores: ArrayLike, n_items: int) -> NDArray[np.float64]:
    """Return scores as floats; very large integers are replaced by their ranks.

    Above 2^53 different integers may become the same float. Only the order of scores
    counts, so ranks can replace them.
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
    """Return all pairs of items of the same query, and the sign of the difference.

    `scores` are the scores of the items in the order `order`, in which query q ends
    before position `ends[q]`. Each item is compared with the later items of its query.
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
