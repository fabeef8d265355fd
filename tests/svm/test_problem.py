"""The kernel problem of a fit keeps the differences of its pairs."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels

from preflearn.ground.dual import Rows
from preflearn.pairs import Pairs
from preflearn.svm import SVMCompare
from preflearn.svm.problem import KernelProblem


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
    rows = Rows.of(np.ones(len(index), dtype=int), np.ones(len(index)), False)
    space, expected = problem.space(every, rows), pairs.incidence() @ K @ pairs.incidence().T
    for gram in (space.gram, space.features()):
        np.testing.assert_allclose(gram.block(every, every), expected, atol=1e-12)
    dual = rng.standard_normal(len(index))
    scores = problem.expansion(problem.B.adjoint(dual))(K if kernel == "precomputed" else X)
    np.testing.assert_allclose(scores, K @ (pairs.incidence().T @ dual), atol=1e-12)
    assert problem.expansion(np.zeros(len(problem.ids)))(pairs.items).tolist() == [0.0] * 12
