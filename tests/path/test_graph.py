"""The replay of the ranking path: weights from the changes of the margin set, in the space of the items."""

import tracemalloc

import numpy as np
import pytest
from small_problems import two_classes

from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path


@pytest.mark.parametrize("seed", range(40))
def test_items_that_are_nearly_equal(seed):
    """Pairs that depend on each other but for 1e-7 are replayed as they were followed."""
    rng = np.random.default_rng(seed)
    base = rng.integers(-2, 3, (3, 2)).astype(float)
    X = base[rng.integers(3, size=6)] + 1e-7 * rng.standard_normal((6, 2))
    first = rng.integers(6, size=6)
    index = np.column_stack([first, (first + rng.integers(1, 6, size=6)) % 6])
    path = ranksvm_path(Pairs(X, index), np.ones(6, dtype=int), "linear")
    assert path.worst_residual() < 1e-6
    start = path.breakpoints[0] if len(path.breakpoints) else 1.0
    for lam in start * np.array([0.9, 0.1, 1e-2, 1e-3]):
        assert path.kkt_residual(max(lam, path.lambda_end)) < 1e-8


def test_memory_is_that_of_the_items_and_of_vectors():
    pairs, y = two_classes(300, seed=0, p=5)  # 22,500 pairs: their Gram matrix would take 4 GB
    ranksvm_path(pairs, y, gamma=0.2, max_events=10)
    tracemalloc.start()
    path = ranksvm_path(pairs, y, gamma=0.2, lambda_min=20.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(path.breakpoints) > 1000
    assert peak < 40e6
