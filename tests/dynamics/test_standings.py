"""Standings of players, and races, whose results order more than two players."""

import warnings

import numpy as np
import pandas as pd
import pytest
from dynamics import problems
from dynamics.problems import NAMES, curves, small
from numpy.testing import assert_array_equal
from scipy.special import ndtr
from scipy.stats import rankdata
from sklearn.base import clone

from preflearn.dynamics import Constant, DynamicComparisons, Probit, Wiener
from preflearn.dynamics import model as model_module
from preflearn.matches import Matches


def fitted(matches, y, covariance, **options):
    return problems.fitted(
        covariance, Probit(), matches, y, **({"tol": 1e-8} | options)
    )


def test_standings_are_the_players_scores():
    """They do not contain the scores of the advantage and of pairs."""
    matches, y = small(n=30, outcomes=(1, -1))
    design = np.column_stack([matches.design.toarray(), np.ones((30, 2))])
    names = (*NAMES, "advantage", ("Ann", "Bob"))
    model = fitted(Matches(design, matches.time, names), y, Constant(1.0))
    table = model.standings()
    assert table["rank"].tolist() == [1, 2, 3, 4]
    assert table["score"].is_monotonic_decreasing
    assert sorted(table["name"]) == sorted(NAMES)
    for name, score, std, *_, n in table.itertuples(index=False):
        assert (score, std) == pytest.approx(model.scores(name, matches.time[-1]))
        assert n == np.count_nonzero(design[:, NAMES.index(name)])


def test_standings_at_a_time_and_since_a_time_are_among_those_who_played():
    matches = Matches(
        [[1, -1, 0], [1, -1, 0], [0, 1, -1]], [0.0, 1.0, 2.0], ["a", "b", "c"]
    )
    model = fitted(matches, [1, 1, -1], Constant(1.0) + Wiener(0.1))
    table = model.standings(1.5)
    assert (table["name"].tolist(), table["matches"].tolist()) == (["a", "b"], [2, 2])
    assert table["score"][0] == model.scores("a", 1.5)[0]
    assert model.standings("1970-01-02T12:00").equals(table)
    everybody = model.standings()
    table = model.standings(since=1.5)
    assert (table["name"].tolist(), table["matches"].tolist()) == (["c", "b"], [1, 3])
    assert (table["rank"].tolist(), table["rank_high"].max()) == ([1, 2], 2)
    assert (
        table["score"].tolist()
        == everybody.set_index("name")["score"][["c", "b"]].tolist()
    )
    assert model.standings(1.0, since="1970-01-02")["name"].tolist() == ["a", "b"]
    for name, value in (("time", -1.0), ("since", 2.5)):
        with pytest.raises(ValueError, match=f"{name} is {value}"):
            model.standings(**{name: value})


def test_ranks_have_the_intervals_of_their_posterior():
    """Integrate over each order of three independent scores."""
    matches, y = small(n=6, names=NAMES[:3], outcomes=(1, -1))
    table = fitted(matches, y, Constant(1.0)).standings()
    z = np.linspace(-9, 9, 4001)
    chance = np.zeros((3, 3))
    mean = table["score"].to_numpy()
    std = table["std"].to_numpy()
    for k in range(3):
        density = np.exp(-0.5 * ((z - mean[k]) / std[k]) ** 2)
        # probabilities that the other scores are above z
        one, two = (ndtr((mean[j] - z) / std[j]) for j in range(3) if j != k)
        at = (1 - one) * (1 - two), one + two - 2 * one * two, one * two
        chance[k] = [np.sum(density * p) / np.sum(density) for p in at]
    total = chance.cumsum(axis=1)
    # so that a thousand draws give the same rank
    assert np.abs(total - 0.025).min() > 0.005
    assert np.abs(total - 0.975).min() > 0.005
    np.testing.assert_array_equal(table["rank_low"], 1 + (total < 0.025).sum(axis=1))
    np.testing.assert_array_equal(table["rank_high"], 1 + (total < 0.975).sum(axis=1))


def test_ranks_do_not_depend_on_the_draws_in_memory(monkeypatch):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=30)
    std = rng.uniform(0.1, 1, size=30)
    draws = np.random.default_rng(0).standard_normal((1000, 30), dtype=np.float32)
    ranks = np.sort(rankdata(-(draws * std + mean), axis=1), axis=0)
    for block in (1, 30_000):
        monkeypatch.setattr(model_module, "_RANK_BLOCK", block)
        _, low, high = model_module._ranks(mean, std, std)
        assert_array_equal(low, ranks[25])
        assert_array_equal(high, ranks[974])


def test_players_who_tie_share_a_rank():
    """Earlier, equal scores had the ranks 1, 2, and 3, because of their last bits."""
    design = [
        [1, -1, 0, 0],
        [0, 1, -1, 0],
        [-1, 0, 1, 0],
        [1, 0, 0, -1],
        [0, 1, 0, -1],
        [0, 0, 1, -1],
    ]
    matches = Matches(design, np.zeros(6), list("abcd"))
    table = (
        DynamicComparisons(Constant(1.0), Probit()).fit(matches, [1] * 6).standings()
    )
    assert table["rank"].tolist() == [1, 1, 1, 4]
    assert table["name"].tolist() == list("abcd")
    ring = problems.matches_of(
        np.eye(60) - np.roll(np.eye(60), 1, axis=1), np.zeros(60)
    )
    table = DynamicComparisons(Constant(1.0), Probit()).fit(ring, [1] * 60).standings()
    assert table["rank"].tolist() == [1] * 60
    assert (table["rank_low"] <= table["rank"]).all()


