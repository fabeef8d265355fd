"""Ranking pursuit: each step compared with brute force over the dictionary, and changes
that must not affect it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pursuit.scored import problem
from sklearn.linear_model import orthogonal_mp

from preflearn.pairs import Pairs
from preflearn.pursuit import RankingPursuit

BACKFITS = (False, "after", "pre")


@pytest.mark.parametrize("seed", range(5))
def test_regression_is_scikit_learns_orthogonal_matching_pursuit(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(30, 50))
    s = rng.normal(size=30)
    columns /= np.linalg.norm(columns, axis=0)
    model = RankingPursuit(8, "precomputed", mix=1.0, backfit="after").fit(columns, s)
    coef = orthogonal_mp(columns, s, n_nonzero_coefs=8)
    assert set(model.basis_.tolist()) == set(np.flatnonzero(coef).tolist())
    assert model.coef_ == pytest.approx(coef[model.basis_])


@given(
    st.integers(0, 300),
    st.sampled_from(BACKFITS),
    st.floats(-1e3, 1e3),
    st.floats(0.1, 1e3),
    st.sampled_from([-1, 1]),
)
def test_a_shift_of_a_query_changes_nothing_and_a_scale_scales(
    seed, backfit, shift, size, sign
):
    X, s, qid = problem(seed, n=10)
    scale = sign * size
    one = RankingPursuit(3, backfit=backfit, gamma=1.0).fit(X, s, qid)
    other = RankingPursuit(3, backfit=backfit, gamma=1.0).fit(
        X, scale * s + shift * qid, qid
    )
    assert other.basis_.tolist() == one.basis_.tolist()
    assert other.coef_ == pytest.approx(scale * one.coef_, rel=1e-6)


def test_wide_kernel_ranks_as_its_limit_does():
    """exp(-gamma d²) = 1 - gamma d² + ..., and rounding at 1 must not hide the other
    terms."""
    X, s, qid = problem(9)
    one, other = (
        RankingPursuit(2, gamma=g, backfit=False).fit(X, s, qid) for g in (1e-10, 1e-11)
    )
    assert one.basis_.tolist() == other.basis_.tolist()
    assert other.coef_ == pytest.approx(10 * one.coef_, rel=1e-5)
    pairs, _ = Pairs.from_scores(X, s, qid)
    assert other.decision_function(pairs) == pytest.approx(
        one.decision_function(pairs), rel=1e-5
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mix": -0.1}, "mix is -0.1"),
        ({"mix": 1.5}, "mix is 1.5"),
        ({"backfit": True}, "backfit is True"),
        ({"memory": -1}, "memory is -1"),
        ({"dictionary": [[1.0, 2.0]]}, "dictionary"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        RankingPursuit(**parameters).fit([[0.0], [1.0]], [0.0, 1.0])
