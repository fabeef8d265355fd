"""Scores of participants of races compared with the likelihood and with simulations."""

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax

from preflearn_book.penalty import penalty_by_evidence
from preflearn_book.race_model import (
    RaceModel,
    calibration,
    forecast,
    held_out,
)
from preflearn_book.runner.decision_rules import compare

NAMES = list("abcde")


def drawn(theta, m=40, retired=0.2, seed=0):
    """Races with Gumbel noise, of which each participant finishes with a probability."""
    rng = np.random.default_rng(seed)
    rankings, unranked = [], []
    for _ in range(m):
        order = np.argsort(-(theta + rng.gumbel(size=len(theta))))
        stops = rng.random(len(theta)) < retired
        finishers = [(NAMES[k],) for k in order if not stops[k]]
        if finishers:
            rankings.append(finishers)
            unranked.append([NAMES[k] for k in order if stops[k]])
    return rankings, unranked


def log_likelihood(theta, rankings, unranked):
    score = dict(zip(NAMES, theta, strict=True))
    total = 0.0
    for ranking, rest in zip(rankings, unranked, strict=True):
        left = [name for (name,) in ranking] + list(rest)
        for (name,) in ranking:
            total += score[name] - np.logaddexp.reduce([score[x] for x in left])
            left.remove(name)
    return total


THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])


def test_scores_maximize_the_penalized_likelihood():
    races = drawn(THETA)
    model = RaceModel(*races)
    best = minimize(
        lambda x: model.alpha / 2 * x @ x - log_likelihood(x, *races), np.zeros(5)
    )
    mean, covariance = model.scores_of(NAMES)
    np.testing.assert_allclose(mean, best.x, atol=1e-4)
    # minus the second differences of the log-likelihood
    h, eye = 1e-3, np.eye(5)
    information = np.array(
        [
            [
                sum(
                    sign * log_likelihood(mean + h * (s * a + t * b), *races)
                    for s, t, sign in ((1, 1, -1), (1, -1, 1), (-1, 1, 1), (-1, -1, -1))
                )
                for a in eye
            ]
            for b in eye
        ]
    ) / (4 * h * h)
    inverse = np.linalg.inv(information + model.alpha * eye)
    center = eye - 0.2
    np.testing.assert_allclose(covariance, center @ inverse @ center, rtol=1e-3)


def test_the_penalty_has_the_largest_evidence():
    rng = np.random.default_rng(0)
    y, noise = rng.normal(0, 1.5, 30), 0.5

    def moments(alpha):
        precision = alpha + 1 / noise**2
        return y / noise**2 / precision, np.full(30, 1 / precision)

    # y has the variance 1/alpha + noise²
    expected = 1 / (np.mean(y**2) - noise**2)
    assert penalty_by_evidence(moments, 30) == pytest.approx(expected, rel=0.05)


def test_intervals_of_few_races_of_similar_participants_are_wide_enough():
    held = []
    for seed in range(20):
        theta = np.random.default_rng(seed).normal(0, 0.3, 5)
        model = RaceModel(*drawn(theta, 8, seed=seed)).fitted
        low, high = model.interval().T
        true = theta - theta.mean()
        held.append((low <= true) & (true <= high))
    assert np.mean(held) > 0.9


def test_chances_are_those_of_all_orders_of_a_race():
    model = RaceModel(*drawn(THETA, 400))
    table = forecast(model, NAMES).set_index("name").loc[NAMES]
    score, _ = model.scores_of(NAMES)
    podium = np.zeros(5)
    for order in permutations(range(5)):
        parts = [softmax(score[list(order[k:])])[0] for k in range(5)]
        podium[list(order[:3])] += np.prod(parts)
    # the scores are nearly known
    np.testing.assert_allclose(table["win"], softmax(score), atol=0.01)
    np.testing.assert_allclose(table["podium"], podium, atol=0.03)
    assert table["win"].sum() == pytest.approx(1)
    assert table["podium"].sum() == pytest.approx(3)
    assert ((table["low"] < table["win"]) & (table["win"] < table["high"])).all()


def test_an_unseen_participant_has_the_mean_score_and_the_variance_of_the_prior():
    model = RaceModel(*drawn(THETA, 400))
    mean, covariance = model.scores_of(["a", "new"])
    assert mean[1] == 0
    assert covariance[1].tolist() == [0, 1 / model.alpha]
    chance = forecast(model, ["new", "b", "d"]).set_index("name")["win"]
    assert chance["d"] < chance["new"]
    assert forecast(model, ["new", "other"])["win"].tolist() == pytest.approx(
        [0.5, 0.5], abs=0.03
    )


def test_held_out_losses_are_those_of_the_other_folds():
    rankings, unranked = drawn(THETA, 5)  # each race is a fold
    found = held_out(rankings, unranked)
    model = RaceModel(rankings[1:], unranked[1:])
    groups = [*rankings[0], tuple(unranked[0])]
    losses = []
    for k, better in enumerate(groups):
        for name in better:
            for other in (x for group in groups[k + 1 :] for x in group):
                mean, covariance = model.scores_of([name, other])
                variance = np.array([1, -1]) @ covariance @ np.array([1, -1])
                lead = (mean[0] - mean[1]) / np.sqrt(1 + np.pi * variance / 8)
                losses.append(-np.log(expit(lead)))
    assert found.ahead[0] == pytest.approx(np.mean(losses))
    assert found.n_pairs[0].sum() == len(losses)
    win = forecast(model, sum(groups, ())).set_index("name")["win"]
    assert np.exp(-found.winner[0]) == pytest.approx(win[groups[0][0]], abs=0.03)
    assert found.n_players.tolist() == [5] * 5


def test_forecasts_are_better_than_chance_only_if_participants_differ():
    better = []
    for theta in (THETA, 0 * THETA):
        test = held_out(*drawn(theta, 60, seed=1))
        gain = compare(-test.ahead, np.full(60, -np.log(2)), "event")
        better.append(gain.interval()[0] > 0)
        table = calibration(test)
        assert (table["low"] <= table["ahead"]).all()
        assert table["pairs"].min() >= 30
        assert table["pairs"].sum() == test.n_pairs[:, : len(table)].sum()
    assert better == [True, False]
