import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog

from preflearn.datasets import (
    disjoint_samples,
    four_items,
    simulate_norm_pairs,
    simulate_separable_pairs,
    squared_norm,
)
from preflearn.metrics import threshold
from preflearn.pairs import Pairs

NORMS = {"l1": lambda x: sum(map(abs, x)) ** 2, "l2": lambda x: sum(v * v for v in x)}
NORMS["linf"] = lambda x: max(map(abs, x)) ** 2
DELTAS = {"l1": (-0.5, 0.5), "l2": (-1.0, 0.5), "linf": (-1.0, 1.0)}
SHARES = st.floats(0, 1)
SEEDS = st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(*3 * [st.floats(-1e3, 1e3)]), min_size=1, max_size=5), st.sampled_from(list(NORMS)))
def test_squared_norm_is_that_of_plain_python(rows, norm):
    expected = [NORMS[norm](row) for row in rows]
    np.testing.assert_allclose(squared_norm(rows, norm), expected, rtol=1e-12, atol=1e-300)


@given(st.sampled_from(list(NORMS)), st.integers(1, 60), SHARES, SEEDS)
@settings(max_examples=60)
def test_norm_pairs_keep_their_promises(norm, n, share, seed):
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
    # Where the truth is six standard deviations from a threshold, noise does not change a label.
    gain = pairs.B.differences(scores)
    clear = np.abs(np.abs(gain) - 1) > 1.5
    assert (threshold(gain, 1)[clear] == y[clear]).all()


def test_norm_pairs_are_fixed_by_their_seed_and_norms_have_two_names():
    for number, word in ((1, "l1"), (2, "l2"), (np.inf, "linf")):
        one, two = simulate_norm_pairs(number, 20, 0.5, 3), simulate_norm_pairs(word, 20, 0.5, 3)
        np.testing.assert_array_equal(one.pairs.items, two.pairs.items)
        np.testing.assert_array_equal(one.y, two.y)
    rng = np.random.default_rng(3)
    again, after = simulate_norm_pairs(1, 20, 0.5, rng), simulate_norm_pairs(1, 20, 0.5, rng)
    np.testing.assert_array_equal(again.y, simulate_norm_pairs(1, 20, 0.5, 3).y)
    assert not np.array_equal(again.pairs.items, after.pairs.items)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_gaussian_steps_have_half_a_unit_and_leave_the_square(norm):
    n = 20_000
    pairs, y, scores = simulate_norm_pairs(norm, n, 0.0, 2, steps="gaussian")
    assert np.abs(pairs.first).max() > 3
    assert (np.abs(pairs.second) <= 2).all()
    assert not (y == 0).any()
    np.testing.assert_allclose(scores, squared_norm(pairs.items, norm))
    # Mixed in the shares that both kinds of labels have among all pairs, steps have the law they came from.
    share = _tie_share(norm)
    delta = simulate_norm_pairs(norm, n, share, 3, steps="gaussian").pairs.differences().ravel()
    test = stats.kstest(delta, stats.norm(scale=0.5).cdf)
    assert test.pvalue > 1e-4


def _tie_share(norm, n=400_000):
    """The share of ties among all pairs with Gaussian steps, drawn anew."""
    rng = np.random.default_rng(7)
    second = rng.uniform(-2, 2, (n, 2))
    first = second + 0.5 * rng.standard_normal((n, 2))
    gain = squared_norm(first, norm) - squared_norm(second, norm) + 0.25 * rng.standard_normal(n)
    return float((np.abs(gain) <= 1).mean())


@pytest.mark.parametrize(
    ("norm", "first", "total", "labels"),
    [
        ("l1", [0.9346631531846877, 1.1494168114874692], -0.30945454134230754, [-1, -1, 0]),
        ("l2", [0.5419888822862713, 0.8582436377582163], 2.4518567072486364, [-1, 1, 0]),
        ("linf", [0.264442706647803, 0.10526675513465533], -0.49376359550620164, [-1, -1, 0]),
    ],
)
def test_uniform_steps_are_the_default_and_their_numbers_stay(norm, first, total, labels):
    for steps in ({}, {"steps": "uniform"}):  # recorded runs rest on these draws
        pairs, y, _ = simulate_norm_pairs(norm, 3, 0.4, 5, **steps)
        np.testing.assert_allclose(pairs.items[0], first, rtol=1e-15)
        assert pairs.items.sum() == pytest.approx(total, rel=1e-13)
        assert y.tolist() == labels


def test_place_says_nothing_about_the_label():
    y = simulate_norm_pairs("l2", 4000, 0.3, 0).y
    first, last = (y[:2000] == 0).mean(), (y[2000:] == 0).mean()
    assert abs(first - last) < 0.08  # more than five standard deviations


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_truth_errs_as_often_as_figure_4_of_venuto_says(norm):
    n = 100_000
    pairs, y, scores = simulate_norm_pairs(norm, n, 0.5, 1)
    gain = pairs.B.differences(scores)
    error = (threshold(gain, 1) != y).mean()
    printed = {"l1": 0.0629, "l2": 0.0709, "linf": 0.0741}[norm]  # on one test set of 1000 pairs
    spread = math.sqrt(error * (1 - error) / 1000)
    assert abs(error - printed) < 2 * spread


