"""The page for users of TrueSkill Through Time: its code gives the results on the page,
and both programs agree on other data."""

import math

import numpy as np
import pandas as pd
import pytest
from optional import optional_import
from scipy.stats import norm
from side_by_side import Page

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    OrdinalProbit,
    Probit,
    Wiener,
)
from preflearn.matches import Matches
from preflearn.ratings import TrueSkill

SIGMA = 1.6
BETA = 1.3
GAMMA = 0.1
UNIT = np.sqrt(2) * BETA
PRIOR = Constant((SIGMA / UNIT) ** 2) + Wiener((GAMMA / UNIT) ** 2, origin="first")
NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def ttt():
    return optional_import("trueskillthroughtime")


def test_code_of_both_programs_gives_what_the_page_shows(ttt):
    page = Page("coming_from_trueskill_through_time", "TrueSkill Through Time")
    page.check_form()
    page.check_same(
        page.run("here"), page.run("TrueSkill Through Time"), least=5, tolerance=1e-6
    )


# ---- The translation on other data


def converged(ttt, *args, **options):
    options = {"sigma": SIGMA, "beta": BETA, "gamma": GAMMA} | options
    history = ttt.History(*args, **options)
    step, _ = history.convergence(epsilon=1e-11, iterations=2000, verbose=False)
    assert max(step) <= 1e-11
    return history


def agree(history, model, tolerance=1e-6):
    for name, curve in history.learning_curves().items():
        mean, std = model.scores(name, [t for t, _ in curve])
        np.testing.assert_allclose(
            UNIT * mean, [skill.mu for _, skill in curve], atol=tolerance
        )
        np.testing.assert_allclose(
            UNIT * std, [skill.sigma for _, skill in curve], atol=tolerance
        )


def league(seed=0, n=30):
    """Return games of four players, several of them at one time: pairs of players,
    times, and outcomes."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(4, 2, replace=False) for _ in range(n)])
    return (
        pairs,
        np.sort(rng.integers(0, 12, n)).astype(float),
        rng.choice([-1, 0, 1], n),
    )


def as_matches(pairs, time):
    design = np.zeros((len(pairs), 4))
    for row, (first, second) in zip(design, pairs, strict=True):
        row[[first, second]] = 1, -1
    return Matches(design, time, NAMES)


def composition(pairs):
    return [[[NAMES[a]], [NAMES[b]]] for a, b in pairs]


def results(y):
    return [[int(v >= 0), int(v <= 0)] for v in y]


@pytest.mark.parametrize("p_draw", [0.3, 0.0])
def test_learning_curves_are_those_of_the_program(ttt, monkeypatch, p_draw):
    # the package's own erfc is an approximation
    monkeypatch.setattr(ttt, "erfc", math.erfc)
    pairs, time, y = league()
    likelihood = OrdinalProbit(norm.ppf((1 + p_draw) / 2)) if p_draw else Probit()
    y = y if p_draw else np.where(y == 0, 1, y)
    history = converged(
        ttt, composition(pairs), results(y), time.tolist(), p_draw=p_draw
    )
    model = DynamicComparisons(PRIOR, likelihood, tol=1e-12).fit(
        as_matches(pairs, time), y
    )
    agree(history, model, 2e-9)


def test_teams_share_a_noise_that_grows_with_them(ttt):
    """Rows are divided by the square root of half the number of players, and the margin
    does not change."""
    teams = [[["a", "b"], ["c", "d"]], [["a", "c"], ["b"]], [["d", "a"], ["b", "c"]]]
    rows = np.array([[1, 1, -1, -1], [1, -1, 1, 0], [1, -1, -1, 1]])
    rows = rows / np.sqrt(np.abs(rows).sum(axis=1, keepdims=True) / 2)
    history = converged(ttt, teams, [[1, 0], [0, 0], [0, 1]], [0, 1, 2], p_draw=0.3)
    model = DynamicComparisons(PRIOR, OrdinalProbit(norm.ppf(1.3 / 2)), tol=1e-10)
    agree(history, model.fit(Matches(rows, [0.0, 1.0, 2.0], NAMES), [1, 0, -1]))


def test_ratings_of_one_pass_are_those_of_the_first_pass_of_the_program(ttt):
    """The forecasts from earlier games are the same, too. Their probabilities are the
    evidence of the other package."""
    pairs, time, y = league(2, 20)
    y = np.where(y == 0, 1, y)
    history = ttt.History(
        composition(pairs),
        results(y),
        time.tolist(),
        sigma=SIGMA,
        beta=BETA,
        gamma=GAMMA,
    )
    once = TrueSkill((SIGMA / UNIT) ** 2, (GAMMA / UNIT) ** 2, "time").fit(
        as_matches(pairs, time), y
    )
    last = {name: curve[-1][1] for name, curve in history.learning_curves().items()}
    for name, rating, deviation in zip(
        once.players_, once.ratings_, once.deviations_, strict=True
    ):
        assert (last[name].mu, last[name].sigma) == pytest.approx(
            (UNIT * rating, UNIT * deviation), abs=1e-5
        )
    spread = np.sqrt(1 + np.square(once.deviation_before_).sum(axis=1))
    forecasts = norm.logcdf(-y * np.diff(once.before_, axis=1)[:, 0] / spread)
    assert history.log_evidence() == pytest.approx(forecasts.sum(), abs=1e-5)


def test_without_times_a_player_moves_from_match_to_match(ttt):
    games = [[["a"], ["b"]], [["c"], ["d"]], [["a"], ["b"]]]
    history = ttt.History(games, sigma=SIGMA, beta=BETA, gamma=GAMMA)
    matches = as_matches([[0, 1], [2, 3], [0, 1]], [0.0, 5, 9])
    once = TrueSkill((SIGMA / UNIT) ** 2, (GAMMA / UNIT) ** 2, "match").fit(
        matches, [1] * 3
    )
    deviation = UNIT * once.deviations_[once.players_.index("a")]
    assert history.learning_curves()["a"][-1][1].sigma == pytest.approx(
        deviation, abs=1e-6
    )


def test_the_best_of_three_equal_sides(ttt):
    """The performances are independent and identically distributed, so the winner's
    mean skill is exactly 2/3 of the mean of the largest of three normal variables of
    variance 3/2. The other package is closer to this value than ours."""
    exact = 2 / 3 * np.sqrt(1.5) * 1.5 / np.sqrt(np.pi)
    prior = {"sigma": 1.0, "beta": np.sqrt(0.5), "gamma": 0.0}
    history = converged(ttt, [[["a"], ["b"], ["c"]]], [[2, 1, 0]], [0], **prior)
    assert history.learning_curves()["a"][0][1].mu == pytest.approx(exact, abs=5e-4)
    race = pd.DataFrame(
        {"event": "final", "player": ["a", "b", "c"], "rank": [1, 2, 3], "time": 0.0}
    )
    model = DynamicComparisons(Constant(1.0), Probit()).fit(
        *Matches.from_rankings(race)
    )
    assert model.scores("a", 0.0)[0] == pytest.approx(exact, abs=0.01)
