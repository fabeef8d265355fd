"""The subset of regressors: least squares by definition, and RankRLS with another kernel."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import laplacian, same_query, solve
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.ground.kernels import NotPositiveSemidefiniteError, kernel_matrix
from preflearn.pursuit import RankRLS, SparseRankRLS


def task(n=24, n_queries=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] ** 2 + rng.normal(size=n), rng.integers(0, n_queries, n)


def centred(f):
    return f - f.mean()


@given(seed=st.integers(0, 999), alpha=st.sampled_from([Fraction(1, 4), Fraction(2)]))
def test_the_normal_equations_in_fractions(seed, alpha):
    rng = np.random.default_rng(seed)
    X, y, qid = rng.integers(-3, 4, (6, 2)), rng.integers(-3, 4, 6), [0, 0, 0, 1, 1, 2]
    found = SparseRankRLS(2, float(alpha), "linear", random_state=seed).fit(X, y, qid)
    K, L = X @ X[found.basis_].T, laplacian(same_query(qid)).astype(int)
    A = [[Fraction(int(v)) for v in row] for row in K.T @ L @ K]
    penalty = K[found.basis_].tolist()
    A = [[v + alpha * k for v, k in zip(*rows, strict=True)] for rows in zip(A, penalty, strict=True)]
    a = solve(A, [Fraction(int(v)) for v in K.T @ L @ y])
    if a is None:  # two items on one line: the function is one all the same
        b, *_ = np.linalg.lstsq(np.array(A, dtype=float), (K.T @ L @ y).astype(float))
        assert_allclose(K @ found.coef_, K @ b, atol=1e-8)
    else:
        assert_allclose(found.coef_, np.array(a, dtype=float), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly", "precomputed"])
def test_it_is_rank_rls_with_another_kernel(kernel):
    X, y, qid = task()
    X[1] = X[0]
    gram = kernel_matrix("rbf" if kernel == "precomputed" else kernel, X, X, gamma=0.4, degree=2, coef0=1.0)
    X = gram if kernel == "precomputed" else X
    for alpha in (0.01, 3.0):
        sparse_one = SparseRankRLS(9, alpha, kernel, gamma=0.4, degree=2, random_state=0).fit(X, y, qid)
        R = sparse_one.basis_
        K = gram[:, R]
        values, vectors = np.linalg.eigh(K[R])
        half = K @ (vectors[:, values > 1e-10] / np.sqrt(values[values > 1e-10]))
        full = RankRLS(alpha, "precomputed").fit(half @ half.T, y, qid)
        found, expected = sparse_one.rank_function(X), full.rank_function(half @ half.T)
        assert_allclose(centred(found), centred(expected), atol=1e-7)
        assert sparse_one.objective_ == pytest.approx(full.objective_)


def test_all_items_are_rank_rls():
    X, y, qid = task()
    full = RankRLS(0.5, gamma=0.4).fit(X, y, qid)
    for n_basis in (24, 100):
        found = SparseRankRLS(n_basis, 0.5, gamma=0.4, random_state=0).fit(X, y, qid)
        assert found.basis_.tolist() == list(range(24))
        assert_allclose(found.coef_, full.coef_, atol=1e-8)
        assert found.objective_ == pytest.approx(full.objective_)


def test_without_a_penalty_the_coefficients_of_least_norm():
    X, y, qid = task(8, 1)
    found = SparseRankRLS(8, 0.0, gamma=0.4, random_state=0).fit(X, y, qid)
    K = rbf_kernel(X, gamma=0.4)
    root = 1.0 * (np.eye(8) - 1 / 8)
    assert_allclose(found.coef_, np.linalg.pinv(root @ K, rcond=1e-12) @ root @ y, atol=1e-7)
    assert found.objective_ == pytest.approx(0, abs=1e-18)
    X[1] = X[0]  # with another score: only their mean can be reached
    twice = SparseRankRLS(8, 0.0, gamma=0.4, random_state=0).fit(X, y, qid)
    assert twice.coef_[0] == pytest.approx(twice.coef_[1])
    assert twice.objective_ == pytest.approx(8 * (y[0] - y[1]) ** 2 / 2)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_graphs(alpha):
    X, y, qid = task()
    by_queries = SparseRankRLS(6, alpha, random_state=0).fit(X, y, qid)
    W = same_query(qid)
    for graph in (W, sparse.csr_array(W), 2 * np.triu(W)):  # of a directed one (W + W') / 2
        found = SparseRankRLS(6, alpha, random_state=0).fit(X, y, graph=graph)
        assert_allclose(found.coef_, by_queries.coef_, atol=1e-8)
        assert found.objective_ == pytest.approx(by_queries.objective_)


def test_several_alphas_and_validation():
    X, y, qid = task()
    alphas, held = [0.0, 0.1, 10.0], task(seed=1)
    found = SparseRankRLS(6, alphas, random_state=0).fit(X, y, qid, validation=held)
    for alpha, coef, error in zip(alphas, found.coefs_, found.errors_, strict=True):
        alone = SparseRankRLS(6, alpha, random_state=0).fit(X, y, qid)
        assert_allclose(coef, alone.coef_, atol=1e-9)
        assert error == pytest.approx(1 - alone.score(*held))
    assert found.errors_[alphas.index(found.alpha_)] == found.errors_.min()


@pytest.mark.parametrize("alpha", [1e-11, 1.0])
def test_a_wide_kernel(alpha):
    """In fractions of the exact values of k - 1: the penalty is (sum a)² + a'(K_RR - 1)a."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(-3, 4, (8, 2)).astype(float), rng.integers(-3, 4, 8).astype(float)
    gamma = Fraction(1, 10**10)
    found = SparseRankRLS(3, alpha, gamma=1e-10, random_state=3).fit(X + 4, y)
    squares = np.square(X[:, None] - X[found.basis_]).sum(axis=2).astype(int)
    Z = [[-gamma * int(d) + (gamma * int(d)) ** 2 / 2 for d in row] for row in squares]  # to 1e-27
    L = laplacian(same_query(np.zeros(8))).astype(int)
    LZ = [[sum(int(L[i, k]) * Z[k][j] for k in range(8)) for j in range(3)] for i in range(8)]
    A = [
        [sum(Z[k][i] * LZ[k][j] for k in range(8)) + Fraction(alpha) * (1 + Z[r][j]) for j in range(3)]
        for i, r in enumerate(found.basis_)
    ]
    a = np.array(solve(A, [sum(LZ[k][i] * int(y[k]) for k in range(8)) for i in range(3)]), dtype=float)
    assert_allclose(found.coef_, a, rtol=1e-6, atol=1e-6 * np.abs(a).max())


