"""What all learners of rankings keep, and the linear one against an independent solver."""

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from preflearn.metrics import ranking_loss
from preflearn.ranking import ExpectedRankRegression, RankNet
from preflearn.ranking.base import generator, positions

SEEDS = st.integers(0, 2**32 - 1)
LEARNERS = {
    "regression": ExpectedRankRegression(),
    "net": RankNet(n_hidden=8, n_epochs=5),
}
every = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


def ranked(seed, n=24, p=3, queries=1, ties=False):
    """Items, ranks that a noisy linear score gives, and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    qid = np.sort(rng.integers(queries, size=n))
    score = X @ np.arange(1, p + 1) + 0.5 * rng.normal(size=n)
    score = np.round(score) if ties else score
    rank = np.array([1 + np.sum((score > score[i]) & (qid == qid[i])) for i in range(n)])
    return X, rank, qid


# ---- All learners


@every
def test_a_linear_order_is_learned(learner):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(40, 2)), rng.normal(size=(30, 2))
    found = clone(learner).fit(X, positions(X @ [1.0, -2.0])).rank(Q)
    assert ranking_loss(positions(Q @ [1.0, -2.0]), found) < 0.05


@every
def test_rank_1_has_the_largest_worth(learner):
    X, rank, qid = ranked(1, queries=3)
    learner = clone(learner).fit(X, rank, qid)
    worths, found = learner.worths(X), learner.rank(X)
    assert found.tolist() == [1 + int((worths > worth).sum()) for worth in worths]
    assert learner.n_features_in_ == 3


@every
def test_one_item_has_rank_1_and_equal_items_share_a_rank(learner):
    X, rank, _ = ranked(2)
    learner = clone(learner).fit(X, rank)
    assert learner.rank(X[:1]).tolist() == [1]
    Q = np.vstack([X[:7], X[:7], X[:7]])
    np.testing.assert_array_equal(learner.rank(Q)[:7], learner.rank(Q)[7:14])
    np.testing.assert_array_equal(learner.rank(Q)[:7], learner.rank(Q)[14:])


@every
@given(seed=SEEDS)
@settings(deadline=None, max_examples=15)
def test_the_rank_of_an_item_is_that_of_its_worth_in_any_query(seed, learner):
    """Worths belong to items: other items of the query do not change them, nor does their order."""
    X, rank, qid = ranked(seed, queries=2)
    learner = clone(learner).fit(X, rank, qid)
    part = np.random.default_rng(seed).permutation(len(X))[:9]
    np.testing.assert_array_equal(learner.worths(X)[part], learner.worths(X[part]))


@every
@given(seed=SEEDS)
@settings(deadline=None, max_examples=15)
def test_only_the_order_of_ranks_within_a_query_counts(seed, learner):
    X, rank, qid = ranked(seed, queries=3, ties=True)
    first = clone(learner).fit(X, rank, qid).worths(X)
    moved = np.exp(rank / 5) * (1 + qid) - 7 * qid
    names = np.array(["b", "c", "d"])[qid]
    np.testing.assert_array_equal(clone(learner).fit(X, moved, names).worths(X), first)


@every
def test_items_alone_in_their_query_and_queries_of_ties_are_no_harm(learner):
    X, rank, _ = ranked(3)
    extra = np.vstack([X, [[9.0, 9.0, 9.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]])
    qid = np.append(np.zeros(len(X)), [1, 2, 2])
    learner = clone(learner).fit(extra, np.append(rank, [1, 1, 1]), qid)
    assert np.isfinite(learner.worths(X)).all()
    if isinstance(learner, RankNet):  # it makes the same pairs and takes the same steps
        np.testing.assert_array_equal(learner.worths(X), clone(learner).fit(X, rank).worths(X))


@every
def test_input_and_parameters_stay_as_they_are(learner):
    X, rank, qid = ranked(4, queries=2)
    kept = X.copy(), rank.copy(), qid.copy()
    learner = clone(learner)
    before = learner.get_params()
    first = learner.fit(X, rank, qid).worths(X)
    for array, copy in zip((X, rank, qid), kept, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert learner.get_params() == before
    np.testing.assert_array_equal(learner.fit(X, rank, qid).worths(X), first)


@every
@pytest.mark.parametrize(
    ("X", "rank", "qid", "message"),
    [
        (np.empty((0, 2)), [], None, "X is empty"),
        ([[0.0]], [1], None, "no pair is left of 1 items"),
        ([[0.0], [1.0]], [1, 1], None, "no pair is left of 2 items: .*with different ranks"),
        ([[0.0], [1.0], [2.0]], [1, 1, 1], [0, 1, 2], "no pair is left of 3 items"),
        ([[0.0], [np.nan]], [1, 2], None, r"X\[1, 0\] is nan"),
        ([[0.0], [1.0]], [1, np.inf], None, r"rank\[1\] is inf"),
        ([[0.0], [1.0]], [1, 2, 3], None, r"rank has shape \(3,\)"),
        ([[0.0], [1.0]], [1, 2], [0], r"qid has shape \(1,\)"),
        ([[0.0], [1.0]], [1, 2], [0, None], "qid"),
        ([0.0, 1.0], [1, 2], None, r"X has shape \(2,\)"),
        ([[0.0], [1e101]], [1, 2], None, "X holds values up to 1e\\+101 .*: standardise the features"),
    ],
)
def test_bad_training_data_is_named(learner, X, rank, qid, message):
    with pytest.raises(ValueError, match=message):
        clone(learner).fit(X, rank, qid)


@every
def test_bad_queries_are_named(learner):
    X, rank, _ = ranked(5)
    learner = clone(learner)
    with pytest.raises(NotFittedError):
        learner.rank(X)
    learner.fit(X, rank)
    with pytest.raises(ValueError, match="Q has 2 features; expected 3, the features of the fit"):
        learner.rank(X[:, :2])
    with pytest.raises(ValueError, match=r"Q\[0, 1\] is nan; expected finite numbers"):
        learner.rank([[0.0, np.nan, 1.0]])
    with pytest.raises(ValueError, match="Q is empty"):
        learner.rank(np.empty((0, 3)))
    with pytest.raises(ValueError, match=r"Q holds values up to 1e\+101 in size; expected at most 1e\+100"):
        learner.rank([[0.0, 1e101, 1.0]])


@every
@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-149, 1e-60, 1e-48, 1e40, 1e60, 1e99])
def test_worths_are_finite_or_refused(learner, size):
    X, rank, _ = ranked(6)
    unit = X / np.abs(X).max()
    X = size * unit
    learner = clone(learner)
    least, most = {ExpectedRankRegression: (1e-150, 1e150)}.get(type(learner), (0, np.inf))
    if not least <= size <= most:
        with pytest.raises(ValueError, match=r"items of X are up to .* apart .*: standardise the features"):
            learner.fit(X, rank)
        return
    learner.fit(X, rank)
    for Q in (X, 1e100 * unit * [1, -1, 1]):
        assert np.isfinite(learner.worths(Q)).all()
    if not isinstance(learner, RankNet):
        assert ranking_loss(rank, learner.rank(X)) < 0.2


# ---- The linear one


@given(seed=SEEDS)
@settings(deadline=None, max_examples=15)
def test_a_shift_of_features_changes_nothing(seed):
    X, rank, qid = ranked(seed, queries=2)
    rng = np.random.default_rng(seed)
    first = ExpectedRankRegression().fit(X, rank, qid).coef_
    moved = ExpectedRankRegression().fit(X + rng.normal(size=3), rank, qid).coef_
    np.testing.assert_allclose(moved, first, rtol=1e-6, atol=1e-8)


# ---- Expected rank regression


def relative_positions(rank, qid):
    """Definition, in fractions: the mean of the positions that an item may have, over |Q| + 1."""
    targets = []
    for r, q in zip(rank, qid, strict=True):
        query = rank[qid == q].tolist()
        above, alike = sum(other < r for other in query), query.count(r)
        targets.append(Fraction(2 * above + alike + 1, 2) / (len(query) + 1))
    return targets


@given(seed=SEEDS, ties=st.booleans())
def test_it_is_least_squares_of_relative_positions(seed, ties):
    X, rank, qid = ranked(seed, n=40, queries=4, ties=ties)
    reference = LinearRegression().fit(X, [float(t) for t in relative_positions(rank, qid)])
    learner = ExpectedRankRegression().fit(X, rank, qid)
    np.testing.assert_allclose(learner.coef_, reference.coef_, atol=1e-12)
    assert learner.intercept_ == pytest.approx(reference.intercept_, abs=1e-12)
    np.testing.assert_allclose(learner.worths(X), -reference.predict(X), atol=1e-12)


def test_of_dependent_features_the_shortest_solution_is_taken():
    """Wins, draws and losses sum to the number of games, and the points follow from them."""
    rng = np.random.default_rng(0)
    won, drawn = rng.integers(0, 20, (2, 18))
    X = np.column_stack([won, drawn, 34 - won - drawn, np.full(18, 34), (3 * won + drawn) / 7.0])
    rank = positions(3 * won + drawn + 0.1 * rng.normal(size=18))
    centred = X - X.mean(axis=0)
    target = rank / 19 - np.mean(rank / 19)
    learner = ExpectedRankRegression().fit(X, rank)
    np.testing.assert_allclose(centred.T @ (centred @ learner.coef_ - target), 0, atol=1e-10)
    w = cp.Variable(5)
    best = LinearRegression().fit(X[:, :2], target).predict(X[:, :2])
    cp.Problem(cp.Minimize(cp.sum_squares(w)), [centred[:, :2].T @ (centred @ w - best) == 0]).solve()
    np.testing.assert_allclose(learner.coef_, w.value, atol=1e-6)


def test_a_generator_is_taken_as_it_is():
    rng = np.random.default_rng(3)
    assert generator(rng) is rng
    assert generator(3).random() == np.random.default_rng(3).random()
    assert generator(None).random() != generator(None).random()


def test_a_generator_goes_on_and_none_is_other_each_time():
    X, rank, _ = ranked(3)

    def found(state):
        learner = RankNet(random_state=state)
        fits = [learner.fit(X, rank).worths(X) for _ in range(8)]
        return np.array(fits)

    again = found(np.random.default_rng(1))
    np.testing.assert_array_equal(found(np.random.default_rng(1)), again)
    assert len(np.unique(again, axis=0)) > 1
    assert len(np.unique(found(None), axis=0)) > 1
    assert len(np.unique(found(1), axis=0)) == 1


# ---- What only differences and orders decide


def test_constant_features_have_no_weight():
    X = np.column_stack([np.full(14, 2012.1), 1e-3 * np.arange(14), np.full(14, 0.1)])
    coef = ExpectedRankRegression().fit(X, np.arange(14)).coef_
    assert coef[0] == coef[2] == 0 < coef[1]
    assert not ExpectedRankRegression().fit(X[:, [0, 2]], np.arange(14)).coef_.any()


def test_large_whole_numbers_as_ranks_stay_apart():
    X = np.array([[0.0], [1.0], [2.0], [4.0]])
    large = np.int64(2**60) + np.arange(4)
    found = ExpectedRankRegression().fit(X, large).coef_
    np.testing.assert_array_equal(found, ExpectedRankRegression().fit(X, np.arange(4)).coef_)


def test_a_net_does_not_rank_by_its_first_weights():
    with pytest.raises(ValueError, match="equal where their ranks differ"):
        RankNet().fit(np.ones((5, 2)), np.arange(5))


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        (np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]), "rank has 1 masked values"),
        ([[1], [2, 3]], "rank must be an array of numbers"),
    ],
)
def test_ranks_that_are_masked_or_ragged_are_refused(rank, message):
    with pytest.raises(ValueError, match=message):
        ExpectedRankRegression().fit([[0.0], [1.0], [3.0]], rank)
