import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp, ttest_rel

from preflearn_book.runner.decision_rules import (
    MARGIN_FACTORS,
    PairedDifference,
    compare,
    equivalence_margin,
    every,
    selection,
    some,
    sparse,
    typical,
)

VALUES = st.integers(-1000, 1000).map(lambda k: k / 1000)
PAIRED = st.lists(st.tuples(VALUES, VALUES), min_size=5, max_size=12).filter(
    lambda pairs: len({round(a - b, 9) for a, b in pairs}) > 1
)


@given(PAIRED)
def test_superior_is_a_two_sided_t_test(pairs):
    first, second = np.transpose(pairs)
    test = ttest_rel(first, second)
    difference = compare(first, second)
    assume(abs(test.pvalue - 0.05) > 1e-9)
    assert difference.mean == pytest.approx(np.mean(first - second), abs=1e-12)
    assert difference.interval() == pytest.approx(test.confidence_interval())
    assert (difference.superior is True) == (test.pvalue < 0.05 and test.statistic > 0)
    assert (difference.inferior is True) == (test.pvalue < 0.05 and test.statistic < 0)


@given(PAIRED, st.floats(0.01, 0.5))
def test_equivalent_is_two_one_sided_t_tests(pairs, margin):
    first, second = np.transpose(pairs)
    above = ttest_1samp(first - second, -margin, alternative="greater").pvalue
    below = ttest_1samp(first - second, margin, alternative="less").pvalue
    difference = compare(first, second)
    assume(min(abs(above - 0.05), abs(below - 0.05)) > 1e-9)
    passes = max(above, below) < 0.05
    assert (difference.equivalent_within(margin) is True) == passes
    assert (difference.non_inferior_within(margin) is True) == (above < 0.05)


def test_the_margin_is_compared_with_90_percent_intervals_and_zero_with_95():
    """With nine degrees of freedom, the half-widths are 1.83 and 2.26 errors."""
    difference = PairedDifference(0.0, 1.0, 10)
    assert difference.equivalent_within(2.0) is True
    assert difference.non_inferior_within(2.0) is True
    assert difference._replace(mean=2.0).superior is None
    assert difference._replace(mean=2.0).superior_beyond(0.0) is None


@given(PAIRED, st.floats(0.01, 0.5))
def test_swapping_the_methods_swaps_the_answers(pairs, margin):
    first, second = np.transpose(pairs)
    there = compare(first, second, margin=margin)
    back = compare(second, first, margin=margin)
    assert (there.superior, there.inferior) == (back.inferior, back.superior)
    assert there.equivalent == back.equivalent


@given(PAIRED, st.integers(-5, 5))
def test_answers_are_invariant_to_a_shift_of_all_values(pairs, shift):
    first, second = np.transpose(pairs)
    there = compare(first, second, trivial=second - 1)
    moved = compare(first + shift, second + shift, trivial=second + shift - 1)
    assume(min(abs(end) for end in there.interval()) > 1e-9)
    assert moved.mean == pytest.approx(there.mean, abs=1e-12)
    assert moved.superior == there.superior


@pytest.mark.parametrize("name", ["equivalent", "non_inferior", "superior_by_margin"])
@pytest.mark.parametrize("mean", np.linspace(-0.3, 0.3, 13))
def test_an_answer_is_the_same_at_each_multiple_of_the_margin(name, mean):
    tests = {
        "equivalent": PairedDifference.equivalent_within,
        "non_inferior": PairedDifference.non_inferior_within,
        "superior_by_margin": PairedDifference.superior_beyond,
    }
    difference = PairedDifference(mean, 0.01, 10, margin=0.1)
    answers = {tests[name](difference, factor * 0.1) for factor in MARGIN_FACTORS}
    expected = answers.pop() if len(answers) == 1 else None
    assert getattr(difference, name) == expected


def test_fewer_than_five_replicates_are_undecided():
    few = PairedDifference(1.0, 0.001, 4, margin=0.1)
    assert [few.superior, few.non_inferior, few.superior_by_margin] == [None] * 3
    assert few._replace(n=5).superior is True


def test_a_passing_trivial_baseline_makes_the_answer_undecided():
    close = PairedDifference(0.0, 0.001, 10, margin=0.1)
    assert close.equivalent is True
    assert close._replace(trivial=close).equivalent is None
    assert close._replace(trivial=close).non_inferior is None
    worse = PairedDifference(-1.0, 0.001, 10)
    assert close._replace(trivial=worse).equivalent is True


