from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from preflearn_book.studies.ch14_naive import naive_probabilities


@given(seed=st.integers(0, 10**6), smoothing=st.floats(0.01, 10))
def test_probabilities_are_smoothed_shares_of_wins_whatever_the_item_numbers(
    seed, smoothing
):
    rng = np.random.default_rng(seed)
    index = np.array([rng.choice(5, 2, replace=False) for _ in range(40)])
    y = rng.choice([-1, 1], 40)
    wins = Counter(
        (i, j) if label > 0 else (j, i)
        for (i, j), label in zip(index.tolist(), y, strict=True)
    )
    # item 5 was never compared
    asked = np.array([(i, j) for i in range(6) for j in range(6) if i != j])
    p = naive_probabilities(index, y, asked, smoothing)
    for (i, j), (loss, win) in zip(asked.tolist(), p, strict=True):
        total = wins[i, j] + wins[j, i] + 2 * smoothing
        assert win == pytest.approx((wins[i, j] + smoothing) / total)
        assert loss == pytest.approx((wins[j, i] + smoothing) / total)
    numbers = rng.permutation(100)[:6]
    np.testing.assert_array_equal(
        naive_probabilities(numbers[index], y, numbers[asked], smoothing), p
    )


def test_smoothing_1_is_the_posterior_mean_under_a_uniform_prior():
    wins = 4
    losses = 2

    def likelihood(p):
        return p**wins * (1 - p) ** losses

    mean = quad(lambda p: p * likelihood(p), 0, 1)[0] / quad(likelihood, 0, 1)[0]
    found = naive_probabilities([[0, 1]] * 6, [1] * wins + [-1] * losses, [[0, 1]])
    assert found[0, 1] == pytest.approx(mean)
