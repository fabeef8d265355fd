"""The page for users of TrueSkill Through Time: its code runs, its numbers come out, its traps are there."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm
from side_by_side import Page

from preflearn.dynamics import Constant, DynamicComparisons, OrdinalProbit, Probit, Wiener
from preflearn.matches import Matches
from preflearn.ratings import TrueSkill

PAGE = Page("coming_from_trueskill_through_time", "TrueSkill Through Time")
SIGMA, BETA, GAMMA = 1.6, 1.3, 0.1
UNIT = np.sqrt(2) * BETA
PRIOR = Constant((SIGMA / UNIT) ** 2) + Wiener((GAMMA / UNIT) ** 2, origin="first")
NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def peer():
    return pytest.importorskip("trueskillthroughtime")


@pytest.fixture(scope="module")
def ours():
    return PAGE.run("here")


@pytest.fixture(scope="module")
def theirs(peer):
    return PAGE.run("TrueSkill Through Time")


def test_our_code_gives_what_the_page_shows(ours):
    assert sum(map(len, ours.values())) > 8


def test_code_of_the_peer_gives_what_the_page_shows(theirs):
    assert sum(map(len, theirs.values())) > 8


def test_both_programs_give_the_same(ours, theirs):
    PAGE.check_same(ours, theirs, least=5, tolerance=1e-6)


def test_form_of_the_page():
    PAGE.check_form()


# ---- The translation, on other numbers


def converged(peer, *args, **options):
    options = {"sigma": SIGMA, "beta": BETA, "gamma": GAMMA} | options
    history = peer.History(*args, **options)
    step, _ = history.convergence(epsilon=1e-11, iterations=2000, verbose=False)
    assert max(step) <= 1e-11
    return history


def agree(history, model, tolerance=1e-6):
    for name, curve in history.learning_curves().items():
        mean, std = model.scores(name, [t for t, _ in curve])
        np.testing.assert_allclose(UNIT * mean, [skill.mu for _, skill in curve], atol=tolerance)
        np.testing.assert_allclose(UNIT * std, [skill.sigma for _, skill in curve], atol=tolerance)


def league(seed=0, n=30):
    """Games of four, several of them at one time: pairs of players, times, outcomes."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(4, 2, replace=False) for _ in range(n)])
    return pairs, np.sort(rng.integers(0, 12, n)).astype(float), rng.choice([-1, 0, 1], n)


def as_matches(pairs, time):
    design = np.zeros((len(pairs), 4))
    for row, (first, second) in zip(design, pairs, strict=True):
        row[[first, second]] = 1, -1
    return Matches(design, time, NAMES)


def composition(pairs):
    return [[[NAMES[a]], [NAMES[b]]] for a, b in pairs]


def results(y):
    return [[int(v >= 0), int(v <= 0)] for v in y]


def test_learning_curves_with_and_without_ties(peer):
    pairs, time, y = league()
    for p_draw, likelihood in ((0.3, OrdinalProbit(norm.ppf(1.3 / 2))), (0.0, Probit())):
        y = y if p_draw else np.where(y == 0, 1, y)
        history = converged(peer, composition(pairs), results(y), time.tolist(), p_draw=p_draw)
        agree(history, DynamicComparisons(PRIOR, likelihood, tol=1e-10).fit(as_matches(pairs, time), y))


def test_an_exact_error_function_brings_the_peer_closer(peer, monkeypatch):
    """The page says why it agrees to 1e-6 only."""
    pairs, time, y = league(3)
    y = np.where(y == 0, 1, y)
    model = DynamicComparisons(PRIOR, Probit(), tol=1e-12).fit(as_matches(pairs, time), y)
    args = composition(pairs), results(y), time.tolist()
    with pytest.raises(AssertionError):
        agree(converged(peer, *args), model, 2e-9)
    monkeypatch.setattr(peer, "erfc", math.erfc)
    agree(converged(peer, *args), model, 2e-9)


