"""Certificates of positive semi-definiteness: exact proofs, exact refutations, and
changed certificates."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference import determinant
from scipy import sparse

from preflearn.analogy import psd_certificate

HALF = Fraction(1, 2)


def principal_minors(K):
    n = len(K)
    subsets = (
        rows
        for size in range(1, n + 1)
        for rows in itertools.combinations(range(n), size)
    )
    return [determinant([[K[i][j] for j in rows] for i in rows]) for rows in subsets]


def certified(K):
    certificate = psd_certificate(K)
    assert certificate.verify(K)
    assert (
        certificate.psd == (certificate.witness is None) == (certificate.value is None)
    )
    assert (
        len(certificate.pivots)
        == len(certificate.order)
        == len(certificate.rows)
        == certificate.rank
    )
    if not certificate.psd:
        x = certificate.witness
        value = sum(
            x[i] * Fraction(K[i][j]) * x[j]
            for i in range(len(x))
            for j in range(len(x))
        )
        assert value == certificate.value < 0
        assert all(entry.denominator == 1 for entry in x)
        assert math.gcd(*(int(entry) for entry in x)) == 1
    return certificate


@st.composite
def symmetric(draw, largest=4):
    n = draw(st.integers(1, largest))
    entries = st.integers(-2, 2)
    K = draw(hnp.arrays(np.int64, (n, n), elements=entries))
    return (
        np.tril(K) + np.tril(K, -1).T + draw(st.integers(0, 2)) * np.eye(n, dtype=int)
    )


@given(symmetric())
def test_semidefinite_if_and_only_if_all_principal_minors_are(K):
    assert certified(K).psd == (min(principal_minors(K.tolist())) >= 0)


@given(st.integers(1, 7), st.integers(0, 7), st.integers(0, 2**31))
def test_sums_of_squares_have_the_rank_of_their_factor(n, r, seed):
    rng = np.random.default_rng(seed)
    B = [
        [Fraction(int(k), int(q)) for k, q in zip(*row, strict=True)]
        for row in zip(
            rng.integers(-3, 4, (r, n)), rng.integers(1, 5, (r, n)), strict=True
        )
    ]
    K = [
        [sum((row[i] * row[j] for row in B), Fraction(0)) for j in range(n)]
        for i in range(n)
    ]
    certificate = certified(K)
    assert certificate.psd
    assert certificate.rank == (
        np.linalg.matrix_rank(np.array(B, dtype=float)) if r else 0
    )
    assert min(certificate.pivots, default=1) > 0
    if certificate.rank == n <= 5:
        assert math.prod(certificate.pivots) == determinant(K)


@given(st.integers(2, 7), st.integers(0, 2**31))
def test_a_negative_eigenvalue_far_below_rounding_is_found(n, seed):
    rng = np.random.default_rng(seed)
    z = [int(k) for k in rng.integers(-3, 4, n)]
    z[0] = 1
    # (z'z I - zz')^2 has z in its null space. Adding -zz' times 1e-40 makes only that
    # direction negative.
    square = sum(k * k for k in z)
    P = np.array(
        [[square * (i == j) - z[i] * z[j] for j in range(n)] for i in range(n)],
        dtype=object,
    )
    K = P @ P
    assert certified(K).psd
    assert certified(K).rank == n - 1
    tiny = Fraction(1, 10**40)
    assert not certified(K - tiny * np.outer(z, z)).psd
    assert certified(K + tiny * np.outer(z, z)).rank == n


def test_the_factors_of_a_matrix_worked_by_hand():
    certificate = certified([[1, 2, 0], [2, 8, 2], [0, 2, 2]])
    assert certificate.order == (1, 2, 0)
    assert certificate.pivots == (8, Fraction(3, 2), Fraction(1, 3))
    assert certificate.rows == ((2, 8, 2), (-4, 0, 12), (4, 0, 0))


def test_floats_are_exact_numbers():
    # `above` is larger than `third` by one unit in the last place
    above = 0.1 + 0.2
    third = 0.3
    assert certified([[above, third], [third, third]]).rank == 2
    assert not certified([[third, above], [above, third]]).psd
    assert certified([[1e-300, 1e-300], [1e-300, 1e-300]]).rank == 1
    assert not certified([[1e300, 1e-300], [1e-300, 0.0]]).psd
    assert certified([[5e-324]]).pivots == (Fraction(5e-324),)


def test_integers_next_to_floats_are_not_rounded():
    large = 2**53
    # large * (large + 2) is (large + 1)^2 - 1
    assert not certified([[1.0, large + 1], [large + 1, large * (large + 2)]]).psd
    assert certified([[1.0, large + 1], [large + 1, (large + 1) ** 2]]).rank == 1


@pytest.mark.parametrize("kind", [np.uint8, np.float32, bool, object])
def test_arrays_of_any_numbers_are_exact(kind):
    assert certified(np.ones((2, 2), dtype=kind)).rank == 1
    # the largest entry does not overflow
    K = np.full((3, 3), 2**62) + np.diag([1, 0, 0])
    assert certified(K).rank == 2


def test_a_certificate_does_not_hold_for_another_matrix():
    K = [[2, 1], [1, 2]]
    L = [[1, 2], [2, 1]]
    singular = [[2, 1, 3], [1, 2, 3], [3, 3, 6]]
    for certificate, other in itertools.product(
        (psd_certificate(K), psd_certificate(L), psd_certificate(singular)),
        (
            [[2, 0], [0, 2]],
            [[1, HALF], [HALF, 1]],
            [[2, 1, 0], [1, 2, 0], [0, 0, 0]],
            [[4]],
            [[-1]],
        ),
    ):
        assert not certificate.verify(other)
    assert not psd_certificate(L).verify(K)


GOOD = [[2, 1, 3], [1, 2, 3], [3, 3, 6]]
BAD = [[1, 2], [2, 1]]
FOUND = psd_certificate(GOOD)
REFUTED = psd_certificate(BAD)


@pytest.mark.parametrize(
    ("K", "certificate", "wrong"),
    [
        (GOOD, FOUND, {"rank": 3}),
        (GOOD, FOUND, {"order": FOUND.order[::-1]}),
        (GOOD, FOUND, {"pivots": tuple(2 * pivot for pivot in FOUND.pivots)}),
        (GOOD, FOUND, {"rows": FOUND.rows[::-1]}),
        (GOOD, FOUND, {"rows": tuple(row[:2] for row in FOUND.rows)}),
        (GOOD, FOUND, {"rows": FOUND.rows[:1], "order": FOUND.order[:1], "rank": 1}),
        (GOOD, FOUND, {"psd": False}),
        (GOOD, FOUND, {"value": Fraction(-1)}),
        (BAD, REFUTED, {"psd": True}),
        (BAD, REFUTED, {"value": REFUTED.value - 1}),
        (BAD, REFUTED, {"witness": REFUTED.witness[:1]}),
        (
            [[-1]],
            psd_certificate([[-1]]),
            {"psd": True, "witness": None, "rows": ((-1,),), "order": (0,)},
        ),
    ],
)
def test_every_part_of_a_certificate_is_verified(K, certificate, wrong):
    assert certificate.verify(K)
    assert not certificate._replace(**wrong).verify(K)


def test_dependent_squares_do_not_prove_the_rank():
    # 1 = 1/2 + 1/2: two rows and two pivots for a matrix of rank 1
    half = psd_certificate([[2]])
    twice = half._replace(
        rank=2, order=(0, 0), rows=((1,), (1,)), pivots=(Fraction(1), Fraction(1))
    )
    assert half.verify([[2]])
    assert not twice.verify([[2]])
    # These rows add up to the matrix, but elimination does not give them.
    K = [[2, 2], [2, 2]]
    same = ((1, 1), (1, 1))
    split = psd_certificate(K)._replace(
        rank=2, order=(0, 1), rows=same, pivots=(Fraction(1), Fraction(1))
    )
    assert sum(np.outer(row, row) for row in same).tolist() == K
    assert not split.verify(K)


@pytest.mark.parametrize(
    ("K", "words"),
    [
        (np.empty((0, 0)), "^K "),
        ([[1, 2]], "^K "),
        ([[1, 2], [2.5, 1]], r"K\[0, 1\] is 2.*K\[1, 0\].*2.5"),
        ([[1, math.nan], [math.nan, 1]], r"K\[0, 1\] is nan"),
        ([["1"]], r"K\[0, 0\] is '1'"),
        (sparse.eye_array(2), "^K .*dense"),
        (np.ma.masked_equal([[1, 0], [0, 1]], 0), "^K .*masked"),
    ],
)
def test_bad_matrices_are_named(K, words):
    with pytest.raises(ValueError, match=words):
        psd_certificate(K)
