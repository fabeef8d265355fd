"""Best-worst scaling compared with its own model, and expected information compared
with a sum over draws."""

import numpy as np
import pandas as pd
import pytest

from preflearn.dynamics import Constant, DynamicComparisons, OrdinalLogit, Probit
from preflearn.matches import Matches, UnseenWarning
from preflearn.ranking import Davidson, OrdinalComparison, best_worst, next_pairs


@pytest.mark.parametrize("k", [2, 3, 5])
def test_between_equals_slope_and_information_are_those_of_the_choices(k):
    """Compare with the negative log-likelihood of the sequential model at s = 0, by its
    definition."""
    pairs, y, weight = best_worst([list(range(k))], [0], [k - 1])
    B = pairs.incidence().toarray()
    assert (y == 1).all()
    best = np.eye(k)[0]
    worst = np.eye(k)[k - 1]
    rest = np.eye(k)[1:]
    slope = best - np.full(k, 1 / k) - worst + rest.mean(axis=0)
    np.testing.assert_allclose(B.T @ (weight / 2), slope, atol=1e-12)
    information = np.zeros((k, k))
    for b in range(k):  # take the mean over all answers
        for w in set(range(k)) - {b}:
            pairs, _, weight = best_worst([list(range(k))], [b], [w])
            information += pairs.B.laplacian(weight / 4).toarray() / (k * (k - 1))
    expected = np.eye(k) / k - 1 / k**2
    for b in range(k):
        r = np.eye(k)[np.arange(k) != b]
        expected += (r.T @ r / (k - 1) - np.outer(r.mean(axis=0), r.mean(axis=0))) / k
    np.testing.assert_allclose(information, expected, atol=1e-12)


@pytest.mark.parametrize(("best", "worst"), [([3], [0]), ([0], [0]), ([0, 1], [1])])
def test_bad_answers_are_named(best, worst):
    """The bad answers are an item that is not in the set, the same item twice, and
    lists of different lengths."""
    with pytest.raises(ValueError, match="best"):
        best_worst([[0, 1, 2]], best, worst)


@pytest.mark.parametrize("model", [Davidson(0.3), OrdinalComparison("probit", 0.3)])
def test_expected_information_is_that_of_a_sum_over_draws(model):
    rng = np.random.default_rng(0)
    index = np.array([rng.choice(6, 2, replace=False) for _ in range(30)])
    y = rng.choice([-1, 0, 1], 30)
    model.fit(index, y)
    asked = np.column_stack(np.triu_indices(6, 1))
    mean, variance = model.moments(asked)
    information = []
    for a, v in zip(mean, variance, strict=True):
        p = model.probabilities(a + np.sqrt(v) * rng.standard_normal(100_000))
        q = p.mean(axis=0)
        information.append(np.sum(p * np.log(p / q), axis=1).mean())
    order = next_pairs(model, asked, n=15)
    np.testing.assert_allclose(
        np.array(information)[order], np.sort(information)[::-1], atol=2e-3
    )


@pytest.mark.parametrize("likelihood", [Probit(), OrdinalLogit(0.3)])
def test_the_players_with_fewest_matches_are_asked_first(likelihood):
    design = np.zeros((20, 4))
    design[:18, :2] = (1, -1)
    design[18:, 2:] = (1, -1)
    y = np.where(np.arange(20) % 2, 1, -1)
    model = DynamicComparisons(Constant(1.0), likelihood).fit(
        Matches(design, np.arange(20), list("abcd")), y
    )
    asked = Matches(
        [[1, -1, 0, 0], [1, 0, -1, 0], [0, 0, 1, -1]], [20, 20, 20], list("abcd")
    )
    assert next_pairs(model, asked, n=5).tolist() == [2, 1, 0]


def test_fixtures_may_be_a_frame_and_a_misspelt_name_causes_a_warning():
    fixtures = pd.DataFrame(
        {"first": ["a", "a"], "second": ["b", "bb"], "time": [3.0, 3.0]}
    )
    matches = Matches([[1, -1, 0], [0, 1, -1], [-1, 0, 1]], [0, 1, 2], ["a", "b", "c"])
    model = DynamicComparisons(Constant(1.0), Probit()).fit(matches, [1, 1, 1])
    with pytest.warns(UnseenWarning, match="'bb'.*'b'") as caught:
        assert next_pairs(model, fixtures, 2).tolist() == [1, 0]
    assert caught[0].filename == __file__
