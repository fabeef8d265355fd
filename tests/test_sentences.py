"""Sentences of the reports."""

from preflearn_book.sentences import leading_sentence

NAMES = ["Ann", "Bob", "Cy", "Dee"]


def test_all_candidates_are_named_if_the_first_rank_is_uncertain():
    text = leading_sentence(NAMES, [1, 1, 3, 3], [2, 2, 4, 4], "players")
    assert "uncertain who leads" in text
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
