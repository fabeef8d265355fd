"""The theorem boxes of chapter 10: back-fitting, losses and order, the offset, and
random subsets."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from reference import laplacian, same_query
from scipy.spatial.distance import cdist

from preflearn.core.kernels import kernel_matrix
from preflearn.pursuit import RLS, RankingPursuit, RankRLS, SparseRankRLS

seeds = st.integers(0, 2**31)


def query_problem(seed, n=9):
    """Return queries, scores, and functions. Some functions are equal, zero, or
    constant on each query."""
    rng = np.random.default_rng(seed)
    part = rng.integers(0, 3, n)
    part[:2] = 0
    W = same_query(part)
    K = rng.normal(size=(n, 12))
    K[:, 3], K[:, 5], K[:, 7] = K[:, 2], 0.0, part
    K[:, 8] = K[:, 0] - 2 * K[:, 1] + part
    s = rng.normal(size=n) if seed % 3 else rng.integers(0, 3, n).astype(float)
    return part, W, laplacian(W), K, s


def least(V, W, s):
    """Return the lowest loss over the span of the columns of V. Each edge is one row,
    so that the loss of equal scores is exactly 0."""
    i, j = np.nonzero(np.triu(W))
    R = np.sqrt(W[i, j])[:, None] * (np.eye(len(s))[i] - np.eye(len(s))[j])
    a = np.linalg.lstsq(R @ V, R @ s, rcond=1e-10)[0] if V.shape[1] else np.zeros(0)
    return float(np.square(R @ (s - V @ a)).sum())


@pytest.mark.theorem("prop-pursuit-backfit")
@pytest.mark.parametrize("backfit", ["after", "pre"])
@given(seeds)
@examples(40)
def test_pursuit_with_back_fitting(backfit, seed):
    part, W, L, K, s = query_problem(seed)
    model = RankingPursuit(12, "precomputed", backfit=backfit).fit(K, s, part)
    tiny = 1e-9 * (s @ L @ s + 1e-12)
    chosen = []
    parts = np.unique(part)
    for p in range(len(model.losses_)):
        basis = model.basis_[:p]
        coef = model.coefs_[:p, p]
        r = s - K[:, basis] @ coef
        # (a)
        assert np.abs(K[:, basis].T @ L @ r).max(initial=0) < 1e-8 * (
            1 + np.abs(s).max()
        )
        assert model.losses_[p] == pytest.approx(least(K[:, basis], W, s), abs=tiny)
        if p:  # (b)
            V = K[:, chosen]
            k = K[:, basis[-1]]
            rest = s - V @ model.coefs_[: p - 1, p - 1]
            fall = model.losses_[p - 1] - model.losses_[p]
            below = least(V, W, k)
            assert fall == pytest.approx(
                (k @ L @ rest) ** 2 / below, rel=1e-6, abs=tiny
            )
            assert fall >= (k @ L @ rest) ** 2 / (k @ L @ k) * (1 - 1e-8) - tiny
            spanned = [
                j
                for j in range(12)
                if least(V, W, K[:, j]) < 1e-18 * (K[:, j] @ L @ K[:, j])
            ]
            assert np.abs(K[:, spanned].T @ L @ rest).max(initial=0) < 1e-6 * (
                1 + np.abs(s).max()
            )
            assert basis[-1] not in spanned
        chosen = basis.tolist()
    # (c)
    assert (
        len(set(chosen))
        == len(chosen)
        <= np.linalg.matrix_rank(L @ K)
        <= len(s) - len(parts)
    )
    constant = [
        j for j in range(12) if all(np.ptp(K[part == c, j]) == 0 for c in parts)
    ]
    assert {5, 7} <= set(constant)
    assert not set(constant) & set(chosen)
    assert np.all(np.diff(model.losses_) < 0)
    assert model.losses_[-1] == pytest.approx(least(K, W, s), abs=tiny)  # (d)


@pytest.mark.theorem("prop-pursuit-order")
@given(seeds)
def test_the_loss_bounds_the_pairs_in_the_wrong_order(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    s = rng.integers(0, 4, n) * rng.choice([0.3, 1.0, 5.0])
    f = (
        s + rng.normal(size=n) * rng.choice([0.1, 1, 3])
        if rng.random() < 0.7
        else np.full(n, 1.0)
    )
    pairs = [(i, j) for i, j in combinations(range(n), 2) if rng.random() < 0.7]
    gaps = np.array([s[i] - s[j] for i, j in pairs])
    found = np.array([f[i] - f[j] for i, j in pairs])
    if not gaps.any():
        return
    loss = np.sum((gaps - found) ** 2)
    least_gap = np.abs(gaps[gaps != 0]).min()
    wrong = np.sum((gaps != 0) & (gaps * found <= 0))
    assert wrong <= loss / least_gap**2 + 1e-9
    assert wrong == 0 or loss >= least_gap**2 * (1 - 1e-9)
    t = 1 + rng.random() * 100  # there is no bound in the other direction
    assert np.all(gaps * (t * gaps) >= 0)
    assert np.sum((gaps - t * gaps) ** 2) == pytest.approx(
        (t - 1) ** 2 * np.sum(gaps**2)
    )


def one_query(seed):
    """Return the items of one query, two of which are equal, and scores, some of which
    are tied."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 12)), 2))
    X[-1] = X[0]
    s = (
        rng.normal(size=len(X)) + 10 * rng.normal()
        if seed % 2
        else rng.integers(0, 3, len(X)) + 4.0
    )
    # the values of equal items are exactly equal
    return rng, X, s, np.exp(-0.7 * cdist(X, X, "sqeuclidean"))


