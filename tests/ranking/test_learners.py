"""What all learners of rankings keep, and the two linear ones against independent solvers."""

import re
from fractions import Fraction
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.svm import LinearSVC

from preflearn.metrics import ranking_loss
from preflearn.pairs import Pairs
from preflearn.path import cross_validated_path, ranksvm_path
from preflearn.ranking import ExpectedRankRegression, RankingSVM, RankNet
from preflearn.ranking.learner import fold_seeds, generator, positions

SEEDS = st.integers(0, 2**32 - 1)
LEARNERS = {
    "regression": ExpectedRankRegression(),
    "svm": RankingSVM(C=0.5),
    "svm path": RankingSVM(n_repeats=2),
    "net": RankNet(n_hidden=8, n_epochs=5),
}
LINEAR = ("regression", "svm", "svm path")
every = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
linear = pytest.mark.parametrize("learner", [LEARNERS[name] for name in LINEAR], ids=LINEAR)


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
    if isinstance(learner, RankingSVM) and learner.C != "path":
        np.testing.assert_allclose(learner.coef_, clone(learner).fit(X, rank).coef_, atol=1e-9)


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
    with pytest.raises(ValueError, match="Q has 2 features; expected 3, as in the items of the fit"):
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
    least, most = {RankingSVM: (1e-49, 1e49), ExpectedRankRegression: (1e-150, 1e150)}.get(
        type(learner), (0, np.inf)
    )
    if not least <= size <= most:
        with pytest.raises(ValueError, match=r"items of X are up to .* apart .*: standardise the features"):
            learner.fit(X, rank)
        return
    if size > 1 and isinstance(learner, RankingSVM) and learner.C != "path":
        learner.set_params(C=1e-3 / size**2)  # rounding ends the path soon after
    learner.fit(X, rank)
    for Q in (X, 1e100 * unit * [1, -1, 1]):
        assert np.isfinite(learner.worths(Q)).all()
    if not isinstance(learner, RankNet):
        assert ranking_loss(rank, learner.rank(X)) < 0.2


# ---- The linear ones


@linear
@given(seed=SEEDS)
@settings(deadline=None, max_examples=15)
def test_a_shift_of_features_changes_nothing(seed, learner):
    X, rank, qid = ranked(seed, queries=2)
    rng = np.random.default_rng(seed)
    first = clone(learner).fit(X, rank, qid).coef_
    moved = clone(learner).fit(X + rng.normal(size=3), rank, qid).coef_
    np.testing.assert_allclose(moved, first, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("learner", [LEARNERS["regression"], LEARNERS["svm"]], ids=["regression", "svm"])
@given(seed=SEEDS)
@settings(deadline=None, max_examples=15)
def test_the_order_of_items_changes_nothing(seed, learner):
    X, rank, qid = ranked(seed, queries=3, ties=True)
    order = np.random.default_rng(seed).permutation(len(X))
    first = clone(learner).fit(X, rank, qid).coef_
    np.testing.assert_allclose(clone(learner).fit(X[order], rank[order], qid[order]).coef_, first, atol=1e-8)


@linear
@given(seed=SEEDS)
@settings(deadline=None, max_examples=15)
def test_reversed_ranks_reverse_the_order(seed, learner):
    X, rank, qid = ranked(seed, queries=2, ties=True)
    forth, back = clone(learner).fit(X, rank, qid), clone(learner).fit(X, -rank, qid)
    np.testing.assert_allclose(back.coef_, -forth.coef_, rtol=1e-7, atol=1e-8)


# ---- Expected rank regression


def relative_positions(rank, qid):
    """Definition, in fractions: the mean of the positions that an item may have, over |Q| + 1."""
    targets = []
    for r, q in zip(rank, qid, strict=True):
        query = rank[qid == q].tolist()
        above, alike = sum(other < r for other in query), query.count(r)
        targets.append(Fraction(2 * above + alike + 1, 2) / (len(query) + 1))
    return targets


@pytest.mark.parametrize("ties", [False, True])
def test_it_is_least_squares_of_relative_positions(ties):
    X, rank, qid = ranked(6, n=40, queries=4, ties=ties)
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


def test_the_target_is_the_expected_rank_among_all():
    """Of N = 7 ranked items 3 are drawn: the mean rank of the one on place i is i (N + 1) / (3 + 1)."""
    drawn = np.array(list(combinations(range(1, 8), 3)))
    targets = relative_positions(np.array([1, 2, 3]), np.zeros(3))
    np.testing.assert_allclose(drawn.mean(axis=0), [float(t) * 8 for t in targets])


# ---- Ranking SVM


@pytest.mark.parametrize("C", [1e-3, 0.03, 1.0, 30.0])
@pytest.mark.parametrize("queries", [1, 3])
def test_it_equals_liblinear_without_a_bias(C, queries):
    X, rank, qid = ranked(7, queries=queries, ties=True)
    pairs, y = Pairs.from_rankings(X, rank, qid)
    reference = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)
    reference.fit(pairs.differences(), y)
    learner = RankingSVM(C=C).fit(X, rank, qid)
    np.testing.assert_allclose(learner.coef_, reference.coef_[0], atol=1e-5)
    np.testing.assert_allclose(learner.C_, C)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_it_equals_a_general_solver(C):
    X, rank, _ = ranked(8, n=15)
    pairs, y = Pairs.from_rankings(X, rank)
    w = cp.Variable(3)
    hinges = cp.sum(cp.pos(1 - cp.multiply(y, pairs.differences() @ w)))
    cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + C * hinges)).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(RankingSVM(C=C).fit(X, rank).coef_, w.value, atol=1e-5)


