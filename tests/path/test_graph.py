"""The replay of the ranking path: weights from the changes of the margin set, in the
item space."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from small_problems import two_classes

from preflearn.core.compilation import njit
from preflearn.core.gram import fixed
from preflearn.pairs import Pairs
from preflearn.path import margin_set, ranksvm_path
from preflearn.path.margin_set import empty_margin_set, solve

# parts of the compiled code, tested separately
append = njit(margin_set.append_to_factor)
delete = njit(margin_set.delete_from_factor)


@pytest.mark.parametrize("seed", range(40))
def test_items_that_are_nearly_equal(seed):
    """Pairs that are dependent up to 1e-7 are replayed as they were followed."""
    rng = np.random.default_rng(seed)
    base = rng.integers(-2, 3, (3, 2)).astype(float)
    X = base[rng.integers(3, size=6)] + 1e-7 * rng.standard_normal((6, 2))
    first = rng.integers(6, size=6)
    index = np.column_stack([first, (first + rng.integers(1, 6, size=6)) % 6])
    path = ranksvm_path(Pairs(X, index), np.ones(6, dtype=int), "linear")
    assert max((path.kkt_residual(lam) for lam in path.breakpoints), default=0) < 1e-6
    start = path.breakpoints[0] if len(path.breakpoints) else 1.0
    for lam in start * np.array([0.9, 0.1, 1e-2, 1e-3]):
        assert path.kkt_residual(max(lam, path.lambda_end)) < 1e-8


def test_memory_is_that_of_the_items_and_of_vectors():
    # the Gram matrix of the 22,500 pairs would take 4 GB
    pairs, y = two_classes(300, seed=0, p=5)
    ranksvm_path(pairs, y, gamma=0.2, max_events=10)
    tracemalloc.start()
    path = ranksvm_path(pairs, y, gamma=0.2, lambda_min=20.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(path.breakpoints) > 1000
    assert peak < 40e6


def take(gram, K, place, value, tau):
    column = K[place, gram.places[: gram.size[0]]] + tau
    return append(gram, column, K[place, place] + tau, place, value, 1.0, 0.0)


def product(gram):
    n = gram.size[0]
    U = np.triu(gram.factor[:n, :n], 1) + np.eye(n)
    return U.T * np.diag(gram.factor)[:n] @ U


@given(
    st.integers(2, 20),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.7]),
    st.integers(0, 2**31),
)
def test_margin_set_keeps_its_factor(m, rank, tau, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, rank))
    K = fixed(X @ X.T)
    factor = empty_margin_set(m, 1).gram
    every = rng.standard_normal(m)
    inside = []
    for place in rng.integers(0, m, 30):
        if place in inside:
            delete(factor, inside.index(place))
            inside.remove(place)
        elif take(factor, K, int(place), every[place], tau):
            inside.append(int(place))
        n = len(inside)
        assert factor.places[:n].tolist() == inside
        if n == 0:
            continue
        gram = K[np.ix_(inside, inside)]
        if np.linalg.cond(gram + tau) > 1e8:
            return  # rounding decides which rows are dependent
        assert n <= rank + (tau > 0)
        np.testing.assert_allclose(
            product(factor), gram + tau, atol=1e-10 * np.abs(K).max()
        )
        values = every[inside]
        delta = np.empty(m)
        total = rng.standard_normal() if tau else 0.0
        shift = solve(factor, delta, total, tau)
        delta = delta[:n]
        scale = 1e-9 * np.abs(delta).max() * np.abs(gram).max()
        np.testing.assert_allclose(gram @ delta + shift, values, atol=scale)
        if tau:
            assert delta.sum() == pytest.approx(total, abs=scale)
        else:
            assert shift == 0


def test_solutions_of_an_ill_conditioned_margin_set_are_backward_stable():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    K = fixed(rbf_kernel(X, gamma=0.5))
    factor = empty_margin_set(300, 1).gram
    signs = np.sign(X[:, 0])
    inside = [
        place for place in range(300) if take(factor, K, place, signs[place], 1.0)
    ]
    for place in inside[1:40:3]:
        delete(factor, place)
    inside = factor.places[: factor.size[0]]
    gram = K[np.ix_(inside, inside)]
    values = signs[inside]
    delta = np.empty(300)
    assert np.linalg.cond(gram + 1.0) > 1e12
    shift = solve(factor, delta, 0.0, 1.0)
    delta = delta[: len(inside)]
    residual = gram @ delta + shift - values
    assert np.abs(residual).max() < 1e-14 * np.abs(delta).sum()
