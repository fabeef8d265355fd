"""The pieces of the machines, each against its dense definition, and bad input to all of them."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels

from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import Pairs
from preflearn.svm import LogisticCompare, LPCompare, SVMCompare, SVMRank
from preflearn.svm.differences import FeatureGram, HingeMatrix
from preflearn.svm.hinges import Rows
from preflearn.svm.machine import preferences_first
from preflearn.svm.problem import KernelProblem


def compared(seed, m, n, p=3):
    rng = np.random.default_rng(seed)
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    y = rng.choice([-1, 0, 0, 0, 1], m)
    y[:2] = [1, 0]
    return Pairs(rng.standard_normal((n, p)), index), y


# ---- Operators of the incidence matrix


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(2, 30), st.integers(2, 20), st.integers(1, 12))
def test_differences_are_those_of_the_incidence_matrix(seed, m, n, r):
    """Of features, and of their Gram matrix: products, blocks, and the system of the interior point."""
    pairs, _ = compared(seed, m, n)
    rng = np.random.default_rng(seed)
    L, weights, v = rng.standard_normal((n, r)), rng.uniform(0.1, 2, m), rng.standard_normal(m)
    D = pairs.incidence().toarray() @ L
    some, others = rng.permutation(m)[: m // 2 + 1], rng.permutation(m)[: m // 3 + 1]
    of_features = FeatureGram(pairs.B, L)
    for gram in (of_features, pairs.B.gram(L @ L.T)):
        np.testing.assert_allclose(gram.diagonal(), (D**2).sum(axis=1), atol=1e-10)
        np.testing.assert_allclose(gram.times(v), D @ (D.T @ v), atol=1e-9)
        np.testing.assert_allclose(gram.block(some, others), D[some] @ D[others].T, atol=1e-10)
    np.testing.assert_allclose(of_features.weighted(weights), (D.T * weights) @ D, atol=1e-11)


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("n", [6, 60])
def test_rows_of_a_machine_are_the_flipped_pairs(n, biased):
    """Eq. 8 by `Pairs.flipped`, whose order is another; both copies of a tie share one difference."""
    pairs, y = compared(n, 25, n)
    order = preferences_first(y)
    cost = np.linspace(1, 2, 25)
    rows = Rows.of(y[order], cost, biased)
    flipped, labels = pairs.flipped(y)
    L = np.random.default_rng(0).standard_normal((n, 3))
    direction = rows.label * rows.sign
    dense = direction[:, None] * (pairs.B[order].differences(L))[rows.expanded(np.arange(25))]
    expected = flipped.incidence() @ L
    rank, other = np.lexsort(dense.T), np.lexsort(expected.T)
    np.testing.assert_allclose(dense[rank], expected[other])
    np.testing.assert_array_equal(rows.label[rank], labels[other] if biased else np.ones(len(labels)))
    np.testing.assert_array_equal(rows.cost[:25], cost)
    np.testing.assert_array_equal(rows.low, np.where(rows.label > 0, 0, -rows.cost))
    A = HingeMatrix(FeatureGram(pairs.B[order], L), rows)
    u, v = np.arange(1.0, 4.0), np.linspace(-1, 1, len(labels))
    weights = np.linspace(1, 2, len(labels))
    np.testing.assert_allclose(A.times(u), dense @ u)
    np.testing.assert_allclose(A.adjoint(v), dense.T @ v, atol=1e-12)
    np.testing.assert_allclose(A.gram(weights), (dense.T * weights) @ dense)
    pair = rows.expanded(np.arange(25))
    np.testing.assert_allclose(rows.summed(v), [v[pair == i].sum() for i in range(25)])
    np.testing.assert_allclose(rows.slopes(pairs.B[order].differences(L) @ u), rows.label * (1 - dense @ u))


# ---- Kernel problems


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_a_problem_keeps_the_differences_of_the_pairs(kernel):
    """Of items that occur, and with equal ones merged: B L L'B' is that of all items, and so is r."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (12, 3)).astype(float)
    index = np.array([(i, (i + 1 + k) % 7) for i in range(7) for k in range(2)])
    name = "rbf" if kernel == "precomputed" else kernel
    K = pairwise_kernels(X, metric=name, filter_params=True, gamma=0.7)
    pairs = Pairs(K if kernel == "precomputed" else X, index)
    problem = KernelProblem.of(SVMCompare(kernel=kernel, gamma=0.7), pairs)
    if kernel == "precomputed":
        assert problem.ids.tolist() == list(range(7))
    else:
        assert len(problem.ids) == len(np.unique(X[:7], axis=0)) < 7
        np.testing.assert_array_equal(problem.B.differences(problem.items), pairs.differences())
    every = np.arange(len(index))
    space, expected = problem.space(every), pairs.incidence() @ K @ pairs.incidence().T
    for gram in (space.gram, space.features()):
        np.testing.assert_allclose(gram.block(every, every), expected, atol=1e-12)
    dual = rng.standard_normal(len(index))
    scores = problem.expansion(problem.B.adjoint(dual))(K if kernel == "precomputed" else X)
    np.testing.assert_allclose(scores, K @ (pairs.incidence().T @ dual), atol=1e-12)
    assert problem.expansion(np.zeros(len(problem.ids)))(pairs.items).tolist() == [0.0] * 12


