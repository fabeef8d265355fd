"""The theorem boxes of chapter 16, in exact fractions where possible, and in small
degenerate cases."""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from property_examples import examples
from scipy.sparse.csgraph import connected_components
from sklearn.svm import SVC

from preflearn.ranking import bradley_terry, copeland
from preflearn_book.studies.ch16_orders import kemeny


def hats(U, V):
    """Return the analogy kernel of pairs by its definition, eq. 5 and 8 of P5."""
    same = np.sign(U)[:, None] == np.sign(V)
    return (same * (1 - np.abs(U[:, None] - V))).mean(axis=2)


def without_bias(K, y, C):
    """Return the dual coefficients y alpha of an SVM without bias, computed by
    coordinate ascent."""
    alpha = np.zeros(len(y))
    Q = K * np.outer(y, y)
    for _ in range(20_000):
        before = alpha.copy()
        for i in np.flatnonzero(np.diag(Q) > 0):
            alpha[i] = np.clip(alpha[i] + (1 - Q[i] @ alpha) / Q[i, i], 0.0, C)
        if np.abs(alpha - before).max() < 1e-12:
            break
    return y * alpha


quarters = st.integers(-4, 4).map(lambda value: value / 4)


@pytest.mark.theorem("thm-c16-both")
@examples(30)
@example([[0.0, 0.0]], [1], 1.0, [[0.5, 0.0]])  # a pair of equal items, with f(0) = 0
# one pair occurs twice, and a third pair contradicts it
@example([[0.5, 0.0], [0.5, 0.0], [-0.5, 0.0]], [1, -1, 1], 2.0, [[0.25, 0.25]])
@given(
    st.lists(st.lists(quarters, min_size=2, max_size=2), min_size=1, max_size=6),
    st.lists(st.sampled_from([-1, 1]), min_size=6, max_size=6),
    st.sampled_from([0.25, 1.0, 8.0]),
    st.lists(st.lists(quarters, min_size=2, max_size=2), min_size=1, max_size=4),
)
def test_both_orientations_are_an_odd_kernel_without_bias(U, y, C, Q):
    U = np.array(U)
    Q = np.array(Q)
    y = np.array(y[: len(U)])
    doubled = np.vstack([U, -U])
    labels = np.append(y, -y)
    model = SVC(C=C, kernel="precomputed", tol=1e-10).fit(
        hats(doubled, doubled), labels
    )
    coef = np.zeros(len(labels))
    coef[model.support_] = model.dual_coef_[0]
    odd = (hats(U, U) - hats(U, -U)) / 2
    for at in (Q, -Q):
        f = hats(at, doubled) @ coef
        single = (hats(at, U) - hats(at, -U)) / 2 @ without_bias(odd, y, 2 * C)
        np.testing.assert_allclose(f, single, atol=1e-6)
    flips = np.where(np.arange(len(U)) % 2, -1, 1)  # replaces f by its value at -Q
    turned = (hats(Q, U * flips[:, None]) - hats(Q, -U * flips[:, None])) / 2
    odd = odd * np.outer(flips, flips)
    np.testing.assert_allclose(
        turned @ without_bias(odd, y * flips, 2 * C), -f, atol=1e-6
    )
    # The optimal bias is 0: the other values of b do not lower the hinge losses of the
    # doubled problem.
    f = hats(doubled, doubled) @ coef
    losses = [
        np.maximum(0, 1 - labels * (f + b)).sum() for b in (0.0, -0.1, 0.1, -1.0, 1.0)
    ]
    assert losses[0] <= min(losses) + 1e-6


@st.composite
def reciprocal_degrees(draw):
    n = draw(st.integers(2, 5))
    P = np.zeros((n, n), dtype=int)
    for i, j in combinations(range(n), 2):
        P[i, j] = draw(st.integers(0, 4))
        P[j, i] = 4 - P[i, j]
    return P


def log_likelihood(P, s):
    return -(P * np.logaddexp(0.0, s - s[:, None]))[~np.eye(len(P), dtype=bool)].sum()


@pytest.mark.theorem("thm-c16-rowsums")
@examples(60)
# a cycle, in which all worths are equal
@example(np.array([[0, 4, 0], [0, 0, 4], [4, 0, 0]]))
@example(np.array([[0, 4], [0, 0]]))
@given(reciprocal_degrees())
def test_bradley_terry_orders_reciprocal_degrees_as_row_sums(P):
    parts, of = connected_components(P > 0, connection="strong")
    if parts == 1:
        s = bradley_terry(P)
        sums = P.sum(axis=1)
        for i, j in permutations(range(len(P)), 2):
            assert (s[i] > s[j] + 1e-7) == (sums[i] > sums[j])
        best = log_likelihood(P, s)
        for d in np.random.default_rng(0).normal(size=(20, len(P))):
            assert log_likelihood(P, s + 100 * (d - d.mean())) < best
    else:
        # one part never loses to the rest, so the likelihood increases with its scores
        first = [
            of == k for k in range(parts) if not (P[of != k][:, of == k] > 0).any()
        ]
        assert len(first) == 1
        for s in np.random.default_rng(0).normal(size=(5, len(P))):
            values = [log_likelihood(P, s + t * first[0]) for t in (0.0, 1.0, 2.0, 4.0)]
            assert np.all(np.diff(values) > 0)


@pytest.mark.theorem("thm-c16-err")
@pytest.mark.parametrize(
    ("N", "n"), [(N, n) for N in range(1, 7) for n in range(1, N + 1)]
)
def test_expected_rank_given_the_order_of_a_query(N, n):
    total = [0] * n
    count = 0
    # the items are 0 to N - 1, and the query contains the first n in order
    for rank in permutations(range(1, N + 1)):
        if list(rank[:n]) == sorted(rank[:n]):
            count += 1
            total = [before + new for before, new in zip(total, rank, strict=False)]
    assert [Fraction(t, count) for t in total] == [
        Fraction(k * (N + 1), n + 1) for k in range(1, n + 1)
    ]


@pytest.mark.parametrize(
    ("N", "n"), [(N, n) for N in range(2, 7) for n in range(2, N + 1)]
)
def test_the_mean_target_of_an_item_in_samples_of_one_population(N, n):
    for item in range(N):  # item 0 is the best
        better = Fraction(item, N - 1)  # fraction of better items among the others
        samples = [s for s in combinations(range(N), n) if item in s]
        targets = [Fraction(s.index(item) + 1, n + 1) for s in samples]
        mean = sum(targets) / len(targets)
        assert mean == Fraction(1, 2) + Fraction(n - 1, n + 1) * (
            better - Fraction(1, 2)
        )


@examples(60)
@given(n=st.integers(2, 7), seed=st.integers(0, 2**31))
def test_all_aggregates_agree_if_no_majority_contradicts_the_row_sums(n, seed):
    rng = np.random.default_rng(seed)
    P = np.triu(rng.integers(51, 101, (n, n)), 1) / 100
    # item 0 has a majority over all others, item 1 over all except 0, and so on
    P += np.tril(1 - P.T, -1)
    sums = P.sum(axis=1)
    for order in (copeland, kemeny):
        assert np.array_equal(np.argsort(-order(P)), np.arange(n))
    if np.all(np.diff(sums) < -1e-9):
        assert np.array_equal(np.argsort(-bradley_terry(P)), np.arange(n))
