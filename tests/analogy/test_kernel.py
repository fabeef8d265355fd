from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import config

from preflearn.analogy.kernel import analogy_kernel, check_differences

ZEROS = ("apart", "positive")
TINY = 5e-324  # the least positive number
POINTS = [0.0, -0.0, 1.0, 0.5, 1 / 3, 2**-53, 1e-300, TINY, 1 - 2**-53, np.nextafter(0.5, 1), 0.1, 0.1]
POINTS += [-u for u in POINTS]

numbers = st.floats(-1, 1) | st.sampled_from(POINTS)


@st.composite
def differences(draw, most=12, d=None):
    shape = (draw(st.integers(1, most)), draw(st.integers(1, 6)) if d is None else d)
    size = shape[0] * shape[1]
    return np.array(draw(st.lists(numbers, min_size=size, max_size=size))).reshape(shape)


def sign(u, zero):
    if u == 0:
        return 0 if zero == "apart" else 1
    return 1 if u > 0 else -1


def proportion(u, v, zero):
    """Eq. 5, of exact numbers."""
    u, v = Fraction(float(u)), Fraction(float(v))
    return 1 - abs(u - v) if sign(u, zero) == sign(v, zero) else Fraction(0)


def mean(u, v, zero):
    return sum(proportion(*pair, zero) for pair in zip(u, v, strict=True)) / len(u)


@pytest.mark.parametrize("zero", ZEROS)
def test_one_feature_is_eq_5_of_exact_numbers_up_to_the_last_digit(zero):
    K = analogy_kernel(np.reshape(POINTS, (-1, 1)), zero=zero)
    for (i, u), (j, v) in product(enumerate(POINTS), repeat=2):
        exact = proportion(u, v, zero)
        assert abs(Fraction(K[i, j]) - exact) <= Fraction(1, 2**52)
        assert K[i, j] == 0 or sign(u, zero) == sign(v, zero)


@given(differences(d=3), differences(d=3), st.sampled_from(ZEROS))
def test_cross_gram_is_the_mean_of_exact_numbers(U, V, zero):
    K = analogy_kernel(U, V, zero=zero)
    assert K.shape == (len(U), len(V))
    for i, j in np.ndindex(K.shape):
        assert abs(Fraction(K[i, j]) - mean(U[i], V[j], zero)) <= Fraction(5, 2**53)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8, 28, 49, 107])
@pytest.mark.parametrize("zero", ZEROS)
def test_agrees_with_a_plain_formula_over_blocks(d, zero):
    rng = np.random.default_rng(d)
    U, V = rng.uniform(-1, 1, (530, d)), rng.uniform(-1, 1, (270, d))
    U[rng.random(U.shape) < 0.2] = 0
    V[:200] = np.where(rng.random((200, d)) < 0.5, U[:200], V[:200])
    plain = np.zeros((530, 270))
    for u, v in zip(U.T, V.T, strict=True):
        signs = [np.where(w < 0, -1, 1) if zero == "positive" else np.sign(w) for w in (u, v)]
        plain += np.where(np.equal.outer(*signs), 1 - np.abs(np.subtract.outer(u, v)), 0) / d
    np.testing.assert_allclose(analogy_kernel(U, V, zero=zero), plain, rtol=0, atol=1e-13)


@pytest.mark.parametrize("degree", [1, 2, 3, 6, 7, 20])
def test_degree_is_a_power(degree):
    U = np.random.default_rng(0).uniform(-1, 1, (50, 5))
    K = analogy_kernel(U)
    np.testing.assert_allclose(analogy_kernel(U, degree=degree), K**degree, rtol=1e-14 * degree)


@given(differences(), st.sampled_from(ZEROS), st.integers(1, 5))
def test_gram_is_symmetric_with_ones_and_equals_the_cross_gram(U, zero, degree):
    K = analogy_kernel(U, degree=degree, zero=zero)
    assert (K == K.T).all()
    assert (K.diagonal() == 1).all()
    assert (analogy_kernel(U, U, degree, zero=zero) == K).all()
    assert ((K >= 0) & (K <= 1)).all()


@pytest.mark.parametrize("n", [1, 7, 255, 256, 257, 300, 512, 600, 777])
@pytest.mark.parametrize("d", [3, 49])
def test_blocks_fit_together(n, d):
    """Mirrored or not, on any block: each entry is what its own two pairs say."""
    U = np.random.default_rng(n).uniform(-1, 1, (n, d))
    K = analogy_kernel(U, degree=2)
    assert (K == K.T).all()
    assert (K.diagonal() == 1).all()
    assert (analogy_kernel(U, U, 2) == K).all()
    order = np.random.default_rng(1).permutation(n)
    assert (analogy_kernel(U[order], degree=2) == K[np.ix_(order, order)]).all()


@pytest.mark.parametrize("V", [None, np.random.default_rng(1).uniform(-1, 1, (1500, 6))])
def test_number_of_threads_changes_no_bit(V, monkeypatch):
    U = np.random.default_rng(0).uniform(-1, 1, (1500, 6))
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(config, "NUMBA_NUM_THREADS", threads)
        found.append(analogy_kernel(U, V, 2))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_takes_any_array_of_numbers_and_leaves_it_as_it_is():
    U = np.random.default_rng(0).integers(-4, 5, (40, 6)) / 4
    K = analogy_kernel(U)
    frozen = U.copy()
    frozen.setflags(write=False)
    wide = np.repeat(U, 2, axis=1)[:, ::2]
    for same in (U.tolist(), U.astype(np.float32), np.asfortranarray(U), frozen, wide):
        assert (analogy_kernel(same) == K).all()
        assert (analogy_kernel(U, same) == K).all()


def test_rounding_outside_is_clipped():
    U = np.array([[1 + 5e-10, -1 - 5e-10]])
    assert check_differences(U).tolist() == [[1, -1]]
    assert analogy_kernel(U, [[1, -1]]).tolist() == [[1]]
    assert U[0, 0] > 1


U = [[0.5, 0.0], [0.25, -0.5]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.5, 1.5]],), r"U\[0, 1\] is 1.5; expected differences .* from -1 to 1; scale"),
        ((U, [[0.5, -1 - 2e-9]]), r"V\[0, 1\] is -1.000000002; expected differences"),
        ((U, [[0.5]]), r"V has shape \(1, 1\); expected \(N2, 2\): one row a pair, one column a feature"),
        (([[0.5, np.nan]],), r"U\[0, 1\] is nan; expected finite"),
        ((np.empty((0, 2)),), "U is empty"),
        ((U, np.empty((0, 2))), "V is empty"),
        (([0.5, 0.0],), r"U has shape \(2,\); expected \(N, d\)"),
        ((U, None, 0), "degree is 0; expected a whole number of at least 1"),
        ((U, None, 1.5), "degree is 1.5; expected a whole number"),
        ((U, None, 1, "negative"), "zero is .*; expected 'apart' or 'positive'"),
        ((U, None, 1e300), r"degree is 1e\+300; expected .* at most 2\*\*53"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        analogy_kernel(*arguments[:3], **dict(zip(["zero"], arguments[3:], strict=False)))


@pytest.mark.parametrize("zero", ZEROS)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_few_columns_have_the_bits_of_many(degree, zero):
    rng = np.random.default_rng(0)
    U, V = rng.uniform(-1, 1, (300, 5)), rng.uniform(-1, 1, (20, 5))
    K = analogy_kernel(U, V, degree, zero=zero)
    for few in (1, 3, 7, 8):
        found = analogy_kernel(U, V[:few], degree, zero=zero)
        assert found.shape == (300, few)
        assert (found == K[:, :few]).all()
