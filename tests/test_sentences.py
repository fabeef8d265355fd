"""Sentences in the reports."""

import numpy as np
import pytest

from preflearn_book.sentences import (
    agreement_sentence,
    between,
    leading_sentence,
    rate_with_interval,
)

NAMES = ["Ann", "Bob", "Cy", "Dee"]


def test_all_candidates_are_named_if_the_first_rank_is_uncertain():
    text = leading_sentence(NAMES, [1, 1, 3, 3], [2, 2, 4, 4], "players")
    assert "uncertain which is best" in text
    assert "Ann or Bob" in text
    assert "Cy" not in text


def test_more_than_five_candidates_are_counted_instead_of_named():
    names = [f"player {k}" for k in range(9)]
    text = leading_sentence(names, [1] * 7 + [8, 8], [7] * 7 + [9, 9], "players")
    assert "7 of them" in text
    assert "player 1" not in text


def test_players_that_the_data_do_not_distinguish_are_not_ranked():
    text = leading_sentence(NAMES, [1] * 4, [4] * 4, "players")
    assert "cannot tell the 4 players apart" in text


def test_a_leader_whose_rank_is_certain_is_named_first():
    text = leading_sentence(NAMES, [1, 2, 2, 3], [1, 3, 4, 4], "players")
    assert text.startswith("**Ann leads**")


def test_one_candidate_without_a_certain_rank_probably_leads():
    text = leading_sentence(NAMES, [1, 2, 2, 3], [2, 3, 4, 4], "players")
    assert "Ann probably leads" in text
    assert "1 to 2" in text


def test_the_only_one_of_a_group_does_not_lead_it():
    text = leading_sentence(NAMES[:1], [1], [1], "players of group 2")
    assert text == "Ann is the only one of the players of group 2."


def test_an_end_that_is_rounded_to_the_excluded_value_has_more_digits():
    assert between(50.2, 81.7, excluded=50.0) == "50.2\u00a0to\u00a082"
    assert between(0.0004, 0.13, 3, excluded=0) == "0.0004\u00a0to\u00a00.130"
    assert between(49.0, 50.0, excluded=50.0) == "49\u00a0to\u00a050"
    assert between(-0.001, 2, 1) == "0.0\u00a0to\u00a02.0"


def test_the_agreement_of_judges_has_a_verdict():
    def text(same):
        return agreement_sentence(sum(same) / 2, 150, 0.5, same, [100, 100, 100])

    for unequal in ([50, 40, 60], [70, 40, 70], [30, 60, 30]):
        assert "It is uncertain whether judges agree" in text(unequal)
    assert "Judges agree more often" in text([90, 91, 92])
    assert "Judges agree slightly more often" in text([56, 56, 56])
    assert "Judges agree less often" in text([20, 21, 22])


def test_a_missing_interval_is_a_dash():
    assert between(np.nan, np.nan) == "–"


def test_hits_of_one_cluster_that_agree_widen_the_interval():
    rate, low, high = rate_with_interval([1] * 30 + [0] * 10, [1] * 40)
    assert rate == 75
    assert high - low == pytest.approx(2 * 1.96 * 100 * np.sqrt(0.75 * 0.25 / 39))
    _, low_10, _ = rate_with_interval([10, 10, 10, 0], [10] * 4)
    assert low_10 < low
