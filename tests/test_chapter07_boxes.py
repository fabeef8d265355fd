"""The theorem boxes of chapter 07, on all small cases, and on random and degenerate
ones.

Curves are computed threshold by threshold, and areas are fractions, so no sum of the
package is used.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, permutations, product

import pytest

KINDS = list(product((-1, 0, 1), (-2, -1, 0, 1, 2)))  # a label and a difference


def small_cases(m):
    """Yield all multisets of m labeled differences with a tie and a preference."""
    for rows in combinations_with_replacement(KINDS, m):
        y, d = zip(*rows, strict=True)
        if 0 in y and set(y) != {0}:
            yield y, d


def drawn_curve(y, d):
    """Return the rates at each threshold that changes a prediction, from above all
    differences to 0, and the closing point."""
    n_ties = y.count(0)
    points = []
    for tau in [*sorted({abs(z) for z in d}, reverse=True), 0]:
        called = [(z > tau) - (z < -tau) for z in d]
        false = sum(c != 0 for c, label in zip(called, y, strict=True) if label == 0)
        true = sum(c == label for c, label in zip(called, y, strict=True) if label != 0)
        points.append((Fraction(false, n_ties), Fraction(true, len(y) - n_ties)))
    return [*points, (Fraction(1), points[-1][1])]


def area(points):
    steps = pairwise(points)
    return sum(((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in steps), Fraction(0))


def skills(y, d):
    """Return q, and A or None, by counting."""
    right = [abs(z) for label, z in zip(y, d, strict=True) if label * z > 0]
    ties = [abs(z) for label, z in zip(y, d, strict=True) if label == 0]
    q = Fraction(len(right), len(y) - len(ties))
    if not right:
        return q, None
    won = sum(Fraction((a > b) * 2 + (a == b), 2) for a in right for b in ties)
    return q, won / (len(right) * len(ties))


@pytest.mark.theorem("prop-auc")
@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_area_is_the_product_of_two_skills_in_all_small_cases(m):
    for y, d in small_cases(m):
        curve = drawn_curve(y, d)
        (q, A) = skills(y, d)
        assert curve[-1] == (1, q)
        assert area(curve) == (0 if A is None else q * A)
        perfect = all(
            label * z > 0 for label, z in zip(y, d, strict=True) if label
        ) and min(abs(z) for label, z in zip(y, d, strict=True) if label) > max(
            abs(z) for label, z in zip(y, d, strict=True) if not label
        )
        assert (area(curve) == 1) == perfect  # (a)
        if area(curve) > Fraction(1, 2):  # (e)
            assert A is not None
            assert min(q, A) > Fraction(1, 2)


@pytest.mark.theorem("prop-auc")
def test_a_tie_with_difference_zero_is_a_false_positive_at_the_closing_point_only():
    for y, d in small_cases(4):
        *_, before, last = drawn_curve(y, d)
        zero = any(label == 0 and z == 0 for label, z in zip(y, d, strict=True))
        assert (before[0] < 1) == zero
        assert before[1] == last[1]


@pytest.mark.theorem("prop-auc")
@pytest.mark.parametrize(
    "y", [(1, 0), (-1, 0), (1, -1, 0), (1, 1, 0, 0), (-1, 1, 0, 0)]
)
def test_random_differences_have_an_area_of_one_quarter_on_average(y):
    """(b): under a continuous symmetric distribution, all orders of sizes and all signs
    are equally likely."""
    areas = [
        area(drawn_curve(y, [s * (k + 1) for s, k in zip(signs, order, strict=True)]))
        for order in permutations(range(len(y)))
        for signs in product((-1, 1), repeat=len(y))
    ]
    assert sum(areas, Fraction(0)) / len(areas) == Fraction(1, 4)


@pytest.mark.theorem("prop-auc")
@pytest.mark.parametrize(
    ("won", "lost", "drawn"),
    [case for case in product((0, 1, 4), (0, 1, 3), (1, 2)) if case[0] + case[1]],
)
def test_the_area_of_constant_differences(won, lost, drawn):
    """(c) and (d), also if one of the two never wins."""
    y = (1,) * won + (-1,) * lost + (0,) * drawn
    assert area(drawn_curve(y, (1,) * len(y))) == Fraction(won, 2 * (won + lost))
    assert area(drawn_curve(y, (0,) * len(y))) == 0
