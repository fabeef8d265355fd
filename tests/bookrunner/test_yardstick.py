import itertools
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bookrunner.yardstick import (
    BAND,
    BANDS,
    Lead,
    best,
    every,
    lead,
    near_optimal,
    robust,
    selection,
    some,
    sparse,
    typical,
)

VALUES = st.integers(-1000, 1000).map(lambda k: k / 1000)
PAIRED = st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=12)


@given(PAIRED)
def test_a_lead_is_that_of_exact_arithmetic(pairs):
    differences = [Fraction(a) - Fraction(b) for a, b in pairs]
    mean = sum(differences) / len(pairs)
    squared_error = sum((d - mean) ** 2 for d in differences) / (len(pairs) - 1) / len(pairs)
    found = lead(*zip(*pairs, strict=True))
    assert found.mean == pytest.approx(float(mean), abs=1e-14)
    assert found.error**2 == pytest.approx(float(squared_error), abs=1e-14)
    assume(abs(mean**2 - 4 * squared_error) > 1e-12)
    assert (found.better is True) == (mean > 0 and mean**2 > 4 * squared_error)


@given(PAIRED)
def test_exchanging_the_methods_exchanges_better_and_worse(pairs):
    ours, theirs = zip(*pairs, strict=True)
    there, back = lead(ours, theirs), lead(theirs, ours)
    assert (there.better, there.worse, there.similar) == (back.worse, back.better, back.similar)


def test_a_small_lead_that_is_well_known_is_better_and_similar():
    found = lead([0.505, 0.51, 0.505, 0.51], [0.5, 0.5, 0.5, 0.5])
    assert found.better
    assert found.similar
    level = Lead(-0.001, 0.005, 4)  # a lead as small as that one is not excluded
    assert (level.better, level.worse, level.similar) == (None, None, True)
    wide = lead([0.5 + 10 * BAND, 0.5 - 10 * BAND], [0.5, 0.5])
    words = (wide.better, wide.worse, wide.similar, wide.as_good, wide.notable)
    assert words == (None,) * 5


LEADS = st.tuples(st.integers(-60, 60), st.integers(0, 30)).map(
    lambda at: Lead(at[0] / 1000, at[1] / 1000, 5)
)


@given(LEADS)
def test_each_word_is_about_where_the_truth_may_lie(found):
    """Against every value of the interval: a word holds if it holds of all, fails if of none."""
    steps = [Fraction(k, 40) for k in range(-40, 41)]
    true = [Fraction(found.mean) + 2 * step * Fraction(found.error) for step in steps]
    band = Fraction(found.band)
    assume(all(abs(abs(value) - band) > 1e-9 for value in (true[0], true[-1])))
    inside = [abs(value) <= band for value in true]
    assert found.as_good == _decided([value >= -band for value in true])
    assert found.notable == _decided([value > band for value in true])
    assert (found.similar is True) == all(inside)
    assert (found.similar is False) == (min(true) > band or max(true) < -band)
    assert found.better == _decided([value > 0 for value in true])
    assert not (found.better and found.worse)


def _decided(answers):
    return answers[0] if len(set(answers)) == 1 else None


@given(st.lists(st.sampled_from([True, False, None])))
def test_three_valued_all_and_any_are_those_of_every_completion(answers):
    def completions(whole):
        found = {
            whole(filled)
            for filled in itertools.product(*([a] if a is not None else [True, False] for a in answers))
        }
        return found.pop() if len(found) == 1 else None

    answers = answers[:8]
    assert every(answers) == completions(all)
    assert some(answers) == completions(any)


def test_a_lead_is_told_without_a_sign():
    assert Lead(0.0123, 0.0041, 5).told("Elo") == "0.012 ± 0.004 ahead of Elo"
    assert Lead(-0.0123, 0.0041, 5).told("Elo") == "0.012 ± 0.004 behind Elo"
    assert Lead(0.00123, 0.00041, 5).told() == "0.0012 ± 0.0004 ahead"
    assert Lead(-0.0123, 0.0041, 5).told(points=True) == "1.2 ± 0.4 points behind"


def test_words_over_several_leads():
    ahead, behind, level, unknown = (
        Lead(0.1, 0.01, 5),
        Lead(-0.1, 0.01, 5),
        Lead(0.0, 0.001, 5),
        Lead(0.01, 0.03, 5),
    )
    assert [best([ahead, other]) for other in (ahead, behind, level, unknown)] == [True, False, None, None]
    assert [robust([level, other]) for other in (ahead, behind, level, unknown)] == [True, False, True, None]
    assert [near_optimal(other) for other in (level, behind, unknown)] == [True, False, None]


def test_sparse_and_typical():
    assert sparse([8, 9, 10], [40, 40, 40]) is True
    assert sparse([30, 31, 32], [40, 40, 40]) is False
    assert sparse([10, 30, 20], [40, 40, 40]) is None
    assert sparse([8, 9, 16], [40, 40, 40], cap=16) is None
    assert [typical([True] * k + [False] * (4 - k)) for k in range(5)] == [False, False, None, True, True]


def test_a_selection_counts_the_ends_that_are_ours(monkeypatch):
    shown = []
    monkeypatch.setattr("bookrunner.yardstick.show", shown.append)
    grid, chosen = [0.1, 1.0, 10.0], [0.1, 0.1, 1.0, 10.0]
    assert selection("C", chosen, grid) == "2 of 4 at the bottom, 1 of 4 at the top"
    assert selection("C", chosen, grid, ends="low") == "2 of 4 at the bottom"
    assert selection("C", chosen, (0.01, 100.0), said="It is wide.") == "none of 4 at an end"
    assert [payload.popitem()[1]["at_end"] for payload in shown] == [3, 2, 0]
    with pytest.raises(ValueError, match="chosen is empty"):
        selection("C", [], grid)
    with pytest.raises(ValueError, match="ends is 'top'; expected 'both', 'low' or 'high'"):
        selection("C", chosen, grid, ends="top")


def test_bands_are_positive():
    assert min(BANDS.values()) > 0
    assert BANDS["error rate"] == BAND


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ([1.0], [2.0], "the number of differences, one a data set, is 1; expected at least 2"),
        (object(), [1.0], "ours is .*object.*; expected values, one a data set"),
        ([1.0, 2.0], [1.0], r"theirs has shape \(1,\); expected \(2,\): as many values as ours"),
        ([1.0, float("nan")], [1.0, 2.0], r"ours\[1\] is nan; expected finite"),
    ],
)
def test_lead_refuses(ours, theirs, message):
    with pytest.raises(ValueError, match=message):
        lead(ours, theirs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: every(0.5), "answers is 0.5; expected a sequence of True, False or None"),
        (lambda: some([True, 1]), r"answers is \[True, 1\]; expected a sequence of True"),
        (lambda: best("x"), "leads is 'x'; expected a sequence of Lead"),
        (lambda: sparse([3, 4], [9, 9], cap=""), r"cap\[0\] is ''"),
        (lambda: robust([(1.0, 0.1, 3)]), r"leads is \[\(1.0, 0.1, 3\)\]; expected a sequence of Lead"),
        (lambda: sparse([1, 2], [3, 0]), r"candidates is \[3, 0\]; expected a positive number"),
        (lambda: typical([True, None]), r"answers is \[True, None\]; expected True or False, one a draw"),
        (lambda: selection("C", 0.1, [1, 2]), "chosen is 0.1; expected one value a search"),
        (lambda: selection("C", [0.1], {"C": [1]}), r"grid\[0\] is 'C'; expected a number"),
    ],
)
def test_what_is_judged_is_named_where_it_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
