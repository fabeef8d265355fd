"""The loop that finds the events of both paths, compared with plain NumPy if no two
events coincide."""

import numpy as np
import pytest
from reference import textbook_path
from sklearn.metrics.pairwise import pairwise_kernels
from small_problems import points

from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path, svm_path


@pytest.mark.parametrize("seed", range(4))
def test_breakpoints_of_the_machine_with_bias(seed):
    K, y = points("rbf", 70, seed, share=0.4)
    path = svm_path(K, y, lambda_min=0.02)
    begin = path.breakpoints[1:3].mean()
    alpha = path.alpha(begin)
    elbow = np.flatnonzero((alpha > 1e-9) & (alpha < 1 - 1e-9))
    expected = textbook_path(K, y, begin, alpha, elbow, 0.03, bias=True)
    ours = path.breakpoints[(path.breakpoints < begin) & (path.breakpoints > 0.03)]
    np.testing.assert_allclose(ours, expected, rtol=1e-8)
    assert len(ours) > 50


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("n", [5, 20, 60])
def test_breakpoints_of_trees_of_pairs(n, kernel):
    """The graphs are trees, because two pairs of an even cycle may reach the margin at
    once even for items in general position."""
    rng = np.random.default_rng(n)
    index = np.array([(k, rng.integers(k)) for k in range(1, n)])
    pairs = Pairs(rng.standard_normal((n, n if kernel == "linear" else 2)), index)
    y = rng.choice([-1, 1], n - 1)
    parameters = {"gamma": 0.5} if kernel == "rbf" else {}
    P = y[:, None] * pairs.incidence().toarray()
    Q = P @ pairwise_kernels(pairs.items, metric=kernel, **parameters) @ P.T
    one = np.ones(n - 1)
    start = Q.sum(axis=1)
    expected = textbook_path(
        Q, one, start.max(), one, [np.argmax(start)], 0.1, bias=False
    )
    path = ranksvm_path(pairs, y, kernel, lambda_min=0.1, **parameters)
    assert path.lambda_end == 0.1
    assert len(expected) > n / 2 - 1
    np.testing.assert_allclose(path.breakpoints, [start.max(), *expected], rtol=1e-7)
