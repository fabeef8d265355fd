"""RLS, RankRLS and the subset of regressors: exact solutions of small cases, and
leave-one-query-out compared with refits."""

from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import laplacian, same_query, solve
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from preflearn.core.kernels import NotPositiveSemidefiniteError
from preflearn.metrics import disagreement_error
from preflearn.pairs import Pairs
from preflearn.pursuit import RLS, RankRLS, SparseRankRLS

BOTH = pytest.mark.parametrize("model", [RLS, RankRLS])
ALPHAS = [0.01, 0.3, 1.0, 20.0]
SUBSET = SparseRankRLS(6, 0.5, random_state=0)
LEAST = SparseRankRLS(6, 0.0, random_state=0)


def task(n=24, n_queries=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] ** 2 + rng.normal(size=n), rng.integers(0, n_queries, n)


def by_definition(model, K, y, L, alpha):
    """Return the coefficients a = L(s - Ka) / alpha, with an explicit Laplacian. For
    RLS, L is the identity."""
    L = np.eye(len(K)) if model is RLS else L
    return np.linalg.solve(L @ K + alpha * np.eye(len(K)), L @ y)


@st.composite
def problems(draw):
    """Return items on a small grid, some of which are equal, with scores and
    queries."""
    n = draw(st.integers(2, 8))
    X = draw(st.lists(st.tuples(*[st.integers(-2, 2)] * 2), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    qid = [0, 0, *draw(st.lists(st.integers(0, 2), min_size=n - 2, max_size=n - 2))]
    return np.array(X, dtype=float), np.array(y, dtype=float), np.array(qid)


# ---- The minimum


@BOTH
@given(
    problem=problems(),
    alpha=st.sampled_from([Fraction(1, 8), Fraction(1), Fraction(5)]),
)
def test_the_normal_equations_in_fractions(model, problem, alpha):
    X, y, qid = problem
    K, L = (
        M.astype(int)
        for M in (
            X @ X.T,
            np.eye(len(X)) if model is RLS else laplacian(same_query(qid)),
        )
    )
    y = y.astype(int)
    a = np.array(solve(L @ K + alpha * np.eye(len(X), dtype=int), L @ y))
    f = K @ a
    found = model(float(alpha), "linear").fit(X, y, qid)
    assert_allclose(found.coef_, a.astype(float), atol=1e-11)
    objective = (y - f) @ L @ (y - f) + alpha * a @ f
    assert found.objective_ == pytest.approx(float(objective), abs=1e-9)
    assert model is RLS or all(a[qid == query].sum() == 0 for query in qid)
    assert found.basis_.tolist() == list(range(len(X)))


@BOTH
@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "linear", "poly", "precomputed", "callable"]
)
def test_by_definition(model, kernel):
    X, y, qid = task()
    alike = {"rbf": rbf_kernel, "laplacian": laplacian_kernel}
    K = alike[kernel](X, gamma=0.3) if kernel in alike else X @ X.T
    if kernel == "poly":
        K = (0.3 * K + 1) ** 3
    choice = (lambda X, Y: X @ Y.T) if kernel == "callable" else kernel
    for alpha in ALPHAS:
        found = model(alpha, choice, gamma=0.3).fit(
            K if kernel == "precomputed" else X, y, qid
        )
        expected = by_definition(model, K, y, laplacian(same_query(qid)), alpha)
        assert_allclose(
            found.coef_, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max()
        )
        assert_allclose(
            found.rank_function(K if kernel == "precomputed" else X),
            K @ expected,
            atol=1e-7,
        )


@BOTH
@pytest.mark.parametrize("alpha", [1.0, 1e-8])
def test_sparse_items_are_fitted_as_their_gram_matrix(model, alpha):
    X = sparse.random_array((30, 80), density=0.1, rng=np.random.default_rng(0))
    _, y, qid = task(30)
    K = (X @ X.T).toarray()
    found = model(alpha, "linear").fit(X, y, qid)
    expected = model(alpha, "precomputed").fit(K, y, qid)
    assert_allclose(found.coef_, expected.coef_, rtol=1e-6, atol=1e-9)
    assert found.objective_ == pytest.approx(expected.objective_, abs=1e-12)
    assert_allclose(
        found.leave_query_out(), expected.leave_query_out(), rtol=1e-5, atol=1e-7
    )


