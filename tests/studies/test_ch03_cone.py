"""The distance of the optimum of MarginLP from that of MarginQP."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from margins.problems import separable

from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import Pairs
from preflearn_book.studies.ch03_cone import cone_distance


@given(st.integers(0, 2**31), st.integers(1, 6))
def test_cone_distance_vanishes_exactly_where_the_optima_coincide(seed, p):
    pairs, y = separable(seed, p=p)
    lp = MarginLP().fit(pairs, y)
    qp = MarginQP().fit(pairs, y)
    distance = cone_distance(lp, pairs, y)
    gap = np.abs(lp.coef_ - qp.coef_).max() / np.abs(lp.coef_).max()
    assert 0 <= distance <= 1 + 1e-12
    assert (distance < 1e-7) == (gap < 1e-7)
    assert (distance < 1e-7) == (lp.margin_ - qp.margin_ < 1e-9)


@pytest.mark.parametrize("scale", [1.0, 0.01, 100.0])
def test_the_distance_from_the_cone_by_hand(scale):
    """With one tie (1, 0) and one preference (2, 2), the LP has w = (0, 1), and the QP
    has the direction (1, 2)."""
    pairs = Pairs(
        np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 0.0]]) * [1, scale],
        [[1, 0], [2, 0]],
    )
    y = [1, 0]
    lp = MarginLP().fit(pairs, y)
    qp = MarginQP().fit(pairs, y)
    np.testing.assert_allclose(lp.coef_, [0, 1 / scale], atol=1e-12)
    np.testing.assert_allclose(qp.u_[1] / qp.u_[0], 2 * scale)
    assert cone_distance(lp, pairs, y) == pytest.approx(
        1 / np.hypot(1, 2 * scale), rel=1e-9
    )
    assert qp.margin_ < lp.margin_ == pytest.approx(1)