@pytest.mark.theorem("prop-pursuit-level")
@given(seeds, st.floats(0.0, 1.0))
@examples(40)
def test_one_query_is_regression_with_a_free_offset(seed, beta):
    rng, X, s, K = one_query(seed)
    q = len(s)
    r = rng.normal(size=q)
    L = q * np.eye(q) - 1.0
    tilde = beta * np.eye(q) + (1 - beta) * L
    m = r.mean()
    formula = (beta + (1 - beta) * q) * np.sum((r - m) ** 2) + beta * q * m**2
    assert r @ tilde @ r == pytest.approx(formula)
    # the minimum of |r - b|^2 over b
    free = np.linalg.lstsq(np.ones((q, 1)), r, rcond=None)[1][0]
    assert r @ L @ r == pytest.approx(q * free)
    # a step of ranking pursuit chooses the best function with an offset, if any loss is
    # left
    model = RankingPursuit(1, "precomputed").fit(K, s)
    bases = [np.column_stack([np.ones(q), k]) for k in K.T]
    fits = [s - V @ np.linalg.lstsq(V, s, rcond=None)[0] for V in bases]
    assert model.losses_[-1] == pytest.approx(
        q * min(map(np.dot, fits, fits)), abs=1e-9 * (s @ s)
    )
    # (a) the equations of regularized least squares with an offset have the solution of
    # RankRLS
    alpha = float(10 ** rng.uniform(-1, 2))
    system = np.block(
        [[np.zeros((1, 1)), np.ones((1, q))], [np.ones((q, 1)), K + alpha * np.eye(q)]]
    )
    b, *a = np.linalg.solve(system, np.append(0.0, s))
    gap = K @ a + b - RankRLS(alpha=q * alpha, gamma=0.7).fit(X, s).rank_function(X)
    assert np.ptp(gap) < 1e-8 * (1 + np.abs(s).max())
    # RankRLS is RLS with an offset that is fitted, too: RLS of s - b gives the same a
    again = RLS(alpha=alpha, gamma=0.7).fit(X, s - b).rank_function(X)
    assert again + b == pytest.approx(K @ a + b, abs=1e-7 * (1 + np.abs(s).max()))


@pytest.mark.theorem("prop-pursuit-level")
@pytest.mark.parametrize("backfit", [False, "after", "pre"])
@given(seeds, st.floats(0.05, 0.95))
@examples(20)
def test_beta_is_the_weight_of_the_offset(backfit, seed, beta):
    _, _, s, K = one_query(seed)
    q = len(s)
    fit = {"n_basis": 3, "kernel": "precomputed", "backfit": backfit}
    # the matrix with L / q and the parameter beta is proportional to that with L and
    # another beta
    mix = beta * q / (beta * q + 1 - beta)
    L = laplacian(same_query(np.zeros(q)))
    scaled = beta * np.eye(q) + (1 - beta) * L / q
    printed = mix * np.eye(q) + (1 - mix) * L
    assert printed == pytest.approx(scaled * q / (beta * q + 1 - beta))
    ranking = RankingPursuit(mix=0, **fit).fit(K, s)
    centred = (
        RankingPursuit(mix=1, **fit).fit(K - K.mean(axis=0), s - s.mean())
        if np.ptp(s)
        else ranking
    )
    assert ranking.basis_.tolist() == centred.basis_.tolist()
    assert ranking.coef_ == pytest.approx(centred.coef_, rel=1e-6)


@pytest.mark.theorem("prop-pursuit-subset")
@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "linear", "poly", "precomputed"]
)
@given(seeds)
@examples(10)
def test_the_subset_of_regressors(kernel, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 2))
    s = rng.normal(size=10)
    qid = rng.integers(0, 3, 10)
    X[1], qid[:2], alpha = X[0], 0, float(10 ** rng.uniform(-2, 3))
    K = kernel_matrix(
        "rbf" if kernel == "precomputed" else kernel,
        X,
        X,
        gamma=1.5,
        degree=2,
        coef0=1.0,
    )
    given = K if kernel == "precomputed" else X
    small = SparseRankRLS(
        int(rng.integers(1, 6)), alpha, kernel, gamma=1.5, degree=2, random_state=0
    )
    R = small.fit(given, s, qid).basis_
    tilde = K[:, R] @ np.linalg.pinv(K[np.ix_(R, R)], rcond=1e-10) @ K[R]
    other = RankRLS(alpha=alpha, kernel="precomputed").fit(
        (tilde + tilde.T) / 2, s, qid
    )
    gap = small.rank_function(given) - other.rank_function(tilde)
    assert gap == pytest.approx(gap.mean(), abs=1e-7)
    assert small.objective_ == pytest.approx(other.objective_)


@pytest.mark.theorem("prop-pursuit-subset")
@given(seeds)
def test_without_the_penalty_all_items_leave_no_loss_whatever_the_kernel(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 2))
    s = rng.normal(size=10)
    qid = rng.integers(0, 3, 10)
    qid[:2] = 0
    whole = SparseRankRLS(
        10, 0.0, gamma=float(10 ** rng.uniform(0, 1)), random_state=0
    ).fit(X, s, qid)
    left = s - whole.rank_function(X)
    for query in np.unique(qid):
        assert np.ptp(left[qid == query]) < 1e-5