def test_of_equal_errors_the_largest_alpha():
    X = np.arange(6.0)[:, None]
    y = np.arange(6.0)
    found = RankRLS([1.0, 5.0, 0.1], "linear").fit(X, y, [0, 0, 0, 1, 1, 1])
    assert found.errors_.tolist() == [0, 0, 0]
    assert found.alpha_ == 5.0
    # with one alpha, nothing is chosen
    assert RankRLS([2.0], "linear").fit(X, y).alpha_ == 2.0


# ---- Leaving out a query


def refitted(model, X, y, qid, alpha, kernel="rbf"):
    scores = np.zeros(len(X))
    for query in np.unique(qid):
        out = qid == query
        others = model(alpha, kernel, gamma=0.4).fit(X[~out], y[~out], qid[~out])
        scores[out] = others.rank_function(X[out])
    return scores


@BOTH
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "precomputed"])
def test_leaving_out_a_query_is_refitting(model, kernel):
    """Tested are the scores for one alpha, and the errors for several."""
    X, y, qid = task()
    qid[:3] = [7, 8, 9]  # three queries of one item each
    X[5] = X[6]
    same = "rbf" if kernel == "precomputed" else kernel
    given = rbf_kernel(X, gamma=0.4) if kernel == "precomputed" else X
    several = model([0.1, 2.0], kernel, gamma=0.4).fit(given, y, qid)
    for alpha, error in zip(several.alpha, several.errors_, strict=True):
        scores = refitted(model, X, y, qid, alpha, same)
        alone = clone(several).set_params(alpha=alpha).fit(given, y, qid)
        assert_allclose(alone.leave_query_out(), scores, atol=1e-8)
        wrong = disagreement_error(y, scores, qid, ties="drop")
        assert error == pytest.approx(
            np.mean((y - scores) ** 2) if model is RLS else wrong
        )
        if alpha == several.alpha_:
            assert error == several.errors_.min()
            assert_allclose(several.leave_query_out(), scores, atol=1e-8)
            assert_allclose(several.coef_, alone.coef_, rtol=1e-6, atol=1e-9)
            assert several.objective_ == pytest.approx(alone.objective_)
        assert not hasattr(alone, "errors_")


def test_without_anything_to_learn_from_all_are_tied():
    X = np.arange(5.0)[:, None]
    qid = [0, 0, 0, 1, 1]
    left = RankRLS(1.0).fit(X, [1.0, 2.0, 3.0, 0.1, 0.1], qid).leave_query_out()
    assert left[:3].tolist() == [0, 0, 0]  # all scores of the other query are equal
    assert np.all(np.diff(left[3:]))


# ---- Invariances


@given(problem=problems(), shift=st.sampled_from([-5.0, 1e3, 1e6]))
def test_constants_of_queries_and_of_items(problem, shift):
    X, y, qid = problem
    here = RankRLS(0.5, "linear").fit(X, y, qid)
    assert_allclose(
        RankRLS(0.5, "linear").fit(X, y + shift * qid, qid).coef_, here.coef_, atol=1e-8
    )
    moved = RankRLS(0.5, "linear").fit(X + shift, y, qid)
    assert_allclose(moved.coef_, here.coef_, atol=1e-8)
    pairs = Pairs(X + shift, [[0, 1]])
    assert_allclose(
        moved.decision_function(pairs),
        here.decision_function(Pairs(X, [[0, 1]])),
        atol=1e-7,
    )


def test_equal_scores_and_queries_of_one_item():
    X, y, _ = task(6)
    qid = np.array([0, 0, 1, 1, 2, 2])
    for model in (RankRLS(), SUBSET, LEAST):
        assert not model.fit(X, 0.1 * qid + 0.7, qid).coef_.any()
    qid[-1] = 3
    found = RankRLS().fit(X, y, qid)
    assert not found.coef_[4:].any()
    assert found.coef_[:4].all()


def test_a_wide_kernel_is_a_linear_one():
    """k - 1 = -gamma |x - x'|² + ..., and score differences depend only on its part 2
    gamma x·x'."""
    X, y, qid = task()
    X = X + 5
    gamma = 1e-10
    wide = RankRLS(2 * gamma, gamma=gamma)
    flat = RankRLS(1.0, "linear")
    wide.fit(X, y, qid)
    flat.fit(X, y, qid)
    assert_allclose(wide.coef_ * 2 * gamma, flat.coef_, atol=1e-7)
    gap = wide.rank_function(X) - flat.rank_function(X)
    assert_allclose(gap, gap.mean(), atol=1e-7)