def test_the_margin_is_a_tenth_of_the_distance_from_trivial_to_best():
    first, second, trivial, best = ([x] * 5 for x in (0.8, 0.7, 0.5, 0.9))
    assert compare(first, second, trivial=trivial).margin == pytest.approx(0.03)
    found = compare(first, second, trivial=trivial, best=best)
    assert found.margin == pytest.approx(equivalence_margin(trivial, best))
    assert found.margin == pytest.approx(0.04)
    assert compare(first, second, trivial=trivial, margin=0.2).margin == 0.2


@pytest.mark.parametrize(
    ("mean", "options", "text"),
    [
        (0.0123, {}, "0.012 (0.003 to 0.022)"),
        (-0.00123, {}, "−0.0012 (−0.0022 to −0.0003)"),
        (-0.0123, {"percentage_points": True}, "−1.2 (−2.2 to −0.3)"),
    ],
)
def test_a_difference_is_written_with_its_interval(mean, options, text):
    assert PairedDifference(mean, abs(mean) / 3, 8).to_text(**options) == text


@given(st.integers(-50, 50), st.integers(1, 30))
def test_a_description_is_the_same_from_both_sides(mean, std_error):
    difference = PairedDifference(mean / 1000, std_error / 1000, 8)
    swapped = difference._replace(mean=-difference.mean)
    assume(mean != 0)
    assert difference.describe("lower") == swapped.describe("higher")
    assert difference.describe("lower").startswith("lower" if mean > 0 else "higher")


def decided(answers):
    return answers[0] if len(set(answers)) == 1 else None


@given(st.lists(st.sampled_from([True, False, None]), max_size=8))
def test_every_and_some_agree_with_all_completions_of_undecided_answers(answers):
    completions = list(
        itertools.product(*([a] if a is not None else [True, False] for a in answers))
    )
    assert every(answers) == decided([all(filled) for filled in completions])
    assert some(answers) == decided([any(filled) for filled in completions])


@given(st.integers(1, 40), st.data())
def test_typical_is_a_sign_test(n, data):
    count = data.draw(st.integers(0, n))
    tail = sum(math.comb(n, k) for k in range(max(count, n - count), n + 1)) / 2**n
    answer = typical([True] * count + [False] * (n - count))
    assert answer == (count > n / 2 if 2 * tail <= 0.05 else None)


def test_sparse():
    candidates = [40] * 5
    assert sparse([8, 9, 10, 8, 9], candidates) is True
    assert sparse([30, 31, 32, 30, 31], candidates) is False
    assert sparse([10, 30, 20, 10, 30], candidates) is None


def test_a_selection_counts_the_choices_at_the_ends(monkeypatch):
    payloads = []
    monkeypatch.setattr("preflearn_book.runner.decision_rules.show", payloads.append)
    grid = [0.1, 1.0, 10.0]
    chosen = [0.1, 0.1, 1.0, 10.0]
    for options in ({}, {"ends": "low"}, {"ends": "high"}):
        selection("C", chosen, grid, **options)
    selection("C", chosen, (0.01, 100.0))
    assert [payload.popitem()[1]["at_end"] for payload in payloads] == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: compare([1], [1]), "differences"),
        (lambda: compare([1, 2], [1]), "second"),
        (lambda: every([1, True]), "answers"),
        (lambda: compare([1, 2], [1, 3]).equivalent, "margin"),
        (lambda: compare([1, 2], [1, 3]).describe("less"), "better.*'less'"),
        (lambda: sparse([1, 2], [1, 0]), "candidates"),
        (lambda: typical([True, None]), "answers"),
        (lambda: selection("C", [1], [1, 2], ends="top"), "ends.*'top'"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_non_inferiority_is_undecided_at_margins_where_the_trivial_baseline_passes():
    rng = np.random.default_rng(5)
    seen = set()
    for distance in (0.0, 0.4, 1.0, 3.0):
        second = rng.normal(size=9)
        first = second - 0.05 + 0.02 * rng.normal(size=9)
        trivial = second - distance + 0.02 * rng.normal(size=9)
        difference = compare(first, second, trivial=trivial)
        for factor, answer in difference.non_inferior_by_margin().items():
            margin = factor * abs(np.mean(trivial) - np.mean(second)) / 10
            low, high = difference.interval(0.9)
            passes = difference.trivial.interval(0.9)[0] > -margin
            if low > -margin:
                assert answer is (None if passes else True)
            else:
                assert answer is (False if high < -margin else None)
            seen.add(answer)
    assert {True, False} <= seen
