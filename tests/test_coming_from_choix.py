"""The page for users of choix: its code runs, its numbers come out, and so does what it says of penalties."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm
from side_by_side import Page

from preflearn.metrics import ranking_loss
from preflearn.ranking import Davidson, PlackettLuce, bradley_terry

choix = pytest.importorskip("choix")
PAGE = Page("coming_from_choix", "choix")
GAMES = [(0, 1), (1, 2), (0, 2), (2, 0), (1, 0), (0, 1), (2, 3), (3, 1), (3, 2), (0, 3)]
N, A = 4, 0.3


@pytest.fixture(scope="module")
def ours():
    return PAGE.run("here")


@pytest.fixture(scope="module")
def theirs():
    return PAGE.run("choix")


def test_code_gives_what_the_page_shows(ours, theirs):
    assert sum(map(len, ours.values())) > 10
    assert sum(map(len, theirs.values())) > 10


def test_both_programs_give_the_same(ours, theirs):
    PAGE.check_same(ours, theirs, least=4, tolerance=1e-5)


def test_form_of_the_page():
    PAGE.check_form()


# ---- The penalties


def slope(theta):
    """Of the log-likelihood of the games."""
    found = np.zeros(N)
    for winner, loser in GAMES:
        loss = expit(theta[loser] - theta[winner])
        found[winner] += loss
        found[loser] -= loss
    return found


def scaled(theta):
    """Worths whose mean is 1, as the penalty has them at its minimum."""
    worths = np.exp(theta)
    return worths / worths.mean()


def test_penalties_are_those_of_the_table():
    """At a minimum the slope of the penalty is that of the log-likelihood."""
    found = choix.opt_pairwise(N, GAMES, alpha=A, tol=1e-12)
    np.testing.assert_allclose(slope(found), 2 * A * found, atol=1e-6)
    found = choix.mm_pairwise(N, GAMES, alpha=A, tol=1e-12)
    np.testing.assert_allclose(slope(found), A * (scaled(found) - 1), atol=1e-9)
    found = choix.ilsr_pairwise(N, GAMES, alpha=A, tol=1e-12)
    np.testing.assert_allclose(slope(found), N * A * (scaled(found) - 1), atol=1e-9)
    np.testing.assert_allclose(found, choix.mm_pairwise(N, GAMES, alpha=N * A), atol=1e-7)
    found = Davidson(alpha=A).fit(GAMES, np.ones(len(GAMES))).coef_
    np.testing.assert_allclose(slope(found), A * found, atol=1e-5)


def test_what_our_stopping_leaves_open():
    """The page says why numbers agree to 1e-5 only: at the peer's answer the slope is nearer to 0."""
    won = np.ones(len(GAMES))
    theirs, ours = choix.opt_pairwise(N, GAMES, alpha=0.1, tol=1e-10), Davidson(0.2).fit(GAMES, won)
    assert 0 < ours.dual_gap_ <= 1e-12
    errors = [np.abs(slope(found) - 0.2 * found).max() for found in (theirs, ours.coef_)]
    assert errors[0] < errors[1] < 1e-5


def test_expectation_propagation_has_a_prior_of_variance_one_over_alpha():
    mean, _ = choix.ep_pairwise(2, [(0, 1)], alpha=A, model="probit")
    variance = 2 / A  # of the difference, of which the winner's is half
    exact = variance / np.sqrt(1 + variance) * norm.pdf(0) / norm.cdf(0)
    assert mean[0] - mean[1] == pytest.approx(exact, abs=1e-9)


def test_the_logit_of_the_peer_is_an_approximation():
    mean, _ = choix.ep_pairwise(2, [(0, 1)], alpha=0.5)
    exact = 2 * quad(lambda d: d * expit(d) * norm.pdf(d, 0, 2), -40, 40)[0]  # of a win: 1/2
    assert 0.5e-4 < abs(mean[0] - mean[1] - exact) < 2e-4
    first, second = (choix.ep_pairwise(N, GAMES, alpha=0.5)[0] for _ in range(2))
    assert 0 < np.abs(first - second).max() < 1e-4


def test_a_gamma_penalty_bends_like_ours_where_scores_are_small():
    """The nearest thing: closer than no penalty, and than half or twice as much of ours."""
    found = choix.ilsr_pairwise(N, GAMES, alpha=A)
    distance = {
        factor: np.abs(Davidson(factor * N * A).fit(GAMES, np.ones(len(GAMES))).coef_ - found).max()
        for factor in (0.001, 0.5, 1.0, 2.0)
    }
    assert min(distance, key=distance.get) == 1.0
    assert distance[1.0] > 0.005


# ---- The other traps


def test_an_unbeaten_player_stops_the_peer():
    chain = [(0, 1), (1, 2), (0, 2)]
    with pytest.warns(RuntimeWarning), pytest.raises(RuntimeError, match="Did not converge"):
        choix.mm_pairwise(3, chain, max_iter=1000)


def test_the_start_decides_between_groups_that_never_meet():
    groups = [(0, 1), (1, 0), (2, 3), (3, 2), (2, 3)]
    found = [choix.mm_pairwise(4, groups, initial_params=np.array([k, k, 0.0, 0.0])) for k in (0, 3)]
    assert found[1][0] - found[1][2] > found[0][0] - found[0][2] + 2


def test_a_tie_in_both_orders_counts_twice():
    """With halves it is one game; the scores are then those of one win in two."""
    both = [*GAMES, (1, 3), (3, 1)]
    counts = np.zeros((N, N))
    np.add.at(counts, tuple(zip(*both, strict=True)), 1)
    np.testing.assert_allclose(choix.ilsr_pairwise(N, both), bradley_terry(counts), atol=1e-7)
    weights = [*np.ones(len(GAMES)), 0.5, 0.5]
    half = Davidson(0.2).fit(both, np.ones(len(both)), sample_weight=weights).coef_
    twice = choix.opt_pairwise(N, both, alpha=0.1)
    assert np.abs(half - twice).max() > 1e-3


def test_the_chosen_against_each_other_aims_at_the_same_scores():
    """At the true scores the expected slope is 0, whatever the set."""
    theta = np.array([0.7, -0.2, 0.1, -0.6])
    for size in (2, 3, 4):
        for chosen_from in itertools.combinations(range(N), size):
            items = np.array(chosen_from)
            shares, expected = choix.probabilities(items, theta), np.zeros(N)
            for share, best in zip(shares, items, strict=True):
                for other in items[items != best]:
                    loss = share * expit(theta[other] - theta[best])
                    expected[best] += loss
                    expected[other] -= loss
            np.testing.assert_allclose(expected, 0, atol=1e-12)


def test_names_of_the_table():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 7))
    inversions = choix.kendalltau_dist(first, second)
    share = ranking_loss(np.argsort(np.argsort(first)) + 1, second)
    assert share == pytest.approx(inversions / 21)
    rankings = [[0, 1, 2], [1, 0, 3], [2, 0, 1], [3, 0, 2], [0, 3, 1]]
    names = PlackettLuce(0.2).fit([["abcd"[k] for k in ranking] for ranking in rankings])
    assert names.items_ == list("abcd")
    found = choix.mm_rankings(N, rankings)
    np.testing.assert_allclose(PlackettLuce(1e-8).fit(rankings).coef_, found, atol=1e-6)
