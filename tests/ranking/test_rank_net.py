"""RankNet compared with finite differences, the published steps of Adam, and its
definition."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn.pairs import Pairs, ranks_to_scores
from preflearn.ranking import RankNet, rank_net
from preflearn.ranking.base import positions


def problem(seed, n=20, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    rank = positions(X[:, 0] - X[:, 1] ** 2 + 0.1 * rng.normal(size=n))
    return X, ranks_to_scores(rank)


def better_and_worse(X, scores):
    pairs, y = Pairs.from_scores(X, scores)
    return np.where((y > 0)[:, None], pairs.index, pairs.index[:, ::-1])


def outputs(X, weights):
    """Return f(x) = v·max(0, Wx + b), by the definition."""
    *W, b, v = weights
    return np.maximum(X @ np.array(W) + b, 0) @ v


def mean_loss(X, index, weights, sigma):
    f = outputs(X, weights)
    return np.logaddexp(0, -sigma * (f[index[:, 0]] - f[index[:, 1]])).mean()


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.floats(0.1, 5))
def test_the_gradient_equals_finite_differences(seed, units, sigma):
    X, scores = problem(seed, n=6)
    index = better_and_worse(X, scores)
    weights = np.random.default_rng(seed).normal(size=(5, units))
    slope = np.full_like(weights, 7.0)
    hidden = np.empty((2, units))
    total = rank_net._batch(X, index, weights, sigma, slope, hidden)
    assert total / len(index) == pytest.approx(mean_loss(X, index, weights, sigma))
    # exclude units with a kink of max(0, ·) between the two points, which would change
    # the difference
    clear = np.abs(X @ weights[:3] + weights[3]).min(axis=0) > 1e-4
    direction = np.random.default_rng(units).normal(size=(5, units)) * clear
    up, down = (
        mean_loss(X, index, weights + h * direction, sigma) for h in (1e-6, -1e-6)
    )
    assert (slope * direction).sum() == pytest.approx((up - down) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("margin", [-800.0, 1e5])
def test_large_margins_do_not_overflow(margin):
    weights = np.array([[1.0], [0.0], [1.0]])
    slope = np.empty_like(weights)
    X = np.array([[0.0], [abs(margin)]])
    index = np.array([[1, 0] if margin > 0 else [0, 1]])
    total = rank_net._batch(X, index, weights, 1.0, slope, np.empty((2, 1)))
    assert total == max(-margin, 0)
    assert slope[0, 0] == (-margin if margin < 0 else 0)


def adam(X, batches, weights, rate, sigma):
    """Implement Algorithm 1 of the paper on Adam."""
    weights = weights.copy()
    mean = np.zeros_like(weights)
    square = np.zeros_like(weights)
    slope = np.empty_like(weights)
    hidden = np.empty((2, weights.shape[1]))
    for t, index in enumerate(batches, start=1):
        rank_net._batch(X, index, weights, sigma, slope, hidden)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        weights -= (
            rate * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        )
    return weights


@pytest.mark.parametrize("batch", [4, 100])
def test_the_fit_takes_the_steps_of_adam(batch):
    X, scores = problem(1, n=6)
    index = better_and_worse(X, scores)
    rng = np.random.default_rng(2)
    weights = rank_net._first_weights(rng, 3, 3)
    batches = []
    for _ in range(2):
        order = index[rng.permutation(len(index))]
        batches += [
            order[start : start + batch] for start in range(0, len(index), batch)
        ]
    net = RankNet(3, batch_size=batch, n_epochs=2, sigma=1.5, random_state=2).fit(
        X, scores
    )
    np.testing.assert_allclose(
        net.weights_, adam(X, batches, weights, 0.01, 1.5), atol=1e-7
    )


def test_scores_are_outputs_and_the_loss_curve_has_the_loss_before_each_step():
    """With one batch per epoch, each value after the first is the loss after the
    previous epoch."""
    X, scores = problem(4)
    index = better_and_worse(X, scores)
    nets = [
        RankNet(n_epochs=k, batch_size=10**6, random_state=5).fit(X, scores)
        for k in (1, 2, 3)
    ]
    np.testing.assert_allclose(
        nets[0].rank_function(X), outputs(X, nets[0].weights_), rtol=1e-12
    )
    for earlier, later in pairwise(nets):
        expected = mean_loss(X, index, earlier.weights_, 1.0)
        assert later.loss_curve_[-1] == pytest.approx(expected)
        np.testing.assert_array_equal(later.loss_curve_[:-1], earlier.loss_curve_)


def test_a_seed_repeats_the_fit_a_generator_continues_and_none_draws_anew():
    X, scores = problem(7)

    def found(state):
        net = RankNet(n_epochs=2, random_state=state)
        return np.array([net.fit(X, scores).rank_function(X) for _ in range(3)])

    generated = found(np.random.default_rng(1))
    np.testing.assert_array_equal(found(np.random.default_rng(1)), generated)
    one = found(1)
    two = found(2)
    none = found(None)
    assert [len(np.unique(fits, axis=0)) for fits in (one, two, none, generated)] == [
        1,
        1,
        3,
        3,
    ]
    assert (one != two).all()


def test_queries_without_a_pair_do_not_change_the_net():
    X, scores = problem(3)
    extra = np.vstack([X, [[9.0, 9.0, 9.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]])
    qid = [0] * 20 + [1, 2, 2]
    net = RankNet(n_epochs=2)
    same = RankNet(n_epochs=2).fit(X, scores)
    np.testing.assert_array_equal(
        net.fit(extra, [*scores, 1, 1, 1], qid).rank_function(X), same.rank_function(X)
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("n_hidden", 0), ("n_epochs", -1), ("batch_size", 0), ("random_state", -1)),
        *(("learning_rate", 1e-7), ("learning_rate", 1e7), ("sigma", np.nan)),
    ],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"^{name} is {value}"):
        RankNet(**{name: value}).fit(*problem(0))


def test_items_that_are_all_equal_are_rejected():
    with pytest.raises(ValueError, match=r"^X "):
        RankNet().fit(np.ones((5, 2)), np.arange(5))


def test_the_scores_of_the_largest_parameters_are_finite():
    X, scores = problem(3)
    X /= np.abs(X).max()
    net = RankNet(n_hidden=9, n_epochs=5, learning_rate=1e6, sigma=1e6).fit(
        1e100 * X, scores
    )
    assert np.isfinite(net.rank_function(-1e100 * X)).all()
    assert np.isfinite(net.loss_curve_).all()
