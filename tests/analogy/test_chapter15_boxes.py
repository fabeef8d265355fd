"""The theorem boxes of chapter 15 and remarks on them, checked exactly on random and
adversarial points."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from property_examples import examples
from reference import determinant, rank

from preflearn.analogy import analogy_kernel, psd_certificate
from preflearn_book.studies.ch15_proportions import proportion, proportion_gram

HALF = Fraction(1, 2)
CONVENTIONS = ("apart", "positive")


def sign(u, zero):
    return (u > 0) - (u < 0) or (1 if zero == "positive" else 0)


def kappa(u, v, zero="apart"):
    """Degree of analogy of eq. 6."""
    return 1 - abs(u - v) if sign(u, zero) == sign(v, zero) else Fraction(0)


def unsigned(u, v):
    return 1 - abs(u - v)


def clipped(u, v):
    return max(Fraction(0), 1 - abs(u - v))


def gram(kernel, points):
    return np.array([[kernel(u, v) for v in points] for u in points], dtype=object)


def is_psd(K):
    certificate = psd_certificate(K)
    assert certificate.verify(K)
    return certificate.psd


# Numbers with small denominators, floats, and neighbors of 0 and of the ends of the
# range.
adversarial = st.one_of(
    st.fractions(-1, 1, max_denominator=7),
    st.floats(-1, 1).map(Fraction),
    st.integers(-3, 3).map(lambda k: Fraction(k, 10**20)),
    st.integers(1, 1070).map(lambda k: Fraction(-(2.0**-k))),
    st.sampled_from(
        [Fraction(1), Fraction(-1), 1 - Fraction(1, 10**9), Fraction(1, 10**9) - 1]
    ),
)
points = st.lists(st.fractions(-1, 1, max_denominator=40), min_size=1, max_size=7)
LEVELS = st.fractions(-1, 1, max_denominator=12)
numbers = st.lists(st.fractions(-2, 2, max_denominator=30), min_size=2, max_size=6)


# ---- The lemma


@pytest.mark.theorem("thm-c15-lemma")
@example([Fraction(0), Fraction(2)])  # at this range the determinant changes its sign
@example([Fraction(-1), Fraction(0), Fraction(1)])
@example([Fraction(-1), HALF, Fraction(1) + Fraction(1, 10**30)])
@example([HALF, HALF])
@given(numbers)
def test_the_determinant_in_closed_form(mu):
    mu = sorted(mu)
    n = len(mu)
    gaps = [b - a for a, b in itertools.pairwise(mu)]
    value = determinant(gram(unsigned, mu))
    assert value == Fraction(2) ** (n - 2) * (2 - mu[-1] + mu[0]) * math.prod(gaps)
    if all(gaps):
        assert (value > 0) == (mu[-1] - mu[0] < 2)
        assert (value < 0) == (mu[-1] - mu[0] > 2)


# ---- Theorem 1


@pytest.mark.theorem("thm-c15-psd")
@pytest.mark.parametrize("zero", CONVENTIONS)
@example(u=[Fraction(k, 8) for k in range(-8, 9)])  # equal steps from -1 to 1
@example(u=[HALF, HALF, -HALF, Fraction(0), Fraction(0)])
@examples(60)
@given(u=st.lists(adversarial, min_size=2, max_size=8))
def test_gram_matrices_are_certified_with_the_rank_of_the_theorem(zero, u):
    certificate = psd_certificate(gram(lambda u, v: kappa(u, v, zero), u))
    assert certificate.psd
    assert certificate.rank == len(set(u))


@pytest.mark.theorem("thm-c15-psd")
@pytest.mark.parametrize("zero", CONVENTIONS)
@examples(20)
@given(
    rows=st.lists(
        st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=7
    ),
    degree=st.integers(1, 4),
)
def test_means_over_features_and_their_powers(zero, rows, degree):
    d = 3

    def kernel(u, v):
        values = [
            kappa(Fraction(a, 3), Fraction(b, 3), zero)
            for a, b in zip(u, v, strict=True)
        ]
        return (sum(values) / d) ** degree

    K = gram(kernel, rows)
    assert is_psd(K)
    ours = analogy_kernel(np.array(rows) / 3, degree=degree, zero=zero)
    np.testing.assert_allclose(ours, K.astype(float), atol=1e-14)
    if degree == 1:  # K has the rank of the indicators "feature k equals t"
        levels = [
            [int(row[k] == t) for row in rows] for k in range(d) for t in range(-3, 4)
        ]
        assert psd_certificate(K).rank == rank(levels)
    if degree >= d:
        assert psd_certificate(K).rank == len(set(map(tuple, rows)))


# ---- The length


@pytest.mark.theorem("thm-c15-length")
@example([Fraction(0), Fraction(1)], Fraction(2))
@example([Fraction(0), HALF, Fraction(1)], 2 + Fraction(1, 10**30))
@given(
    st.lists(st.fractions(0, 1, max_denominator=30), max_size=5),
    st.fractions(Fraction(1, 10), 4),
)
def test_without_signs_it_is_a_kernel_up_to_the_length_two(share, length):
    u = [Fraction(0), *(length * s for s in share), length]
    assert is_psd(gram(unsigned, u)) == (length <= 2)


@pytest.mark.theorem("thm-c15-length")
@pytest.mark.parametrize("zero", CONVENTIONS)
@example(share=[Fraction(-1), Fraction(1), Fraction(1, 10**9)], reach=Fraction(2))
@given(share=points, reach=st.fractions(Fraction(1, 10), 3))
def test_with_signs_it_is_a_kernel_up_to_two_on_both_sides(zero, share, reach):
    # small enough for a counterexample
    least = (reach - 2) / 3 if reach > 2 else reach / 10**6
    u = [*(reach * s for s in share), reach, -reach, least, -least, Fraction(0)]
    assert is_psd(gram(lambda u, v: kappa(u, v, zero), u)) == (reach <= 2)


# ---- Equivalences


def transitive(E):
    strongest = E[:, :, None] + E[None, :, :] - 1
    return bool((np.maximum(strongest, 0 * strongest) <= E[:, None, :]).all())


def lukasiewicz(E):
    n = len(E)
    return (
        (E >= 0).all()
        and (E <= 1).all()
        and all(E[i, i] == 1 for i in range(n))
        and transitive(E)
    )


@pytest.mark.theorem("thm-c15-equivalence")
@pytest.mark.parametrize("zero", CONVENTIONS)
@example(
    u=[Fraction(-1), Fraction(0), Fraction(1), Fraction(1, 10**9), Fraction(-1, 10**9)]
)
@given(u=points)
def test_the_thresholded_relation_is_an_equivalence(zero, u):
    assert lukasiewicz(gram(lambda u, v: kappa(u, v, zero), u))


@pytest.mark.theorem("thm-c15-equivalence")
@example([Fraction(0), Fraction(1)])
@example([Fraction(-1), Fraction(0), Fraction(1)])
@given(numbers)
def test_without_the_threshold_it_is_an_equivalence_up_to_the_distance_one(u):
    assert lukasiewicz(gram(unsigned, u)) == (max(u) - min(u) <= 1)
    assert lukasiewicz(gram(clipped, u))
    assert is_psd(gram(clipped, u))


# ---- The model of degree 1


@pytest.mark.theorem("thm-c15-additive")
@pytest.mark.parametrize("zero", CONVENTIONS)
@example(rows=[(Fraction(1), HALF), (Fraction(-1), HALF), (Fraction(0), -HALF)], seed=0)
@example(rows=[(Fraction(0), Fraction(1)), (Fraction(-1), Fraction(0))], seed=0)
@given(
    rows=st.lists(st.tuples(LEVELS, LEVELS), min_size=1, max_size=6),
    seed=st.integers(0, 2**31),
)
def test_components_are_piecewise_linear_and_their_squared_lengths_add_up(
    zero, rows, seed
):
    c = np.array(
        [
            Fraction(int(k), 3)
            for k in np.random.default_rng(seed).integers(-9, 10, len(rows))
        ]
    )
    p = 2
    square = Fraction(0)
    K = 0
    for column in zip(*rows, strict=True):

        def g(v, column=column):
            return c @ [kappa(a, v, zero) for a in column] / p

        numbers = [g(Fraction(0))] if zero == "apart" else []
        assert numbers in (
            [],
            [sum(weight for a, weight in zip(column, c, strict=True) if a == 0) / p],
        )
        square += sum(numbers) ** 2
        for s in (1, -1):
            own = [
                (abs(a), weight / p)
                for a, weight in zip(column, c, strict=True)
                if sign(a, zero) == s
            ]
            total = sum(weight for _, weight in own)
            knots = sorted({Fraction(0), Fraction(1), *(a for a, _ in own)})
            near = s * knots[1] / 2  # a point below the first knot
            # limit at 0+ or 0-, since g is linear there
            limit = 2 * g(near / 2) - g(near)
            values = [limit, *(g(s * a) for a in knots[1:])]
            slopes = []
            assert limit + values[-1] == total
            pieces = zip(
                itertools.pairwise(knots), itertools.pairwise(values), strict=True
            )
            for (a, b), (low, high) in pieces:
                slopes.append((high - low) / (b - a))
                # linear between knots
                for share in (Fraction(1, 4), HALF, Fraction(3, 4)):
                    assert g(s * (a + (b - a) * share)) == low + (high - low) * share
                square += HALF * slopes[-1] ** 2 * (b - a)
            assert slopes[0] == total - 2 * sum(
                weight for a, weight in own if a == 0
            )  # the slopes decrease from 0 on
            assert slopes[-1] == -total or any(a == 1 for a, _ in own)
            numbers.append(limit + values[-1])
            square += HALF * numbers[-1] ** 2
        assert sum(numbers) == sum(c) / p
        K = K + gram(lambda u, v: kappa(u, v, zero), column) / Fraction(p)
    assert c @ K @ c == p * square


@pytest.mark.theorem("thm-c15-additive")
@given(
    u=st.lists(
        st.fractions(Fraction(1, 40), 1, max_denominator=40),
        min_size=1,
        max_size=7,
        unique=True,
    ),
    seed=st.integers(0, 2**31),
)
def test_every_function_that_meets_the_conditions_is_a_component(u, seed):
    # The values at the knots are free; the two conditions give the values at 0 and at
    # 1.
    u = sorted(u)
    halves = np.random.default_rng(seed).integers(-9, 10, len(u)).tolist()
    at = {a: Fraction(k, 2) for a, k in zip(u, halves, strict=True)}
    total = (at[u[0]] + at[u[-1]]) / (2 + u[0] - u[-1])
    at[Fraction(0)], at[Fraction(1)] = (
        at[u[0]] - total * u[0],
        at[u[-1]] - total * (1 - u[-1]),
    )
    assert at[Fraction(0)] + at[Fraction(1)] == total  # the slope before the first knot
    K = gram(unsigned, u)
    # The slope falls by 2 c_i at u_i, and the c_i add up to the total.
    places = sorted(at)
    slope = [(at[b] - at[a]) / (b - a) for a, b in itertools.pairwise(places)]
    c = [(slope[i] - slope[i + 1]) / 2 for i in range(len(slope) - 1)]
    c = np.array([*c, total - sum(c, Fraction(0))][: len(u)], dtype=object)
    assert (K @ c == np.array([at[a] for a in u], dtype=object)).all()
    energy = sum(
        ((at[b] - at[a]) ** 2 / (b - a) for a, b in itertools.pairwise(places)),
        Fraction(0),
    )
    assert c @ K @ c == HALF * energy + HALF * (at[Fraction(0)] + at[Fraction(1)]) ** 2


# ---- The other proportions


NUMBERS = st.fractions(0, 1, max_denominator=12)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8)


@pytest.mark.theorem("thm-c15-geometric")
@pytest.mark.parametrize("zero", CONVENTIONS)
@example(pairs=[(0, 0), (0, 1), (1, 0), (1, 1), (HALF, 1)])
@given(pairs=PAIRS)
def test_the_geometric_proportion_is_a_kernel(zero, pairs):
    K = proportion_gram("geometric", pairs, zero=zero)
    assert is_psd(K)

    def quotient(p, q):
        low, high = sorted((Fraction(p[0] * q[1]), Fraction(p[1] * q[0])))
        return low / high if high else Fraction(0)

    assert is_psd(gram(quotient, pairs))  # without the threshold
    for i, j in itertools.product(range(len(pairs)), repeat=2):
        if not all((*pairs[i], *pairs[j])):
            assert K[i, j] == 0
        elif K[i, j]:
            x, y = (math.log(a / b) for a, b in (pairs[i], pairs[j]))
            assert math.exp(-abs(x - y)) == pytest.approx(float(K[i, j]), rel=1e-12)


@pytest.mark.theorem("thm-c15-geometric")
@pytest.mark.parametrize("zero", CONVENTIONS)
@example(pairs=[(0, 0), (0, 1), (1, 0), (1, 1), (HALF, 1)])
@given(pairs=PAIRS)
def test_the_softened_proportion_is_a_kernel(zero, pairs):
    assert is_psd(proportion_gram("softened", pairs, zero=zero))


@pytest.mark.theorem("thm-c15-geometric")
@example(pairs=[(0, 0), (0, 1), (1, 0), (1, 1), (HALF, 1)])
@given(pairs=PAIRS)
def test_the_clipped_proportion_is_a_kernel_with_all_axioms(pairs):
    K = proportion_gram("clipped", pairs)
    assert is_psd(K)
    assert lukasiewicz(K)
    a, b = np.array(pairs, dtype=object).T
    assert (proportion("clipped", a, b, a[:, None], b[:, None]) == K).all()
    assert (proportion("clipped", a[:, None], a, b[:, None], b) == K).all()
    assert ((K == 1) == (np.subtract.outer(a - b, a - b) == 0)).all()


# ---- General equivalences and kernels


def equivalence_polytope(n):
    """Return the constraints A x <= b on the values of an equivalence for each pair of
    n points, and the pairs."""
    sides = list(itertools.combinations(range(n), 2))
    place = {side: k for k, side in enumerate(sides)}
    unit = np.eye(len(sides), dtype=int)
    triangles = [
        unit[place[min(i, j), max(i, j)]]
        + unit[place[min(j, k), max(j, k)]]
        - unit[place[i, k]]
        for i, j, k in itertools.permutations(range(n), 3)
        if i < k
    ]
    A = np.vstack([-unit, unit, triangles])
    b = np.array([0] * len(sides) + [1] * (len(sides) + len(triangles)))
    return A, b, sides


def matrix(values, sides, n):
    K = np.full((n, n), Fraction(1), dtype=object)
    for (i, j), value in zip(sides, values, strict=True):
        K[i, j] = K[j, i] = value
    return K


@pytest.mark.parametrize(("n", "count"), [(3, 5), (4, 19)])
def test_on_up_to_four_points_each_lukasiewicz_equivalence_is_a_kernel(n, count):
    # Semi-definite matrices form a convex set, so it is enough to test the vertices of
    # the polytope. These are the points at which as many independent conditions as
    # unknowns hold with equality.
    A, b, sides = equivalence_polytope(n)
    chosen = np.array(list(itertools.combinations(range(len(A)), len(sides))))
    systems = A[chosen]
    regular = np.abs(np.linalg.det(systems)) > 0.5  # determinants of integer matrices
    solutions = np.linalg.solve(systems[regular], b[chosen][regular][..., None])[..., 0]
    inside = (solutions @ A.T <= b + 1e-9).all(axis=1)
    doubled = np.unique(np.round(2 * solutions[inside]), axis=0)
    np.testing.assert_allclose(
        2 * solutions[inside], np.round(2 * solutions[inside]), rtol=0, atol=1e-9
    )
    assert len(doubled) == count
    whole = 0
    for values in doubled:
        K = matrix([Fraction(int(value), 2) for value in values], sides, n)
        assert lukasiewicz(K)
        assert is_psd(K)
        whole += not (values % 2).any()
    assert whole == {3: 5, 4: 15}[n]  # numbers of partitions of n points


# ---- Combinations


def least_of_features(u, v):
    return min(kappa(a, b) for a, b in zip(u, v, strict=True))


def test_the_minimum_over_two_features_is_a_kernel():
    thirds = [Fraction(k, 3) for k in range(-3, 4)]
    assert is_psd(gram(least_of_features, list(itertools.product(thirds, repeat=2))))
    square = list(itertools.product(thirds[4:], repeat=2))
    turned = gram(
        lambda u, v: 1 - abs(sum(u) - sum(v)) / 2 - abs(u[0] - u[1] - v[0] + v[1]) / 2,
        square,
    )
    assert (turned == gram(least_of_features, square)).all()


def test_the_minimum_of_the_arithmetic_and_the_geometric_kernel_is_not_a_kernel():
    fortieths = [(38, 17), (33, 14), (18, 15), (36, 21), (29, 16), (5, 4), (23, 12)]
    pairs = [(Fraction(a, 40), Fraction(b, 40)) for a, b in fortieths]
    assert not is_psd(
        np.minimum(
            proportion_gram("arithmetic", pairs), proportion_gram("geometric", pairs)
        )
    )
