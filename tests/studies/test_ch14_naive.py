from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

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
def test_names_do_not_matter(seed):
    index, y = compared(seed)
    names = np.random.default_rng(seed).permutation(100)[:5]
    renamed = naive_probabilities(names[index], y, names[index])
    np.testing.assert_array_equal(renamed, naive_probabilities(index, y, index))


def test_smoothing_1_is_the_posterior_mean_of_equally_likely_chances():
    wins, losses = 4, 2
    index, y = [[0, 1]] * 6, [1] * wins + [-1] * losses
    weight = lambda p: p**wins * (1 - p) ** losses  # noqa: E731
    mean = quad(lambda p: p * weight(p), 0, 1)[0] / quad(weight, 0, 1)[0]
    assert naive_probabilities(index, y, [[0, 1]])[0, 1] == pytest.approx(mean)


@pytest.mark.parametrize(
    ("index", "y", "smoothing", "message"),
    [
        ([[0, 10**7]], [1], 1.0, r"index\[0, 1\] is 10000000"),
        ([[0, 0]], [1], 1.0, r"index\[0\] is \[0, 0\]; expected two"),
        ([[0, 1]], [0], 1.0, r"y\[0\] is 0"),
        ([[0, 1]], [1], 0.0, "smoothing is 0.0; expected a positive number"),
    ],
)
def test_bad_input_is_named(index, y, smoothing, message):
    with pytest.raises(ValueError, match=message):
        naive_probabilities(index, y, [[0, 1]], smoothing)
