import numpy as np
import pandas as pd
import pytest
from scipy.stats import skellam

from preflearn_book.studies.ch14_points import result_probabilities, scoring_matches

GAMES = pd.DataFrame(
    {
        "first": ["Bray", "Ajax", "Bray"],
        "second": ["Ajax", "Celta", "Celta"],
        "time": [0.0, 1.0, 1.0],
        "first_score": [2, 0, 3],
        "second_score": [1, 0, 4],
    }
)


@pytest.mark.parametrize(
    ("mean", "variance"),
    [
        ((0.3, 0.1), (0.05, 0.07)),
        ((-3.0, -2.0), (1.0, 1e-6)),
        ((4.6, 4.5), (1e-6, 0.08)),
        ((0.0, 0.5), (1.0, 0.8)),
    ],
)
def test_result_probabilities_are_averages_over_both_rates(mean, variance):
    """Given the rates, the difference of the counts has a Skellam distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(50)
    rates = np.exp(np.array(mean)[:, None] + np.sqrt(variance)[:, None] * nodes)
    difference = skellam(rates[0][:, None], rates[1])
    given_rates = [difference.cdf(-1), difference.pmf(0), difference.sf(0)]
    expected = [weights @ part @ weights / (2 * np.pi) for part in given_rates]
    found = result_probabilities(np.array([mean]), np.array([variance]))[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_known_rates_give_the_skellam_distribution():
    mean = np.random.default_rng(1).uniform(-3, 6, (50, 2))
    difference = skellam(*np.exp(mean).T)
    expected = np.column_stack(
        [difference.cdf(-1), difference.pmf(0), difference.sf(0)]
    )
    found = result_probabilities(mean, np.zeros((50, 2)))
    np.testing.assert_allclose(found, expected, atol=2e-9)


def test_a_game_is_two_rows():
    matches, points = scoring_matches(GAMES)
    assert points.tolist() == [2, 1, 0, 0, 3, 4]
    assert matches.time.tolist() == [0, 0, 1, 1, 1, 1]
    rows = [
        {matches.features[k]: v for k, v in zip(row.indices, row.data, strict=True)}
        for row in (matches.design[[n]] for n in range(6))
    ]
    assert rows[0] == {("attack", "Bray"): 1, ("defence", "Ajax"): -1}
    assert rows[1] == {("attack", "Ajax"): 1, ("defence", "Bray"): -1}
    assert rows[5] == {("attack", "Celta"): 1, ("defence", "Bray"): -1}
