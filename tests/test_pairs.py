"""Pairs against plain loops, and every complaint about bad input."""

from __future__ import annotations

import copy
import math
import pickle
from functools import partial
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

from preflearn.ground import OnItems
from preflearn.pairs import Incidence, Pairs, as_pairs
from preflearn.pursuit import RankRLS
from preflearn.svm import SVMRank

ITEMS = [[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]


@st.composite
def comparisons(draw, max_items=7, max_pairs=12):
    """Random pairs of random items (small integers, so that sums are exact) with labels."""
    n, p = draw(st.integers(2, max_items)), draw(st.integers(1, 3))
    entries = np.frombuffer(draw(st.binary(min_size=n * p, max_size=n * p)), dtype=np.uint8)
    items = entries.reshape(n, p) % 19 - 9.0
    rows = draw(st.lists(st.integers(0, 3 * n * (n - 1) - 1), min_size=1, max_size=max_pairs))
    label, first, step = np.unravel_index(rows, (3, n, n - 1))
    return Pairs(items, np.column_stack([first, (first + 1 + step) % n])), label - 1


SCORED = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=12)


def same(left, right):
    """Whether two Pairs hold the same index over the same items."""
    return left.index.tolist() == right.index.tolist() and left.items.tolist() == right.items.tolist()


# ---- The graph


@given(comparisons())
def test_the_graph(data):
    pairs, _ = data
    n, B = len(pairs.items), pairs.incidence()
    assert B.shape == (len(pairs), n)
    by_hand = [pairs.items[i] - pairs.items[j] for i, j in pairs.index.tolist()]
    for differences in (pairs.differences(), B @ pairs.items, pairs.first - pairs.second):
        np.testing.assert_array_equal(differences, by_hand)
    adjacency = np.zeros((n, n))
    np.add.at(adjacency, tuple(pairs.index.T), 1)
    adjacency += adjacency.T
    np.testing.assert_array_equal((B.T @ B).toarray(), np.diag(adjacency.sum(axis=1)) - adjacency)
    assert sorted(np.unique(B.toarray(), axis=None)) in ([-1, 1], [-1, 0, 1])
    swapped = pairs.swapped()
    np.testing.assert_array_equal(swapped.incidence().toarray(), -B.toarray())
    for other in (swapped.swapped(), pickle.loads(pickle.dumps(pairs)), copy.deepcopy(pairs)):
        assert same(other, pairs)


@given(comparisons())
def test_flipped_is_the_binary_problem_of_eq_8(data):
    pairs, y = data
    forward = [(i, j) for (i, j), label in zip(pairs.index.tolist(), y, strict=True) if label == 1]
    backward = [(j, i) for (i, j), label in zip(pairs.index.tolist(), y, strict=True) if label == -1]
    ties = [(i, j) for (i, j), label in zip(pairs.index.tolist(), y, strict=True) if label == 0]
    flipped, labels = pairs.flipped(y)
    assert len(flipped) == len(labels) == len(forward) + len(backward) + 2 * len(ties)
    expected = forward + backward + ties + [(j, i) for i, j in ties]
    assert [tuple(edge) for edge in flipped.index.tolist()] == expected
    assert labels.tolist() == [1] * (len(forward) + len(backward)) + [-1] * (2 * len(ties))
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
    np.testing.assert_array_equal(np.asarray(Pairs.from_arrays(pairs.first, pairs.second)), array)
    assert np.asarray(pairs, dtype=np.float32).dtype == np.float32
    assert as_pairs(pairs) is pairs


def test_a_dense_array_is_always_a_copy():
    pairs = Pairs(ITEMS, [[0, 1]])
    np.asarray(pairs)[0, 0, 0] = 99
    assert pairs.items[0, 0] == 1.0
    with pytest.raises(ValueError, match="can only be made by copying"):
        np.array(pairs, copy=False)


def test_from_arrays_keeps_rows_together():
    pairs = Pairs.from_arrays([[1, 2], [3, 4]], [[5, 6], [7, 8]])
    assert pairs.index.tolist() == [[0, 2], [1, 3]]
    assert pairs.differences().tolist() == [[-4, -4], [-4, -4]]
    assert repr(pairs) == "Pairs(2 pairs of 4 items, 2 features)"


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
        assert chosen.items is pairs.items  # the graph keeps all its vertices
    one = more.draw(st.integers(-m, m - 1))
    assert pairs[one].index.tolist() == [pairs.index[one].tolist()]
    assert same(pairs[ids, ...], pairs[ids])


