"""Counted pairs of scored items, compared with lists of the same pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples

from preflearn.pairs import Incidence, Pairs
from preflearn.solvers.smoothed_hinge import ListedPairs
from preflearn.svm import SVMRank, counted_threshold, near_margin
from preflearn.svm.base import clear_threshold
from preflearn.svm.counted_pairs import CountedPairs, Queries
from preflearn.svm.counted_threshold import threshold_pairs


def graded(seed, n, n_queries, n_grades):
    """Return scores f, grades y, and query ids of n items. Some scores are equal."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_grades, size=n).astype(float)
    f = rng.normal(size=n) + rng.choice([0.0, 0.5]) * y
    if seed % 2:
        f = np.round(4 * f) / 4
    return f, y, rng.integers(n_queries, size=n)


def listed(y, qid):
    """Return the pairs with different y, with the better item first."""
    pairs, labels = Pairs.from_scores(np.zeros((len(y), 1)), y, qid)
    return np.where((labels > 0)[:, None], pairs.index, pairs.index[:, ::-1])


SEEDS = st.integers(0, 10_000)


@examples(25)
@given(SEEDS, st.integers(20, 50), st.integers(1, 3), st.integers(3, 30))
def test_counts_are_those_of_a_list(seed, n, n_queries, n_grades):
    f, y, qid = graded(seed, n, n_queries, n_grades)
    queries, order = Queries.of(y, qid)
    place = np.argsort(order)
    index = listed(y, qid)
    assert queries.n_preferences() == len(index)
    counted = CountedPairs(queries, 0.3)
    reference = ListedPairs(Incidence(place[index], n), np.full(len(index), 0.3))
    f = f[order] + 1e-3 * np.random.default_rng(seed).normal(size=n)
    v = np.random.default_rng(seed + 1).normal(size=n)
    assert np.isclose(counted.loss(f), reference.loss(f))
    for width in (1.0, 0.1):
        ours = counted.smoothed(f, width)
        theirs = reference.smoothed(f, width)
        assert np.isclose(ours.value, theirs.value)
        assert np.allclose(ours.gradient, theirs.gradient)
        assert np.allclose(ours.curvature, theirs.curvature)
        assert np.allclose(ours.times(v), theirs.times(v))
        assert ours.near == theirs.near
        near = counted.split(f, width)
        same = reference.split(f, width)
        assert set(map(tuple, near.index)) == set(map(tuple, same.index))
        assert np.allclose(near.pull, same.pull)
        assert np.isclose(near.total, same.total)


@examples(25)
@given(SEEDS, st.integers(5, 50), st.integers(1, 3), st.integers(1, 30))
def test_threshold_is_that_of_all_pairs(seed, n, n_queries, n_grades):
    f, y, qid = graded(seed, n, n_queries, n_grades)
    queries, order = Queries.of(y, qid)
    pairs, labels = Pairs.from_scores(
        f[:, None], y, np.append(qid[:-1], qid[0]), "keep"
    )
    queries, order = Queries.of(y, np.append(qid[:-1], qid[0]))
    expected = clear_threshold(labels, pairs.B.differences(f))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted_threshold, "_MAX_LISTED", 20)
        few = threshold_pairs(queries, f[order], (1 - 1e-6, 1 + 1e-6))
    assert np.isclose(clear_threshold(*few), expected)


def scored_items(n=120, p=4, n_grades=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X @ rng.normal(size=p) + rng.normal(size=n)
    if n_grades is not None:
        y = np.floor(n_grades * (y - y.min()) / (np.ptp(y) + 1))
    return X, y


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("n_grades", [None, 4])
def test_fit_is_that_of_the_listed_pairs(monkeypatch, C, n_grades):
    X, y = scored_items(n_grades=n_grades)
    qid = np.arange(len(y)) % 3
    explicit = SVMRank(C=C, kernel="linear").fit(X, y, qid)
    monkeypatch.setattr(near_margin, "_MIN_PAIRS", 0)
    monkeypatch.setattr(near_margin, "_MIN_NEAR", 30)
    counted = SVMRank(C=C, kernel="linear").fit(X, y, qid)
    pairs, labels = Pairs.from_scores(X, y, qid, ties="keep")
    reduced = SVMRank(C=C, kernel="linear").fit(pairs, labels)
    for model in (counted, reduced):
        assert model.dual_gap_ < 1e-10
        assert np.isclose(model.objective_, explicit.objective_, rtol=1e-9)
        assert np.allclose(model.coef_, explicit.coef_, rtol=1e-4, atol=1e-6)
        assert np.isclose(model.tau_, explicit.tau_, rtol=1e-3, atol=1e-5)
        assert np.allclose(model.dual_coef_ @ pairs.differences(), model.coef_)
        assert np.abs(model.dual_coef_).max() <= C * (1 + 1e-12)
        assert np.array_equal(model.support_, np.flatnonzero(model.dual_coef_))
        assert (model.dual_coef_ * labels >= 0).all()


def test_objective_is_that_of_cvxpy(monkeypatch):
    cp = pytest.importorskip("cvxpy")
    X, y = scored_items(40, 3)
    index = listed(y, None)
    D = X[index[:, 0]] - X[index[:, 1]]
    w = cp.Variable(3)
    loss = cp.sum_squares(w) / 2 + 0.05 * cp.sum(cp.pos(1 - D @ w))
    best = cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL")
    monkeypatch.setattr(near_margin, "_MIN_PAIRS", 0)
    monkeypatch.setattr(near_margin, "_MIN_NEAR", 10)
    model = SVMRank(C=0.05, kernel="linear").fit(X, y)
    assert np.isclose(model.objective_, best, rtol=1e-7)


def test_duplicated_ties_weights_and_offset(monkeypatch):
    X, y = scored_items(n_grades=4)
    pairs, labels = Pairs.from_scores(X + 1e4, y, ties="keep")
    weights = np.random.default_rng(0).uniform(0, 2, len(labels))
    settings = {"C": 1e-2, "kernel": "linear", "ties": "duplicate"}
    explicit = SVMRank(**settings).fit(pairs, labels, sample_weight=weights)
    monkeypatch.setattr(near_margin, "_MIN_PAIRS", 0)
    monkeypatch.setattr(near_margin, "_MIN_NEAR", 30)
    reduced = SVMRank(**settings).fit(pairs, labels, sample_weight=weights)
    assert np.isclose(reduced.objective_, explicit.objective_, rtol=1e-9)
    assert np.allclose(reduced.coef_, explicit.coef_, rtol=1e-4, atol=1e-6)


def test_refit_forgets_the_dual_weights(monkeypatch):
    X, y = scored_items(40)
    monkeypatch.setattr(near_margin, "_MIN_PAIRS", 0)
    model = SVMRank(C=1e-3, kernel="linear")
    assert not hasattr(model, "dual_coef_")
    before = model.fit(X, y).dual_coef_
    after = model.fit(X, -y).dual_coef_
    assert np.allclose(before, -after)
