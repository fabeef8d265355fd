"""Counts for the measures of `metrics`: labelled pairs above a threshold, and pairs of
ranked items."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.compilation import njit
from preflearn.core.validation import (
    Floats,
    Ids,
    check_array,
    check_labels,
    check_query_ids,
    check_weights,
)


class Sweep(NamedTuple):
    """Weights of pairs above a falling threshold, at each distinct abs(difference)."""

    magnitudes: Floats  # distinct abs(differences), decreasing
    hits: Floats  # preferences at least as large and in the right direction
    false_alarms: Floats  # ties at least as large
    preferences: float  # weight of all preferences
    ties: float  # weight of all ties


def sweep_threshold(
    y: ArrayLike, differences: ArrayLike, sample_weight: ArrayLike | None
) -> Sweep:
    """Sort pairs by abs(difference) and add up their weights, in O(m log m)."""
    differences = check_array(
        differences, "differences", ("m",), "one difference per pair"
    )
    y = check_labels(y, len(differences))
    weights = check_weights(sample_weight, len(y))
    kept = weights > 0
    if not kept.all():
        differences = differences[kept]
        y = y[kept]
        weights = weights[kept]
    magnitudes = np.abs(differences)
    order = np.argsort(magnitudes)[::-1]
    magnitudes = magnitudes[order]
    y = y[order]
    first_larger = (differences > 0)[order]
    right = (y != 0) & (magnitudes > 0) & (first_larger == (y > 0))
    # the last of each run of equal values
    last = np.append(np.flatnonzero(magnitudes[1:] != magnitudes[:-1]), len(y) - 1)
    # The totals come from sums in the same order, so that a perfect rate is 1 exactly.
    hits, preferences, false_alarms = (
        np.cumsum(np.where(mask, weights[order], 0.0))
        for mask in (right, y != 0, y == 0)
    )
    return Sweep(
        magnitudes[last],
        hits[last],
        false_alarms[last],
        float(preferences[-1]),
        float(false_alarms[-1]),
    )


class PairCounts(NamedTuple):
    """Weighted numbers of item pairs in each of q queries, by truth and prediction."""

    # (q,) differ in truth: 2 for opposite orders, 1 for a tie in prediction
    wrong: Floats
    separated: Floats  # (q,) tied in truth, differ in prediction
    strict: Floats  # (q,) differ in truth
    tied: Floats  # (q,) tied in truth


def count_pairs(
    true: ArrayLike,
    predicted: ArrayLike,
    qid: ArrayLike | None,
    sample_weight: ArrayLike | None,
    name: str,
) -> PairCounts:
    """Count the item pairs of each query, in O(n log n); messages call the truth `name`."""
    true = check_array(true, name, ("n",), "one value per item")
    n = len(true)
    predicted = check_array(predicted, "predicted", (n,), "one value per item")
    qid = check_query_ids(qid, n)
    weights = check_weights(sample_weight, n)
    rising = _order(predicted, qid)
    place = np.empty(n, dtype=np.int64)
    place[rising[::-1]] = np.cumsum(_changes(predicted, qid, rising[::-1]))
    order = _order(true, qid)
    query = np.zeros(n, dtype=np.int64)
    if qid is not None:
        query = np.cumsum(_changes(qid, None, order)) - 1
    return PairCounts(
        *_count(query, _changes(true, qid, order), place[order], weights[order])
    )


def _order(values: Floats, qid: NDArray | None) -> Ids:
    """The order by query and by value; faster than `numpy.lexsort`."""
    order = np.argsort(values)
    if qid is None:
        return order
    return order[np.argsort(qid[order], kind="stable")]


def _changes(values: NDArray, qid: NDArray | None, order: Ids) -> NDArray[np.bool_]:
    """Where, in this order, the value or the query differs from the one before; True at
    the first."""
    keys = [key[order] for key in (values, qid) if key is not None]
    return np.append(True, np.any([key[1:] != key[:-1] for key in keys], axis=0))


@njit
def _count(query, new, place, weights):
    """The fields of `PairCounts`, of items in the order of query and truth; `new` where
    one of both changes.

    The places of predictions are 1, 2, ... from the largest of the last query down to
    the least of the first; equal predictions share a place. Each item is compared with
    the items before it. A Fenwick tree holds the weights of those with less truth:
    element k sums the weights at the places from k - (k & -k) + 1 to k.
    """
    wrong, separated, strict, tied = counts = np.zeros((4, query[-1] + 1))
    tree = np.zeros(place.max() + 1)
    less = np.zeros(place.max() + 1)
    equal = np.zeros(place.max() + 1)
    begin = 0
    all_less = 0.0
    all_equal = 0.0
    for i in range(len(place)):
        q = query[i]
        p = place[i]
        w = weights[i]
        if new[i]:  # the items so far have less truth now, or belong to another query
            for j in range(begin, i):
                equal[place[j]] = 0.0
                less[place[j]] += weights[j]
                k = place[j]
                # k is at least 1, and at least doubles its last bit
                while k < len(tree):
                    tree[k] += weights[j]
                    k += k & -k
            if i > 0 and q == query[i - 1]:
                all_less += all_equal
            else:
                all_less = 0.0
            begin = i
            all_equal = 0.0
        larger = 0.0
        k = p - 1
        while k > 0:  # one bit less each time
            larger += tree[k]
            k &= k - 1
        wrong[q] += w * (2 * larger + less[p])
        strict[q] += w * all_less
        tied[q] += w * all_equal
        separated[q] += w * (all_equal - equal[p])
        equal[p] += w
        all_equal += w
    return counts
