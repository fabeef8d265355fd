"""What all ranking learners have in common. Every public class of `ranking` is
tested."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.exceptions import NotFittedError

from preflearn import ranking
from preflearn.analogy import Able2Rank, AnKerRank
from preflearn.metrics import ranking_loss
from preflearn.pairs import ranks_to_scores
from preflearn.pursuit import (
    RLS,
    RankingPursuit,
    RankRLS,
    SemiSupervisedRankingPursuit,
    SparseRankRLS,
)
from preflearn.ranking import RankingLearner, RankNet, RankTargetWarning
from preflearn.ranking.base import positions
from preflearn.svm import SVMRank


def is_learner(kind):
    return (
        isinstance(kind, type)
        and issubclass(kind, RankingLearner)
        and kind is not RankingLearner
    )


PUBLIC = {name: getattr(ranking, name) for name in ranking.__all__}
CONCRETE = {name: kind for name, kind in PUBLIC.items() if is_learner(kind)}
LEARNERS = {name: kind() for name, kind in CONCRETE.items()} | {
    "RankNet": RankNet(n_hidden=8, n_epochs=5)
}


@pytest.fixture(params=LEARNERS.values(), ids=LEARNERS)
def learner(request):
    return clone(request.param)


def ranked(seed, n=24, queries=1, ties=False):
    """Return items, scores, and query ids. A score is minus the rank of the item by a
    noisy linear function."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    qid = np.sort(rng.integers(queries, size=n))
    score = X @ [1, 2, 3] + 0.5 * rng.normal(size=n)
    score = np.round(score) if ties else score
    rank = [
        1 + np.sum((score > s) & (qid == q)) for s, q in zip(score, qid, strict=True)
    ]
    return X, ranks_to_scores(rank, qid), qid