def test_selection_out_of_range_or_along_other_axes_fails():
    pairs = Pairs(ITEMS, [[0, 1], [1, 2]])
    with pytest.raises(IndexError, match="out of bounds"):
        pairs[[0, 2]]
    with pytest.raises(IndexError, match="boolean index did not match"):
        pairs[[True, False, True]]
    assert [edge.index.tolist() for edge in pairs] == [[[0, 1]], [[1, 2]]]


# ---- From scores and rankings


def brute_pairs(scores, qid, ties):
    """Every i < j of one query with the sign of the difference of scores, by queries and by rows."""
    found = {}
    for query in sorted(set(qid.tolist())):
        for i, j in combinations(np.flatnonzero(qid == query).tolist(), 2):
            if ties == "keep" or scores[i] != scores[j]:
                found[i, j] = int(scores[i] > scores[j]) - int(scores[i] < scores[j])
    return found


@given(SCORED, st.sampled_from(["drop", "keep"]), st.sampled_from(["ids", "names", "one query"]))
def test_from_scores_pairs_all_items_of_a_query(rows, ties, kind):
    scores, qid = (np.array(column) for column in zip(*rows, strict=True))
    X, ids = np.arange(2.0 * len(rows)).reshape(-1, 2), qid
    if kind == "names":
        ids = np.array(["query a", "query b", "query c"])[qid]
    elif kind == "one query":
        qid, ids = 0 * qid, None
    expected = brute_pairs(scores, qid, ties)
    if not expected:
        with pytest.raises(ValueError, match=f"no pair is left of {len(rows)} items"):
            Pairs.from_scores(X, scores, ids, ties=ties)
        return
    pairs, y = Pairs.from_scores(X, scores, ids, ties=ties)
    assert list(zip(map(tuple, pairs.index.tolist()), y.tolist(), strict=True)) == list(expected.items())
    np.testing.assert_array_equal(pairs.items, X)


@given(SCORED)
def test_from_rankings_is_from_scores_with_rank_one_best(rows):
    rank, qid = (np.array(column) for column in zip(*rows, strict=True))
    X = np.zeros((len(rows), 1))
    if not brute_pairs(-rank, qid, "drop"):
        with pytest.raises(ValueError, match="two items of one query with different"):
            Pairs.from_rankings(X, rank, qid)
        return
    (pairs, y), (expected, labels) = Pairs.from_rankings(X, rank, qid), Pairs.from_scores(X, -rank, qid)
    assert same(pairs, expected)
    assert y.tolist() == labels.tolist()


def test_scores_of_any_size_are_compared():
    _, y = Pairs.from_scores(np.zeros((3, 1)), [1.7e308, -1.7e308, 5e-324], ties="keep")
    assert y.tolist() == [1, 1, -1]


# ---- Bad input


def by(call, *cases):
    return [(partial(call, *values), message) for *values, message in cases]


