import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn.pairs import Pairs
from studies.ch05_sushi import disjoint_samples, simulate_sushi


def labelled(n_ties, n_preferences):
    """Pairs that can be told apart by their first item, and their labels."""
    m = n_ties + n_preferences
    pairs = Pairs(np.arange(m + 1.0)[:, None], np.column_stack([np.arange(1, m + 1), np.zeros(m, dtype=int)]))
    return pairs, np.append(np.zeros(n_ties, dtype=int), np.ones(n_preferences, dtype=int))


@given(st.lists(st.integers(1, 20), min_size=1, max_size=4), st.floats(0, 1), st.integers(0, 99))
def test_samples_share_no_pair_and_have_their_share_of_ties(sizes, share, seed):
    pairs, y = labelled(80, 80)
    samples = disjoint_samples(pairs, y, sizes, share, np.random.default_rng(seed))
    drawn = np.concatenate([sample.index[:, 0] for sample, _ in samples])
    assert len(np.unique(drawn)) == len(drawn) == sum(sizes)
    for (sample, labels), size in zip(samples, sizes, strict=True):
        assert len(sample) == size
        assert np.sum(labels == 0) == round(size * share)
        np.testing.assert_array_equal(labels, y[sample.index[:, 0] - 1])


@pytest.mark.parametrize(
    ("sizes", "share", "message"),
    [
        ([3, 3], 1.0, "number of ties is 5; expected at least 6"),
        ([4, 2], 0.0, "number of preferences is 4; expected at least 6"),
        ([2], 1.5, "tie_share is 1.5; expected a share from 0 to 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(sizes, share, message):
    with pytest.raises(ValueError, match=message):
        disjoint_samples(*labelled(5, 4), sizes, share, np.random.default_rng(0))


def test_simulated_ratings_have_the_form_of_the_sushi_data():
    data = simulate_sushi(np.random.default_rng(0), n_users=40)
    assert data.pairs.items.shape == (400, 14)
    assert len(data.pairs) == len(data.y) == 200
    np.testing.assert_array_equal(data.user[data.pairs.index[:, 0]], data.user[data.pairs.index[:, 1]])
    first, second = data.scores[data.pairs.index].T.astype(int)
    np.testing.assert_array_equal(np.sign(first - second), data.y)
    assert set(np.unique(data.scores)) == set(range(5))
    assert len(np.unique(data.pairs.items[:, 7:], axis=0)) == 40


@pytest.mark.parametrize("seed", range(5))
def test_simulated_sushi_is_enough_for_the_chapter_on_simulations(seed):
    """Its samples of 100, 100 and 5,000 pairs, from a tenth to nine tenths of ties."""
    rng = np.random.default_rng(seed)
    sushi = simulate_sushi(rng, 5000)
    for share in (0.1, 0.9):
        samples = disjoint_samples(sushi.pairs, sushi.y, (100, 100, 5000), share, rng)
        assert [round(np.mean(y == 0), 2) for _, y in samples] == [share] * 3
