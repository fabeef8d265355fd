from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bookrunner import BAND, lead

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
    assert found.better == (mean > 0 and mean**2 > 4 * squared_error)


@given(PAIRED)
def test_exchanging_the_methods_exchanges_better_and_worse(pairs):
    ours, theirs = zip(*pairs, strict=True)
    there, back = lead(ours, theirs), lead(theirs, ours)
    assert (there.better, there.worse, there.similar) == (back.worse, back.better, back.similar)


def test_a_small_lead_that_is_well_known_is_better_and_similar():
    found = lead([0.505, 0.51, 0.505, 0.51], [0.5, 0.5, 0.5, 0.5])
    assert found.better
    assert found.similar
    wide = lead([0.5 + 10 * BAND, 0.5 - 10 * BAND], [0.5, 0.5])
    assert (wide.better, wide.worse, wide.similar) == (False, False, False)


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ([1.0], [2.0], "the number of data sets is 1; expected at least 2"),
        ([1.0, 2.0], [1.0], r"theirs has shape \(1,\); expected \(2,\): as many values as ours"),
        ([1.0, float("nan")], [1.0, 2.0], r"ours\[1\] is nan; expected finite"),
    ],
)
def test_lead_refuses(ours, theirs, message):
    with pytest.raises(ValueError, match=message):
        lead(ours, theirs)