def test_teams_share_a_noise_that_grows_with_them(peer):
    """Rows over the root of half the number of players; the margin stays."""
    teams = [[["a", "b"], ["c", "d"]], [["a", "c"], ["b"]], [["d", "a"], ["b", "c"]]]
    rows = np.array([[1, 1, -1, -1], [1, -1, 1, 0], [1, -1, -1, 1]])
    rows = rows / np.sqrt(np.abs(rows).sum(axis=1, keepdims=True) / 2)
    history = converged(peer, teams, [[1, 0], [0, 0], [0, 1]], [0, 1, 2], p_draw=0.3)
    model = DynamicComparisons(PRIOR, OrdinalProbit(norm.ppf(1.3 / 2)), tol=1e-10)
    agree(history, model.fit(Matches(rows, [0.0, 1.0, 2.0], NAMES), [1, 0, -1]))


def test_what_the_evidence_of_the_peer_is(peer):
    """Forecasts from earlier games after the first pass; from all other games after convergence."""
    pairs, time, y = league(1, 20)
    y = np.where(y == 0, 1, y)
    matches = as_matches(pairs, time)
    first = peer.History(
        composition(pairs), results(y), time.tolist(), sigma=SIGMA, beta=BETA, gamma=GAMMA
    ).log_evidence()
    once = TrueSkill((SIGMA / UNIT) ** 2, (GAMMA / UNIT) ** 2, "time").fit(matches, y)
    spread = np.sqrt(1 + np.square(once.deviation_before_).sum(axis=1))
    forward = norm.logcdf(-y * np.diff(once.before_, axis=1)[:, 0] / spread)
    assert first == pytest.approx(forward.sum(), abs=1e-5)

    model = DynamicComparisons(PRIOR, Probit(), tol=1e-10).fit(matches, y)
    left_out = 0.0
    for row, (alphas, betas) in enumerate(model.pseudo_observations_.reshape(-1, 2, 2).transpose(0, 2, 1)):
        sides = matches.design[[row]].indices
        mean, std = np.array([model.scores(NAMES[k], time[row]) for k in sides]).T
        precision = 1 / std**2 - betas
        cavity = (mean / std**2 - alphas) / precision
        margin = matches.design[[row]].data @ cavity / np.sqrt(1 + (1 / precision).sum())
        left_out += norm.logcdf(y[row] * margin)
    history = converged(peer, composition(pairs), results(y), time.tolist())
    assert history.log_evidence() == pytest.approx(left_out, abs=1e-5)
    assert left_out < model.log_marginal_likelihood_ - 0.1


def test_exact_evidence_of_the_page():
    """The probability that eight normal differences have the signs that were seen."""
    names = {}
    exec(next(block for kind, block, _ in PAGE.blocks if kind == "both"), names)
    matches, y = Matches.from_frame(names["games"], time="day")
    signed, t = y[:, None] * matches.design.toarray(), matches.time
    unit = 2 * names["beta"] ** 2
    covariance = np.zeros((len(y), len(y)))
    for column in signed.T:
        since = np.maximum(t - t[column != 0].min(), 0)
        moved = names["sigma"] ** 2 + names["gamma"] ** 2 * np.minimum.outer(since, since)
        covariance += np.outer(column, column) * moved / unit
    noisy = covariance + np.eye(len(y))
    exact = np.log(
        multivariate_normal(np.zeros(len(y)), noisy, maxpts=10**6, abseps=1e-7, seed=0).cdf([0.0] * 8)
    )
    assert f"is ${exact:.3f}$" in PAGE.text
    prior = Constant(names["sigma"] ** 2 / unit) + Wiener(names["gamma"] ** 2 / unit, origin="first")
    ours = DynamicComparisons(prior, Probit()).fit(matches, y).log_marginal_likelihood_
    assert f"{exact - ours:.2f} too low" in PAGE.text
    assert joint_evidence(covariance) == pytest.approx(exact, abs=0.01)


