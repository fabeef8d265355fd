import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from scipy.stats import skellam

from preflearn_book.studies.ch14_points import result_probabilities, scoring_matches

GAMES = pd.DataFrame(
    {
        "first": ["Bray", "Ajax", "Bray"],
        "second": ["Ajax", "Celta", "Celta"],
        "time": [0.0, 1.0, 1.0],
        "first_score": [2, 0, 3],
        "second_score": [1, 0, 4],
        "home": [True, False, True],
    }
)


def count_probabilities(mean, variance, largest):
    """Return P(X = 0), ..., P(X = largest) of a Poisson count with a normal log rate
    (trapezoid rule)."""
    deviation = np.sqrt(variance)
    step = min(deviation / 3, 0.02)
    grid = np.arange(mean - 9 * deviation, mean + 9 * deviation + step, step)
    k = np.arange(largest + 1)

    def total(k, a, step):
        exponent = k * a - np.exp(a) - gammaln(k + 1) - 0.5 * (a - mean) ** 2 / variance
        return np.exp(exponent).sum(axis=-1) * step / np.sqrt(2 * np.pi * variance)

    if deviation < 0.3:  # the normal density is the narrow one
        parts = np.array_split(k, 1 + largest // 500)
        return np.concatenate([total(part[:, None], grid, step) for part in parts])
    few = k[: min(200, largest)]
    many = k[200:].astype(float)
    # of the likelihood of the log rate, where counts are many
    width = 1 / np.sqrt(many[:, None])
    local = np.log(many[:, None]) + width * np.arange(-12, 12, 0.25)
    return np.concatenate(
        [
            total(few[:, None], grid, step),
            total(many[:, None], local, 0.25 * width[:, 0]),
        ]
    )


def counted(mean, variance, largest):
    """Return loss, tie and win as sums over all counts; a count above the largest beats
    all others."""
    p, q = (
        count_probabilities(m, v, largest) for m, v in zip(mean, variance, strict=True)
    )
    beyond_p = 1 - p.sum()
    beyond_q = 1 - q.sum()
    win = (p[1:] * np.cumsum(q)[:-1]).sum() + beyond_p * q.sum()
    loss = (q[1:] * np.cumsum(p)[:-1]).sum() + beyond_q * p.sum()
    return [loss, p @ q, win]


@pytest.mark.parametrize(
    ("mean", "variance", "largest"),
    [
        ((0.3, 0.1), (0.05, 0.07), 200),
        ((-3.0, -2.0), (1.0, 1e-6), 3_000),
        ((4.6, 4.5), (1e-6, 0.08), 1_000),
        ((6.0, 6.0), (1e-6, 1e-6), 800),
        ((0.0, 0.0), (1.0, 1.0), 5_000),
        ((2.5, 2.0), (2.0, 2.0), 20_000),
        ((5.0, -1.0), (1.0, 2.0), 20_000),
        # w has nearly the largest variance for the eight nodes
        ((6.0, 5.5), (0.17, 0.19), 10_000),
    ],
)
def test_result_probabilities_are_sums_over_counts(mean, variance, largest):
    found = result_probabilities([mean], [variance])[0]
    np.testing.assert_allclose(found, counted(mean, variance, largest), atol=1e-10)


def test_result_probabilities_are_those_of_simulated_games_where_rates_are_very_uncertain():
    rng = np.random.default_rng(0)
    n = 400_000
    for mean, variance in [
        ((6.0, 5.0), (4.0, 4.0)),
        ((-3.0, 6.0), (4.0, 3.0)),
        ((4.6, 4.5), (10.0, 10.0)),
    ]:
        x, y = rng.poisson(np.exp(rng.normal(mean, np.sqrt(variance), (n, 2)))).T
        share = np.array([(x < y).mean(), (x == y).mean(), (x > y).mean()])
        found = result_probabilities([mean], [variance])[0]
        assert (abs(found - share) < 4 * np.sqrt(found * (1 - found) / n) + 1e-6).all()


def test_known_rates_give_the_skellam_distribution():
    mean = np.random.default_rng(1).uniform(-3, 6, (200, 2))
    difference = skellam(*np.exp(mean).T)
    expected = np.column_stack(
        [difference.cdf(-1), difference.pmf(0), difference.sf(0)]
    )
    np.testing.assert_allclose(
        result_probabilities(mean, np.zeros((200, 2))), expected, atol=2e-9
    )


def test_exchanging_the_teams_mirrors_the_result_and_ties_can_be_split():
    rng = np.random.default_rng(2)
    mean = rng.uniform(-3, 6, (100, 2))
    variance = 10 ** rng.uniform(-6, 0.6, (100, 2))
    found = result_probabilities(mean, variance)
    exchanged = result_probabilities(mean[:, ::-1], variance[:, ::-1])
    np.testing.assert_allclose(exchanged, found[:, ::-1], atol=1e-11)
    split = found[:, [0, 2]] + found[:, [1]] / 2
    np.testing.assert_allclose(
        result_probabilities(mean, variance, ties=False), split, atol=1e-15
    )


def test_extreme_moments_give_probabilities():
    rng = np.random.default_rng(3)
    mean = rng.uniform(-100, 100, (200, 2))
    variance = 10 ** rng.uniform(-15, 2, (200, 2))
    found = result_probabilities(mean, variance)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    found = result_probabilities([[-100.0, -100.0], [100.0, -100.0]], [[1e-9, 1.0]] * 2)
    np.testing.assert_allclose(found, [[0, 1, 0], [0, 0, 1]], atol=1e-30)


def test_a_game_is_two_rows():
    matches, points = scoring_matches(GAMES, advantage="home")
    assert points.tolist() == [2, 1, 0, 0, 3, 4]
    assert matches.time.tolist() == [0, 0, 1, 1, 1, 1]
    rows = [
        {matches.features[k]: v for k, v in zip(row.indices, row.data, strict=True)}
        for row in (matches.design[[n]] for n in range(6))
    ]
    assert rows[0] == {("attack", "Bray"): 1, ("defence", "Ajax"): -1, "advantage": 1}
    assert rows[1] == {("attack", "Ajax"): 1, ("defence", "Bray"): -1}
    # neutral ground
    assert rows[2] == {("attack", "Ajax"): 1, ("defence", "Celta"): -1}
    assert rows[5] == {("attack", "Celta"): 1, ("defence", "Bray"): -1}


def test_points_are_not_negative():
    with pytest.raises(ValueError, match=r"points.* -1"):
        scoring_matches(GAMES.assign(first_score=[2, -1, 3]))
