"""Simulated comparisons: their design, their labels, and published error rates."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from scipy import stats

from preflearn.datasets import four_items, simulate_norm_pairs, squared_norm
from preflearn.metrics import threshold

NORMS = {"l1": lambda x: sum(map(abs, x)) ** 2, "l2": lambda x: sum(v * v for v in x)}
NORMS["linf"] = lambda x: max(map(abs, x)) ** 2
DELTAS = {"l1": (-0.5, 0.5), "l2": (-1.0, 0.5), "linf": (-1.0, 1.0)}
SHARES = st.floats(0, 1)
SEEDS = st.integers(0, 2**32 - 1)


@given(
    st.lists(st.tuples(*3 * [st.floats(-1e3, 1e3)]), min_size=1, max_size=5),
    st.sampled_from(list(NORMS)),
)
def test_squared_norm_is_that_of_plain_python(rows, norm):
    expected = [NORMS[norm](row) for row in rows]
    np.testing.assert_allclose(
        squared_norm(rows, norm), expected, rtol=1e-12, atol=1e-300
    )


@given(st.sampled_from(list(NORMS)), st.integers(1, 60), SHARES, SEEDS)
@examples(60)
def test_norm_pairs_have_the_documented_ranges_ties_and_scores(norm, n, share, seed):
    pairs, y, scores = simulate_norm_pairs(norm, n, share, seed)
    assert pairs.shape == (n, 2, 2)
    assert (y == 0).sum() == round(n * share)
    assert set(y.tolist()) <= {-1, 0, 1}
    np.testing.assert_allclose(scores, [NORMS[norm](x) for x in pairs.items])
    low, high = DELTAS[norm]
    delta = pairs.differences()
    assert ((delta > low - 1e-12) & (delta < high + 1e-12)).all()
    assert (np.abs(pairs.second) <= 2).all()
    assert np.abs(pairs.items).max() <= 3
    # Six standard deviations away from a threshold, noise does not change a label.
    gain = pairs.B.differences(scores)
    clear = np.abs(np.abs(gain) - 1) > 1.5
    assert (threshold(gain, 1)[clear] == y[clear]).all()


def test_norm_pairs_are_fixed_by_their_seed():
    rng = np.random.default_rng(3)
    again = simulate_norm_pairs("l1", 20, 0.5, rng)
    after = simulate_norm_pairs("l1", 20, 0.5, rng)
    np.testing.assert_array_equal(again.y, simulate_norm_pairs("l1", 20, 0.5, 3).y)
    assert not np.array_equal(again.pairs.items, after.pairs.items)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_gaussian_steps_have_the_standard_deviation_one_half_and_leave_the_square(norm):
    n = 20_000
    pairs, y, scores = simulate_norm_pairs(norm, n, 0.0, 2, steps="gaussian")
    assert np.abs(pairs.first).max() > 3
    assert (np.abs(pairs.second) <= 2).all()
    assert not (y == 0).any()
    np.testing.assert_allclose(scores, squared_norm(pairs.items, norm))
    # If the requested fraction of ties is that of all pairs, the steps keep their
    # original distribution.
    share = _tie_share(norm)
    delta = (
        simulate_norm_pairs(norm, n, share, 3, steps="gaussian")
        .pairs.differences()
        .ravel()
    )
    test = stats.kstest(delta, stats.norm(scale=0.5).cdf)
    assert test.pvalue > 1e-4


def _tie_share(norm, n=400_000):
    """Return the fraction of ties among all pairs with Gaussian steps, in new draws."""
    rng = np.random.default_rng(7)
    second = rng.uniform(-2, 2, (n, 2))
    first = second + 0.5 * rng.standard_normal((n, 2))
    gain = (
        squared_norm(first, norm)
        - squared_norm(second, norm)
        + 0.25 * rng.standard_normal(n)
    )
    return float((np.abs(gain) <= 1).mean())


@pytest.mark.parametrize(
    ("norm", "first", "total", "labels"),
    [
        (
            "l1",
            [0.9346631531846877, 1.1494168114874692],
            -0.30945454134230754,
            [-1, -1, 0],
        ),
        (
            "l2",
            [0.5419888822862713, 0.8582436377582163],
            2.4518567072486364,
            [-1, 1, 0],
        ),
        (
            "linf",
            [0.264442706647803, 0.10526675513465533],
            -0.49376359550620164,
            [-1, -1, 0],
        ),
    ],
)
def test_uniform_steps_are_the_default_and_keep_the_draws_of_recorded_runs(
    norm, first, total, labels
):
    for steps in ({}, {"steps": "uniform"}):
        pairs, y, _ = simulate_norm_pairs(norm, 3, 0.4, 5, **steps)
        np.testing.assert_allclose(pairs.items[0], first, rtol=1e-15)
        assert pairs.items.sum() == pytest.approx(total, rel=1e-13)
        assert y.tolist() == labels


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_noise_free_scores_have_the_error_rate_of_figure_4_of_venuto(norm):
    n = 100_000
    pairs, y, scores = simulate_norm_pairs(norm, n, 0.5, 1)
    gain = pairs.B.differences(scores)
    error = (threshold(gain, 1) != y).mean()
    # published errors on one test set of 1000 pairs
    printed = {"l1": 0.0629, "l2": 0.0709, "linf": 0.0741}[norm]
    spread = math.sqrt(error * (1 - error) / 1000)
    assert abs(error - printed) < 2 * spread


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: simulate_norm_pairs(3, 5, 0.5, 0), "norm is 3"),
        (lambda: simulate_norm_pairs("l1", 0, 0.5, 0), "n is 0"),
        (lambda: simulate_norm_pairs("l1", 5, 1.5, 0), "tie_share is 1.5"),
        (lambda: simulate_norm_pairs("l1", 5, 0.5, 0, "normal"), "steps is 'normal'"),
        (lambda: squared_norm([[math.nan]], "l1"), r"X\[0, 0\] is nan"),
        (lambda: squared_norm([[1e300, -1e300]], "l2"), r"X is 1e\+300"),
        (lambda: squared_norm([[1.0]], [1]), r"norm is \[1\]"),
        (lambda: four_items(3), "n_features is 3"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_four_items_have_one_or_two_features():
    assert four_items(2)[0].differences().tolist() == [[1, 1], [1, -1], [2, 1], [4, 1]]