def joint_evidence(covariance):
    """Of wins at differences with this covariance, by expectation propagation that keeps it."""
    n = len(covariance)
    alphas, betas = np.zeros(n), np.zeros(n)
    for _ in range(50):
        posterior = np.linalg.inv(np.linalg.inv(covariance) + np.diag(betas))
        mean, variance = posterior @ alphas, posterior.diagonal()
        spread = 1 / (1 / variance - betas)
        centre = spread * (mean / variance - alphas)
        z = centre / np.sqrt(1 + spread)
        slope = np.exp(norm.logpdf(z) - norm.logcdf(z)) / np.sqrt(1 + spread)
        bend = -slope * (z / np.sqrt(1 + spread) + slope)
        betas = -bend / (1 + spread * bend)
        alphas = (slope - centre * bend) / (1 + spread * bend)
    # Each site is scaled so that it has the right mass at its cavity.
    masses = norm.logcdf(z) - norm.logpdf(0, centre - alphas / betas, np.sqrt(spread + 1 / betas))
    whole = multivariate_normal(np.zeros(n), covariance + np.diag(1 / betas))
    return masses.sum() + whole.logpdf(alphas / betas)


def test_the_first_pass_is_our_filter(peer):
    pairs, time, y = league(2, 20)
    y = np.where(y == 0, 1, y)
    history = peer.History(composition(pairs), results(y), time.tolist(), sigma=SIGMA, beta=BETA, gamma=GAMMA)
    once = TrueSkill((SIGMA / UNIT) ** 2, (GAMMA / UNIT) ** 2, "time").fit(as_matches(pairs, time), y)
    last = {name: curve[-1][1] for name, curve in history.learning_curves().items()}
    for name, rating, deviation in zip(once.players_, once.ratings_, once.deviations_, strict=True):
        assert (last[name].mu, last[name].sigma) == pytest.approx((UNIT * rating, UNIT * deviation), abs=1e-5)


def test_without_times_a_player_moves_from_match_to_match(peer):
    history = peer.History(
        [[["a"], ["b"]], [["c"], ["d"]], [["a"], ["b"]]], sigma=SIGMA, beta=BETA, gamma=GAMMA
    )
    timed = peer.History(
        [[["a"], ["b"]], [["c"], ["d"]], [["a"], ["b"]]], [[1, 0]] * 3, [0, 0, 1], [], 0.0, SIGMA, BETA, GAMMA
    )
    assert history.learning_curves()["a"][-1][1].sigma == timed.learning_curves()["a"][-1][1].sigma
    pairs = np.array([[0, 1], [2, 3], [0, 1]])
    once = TrueSkill((SIGMA / UNIT) ** 2, (GAMMA / UNIT) ** 2, "match").fit(
        as_matches(pairs, [0.0, 5, 9]), [1] * 3
    )
    found = UNIT * once.deviations_[once.players_.index("a")]
    assert history.learning_curves()["a"][-1][1].sigma == pytest.approx(found, abs=1e-6)


def test_times_that_are_texts_or_one_player_on_both_sides(peer):
    with pytest.raises(TypeError):
        peer.History([[["a"], ["b"]]] * 2, [[1, 0]] * 2, ["2020-01-01", "2020-01-02"])
    assert peer.History([[["a"], ["a"]]], [[1, 0]]).learning_curves()["a"][0][1].sigma < peer.SIGMA
    frame = pd.DataFrame({"first": ["a"], "second": ["a"], "time": ["2020-01-01"], "outcome": [1]})
    with pytest.raises(ValueError, match="a"):
        Matches.from_frame(frame)


def test_three_sides(peer):
    """The peer is closer to the exact mean of the best of three equals."""
    prior = {"sigma": 1.0, "beta": np.sqrt(0.5), "gamma": 0.0}
    history = converged(peer, [[["a"], ["b"], ["c"]]], [[2, 1, 0]], [0], **prior)
    race = pd.DataFrame({"event": "final", "player": ["a", "b", "c"], "rank": [1, 2, 3], "time": 0.0})
    matches, y = Matches.from_rankings(race)
    ours = DynamicComparisons(Constant(1.0), Probit()).fit(matches, y).scores("a", 0.0)[0]
    theirs = history.learning_curves()["a"][0][1].mu
    # Performances of the three are independent and alike, so the exact mean is half that of the best of three
    # normal variables of variance 3/2, times the share 2/3 of the skill in it.
    exact = 2 / 3 * np.sqrt(1.5) * 1.5 / np.sqrt(np.pi)
    assert re.search(rf"±{exact:.3f} after one game, which is exact", PAGE.text)
    assert f"{theirs:.3f}" == f"{exact:.3f}"
    assert f"| ±{ours:.3f} |" in PAGE.text