# ---- The contract


@pytest.mark.parametrize("alpha", [1e-13, [1e-13, 1e-13]])
@pytest.mark.parametrize("diagonal", [[1.0, 1.0, -1e-10], [1.0, -1e-10, -1e-10]])
def test_a_gram_that_is_nearly_semidefinite(alpha, diagonal):
    """An eigenvalue of -1e-10 counts as a rounding error. If it exceeds alpha in size, it
    is set to 0."""
    expected = np.array([1.0, 2.0, 3.0])
    scores = expected * np.maximum(diagonal, 1e-13)
    model = RLS(alpha, "precomputed").fit(np.diag(diagonal), scores, [0, 1, 1])
    assert_allclose(model.coef_, expected, rtol=1e-3)


ALL_ITEMS = [
    ({"alpha": 0.0}, "alpha is 0.0"),
    ({"alpha": [1.0, 0.0]}, r"alpha\[1\] is 0.0"),
    ({"alpha": [1.0, 2.0]}, "number of queries is 1"),
    ({"alpha": 1e-30}, "alpha is 1e-30"),
    ({"kernel": "precomputed"}, r"X has shape \(3, 1\).*'precomputed'"),
]
SOME_ITEMS = [
    ({"random_state": 0.1}, "random_state is 0.1"),
    ({"alpha": -1.0}, "alpha is -1.0"),
    ({"alpha": [1.0, 2.0]}, r"alpha is \[1.0, 2.0\]"),
    ({"kernel": lambda X, Y: -X @ Y.T}, "eigenvalue"),
    ({"kernel": lambda X, Y: X + Y.T**2}, "symmetric"),
]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        *(
            (kind(**parameters), message)
            for kind in (RLS, RankRLS)
            for parameters, message in ALL_ITEMS
        ),
        *((SparseRankRLS(**parameters), message) for parameters, message in SOME_ITEMS),
    ],
)
def test_bad_parameters_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 1.5])


@pytest.mark.parametrize("model", [RLS, RankRLS, partial(SparseRankRLS, 2)])
@pytest.mark.parametrize("K", [[[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0.0], [0.0, -1.0]]])
def test_an_indefinite_gram_is_rejected(model, K):
    with pytest.raises(NotPositiveSemidefiniteError, match="eigenvalue"):
        model(1.0, "precomputed").fit(K, [1.0, 2.0])
    with pytest.raises(ValueError, match="symmetric"):
        model(1.0, "precomputed").fit([[1.0, 0.5], [0.0, 1.0]], [1.0, 2.0])


def test_leaving_out_needs_two_queries_with_pairs():
    X, y, qid = task()
    with pytest.raises(ValueError, match="number of queries is 1"):
        RankRLS().fit(X, y).leave_query_out()
    with pytest.raises(ValueError, match="at least two items"):
        RankRLS([1.0, 2.0]).fit(X, qid, qid)


# ---- A subset of the functions


@given(seed=st.integers(0, 999), alpha=st.sampled_from([Fraction(1, 4), Fraction(2)]))
def test_of_a_subset_the_normal_equations_in_fractions(seed, alpha):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (6, 2))
    y = rng.integers(-3, 4, 6)
    qid = [0, 0, 0, 1, 1, 2]
    found = SparseRankRLS(2, float(alpha), "linear", random_state=seed).fit(X, y, qid)
    K = X @ X[found.basis_].T
    L = laplacian(same_query(qid)).astype(int)
    A = K.T @ L @ K + alpha * K[found.basis_]
    a = solve(A, K.T @ L @ y)
    # the two items are on one line, so the coefficients are not unique, but the
    # function is
    if a is None:
        b, *_ = np.linalg.lstsq(A.astype(float), (K.T @ L @ y).astype(float))
        assert_allclose(K @ found.coef_, K @ b, atol=1e-8)
    else:
        assert_allclose(found.coef_, np.array(a, dtype=float), rtol=1e-8, atol=1e-9)


