import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from scipy.stats import skellam

from preflearn.dynamics import Constant, DynamicComparisons, Poisson
from preflearn.matches import Matches
from studies.ch14_points import result_probabilities, scoring_matches

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
    """P(X = 0), ..., P(X = largest) of a Poisson count with a normal log rate, by the trapezoid rule."""
    deviation = np.sqrt(variance)
    step = min(deviation / 3, 0.02)
    grid = np.arange(mean - 9 * deviation, mean + 9 * deviation + step, step)
    k = np.arange(largest + 1)

    def total(k, a, step):
        exponent = k * a - np.exp(a) - gammaln(k + 1) - 0.5 * (a - mean) ** 2 / variance
        return np.exp(exponent).sum(axis=-1) * step / np.sqrt(2 * np.pi * variance)

    if deviation < 0.3:  # the normal law is the narrow one
        parts = np.array_split(k, 1 + largest // 500)
        return np.concatenate([total(part[:, None], grid, step) for part in parts])
    few, many = k[: min(200, largest)], k[200:].astype(float)
    width = 1 / np.sqrt(many[:, None])  # of the likelihood of the log rate, where counts are many
    local = np.log(many[:, None]) + width * np.arange(-12, 12, 0.25)
    return np.concatenate([total(few[:, None], grid, step), total(many[:, None], local, 0.25 * width[:, 0])])


def counted(mean, variance, largest):
    """Loss, tie and win by sums over all counts; one above the largest beats all others."""
    p, q = (count_probabilities(m, v, largest) for m, v in zip(mean, variance, strict=True))
    beyond_p, beyond_q = 1 - p.sum(), 1 - q.sum()
    win = (p[1:] * np.cumsum(q)[:-1]).sum() + beyond_p * q.sum()
    loss = (q[1:] * np.cumsum(p)[:-1]).sum() + beyond_q * p.sum()
    return [loss, p @ q, win]


@pytest.mark.parametrize(
    ("mean", "variance", "largest"),
    [
        ((0.3, 0.1), (0.05, 0.07), 200),
        ((-3.0, -2.0), (1.0, 1e-6), 3_000),
        ((-3.0, 2.0), (1e-6, 0.05), 200),
        ((2.0, -1.0), (1e-6, 0.08), 200),
        ((4.6, 4.5), (0.003, 0.002), 400),
        ((4.6, 4.5), (1e-6, 0.08), 1_000),
        ((6.0, 5.9), (0.01, 1e-6), 1_500),
        ((6.0, 6.0), (1e-6, 1e-6), 800),
        ((0.0, 0.0), (1.0, 1.0), 5_000),
        ((2.5, 2.0), (2.0, 2.0), 20_000),
        ((5.0, -1.0), (1.0, 2.0), 20_000),
        ((6.0, 5.5), (0.17, 0.19), 10_000),  # w has nearly the largest variance for the eight nodes
    ],
)
def test_the_joint_law_of_counts(mean, variance, largest):
    found = result_probabilities([mean], [variance])[0]
    np.testing.assert_allclose(found, counted(mean, variance, largest), atol=1e-10)


def test_simulated_games_of_wide_laws():
    rng, n = np.random.default_rng(0), 400_000
    for mean, variance in [((6.0, 5.0), (4.0, 4.0)), ((-3.0, 6.0), (4.0, 3.0)), ((4.6, 4.5), (10.0, 10.0))]:
        x, y = rng.poisson(np.exp(rng.normal(mean, np.sqrt(variance), (n, 2)))).T
        share = np.array([(x < y).mean(), (x == y).mean(), (x > y).mean()])
        found = result_probabilities([mean], [variance])[0]
        assert (abs(found - share) < 4 * np.sqrt(found * (1 - found) / n) + 1e-6).all()


def test_known_rates_give_the_law_of_skellam():
    mean = np.random.default_rng(1).uniform(-3, 6, (200, 2))
    law = skellam(*np.exp(mean).T)
    expected = np.column_stack([law.cdf(-1), law.pmf(0), law.sf(0)])
    np.testing.assert_allclose(result_probabilities(mean, np.zeros((200, 2))), expected, atol=2e-9)


def test_exchanging_the_teams_mirrors_the_result():
    rng = np.random.default_rng(2)
    mean, variance = rng.uniform(-3, 6, (100, 2)), 10 ** rng.uniform(-6, 0.6, (100, 2))
    found = result_probabilities(mean, variance)
    turned = result_probabilities(mean[:, ::-1], variance[:, ::-1])
    np.testing.assert_allclose(turned, found[:, ::-1], atol=1e-11)


def test_extreme_moments_are_probabilities():
    rng = np.random.default_rng(3)
    mean, variance = rng.uniform(-100, 100, (200, 2)), 10 ** rng.uniform(-15, 2, (200, 2))
    found = result_probabilities(mean, variance)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    found = result_probabilities([[-100.0, -100.0], [100.0, -100.0]], [[1e-9, 1.0]] * 2)
    np.testing.assert_allclose(found, [[0, 1, 0], [0, 0, 1]], atol=1e-30)


def test_without_ties_each_team_gets_half_of_them():
    mean, variance = [[0.3, 0.1]], [[0.1, 0.2]]
    loss, tie, win = result_probabilities(mean, variance)[0]
    found = result_probabilities(mean, variance, ties=False)
    np.testing.assert_allclose(found, [[loss + tie / 2, win + tie / 2]], atol=1e-15)


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
    assert rows[2] == {("attack", "Ajax"): 1, ("defence", "Celta"): -1}  # neutral ground
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert not first.keys() & second.keys()  # so the two log rates are independent


def test_the_product_of_rates_is_one_with_one_score_a_team_only():
    rng = np.random.default_rng(4)
    games = pd.DataFrame({"first": ["a", "b"] * 20, "second": ["b", "c"] * 20, "time": np.arange(40.0)})
    games["first_score"], games["second_score"] = rng.poisson(110, 40), rng.poisson(90, 40)
    one, _ = Matches.from_frame(games, outcome="first_score")
    signed = one.design.toarray().repeat(2, axis=0) * np.tile([1, -1], 40)[:, None]
    points = games[["first_score", "second_score"]].to_numpy().ravel()
    forced = Matches(signed, one.time.repeat(2), one.features), points
    for data, product in ((forced, 1.0), (scoring_matches(games), 110 * 90)):
        model = DynamicComparisons(Constant(5.0), Poisson()).fit(*data)
        log_rates = model.moments(model.matches_)[0].reshape(-1, 2)
        np.testing.assert_allclose(np.exp(log_rates.sum(axis=1)), product, rtol=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first_score": [2, -1, 3]}, r"points\[1, 0\] is -1.0; expected whole numbers"),
        ({"second_score": [1.0, 0.5, 2.0]}, r"points\[1, 1\] is 0.5"),
        ({"second": ["Bray", "Celta", "Celta"]}, "meets himself in row 0"),
    ],
)
def test_bad_games_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        scoring_matches(GAMES.assign(**change))