@pytest.mark.parametrize("machine", [SVMCompare(), SVMRank(), LPCompare(), LogisticCompare(kernel="rbf")])
def test_a_fit_remembers_its_kernel(machine):
    """New parameters are for the next fit; a copy through pickle is the same function."""
    pairs, y = compared(1, 40, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few passes are not enough
        fitted = clone(machine).set_params(gamma=0.3).fit(pairs, y)
    expected = fitted.rank_function(pairs.items)
    fitted.set_params(kernel="linear", gamma=7.0)
    np.testing.assert_array_equal(fitted.rank_function(pairs.items), expected)
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.rank_function(pairs.items), expected)


# ---- Bad input

MACHINES = [SVMCompare(), SVMRank(), LPCompare(), LogisticCompare(), MarginLP(), MarginQP()]
PAIRS, Y = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1], [2, 0]]), [0, 1, 1]
NUMBERS = ["a", None, 1j, True, [], np.nan, np.inf, 10**400, -1, np.array([1.0, 2.0]), np.ma.masked]


def refused(machine, *arguments, **named):
    """The message of the ValueError of our own that a fit raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"expected|has only") as caught:
            clone(machine).fit(*arguments, **named)
    return str(caught.value)


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize(
    ("machine", "name"),
    [
        *((machine, name) for machine in (SVMCompare(), SVMRank()) for name in ("C", "tol")),
        *((LPCompare(), name) for name in ("nu", "radius")),
        *((LogisticCompare(), name) for name in ("alpha", "tol", "n_components")),
        *((machine, "gamma") for machine in MACHINES[:3]),
        (LogisticCompare(kernel="rbf"), "gamma"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_parameters_that_are_no_such_number(machine, name, value):
    assert refused(clone(machine).set_params(**{name: value}), PAIRS, Y).startswith(f"{name} is ")


@pytest.mark.parametrize(
    "value",
    ["a", -1, 2**32, 1.5, np.random.default_rng(0)],
    ids=lambda value: type(value).__name__ + str(value)[:10],
)
def test_a_bad_random_state(value):
    message = refused(LogisticCompare(random_state=value), PAIRS, Y)
    assert message.startswith("random_state is ")


@pytest.mark.parametrize("value", [None, 1, [], "cosin", ["rbf"], np.array(["rbf", "rbf"])], ids=repr)
@pytest.mark.parametrize("machine", MACHINES[:4], ids=lambda machine: type(machine).__name__)
def test_a_bad_kernel(machine, value):
    assert refused(clone(machine).set_params(kernel=value), PAIRS, Y).startswith("kernel is ")


@pytest.mark.parametrize(
    "matrix",
    [None, "a", 1.0, [[1.0, 2.0], [3.0]], [[1j] * 3] * 3, [[10**400] * 3] * 3, np.zeros((0, 0))],
    ids=lambda value: repr(value)[:12],
)
@pytest.mark.parametrize("machine", MACHINES[:3], ids=lambda machine: type(machine).__name__)
def test_a_kernel_that_returns_no_matrix(machine, matrix):
    message = refused(clone(machine).set_params(kernel=lambda X, Y: matrix), PAIRS, Y)
    assert message.startswith("the kernel")


@pytest.mark.parametrize(
    ("pairs", "y"),
    [
        ([[[0.0], [1.0]], [[1.0]]], [0, 1]),
        ([[[None], [1.0]]], [1]),
        ([[["a"], ["b"]]], [1]),
        ([[[10**400], [1]]], [1]),
        ([[[1j], [1]]], [1]),
        (np.ma.array(np.ones((1, 2, 1)), mask=True), [1]),
        (PAIRS, [10**400, 0, 1]),
        (PAIRS, [None, 0, 1]),
        (PAIRS, ["1", "0", "1"]),
        (PAIRS, [[1], [0, 1]]),
        (PAIRS, [1j, 0, 1]),
        (PAIRS, np.ma.array([1, 0, 1], mask=[0, 1, 0])),
        (PAIRS, None),
    ],
)
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_pairs_and_labels_that_are_none(machine, pairs, y):
    refused(machine, pairs, y)


@pytest.mark.parametrize(
    "weights", [[-1, 1, 1], [np.nan, 1, 1], [1e308] * 3, [0] * 3, [1, 1], "abc", [None] * 3, [10**400] * 3]
)
@pytest.mark.parametrize("machine", MACHINES[:4], ids=lambda machine: type(machine).__name__)
def test_bad_weights(machine, weights):
    assert "sample_weight" in refused(machine, PAIRS, Y, sample_weight=weights)