BAD = [
    *by(
        lambda items: Pairs(items, [[0, 1]]),
        ([[1.0, math.nan], [math.inf, 2.0]], r"items\[0, 1\] is nan; expected finite numbers \(1 more are"),
        ([1.0, 2.0], r"items has shape \(2,\); expected \(n, p\)"),
        (np.zeros((0, 3)), r"items is empty \(shape \(0, 3\)\); expected at least one value"),
        ([["a"], ["b"]], r"items\[0, 0\] is 'a'; expected a number"),
        ("a", "items is 'a'; expected an array of numbers"),
        (sparse.csr_array([[np.nan, 0.0]]), r"items.data\[0\] is nan; expected finite numbers"),
        (sparse.csr_array([[1j, 0.0]]), "items.data has dtype complex128; expected real numbers"),
        (sparse.csr_array((2, 0)), r"items is empty \(shape \(2, 0\)\)"),
        (sparse.coo_array([1.0, 2.0]), r"items has shape \(2,\); expected \(n, p\)"),
    ),
    *by(
        lambda index: Pairs(ITEMS, index),
        ([[0, 3]], r"index\[0, 1\] is 3; expected a row number of items, from 0 to 2"),
        ([[0, 1], [-1, 2]], r"index\[1, 0\] is -1; expected a row number of items, from 0 to 2"),
        ([[0, 1], [2, 2]], r"index\[1\] is \[2, 2\]; expected two different items"),
        (np.zeros((0, 2), dtype=int), r"there are no pairs \(index has shape \(0, 2\)\)"),
        ([], r"index has shape \(0,\); expected \(m, 2\)"),
        ([[0.0, 1.0]], "index has dtype float64; expected integers"),
    ),
    *by(
        Pairs.from_arrays,
        ([[1.0]], [[1.0], [2.0]], r"second has shape \(2, 1\); expected \(1, 1\): the same as of first"),
        ([[1.0]], [[math.nan]], r"second\[0, 0\] is nan"),
    ),
    *by(
        as_pairs,
        (np.zeros((3, 3, 2)), r"pairs has shape \(3, 3, 2\); expected \(m, 2, p\): first and second item of"),
        (Pairs(ITEMS, [[0, 1]])[[]], "there are no pairs; expected at least one"),
    ),
    *by(
        Pairs(ITEMS, [[0, 1], [1, 2]]).flipped,
        ([1, 2], r"y\[1\] is 2; expected one of \[-1, 0, 1\] \(\+1 first better, -1 second better"),
        ([1], r"y has shape \(1,\); expected \(2,\): one label a pair"),
        ([[1, 0]], r"y has shape \(1, 2\); expected \(2,\): one label a pair"),
    ),
    *by(
        lambda qid: Pairs.from_scores([[1.0], [2.0]], [1, 2], qid),
        ([1], r"qid has shape \(1,\); expected \(2,\): one query id an item"),
        ([1, math.nan], r"qid\[1\] is nan; expected a query id for each item"),
        (["a", None], r"qid\[1\] is None; expected a query id for each item"),
    ),
    *by(
        lambda values: Pairs.from_scores([[1.0], [2.0]], values),
        ([1, math.nan], r"\[1\] is nan; expected finite numbers"),
        ([1], r" has shape \(1,\); expected \(2,\): one value an item"),
        ([3, 3], r"no pair is left of 2 items: .* with different scores"),
    ),
    (lambda: Pairs.from_rankings([[1.0], [2.0]], [1, math.nan]), r"rank\[1\] is nan; expected finite"),
    (lambda: Pairs.from_rankings([[1.0], [2.0]], [1, 2], ["a", "b"]), "no pair is left of 2 items"),
    (lambda: Pairs.from_scores([[1.0]], [3], ties="keep"), "1 items: expected two items of one query$"),
    (lambda: Pairs.from_scores([[1.0]] * 2, [1, 2], ties="half"), "'half'; expected 'drop' or 'keep'"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@given(comparisons(), st.integers(0, 2**31))
def test_the_operator_is_the_matrix(data, seed):
    pairs, _ = data
    rng = np.random.default_rng(seed)
    m, n = len(pairs), len(pairs.items)
    dense, B = pairs.incidence().toarray(), pairs.B
    f, v, weights = rng.standard_normal(n), rng.standard_normal(m), rng.random(m)
    F, V = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    for ours, theirs in [
        (B.differences(f), dense @ f),
        (B.differences(F), dense @ F),
        (B.adjoint(v), dense.T @ v),
        (B.adjoint(V), dense.T @ V),
        (B.laplacian(weights).toarray(), dense.T @ np.diag(weights) @ dense),
    ]:
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    K = F @ F.T
    gram, whole = B.gram(K), dense @ K @ dense.T
    np.testing.assert_allclose(gram.diagonal(), np.diag(whole), atol=1e-12)
    for shape in ((4, 2), (1, m), (m, 1), (3, 3), (0, 2), (2, 0)):
        rows, columns = (rng.integers(0, m, k) for k in shape)
        np.testing.assert_allclose(gram.block(rows, columns), whole[np.ix_(rows, columns)], atol=1e-12)
    for x in (v, V):
        np.testing.assert_allclose(gram.times(x), whole @ x, atol=1e-11)
    ids, small = B.compacted()
    np.testing.assert_array_equal(small.matrix().toarray(), dense[:, ids])
    assert set(ids) == set(pairs.index.ravel())


@pytest.mark.parametrize(("m", "n"), [(1, 2), (3, 5), (3, 10_000), (40_000, 200), (40_000, 10_000)])
def test_items_that_occur_are_found_among_few_and_many(m, n):
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
    f = rng.standard_normal((n, 2))  # more pairs than are subtracted at once
    np.testing.assert_array_equal(B.differences(f), [f[i] - f[j] for i, j in index.tolist()])
    np.testing.assert_array_equal(small.differences(f[ids]), B.differences(f))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, bool, np.float32, np.float64])
