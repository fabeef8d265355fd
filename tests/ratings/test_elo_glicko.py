import math

import numpy as np
import pytest
from ratings.seasons import played
from scipy.optimize import approx_fprime, brentq
from scipy.special import expit
from sklearn.base import clone

from preflearn.dynamics import Logit, Probit
from preflearn.matches import Matches
from preflearn.metrics import log_loss
from preflearn.ratings import Elo, Glicko, TrueSkill

SYSTEMS = [Elo(), Elo(k=24, advantage=35), Glicko(c=20), Glicko(c=20, period=3, advantage=35)]
every_system = pytest.mark.parametrize("system", SYSTEMS, ids=["fide", "elo", "glicko", "periods"])


def plain_elo(matches, y, k, initial, advantage):
    """Ratings before each match and at the end, by the rules as they are printed."""
    rating, games, best, before = {}, {}, {}, []
    home = matches.design.toarray()[:, matches.features.index("advantage")]
    for (a, b), h, s in zip(matches.players().tolist(), home, (np.asarray(y) + 1) / 2, strict=True):
        ra, rb = rating.get(a, initial), rating.get(b, initial)
        before.append((ra, rb))
        expected = 1 / (1 + 10 ** (-(ra - rb + advantage * h) / 400))
        for player, now, gain in ((a, ra, s - expected), (b, rb, expected - s)):
            factor = k
            if k == "fide":
                factor = 30 if games.get(player, 0) < 30 else 15
                factor = 10 if best.get(player, initial) >= 2400 else factor
            rating[player] = now + factor * gain
            games[player] = games.get(player, 0) + 1
            best[player] = max(best.get(player, initial), rating[player])
    return np.array(before), {matches.features[p]: r for p, r in rating.items()}, games


def plain_glicko(matches, y, initial, deviation, c, period, advantage):
    """Glickman's formulas, a period at a time and a player at a time."""
    q = math.log(10) / 400
    home = matches.design.toarray()[:, matches.features.index("advantage")] * advantage
    players, s = matches.players(), (np.asarray(y) + 1) / 2
    groups = np.arange(len(y)) if period is None else np.floor(matches.time / period)
    clock = matches.time if period is None else groups * period
    state = {}  # player: rating, variance, time
    for group in np.unique(groups):
        rows, now = np.flatnonzero(groups == group), clock[groups == group][0]
        playing = {}
        for p in set(players[rows].ravel().tolist()):
            r, v, last = state.get(p, (initial, deviation**2, now))
            playing[p] = (r, min(v + c**2 * (now - last), deviation**2))
        for p, (r, v) in playing.items():
            total = information = 0.0
            for row in rows[(players[rows] == p).any(axis=1)]:
                side = 1 if players[row, 0] == p else -1
                other_r, other_v = playing[players[row, 1] if side == 1 else players[row, 0]]
                g = 1 / math.sqrt(1 + 3 * q**2 * other_v / math.pi**2)
                expected = 1 / (1 + 10 ** (-g * (r - other_r + side * home[row]) / 400))
                total += g * ((s[row] if side == 1 else 1 - s[row]) - expected)
                information += q**2 * g**2 * expected * (1 - expected)
            v = 1 / (1 / v + information)
            state[p] = (r + q * v * total, v, now)
    return {matches.features[p]: (r, math.sqrt(v)) for p, (r, v, _) in state.items()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("k", "initial"), [("fide", 1200.0), ("fide", 2350.0), (24, 1500.0)])
def test_elo_follows_the_rules(seed, k, initial):
    matches, y = played(seed, n=4, N=120)  # more than 30 games each
    elo = Elo(k=k, initial=initial, advantage=35).fit(matches, y)
    before, rating, games = plain_elo(matches, y, k, initial, 35)
    np.testing.assert_allclose(elo.before_, before, rtol=1e-12)
    assert dict(zip(elo.players_, elo.ratings_, strict=True)) == pytest.approx(rating, rel=1e-12)
    np.testing.assert_array_equal(elo.games_, [games[p] for p in range(4)])


def test_a_player_keeps_the_elite_factor():
    """He reaches 2400 by the first win, and loses the second match with K = 10, and the third, below 2400."""
    matches = Matches([[1, -1], [1, -1], [1, -1]], [0, 1, 2], ["a", "b"])
    elo = Elo(initial=2390).fit(matches, [1, -1, -1])
    first, second, third = elo.before_[:, 0]
    expected = 1 / (1 + 10 ** (-(elo.before_[:, 0] - elo.before_[:, 1]) / 400))
    gains = [second - first, third - second, elo.ratings_[0] - third]
    np.testing.assert_allclose(gains, [30 * (1 - 0.5), -10 * expected[1], -10 * expected[2]])
    assert third < 2400 < second
    assert elo.elite_[0]


