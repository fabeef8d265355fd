"""The pairwise loss as a quadratic form, compared with its definition by explicit
Laplacians."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import laplacian, same_query

from preflearn.pursuit.quadratic_forms import QueryForm, form_of


def loss_by_definition(W, v):
    """Return 1/2 sum_ij W_ij (v_i - v_j)², which is eq. 2 before it is written with a
    matrix."""
    return (
        sum(W[i][j] * (v[i] - v[j]) ** 2 for i in range(len(v)) for j in range(len(v)))
        / 2
    )


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=9),
    st.floats(0, 1),
    st.integers(0, 99),
)
def test_forms_are_the_sum_over_pairs_and_items(qid, mix, seed):
    rng = np.random.default_rng(seed)
    n = len(qid)
    codes = np.unique(qid, return_inverse=True)[1]
    form = QueryForm(codes, mix)
    W = same_query(codes)
    V = rng.integers(-5, 6, (n, 3)).astype(float)
    times = (mix * np.eye(n) + (1 - mix) * laplacian(W)) @ V
    expected = [(1 - mix) * loss_by_definition(W, v) + mix * v @ v for v in V.T]
    assert form.squares(V) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert form.times(V) == pytest.approx(times, rel=1e-9, abs=1e-9)
    assert form.times(V[:, 0]) == pytest.approx(times[:, 0], abs=1e-9)
    assert np.square(form.root(V)).sum(axis=0) == pytest.approx(
        expected, rel=1e-9, abs=1e-9
    )
    assert form.root(form.root(V)) == pytest.approx(times, abs=1e-9)


def test_a_large_constant_spoils_nothing():
    codes = np.array([0, 0, 1, 1])
    v = np.array([1.0, 2.0, 5.0, 3.0])
    squares = QueryForm(codes).squares((v + 1e12)[:, None])
    assert squares == pytest.approx([5.0], rel=1e-4)


def test_regression_needs_no_pair():
    assert form_of(2, [0, 1], 1.0).times(np.array([2.0, 3.0])).tolist() == [
        2.0,
        3.0,
    ]
