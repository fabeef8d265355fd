"""Best-worst scaling against its own model, and questions against random ones."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from preflearn.dynamics import Constant, DynamicComparisons, OrdinalLogit, Probit
from preflearn.matches import Matches, UnseenWarning
from preflearn.ranking import Davidson, OrdinalComparison, best_worst, next_pairs


def answers(seed, s, m, k):
    """Sets, best and worst of the sequential model."""
    rng = np.random.default_rng(seed)
    sets = [rng.choice(len(s), k, replace=False) for _ in range(m)]
    best = [int(rng.choice(items, p=softmax(s[items]))) for items in sets]
    rest = [items[items != b] for items, b in zip(sets, best, strict=True)]
    return [r.tolist() for r in sets], best, [int(rng.choice(r, p=softmax(-s[r]))) for r in rest]


@pytest.mark.parametrize("k", [2, 3, 5])
def test_between_equals_slope_and_information_are_those_of_the_choices(k):
    """Of minus the log-likelihood of the sequential model at s = 0, by the definition."""
    pairs, y, weight = best_worst([list(range(k))], [0], [k - 1])
    B = pairs.incidence().toarray()
    assert (y == 1).all()
    best, worst = np.eye(k)[0], np.eye(k)[k - 1]
    rest = np.eye(k)[1:]
    slope = best - np.full(k, 1 / k) - worst + rest.mean(axis=0)
    np.testing.assert_allclose(B.T @ (weight / 2), slope, atol=1e-12)
    information = np.zeros((k, k))
    for b in range(k):  # the mean over all answers
        for w in set(range(k)) - {b}:
            pairs, _, weight = best_worst([list(range(k))], [b], [w])
            information += pairs.B.laplacian(weight / 4).toarray() / (k * (k - 1))
    kinds = np.eye(k) / k - 1 / k**2
    for b in range(k):
        r = np.eye(k)[np.arange(k) != b]
        kinds += (r.T @ r / (k - 1) - np.outer(r.mean(axis=0), r.mean(axis=0))) / k
    np.testing.assert_allclose(information, kinds, atol=1e-12)


def test_many_answers_lead_to_the_scores_with_errors_that_fit():
    s = np.linspace(-1, 1, 6)
    found = [Davidson(1e-6).fit(*best_worst(*answers(seed, s, 400, 4))) for seed in range(25)]
    coef, errors = np.array([f.coef_ for f in found]), np.array([f.standard_errors() for f in found])
    np.testing.assert_allclose(coef.mean(axis=0), s, atol=0.08)
    ratio = np.sqrt((errors**2).mean(axis=0)).mean() / coef.std(axis=0, ddof=1).mean()
    assert 0.8 < ratio < 1.25  # with weights of 1 it is about 0.6


@pytest.mark.parametrize(
    ("best", "worst"), [([3], [0]), ([0], [0]), ([0, 1], [1])], ids=["not in it", "the same", "lengths"]
)
def test_bad_answers_are_named(best, worst):
    with pytest.raises(ValueError, match="expected"):
        best_worst([[0, 1, 2]], best, worst)


@pytest.mark.parametrize("model", [Davidson(0.3), OrdinalComparison("probit", 0.3)])
def test_expected_information_is_that_of_a_sum_over_draws(model):
    rng = np.random.default_rng(0)
    index, y = np.array([rng.choice(6, 2, replace=False) for _ in range(30)]), rng.choice([-1, 0, 1], 30)
    model.fit(index, y)
    asked = np.column_stack(np.triu_indices(6, 1))
    mean, variance = model.moments(asked)
    told = []
    for a, v in zip(mean, variance, strict=True):
        p = model.probabilities(a + np.sqrt(v) * rng.standard_normal(200_000))
        q = p.mean(axis=0)
        told.append(np.sum(p * np.log(p / q), axis=1).mean())
    order = next_pairs(model, asked, n=15)
    np.testing.assert_allclose(np.array(told)[order], np.sort(told)[::-1], atol=2e-3)


def test_questions_beat_random_ones_on_an_arena():
    """Thirty models of language; in each of twenty rounds ten battles, asked for or at random."""
    error = {"asked": [], "random": []}
    every = np.column_stack(np.triu_indices(30, 1))
    for seed in range(4):
        s = 3.0 * np.random.default_rng(seed).normal(size=30)
        for way, errors in error.items():
            rng = np.random.default_rng([seed, 1])
            seen = np.column_stack([np.arange(30), np.roll(np.arange(30), 1)])
            y = battles(rng, s, seen)
            for _ in range(20):
                model = Davidson(0.1).fit(seen, y)
                rows = next_pairs(model, every, 10) if way == "asked" else rng.choice(len(every), 10)
                seen, y = np.vstack([seen, every[rows]]), np.append(y, battles(rng, s, every[rows]))
            errors.append(np.mean((Davidson(0.1).fit(seen, y).coef_ - s + s.mean()) ** 2))
    assert np.mean(error["asked"]) < 0.75 * np.mean(error["random"])  # 0.59 and 1.11


def battles(rng, s, pairs):
    return np.where(rng.random(len(pairs)) < 1 / (1 + np.exp(s[pairs[:, 1]] - s[pairs[:, 0]])), 1, -1)


@pytest.mark.parametrize("likelihood", [Probit(), OrdinalLogit(0.3)])
def test_of_matches_who_plays_seldom_is_asked_first(likelihood):
    design = np.zeros((20, 4))
    design[:18, :2], design[18:, 2:] = (1, -1), (1, -1)
    y = np.where(np.arange(20) % 2, 1, -1)
    model = DynamicComparisons(Constant(1.0), likelihood).fit(Matches(design, np.arange(20), list("abcd")), y)
    asked = Matches([[1, -1, 0, 0], [1, 0, -1, 0], [0, 0, 1, -1]], [20, 20, 20], list("abcd"))
    assert next_pairs(model, asked, n=5).tolist() == [2, 1, 0]


def test_fixtures_may_be_a_frame_and_a_misspelt_name_is_told():
    """It was the first to be asked of, since nothing was known of it."""
    fixtures = pd.DataFrame({"first": ["a", "a"], "second": ["b", "bb"], "time": [3.0, 3.0]})
    matches = Matches([[1, -1, 0], [0, 1, -1], [-1, 0, 1]], [0, 1, 2], ["a", "b", "c"])
    model = DynamicComparisons(Constant(1.0), Probit()).fit(matches, [1, 1, 1])
    with pytest.warns(UnseenWarning, match=r"nothing was learned of 'bb' \(.* is 'b'\)") as told:
        assert next_pairs(model, fixtures, 2).tolist() == [1, 0]
    assert told[0].filename == __file__