def test_elo_is_stochastic_gradient_ascent_on_bradley_and_terrys_likelihood():
    matches, y = played(1, N=30)
    elo = Elo(k=20).fit(matches, y)
    after = Elo(k=20).fit(matches[:-1], y[:-1])
    first, second = (after.players_.index(matches.features[p]) for p in matches.players()[-1])
    s = (y[-1] + 1) / 2

    def log_likelihood(ratings):
        expected = 1 / (1 + 10 ** ((ratings[second] - ratings[first]) / 400))
        return s * np.log(expected) + (1 - s) * np.log(1 - expected)

    gradient = approx_fprime(after.ratings_, log_likelihood, 1e-5)
    step = 20 * 400 / math.log(10)
    np.testing.assert_allclose(elo.ratings_ - after.ratings_, step * gradient, atol=1e-4)


def test_elos_tie_is_davidsons_with_nu_2():
    """Twice the log-likelihood with half a win is that of Davidson's model, but for log 2 a tie."""
    d = np.linspace(-3, 3, 13)
    for y in (-1, 0, 1):
        s = (y + 1) / 2
        halves = 2 * (s * np.log(expit(d)) + (1 - s) * np.log(expit(-d)))
        weights = np.array([np.exp(-d), np.full_like(d, 2), np.exp(d)])  # differences 2d
        davidson = np.log(weights / weights.sum(axis=0))[y + 1]
        np.testing.assert_allclose(davidson, halves + (y == 0) * np.log(2), atol=1e-12)


def test_glickmans_worked_example():
    """1500 with deviation 200 beats 1400 (30), loses to 1550 (100) and 1700 (300): 1464, 151.4."""
    names = ["player", "a", "b", "c"]
    matches = Matches([[1, -1, 0, 0], [1, 0, -1, 0], [1, 0, 0, -1]], [0, 0, 0], names)
    glicko = Glicko(period=1).fit(matches, [0, 0, 0])
    glicko.ratings_, glicko.deviations_ = np.zeros(4), np.zeros(4)
    for name, rating, deviation in zip(names, [1500, 1400, 1550, 1700], [200, 30, 100, 300], strict=True):
        glicko.ratings_[glicko.players_.index(name)] = rating
        glicko.deviations_[glicko.players_.index(name)] = deviation
    glicko.partial_fit(matches, [1, -1, -1])
    player = glicko.players_.index("player")
    assert round(glicko.ratings_[player]) == 1464
    assert round(glicko.deviations_[player], 1) == 151.4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("period", [None, 1, 2.5])
def test_glicko_follows_the_formulas(seed, period):
    matches, y = played(seed)
    glicko = Glicko(deviation=200, c=40, period=period, advantage=30).fit(matches, y)
    expected = plain_glicko(matches, y, 1500, 200, 40, period, 30)
    for name, rating, deviation in zip(glicko.players_, glicko.ratings_, glicko.deviations_, strict=True):
        assert (rating, deviation) == pytest.approx(expected[name], rel=1e-10)


