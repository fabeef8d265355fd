"""Measures compared with their definitions in plain loops, and their invariants."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

from preflearn import metrics
from preflearn.metrics import (
    best_threshold,
    comparison_auc,
    comparison_loss,
    comparison_roc,
    disagreement_error,
    log_loss,
    ranking_loss,
    threshold,
)

# Few distinct values, so that equal differences, zeros and equal weights are common.
LABEL = (-1, 0, 1)
WEIGHT = (0, 1, 2, 3)


def columns(*kinds, floats=(), min_size=1, max_size=14):
    """Return a strategy for rows of values from these lists and floats from these
    strategies, as one array per column.

    The values from the lists are drawn as one number per row, which is faster in
    hypothesis than one number per value.
    """
    sizes = [len(kind) for kind in kinds]
    place = st.integers(0, math.prod(sizes) - 1)
    rows = st.lists(st.tuples(place, *floats), min_size=min_size, max_size=max_size)

    def unpack(rows):
        places, *numbers = zip(*rows, strict=True)
        chosen = [
            np.array(kind)[k]
            for kind, k in zip(kinds, np.unravel_index(places, sizes), strict=True)
        ]
        return (*chosen, *(np.array(column) for column in numbers))

    return rows.map(unpack)


OF_FLOATS = columns(LABEL, WEIGHT, floats=[st.floats(-1e6, 1e6)]).map(
    lambda c: (c[0], c[2], c[1])
)
LABELLED = st.one_of(columns(LABEL, np.arange(-4.0, 5), WEIGHT), OF_FLOATS).filter(
    lambda c: c[2].any()
)
BOTH_CLASSES = LABELLED.filter(lambda c: (c[2] @ (c[0] == 0)) and (c[2] @ (c[0] != 0)))
SCORED = columns(
    range(6), range(-5, 6), range(3), WEIGHT, min_size=2, max_size=12
).filter(lambda c: c[3].any())


def fractions(values):
    return [Fraction(float(value)) for value in values]


def sign(value):
    return int(value > 0) - int(value < 0)


def exact_loss(y, predicted, weights):
    """Eq. 2 as a mean, in rational arithmetic."""
    wrong = sum(
        (w for a, b, w in zip(y, predicted, weights, strict=True) if a != b),
        Fraction(0),
    )
    return wrong / sum(weights)


# ---- Zero-one loss


@given(columns(LABEL, LABEL, WEIGHT).filter(lambda c: c[2].any()))
def test_loss_is_the_weighted_fraction_of_wrong_labels(data):
    y, predicted, weights = data
    assert comparison_loss(y, predicted, weights) == pytest.approx(
        float(exact_loss(y, predicted, fractions(weights))), abs=1e-15
    )
    assert comparison_loss(y, predicted) == pytest.approx(
        sklearn.metrics.zero_one_loss(y, predicted)
    )


# ---- The threshold


@given(st.lists(st.integers(-6, 6), max_size=9), st.integers(0, 5))
def test_threshold_is_eq_4(differences, tau):
    expected = [-1 if d < -tau else 1 if d > tau else 0 for d in differences]
    labels = threshold(differences, tau)
    assert labels.tolist() == expected
    assert labels.dtype == np.int8


def test_threshold_at_its_ends():
    assert threshold([-math.inf, -1.0, 0.0, 5e-324, math.inf], 0.0).tolist() == [
        -1,
        -1,
        0,
        1,
        1,
    ]
    assert threshold([-math.inf, 1e308, math.inf], math.inf).tolist() == [0, 0, 0]


# ---- ROC and AUC


def brute_rates(y, differences, weights, tau):
    """Return the false and true positive rate of t_tau from the cells of Table 3 of
    P1."""
    false_positive = true_positive = ties = preferences = Fraction(0)
    for label, d, w in zip(y, differences, fractions(weights), strict=True):
        predicted = 1 if d > tau else -1 if d < -tau else 0
        if label == 0:
            ties += w
            false_positive += w * (predicted != 0)
        else:
            preferences += w
            true_positive += w * (predicted == label)
    return false_positive / ties, true_positive / preferences


def brute_auc(y, differences, weights):
    """Return the mean over pairs (preference, tie) in the notes of comparison_auc, in
    O(m^2)."""
    area = total = Fraction(0)
    rows = list(zip(y, differences, fractions(weights), strict=True))
    for (label, d, w), (tie, d0, w0) in product(rows, rows):
        if label != 0 and tie == 0:
            total += w * w0
            if d * label > 0:
                area += w * w0 * Fraction(1 + sign(abs(d) - abs(d0)), 2)
    return area / total


@given(BOTH_CLASSES)
def test_roc_points_are_the_rates_at_their_thresholds(data):
    y, differences, weights = data
    fpr, tpr, thresholds = comparison_roc(y, differences, weights)
    magnitudes = np.unique(np.abs(differences[weights > 0]))
    assert thresholds.tolist() == [*magnitudes[::-1].tolist(), 0.0]
    # the closing point comes after tau = 0
    reached = len(thresholds) - (magnitudes[0] == 0)
    for x, height, tau in list(zip(fpr, tpr, thresholds, strict=True))[:reached]:
        expected = brute_rates(y, differences, weights, tau)
        assert (x, height) == pytest.approx(
            [float(rate) for rate in expected], abs=1e-15
        )
    assert (fpr[0], tpr[0], fpr[-1]) == (0.0, 0.0, 1.0)
    assert tpr[-1] == pytest.approx(
        float(brute_rates(y, differences, weights, 0.0)[1]), abs=1e-15
    )
    assert (np.diff(fpr) >= 0).all()
    assert (np.diff(tpr) >= 0).all()


@given(BOTH_CLASSES)
def test_auc_is_its_sum_over_preferences_and_ties(data):
    y, differences, weights = data
    expected = float(brute_auc(y, differences, weights))
    assert comparison_auc(y, differences, weights) == pytest.approx(expected, abs=1e-14)
    unweighted = float(brute_auc(y, differences, np.ones(len(y))))
    assert comparison_auc(y, differences) == pytest.approx(unweighted, abs=1e-14)


def loss_of_signs(y, differences, weights):
    return comparison_loss(y, np.sign(differences), weights)


@pytest.mark.parametrize("measure", [loss_of_signs, comparison_roc, best_threshold])
@given(data=BOTH_CLASSES, random=st.randoms())
def test_swaps_and_order_do_not_matter_and_repeats_count_as_weights(
    measure, data, random
):
    y, differences, weights = data
    found = measure(*data)
    order = random.sample(range(len(y)), len(y))
    flip = np.array([random.choice([-1, 1]) for _ in y])
    for other in (
        (flip * y, flip * differences, weights),
        (y[order], differences[order], weights[order]),
        (np.repeat(y, weights), np.repeat(differences, weights), None),
    ):
        for ours, theirs in zip(
            np.atleast_1d(found), np.atleast_1d(measure(*other)), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


# ---- The best threshold


def brute_threshold(y, differences, weights):
    """Return the lowest loss over all tau >= 0, the values at which the loss can
    change, and their losses."""
    values = sorted(
        {abs(float(d)) for d, w in zip(differences, weights, strict=True) if w} | {0.0}
    )
    exact = fractions(weights)
    losses = [exact_loss(y, threshold(differences, tau), exact) for tau in values]
    return min(losses), values, losses


@example((np.array([1, 0, 1, 0]), np.array([10.0, 4, 3, 0.5]), np.ones(4)))
@example((np.array([1, 0, 1, 0]), np.array([10.0, 9, 8, 0.5]), np.ones(4)))
@given(LABELLED)
def test_best_threshold_is_the_midpoint_of_the_widest_interval_of_least_loss(data):
    y, differences, weights = data
    least, values, losses = brute_threshold(y, differences, weights)
    # the loss is constant on [values[i], values[i + 1])
    runs = []
    start = None
    for i, loss in enumerate(losses):
        if loss == least and start is None:
            start = values[i]
        if start is not None and (loss != least or i + 1 == len(losses)):
            runs.append((start, values[i]))
            start = None
    # the first of the widest intervals
    low, high = max(runs, key=lambda run: run[1] - run[0])
    tau, loss = best_threshold(y, differences, weights)
    assert tau == pytest.approx((low + high) / 2, rel=1e-12)
    assert exact_loss(y, threshold(differences, tau), fractions(weights)) == least
    assert loss == pytest.approx(float(least), abs=1e-15)


@given(
    columns(LABEL, [0.0, 5e-324, 1e-323, 1.0, np.nextafter(1.0, 2.0), 1.7e308]),
    st.lists(st.floats(1e-3, 1e3), min_size=14, max_size=14),
)
def test_best_threshold_at_the_edges_of_floating_point(data, weights):
    y, differences = data
    weights = np.array(weights[: len(y)])
    least, _, _ = brute_threshold(y, differences, weights)
    tau, loss = best_threshold(y, differences, weights)
    reached = exact_loss(y, threshold(differences, tau), fractions(weights))
    assert float(reached) == pytest.approx(float(least), abs=1e-12)
    assert loss == pytest.approx(float(least), abs=1e-12)


def test_best_threshold_takes_losses_that_differ_by_rounding_as_equal():
    """0.1 + 0.2 - 0.3 is 6e-17 in floats. Predicting both ties and the preference has
    the same loss as predicting none of them."""
    assert best_threshold([0, 0, 1], [9.0, 8.0, 7.0], [0.1, 0.2, 0.3]) == pytest.approx(
        (3.5, 0.5)
    )


def test_best_threshold_between_adjacent_floats_is_the_lower_one():
    low = np.nextafter(1.0, 2.0)
    high = np.nextafter(low, 2.0)
    assert low + (high - low) / 2 == high
    assert best_threshold([1, 0], [high, low]) == (low, 0.0)


# ---- Rankings


def eq1(s, f, q, w, ties="keep"):
    """Return eq. 1 of P3 and the sum of W, by the double loop over ordered pairs."""
    error = total = Fraction(0)
    for i, j in product(range(len(s)), repeat=2):
        if i != j and q[i] == q[j] and (ties == "keep" or s[i] != s[j]):
            relevance = Fraction(int(w[i])) * int(w[j])
            error += relevance * abs(sign(s[i] - s[j]) - sign(f[i] - f[j])) / 2
            total += relevance
    return error, total


@given(SCORED, st.sampled_from(["keep", "drop"]))
def test_disagreement_is_eq_1(data, ties):
    s, f, q, w = data
    error, total = eq1(s, f, q, w, ties)
    if total == 0:
        with pytest.raises(ValueError, match=f"{len(s)} items.* at least two items"):
            disagreement_error(s, f, q, w, ties=ties)
        return
    assert disagreement_error(s, f, q, w, ties=ties) == pytest.approx(
        float(error / total), abs=1e-15
    )


def test_disagreement_without_ties_is_kendalls_tau_on_another_scale():
    rng = np.random.default_rng(0)
    s = rng.normal(size=10_000)
    f = s + rng.normal(size=10_000)
    tau = stats.kendalltau(s, f).statistic
    assert disagreement_error(s, f) == pytest.approx((1 - tau) / 2, abs=1e-12)


def brute_ranking_loss(pi, predicted):
    """Return the loss of section 2 of P5 for total orders: the double sum over ordered
    pairs, divided by n(n-1)/2."""
    n = len(pi)
    inversions = sum(
        pi[i] < pi[j] and predicted[i] > predicted[j]
        for i in range(n)
        for j in range(n)
    )
    return Fraction(int(inversions), n * (n - 1) // 2)


@given(
    st.integers(2, 9).flatmap(
        lambda n: st.tuples(st.permutations(range(n)), st.permutations(range(n)))
    )
)
def test_ranking_loss_of_total_orders(rankings):
    pi, predicted = map(np.array, rankings)
    loss = ranking_loss(pi + 1, predicted + 1)
    assert loss == pytest.approx(float(brute_ranking_loss(pi, predicted)), abs=1e-15)
    assert ranking_loss(predicted, pi) == loss
    assert loss == pytest.approx(disagreement_error(-pi, -predicted), abs=1e-15)
    assert ranking_loss(pi, pi) == 0.0
    assert ranking_loss(pi, -pi) == 1.0


@given(SCORED)
def test_ranking_loss_is_the_mean_of_the_queries_with_a_pair(data):
    rank, predicted, q, w = data
    losses = []
    for k in set(q.tolist()):
        here = q == k
        error, total = eq1(-rank[here], -predicted[here], q[here], w[here], "drop")
        losses += [error / total] if total else []
    if not losses:
        with pytest.raises(ValueError, match="query"):
            ranking_loss(rank, predicted, q, w)
        return
    assert ranking_loss(rank, predicted, q, w) == pytest.approx(
        float(sum(losses) / len(losses)), abs=1e-14
    )


@given(st.permutations(range(6)), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_a_tied_prediction_loses_what_its_random_orders_lose_on_average(
    rank, predicted
):
    """The loss is the mean over all total orders that refine the prediction."""
    refined = [
        brute_ranking_loss(rank, order)
        for order in REFINEMENTS
        if all(
            (predicted[i] - predicted[j]) * (order[i] - order[j]) >= 0
            for i, j in combinations(range(6), 2)
        )
    ]
    expected = float(sum(refined) / len(refined))
    assert ranking_loss(rank, predicted) == pytest.approx(expected, abs=1e-14)


REFINEMENTS = [p for p in product(range(6), repeat=6) if len(set(p)) == 6]


# ---- Log loss


@given(columns(LABEL, WEIGHT, *[range(1, 51)] * 3, max_size=10))
def test_log_loss_is_the_mean_negative_log_probability(data):
    y, weights, *counts = data
    assume(weights.any())
    counts = np.stack(counts, axis=1)
    p = counts / counts.sum(axis=1, keepdims=True)
    terms = [-math.log(row[label + 1]) for row, label in zip(p, y, strict=True)]
    loss = log_loss(y, p, weights)
    assert loss == pytest.approx(np.dot(weights, terms) / weights.sum(), rel=1e-12)
    assert log_loss(-y, p[:, ::-1], weights) == pytest.approx(loss, rel=1e-12)
    assert log_loss(
        np.repeat(y, weights), np.repeat(p, weights, axis=0)
    ) == pytest.approx(loss, rel=1e-12)
    assert loss == pytest.approx(
        sklearn.metrics.log_loss(y, p, sample_weight=weights, labels=[-1, 0, 1])
    )


@given(columns([-1, 1], floats=[st.floats(0.001, 0.999)]))
def test_log_loss_of_wins_has_three_equal_forms(data):
    y, win = data
    two = np.column_stack([1 - win, win])
    three = np.column_stack([1 - win, 0 * win, win])
    expected = sklearn.metrics.log_loss(y, win, labels=[-1, 1])
    for p in (win, two, three):
        assert log_loss(y, p) == pytest.approx(expected, rel=1e-12)


def test_log_loss_of_an_impossible_outcome_is_infinite_unless_its_weight_is_zero():
    assert log_loss([1, -1], [0.0, 0.5]) == math.inf
    assert log_loss([1, -1], [0.0, 0.5], [0, 2]) == pytest.approx(math.log(2))
    assert math.copysign(1, log_loss([1], [1.0])) == 1.0


# ---- Bad input

MEASURES = [getattr(metrics, name) for name in metrics.__all__ if name != "threshold"]
TWO_VECTORS = [measure for measure in MEASURES if measure is not log_loss]
OF_PAIRS = [comparison_loss, comparison_roc, comparison_auc, best_threshold]


@pytest.mark.parametrize("measure", MEASURES)
def test_bad_weights_and_lengths_are_rejected(measure):
    values = np.full((3, 3), 1 / 3) if measure is log_loss else [1, 0, -1]
    for weights in ([1, -2, 1], [0, 0, 0], [1, 1]):
        with pytest.raises(ValueError, match="sample_weight"):
            measure([1, -1, 0], values, sample_weight=weights)
    with pytest.raises(ValueError, match=r"\(2,\)"):
        measure([1, 0], values)


@pytest.mark.parametrize("measure", TWO_VECTORS)
@pytest.mark.parametrize("values", [[1, math.nan, 0], [[1, 0, 1]], ["a", "b", "c"], []])
def test_bad_predictions_are_rejected(measure, values):
    with pytest.raises(ValueError, match=r"predicted|differences"):
        measure([1, -1, 0], values)


@pytest.mark.parametrize(
    ("measure", "y", "values", "options", "named"),
    [
        (comparison_roc, [1, -1], [1.0, 2.0], {}, "ties"),
        (comparison_auc, [0, 0], [1.0, 2.0], {}, "preferences"),
        (comparison_loss, [1, 0], [1, 0.5], {}, r"predicted\[1\]"),
        (comparison_loss, [1, 0], np.array([1, 2], np.int8), {}, r"predicted\[1\]"),
        *((measure, [1, 2], [1, 0], {}, r"y\[1\]") for measure in OF_PAIRS),
        (disagreement_error, [math.nan, 1], [1, 2], {}, r"scores\[0\]"),
        (disagreement_error, [1, 2], [1, 2], {"ties": "half"}, "ties"),
        (ranking_loss, [1, math.inf], [1, 2], {}, r"rank\[1\]"),
        (ranking_loss, [1, 2], [1, 2], {"qid": [0]}, "qid"),
        (log_loss, [1, -1], [0.5, 1.5], {}, r"probabilities\[1\]"),
        (log_loss, [1, -1], [[0.5, 0.5], [0.5, 0.4]], {}, "probabilities"),
        (log_loss, [1, -1], ["likely", "not"], {}, r"probabilities\[0\]"),
        (log_loss, [1, 0], [0.5, 0.5], {}, r"y\[1\]"),
        (log_loss, [1, 2], [[0.2, 0.3, 0.5]] * 2, {}, r"y\[1\]"),
    ],
)
def test_bad_arguments_are_rejected_and_named(measure, y, values, options, named):
    with pytest.raises(ValueError, match=named):
        measure(y, values, **options)
