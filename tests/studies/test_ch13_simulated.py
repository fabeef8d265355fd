import math

import numpy as np
import pytest
from scipy.stats import norm

from preflearn_book.studies.ch13_simulated import (
    CONSTANT,
    LENGTHSCALE,
    MOVING,
    _moving,
    simulate_matches,
)


@pytest.fixture(scope="module")
def data():
    return simulate_matches(40_000, 2000, rng=0)


def test_times_are_whole_days_of_the_span_and_most_are_late(data):
    time = data.matches.time
    assert data.matches.shape == (40_000, 2000)
    np.testing.assert_array_equal(time, np.floor(time))
    assert 0 <= time[0] < 80_000
    assert 182_000 < time[-1] < 182_625
    assert np.median(time) > 0.9 * 182_625


def test_activity_has_a_heavy_tail_and_careers_end(data):
    players = data.matches.players()
    time = data.matches.time
    counts = np.sort(np.bincount(players.ravel()))
    assert counts[-20:].sum() > 0.2 * counts.sum()
    assert np.median(counts) < 0.5 * counts.mean()
    first = np.full(2000, np.inf)
    last = np.full(2000, -np.inf)
    np.minimum.at(first, players.ravel(), np.repeat(time, 2))
    np.maximum.at(last, players.ravel(), np.repeat(time, 2))
    assert np.quantile(last - first, 0.9) < 0.06 * 182_625


def test_outcomes_follow_the_ordinal_probit_model(data):
    """In each tenth of the score differences, each outcome is as frequent as its
    probability."""
    difference = data.scores[:, 0] - data.scores[:, 1]
    probabilities = {
        1: norm.cdf(difference - data.margin),
        -1: norm.cdf(-difference - data.margin),
    }
    probabilities[0] = 1 - probabilities[1] - probabilities[-1]
    tenth = np.searchsorted(
        np.quantile(difference, np.linspace(0.1, 0.9, 9)), difference
    )
    for outcome, p in probabilities.items():
        observed = np.bincount(tenth, data.y == outcome)
        expected = np.bincount(tenth, p)
        variance = np.bincount(tenth, p * (1 - p))
        assert (np.abs(observed - expected) < 4 * np.sqrt(variance)).all()


def test_scores_have_the_stated_covariance(data):
    """Simulate all players on four days, two of which are equal. A player has one
    draw of the process."""
    n = 30_000
    days = np.array([0.0, 10.0, 10.0, 5000.0])
    rng = np.random.default_rng(0)
    players = np.concatenate([rng.permutation(n) for _ in days]).reshape(-1, 2)
    found = _moving(players, np.repeat(days, n // 2), n, rng.normal(size=players.shape))
    moving = np.take_along_axis(
        found.reshape(4, n), players.reshape(4, n).argsort(axis=1), axis=1
    )
    expected = MOVING * np.exp(-np.abs(np.subtract.outer(days, days)) / LENGTHSCALE)
    np.testing.assert_allclose(moving @ moving.T / n, expected, atol=0.01)
    np.testing.assert_allclose(moving[1], moving[2], rtol=1e-12)
    _, first = np.unique(data.matches.players().ravel(), return_index=True)
    assert abs(
        np.var(data.scores.ravel()[first]) - (CONSTANT + MOVING)
    ) < 4 * 0.75 * math.sqrt(2 / 2000)


@pytest.mark.parametrize(
    ("n_matches", "n_players"), [(1, 2), (100, 2), (5, 10), (100, 7)]
)
def test_every_player_of_a_small_set_meets_another(n_matches, n_players):
    for seed in range(20):
        data = simulate_matches(n_matches, n_players, rng=seed, span=1.0)
        assert (np.diff(data.matches.players()) != 0).all()
        assert len(np.unique(data.matches.players())) == n_players
        assert (data.matches.time == 0).all()
