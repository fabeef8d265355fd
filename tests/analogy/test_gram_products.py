"""Products with the analogy kernel by sorting, compared with the Gram matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import config
from property_examples import examples

from preflearn.analogy import AnalogyOperator, analogy_kernel

KINDS = ("continuous", "grid", "duplicates", "one sign", "zeros", "tiny")


def sample(kind, n, d, rng):
    U = rng.uniform(-1, 1, (n, d))
    if kind == "grid":
        return np.round(3 * U) / 3
    if kind == "duplicates":
        return U[rng.integers(0, max(1, n // 3), n)]
    if kind == "one sign":
        return np.abs(U)
    if kind == "zeros":
        # includes -0.0
        return np.where(rng.random((n, d)) < 0.7, 0.0, U) * rng.choice([-1, 1], (n, d))
    if kind == "tiny":
        return U * rng.choice([1, 1e-300, 5e-324, 2**-53], (n, d))
    return U


def error(found, K, v):
    """Return the maximum error relative to the sum of |v|."""
    assert found.shape == K.shape[:1]
    return np.abs(found - K @ v).max() / np.abs(v).sum()


@examples(200)
@given(
    st.sampled_from(KINDS), st.integers(1, 60), st.integers(1, 5), st.integers(0, 2**32)
)
def test_products_are_those_of_the_gram_matrix(kind, n, d, seed):
    rng = np.random.default_rng(seed)
    U = sample(kind, n, d, rng)
    v = rng.standard_normal(n)
    V = np.concatenate(
        [
            sample(kind, 9, d, rng),
            U[:3],
            np.zeros((1, d)),
            np.ones((1, d)),
            -np.ones((1, d)),
        ]
    )
    K = AnalogyOperator(U)
    assert error(K.times(v), analogy_kernel(U), v) < 1e-14
    assert error(K.cross(V, v), analogy_kernel(V, U), v) < 1e-14


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_thousands_of_pairs_are_those_of_the_gram_matrix(kind):
    rng = np.random.default_rng(1)
    U = sample(kind, 3000, 28, rng)
    v = rng.standard_normal(3000)
    V = sample(kind, 400, 28, rng)
    K = AnalogyOperator(U)
    assert error(K.times(v), analogy_kernel(U), v) < 1e-13
    assert error(K.cross(V, v), analogy_kernel(V, U), v) < 1e-13


def test_rounding_does_not_grow_with_the_number_of_pairs():
    """A plain sum of n equal terms has an error of about n / 2 roundings, here more
    than 1e-12."""
    rng = np.random.default_rng(2)
    n = 300_000
    U = rng.uniform(0, 1, (n, 2)) ** 9
    v = np.full(n, 0.1)
    rows = np.concatenate([rng.integers(0, n, 20), U.sum(axis=1).argsort()[[0, -1]]])
    found = AnalogyOperator(U).times(v)[rows]
    assert error(found, analogy_kernel(U[rows], U), v) < 1e-13


def test_the_number_of_threads_does_not_change_the_bits(monkeypatch):
    rng = np.random.default_rng(0)
    U = rng.uniform(-1, 1, (6000, 11))
    V = rng.uniform(-1, 1, (30, 11))
    v = rng.standard_normal(6000)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(config, "NUMBA_NUM_THREADS", threads)
        K = AnalogyOperator(U)
        found.append(np.concatenate([K.times(v), K.cross(V, v)]))
    assert (found[0] == found[1]).all()


def test_later_changes_of_the_differences_change_nothing():
    U = np.array([[0.5], [0.25]])
    K = AnalogyOperator(U)
    U[:] = 0
    assert K.times([1, 0]).tolist() == [1, 0.75]


U = [[0.5, 0.0], [0.25, -0.5]]


@pytest.mark.parametrize(
    ("v", "words"),
    [
        ([1.0], "^v "),
        ([1.0, np.nan], r"v\[1\] is nan"),
        ([1.0, -1e200], r"v\[1\] is -1e"),
    ],
)
def test_bad_weights_are_named(v, words):
    K = AnalogyOperator(U)
    for product in (K.times, lambda v: K.cross(U, v)):
        with pytest.raises(ValueError, match=words):
            product(v)


def test_bad_differences_are_named():
    with pytest.raises(ValueError, match=r"U\[0, 0\] is 2.0"):
        AnalogyOperator([[2.0]])
    for V, words in (([[0.5]], "^V "), ([[0.5, -2.0]], r"V\[0, 1\] is -2.0")):
        with pytest.raises(ValueError, match=words):
            AnalogyOperator(U).cross(V, [1, 1])
