import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples

from preflearn.margins import MarginLP
from preflearn_book.studies.ch02_separable import simulate_separable_pairs


@given(
    st.integers(1, 30),
    st.integers(1, 5),
    st.floats(0.2, 0.9),
    st.floats(0.01, 0.99),
    st.integers(0, 2**32 - 1),
)
@examples(60)
def test_separable_pairs_have_the_requested_margin(n, p, tie_share, margin, seed):
    pairs, y, scores, w = simulate_separable_pairs(n, p, tie_share, margin, seed)
    assert pairs.shape == (n, 2, p)
    n_ties = int((y == 0).sum())
    assert n_ties == round(n * tie_share)
    np.testing.assert_allclose(scores, pairs.items @ w)
    gain = pairs.differences() @ w
    tolerance = 1e-12 * (1 + np.abs(pairs.items).max() * np.abs(w).max())
    assert (np.abs(gain[y == 0]) <= 1 - margin + tolerance).all()
    assert (y[y != 0] * gain[y != 0] >= 1 + margin - tolerance).all()
    # Without ties, the program is unbounded. Without preferences, it has no weights.
    if 0 < n_ties < n:
        assert MarginLP().fit(pairs, y).margin_ >= margin - 1e-6


def test_scale_is_a_change_of_units():
    plain = simulate_separable_pairs(40, 3, 0.5, 0.2, 5)
    scaled = simulate_separable_pairs(40, 3, 0.5, 0.2, 5, scale=[100, 1, 0.1])
    np.testing.assert_allclose(scaled.pairs.items, plain.pairs.items * [100, 1, 0.1])
    np.testing.assert_allclose(scaled.coef * [100, 1, 0.1], plain.coef)
    np.testing.assert_array_equal(scaled.y, plain.y)
