"""The analogy kernel compared with eq. 5 in fractions, and its order of summation."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import config

from preflearn.analogy.kernel import analogy_kernel, check_differences

ZEROS = ("apart", "positive")
TINY = 5e-324  # the smallest positive number
POINTS = [
    0.0,
    -0.0,
    1.0,
    0.5,
    1 / 3,
    2**-53,
    1e-300,
    TINY,
    1 - 2**-53,
    np.nextafter(0.5, 1),
    0.1,
    0.1,
]
POINTS += [-u for u in POINTS]

numbers = st.floats(-1, 1) | st.sampled_from(POINTS)


@st.composite
def differences(draw, most=12, d=None):
    shape = (draw(st.integers(1, most)), draw(st.integers(1, 6)) if d is None else d)
    size = shape[0] * shape[1]
    return np.array(draw(st.lists(numbers, min_size=size, max_size=size))).reshape(
        shape
    )


def sign(u, zero):
    if u == 0:
        return 0 if zero == "apart" else 1
    return 1 if u > 0 else -1


def proportion(u, v, zero):
    """Eq. 5 for exact numbers."""
    u = Fraction(float(u))
    v = Fraction(float(v))
    return 1 - abs(u - v) if sign(u, zero) == sign(v, zero) else Fraction(0)


def mean(u, v, zero):
    return sum(proportion(*pair, zero) for pair in zip(u, v, strict=True)) / len(u)


@pytest.mark.parametrize("zero", ZEROS)
def test_one_feature_has_the_values_of_eq_5_up_to_the_last_digit(zero):
    K = analogy_kernel(np.reshape(POINTS, (-1, 1)), zero=zero)
    for (i, u), (j, v) in product(enumerate(POINTS), repeat=2):
        exact = proportion(u, v, zero)
        assert abs(Fraction(K[i, j]) - exact) <= Fraction(1, 2**52)
        assert K[i, j] == 0 or sign(u, zero) == sign(v, zero)


@given(differences(d=3), differences(d=3), st.sampled_from(ZEROS))
def test_the_cross_gram_matrix_is_the_mean_over_features(U, V, zero):
    K = analogy_kernel(U, V, zero=zero)
    assert K.shape == (len(U), len(V))
    for i, j in np.ndindex(K.shape):
        assert abs(Fraction(K[i, j]) - mean(U[i], V[j], zero)) <= Fraction(5, 2**53)


@pytest.mark.parametrize("d", [1, 4, 5, 28, 107])
@pytest.mark.parametrize("zero", ZEROS)
def test_large_matrices_agree_with_a_plain_formula(d, zero):
    rng = np.random.default_rng(d)
    U = rng.uniform(-1, 1, (530, d))
    V = rng.uniform(-1, 1, (270, d))
    U[rng.random(U.shape) < 0.2] = 0
    V[:200] = np.where(rng.random((200, d)) < 0.5, U[:200], V[:200])
    plain = np.zeros((530, 270))
    for u, v in zip(U.T, V.T, strict=True):
        signs = [
            np.where(w < 0, -1, 1) if zero == "positive" else np.sign(w) for w in (u, v)
        ]
        plain += (
            np.where(np.equal.outer(*signs), 1 - np.abs(np.subtract.outer(u, v)), 0) / d
        )
    np.testing.assert_allclose(
        analogy_kernel(U, V, zero=zero), plain, rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("degree", [2, 7, 20])
def test_degree_is_a_power(degree):
    U = np.random.default_rng(0).uniform(-1, 1, (50, 5))
    K = analogy_kernel(U)
    np.testing.assert_allclose(
        analogy_kernel(U, degree=degree), K**degree, rtol=1e-14 * degree
    )


@given(differences(), st.sampled_from(ZEROS), st.integers(1, 5))
def test_gram_is_symmetric_with_ones_and_equals_the_cross_gram(U, zero, degree):
    K = analogy_kernel(U, degree=degree, zero=zero)
    assert (K == K.T).all()
    assert (K.diagonal() == 1).all()
    assert (analogy_kernel(U, U, degree, zero=zero) == K).all()
    assert ((K >= 0) & (K <= 1)).all()


@pytest.mark.parametrize("n", [1, 256, 257, 777])
@pytest.mark.parametrize("d", [3, 49])
def test_blocks_fit_together(n, d):
    """Each entry depends on its own two pairs only, whether or not its block is
    mirrored."""
    U = np.random.default_rng(n).uniform(-1, 1, (n, d))
    K = analogy_kernel(U, degree=2)
    assert (analogy_kernel(U, U, 2) == K).all()
    order = np.random.default_rng(1).permutation(n)
    assert (analogy_kernel(U[order], degree=2) == K[np.ix_(order, order)]).all()


@pytest.mark.parametrize(
    "V", [None, np.random.default_rng(1).uniform(-1, 1, (1500, 6))]
)
def test_the_number_of_threads_does_not_change_the_bits(V, monkeypatch):
    U = np.random.default_rng(0).uniform(-1, 1, (1500, 6))
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(config, "NUMBA_NUM_THREADS", threads)
        found.append(analogy_kernel(U, V, 2))
    assert (found[0] == found[1]).all()


def test_takes_any_array_of_numbers_and_leaves_it_as_it_is():
    U = np.random.default_rng(0).integers(-4, 5, (40, 6)) / 4
    K = analogy_kernel(U)
    frozen = U.copy()
    frozen.setflags(write=False)
    for same in (U.tolist(), U.astype(np.float32), np.asfortranarray(U), frozen):
        assert (analogy_kernel(same) == K).all()
        assert (analogy_kernel(U, same) == K).all()


def test_rounding_outside_is_clipped():
    U = np.array([[1 + 5e-10, -1 - 5e-10]])
    assert check_differences(U).tolist() == [[1, -1]]
    assert analogy_kernel(U, [[1, -1]]).tolist() == [[1]]
    assert U[0, 0] > 1


U = [[0.5, 0.0], [0.25, -0.5]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"U": [[0.5, 1.5]]}, r"U\[0, 1\] is 1.5.*scale"),
        ({"U": U, "V": [[0.5, -1 - 2e-9]]}, r"V\[0, 1\] is -1.000000002"),
        ({"U": U, "V": [[0.5]]}, "^V "),
        ({"U": [[0.5, np.nan]]}, r"U\[0, 1\] is nan"),
        ({"U": [0.5, 0.0]}, "^U "),
        ({"U": U, "degree": 0}, "degree is 0"),
        ({"U": U, "degree": 1e300}, "degree is 1e"),
        ({"U": U, "zero": "negative"}, "zero is 'negative'"),
    ],
)
def test_bad_input_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        analogy_kernel(**arguments)


@pytest.mark.parametrize("zero", ZEROS)
@pytest.mark.parametrize("degree", [1, 3])
def test_few_columns_have_the_bits_of_many(degree, zero):
    rng = np.random.default_rng(0)
    U = rng.uniform(-1, 1, (300, 5))
    V = rng.uniform(-1, 1, (20, 5))
    K = analogy_kernel(U, V, degree, zero=zero)
    for few in (1, 3, 7, 8):
        assert (analogy_kernel(U, V[:few], degree, zero=zero) == K[:, :few]).all()