def test_of_a_tiny_c_all_pairs_have_the_full_weight():
    X, rank, _ = ranked(9)
    pairs, y = Pairs.from_rankings(X, rank)
    total = (y[:, None] * pairs.differences()).sum(axis=0)
    np.testing.assert_allclose(RankingSVM(C=1e-9).fit(X, rank).coef_, 1e-9 * total, rtol=1e-12)


def test_items_that_are_all_equal_get_equal_worths():
    learner = RankingSVM(C=1.0).fit(np.ones((4, 2)), [1, 2, 3, 4])
    assert learner.coef_.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", range(3))
def test_the_c_of_the_path_has_the_least_mean_error_of_its_folds(seed):
    """And the machine is the one of that C, on all pairs."""
    X, rank, _ = ranked(seed, n=20)
    learner = RankingSVM(random_state=seed).fit(X, rank)
    pairs, y = Pairs.from_rankings(X, rank)
    curves = [
        cross_validated_path(pairs, y, kernel="linear", n_folds=2, random_state=seed + r).curves[0]
        for r in range(3)
    ]

    def error(lam):
        found = []
        for curve in curves:
            below = np.flatnonzero(curve.lambdas >= lam)
            found.append(curve.losses[below[-1] if len(below) else 0])
        return np.mean(found)

    least = min(error(lam) for curve in curves for lam in curve.lambdas)
    lam = 1 / learner.C_
    assert error(lam) == pytest.approx(least) == pytest.approx(learner.curve_.loss)
    path = ranksvm_path(pairs, y, "linear", lambda_min=lam / 2)
    np.testing.assert_allclose(
        learner.worths(X) - learner.worths(X).mean(),
        path.decision_function(lam, X) - path.decision_function(lam, X).mean(),
        atol=1e-9,
    )
    assert learner.coef_.tolist() == RankingSVM(C=learner.C_).fit(X, rank).coef_.tolist()


def test_repetitions_follow_one_another_from_the_seed():
    X, rank, _ = ranked(3)
    chosen = [RankingSVM(n_repeats=1, random_state=s).fit(X, rank).C_ for s in range(6)]
    assert len(set(chosen)) > 1
    assert RankingSVM(random_state=0).fit(X, rank).C_ == RankingSVM(random_state=0).fit(X, rank).C_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *(
            ({"C": C}, f"C is {re.escape(repr(C))}; expected a number from 1e-100 to 1e[+]100 or 'path'")
            for C in (0, -1.0, "auto", "Path", np.nan, None, [1], True, 1e-101, 5e-324, 1e101)
        ),
        ({"n_folds": 1}, "n_folds is 1; expected a whole number of at least 2"),
        ({"n_folds": 99}, "n_folds is 99; expected at most 24"),
        ({"n_repeats": 0}, "n_repeats is 0; expected a whole number of at least 1"),
        *(
            (
                {"random_state": state},
                "random_state is .*; expected a whole number from 0 to 2\\*\\*53, a numpy Gen",
            )
            for state in (-1, 1.5, "a", True, np.random.RandomState(0), 10**400)
        ),
    ],
)
def test_bad_parameters_of_the_svm_are_named(parameters, message):
    X, rank, _ = ranked(0)
    with pytest.raises(ValueError, match=message):
        RankingSVM(**parameters).fit(X, rank)


def test_seeds_of_folds():
    assert fold_seeds(7, 3) == [7, 8, 9]
    assert fold_seeds(2**32 - 1, 2) == [2**32 - 1, 0]
    drawn = fold_seeds(np.random.default_rng(0), 1000)
    assert drawn == fold_seeds(np.random.default_rng(0), 1000)
    assert 2**31 < max(drawn) < 2**32
    assert min(drawn) >= 0
    assert fold_seeds(None, 4) != fold_seeds(None, 4)


