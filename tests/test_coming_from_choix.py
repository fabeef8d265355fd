"""The page for users of choix: its code gives the results on the page, and both
programs agree on other data."""

import numpy as np
import pytest
from optional import optional_import
from side_by_side import Page

from preflearn.metrics import ranking_loss
from preflearn.ranking import Davidson, PlackettLuce, bradley_terry

choix = optional_import("choix")
GAMES = [(0, 1), (1, 2), (0, 2), (2, 0), (1, 0), (0, 1), (2, 3), (3, 1), (3, 2), (0, 3)]
WON = np.ones(len(GAMES))


def test_code_of_both_programs_gives_what_the_page_shows():
    page = Page("coming_from_choix", "choix")
    page.check_form()
    page.check_same(page.run("here"), page.run("choix"), least=4, tolerance=1e-5)


def test_penalized_scores_are_those_of_choix():
    """Its alpha penalizes the sum of squares, and ours penalizes half of this sum."""
    expected = choix.opt_pairwise(4, GAMES, alpha=0.3, tol=1e-12)
    np.testing.assert_allclose(
        Davidson(alpha=0.6).fit(GAMES, WON).coef_, expected, atol=1e-5
    )


def test_scores_without_a_penalty_are_those_of_choix():
    """In choix, a tie in both orders counts twice."""
    both = [*GAMES, (1, 3), (3, 1)]
    counts = np.zeros((4, 4))
    np.add.at(counts, tuple(zip(*both, strict=True)), 1)
    np.testing.assert_allclose(
        choix.ilsr_pairwise(4, both), bradley_terry(counts), atol=1e-7
    )
    rankings = [[0, 1, 2], [1, 0, 3], [2, 0, 1], [3, 0, 2], [0, 3, 1]]
    found = PlackettLuce(1e-8).fit(rankings).coef_
    np.testing.assert_allclose(found, choix.mm_rankings(4, rankings), atol=1e-6)


def test_ranking_loss_is_a_fraction_of_kendalls_distance():
    first, second = np.random.default_rng(0).normal(size=(2, 7))
    inversions = choix.kendalltau_dist(first, second)
    loss = ranking_loss(np.argsort(np.argsort(first)) + 1, second)
    assert loss == pytest.approx(inversions / 21)
