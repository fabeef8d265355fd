"""Kernel functions at centers: their values, their sums, and constants that cancel in
differences."""

import numpy as np
import pytest

from preflearn.core.expansion import ItemKernel, functions_of
from preflearn.pairs import Pairs
from preflearn.pursuit import RankingPursuit

KERNELS = pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "linear", lambda X, Y: X @ Y.T]
)


def items(seed, n=7):
    return np.random.default_rng(seed).normal(size=(n, 3))


@KERNELS
def test_differences_of_functions_keep_their_values_without_constants(kernel):
    X = items(0) + 5
    new = items(1) + 5
    coef = items(2)[:2, 0]
    functions = functions_of(RankingPursuit(kernel=kernel, gamma=0.3), X)
    ids = np.array([4, 2])
    whole = functions.columns(new, ids)
    less = functions.seen(0.0).columns(new, ids)
    np.testing.assert_allclose(np.diff(less, axis=0), np.diff(whole, axis=0), atol=1e-9)
    assert functions.seen(0.5) is functions
    np.testing.assert_allclose(functions.expansion(ids, coef)(new), whole @ coef)
    assert functions.columns(new, ids[:0]).shape == (7, 0)
    assert functions.expansion(ids[:0], coef[:0])(new).tolist() == [0.0] * 7


@KERNELS
def test_the_kernel_of_items_up_to_constants(kernel):
    X = items(3) + 5
    pairs = Pairs(X, [[0, 1], [4, 2], [2, 0]])
    space = ItemKernel.of(RankingPursuit(kernel=kernel, gamma=0.3), pairs)
    B = np.diff(np.eye(len(space.ids)), axis=0)
    K = space.gram()
    np.testing.assert_allclose(
        B @ space.centred_gram()[0] @ B.T, B @ K @ B.T, atol=1e-9
    )
    np.testing.assert_array_equal(space.items, X[space.ids])
    coef = np.arange(4.0)
    np.testing.assert_allclose(
        space.expansion(coef)(X), space.functions.columns(X) @ coef
    )


def test_a_wide_kernel_keeps_its_differences():
    X = items(4)
    functions = functions_of(RankingPursuit(gamma=1e-14), X + 100).seen(0.0)
    squares = np.square(X[:, None] - X).sum(axis=-1)
    np.testing.assert_allclose(
        functions.columns(X + 100), -1e-14 * squares, rtol=1e-9, atol=1e-25
    )


def test_given_functions_are_columns():
    K = items(5)
    functions = functions_of(RankingPursuit(kernel="precomputed"), K)
    np.testing.assert_array_equal(functions.columns(K, np.array([2, 0])), K[:, [2, 0]])
    with pytest.raises(ValueError, match=r"items .*precomputed"):
        ItemKernel.of(RankingPursuit(kernel="precomputed"), Pairs(K, [[0, 1]]))