def test_a_generator_is_taken_as_it_is():
    rng = np.random.default_rng(3)
    assert generator(rng) is rng
    assert generator(3).random() == np.random.default_rng(3).random()
    assert generator(None).random() != generator(None).random()


@pytest.mark.parametrize("make", [RankNet, RankingSVM])
def test_a_generator_goes_on_and_none_is_other_each_time(make):
    X, rank, _ = ranked(3)

    def found(state):
        learner = make(random_state=state)
        fits = [learner.fit(X, rank).worths(X) for _ in range(8)]
        return np.array(fits)

    again = found(np.random.default_rng(1))
    np.testing.assert_array_equal(found(np.random.default_rng(1)), again)
    assert len(np.unique(again, axis=0)) > 1
    assert len(np.unique(found(None), axis=0)) > 1
    assert len(np.unique(found(1), axis=0)) == 1


def test_the_curve_of_an_earlier_fit_goes():
    X, rank, _ = ranked(3)
    learner = RankingSVM(n_repeats=1).fit(X, rank)
    assert learner.curve_.lam == pytest.approx(1 / learner.C_)
    learner.set_params(C=1.0).fit(X, rank)
    assert not hasattr(learner, "curve_")


def test_a_fit_that_fails_leaves_the_machine_as_it_was():
    X, rank, _ = ranked(3)
    learner = RankingSVM(n_repeats=1).fit(X, rank)
    before = vars(learner).copy()
    for C in (0.0, 1e90):
        with pytest.raises(ValueError, match="C is"):
            learner.set_params(C=C).fit(X[:, :2], rank)
        assert vars(learner) == before | {"C": C}


@pytest.mark.parametrize(
    ("X", "rank", "qid"),
    [
        (np.full((8, 2), 0.1), np.arange(8), None),
        (np.repeat([[0.0], [1.0]], 4, axis=0), np.arange(8), np.repeat([0, 1], 4)),  # in each query
        (np.tile(np.arange(4.0), 2)[:, None], [1, 2, 3, 4, 4, 3, 2, 1], np.repeat([0, 1], 4)),
    ],
)
def test_a_path_needs_items_that_differ_as_do_their_ranks(X, rank, qid):
    assert RankingSVM(C=1.0).fit(X, rank, qid).coef_.tolist() == [0.0] * X.shape[1]
    with pytest.raises(ValueError, match="w is 0 for all C: the items of each query in X are equal, or"):
        RankingSVM().fit(X, rank, qid)


def test_features_beyond_the_squares_of_floats_are_named():
    X, rank, _ = ranked(0)
    for size in (1e50, 1e-50):
        with pytest.raises(
            ValueError, match=r"items of X are up to .* apart .*expected 1e-49 to 1e\+49, or 0"
        ):
            RankingSVM(C=1.0).fit(X * size, rank)


def test_a_c_beyond_the_end_of_the_path_is_named():
    X, rank, _ = ranked(0)
    with pytest.raises(ValueError, match=r"C is 1e\+90; expected at most .*, where rounding ends the path"):
        RankingSVM(C=1e90).fit(X, rank)


def test_too_few_items_for_folds_are_named():
    with pytest.raises(ValueError, match="none of the 2 folds has pairs to train and pairs to validate"):
        RankingSVM().fit([[0.0], [1.0], [2.0]], [1, 2, 3])


# ---- What only differences and orders decide


@pytest.mark.parametrize("seed", range(5))
def test_the_choice_of_the_cost_does_not_see_a_shift_of_items_on_a_grid(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (12, 3)) / 8  # the shift is exact
    rank = positions(X @ [1, 2, 3] + 0.1 * rng.normal(size=12))
    one, other = RankingSVM().fit(X, rank), RankingSVM().fit(X + 0.25, rank)
    assert one.C_ == other.C_
    np.testing.assert_array_equal(one.coef_, other.coef_)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_targets_of_expected_rank_regression_are_positions_query_by_query(seed):
    X, rank, qid = ranked(seed, n=14, queries=4, ties=True)
    target = np.empty(len(X))
    for one in np.unique(qid):
        own = np.flatnonzero(qid == one)
        for i in own:
            below = np.count_nonzero(rank[own] < rank[i])
            target[i] = (below + (np.count_nonzero(rank[own] == rank[i]) + 1) / 2) / (len(own) + 1)
    if all(len({*rank[qid == one]}) < 2 for one in np.unique(qid)):
        return
    plain = LinearRegression().fit(X, target)
    found = ExpectedRankRegression().fit(X, rank, qid)
    np.testing.assert_allclose(found.coef_, plain.coef_, atol=1e-12)
    assert found.intercept_ == pytest.approx(plain.intercept_, abs=1e-12)


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