def largest_margin(pairs, y):
    """The linear program (7) of Venuto et al., written anew: max mu subject to its constraints."""
    rows, bounds = [], []
    for difference, label in zip(pairs.differences(), y, strict=True):
        if label == 0:
            rows += [[*difference, 1], [*-difference, 1]]
            bounds += [1, 1]
        else:
            rows.append([*(-label * difference), 1])
            bounds.append(-1)
    p = pairs.items.shape[1]
    free = [(None, None)] * p
    found = linprog([0] * p + [-1], A_ub=rows, b_ub=bounds, bounds=[*free, (None, None)], method="highs")
    assert found.status == 0, found.message
    return -found.fun


@given(
    st.integers(1, 30),
    st.integers(1, 5),
    st.floats(0.2, 0.9),
    st.floats(0.01, 0.99),
    SEEDS,
    st.sampled_from([1.0, 0.01, 100.0]),
)
@settings(max_examples=60)
def test_separable_pairs_have_the_promised_margin(n, p, share, margin, seed, unit):
    scale = np.ones(p)
    scale[0] = unit
    pairs, y, scores, w = simulate_separable_pairs(n, p, share, margin, seed, scale=scale)
    assert pairs.shape == (n, 2, p)
    n_ties = int((y == 0).sum())
    assert n_ties == round(n * share)
    np.testing.assert_allclose(scores, pairs.items @ w)
    gain = pairs.differences() @ w
    tolerance = 1e-12 * (1 + np.abs(pairs.items).max() * np.abs(w).max())
    assert (np.abs(gain[y == 0]) <= 1 - margin + tolerance).all()
    assert (y[y != 0] * gain[y != 0] >= 1 + margin - tolerance).all()
    if n_ties:  # without ties the program is unbounded
        assert largest_margin(pairs, y) >= margin - 1e-6


def test_scale_is_a_change_of_units():
    plain = simulate_separable_pairs(40, 3, 0.5, 0.2, 5)
    scaled = simulate_separable_pairs(40, 3, 0.5, 0.2, 5, scale=[100, 1, 0.1])
    np.testing.assert_allclose(scaled.pairs.items, plain.pairs.items * [100, 1, 0.1])
    np.testing.assert_allclose(scaled.coef * [100, 1, 0.1], plain.coef)
    np.testing.assert_allclose(scaled.scores, plain.scores, atol=1e-12)
    np.testing.assert_array_equal(scaled.y, plain.y)


BAD = {
    "norm is 3; expected 1, 2, inf": lambda: simulate_norm_pairs(3, 5, 0.5, 0),
    r"norm is \[1\]": lambda: squared_norm([[1.0]], [1]),
    "n is 0; expected a whole number of at least 1": lambda: simulate_norm_pairs(1, 0, 0.5, 0),
    "n is 2.5; expected": lambda: simulate_norm_pairs(1, 2.5, 0.5, 0),
    "tie_share is 1.5; expected a share from 0 to 1": lambda: simulate_norm_pairs(1, 5, 1.5, 0),
    "tie_share is nan": lambda: simulate_norm_pairs(1, 5, math.nan, 0),
    "p is 0; expected": lambda: simulate_separable_pairs(5, 0, 0.5, 0.5, 0),
    r"n is 10+\.+; expected a whole number of at least 1": lambda: simulate_norm_pairs(1, 10**400, 0.5, 0),
    "margin is .*j; expected": lambda: simulate_separable_pairs(5, 1, 0.5, 0.5j, 0),
    "scale has 1 masked": lambda: simulate_separable_pairs(
        5, 2, 0.5, 0.5, 0, scale=np.ma.masked_equal([1.0, 2.0], 2.0)
    ),
    "margin is 1.0; expected": lambda: simulate_separable_pairs(5, 1, 0.5, 1.0, 0),
    "margin is nan": lambda: simulate_separable_pairs(5, 1, 0.5, math.nan, 0),
    r"scale is \[1.0, -1.0\]; expected positive": lambda: simulate_separable_pairs(
        5, 2, 0.5, 0.5, 0, scale=[1, -1]
    ),
    r"scale has shape \(3,\); expected \(2,\)": lambda: simulate_separable_pairs(
        5, 2, 0.5, 0.5, 0, scale=[1, 1, 1]
    ),
    "steps is 'normal'; expected 'uniform' or 'gaussian'": lambda: simulate_norm_pairs(
        1, 5, 0.5, 0, steps="normal"
    ),
    r"X\[0, 0\] is nan": lambda: squared_norm([[math.nan]], 1),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


# Samples, and the four items


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


def test_four_items_have_one_or_two_features():
    assert four_items(2).pairs.differences().tolist() == [[1, 1], [1, -1], [2, 1], [4, 1]]
    with pytest.raises(ValueError, match="n_features is 3; expected 1 or 2"):
        four_items(3)
