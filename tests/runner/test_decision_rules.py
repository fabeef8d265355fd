import itertools
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from preflearn_book.runner.decision_rules import (
    Lead,
    best,
    every,
    lead,
    near_optimal,
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
    squared_error = (
        sum((d - mean) ** 2 for d in differences) / (len(pairs) - 1) / len(pairs)
    )
    found = lead(*zip(*pairs, strict=True))
    assert found.mean == pytest.approx(float(mean), abs=1e-14)
    assert found.error**2 == pytest.approx(float(squared_error), abs=1e-14)
    assume(abs(mean**2 - 4 * squared_error) > 1e-12)
    assert (found.better is True) == (mean > 0 and mean**2 > 4 * squared_error)
    ours, theirs = zip(*pairs, strict=True)
    back = lead(theirs, ours)
    assert (found.better, found.worse, found.similar) == (
        back.worse,
        back.better,
        back.similar,
    )


LEADS = st.tuples(st.integers(-60, 60), st.integers(0, 30)).map(
    lambda at: Lead(at[0] / 1000, at[1] / 1000, 5)
)


@given(LEADS)
def test_each_word_is_about_where_the_truth_may_lie(found):
    """A word holds if it holds for every value of the interval, and fails if it holds
    for none."""
    steps = [Fraction(k, 40) for k in range(-40, 41)]
    true = [Fraction(found.mean) + 2 * step * Fraction(found.error) for step in steps]
    band = Fraction(found.band)
    assume(all(abs(abs(value) - band) > 1e-9 for value in (true[0], true[-1])))
    inside = [abs(value) <= band for value in true]
    assert found.as_good == decided([value >= -band for value in true])
    assert found.notable == decided([value > band for value in true])
    assert (found.similar is True) == all(inside)
    assert (found.similar is False) == (min(true) > band or max(true) < -band)
    assert found.better == decided([value > 0 for value in true])


def decided(answers):
    return answers[0] if len(set(answers)) == 1 else None


@given(st.lists(st.sampled_from([True, False, None]), max_size=8))
def test_three_valued_all_and_any_are_those_of_every_completion(answers):
    completions = list(
        itertools.product(*([a] if a is not None else [True, False] for a in answers))
    )
    assert every(answers) == decided([all(filled) for filled in completions])
    assert some(answers) == decided([any(filled) for filled in completions])


@pytest.mark.parametrize(
    ("mean", "points", "size"),
    [
        (0.0123, False, "0.012 ± 0.004"),
        (-0.00123, False, "0.0012 ± 0.0004"),
        (-0.0123, True, "1.2 ± 0.4"),
    ],
)
def test_a_lead_is_written_without_a_sign(mean, points, size):
    assert Lead(mean, abs(mean) / 3, 5).told("Elo", points=points).startswith(size)


def test_words_over_several_leads():
    ahead = Lead(0.1, 0.01, 5)
    behind = Lead(-0.1, 0.01, 5)
    level = Lead(0.0, 0.001, 5)
    unknown = Lead(0.01, 0.03, 5)
    assert [best([ahead, other]) for other in (ahead, behind, level, unknown)] == [
        True,
        False,
        None,
        None,
    ]
    assert [near_optimal(other) for other in (level, behind, unknown)] == [
        True,
        False,
        None,
    ]


def test_sparse_and_typical():
    assert sparse([8, 9, 10], [40, 40, 40]) is True
    assert sparse([30, 31, 32], [40, 40, 40]) is False
    assert sparse([10, 30, 20], [40, 40, 40]) is None
    assert [typical([True] * k + [False] * (4 - k)) for k in range(5)] == [
        False,
        False,
        None,
        True,
        True,
    ]


def test_a_selection_counts_the_choices_at_the_ends(monkeypatch):
    shown = []
    monkeypatch.setattr("preflearn_book.runner.decision_rules.show", shown.append)
    grid = [0.1, 1.0, 10.0]
    chosen = [0.1, 0.1, 1.0, 10.0]
    for options in ({}, {"ends": "low"}, {"ends": "high"}):
        selection("C", chosen, grid, **options)
    selection("C", chosen, (0.01, 100.0))
    assert [payload.popitem()[1]["at_end"] for payload in shown] == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: lead([1], [1]), "differences"),
        (lambda: lead([1, 2], [1]), "theirs"),
        (lambda: every([1, True]), "answers"),
        (lambda: sparse([1, 2], [1, 0]), "candidates"),
        (lambda: typical([True, None]), "answers"),
        (lambda: selection("C", [1], [1, 2], ends="top"), "ends.*'top'"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
