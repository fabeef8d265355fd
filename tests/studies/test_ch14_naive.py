from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from preflearn.metrics import log_loss
from studies.ch14_naive import naive_probabilities


def compared(seed, n=5, m=40):
    rng = np.random.default_rng(seed)
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    return index, rng.choice([-1, 1], m)


@given(seed=st.integers(0, 10**6), smoothing=st.floats(0.01, 10))
def test_it_counts(seed, smoothing):
    index, y = compared(seed)
    wins = Counter((i, j) if label > 0 else (j, i) for (i, j), label in zip(index.tolist(), y, strict=True))
    asked = np.array([(i, j) for i in range(6) for j in range(6) if i != j])  # item 5 was never compared
    p = naive_probabilities(index, y, asked, smoothing)
    for (i, j), (worse, better) in zip(asked.tolist(), p, strict=True):
        total = wins[i, j] + wins[j, i] + 2 * smoothing
        assert better == pytest.approx((wins[i, j] + smoothing) / total)
        assert worse == pytest.approx((wins[j, i] + smoothing) / total)
    assert (p[(asked == 5).any(axis=1)] == 0.5).all()


@given(seed=st.integers(0, 10**6))
def test_sides_names_and_order_do_not_matter(seed):
    index, y = compared(seed)
    rng = np.random.default_rng(seed)
    reference = naive_probabilities(index, y, index)
    flipped = rng.random(len(y)) < 0.5
    turned = np.where(flipped[:, None], index[:, ::-1], index)
    np.testing.assert_array_equal(naive_probabilities(turned, np.where(flipped, -y, y), index), reference)
    np.testing.assert_array_equal(naive_probabilities(index, y, index[:, ::-1]), reference[:, ::-1])
    names, order = rng.permutation(100)[:5], rng.permutation(len(y))
    renamed = naive_probabilities(names[index][order], y[order], names[index])
    np.testing.assert_array_equal(renamed, reference)


def test_smoothing_1_is_the_posterior_mean_of_equally_likely_chances():
    wins, losses = 4, 2
    index, y = [[0, 1]] * 6, [1] * wins + [-1] * losses
    weight = lambda p: p**wins * (1 - p) ** losses  # noqa: E731
    mean = quad(lambda p: p * weight(p), 0, 1)[0] / quad(weight, 0, 1)[0]
    assert naive_probabilities(index, y, [[0, 1]])[0, 1] == pytest.approx(mean)


def test_it_follows_a_cycle():
    index, y = [[0, 1], [1, 2], [2, 0]] * 20, [1] * 60
    p = naive_probabilities(index, y, index)
    assert (p[:, 1] > 0.9).all()
    assert log_loss(y, p) < 0.1
