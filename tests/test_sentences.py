"""Sentences of the reports."""

from preflearn_book.sentences import leading_sentence

NAMES = ["Ann", "Bob", "Cy", "Dee"]


def test_nobody_leads_unless_the_rank_is_certain():
    text = leading_sentence(NAMES, [1, 1, 3, 3], [2, 2, 4, 4], "players", "matches")
    assert "leads**" in text
    assert "cannot tell" in text
    assert "Ann or Bob" in text
    assert "Cy" not in text


def test_players_that_nothing_tells_apart_are_not_ranked():
    text = leading_sentence(NAMES, [1] * 4, [4] * 4, "players", "matches")
    assert "cannot tell who leads" in text
    assert "any of them" in text


def test_a_leader_whose_rank_is_certain_is_named_first():
    text = leading_sentence(NAMES, [1, 2, 2, 3], [1, 3, 4, 4], "players", "matches")
    assert text.startswith("**Ann leads**")


def test_one_candidate_without_a_certain_rank_probably_leads():
    text = leading_sentence(NAMES, [1, 2, 2, 3], [2, 3, 4, 4], "players", "matches")
    assert "Ann probably leads" in text
    assert "1 to 2" in text