def test_order_within_a_period_does_not_matter():
    matches, y = played(4)
    order = np.lexsort([np.random.default_rng(0).random(len(y)), matches.time // 3])
    shuffled = Matches(matches.design[order], matches.time // 3, matches.features)
    one = Glicko(period=1).fit(Matches(matches.design, matches.time // 3, matches.features), y)
    two = Glicko(period=1).fit(shuffled, y[order])
    np.testing.assert_allclose(one.ratings_, two.ratings_, rtol=1e-12)
    np.testing.assert_allclose(one.deviations_, two.deviations_, rtol=1e-12)
    np.testing.assert_allclose(one.before_[order], two.before_, rtol=1e-12)


def test_a_period_of_glicko_starts_with_the_same_ratings():
    matches, y = played(5)
    glicko = Glicko(period=4).fit(matches, y)
    for p in range(6):
        for group in np.unique(matches.time // 4):
            played_here = (matches.players() == p) & (matches.time // 4 == group)[:, None]
            assert len(set(glicko.before_[played_here])) <= 1
            assert len(set(glicko.deviation_before_[played_here])) <= 1


def test_deviation_shrinks_by_play_and_grows_by_rest_up_to_the_first():
    names, pair = ["a", "b"], [1, -1]
    times = [0, 1, 11, 1e6]
    glicko = Glicko(deviation=300, c=30).fit(Matches([pair] * 4, times, names), [0, 0, 0, 0])
    first, second, third, fourth = glicko.deviation_before_[:, 0]
    assert first == fourth == 300
    assert max(second, third) < 300
    shrunk = Glicko(deviation=300, c=30).fit(Matches([pair] * 2, times[:2], names), [0, 0]).deviations_[0]
    assert shrunk < second
    assert third == pytest.approx(math.sqrt(shrunk**2 + 30**2 * 10))


def test_uncertain_ratings_forecast_closer_to_even():
    matches = Matches([[1, -1]] * 3, [0, 1, 2], ["a", "b"])
    glicko = Glicko(c=30).fit(matches, [1, 1, 1])
    soon, late = (glicko.predict_proba(Matches([[1, -1]], [t], ["a", "b"]))[0] for t in (3, 400))
    assert soon[2] > late[2] > 0.5


def test_elo_with_one_k_keeps_the_sum_of_ratings():
    matches, y = played(7)
    assert Elo(k=24, initial=1500).fit(matches, y).ratings_.sum() == pytest.approx(6 * 1500)


def test_scale_and_k_are_a_unit_of_the_ratings():
    matches, y = played(8)
    one, two = Elo(k=20, initial=0, scale=400).fit(matches, y), Elo(k=5, initial=0, scale=100).fit(matches, y)
    np.testing.assert_allclose(one.ratings_, 4 * two.ratings_, rtol=1e-12)
    np.testing.assert_allclose(one.predict_proba(matches), two.predict_proba(matches), rtol=1e-9)


@every_system
def test_the_level_does_not_matter(system):
    matches, y = played(9, N=30)
    reference = clone(system).fit(matches, y)
    lifted = clone(system).set_params(initial=system.initial + 100).fit(matches, y)  # far below 2400
    np.testing.assert_allclose(lifted.ratings_, reference.ratings_ + 100, rtol=1e-12)


def test_new_players_may_come_later():
    elo = Elo(k=20).fit(Matches([[1, -1]], [0], ["a", "b"]), [1])
    elo.partial_fit(Matches([[-1, 1]], [1], ["a", "c"]), [1])
    assert elo.players_ == ("a", "b", "c")
    assert elo.ratings_[1] == 1190
    assert elo.games_.tolist() == [2, 1, 1]
    assert elo.before_.tolist() == [[1200, 1210]]
    unknown = Matches([[1, -1], [1, -1]], [2, 2], ["b", "nobody"])
    np.testing.assert_allclose(elo.decision_function(unknown), [-10, -10])


@every_system
def test_forecasts_keep_the_expected_score(system):
    matches, y = played(10)
    fitted = clone(system).fit(matches, y)
    p = fitted.predict_proba(matches)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    score = p[:, 2] + p[:, 1] / 2
    d = fitted.decision_function(matches)
    assert (np.sign(score - 0.5) == np.sign(d)).all()
    if isinstance(system, Elo):
        np.testing.assert_allclose(score, 1 / (1 + 10 ** (-d / 400)), rtol=1e-12)
    np.testing.assert_allclose(p[:, 1], fitted.nu_ * np.sqrt(p[:, 0] * p[:, 2]), rtol=1e-10)  # Davidson
    best = p.argmax(axis=1) - 1
    np.testing.assert_array_equal(fitted.predict(matches), best)
    assert np.isfinite(log_loss(y, p))


def test_expected_score_of_glicko_uses_both_deviations():
    matches, y = played(11)
    glicko = Glicko(c=0).fit(matches, y)
    p = glicko.predict_proba(matches[-1:])[0]
    a, b = (glicko.players_.index(matches.features[k]) for k in matches.players()[-1])
    q = math.log(10) / 400
    g = 1 / math.sqrt(1 + 3 * q**2 * (glicko.deviations_[a] ** 2 + glicko.deviations_[b] ** 2) / math.pi**2)
    expected = 1 / (1 + 10 ** (-g * (glicko.ratings_[a] - glicko.ratings_[b]) / 400))
    assert p[2] + p[1] / 2 == pytest.approx(expected, rel=1e-12)


def test_nu_is_the_most_likely_one():
    matches, y = played(12, N=200)
    elo = Elo(k=40).fit(matches, y)
    expected = 1 / (1 + 10 ** (-(elo.before_[:, 0] - elo.before_[:, 1]) / 400))

    def log_likelihood(nu):
        total = 0.0
        for e, outcome in zip(expected, y, strict=True):

            def score(strength, e=e):
                w = np.array([np.exp(-strength), nu, np.exp(strength)])
                return (w[2] + w[1] / 2) / w.sum() - e

            strength = brentq(score, -20, 20, xtol=1e-13)
            w = np.array([np.exp(-strength), nu, np.exp(strength)])
            total += np.log(w[outcome + 1] / w.sum())
        return total

    best = log_likelihood(elo.nu_)
    assert all(log_likelihood(nu) <= best for nu in np.geomspace(1e-3, 1e3, 13))
    assert log_likelihood(elo.nu_ * 1.01) < best > log_likelihood(elo.nu_ / 1.01)


def test_a_sport_without_ties_has_none_in_its_forecasts():
    matches, y = played(13, ties=0)
    for system in SYSTEMS:
        fitted = clone(system).fit(matches, y)
        assert fitted.nu_ == 0
        p = fitted.predict_proba(matches)
        assert (p[:, 1] == 0).all()
        assert (fitted.predict(matches) != 0).all()


def test_all_ties_leave_equals_and_finite_forecasts():
    matches, y = played(14, ties=1)
    fitted = Elo().fit(matches, y)
    assert (fitted.ratings_ == 1200).all()
    p = fitted.predict_proba(matches)
    assert np.isfinite(p).all()
    assert (p[:, 1] > 0.999).all()
    assert (fitted.predict(matches) == 0).all()


def test_advantage_lifts_the_first_at_home():
    matches, y = played(15)
    home = matches.design.toarray()[:, 6] == 1
    with_it, without = Elo(k=20, advantage=50).fit(matches, y), Elo(k=20, advantage=0).fit(matches, y)
    with_it.ratings_ = without.ratings_.copy()
    gain = with_it.decision_function(matches) - without.decision_function(matches)
    np.testing.assert_allclose(gain, np.where(home, 50, 0))


def test_an_extreme_rating_gap_stays_finite():
    matches = Matches([[1, -1]] * 4, [0, 1, 2, 3], ["a", "b"])
    for system in (Elo(k=1e7), Glicko(deviation=1e6)):
        fitted = system.fit(matches, [1, -1, 0, 1])
        assert np.isfinite(fitted.ratings_).all()
        assert np.isfinite(fitted.predict_proba(matches)).all()


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (Elo(k="uscf"), "k is 'uscf'; expected a positive number"),
        (Elo(k=0), "k is 0; expected a positive number"),
        (Elo(scale=-400), "scale is -400; expected a positive number"),
        (Elo(initial=np.nan), "initial is nan; expected a finite number"),
        (Elo(advantage=np.inf), "advantage is inf; expected a finite number"),
        (Glicko(deviation=0), "deviation is 0; expected a positive number"),
        (Glicko(c=-1), "c is -1; expected a number of at least 0"),
        (Glicko(period=0), "period is 0; expected a positive number"),
    ],
)
def test_bad_parameters_are_named(system, message):
    with pytest.raises(ValueError, match=message):
        system.fit(*played(0))


@pytest.mark.parametrize(
    ("system", "change"),
    [
        (Elo(), {"likelihood": Logit()}),
        (Elo(likelihood=Logit()), {"likelihood": Probit()}),
        (Elo(likelihood=Logit()), {"likelihood": None}),
        (TrueSkill(), {"margin": 0.5}),
    ],
)
def test_ratings_of_another_likelihood_are_not_mixed(system, change):
    matches, y = played(19, ties=0)
    fitted = clone(system).fit(matches, y)
    before, next_match = fitted.ratings_, Matches([[1, -1]], matches.time[-1:], ["p0", "p1"])
    fitted.set_params(**change)
    message = (
        r"the likelihood is .*, but the ratings were fitted with .*; expected the same: call `fit` again"
    )
    for use in (fitted.predict_proba, fitted.decision_function, fitted.predict):
        with pytest.raises(ValueError, match=message):
            use(matches)
    with pytest.raises(ValueError, match=message):
        fitted.partial_fit(next_match, [1])
    np.testing.assert_array_equal(fitted.ratings_, before)
    again = clone(system).set_params(**change).fit(matches, y).predict_proba(matches)
    np.testing.assert_array_equal(fitted.fit(matches, y).predict_proba(matches), again)
