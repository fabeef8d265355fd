"""Expected rank regression compared with least squares of the targets, in exact
fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from sklearn.linear_model import LinearRegression

from preflearn.pairs import ranks_to_scores
from preflearn.ranking import ExpectedRankRegression
from preflearn.ranking.base import positions


def fitted(X, rank, qid=None):
    return ExpectedRankRegression().fit(X, ranks_to_scores(rank, qid), qid)


def relative_positions(rank, qid):
    """Return the mean of the possible positions of an item, divided by |Q| + 1, in
    fractions."""
    targets = []
    for r, q in zip(rank, qid, strict=True):
        query = rank[qid == q].tolist()
        above = sum(other < r for other in query)
        alike = query.count(r)
        targets.append(Fraction(2 * above + alike + 1, 2) / (len(query) + 1))
    return targets


@given(seed=st.integers(0, 2**32 - 1), levels=st.sampled_from([3, 1000]))
@examples(15)
def test_it_is_least_squares_of_relative_positions(seed, levels):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    rank = rng.integers(levels, size=40)
    qid = rng.integers(4 + seed % 16, size=40)  # some queries have one item
    reference = LinearRegression().fit(
        X, [float(t) for t in relative_positions(rank, qid)]
    )
    learner = fitted(X, rank, qid)
    np.testing.assert_allclose(learner.coef_, reference.coef_, atol=1e-12)
    assert learner.intercept_ == pytest.approx(reference.intercept_, abs=1e-12)
    np.testing.assert_allclose(
        learner.rank_function(X), -reference.predict(X), atol=1e-12
    )
    moved = fitted(X + rng.normal(size=3), rank, qid)
    np.testing.assert_allclose(moved.coef_, learner.coef_, rtol=1e-6, atol=1e-8)


def test_dependent_features_have_the_shortest_solution():
    """Wins, draws and losses sum to the number of games and determine the points."""
    rng = np.random.default_rng(0)
    won, drawn = rng.integers(0, 20, (2, 18))
    X = np.column_stack(
        [won, drawn, 34 - won - drawn, np.full(18, 34), (3 * won + drawn) / 7.0]
    )
    rank = positions(3 * won + drawn + 0.1 * rng.normal(size=18))
    centred = X - X.mean(axis=0)
    target = rank / 19 - np.mean(rank / 19)
    learner = fitted(X, rank)
    shortest = np.linalg.pinv(centred, rcond=1e-10) @ target
    np.testing.assert_allclose(learner.coef_, shortest, atol=1e-10)


@pytest.mark.parametrize("size", [1e-149, 1e-48, 1e40, 1e99])
def test_the_unit_of_features_does_not_matter(size):
    X = np.random.default_rng(6).uniform(-1, 1, (24, 3))
    rank = positions(X @ [1, 2, 3])
    np.testing.assert_allclose(
        size * fitted(size * X, rank).coef_, fitted(X, rank).coef_
    )


def test_items_too_near_each_other_are_rejected():
    with pytest.raises(ValueError, match=r"X is 1e-300.*standardize"):
        fitted([[1e-300], [2e-300]], [1, 2])


def test_constant_features_have_no_weight():
    X = np.column_stack([np.full(14, 2012.1), 1e-3 * np.arange(14), np.full(14, 0.1)])
    coef = fitted(X, np.arange(14)).coef_
    assert coef[0] == coef[2] == 0 < coef[1]
    assert not fitted(X[:, [0, 2]], np.arange(14)).coef_.any()
