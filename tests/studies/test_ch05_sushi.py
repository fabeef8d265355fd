import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn.pairs import Pairs
from preflearn_book.studies.ch05_sushi import disjoint_samples, simulate_sushi


def labelled(n_ties, n_preferences):
    """Return pairs that their first items identify, and their labels."""
    m = n_ties + n_preferences
    pairs = Pairs(
        np.arange(m + 1.0)[:, None],
        np.column_stack([np.arange(1, m + 1), np.zeros(m, dtype=int)]),
    )
    return pairs, np.append(
        np.zeros(n_ties, dtype=int), np.ones(n_preferences, dtype=int)
    )


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
    st.floats(0, 1),
    st.integers(0, 99),
)
def test_samples_are_disjoint_and_have_the_requested_share_of_ties(
    sizes, tie_share, seed
):
    pairs, y = labelled(80, 80)
    samples = disjoint_samples(pairs, y, sizes, tie_share, np.random.default_rng(seed))
    drawn = np.concatenate([sample.index[:, 0] for sample, _ in samples])
    assert len(np.unique(drawn)) == len(drawn) == sum(sizes)
    for (sample, labels), size in zip(samples, sizes, strict=True):
        assert len(sample) == size
        assert np.sum(labels == 0) == round(size * tie_share)
        np.testing.assert_array_equal(labels, y[sample.index[:, 0] - 1])


@pytest.mark.parametrize(
    ("sizes", "tie_share", "named"),
    [([3, 3], 1.0, "3 ties"), ([4, 2], 0.0, "2 preferences")],
)
def test_samples_that_cannot_be_drawn_are_an_error(sizes, tie_share, named):
    with pytest.raises(ValueError, match=named):
        disjoint_samples(*labelled(5, 4), sizes, tie_share, np.random.default_rng(0))


def test_simulated_ratings_have_the_form_of_the_sushi_data():
    data = simulate_sushi(np.random.default_rng(0), n_users=40)
    assert data.pairs.items.shape == (400, 14)
    assert len(data.pairs) == len(data.y) == 200
    np.testing.assert_array_equal(
        data.user[data.pairs.index[:, 0]], data.user[data.pairs.index[:, 1]]
    )
    first, second = data.scores[data.pairs.index].T.astype(int)
    np.testing.assert_array_equal(np.sign(first - second), data.y)
    assert set(np.unique(data.scores)) == set(range(5))
    assert len(np.unique(data.pairs.items[:, 7:], axis=0)) == 40
