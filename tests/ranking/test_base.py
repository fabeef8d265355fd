"""What all learners of rankings have in common: every public class of `ranking` is
tried."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.exceptions import NotFittedError

from preflearn import ranking
from preflearn.analogy import Able2Rank, AnKerRank
from preflearn.metrics import ranking_loss
from preflearn.pursuit import RLS, RankingPursuit, RankRLS, SparseRankRLS
from preflearn.ranking import RankingLearner, RankNet
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
    """Items, ranks by a noisy linear score, and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    qid = np.sort(rng.integers(queries, size=n))
    score = X @ [1, 2, 3] + 0.5 * rng.normal(size=n)
    score = np.round(score) if ties else score
    return (
        X,
        np.array(
            [
                1 + np.sum((score > s) & (qid == q))
                for s, q in zip(score, qid, strict=True)
            ]
        ),
        qid,
    )


def test_an_order_is_learned_from_data_that_stay_as_they_are(learner):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    Q = rng.normal(size=(30, 2))
    rank = positions(X @ [1.0, -2.0])
    copies = (X.copy(), rank.copy())
    before = learner.get_params()
    found = learner.fit(X, rank).rank(Q)
    assert ranking_loss(positions(Q @ [1.0, -2.0]), found) < 0.1
    assert learner.get_params() == before
    np.testing.assert_array_equal(learner.fit(*copies).rank(Q), found)
    for array, copy in zip((X, rank), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_ranks_are_those_of_worths_and_equal_items_share_them(learner):
    X, rank, qid = ranked(1, queries=3)
    worths = learner.fit(X, rank, qid).worths(X)
    found = learner.rank(X)
    assert learner.n_features_in_ == 3
    assert found.tolist() == [1 + int((worths > worth).sum()) for worth in worths]
    assert learner.rank(X[:1]).tolist() == [1]
    thrice = learner.rank(np.tile(X[:7], (3, 1))).reshape(3, 7)
    np.testing.assert_array_equal(thrice, thrice[[0, 0, 0]])


@pytest.mark.parametrize("name", LEARNERS)
@examples(8)
@given(seed=st.integers(0, 2**32 - 1))
def test_only_the_order_of_ranks_within_a_query_counts(name, seed):
    X, rank, qid = ranked(seed, queries=3, ties=True)
    first, again = (clone(LEARNERS[name]) for _ in range(2))
    moved = np.exp(rank / 5) * (1 + qid) - 7 * qid
    names = np.array(["b", "c", "d"])[qid]
    worths = first.fit(X, rank, qid).worths(X)
    np.testing.assert_array_equal(again.fit(X, moved, names).worths(X), worths)
    huge = np.int64(2**60) + rank  # as floats neighbors would be equal
    np.testing.assert_array_equal(again.fit(X, huge, qid).worths(X), worths)
    part = np.random.default_rng(seed).permutation(len(X))[:9]
    np.testing.assert_allclose(first.worths(X[part]), worths[part], rtol=1e-12)


@pytest.mark.parametrize(
    ("X", "rank", "qid", "words"),
    [
        ([[0.0], [1.0]], [1, 1], None, "no pair .*2 items.*rank"),
        ([[0.0], [1.0], [2.0]], [1, 1, 1], [0, 1, 2], "no pair .*3 items"),
        ([[0.0], [np.nan]], [1, 2], None, r"X\[1, 0\]"),
        ([[0.0], [1.0]], [1, np.inf], None, r"rank\[1\]"),
        ([[0.0], [1.0]], [1, 2, 3], None, "^rank "),
        ([[0.0], [1.0]], [1, 2], [0], "^qid "),
        ([[0.0], [1e101]], [1, 2], None, r"X is 1e\+101.*standardise"),
    ],
)
def test_bad_training_data_is_named(learner, X, rank, qid, words):
    with pytest.raises(ValueError, match=words):
        learner.fit(X, rank, qid)


def test_bad_queries_are_named(learner):
    X, rank, _ = ranked(5)
    with pytest.raises(NotFittedError):
        learner.rank(X)
    learner.fit(X, rank)
    for Q, words in (
        (X[:, :2], "Q has 2 features.* 3"),
        ([[0.0, np.nan, 1.0]], r"Q\[0, 1\]"),
        ([[0.0, 1e101, 1.0]], r"Q is 1e\+101"),
    ):
        with pytest.raises(ValueError, match=words):
            learner.rank(Q)


@pytest.mark.parametrize("size", [1e-320, 1e-149, 1e-60, 1e40, 1e99])
def test_worths_are_finite_or_the_features_are_refused(learner, size):
    X, rank, _ = ranked(6)
    unit = X / np.abs(X).max()
    try:
        learner.fit(size * unit, rank)
    except ValueError as error:
        assert "standardise" in str(error)  # noqa: PT017
        return
    for Q in (size * unit, 1e100 * unit * [1, -1, 1]):
        assert np.isfinite(learner.worths(Q)).all()


def test_every_ranking_learner_takes_sparse_items_of_an_svmlight_file(tmp_path):
    """Scored items with query ids, as scikit-learn reads them, have the scores of dense
    items."""
    rng = np.random.default_rng(0)
    items = np.where(rng.random((60, 5)) < 0.5, rng.random((60, 5)), 0.0)
    qid = np.repeat(np.arange(6), 10)
    grades = np.round(3 * items @ rng.random(5))
    dump_svmlight_file(items, grades, str(tmp_path / "train.txt"), query_id=qid)
    X, y, q = load_svmlight_file(str(tmp_path / "train.txt"), query_id=True)
    wide = sparse.hstack([X] * 20, "csr")  # more features than items
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
        kept, dense = (clone(learner).fit(form, -y, q) for form in (X, X.toarray()))
        assert kept.rank(X[:10]).tolist() == dense.rank(X.toarray()[:10]).tolist()