def test_an_order_is_learned_from_data_that_stay_as_they_are(learner):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    Q = rng.normal(size=(30, 2))
    y = X @ [1.0, -2.0]
    copies = (X.copy(), y.copy())
    before = learner.get_params()
    found = learner.fit(X, y).rank(Q)
    assert ranking_loss(positions(Q @ [1.0, -2.0]), found) < 0.1
    assert learner.get_params() == before
    np.testing.assert_array_equal(learner.fit(*copies).rank(Q), found)
    for array, copy in zip((X, y), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_ranks_are_those_of_scores_and_equal_items_share_them(learner):
    X, y, qid = ranked(1, queries=3)
    scores = learner.fit(X, y, qid).rank_function(X)
    found = learner.rank(X)
    assert learner.n_features_in_ == 3
    assert found.tolist() == [1 + int((scores > score).sum()) for score in scores]
    assert learner.rank(X[:1]).tolist() == [1]
    thrice = learner.rank(np.tile(X[:7], (3, 1))).reshape(3, 7)
    np.testing.assert_array_equal(thrice, thrice[[0, 0, 0]])


@pytest.mark.parametrize("name", LEARNERS)
@examples(8)
@given(seed=st.integers(0, 2**32 - 1))
def test_only_the_order_of_scores_within_a_query_counts(name, seed):
    X, y, qid = ranked(seed, queries=3, ties=True)
    first, again = (clone(LEARNERS[name]) for _ in range(2))
    moved = np.exp(y / 5) * (1 + qid) - 7 * qid
    names = np.array(["b", "c", "d"])[qid]
    scores = first.fit(X, y, qid).rank_function(X)
    np.testing.assert_array_equal(again.fit(X, moved, names).rank_function(X), scores)
    # as floats, neighboring values would be equal
    huge = np.int64(2**60) + y.astype(np.int64)
    np.testing.assert_array_equal(again.fit(X, huge, qid).rank_function(X), scores)
    part = np.random.default_rng(seed).permutation(len(X))[:9]
    np.testing.assert_allclose(first.rank_function(X[part]), scores[part], rtol=1e-12)


@pytest.mark.parametrize(
    ("X", "y", "qid", "words"),
    [
        ([[0.0], [1.0]], [1, 1], None, "no pair .*2 items.*scores"),
        ([[0.0], [1.0], [2.0]], [1, 1, 1], [0, 1, 2], "no pair .*3 items"),
        ([[0.0], [np.nan]], [1, 2], None, r"X\[1, 0\]"),
        ([[0.0], [1.0]], [1, np.inf], None, r"y\[1\]"),
        ([[0.0], [1.0]], [1, 2, 3], None, "^y "),
        ([[0.0], [1.0]], [1, 2], [0], "^qid "),
        ([[0.0], [1e101]], [1, 2], None, r"X is 1e\+101.*standardize"),
    ],
)
def test_bad_training_data_is_named(learner, X, y, qid, words):
    with pytest.raises(ValueError, match=words):
        learner.fit(X, y, qid)


def test_bad_queries_are_named(learner):
    X, y, _ = ranked(5)
    with pytest.raises(NotFittedError):
        learner.rank(X)
    learner.fit(X, y)
    for Q, words in (
        (X[:, :2], "Q has 2 features.* 3"),
        ([[0.0, np.nan, 1.0]], r"Q\[0, 1\]"),
        ([[0.0, 1e101, 1.0]], r"Q is 1e\+101"),
    ):
        with pytest.raises(ValueError, match=words):
            learner.rank(Q)


@pytest.mark.parametrize("size", [1e-320, 1e-149, 1e-60, 1e40, 1e99])
def test_scores_are_finite_or_the_features_are_rejected(learner, size):
    X, y, _ = ranked(6)
    unit = X / np.abs(X).max()
    try:
        learner.fit(size * unit, y)
    except ValueError as error:
        assert "standardize" in str(error)  # noqa: PT017
        return
    for Q in (size * unit, 1e100 * unit * [1, -1, 1]):
        assert np.isfinite(learner.rank_function(Q)).all()


def test_every_ranking_learner_takes_sparse_items_of_an_svmlight_file(tmp_path):
    """Scored items with query ids, as scikit-learn reads them, give the same scores as
    dense items."""
    rng = np.random.default_rng(0)
    items = np.where(rng.random((60, 5)) < 0.5, rng.random((60, 5)), 0.0)
    qid = np.repeat(np.arange(6), 10)
    grades = np.round(3 * items @ rng.random(5))
    dump_svmlight_file(items, grades, str(tmp_path / "train.txt"), query_id=qid)
    X, y, q = load_svmlight_file(str(tmp_path / "train.txt"), query_id=True)
    wide = sparse.hstack([X] * 20, "csr")  # has more features than items
    scored = [kind(kernel="linear") for kind in (SVMRank, RLS, RankRLS)]
    scored += [
        SparseRankRLS(5, kernel="linear", random_state=0),
        RankingPursuit(3, kernel="linear"),
    ]
    for learner in [*scored, SVMRank(), RankRLS()]:
        for form in [X, wide] if learner.kernel == "linear" else [X]:
            kept = clone(learner).fit(form, y, q)
            expected = (
                clone(learner).fit(form.toarray(), y, q).rank_function(form.toarray())
            )
            for asked in (form, form.toarray()):
                np.testing.assert_allclose(
                    kept.rank_function(asked), expected, rtol=1e-6, atol=1e-9
                )
    for learner in [
        *LEARNERS.values(),
        AnKerRank(n_repeats=1, random_state=0),
        Able2Rank(k=3),
    ]:
        kept, dense = (clone(learner).fit(form, y, q) for form in (X, X.toarray()))
        assert kept.rank(X[:10]).tolist() == dense.rank(X.toarray()[:10]).tolist()


# ---- One contract: larger is better

OF_ITEMS = {
    **LEARNERS,
    "AnKerRank": AnKerRank(1.0, n_repeats=1, random_state=0),
    "Able2Rank": Able2Rank(k=20),
    "SVMRank": SVMRank(1.0, "linear"),
    "RLS": RLS(kernel="linear"),
    "RankRLS": RankRLS(kernel="linear"),
    "SparseRankRLS": SparseRankRLS(5, kernel="linear", random_state=0),
    "RankingPursuit": RankingPursuit(5, kernel="linear"),
    "SemiSupervisedRankingPursuit": SemiSupervisedRankingPursuit(
        [slice(None), slice(None)], n_basis=5, kernel="linear"
    ),
}


def correlation(learner, X, y, qid=None):
    return spearmanr(clone(learner).fit(X, y, qid).rank_function(X), y).statistic


@pytest.mark.parametrize("name", OF_ITEMS)
def test_every_learner_of_items_takes_larger_targets_for_better(name):
    rng = np.random.default_rng(0)
    # the constant feature is needed because the linear RLS has no intercept
    X = np.column_stack([rng.uniform(size=(30, 2)), np.ones(30)])
    y = X @ [1.0, 2.0, 0.0] + 0.01 * rng.normal(size=30)
    assert correlation(OF_ITEMS[name], X, y) > 0.9
    assert correlation(OF_ITEMS[name], X, -y) > 0.9
    rank = positions(y)
    assert correlation(OF_ITEMS[name], X, ranks_to_scores(rank)) > 0.9


RANKERS = [
    *("ExpectedRankRegression", "RankNet"),
    *("AnKerRank", "Able2Rank"),
]


@pytest.mark.parametrize("name", RANKERS)
def test_ranks_as_a_target_are_met_with_a_warning(name):
    X = np.random.default_rng(1).uniform(size=(9, 2))
    qid = np.repeat([0, 1], [5, 4])
    rank = np.array([2, 1, 4, 3, 5, 4, 2, 1, 3])
    learner = clone(OF_ITEMS[name])
    with pytest.warns(RankTargetWarning, match=r"^y .*ranks_to_scores\(rank\)") as met:
        learner.fit(X, rank, qid)
    assert met[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shared = [1, 1, *rank[2:]]
        for y in (ranks_to_scores(rank, qid), rank - 1, shared, 2.0 * rank):
            learner.fit(X, y, qid)
        # all items are in one query, so these ranks are not a permutation of 1, ..., 9
        learner.fit(X, rank)
