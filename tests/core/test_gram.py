"""Gram matrices: the operator compared with its matrix, and asymmetric matrices."""

import numpy as np
import pytest

from preflearn.core.gram import (
    DenseGram,
    centred,
    check_gram,
    check_symmetric,
    combine,
    fixed,
)


def matrix(n, rank=3):
    root = np.random.default_rng(n).normal(size=(n, rank))
    return root @ root.T


def test_the_operator_gives_entries_and_products_of_its_matrix():
    K = matrix(9)
    v = np.array([0.0, 1, 0, -2, 3, 0.5, 0, 7, 1])
    gram = DenseGram(K)
    rows = np.array([3, 1])
    columns = np.array([0, 8, 4])
    np.testing.assert_array_equal(gram.block(rows, columns), K[np.ix_(rows, columns)])
    np.testing.assert_allclose(gram.times(v), K @ v, atol=1e-12)


def test_centering_leaves_the_gram_matrix_of_differences():
    K = matrix(6)
    B = np.diff(np.eye(6), axis=0)
    C = centred(K)
    np.testing.assert_allclose(B @ C @ B.T, B @ K @ B.T, atol=1e-12)
    np.testing.assert_allclose([C.sum(axis=0), C.sum(axis=1)], 0, atol=1e-12)


@pytest.mark.parametrize("n", [4, 600])  # one tile, and several tiles
def test_an_asymmetric_matrix_is_rejected(n):
    K = matrix(n)
    np.testing.assert_array_equal(check_gram(K), K)
    K[n - 1, 0] += 1.0
    with pytest.raises(ValueError, match=r"K\[\d+, \d+\].*symmetric"):
        check_symmetric(K, "K")


@pytest.mark.parametrize("rows", range(6))
def test_rows_are_combined(rows):
    """Rows are combined in groups of four, and the remaining rows one by one."""
    rng = np.random.default_rng(rows)
    matrix = fixed(rng.standard_normal((rows + 2, 7)))
    weights = rng.standard_normal(rows)
    chosen = rng.permutation(rows + 2)[:rows]
    np.testing.assert_allclose(
        combine(matrix, chosen, weights),
        weights @ matrix[chosen],
        rtol=1e-13,
        atol=1e-13,
    )
