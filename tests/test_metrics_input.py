"""What each measure says of input that it cannot measure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from preflearn import metrics
from preflearn.metrics import (
    best_threshold,
    comparison_auc,
    comparison_loss,
    comparison_roc,
    disagreement_error,
    log_loss,
    ranking_loss,
)

TWO_VECTORS = [
    comparison_loss,
    comparison_roc,
    comparison_auc,
    best_threshold,
    disagreement_error,
    ranking_loss,
]
OF_PAIRS = [comparison_loss, comparison_roc, comparison_auc, best_threshold, log_loss]


def call(measure, y, values, sample_weight=None):
    return measure(y, values, sample_weight=sample_weight)


@pytest.mark.parametrize("measure", [*TWO_VECTORS, log_loss])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -2, 1], r"sample_weight\[1\] is -2.0; expected weights from 0"),
        ([1, math.nan, 1], r"sample_weight\[1\] is nan; expected finite"),
        ([1, 1, 1e200], r"sample_weight\[2\] is 1e\+200; expected weights from 0 to 1e100"),
        ([0, 0, 0], "all 3 values of sample_weight are 0; expected at least one positive"),
        ([1, 1], r"sample_weight has shape \(2,\); expected \(3,\)"),
        ("heavy", "sample_weight is 'heavy'; expected an array of numbers"),
    ],
)
def test_bad_weights_are_named(measure, weights, message):
    y, values = [1, -1, 0], [1, 0, -1]
    if measure is log_loss:
        values = np.full((3, 3), 1 / 3)
    with pytest.raises(ValueError, match=message):
        call(measure, y, values, weights)


@pytest.mark.parametrize("measure", OF_PAIRS)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 2, 0], r"y\[1\] is 2; expected one of \[-1, 0, 1\]"),
        ([1, math.nan, 0], r"y\[1\] is nan; expected one of \[-1, 0, 1\]"),
        ([1, 0], "y has 2 labels for 3 pairs"),
        ([[1, 0, 1]], r"y has shape \(1, 3\); expected \(3,\)"),
    ],
)
def test_bad_labels_are_named(measure, y, message):
    values = np.full((3, 3), 1 / 3) if measure is log_loss else [1, 0, -1]
    with pytest.raises(ValueError, match=message):
        call(measure, y, values)


@pytest.mark.parametrize("measure", TWO_VECTORS)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, math.nan, 0], r"(predicted|differences)\[1\] is nan; expected finite numbers"),
        ([1, 0, -math.inf], r"(predicted|differences)\[2\] is -inf; expected finite numbers"),
        ([[1, 0, 1]], r"(predicted|differences) has shape \(1, 3\); expected"),
        (["a", "b", "c"], r"(predicted|differences)\[0\] is 'a'; expected a number"),
        ([1, 0], r"y has 3 labels for 2 pairs|predicted has shape \(2,\); expected \(3,\)"),
    ],
)
def test_bad_predictions_are_named(measure, values, message):
    with pytest.raises(ValueError, match=message):
        call(measure, [1, -1, 0], values)


@pytest.mark.parametrize("measure", TWO_VECTORS)
def test_nothing_to_measure_is_an_error(measure):
    with pytest.raises(ValueError, match=r"(predicted|differences|scores|rank) is empty"):
        call(measure, [], [])


@pytest.mark.parametrize("measure", [comparison_roc, comparison_auc])
def test_a_curve_needs_both_classes(measure):
    with pytest.raises(ValueError, match="y holds no tie of positive weight; expected at least one label 0"):
        measure([1, -1], [1.0, 2.0])
    with pytest.raises(ValueError, match="y holds no preference of positive weight"):
        measure([0, 0], [1.0, 2.0])
    with pytest.raises(ValueError, match="y holds no tie of positive weight"):
        measure([1, 0], [1.0, 2.0], [1, 0])


@pytest.mark.parametrize("wrong", [-128, -2, 2, 127])
@pytest.mark.parametrize("kind", ["i1", "i8", "f8"])
def test_labels_of_any_dtype_are_checked(wrong, kind):
    labels, good = np.array([0, wrong, 1], dtype=kind), np.array([0, 1, -1], dtype=kind)
    with pytest.raises(ValueError, match=rf"predicted\[1\] is {wrong}(\.0)?; expected one of \[-1, 0, 1\]"):
        comparison_loss([0, 1, -1], labels)
    with pytest.raises(ValueError, match=rf"y\[1\] is {wrong}(\.0)?; expected one of \[-1, 0, 1\]"):
        comparison_loss(labels, [0, 1, -1])
    assert comparison_loss(good, [0, 1, 1]) == comparison_loss([0, 1, 1], good) == 1 / 3


def test_predicted_labels_and_scores_are_checked():
    with pytest.raises(ValueError, match=r"predicted\[1\] is 0.5; expected one of \[-1, 0, 1\]"):
        comparison_loss([1, 0], [1, 0.5])
    with pytest.raises(ValueError, match=r"scores\[0\] is nan"):
        disagreement_error([math.nan, 1], [1, 2])
    with pytest.raises(ValueError, match=r"rank\[1\] is inf"):
        ranking_loss([1, math.inf], [1, 2])
    with pytest.raises(ValueError, match=r"qid has shape \(1,\); expected \(2,\)"):
        ranking_loss([1, 2], [1, 2], qid=[0])
    with pytest.raises(ValueError, match="ties is 'half'; expected 'keep' or 'drop'"):
        disagreement_error([1, 2], [1, 2], ties="half")
    with pytest.raises(ValueError, match="no pair is left of 2 items: expected two items of one query with"):
        disagreement_error([1, 1], [1, 2], ties="drop")
    with pytest.raises(ValueError, match="no pair is left of 2 items"):
        ranking_loss([1, 2], [1, 2], qid=["a", "b"])


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.5, 1.5], r"probabilities\[1\] is 1.5; expected values from 0 to 1"),
        ([0.5, math.nan], r"probabilities\[1\] is nan; expected values from 0 to 1"),
        ([[0.5, 0.5], [-0.1, 1.1]], r"probabilities\[1, 0\] is -0.1"),
        ([[0.5, 0.5], [0.5, 0.4]], "row 1 of probabilities sums to 0.9; expected 1"),
        ([[1.0], [1.0]], r"probabilities has shape \(2, 1\); expected \(m,\)"),
        ([], r"probabilities has shape \(0,\)"),
        (["likely", "not"], r"probabilities\[0\] is 'likely'; expected a number"),
    ],
)
def test_bad_probabilities_are_named(probabilities, message):
    with pytest.raises(ValueError, match=message):
        log_loss([1, -1], probabilities)


def test_a_tie_needs_a_probability_of_ties():
    with pytest.raises(ValueError, match=r"y\[1\] is 0; expected one of \[-1, 1\]"):
        log_loss([1, 0], [0.5, 0.5])


def test_every_public_measure_is_tested_here():
    measures = set(metrics.__all__) - {"threshold"}
    assert measures == {measure.__name__ for measure in [*TWO_VECTORS, log_loss]}
