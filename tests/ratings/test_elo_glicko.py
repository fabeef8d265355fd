"""Elo and Glicko compared with their published rules, one match at a time."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ratings.seasons import davidson, one_after_the_other, played
from sklearn.base import clone

from preflearn.dynamics import Logit, OrdinalLogit, OrdinalProbit, Probit
from preflearn.matches import Matches
from preflearn.ratings import Elo, Glicko

PAIR = Matches([[1, -1]], [1], ["a", "b"])
LIKELIHOODS = [Logit(), Probit(), OrdinalLogit(0.6), OrdinalProbit(0.4)]
every_likelihood = pytest.mark.parametrize(
    "likelihood", LIKELIHOODS, ids=lambda found: type(found).__name__
)


def score(difference):
    return 1 / (1 + 10 ** (-difference / 400))


# ---- Elo


def plain_elo(matches, y, slope, factor, initial, advantage):
    """Return the ratings before each match and at the end, and the numbers of games, by
    the published rules."""
    rating = {}
    games = Counter()
    best = {}
    before = []
    for (a, b), h, _, outcome in one_after_the_other(matches, y, advantage):
        ra = rating.get(a, initial)
        rb = rating.get(b, initial)
        before.append((ra, rb))
        gain = slope(outcome, ra - rb + h)
        for player, now, change in ((a, ra, gain), (b, rb, -gain)):
            rating[player] = (
                now + factor(games[player], best.get(player, initial)) * change
            )
            games[player] += 1
            best[player] = max(best.get(player, initial), rating[player])
    return (
        before,
        [rating[p] for p in sorted(rating)],
        [games[p] for p in sorted(rating)],
    )


def surprise(outcome, difference):
    return (outcome + 1) / 2 - score(difference)


def fide(games, best):
    return 10 if best >= 2400 else 30 if games < 30 else 15


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("elo", "factor"),
    [
        (Elo(), fide),
        (Elo(initial=2350), fide),
        (Elo(k=24, initial=1500), lambda *_: 24),
    ],
    ids=["fide", "elite", "24"],
)
def test_elo_follows_the_rules(elo, factor, seed):
    matches, y = played(seed, n=4, N=120)  # each player has more than 30 games
    elo = clone(elo).set_params(advantage=35).fit(matches, y)
    before, ratings, games = plain_elo(matches, y, surprise, factor, elo.initial, 35)
    np.testing.assert_allclose(elo.before_, before, rtol=1e-12)
    np.testing.assert_allclose(elo.ratings_, ratings, rtol=1e-12)
    np.testing.assert_array_equal(elo.games_, games)
    # players who once reached 2400 keep their factor
    assert (elo.elite_ & (elo.ratings_ < 2400)).any() == (elo.initial == 2350)


@every_likelihood
def test_with_a_likelihood_each_match_is_a_step_up_the_gradient(likelihood):
    matches, y = played(1, n=5, N=40, ties=0.3 * likelihood.has_ties, a_day=3)

    def slope(outcome, d):
        up, down = likelihood.log_density([outcome] * 2, [d + 1e-5, d - 1e-5])
        return (up - down) / 2e-5

    elo = Elo(likelihood=likelihood, rate=0.3, advantage=0.25).fit(matches, y)
    before, ratings, games = plain_elo(matches, y, slope, lambda *_: 0.3, 0.0, 0.25)
    np.testing.assert_allclose(elo.before_, before, atol=1e-8)
    np.testing.assert_allclose(elo.ratings_, ratings, atol=1e-8)
    np.testing.assert_array_equal(elo.games_, games)


def test_k_scale_and_advantage_are_in_the_unit_of_the_ratings():
    matches, y = played(8, ties=0)
    points = Elo(k=24, initial=0, advantage=40).fit(matches, y)
    assert points.ratings_.sum() == pytest.approx(0, abs=1e-10)
    small = Elo(k=6, initial=0, scale=100, advantage=10).fit(matches, y)
    np.testing.assert_allclose(4 * small.before_, points.before_, atol=1e-10)
    np.testing.assert_allclose(
        small.predict_proba(matches), points.predict_proba(matches)
    )


def test_new_players_may_come_later():
    elo = Elo(k=20).fit(Matches([[1, -1]], [0], ["a", "b"]), [1])
    elo.partial_fit(Matches([[-1, 1]], [1], ["a", "c"]), [1])
    assert elo.players_ == ("a", "b", "c")
    assert elo.ratings_[1] == 1190
    assert elo.games_.tolist() == [2, 1, 1]
    assert elo.before_.tolist() == [[1200, 1210]]
    unknown = Matches([[1, -1], [1, -1]], [2, 2], ["b", "nobody"])
    np.testing.assert_allclose(elo.decision_function(unknown, "ignore"), [-10, -10])


@every_likelihood
def test_forecasts_are_those_of_the_likelihood(likelihood):
    matches, y = played(5, ties=0.3 * likelihood.has_ties)
    elo = Elo(likelihood=likelihood, advantage=0.3).fit(matches, y)
    p = elo.predict_proba(matches)
    d = elo.decision_function(matches)
    assert elo.classes_.tolist() == ([-1, 0, 1] if likelihood.has_ties else [-1, 1])
    for column, label in zip(p.T, elo.classes_, strict=True):
        np.testing.assert_allclose(
            np.log(column), likelihood.log_density(np.full(len(y), label), d)
        )


@every_likelihood
@given(
    one=st.tuples(st.floats(-30, 30), st.floats(-30, 30)),
    two=st.tuples(st.floats(-30, 30), st.floats(-30, 30)),
    y=st.sampled_from([-1, 0, 1]),
)
def test_a_step_of_rate_1_brings_two_players_scores_no_further_apart(
    likelihood, one, two, y
):
    """Larger rates are rejected for this reason: with a probit likelihood, scores may
    diverge."""
    y = y if likelihood.has_ties else y or 1
    after = []
    for scores in (one, two):
        elo = Elo(likelihood=likelihood, rate=1.0).fit(PAIR, [1])
        elo.ratings_ = np.array(scores)
        after.append(elo.partial_fit(PAIR, [y]).ratings_)
    assert (
        np.linalg.norm(after[0] - after[1])
        <= np.linalg.norm(np.subtract(one, two)) + 1e-9
    )


# ---- Glicko


def growth(v):
    """Return the factor g of a variance."""
    return 1 / np.sqrt(1 + 3 * (math.log(10) / 400) ** 2 * v / math.pi**2)


def plain_glicko(matches, y, initial, deviation, c, period, advantage):
    """Apply Glickman's formulas to one period and one player at a time. Also return the
    values with which each match was rated."""
    q = math.log(10) / 400
    rows = list(one_after_the_other(matches, y, advantage))
    groups = np.arange(len(y)) if period is None else np.floor(matches.time / period)
    # the state of each player: rating, variance, time
    state = {}
    before = []
    for group in np.unique(groups):
        matched = [rows[k] for k in np.flatnonzero(groups == group)]
        now = matched[0][2] if period is None else group * period
        playing = {}
        for p in {p for both, *_ in matched for p in both}:
            r, v, last = state.get(p, (initial, deviation**2, now))
            playing[p] = (r, min(v + c**2 * (now - last), deviation**2))
        before += [
            np.transpose([playing[a], playing[b]]).ravel() for (a, b), *_ in matched
        ]
        for p, (r, v) in playing.items():
            total = information = 0.0
            for both, h, _, outcome in matched:
                if p in both:
                    side = 1 if p == both[0] else -1
                    other_r, other_v = playing[both[side == 1]]
                    g = growth(other_v)
                    expected = score(g * (r - other_r + side * h))
                    total += g * ((1 + side * outcome) / 2 - expected)
                    information += q**2 * g**2 * expected * (1 - expected)
            v = 1 / (1 / v + information)
            state[p] = (r + q * v * total, v, now)
    return np.array(before), np.array([state[p][:2] for p in sorted(state)])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("period", [None, 1, 2.5])
def test_glicko_follows_the_formulas(seed, period):
    matches, y = played(seed)
    glicko = Glicko(deviation=200, c=40, period=period, advantage=30).fit(matches, y)
    before, after = plain_glicko(matches, y, 1500, 200, 40, period, 30)
    np.testing.assert_allclose(
        np.hstack([glicko.before_, glicko.deviation_before_**2]), before, rtol=1e-10
    )
    np.testing.assert_allclose(
        np.transpose([glicko.ratings_, glicko.deviations_**2]), after, rtol=1e-10
    )


def test_glickmans_worked_example():
    """A player of 1500 with deviation 200 beats 1400 (30) and loses to 1550 (100) and
    1700 (300). The result is 1464, 151.4."""
    matches = Matches(
        [[1, -1, 0, 0], [1, 0, -1, 0], [1, 0, 0, -1]],
        [0, 0, 0],
        ["player", "x", "y", "z"],
    )
    glicko = Glicko(period=1).fit(matches, [0, 0, 0])
    glicko.ratings_ = np.array([1500.0, 1400.0, 1550.0, 1700.0])
    glicko.deviations_ = np.array([200.0, 30.0, 100.0, 300.0])
    glicko.partial_fit(matches, [1, -1, -1])
    assert round(glicko.ratings_[0]) == 1464
    assert round(glicko.deviations_[0], 1) == 151.4


@pytest.mark.parametrize("rest", [0, 3, 400])
def test_glickos_expected_score_uses_both_deviations_at_the_time(rest):
    matches, y = played(11)
    glicko = Glicko(c=30).fit(matches, y)
    last = Matches(matches.design[[-1]], matches.time[-1:] + rest, matches.features)
    # all columns before the advantage are players, in order
    p = glicko.predict_proba(last)[0]
    ids = matches.players()[-1]
    idle = matches.time[-1] + rest - glicko.last_[ids]
    variances = np.minimum(glicko.deviations_[ids] ** 2 + 30**2 * idle, 350**2)
    expected = score(growth(variances.sum()) * -np.diff(glicko.ratings_[ids])[0])
    assert p[2] + p[1] / 2 == pytest.approx(expected, rel=1e-12)


# ---- Forecasts with ties


@pytest.mark.parametrize("system", [Elo(k=40), Glicko(c=20, advantage=35)])
def test_nu_is_the_most_likely_one(system):
    matches, y = played(12, N=200)
    fitted = clone(system).fit(matches, y)
    home = matches.design.toarray()[:, -1] * fitted.advantage
    difference = fitted.before_ @ [1, -1] + home
    if isinstance(fitted, Glicko):
        difference *= growth((fitted.deviation_before_**2).sum(axis=1))

    def log_likelihood(nu):
        return np.log(davidson(score(difference), nu)[np.arange(200), y + 1]).sum()

    best = log_likelihood(fitted.nu_)
    assert all(log_likelihood(nu) <= best for nu in np.geomspace(1e-3, 1e3, 13))
    assert log_likelihood(fitted.nu_ * 1.01) < best > log_likelihood(fitted.nu_ / 1.01)