# ---- Races


def race(order, events=1):
    rows = [
        (e, name, rank, float(e))
        for e in range(events)
        for rank, name in enumerate(order)
    ]
    return Matches.from_rankings(
        pd.DataFrame(rows, columns=["event", "player", "rank", "time"])
    )


def chain_of_performances(variances):
    """Return moments of s and the probability of performances p_1 > p_2 > p_3, p = s +
    error, by nested integrals."""
    z = np.linspace(-12, 12, 4001)
    step = z[1] - z[0]
    v = np.asarray(variances) + 0.5
    p = np.exp(-0.5 * z**2 / v[:, None]) / np.sqrt(2 * np.pi * v[:, None])
    below = np.cumsum(p, axis=1) * step - p * step / 2
    above = 1 - below
    inner = np.cumsum(p[1] * below[2]) * step  # integral over p_3 < p_2 < z
    inner -= p[1] * below[2] * step / 2
    # integral over z < p_2 < p_1
    outer = (np.cumsum((p[1] * above[0])[::-1]) * step)[::-1] - p[1] * above[
        0
    ] * step / 2
    weights = np.array([p[0] * inner, p[1] * above[0] * below[2], p[2] * outer])
    total = weights.sum(axis=1) * step
    mean = weights @ z * step / total
    square = weights @ z**2 * step / total - mean**2
    fraction = variances / v
    return fraction * mean, fraction**2 * square + fraction * 0.5, total


@pytest.mark.parametrize("variance", [0.2, 1.0, 5.0])
def test_a_race_of_three_is_near_exact_integration(variance):
    model = fitted(*race("abc"), Constant(variance))
    mean, square, chance = chain_of_performances([variance] * 3)
    np.testing.assert_allclose(chance, 1 / 6, rtol=1e-4)
    found, std = curves(model, "abc", (0.0,))[..., 0].T
    np.testing.assert_allclose(found, mean, atol=0.02 * np.sqrt(variance))
    np.testing.assert_allclose(std, np.sqrt(square), rtol=0.035)
    assert model.log_marginal_likelihood_ == pytest.approx(np.log(chance[0]), abs=0.04)


def test_a_race_of_two_is_a_match():
    model = fitted(*race("ab"), Constant(1.0))
    pair = fitted(
        Matches([[1.0, -1.0]], [0.0], ["a", "b"]), [1], Constant(1.0), tol=1e-11
    )
    np.testing.assert_allclose(curves(model, "ab"), curves(pair, "ab"), rtol=1e-4)
    ask = Matches([[1.0, -1.0]], [1.0], ["a", "b"])
    np.testing.assert_allclose(
        model.predict_proba(ask), pair.predict_proba(ask), rtol=1e-4
    )


def test_a_race_of_three_is_near_trueskill():
    """At its usual values, TrueSkill has well-known means. The model keeps a skill and
    its performance together, so its means differ a little."""
    sigma = 25 / 3
    beta = 25 / 6
    unit = np.sqrt(2) * beta
    model = fitted(*race("abc"), Constant((sigma / unit) ** 2))
    found = 25 + unit * curves(model, "abc", (0.0,))[:, 0, 0]
    np.testing.assert_allclose(found, [31.311, 25.0, 18.689], atol=0.06)


def test_races_have_standings_without_their_performances():
    matches, y = race("abcde", events=20)
    model = DynamicComparisons(Constant(1.0) + Wiener(0.01), Probit()).fit(matches, y)
    assert model.standings()["name"].tolist() == list("abcde")
    # a race counts once, and not once for each neighbor
    assert model.standings()["matches"].tolist() == [20] * 5
    ask = Matches([[1, -1]], [20.0], ["a", "e"])
    assert model.predict_proba(ask)[0, 1] > 0.95
    named = {"performance": Constant(0.5), "*": Constant(1.0) + Wiener(0.01)}
    with warnings.catch_warnings(action="error"):
        other = DynamicComparisons(named, Probit()).fit(matches, y)
    np.testing.assert_allclose(
        other.predict_proba(ask), model.predict_proba(ask), rtol=1e-6
    )


def test_a_race_has_one_order_one_time_and_no_weight():
    """Earlier, weights of races and "kl" gave meaningless numbers, and a second race of
    the same name was merged with the first."""
    matches, y = race("abc", events=3)
    model = DynamicComparisons(Constant(1.0), Probit())
    with pytest.raises(ValueError, match=r"'kl'.*'ep'"):
        clone(model).set_params(method="kl").fit(matches, y)
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is 2"):
        clone(model).fit(matches, y, [1, 2, 1, 1, 1, 1])
    part = clone(model).fit(matches, y, [1, 1, 1, 1, 0, 0])
    np.testing.assert_allclose(
        curves(part, "abc"), curves(clone(model).fit(*race("abc", 2)), "abc")
    )
    again = Matches(matches.design, matches.time + 10, matches.features)
    with pytest.raises(ValueError, match=r"event.*'0'.*name"):
        part.update(again, y)
    next_year = [
        (n[0], f"{n[1]} of 2021", n[2]) if isinstance(n, tuple) else n
        for n in again.features
    ]
    # follows the advice in the message
    part.update(Matches(again.design, again.time, next_year), y)
    assert part.standings()["matches"].tolist() == [6, 6, 6]
    assert (
        model.fit(matches[:3], y[:3])
        .update(matches[3:], y[3:])
        .standings()["matches"]
        .tolist()
        == [3] * 3
    )
