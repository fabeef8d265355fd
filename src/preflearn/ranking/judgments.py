"""Judgments of pairs, merged to distinct judgments with weights, and judges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from preflearn.core.validation import Floats, Ids, check_query_ids, require
from preflearn.pairs import Incidence

_BLOCK = 1 << 16  # number of judgments that are counted at a time


class Judgments(NamedTuple):
    """Items, label, and weight of each judgment."""

    B: Incidence
    y: NDArray[np.int8]
    weights: Floats


class Judges(NamedTuple):
    """The distinct judges, and their weights for each distinct judgment."""

    ids: Any  # (n_judges,)
    weights: sparse.csr_array  # (n_judges, n_kinds)


def merge_equal(
    given: Judgments, cluster: ArrayLike | None = None
) -> tuple[Judgments, Judges | None]:
    """Merge equal judgments, and return them with their judges.

    Models are assumed to have the same loss for (i, j, y) and (j, i, -y). For n items
    there are 3n(n - 1)/2 distinct judgments. If there are fewer judgments than that,
    they are not merged.
    """
    m, n = given.B.shape
    n_kinds = 3 * n * (n - 1) // 2
    if n_kinds > m:
        return given, _judges(cluster, np.arange(m), given.weights, m)
    kind = np.empty(0, dtype=np.int64)
    if cluster is not None:
        kind = np.empty(m, dtype=np.int64)
    total = np.zeros(n_kinds)
    for start in range(0, m, _BLOCK):
        part = slice(start, start + _BLOCK)
        numbers = _kind_numbers(given.B.index[part], given.y[part])
        total += np.bincount(numbers, given.weights[part], n_kinds)
        if cluster is not None:
            kind[part] = numbers
    kept = np.flatnonzero(total)
    index, labels = _from_kind_numbers(kept)
    merged = Judgments(Incidence(index, n), labels, total[kept])
    place = np.zeros(n_kinds, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    if cluster is not None:
        kind = place[kind]
    return merged, _judges(cluster, kind, given.weights, len(kept))


def _kind_numbers(index: Ids, y: NDArray[np.int8]) -> Ids:
    """Return 3 (j(j - 1)/2 + i) + y + 1 for items i < j and the label y of (i, j)."""
    first, second = index.T
    larger = np.maximum(first, second)
    pair = larger * (larger - 1) // 2 + np.minimum(first, second)
    return 3 * pair + np.where(first < second, y, -y) + 1


def _from_kind_numbers(numbers: Ids) -> tuple[Ids, NDArray[np.int8]]:
    """Return the items (i, j) with i < j, and the labels: inverse of `_kind_numbers`."""
    pair, label = np.divmod(numbers, 3)
    # the largest j with j(j - 1)/2 <= pair
    larger = ((1 + np.sqrt(1 + 8 * pair)) / 2).astype(np.int64)
    smaller = pair - larger * (larger - 1) // 2
    return np.column_stack([smaller, larger]), (label - 1).astype(np.int8)


def _judges(
    cluster: ArrayLike | None, kind: Ids, weights: Floats, n_kinds: int
) -> Judges | None:
    ids = check_query_ids(cluster, len(weights), "cluster", "cluster id", "pair")
    if ids is None:
        return None
    judge, distinct = pd.factorize(ids)
    n = int(judge.max()) + 1
    table = sparse.csr_array((weights, (judge, kind)), shape=(n, n_kinds))
    return Judges(distinct, table)


def outer_sum(G: Any) -> Floats:
    """Return G'G for gradients G of judges, shape (n_judges, k), dense or sparse.

    A multiplication takes about fifty times as long in a sparse product as in a dense
    one. Blocks of rows are therefore made dense if at least one in seven entries is
    nonzero.
    """
    (n, k) = G.shape
    if not sparse.issparse(G):
        return G.T @ G
    if 7 * G.nnz < n * k:
        return (G.T @ G).toarray()
    total = np.zeros((k, k))
    rows = 1 + _BLOCK // k
    for start in range(0, n, rows):
        block = G[start : start + rows].toarray()
        total += block.T @ block
    return total


def check_judges(judges: Judges | None, least: int = 1) -> Judges:
    """Return the judges of a fit; raise ValueError for fewer than `least` judges."""
    if judges is None:
        raise ValueError(
            "the model was fitted without judges; pass their ids as cluster= to fit"
        )
    n = len(judges.ids)
    require(n >= least, n, "the number of clusters", f"at least {least}")
    return judges
