"""RankSVM from scored items: the problem it solves, its coefficients of items, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from preflearn.metrics import disagreement_error
from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path
from preflearn.pursuit import RankSVM


def items(seed, n=12, levels=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.append(rng.integers(0, levels, n - 2), [0, 1]).astype(float), rng.integers(0, 2, n)


def certificate(machine, X, C):
    """Objective and dual objective of eq. 6, times C / lambda, from what the machine says and its weights."""
    gaps = machine.rank_function(X)[machine.pairs_] @ [1, -1]
    norm = machine.coef_ @ machine.rank_function(X[machine.basis_])  # |f|²
    primal = C * np.maximum(0, 1 - gaps).sum() + norm / 2
    return primal, C * machine.alpha_.sum() - norm / 2


@given(
    st.integers(0, 10**6), st.sampled_from([0.01, 0.3, 1.0, 20.0]), st.sampled_from(["rbf", "linear", "poly"])
)
def test_it_solves_eq_6(seed, C, kernel):
    X, y, qid = items(seed)
    if len({(q, s) for q, s in zip(qid, y, strict=True)}) == len(set(qid)):
        qid[:] = 0
    machine = RankSVM(C=C, kernel=kernel).fit(X, y, qid)
    better, worse = machine.pairs_.T
    assert (y[better] > y[worse]).all()
    assert (qid[better] == qid[worse]).all()
    assert len(better) == len(Pairs.from_scores(X, y, qid)[0])
    primal, dual = certificate(machine, X, C)
    assert primal == pytest.approx(dual, rel=1e-7)
    assert machine.lam_ == 1 / C
    assert ((machine.alpha_ >= 0) & (machine.alpha_ <= 1)).all()
    np.testing.assert_array_equal(machine.support_, np.flatnonzero(machine.alpha_))


def test_coefficients_of_items_are_those_of_pairs():
    X, y, _ = items(3)
    machine = RankSVM(C=2.0, gamma=0.4).fit(X, y)
    gains = Pairs(X, machine.pairs_).incidence().T @ machine.alpha_ * 2.0
    np.testing.assert_allclose(machine.coef_, gains[machine.basis_], rtol=1e-12)
    np.testing.assert_allclose(np.delete(gains, machine.basis_), 0, atol=1e-12)
    assert len(machine.basis_) < len(X)
    new = np.random.default_rng(0).normal(size=(5, 2))
    pairs, labels = Pairs.from_scores(X, y)
    path = ranksvm_path(pairs, labels, gamma=0.4)
    differences = [f - f[0] for f in (machine.rank_function(new), path.decision_function(0.5, new))]
    np.testing.assert_allclose(*differences, atol=1e-9)


def test_the_path_is_searched_by_validation():
    X, y, qid = items(5, 30, 9)
    held = items(6, 25, 9)
    machine = RankSVM(C="path", gamma=0.7).fit(X, y, qid, validation=held)
    pairs, labels = Pairs.from_scores(X, y, qid)
    chosen = ranksvm_path(pairs, labels, gamma=0.7).select(*Pairs.from_scores(*held))
    assert machine.lam_ == chosen.lam
    assert 1 - machine.score(*held) == pytest.approx(chosen.loss)
    again = RankSVM(C=1 / machine.lam_, gamma=0.7).fit(X, y, qid)
    np.testing.assert_allclose(again.alpha_, machine.alpha_, atol=1e-9)
    for C in np.geomspace(1e-3, 1e3, 30):
        other = RankSVM(C=C, gamma=0.7).fit(X, y, qid)
        assert other.score(*held) <= machine.score(*held) + 1e-12


def test_above_the_first_breakpoint_all_pairs_have_weight_1():
    X, y, _ = items(1)
    machine = RankSVM(C=1e-9).fit(X, y)
    assert (machine.alpha_ == 1).all()
    assert machine.path_.breakpoints[0] < machine.lam_


def test_a_graph_says_what_is_compared():
    X, y, qid = items(8, 10)
    W = (qid[:, None] == qid).astype(float)
    by_query = RankSVM(gamma=0.5).fit(X, y, qid)
    for graph in (W, sparse.csr_array(W)):
        by_graph = RankSVM(gamma=0.5).fit(X, y, graph=graph)
        assert set(map(tuple, by_graph.pairs_.tolist())) == set(map(tuple, by_query.pairs_.tolist()))
        np.testing.assert_allclose(by_graph.rank_function(X), by_query.rank_function(X), atol=1e-9)


def test_a_gram_matrix_and_a_callable_are_kernels_too():
    X, y, _ = items(2)
    new = np.random.default_rng(1).normal(size=(4, 2))

    def k(A, B):
        return np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(axis=2))

    expected = RankSVM(gamma=0.5).fit(X, y).rank_function(new)
    np.testing.assert_allclose(RankSVM(kernel=k).fit(X, y).rank_function(new), expected, atol=1e-9)
    machine = RankSVM(kernel="precomputed").fit(k(X, X), y)
    np.testing.assert_allclose(machine.rank_function(k(new, X)), expected, atol=1e-9)


def test_the_width_is_that_of_all_items():
    """Also of those without a pair, and of equal ones as often as they occur, as in the other learners."""
    X, y, _ = items(4)
    X, y = np.vstack([X, X[:3], [[50.0, 50.0]]]), np.append(y, [*y[:3], 0.0])
    qid = np.append(np.zeros(len(X) - 1), 1)
    scale = 1 / (X.shape[1] * X.var(axis=0).mean())
    one, other = (RankSVM(gamma=gamma).fit(X, y, qid) for gamma in ("scale", scale))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-12)


def test_it_is_an_estimator():
    X, y, _ = items(7)
    machine = RankSVM(C=3.0, gamma=0.2)
    assert clone(machine).get_params() == machine.get_params()
    machine.fit(X, y)
    new, scores, _ = items(17)  # f ties training items but for rounding
    assert machine.score(new, scores) == 1 - disagreement_error(
        scores, machine.rank_function(new), ties="drop"
    )
    pairs = Pairs(X, [[0, 1], [1, 0], [2, 3]])
    differences = machine.decision_function(pairs)
    np.testing.assert_allclose(differences, pairs.B.differences(machine.rank_function(X)), atol=1e-12)
    np.testing.assert_array_equal(machine.predict(pairs), np.sign(differences))


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({"C": 0.0}, {}, "C is 0.0; expected a positive number"),
        ({"C": "best"}, {}, "C is 'best'"),
        ({"C": np.array([1.0, 2.0])}, {}, "C is array.*; expected a positive number"),
        ({"C": "path"}, {}, "validation is missing with C='path'"),
        ({}, {"validation": ([[0.0]], [1.0])}, "no pair is left of 1 items"),
        ({}, {"validation": ([[0.0], [1.0]], [1.0, 2.0])}, "validation is given with C=1.0"),
        ({"C": "path"}, {"validation": ([[0.0, 1.0]], [1.0])}, "the X of validation has shape"),
        ({"kernel": "nothing"}, {}, "kernel is 'nothing'"),
        ({"gamma": -1}, {}, "gamma is -1"),
        ({}, {"y": [1.0, 1.0, 1.0]}, "no pair is left of 3 items"),
        ({}, {"y": [1.0, np.nan, 1.0]}, r"y\[1\] is nan"),
        ({}, {"qid": [0, 1, 2]}, "no pair is left of 3 items"),
        ({}, {"qid": [0, 0, 0], "graph": np.ones((3, 3))}, "both qid and graph are given"),
        ({}, {"graph": 2 * np.ones((3, 3))}, "of graph.* is 2.0; expected 1 on each edge"),
        ({}, {"graph": np.triu(np.ones((3, 3)))}, "of graph.* is 0.5; expected 1 on each edge"),
        ({}, {"graph": np.eye(3)}, "no pair is left of 3 items"),
        ({}, {"graph": np.ones((2, 2))}, r"graph has shape \(2, 2\)"),
        ({"C": 1e99, "kernel": "linear"}, {"y": [2.0, 1.0, 3.0]}, "but rounding ends the path at lambda"),
        ({"kernel": "precomputed"}, {}, r"items of the pairs have shape \(3, 1\)"),
    ],
)
def test_bad_input_is_named(parameters, arguments, message):
    known = {"X": [[0.0], [1.0], [4.0]], "y": [1.0, 2.0, 3.0]}
    with pytest.raises(ValueError, match=message):
        RankSVM(**parameters).fit(**(known | arguments))
