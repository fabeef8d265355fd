"""Counts of pairs against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn.counting import count_pairs, sweep_threshold

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed, *levels):
    """Columns of few levels, so that equal values are common, and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 14)
    weights = np.maximum(rng.uniform(-0.3, 1, n), 0)
    weights[0] = 1.0
    return *(rng.integers(-k, k + 1, n) for k in levels), weights


@given(SEEDS)
def test_pairs_of_items_by_what_truth_and_prediction_say(seed):
    true, predicted, qid, w = drawn(seed, 2, 2, 1)
    expected = {query: np.zeros(4) for query in sorted(set(qid.tolist()))}
    for i in range(len(w)):
        for j in range(i):
            if qid[i] == qid[j]:
                s, f = np.sign(true[i] - true[j]), np.sign(predicted[i] - predicted[j])
                expected[qid[i]] += (
                    w[i] * w[j] * np.array([(s != 0) * abs(s - f), s == 0 != f, s != 0, s == 0])
                )
    found = np.transpose(count_pairs(true, predicted, qid, w, "scores"))
    np.testing.assert_allclose(found, list(expected.values()), atol=1e-12)


@given(SEEDS)
def test_weights_at_each_threshold(seed):
    y, d, w = drawn(seed, 1, 3)
    found = sweep_threshold(y, d.astype(float), w)
    assert found.magnitudes.tolist() == sorted(set(np.abs(d[w > 0]).tolist()), reverse=True)
    for tau, hits, false_alarms in zip(*found[:3], strict=True):
        assert hits == pytest.approx(w[(y * d > 0) & (abs(d) >= tau)].sum(), abs=1e-12)
        assert false_alarms == pytest.approx(w[(y == 0) & (abs(d) >= tau)].sum(), abs=1e-12)
    assert found[3:] == pytest.approx((w[y != 0].sum(), w[y == 0].sum()), abs=1e-12)