def test_the_operator_counts_in_floats(dtype):
    """Differences of small unsigned integers wrap, and of bool they do not exist."""
    B = Pairs(ITEMS, [[0, 1], [1, 2], [0, 2]]).B
    f, weights = np.array([0, 1, 1], dtype=dtype), np.array([1, 0, 1], dtype=dtype)
    assert B.differences(f).tolist() == [-1, 0, -1]
    assert B.differences(f[:, None]).tolist() == [[-1], [0], [-1]]
    assert B.adjoint(weights).tolist() == [2, -1, -1]
    assert B.adjoint(weights[:, None]).tolist() == [[2], [-1], [-1]]
    assert B.laplacian(weights).toarray().tolist() == [[2, -1, -1], [-1, 1, 0], [-1, 0, 1]]
    results = B.differences(f), B.adjoint(weights), B.laplacian(weights)
    assert {result.dtype for result in results} == {np.dtype(np.float64)}
    assert f.tolist() == [0, 1, 1]


# ---- Sparse items


def test_sparse_items_are_the_same_pairs():
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((9, 14)) < 0.3, rng.normal(size=(9, 14)), 0.0)
    scores, qid = rng.integers(0, 4, 9), np.arange(9) // 3
    for form in (sparse.csr_matrix, sparse.coo_array, sparse.csc_array):
        given = form(dense)
        kept, y = Pairs.from_scores(given, scores, qid, ties="keep")
        same, y_same = Pairs.from_scores(dense, scores, qid, ties="keep")
        assert isinstance(kept.items, sparse.csr_array)
        assert kept.shape == same.shape
        assert repr(kept) == repr(same)
        np.testing.assert_array_equal(y, y_same)
        for part in (slice(None), y == 0, [0, 2]):
            np.testing.assert_array_equal(np.asarray(kept[part]), np.asarray(same[part]))
            np.testing.assert_array_equal(kept[part].differences().toarray(), same[part].differences())
        halves = Pairs.from_arrays(form(dense[:4]), dense[4:8])
        np.testing.assert_array_equal(halves, Pairs.from_arrays(dense[:4], dense[4:8]))
        np.testing.assert_array_equal(as_pairs(kept).items, dense)
        assert as_pairs(kept, keep=True) is kept


def test_sparse_items_with_repeated_entries_are_added_up_and_not_changed():
    given = sparse.csr_array((np.array([1, 2, 4]), [1, 0, 1], [0, 3, 3]), shape=(2, 2))
    assert Pairs(given, [[0, 1]]).differences().toarray().tolist() == [[2.0, 5.0]]
    assert given.data.tolist() == [1, 2, 4]


def test_items_that_no_array_should_hold_are_refused_with_an_advice_that_helps():
    rng = np.random.default_rng(0)
    wide = sparse.random_array((200, 700_000), density=1e-5, format="csr", rng=rng)
    scores = rng.random(200)
    pairs, y = Pairs.from_scores(wide, scores, np.arange(200) // 4)
    with pytest.raises(ValueError, match=r"sparse items is \(200, 700000\); expected at most 134,217,728"):
        SVMRank(kernel="rbf").fit(pairs, y)
    assert len(SVMRank(kernel="linear").fit(pairs, y).coef_) == 700_000
    assert len(RankRLS(kernel="linear").fit(wide, scores).coef_) == 200
    fewer = pairs.with_items(TruncatedSVD(2, n_iter=1).fit_transform(wide))
    assert SVMRank(kernel="rbf").fit(fewer, y).predict(fewer).shape == y.shape


# ---- Slices know of each other


def test_slices_and_other_features_of_the_same_items_have_one_origin():
    pairs = Pairs(ITEMS, [[0, 1], [1, 2], [2, 0]])
    others = [pairs[:2], pairs[[True, False, True]], pairs.swapped(), pairs.flipped([1, 0, -1])[0]]
    assert all(other.origin is pairs.origin for other in [*others, pairs.with_items(np.eye(3))])
    assert Pairs(ITEMS, pairs.index).origin is not pairs.origin
    with pytest.raises(ValueError, match=r"items has shape \(2, 3\); expected \(3, p\): one row an item"):
        pairs.with_items(np.ones((2, 3)))


def test_steps_of_scikit_learn_name_the_one_that_takes_pairs():
    """The old message was "Found array with dim 3"."""
    pairs, y = Pairs.from_scores(100 * np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]]), [1, 2, 3])
    for model in (make_pipeline(StandardScaler(), SVMRank()), LogisticRegression()):
        with pytest.raises(ValueError, match=r"write OnItems\(StandardScaler\(\)\), of preflearn.ground"):
            model.fit(pairs, y)
    assert make_pipeline(OnItems(StandardScaler()), SVMRank()).fit(pairs, y).score(pairs, y) == 1
    assert np.asarray(pairs, dtype=float).shape == check_array(pairs, allow_nd=True).shape == (3, 2, 2)
