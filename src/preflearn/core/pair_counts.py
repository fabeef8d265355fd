"""Weighted counts of pairs, from which `metrics` computes its measures."""

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
    """Total weights of pairs above each threshold, from the largest one down."""

    magnitudes: Floats  # distinct abs(differences), decreasing
    hits: Floats  # weight of preferences with at least this difference, in the right direction
    false_alarms: Floats  # weight of ties with at least this difference
    preferences: float  # weight of all preferences
    ties: float  # weight of all ties


def sweep_threshold(
    y: ArrayLike, differences: ArrayLike, sample_weight: ArrayLike | None
) -> Sweep:
    """Sort pairs by abs(difference) and sum their weights, in O(m log m)."""
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
    """Weighted numbers of item pairs per query, by truth and prediction."""

    # (q,) pairs that differ in truth: counted twice if predicted in the opposite order,
    # once if predicted as tied
    wrong: Floats
    separated: Floats  # (q,) pairs that are tied in truth and differ in the prediction
    strict: Floats  # (q,) pairs that differ in truth
    tied: Floats  # (q,) pairs that are tied in truth


def count_pairs(
    true: ArrayLike,
    predicted: ArrayLike,
    qid: ArrayLike | None,
    sample_weight: ArrayLike | None,
    name: str,
) -> PairCounts:
    """Count the item pairs of each query, in O(n log n).

    `name` is the name of the true values in messages.
    """
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
    """Return the order by query and value, faster than `numpy.lexsort`."""
    order = np.argsort(values)
    if qid is None:
        return order
    return order[np.argsort(qid[order], kind="stable")]


def _changes(values: NDArray, qid: NDArray | None, order: Ids) -> NDArray[np.bool_]:
    """Return where the value or the query changes in this order; True at the start."""
    keys = [key[order] for key in (values, qid) if key is not None]
    return np.append(True, np.any([key[1:] != key[:-1] for key in keys], axis=0))


@njit
def _count(query, new, place, weights):
    """Return the fields of `PairCounts` for items sorted by query and true value.

    `new` is True where the query or the true value changes.

    Predictions are numbered 1, 2, ... from the largest of the last query down to the
    smallest of the first; equal predictions have the same place. Each item is compared
    with the items before it. A Fenwick tree holds the weights of those earlier items
    that have a smaller true value: element k is the sum of the weights at the places from k - (k & -k) + 1
    to k.
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
        if new[
            i
        ]:  # the items so far now have smaller true values, or belong to another query
            for j in range(begin, i):
                equal[place[j]] = 0.0
                less[place[j]] += weights[j]
                k = place[j]
                # ends, since k >= 1 and each step at least doubles its last bit
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
        while k > 0:  # each step removes one bit
            larger += tree[k]
            k &= k - 1
        wrong[q] += w * (2 * larger + less[p])
        strict[q] += w * all_less
        tied[q] += w * all_equal
        separated[q] += w * (all_equal - equal[p])
        equal[p] += w
        all_equal += w
    return counts
