"""Kernels of items: features with the same inner products, distinct items, and
indefinite matrices."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.core import NotPositiveSemidefiniteError
from preflearn.core.kernels import (
    check_definite,
    distinct_items,
    kernel_matrix,
    pivoted_features,
    scale_gamma,
    squared_distances,
)
from preflearn.pairs import Pairs


@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 4))
def test_features_have_the_inner_products(seed, n, rank):
    root = np.random.default_rng(seed).standard_normal((n, rank))
    L, _ = pivoted_features(root @ root.T)
    assert L.shape == (n, min(n, rank))
    np.testing.assert_allclose(L @ L.T, root @ root.T, atol=1e-12 * (root**2).sum())


@pytest.mark.parametrize(
    "K", [[[1.0, 2.0], [2.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[-1.0]]]
)
def test_a_negative_eigenvalue_is_rejected(K):
    with pytest.raises(NotPositiveSemidefiniteError, match=r"-1.*kernel"):
        pivoted_features(np.array(K))
    assert pivoted_features(np.zeros((3, 3)))[0].tolist() == [[0.0]] * 3


@pytest.mark.parametrize("n", [2, 3, 8])
def test_only_negative_eigenvalues_of_the_size_of_rounding_are_accepted(n):
    values = np.ones(n)
    vectors = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))[0]
    for low, rejected in ((0.0, False), (-0.3e-9, False), (-2e-9, True)):
        values[0] = low
        K = (vectors * values) @ vectors.T
        with pytest.raises(NotPositiveSemidefiniteError) if rejected else nullcontext():
            check_definite((K + K.T) / 2, 0.0)


@given(st.integers(0, 2**31))
def test_distinct_items_are_the_same_pairs_without_copies(seed):
    rng = np.random.default_rng(seed)
    items = rng.integers(0, 2, (8, 2)).astype(float)
    index = rng.permuted(np.tile(np.arange(8), (5, 1)), axis=1)[:, :2]
    pairs = Pairs(items, index)
    ids, place = distinct_items(pairs)
    np.testing.assert_array_equal(items[ids][place], np.asarray(pairs))
    assert len(np.unique(items[ids], axis=0)) == len(ids)
    assert set(place.ravel()) == set(range(len(ids)))


def test_gamma_scale_is_the_inverse_variance_and_one_for_equal_items():
    assert scale_gamma("scale", np.ones((3, 2))) == 1.0
    # the variance is below the smallest normal number
    assert scale_gamma("scale", 1e-170 * np.array([[1.0], [2.0]])) == 1.0
    X = np.random.default_rng(0).standard_normal((5, 3))
    gamma = scale_gamma("scale", X)
    assert gamma == pytest.approx(1 / (3 * X.var(axis=0).mean()))
    assert scale_gamma("scale", X + np.array([1e5, -1e3, 0.0])) == pytest.approx(gamma)


# The four ways to compute distances: few features, few numbers, a product with some
# corrections, and a product with many corrections.
SHAPES = [(300, 300, 3), (40, 30, 40), (600, 500, 40), (600, 500, 21)]


@pytest.mark.parametrize(("n", "m", "p"), SHAPES)
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_squared_distances_of_close_items_keep_their_digits(n, m, p, offset):
    rng = np.random.default_rng(n + p)
    X = rng.normal(size=(n, p)) * (p != 21)
    X[n // 2 :] = X[: n - n // 2]
    X += 1e-6 * rng.normal(size=(n, p)) + offset
    Y = np.vstack([X[: m // 2], rng.normal(size=(m - m // 2, p)) * (p != 21) + offset])
    for other in (X, Y):
        exact = sum(
            np.subtract.outer(x, y) ** 2 for x, y in zip(X.T, other.T, strict=True)
        )
        found = squared_distances(X, other)
        np.testing.assert_allclose(found, exact, rtol=1e-13 * (1 + offset))
    assert not np.diag(squared_distances(X, X)).any()


@pytest.mark.parametrize(("n", "m", "p"), SHAPES)
def test_the_gaussian_kernel_is_that_of_scikit_learn(n, m, p):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    Y = rng.normal(size=(m, p))
    found = kernel_matrix("rbf", X, Y, gamma=0.1)
    np.testing.assert_allclose(found, rbf_kernel(X, Y, gamma=0.1), atol=4e-15)
    np.testing.assert_allclose(kernel_matrix("rbf", X, Y), rbf_kernel(X, Y), atol=4e-15)