def test_without_a_penalty_the_coefficients_of_least_norm():
    X, y, qid = task(8, 1)
    found = clone(LEAST).set_params(n_basis=8, gamma=0.4).fit(X, y, qid)
    centred = np.eye(8) - 1 / 8
    inverse = np.linalg.pinv(centred @ rbf_kernel(X, gamma=0.4), rcond=1e-12)
    assert_allclose(found.coef_, inverse @ centred @ y, atol=1e-7)
    assert found.objective_ == pytest.approx(0, abs=1e-18)
    # the two equal items have different scores, of which only the mean can be fitted
    X[1] = X[0]
    found.fit(X, y, qid)
    assert found.coef_[0] == pytest.approx(found.coef_[1])
    assert found.objective_ == pytest.approx(8 * (y[0] - y[1]) ** 2 / 2)


@pytest.mark.parametrize("alpha", [1e-11, 1.0])
def test_a_wide_kernel(alpha):
    """Compare with fractions from exact values of k - 1. The penalty is (sum a)² +
    a'(K_RR - 1)a."""
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (8, 2)).astype(float)
    y = rng.integers(-3, 4, 8).astype(float)
    gamma = Fraction(1, 10**10)
    found = SparseRankRLS(3, alpha, gamma=1e-10, random_state=3).fit(X + 4, y)
    squares = np.square(X[:, None] - X[found.basis_]).sum(axis=2).astype(int)
    Z = -gamma * squares + (gamma * squares) ** 2 / 2  # the error is about 1e-27
    L = laplacian(same_query(np.zeros(8))).astype(int)
    A = Z.T @ L @ Z + Fraction(alpha) * (1 + Z[found.basis_])
    a = np.array(solve(A, Z.T @ L @ y.astype(int)), dtype=float)
    assert_allclose(found.coef_, a, rtol=1e-6, atol=1e-6 * np.abs(a).max())


def test_a_subset_of_equal_items():
    _, y, qid = task()
    equal = np.repeat([[0.3, 0.1, 7.0], [1.0, 2.0, 3.0]], 12, axis=0)
    for gamma in (1.0, 1e-9):
        found = SparseRankRLS(4, 0.5, gamma=gamma, random_state=2).fit(equal, y, qid)
        assert np.ptp(found.rank_function(equal[:12])) == pytest.approx(0, abs=1e-12)
    assert (
        not SparseRankRLS(4, 0.5, "linear", random_state=2)
        .fit(0 * equal, y, qid)
        .coef_.any()
    )


def test_the_subset_is_drawn_by_its_seed():
    X, y, qid = task()
    draws = [
        SparseRankRLS(7, random_state=k).fit(X, y, qid).basis_.tolist()
        for k in (0, 0, 1, 2, 3, 4)
    ]
    assert draws[0] == draws[1]
    assert len(set(map(tuple, draws))) == 5
    assert all(draw == sorted(set(draw)) for draw in draws)
    assert SparseRankRLS(100, random_state=0).fit(X, y, qid).basis_.tolist() == list(
        range(24)
    )


def test_functions_whose_squares_underflow_are_left_out():
    X = 1e-90 * np.array([[1.0], [2.0], [4.0]])
    model = SparseRankRLS(2, 0.0, "linear", random_state=0).fit(X, [1.0, 2.0, 4.0])
    assert model.coef_.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("offset", "atol"), [(0.0, 1e-13), (1e3, 1e-8), (1e4, 1e-6), (1e5, 1e-3)]
)
@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_features_far_from_zero_keep_the_digits_of_linear_scores(offset, atol, alpha):
    """Compare with a computation in 40 digits. Residuals divided by alpha would have
    errors of 1e-8 to 1e3."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) + offset
    y = rng.standard_normal(60)
    with mpmath.workdps(40):
        A = mpmath.matrix(X.tolist())
        w = mpmath.lu_solve(
            A.T * A + alpha * mpmath.eye(3), A.T * mpmath.matrix(y.tolist())
        )
        exact = np.array([float(value) for value in A * w])
        norm = float(sum(value**2 for value in w))
    model = RLS(alpha, kernel="linear").fit(X, y)
    np.testing.assert_allclose(model.rank_function(X), exact, rtol=0, atol=atol)
    assert model.objective_ == pytest.approx(
        np.sum((y - exact) ** 2) + alpha * norm, abs=60 * atol
    )