def test_a_subset_of_one_item_or_of_equal_ones():
    X, y, qid = task()
    one = SparseRankRLS(1, 0.5, random_state=0).fit(X, y, qid)
    assert one.coef_.shape == (1,)
    equal = np.repeat([[0.3, 0.1, 7.0], [1.0, 2.0, 3.0]], 12, axis=0)
    for gamma in (1.0, 1e-9):
        found = SparseRankRLS(4, 0.5, gamma=gamma, random_state=2).fit(equal, y, qid)
        assert np.ptp(found.rank_function(equal[:12])) == pytest.approx(0, abs=1e-12)
    assert not SparseRankRLS(4, 0.5, "linear", random_state=2).fit(0 * equal, y, qid).coef_.any()


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_equal_scores(alpha):
    X, _, qid = task()
    found = SparseRankRLS(4, alpha, random_state=0).fit(X, 0.1 * qid, qid)
    assert not found.coef_.any()


def test_it_is_an_estimator():
    X, y, qid = task()
    found = SparseRankRLS(7, random_state=5).fit(X, y, qid)
    again = clone(found).fit(X, y, qid)
    assert again.basis_.tolist() == found.basis_.tolist() == sorted(set(found.basis_.tolist()))
    assert again.coef_.tolist() == found.coef_.tolist()
    draws = {tuple(SparseRankRLS(7, random_state=k).fit(X, y, qid).basis_) for k in range(5)}
    assert len(draws) == 5


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"random_state": 0.1}, "random_state is 0.1; expected a seed, a numpy RandomState or None"),
        ({"n_basis": 0}, "n_basis is 0; expected a whole number of at least 1"),
        ({"alpha": -1.0}, "alpha is -1.0; expected a number of at least 0, or several"),
        ({"alpha": [1.0, -1.0]}, r"alpha\[1\] is -1.0"),
        ({"alpha": [1.0, 2.0]}, "alpha has 2 values and there is no validation"),
        ({"kernel": "precomputed"}, r"X has shape \(3, 1\).*'precomputed'"),
        ({"kernel": lambda X, Y: -X @ Y.T}, "eigenvalues from -"),
        ({"kernel": lambda X, Y: X + Y.T**2}, "expected a symmetric K"),
    ],
)
def test_bad_input_is_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        SparseRankRLS(**parameters).fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 1.5])


def test_an_indefinite_gram_is_refused():
    with pytest.raises(NotPositiveSemidefiniteError):
        SparseRankRLS(2, 1.0, "precomputed").fit([[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0])


def test_functions_whose_squares_are_no_floats_are_left_out():
    X = 1e-90 * np.array([[1.0], [2.0], [4.0]])
    model = SparseRankRLS(2, 0.0, "linear", random_state=0).fit(X, [1.0, 2.0, 4.0])
    assert model.coef_.tolist() == [0.0, 0.0]
