"""The rows of the hinges are those of the flipped pairs."""

import numpy as np
import pytest

from preflearn.pairs import Pairs
from preflearn.svm.differences import FeatureGram, HingeMatrix
from preflearn.svm.hinges import Rows
from preflearn.svm.machine import preferences_first


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("n", [6, 60])
def test_rows_of_a_machine_are_the_flipped_pairs(n, biased):
    """Eq. 8 by `Pairs.flipped`, whose order is another; both copies of a tie share one difference."""
    rng = np.random.default_rng(n)
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(25)])
    pairs, y = Pairs(np.zeros((n, 1)), index), np.append([1, 0], rng.choice([-1, 0, 0, 0, 1], 23))
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
