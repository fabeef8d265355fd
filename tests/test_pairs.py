"""Pairs compared with plain loops, and every error for bad input."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from preflearn.core import OnItems
from preflearn.pairs import Incidence, Pairs, as_pairs, ranks_to_scores
from preflearn.pursuit import RankRLS
from preflearn.svm import SVMRank

ITEMS = [[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]


@st.composite
def comparisons(draw, max_items=7, max_pairs=12):
    """Return random labeled pairs of random items. Features are small integers, so that
    sums are exact."""
    n = draw(st.integers(2, max_items))
    p = draw(st.integers(1, 3))
    entries = np.frombuffer(
        draw(st.binary(min_size=n * p, max_size=n * p)), dtype=np.uint8
    )
    items = entries.reshape(n, p) % 19 - 9.0
    rows = draw(
        st.lists(st.integers(0, 3 * n * (n - 1) - 1), min_size=1, max_size=max_pairs)
    )
    label, first, step = np.unravel_index(rows, (3, n, n - 1))
    return Pairs(items, np.column_stack([first, (first + 1 + step) % n])), label - 1


SCORED = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=12
)


def same(left, right):
    """Return whether two Pairs have the same index and the same items."""
    return (
        left.index.tolist() == right.index.tolist()
        and left.items.tolist() == right.items.tolist()
    )


# ---- The graph


@given(comparisons())
def test_incidence_matrix_and_laplacian_match_their_definitions(data):
    pairs, _ = data
    n = len(pairs.items)
    B = pairs.incidence()
    assert B.shape == (len(pairs), n)
    by_hand = [pairs.items[i] - pairs.items[j] for i, j in pairs.index.tolist()]
    for differences in (
        pairs.differences(),
        B @ pairs.items,
        pairs.first - pairs.second,
    ):
        np.testing.assert_array_equal(differences, by_hand)
    adjacency = np.zeros((n, n))
    np.add.at(adjacency, tuple(pairs.index.T), 1)
    adjacency += adjacency.T
    np.testing.assert_array_equal(
        (B.T @ B).toarray(), np.diag(adjacency.sum(axis=1)) - adjacency
    )
    assert sorted(np.unique(B.toarray(), axis=None)) in ([-1, 1], [-1, 0, 1])
    swapped = pairs.swapped()
    np.testing.assert_array_equal(swapped.incidence().toarray(), -B.toarray())
    for other in (
        swapped.swapped(),
        pickle.loads(pickle.dumps(pairs)),
        copy.deepcopy(pairs),
    ):
        assert same(other, pairs)


@given(comparisons())
def test_flipped_is_the_binary_problem_of_eq_8(data):
    pairs, y = data
    forward, backward, ties = (
        [tuple(edge) for edge in pairs.index[y == label].tolist()]
        for label in (1, -1, 0)
    )
    flipped, labels = pairs.flipped(y)
    expected = forward + [(j, i) for i, j in backward] + ties
    expected += [(j, i) for i, j in ties]
    assert [tuple(edge) for edge in flipped.index.tolist()] == expected
    assert labels.tolist() == [1] * int((y != 0).sum()) + [-1] * 2 * len(ties)
    np.testing.assert_array_equal(flipped.items, pairs.items)


# ---- As an array


@given(comparisons())
def test_pairs_are_an_array_of_first_and_second_items(data):
    pairs, _ = data
    array = np.asarray(pairs)
    assert array.shape == pairs.shape == (len(pairs), 2, pairs.items.shape[1])
    np.testing.assert_array_equal(array[:, 0], pairs.first)
    np.testing.assert_array_equal(array[:, 1], pairs.second)
    np.testing.assert_array_equal(np.asarray(as_pairs(array)), array)
    np.testing.assert_array_equal(
        np.asarray(Pairs.from_arrays(pairs.first, pairs.second)), array
    )
    assert np.asarray(pairs, dtype=np.float32).dtype == np.float32
    assert as_pairs(pairs) is pairs


def test_an_array_of_pairs_is_a_copy():
    pairs = Pairs(ITEMS, [[0, 1]])
    np.asarray(pairs)[0, 0, 0] = 99
    assert pairs.items[0, 0] == 1.0
    with pytest.raises(ValueError, match="copy"):
        np.array(pairs, copy=False)


@given(comparisons(), st.data())
def test_selection_along_the_first_axis(data, more):
    pairs, _ = data
    m = len(pairs)
    ids = more.draw(st.lists(st.integers(-m, m - 1), max_size=5))
    mask = np.array(more.draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    ends = st.none() | st.integers(-m - 1, m + 1)
    step = more.draw(st.sampled_from([None, 1, 2, -1, -2]))
    part = slice(more.draw(ends), more.draw(ends), step)
    for key in (ids, np.array(ids, dtype=int), mask, mask.tolist(), part, np.s_[:]):
        chosen = pairs[key]
        expected = np.asarray(pairs)[np.array(ids, dtype=int) if key is ids else key]
        assert len(chosen) == len(expected)
        np.testing.assert_array_equal(np.asarray(chosen), expected)
        assert chosen.items is pairs.items  # the graph keeps all its items
    one = more.draw(st.integers(-m, m - 1))
    assert pairs[one].index.tolist() == [pairs.index[one].tolist()]
    assert same(pairs[ids, ...], pairs[ids])


# ---- From scores and rankings


def brute_pairs(scores, qid, ties):
    """Return every i < j of one query with the sign of the score difference, by queries
    and by rows."""
    found = {}
    for query in sorted(set(qid.tolist())):
        for i, j in combinations(np.flatnonzero(qid == query).tolist(), 2):
            if ties == "keep" or scores[i] != scores[j]:
                found[i, j] = int(scores[i] > scores[j]) - int(scores[i] < scores[j])
    return found


@given(
    SCORED,
    st.sampled_from(["drop", "keep"]),
    st.sampled_from(["ids", "names", "one query"]),
)
def test_from_scores_pairs_all_items_of_a_query(rows, ties, kind):
    scores, qid = (np.array(column) for column in zip(*rows, strict=True))
    X = np.arange(2.0 * len(rows)).reshape(-1, 2)
    ids = qid
    if kind == "names":
        ids = np.array(["query a", "query b", "query c"])[qid]
    elif kind == "one query":
        qid = 0 * qid
        ids = None
    expected = brute_pairs(scores, qid, ties)
    if not expected:
        with pytest.raises(ValueError, match="query"):
            Pairs.from_scores(X, scores, ids, ties=ties)
        return
    pairs, y = Pairs.from_scores(X, scores, ids, ties=ties)
    assert list(zip(map(tuple, pairs.index.tolist()), y.tolist(), strict=True)) == list(
        expected.items()
    )
    np.testing.assert_array_equal(pairs.items, X)


@given(SCORED)
def test_from_rankings_is_from_scores_with_rank_one_best(rows):
    rank, qid = (np.array(column) for column in zip(*rows, strict=True))
    X = np.zeros((len(rows), 1))
    if not brute_pairs(-rank, qid, "drop"):
        with pytest.raises(ValueError, match="query"):
            Pairs.from_rankings(X, rank, qid)
        return
    (pairs, y), (expected, labels) = (
        Pairs.from_rankings(X, rank, qid),
        Pairs.from_scores(X, -rank, qid),
    )
    assert same(pairs, expected)
    assert y.tolist() == labels.tolist()


@given(SCORED)
def test_ranks_become_scores_in_the_reversed_order(rows):
    rank, qid = (np.array(column) for column in zip(*rows, strict=True))
    scores = ranks_to_scores(rank, qid)
    assert scores.shape == rank.shape
    np.testing.assert_array_equal(
        np.sign(np.subtract.outer(scores, scores)),
        -np.sign(np.subtract.outer(rank, rank)),  # equal ranks become equal scores
    )
    np.testing.assert_array_equal(ranks_to_scores(rank), scores)


@pytest.mark.parametrize(
    ("rank", "qid", "words"),
    [
        ([1, np.nan], None, r"rank\[1\]"),
        ([1, 2], [0], "^qid "),
        ([[1]], None, "^rank "),
    ],
)
def test_ranks_that_are_no_ranks_are_named(rank, qid, words):
    with pytest.raises(ValueError, match=words):
        ranks_to_scores(rank, qid)


def test_scores_of_any_size_are_compared():
    _, y = Pairs.from_scores(np.zeros((3, 1)), [1.7e308, -1.7e308, 5e-324], ties="keep")
    assert y.tolist() == [1, 1, -1]


# ---- Bad input

TWO = Pairs(ITEMS, [[0, 1], [1, 2]])


def of_items(items):
    return Pairs(items, [[0, 1]])


def of_index(index):
    return Pairs(ITEMS, index)


def of_second(second):
    return Pairs.from_arrays([[1.0]], second)


def of_scores(scores):
    return Pairs.from_scores([[1.0], [2.0]], scores)


def of_qid(qid):
    return Pairs.from_scores([[1.0], [2.0]], [1, 2], qid)


def of_rank(rank):
    return Pairs.from_rankings([[1.0], [2.0]], rank)


BAD = {
    ("items", of_items): [
        *([[1.0, math.nan], [2.0, 3.0]], [1.0, 2.0], np.zeros((0, 3)), [["a"], ["b"]]),
        *(sparse.csr_array([[math.nan, 0.0]]), sparse.csr_array([[1j, 0.0]])),
        *(sparse.csr_array((2, 0)), sparse.coo_array([1.0, 2.0])),
    ],
    ("index", of_index): [
        *([[0, 3]], [[0, 1], [-1, 2]], [[0, 1], [2, 2]], np.zeros((0, 2), dtype=int)),
        *([], [[0.0, 1.0]], [[0, 10**400]]),
    ],
    ("second", of_second): [[[1.0], [2.0]], [[math.nan]]],
    ("pairs", as_pairs): [
        np.zeros((3, 3, 2)),
        TWO[[]],
        np.ma.masked_equal(np.ones((1, 2, 1)), 1),
    ],
    ("y", TWO.flipped): [[1, 2], [1]],
    ("items", TWO.with_items): [np.ones((2, 3))],
    ("scores", of_scores): [[1, math.nan], [1], [3, 3]],
    ("rank", of_rank): [[1, math.nan]],
    ("qid", of_qid): [[1]],
    ("query", of_qid): [["a", "b"]],
}


@pytest.mark.parametrize(
    ("name", "call", "wrong"),
    [(name, call, wrong) for (name, call), values in BAD.items() for wrong in values],
)
def test_bad_arguments_are_rejected_and_named(name, call, wrong):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        call(wrong)


# ---- The incidence matrix as an operator


@given(comparisons(), st.integers(0, 2**31))
def test_the_operator_is_the_matrix(data, seed):
    pairs, _ = data
    rng = np.random.default_rng(seed)
    m = len(pairs)
    n = len(pairs.items)
    dense = pairs.incidence().toarray()
    B = pairs.B
    f = rng.standard_normal(n)
    v = rng.standard_normal(m)
    weights = rng.random(m)
    F = rng.standard_normal((n, 3))
    V = rng.standard_normal((m, 3))
    for ours, theirs in [
        (B.differences(f), dense @ f),
        (B.differences(F), dense @ F),
        (B.adjoint(v), dense.T @ v),
        (B.adjoint(V), dense.T @ V),
        (B.laplacian(weights).toarray(), dense.T @ np.diag(weights) @ dense),
    ]:
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    K = F @ F.T
    gram = B.gram(K)
    whole = dense @ K @ dense.T
    np.testing.assert_allclose(gram.diagonal(), np.diag(whole), atol=1e-12)
    for shape in ((4, 2), (1, m), (m, 1), (3, 3), (0, 2), (2, 0)):
        rows, columns = (rng.integers(0, m, k) for k in shape)
        np.testing.assert_allclose(
            gram.block(rows, columns), whole[np.ix_(rows, columns)], atol=1e-12
        )
    for x in (v, V):
        np.testing.assert_allclose(gram.times(x), whole @ x, atol=1e-11)
    ids, small = B.compacted()
    np.testing.assert_array_equal(small.matrix().toarray(), dense[:, ids])
    assert set(ids) == set(pairs.index.ravel())


@pytest.mark.parametrize(("m", "n"), [(3, 10_000), (40_000, 200), (40_000, 10_000)])
def test_occurring_items_and_blocks_of_differences(m, n):
    rng = np.random.default_rng(m + n)
    first = rng.integers(0, n - 1, m)
    index = np.column_stack([first, first + 1])
    B = Incidence(index, n)
    expected = sorted(set(index.ravel().tolist()))
    assert B.occurring().tolist() == expected
    ids, small = B.compacted()
    assert ids.tolist() == expected
    assert small.shape == (m, len(expected))
    np.testing.assert_array_equal(ids[small.index], index)
    f = rng.standard_normal((n, 2))  # more pairs than one block of differences
    np.testing.assert_array_equal(
        B.differences(f), [f[i] - f[j] for i, j in index.tolist()]
    )
    np.testing.assert_array_equal(small.differences(f[ids]), B.differences(f))


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.float32])
def test_the_operator_computes_in_float64(dtype):
    """Differences of small unsigned integers would overflow, and differences of
    booleans do not exist."""
    B = Pairs(ITEMS, [[0, 1], [1, 2], [0, 2]]).B
    f = np.array([0, 1, 1], dtype=dtype)
    weights = np.array([1, 0, 1], dtype=dtype)
    assert B.differences(f).tolist() == [-1, 0, -1]
    assert B.differences(f[:, None]).tolist() == [[-1], [0], [-1]]
    assert B.adjoint(weights).tolist() == [2, -1, -1]
    assert B.adjoint(weights[:, None]).tolist() == [[2], [-1], [-1]]
    assert B.laplacian(weights).toarray().tolist() == [
        [2, -1, -1],
        [-1, 1, 0],
        [-1, 0, 1],
    ]
    results = B.differences(f), B.adjoint(weights), B.laplacian(weights)
    assert {result.dtype for result in results} == {np.dtype(np.float64)}
    assert f.tolist() == [0, 1, 1]


# ---- Sparse items


def test_sparse_items_give_the_same_pairs_as_dense_ones():
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((9, 14)) < 0.3, rng.normal(size=(9, 14)), 0.0)
    scores = rng.integers(0, 4, 9)
    qid = np.arange(9) // 3
    for form in (sparse.csr_matrix, sparse.coo_array, sparse.csc_array):
        given = form(dense)
        kept, y = Pairs.from_scores(given, scores, qid, ties="keep")
        same, y_same = Pairs.from_scores(dense, scores, qid, ties="keep")
        assert isinstance(kept.items, sparse.csr_array)
        assert kept.shape == same.shape
        assert repr(kept) == repr(same)
        np.testing.assert_array_equal(y, y_same)
        for part in (slice(None), y == 0, [0, 2]):
            np.testing.assert_array_equal(
                np.asarray(kept[part]), np.asarray(same[part])
            )
            np.testing.assert_array_equal(
                kept[part].differences().toarray(), same[part].differences()
            )
        halves = Pairs.from_arrays(form(dense[:4]), dense[4:8])
        np.testing.assert_array_equal(halves, Pairs.from_arrays(dense[:4], dense[4:8]))
        np.testing.assert_array_equal(as_pairs(kept).items, dense)
        assert as_pairs(kept, keep=True) is kept


def test_sparse_items_with_repeated_entries_are_added_up_and_not_changed():
    given = sparse.csr_array((np.array([1, 2, 4]), [1, 0, 1], [0, 3, 3]), shape=(2, 2))
    assert Pairs(given, [[0, 1]]).differences().toarray().tolist() == [[2.0, 5.0]]
    assert given.data.tolist() == [1, 2, 4]


def test_sparse_items_too_large_for_a_dense_array_are_rejected_with_working_advice():
    rng = np.random.default_rng(0)
    wide = sparse.random_array((200, 700_000), density=1e-5, format="csr", rng=rng)
    scores = rng.random(200)
    pairs, y = Pairs.from_scores(wide, scores, np.arange(200) // 4)
    with pytest.raises(ValueError, match=r"items.*TruncatedSVD.*kernel='linear'"):
        SVMRank(kernel="rbf").fit(pairs, y)
    assert len(SVMRank(kernel="linear").fit(pairs, y).coef_) == 700_000
    assert len(RankRLS(kernel="linear").fit(wide, scores).coef_) == 200
    fewer = pairs.with_items(TruncatedSVD(2, n_iter=1).fit_transform(wide))
    assert SVMRank(kernel="rbf").fit(fewer, y).predict(fewer).shape == y.shape


# ---- Pairs in scikit-learn's tools


def test_steps_of_scikit_learn_reject_pairs_except_on_items():
    pairs, y = Pairs.from_scores(
        100 * np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]]), [1, 2, 3]
    )
    for model in (make_pipeline(StandardScaler(), SVMRank()), LogisticRegression()):
        with pytest.raises(ValueError, match="dim 3"):
            model.fit(pairs, y)
    assert (
        make_pipeline(OnItems(StandardScaler()), SVMRank())
        .fit(pairs, y)
        .score(pairs, y)
        == 1
    )
    assert (
        np.asarray(pairs, dtype=float).shape
        == check_array(pairs, allow_nd=True).shape
        == (3, 2, 2)
    )


def test_sorting_the_incidence_matrix_in_place_leaves_the_pairs_alone():
    pairs = Pairs(np.eye(3), [[2, 0], [1, 0]])
    B = pairs.incidence()
    B.sort_indices()
    assert B.indices.tolist() == [0, 2, 0, 1]
    assert pairs.index.tolist() == [[2, 0], [1, 0]]


@pytest.mark.parametrize(
    "scores",
    [
        [2**53, 2**53 + 1, 2**53],
        np.array([2**53, 2**53 + 1, 2**53]),
        [2**80, 2**80 + 1, 2**80],
        np.array([2**64 - 2, 2**64 - 1, 2**64 - 2], dtype=np.uint64),
    ],
)
def test_integers_that_floats_merge_keep_their_order(scores):
    pairs, y = Pairs.from_scores(np.eye(3), scores, ties="keep")
    assert pairs.index.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert y.tolist() == [-1, 0, 1]
