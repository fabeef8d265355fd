"""What the measures of `metrics` count: labelled pairs along a threshold, and pairs of ranked items."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import Floats, check_array, check_labels, check_query_ids, check_weights


class Sweep(NamedTuple):
    """Weights of what a falling threshold calls different, at each distinct abs(difference)."""

    magnitudes: Floats  # distinct abs(differences), decreasing
    hits: Floats  # preferences at least as large and in the right direction
    false_alarms: Floats  # ties at least as large
    preferences: float  # weight of all preferences
    ties: float  # weight of all ties


def sweep_threshold(y: ArrayLike, differences: ArrayLike, sample_weight: ArrayLike | None) -> Sweep:
    """Sort pairs by abs(difference) and add up their weights, in O(m log m)."""
    differences = check_array(differences, "differences", ("m",), "one difference a pair")
    y = check_labels(y, len(differences))
    weights = check_weights(sample_weight, len(y))
    kept = weights > 0
    if not kept.all():
        differences, y, weights = differences[kept], y[kept], weights[kept]
    magnitudes = np.abs(differences)
    order = np.argsort(-magnitudes)
    magnitudes, y, weights = magnitudes[order], y[order], weights[order]
    right = y * differences[order] > 0
    last = np.append(np.flatnonzero(np.diff(magnitudes)), len(y) - 1)  # of each run of equal values
    # The totals come from sums in the same order, so that a perfect rate is 1 exactly.
    hits, preferences, false_alarms = (
        np.cumsum(np.where(mask, weights, 0.0)) for mask in (right, y != 0, y == 0)
    )
    return Sweep(
        magnitudes[last], hits[last], false_alarms[last], float(preferences[-1]), float(false_alarms[-1])
    )


class PairCounts(NamedTuple):
    """Weighted numbers of pairs of items in each of q queries, by what truth and prediction say of them."""

    wrong: Floats  # (q,) differ in truth: 2 for opposite orders, 1 for a tie in prediction
    separated: Floats  # (q,) tied in truth, differ in prediction
    strict: Floats  # (q,) differ in truth
    tied: Floats  # (q,) tied in truth


def count_pairs(
    true: ArrayLike, predicted: ArrayLike, qid: ArrayLike | None, sample_weight: ArrayLike | None, name: str
) -> PairCounts:
    """Count pairs of items of one query, in O(n log n); `name` is the truth's in messages."""
    true = check_array(true, name, ("n",), "one value an item")
    n = len(true)
    predicted = check_array(predicted, "predicted", (n,), "one value an item")
    qid = check_query_ids(qid, n)
    weights = check_weights(sample_weight, n)
    query = np.zeros(n, dtype=np.int64) if qid is None else _codes(qid)
    t, p = _codes(true), _codes(predicted)
    in_query = _pairs_in_groups(query, query, weights)
    same_true = _pairs_in_groups(query * n + t, query, weights)
    same_predicted = _pairs_in_groups(query * n + p, query, weights)
    same_both = _pairs_in_groups(_codes(query * n + t) * n + p, query, weights)
    merged = np.maximum(same_predicted - same_both, 0.0)
    return PairCounts(
        wrong=2 * _inverted_pairs(t, p, query, weights) + merged,
        separated=np.maximum(same_true - same_both, 0.0),
        strict=np.maximum(in_query - same_true, 0.0),
        tied=same_true,
    )


def _codes(values: NDArray) -> NDArray[np.int64]:
    """Replace values by their places, 0 to k - 1, among the k distinct ones in order."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64).ravel()


def _pairs_in_groups(group: NDArray, query: NDArray, weights: Floats) -> Floats:
    """For each query the sum of w_i w_j over i < j of the same group, a group being part of a query."""
    _, member, code = np.unique(group, return_index=True, return_inverse=True)
    squares_of_sums = np.bincount(code, weights) ** 2
    sums_of_squares = np.bincount(code, weights**2)
    pairs = np.maximum(squares_of_sums - sums_of_squares, 0.0) / 2
    return np.bincount(query[member], pairs)  # pyright: ignore[reportReturnType]  (weighted: floats)


def _inverted_pairs(true: NDArray, predicted: NDArray, query: NDArray, weights: Floats) -> Floats:
    """For each query the sum of w_i w_j over pairs with true_i < true_j and predicted_i > predicted_j.

    Two codes differ first at one bit, counted from the top; the larger has a one there. So each bit in
    turn gives its share of the pairs: among items that agree in the bits above, ordered by truth, those
    with a zero that stand behind ones.
    """
    n_bits = int(predicted.max()).bit_length()
    key = (query << n_bits) + predicted
    order = np.lexsort((predicted, true, query))  # equal truths in predicted order: no inversion
    total = np.zeros(query.max() + 1)
    for bit in range(n_bits - 1, -1, -1):
        order = order[np.argsort(key[order] >> (bit + 1), kind="stable")]
        above, w = key[order] >> (bit + 1), weights[order]
        one = (key[order] >> bit) & 1
        ones_before = np.append(0.0, np.cumsum(one * w)[:-1])
        start = np.append(True, np.diff(above) != 0)
        ones_before -= ones_before[start][np.cumsum(start) - 1]
        total += np.bincount(query[order], np.where(one, 0.0, w * ones_before), minlength=len(total))
    return total
