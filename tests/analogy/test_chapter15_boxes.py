"""The boxes of chapter 15 and the remarks around them, exactly, on random and on adversarial points."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import determinant, rank

from preflearn.analogy import analogy_kernel, psd_certificate
from studies.ch15_proportions import proportion, proportion_gram

HALF = Fraction(1, 2)
CONVENTIONS = ("apart", "positive")


def sign(u, zero):
    return (u > 0) - (u < 0) or (1 if zero == "positive" else 0)


def kappa(u, v, zero="apart"):
    """Eq. 6, as printed."""
    return 1 - abs(u - v) if sign(u, zero) == sign(v, zero) else Fraction(0)


def unsigned(u, v):
    return 1 - abs(u - v)


def clipped(u, v):
    return max(Fraction(0), 1 - abs(u - v))


def stretched(u, zero):
    return u + sign(u, zero) if zero == "apart" else u - (u < 0)


def gram(kernel, points):
    return np.array([[kernel(u, v) for v in points] for u in points], dtype=object)


def is_psd(K):
    certificate = psd_certificate(K)
    assert certificate.verify(K)
    return certificate.psd


def adversarial(rng):
    """Some rationals in [-1, 1], drawn to break the theorem."""
    n = int(rng.integers(2, 9))
    kind = rng.choice(["grid", "clusters", "ends", "floats", "mirrored", "tiny", "steps"])
    if kind == "grid":  # many repetitions and zeros
        q = int(rng.choice([1, 2, 3, 7]))
        return [Fraction(int(k), q) for k in rng.integers(-q, q + 1, n)]
    if kind == "clusters":  # around 0 and two more places
        centres = np.array([Fraction(0), Fraction(int(rng.integers(-10, 11)), 11), Fraction(4, 7)])
        steps = np.array([Fraction(int(k), 10**20) for k in rng.integers(-2, 3, n)])
        return (centres[rng.integers(0, 3, n)] + steps).tolist()
    if kind == "ends":
        near = [Fraction(s) * (1 - Fraction(int(k), 10**9)) for s in (-1, 1) for k in rng.integers(0, 3, n)]
        return [*near, Fraction(0)]
    if kind == "floats":
        return [Fraction(u) for u in rng.uniform(-1, 1, n)]
    if kind == "mirrored":
        half = [Fraction(int(k), 60) for k in rng.integers(0, 61, n)]
        return [*half, *(-u for u in half)]
    if kind == "tiny":  # denormals and neighbours of 0
        return [Fraction(float(s) * 2.0 ** -float(k)) for s, k in zip(
            rng.choice([-1, 0, 1], n), rng.integers(1, 1070, n), strict=True)]  # fmt: skip
    return [Fraction(k, n) for k in range(-n, n + 1)]  # equal steps from end to end


points = st.lists(st.fractions(-1, 1, max_denominator=40), min_size=1, max_size=7)
LEVELS = st.fractions(-1, 1, max_denominator=12)
numbers = st.lists(st.fractions(-2, 2, max_denominator=30), min_size=2, max_size=6)


# ---- The lemma


@pytest.mark.theorem("thm-c15-lemma")
@example([Fraction(0), Fraction(2)])  # the range at which it turns
@example([Fraction(-1), Fraction(0), Fraction(1)])
@example([Fraction(-1), HALF, Fraction(1) + Fraction(1, 10**30)])
@example([HALF, HALF])
@given(numbers)
def test_the_determinant_in_closed_form(mu):
    mu = sorted(mu)
    n, gaps = len(mu), [b - a for a, b in itertools.pairwise(mu)]
    value = determinant(gram(unsigned, mu))
    assert value == Fraction(2) ** (n - 2) * (2 - mu[-1] + mu[0]) * math.prod(gaps)
    shuffled = [mu[i] for i in np.random.default_rng(n).permutation(n)]
    assert determinant(gram(unsigned, shuffled)) == value
    if all(gaps):
        assert (value > 0) == (mu[-1] - mu[0] < 2)
        assert (value < 0) == (mu[-1] - mu[0] > 2)


@pytest.mark.theorem("thm-c15-lemma")
@given(numbers)
def test_rows_less_the_row_above_are_signs_times_gaps(mu):
    mu = sorted(mu)
    K = gram(unsigned, mu)
    for i in range(1, len(mu)):
        gap = mu[i] - mu[i - 1]
        assert (K[i] - K[i - 1]).tolist() == [-gap] * i + [gap] * (len(mu) - i)


# ---- Theorem 1


@pytest.mark.theorem("thm-c15-psd")
@pytest.mark.parametrize("zero", CONVENTIONS)
def test_hundreds_of_adversarial_sets_are_proved(zero):
    rng = np.random.default_rng(15)
    for _ in range(300):
        u = adversarial(rng)
        K = gram(lambda u, v: kappa(u, v, zero), u)
        assert is_psd(K)
        assert psd_certificate(K).rank == len(set(u))  # invertible where differences are different


@pytest.mark.theorem("thm-c15-psd")
@pytest.mark.parametrize("zero", CONVENTIONS)
@given(u=points)
def test_sorted_the_matrix_has_a_block_for_each_sign(zero, u):
    u = sorted(u, reverse=True)
    K = gram(lambda u, v: kappa(u, v, zero), u)
    blocks = [list(block) for _, block in itertools.groupby(u, lambda u: sign(u, zero))]
    assert len(blocks) <= (3 if zero == "apart" else 2)
    assert determinant(K) == math.prod(determinant(gram(unsigned, block)) for block in blocks)
    for block in blocks:
        assert is_psd(gram(unsigned, block))


@pytest.mark.theorem("thm-c15-psd")
@pytest.mark.parametrize("zero", CONVENTIONS)
@example(u=[Fraction(-1), Fraction(0), Fraction(1), Fraction(0)])
@given(u=points)
def test_features_and_bins_give_the_matrix(zero, u):
    K = gram(lambda u, v: kappa(u, v, zero), u)
    # The integrals over t are sums over the intervals between places where something changes.
    cuts = sorted({Fraction(0), Fraction(1), *map(abs, u)})
    features = 0 * K
    for low, high in itertools.pairwise(cuts):
        for below, s in itertools.product((True, False), (-1, 0, 1)):
            phi = np.array([int((low < abs(a)) == below and sign(a, zero) == s) for a in u], dtype=object)
            features = features + (high - low) * np.outer(phi, phi)
    assert (features == K).all()
    cuts = sorted({Fraction(0), Fraction(1), *(stretched(a, zero) % 1 for a in u)})
    bins = 0 * K
    for low, high in itertools.pairwise(cuts):
        offset = (low + high) / 2
        bin_of = [math.floor(stretched(a, zero) - offset) for a in u]
        bins = bins + (high - low) * np.array([[int(a == b) for b in bin_of] for a in bin_of], dtype=object)
    assert (bins == K).all()
    hats = gram(lambda u, v: clipped(stretched(u, zero), stretched(v, zero)), u)
    assert (hats == K).all()


@pytest.mark.theorem("thm-c15-psd")
@pytest.mark.parametrize("zero", CONVENTIONS)
@settings(max_examples=20)
@given(
    rows=st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=7),
    degree=st.integers(1, 4),
)
def test_means_over_features_and_their_powers(zero, rows, degree):
    d = 3

    def kernel(u, v):
        values = [kappa(Fraction(a, 3), Fraction(b, 3), zero) for a, b in zip(u, v, strict=True)]
        return (sum(values) / d) ** degree

    K = gram(kernel, rows)
    assert is_psd(K)
    ours = analogy_kernel(np.array(rows) / 3, degree=degree, zero=zero)
    np.testing.assert_allclose(ours, K.astype(float), atol=1e-14)
    if degree == 1:  # the span of "feature k is t"
        levels = [[int(row[k] == t) for row in rows] for k in range(d) for t in range(-3, 4)]
        assert psd_certificate(K).rank == rank(levels)
    if degree >= d:
        assert psd_certificate(K).rank == len(set(map(tuple, rows)))


def test_below_the_number_of_features_the_corners_of_a_box_are_dependent():
    for d, degree in itertools.product((1, 2, 3), (1, 2, 3)):
        corners = list(itertools.product((Fraction(1, 3), Fraction(2, 3)), repeat=d))
        K = gram(lambda u, v, d=d, r=degree: (sum(map(unsigned, u, v)) / d) ** r, corners)
        parity = np.array([(-1) ** int(3 * sum(corner)) for corner in corners], dtype=object)
        assert (parity @ K @ parity == 0) == (degree < d)
        assert (psd_certificate(K).rank == 2**d) == (degree >= d)


# ---- What is no kernel is refuted


WRONG = {
    "longer than 2": (unsigned, Fraction(101, 50)),
    "a little less on the diagonal": (lambda u, v: kappa(u, v) - (u == v) * Fraction(1, 10**17), 1),
    "a bit steeper": (lambda u, v: max(Fraction(-2), 1 - abs(u - v) * Fraction(11, 10)), 1),
    "0 of both signs": (lambda u, v: unsigned(u, v) if u * v >= 0 else Fraction(0), 1),
    "squared distance": (lambda u, v: 1 - (u - v) ** 2, 1),
    "difference of features": (lambda u, v: kappa(u, v) - clipped(2 * u, 2 * v), 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_kernels_that_are_none_are_refuted(name):
    kernel, reach = WRONG[name]
    rng = np.random.default_rng(3)
    sets = ([reach * u for u in adversarial(rng)] for _ in range(100))
    assert any(not is_psd(gram(kernel, points)) for points in sets)


# ---- The length


@pytest.mark.theorem("thm-c15-length")
@example([Fraction(0), Fraction(1)], Fraction(2))
@example([Fraction(0), HALF, Fraction(1)], 2 + Fraction(1, 10**30))
@given(st.lists(st.fractions(0, 1, max_denominator=30), max_size=5), st.fractions(Fraction(1, 10), 4))
def test_a_kernel_up_to_the_length_two(share, length):
    u = [Fraction(0), *(length * s for s in share), length]
    assert is_psd(gram(unsigned, u)) == (length <= 2)
    # L/2 - |u - v| is half the integral of the product of signs
    cuts = sorted(set(u))
    K = 0 * gram(unsigned, u)
    for low, high in itertools.pairwise(cuts):
        s = np.array([1 if a >= high else -1 for a in u], dtype=object)
        K = K + (high - low) * np.outer(s, s) * HALF
    expected = gram(lambda u, v: length / 2 - abs(u - v), u)
    assert (expected == K).all()


@pytest.mark.theorem("thm-c15-length")
@pytest.mark.parametrize("zero", CONVENTIONS)
@example(share=[Fraction(-1), Fraction(1), Fraction(1, 10**9)], reach=Fraction(2))
@given(share=points, reach=st.fractions(Fraction(1, 10), 3))
def test_with_signs_up_to_two_on_both_sides(zero, share, reach):
    least = (reach - 2) / 3 if reach > 2 else reach / 10**6  # as small as it takes
    u = [*(reach * s for s in share), reach, -reach, least, -least, Fraction(0)]
    assert is_psd(gram(lambda u, v: kappa(u, v, zero), u)) == (reach <= 2)


# ---- Equivalences


def transitive(E):
    strongest = E[:, :, None] + E[None, :, :] - 1
    return bool((np.maximum(strongest, 0 * strongest) <= E[:, None, :]).all())


def lukasiewicz(E):
    n = len(E)
    return (E >= 0).all() and (E <= 1).all() and all(E[i, i] == 1 for i in range(n)) and transitive(E)


@pytest.mark.theorem("thm-c15-equivalence")
@pytest.mark.parametrize("zero", CONVENTIONS)
@example(u=[Fraction(-1), Fraction(0), Fraction(1), Fraction(1, 10**9), Fraction(-1, 10**9)])
@given(u=points)
def test_the_thresholded_relation_is_an_equivalence(zero, u):
    assert lukasiewicz(gram(lambda u, v: kappa(u, v, zero), u))


@pytest.mark.theorem("thm-c15-equivalence")
@example([Fraction(0), Fraction(1)])
@example([Fraction(-1), Fraction(0), Fraction(1)])
@given(numbers)
def test_without_the_threshold_it_is_one_up_to_the_distance_one(u):
    assert lukasiewicz(gram(unsigned, u)) == (max(u) - min(u) <= 1)
    assert lukasiewicz(gram(clipped, u))
    assert is_psd(gram(clipped, u))


# ---- The machine of degree 1


@pytest.mark.theorem("thm-c15-additive")
@pytest.mark.parametrize("zero", CONVENTIONS)
@example(rows=[(Fraction(1), HALF), (Fraction(-1), HALF), (Fraction(0), -HALF)], seed=0)
@example(rows=[(Fraction(0), Fraction(1)), (Fraction(-1), Fraction(0))], seed=0)
@given(rows=st.lists(st.tuples(LEVELS, LEVELS), min_size=1, max_size=6), seed=st.integers(0, 2**31))
def test_components_are_piecewise_linear_with_two_conditions_and_their_squared_lengths_add_up(
    zero, rows, seed
):
    c = np.array([Fraction(int(k), 3) for k in np.random.default_rng(seed).integers(-9, 10, len(rows))])
    p, square, K = 2, Fraction(0), 0
    for column in zip(*rows, strict=True):

        def g(v, column=column):
            return c @ [kappa(a, v, zero) for a in column] / p

        numbers = [g(Fraction(0))] if zero == "apart" else []
        assert numbers in ([], [sum(weight for a, weight in zip(column, c, strict=True) if a == 0) / p])
        square += sum(numbers) ** 2
        for s in (1, -1):
            own = [(abs(a), weight / p) for a, weight in zip(column, c, strict=True) if sign(a, zero) == s]
            total = sum(weight for _, weight in own)
            knots = sorted({Fraction(0), Fraction(1), *(a for a, _ in own)})
            near = s * knots[1] / 2  # below the first knot
            limit = 2 * g(near / 2) - g(near)  # at 0+ or 0-, as g is linear there
            values, slopes = [limit, *(g(s * a) for a in knots[1:])], []
            assert limit + values[-1] == total
            pieces = zip(itertools.pairwise(knots), itertools.pairwise(values), strict=True)
            for (a, b), (low, high) in pieces:
                slopes.append((high - low) / (b - a))
                for share in (Fraction(1, 4), HALF, Fraction(3, 4)):  # linear in between, continuous but at 0
                    assert g(s * (a + (b - a) * share)) == low + (high - low) * share
                square += HALF * slopes[-1] ** 2 * (b - a)
            assert slopes[0] == total - 2 * sum(weight for a, weight in own if a == 0)  # they fall from 0 on
            assert slopes[-1] == -total or any(a == 1 for a, _ in own)
            numbers.append(limit + values[-1])
            square += HALF * numbers[-1] ** 2
        assert sum(numbers) == sum(c) / p
        K = K + gram(lambda u, v: kappa(u, v, zero), column) / Fraction(p)
    assert c @ K @ c == p * square


@pytest.mark.theorem("thm-c15-additive")
@given(
    u=st.lists(st.fractions(Fraction(1, 40), 1, max_denominator=40), min_size=1, max_size=7, unique=True),
    seed=st.integers(0, 2**31),
)
def test_every_function_with_the_conditions_occurs_and_its_squared_length(u, seed):
    # Free values at the knots; the two conditions then say how it goes on to 0 and to 1.
    u = sorted(u)
    halves = np.random.default_rng(seed).integers(-9, 10, len(u)).tolist()
    at = {a: Fraction(k, 2) for a, k in zip(u, halves, strict=True)}
    total = (at[u[0]] + at[u[-1]]) / (2 + u[0] - u[-1])
    at[Fraction(0)], at[Fraction(1)] = at[u[0]] - total * u[0], at[u[-1]] - total * (1 - u[-1])
    assert at[Fraction(0)] + at[Fraction(1)] == total  # the slope before the first knot
    K = gram(unsigned, u)
    # c from the kinks: the slope falls by 2 c_i at u_i, and sum c = total
    places = sorted(at)
    slope = [(at[b] - at[a]) / (b - a) for a, b in itertools.pairwise(places)]
    c = [(slope[i] - slope[i + 1]) / 2 for i in range(len(slope) - 1)]
    c = np.array([*c, total - sum(c, Fraction(0))][: len(u)], dtype=object)
    assert (K @ c == np.array([at[a] for a in u], dtype=object)).all()
    energy = sum(((at[b] - at[a]) ** 2 / (b - a) for a, b in itertools.pairwise(places)), Fraction(0))
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
def test_the_softened_proportion_is_a_sum_of_two_kernels(zero, pairs):
    K = proportion_gram("softened", pairs, zero=zero)
    assert is_psd(K)
    u = [Fraction(a - b) for a, b in pairs]
    first = gram(lambda u, v: min(1 - abs(u), 1 - abs(v)), u)
    second = gram(lambda u, v: min(abs(u), abs(v)) * (sign(u, zero) == sign(v, zero)), u)
    assert (first + second == K).all()
    assert is_psd(first)
    assert is_psd(second)
    assert lukasiewicz(K)


@pytest.mark.theorem("thm-c15-geometric")
@example(pairs=[(0, 0), (0, 1), (1, 0), (1, 1), (HALF, 1)])
@given(pairs=PAIRS)
def test_the_clipped_proportion_is_a_kernel_with_all_axioms(pairs):
    K = proportion_gram("clipped", pairs)
    assert is_psd(K)
    assert lukasiewicz(K)
    u = [Fraction(a - b) for a, b in pairs]
    # the share of the offsets at which both fall into one bin; it is linear between the places of a cut
    cuts = sorted({Fraction(0), Fraction(1), *(v % 1 for v in u)})
    bins = np.full(K.shape, Fraction(0))
    for low, high in itertools.pairwise(cuts):
        middle = (low + high) / 2
        numbers = [math.ceil(v - middle) for v in u]
        bins += (high - low) * np.equal.outer(numbers, numbers).astype(int)
    assert (bins == K).all()
    for (a, b), (c, d) in itertools.product(pairs, repeat=2):
        degree = proportion("clipped", a, b, c, d)
        assert degree == proportion("clipped", c, d, a, b) == proportion("clipped", a, c, b, d)
        assert (degree == 1) == (a - b == c - d)
        u, v = Fraction(a - b), Fraction(c - d)
        apart = max(Fraction(0), 1 - abs(u) - abs(v))  # of different signs
        same = sign(u, "apart") == sign(v, "apart")
        assert degree == (proportion("arithmetic", a, b, c, d) if same else apart)


@pytest.mark.parametrize("zero", CONVENTIONS)
@pytest.mark.parametrize("name", ["arithmetic", "geometric", "signed min-max"])
@given(a=NUMBERS, c=NUMBERS, d=NUMBERS)
def test_a_threshold_leaves_nothing_for_a_central_permutation(name, zero, a, c, d):
    c, d = sorted((c, d))
    assert c == d or proportion(name, a, a, c, d, zero=zero) == 0
    # With the central permutation a : c :: a : d would have this degree, however near d is to c.


# ---- Equivalences and kernels in general


def equivalence_polytope(n):
    """Values of an equivalence for each two of n points: the rows of A x <= b, and the pairs of points."""
    sides = list(itertools.combinations(range(n), 2))
    place = {side: k for k, side in enumerate(sides)}
    unit = np.eye(len(sides), dtype=int)
    triangles = [
        unit[place[min(i, j), max(i, j)]] + unit[place[min(j, k), max(j, k)]] - unit[place[i, k]]
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
    # Semi-definite matrices are convex, so it is enough to try the vertices of the polytope of equivalences:
    # the points where as many independent conditions as unknowns hold with equality.
    A, b, sides = equivalence_polytope(n)
    chosen = np.array(list(itertools.combinations(range(len(A)), len(sides))))
    systems = A[chosen]
    regular = np.abs(np.linalg.det(systems)) > 0.5  # determinants of whole numbers
    solutions = np.linalg.solve(systems[regular], b[chosen][regular][..., None])[..., 0]
    inside = (solutions @ A.T <= b + 1e-9).all(axis=1)
    doubled = np.unique(np.round(2 * solutions[inside]), axis=0)
    np.testing.assert_allclose(2 * solutions[inside], np.round(2 * solutions[inside]), rtol=0, atol=1e-9)
    assert len(doubled) == count
    whole = 0
    for values in doubled:
        K = matrix([Fraction(int(value), 2) for value in values], sides, n)
        assert lukasiewicz(K)
        assert is_psd(K)
        whole += not (values % 2).any()
    assert whole == {3: 5, 4: 15}[n]  # the partitions


def bipartite(across, within):
    """Two points and three: `across` between them, `within` among themselves."""
    K = np.full((5, 5), across, dtype=object)
    K[:2, :2] = K[2:, 2:] = within
    K[range(5), range(5)] = Fraction(1)
    return K


def test_on_five_points_an_equivalence_may_be_no_kernel():
    K = bipartite(HALF, Fraction(0))
    assert lukasiewicz(K)
    assert not is_psd(K)
    x = np.array([1, 1, -1, -1, -1], dtype=object)
    assert x @ K @ x == -1
    # also for the product as the t-norm
    K = bipartite(Fraction(3, 4), Fraction(9, 16))
    assert (K[:, :, None] * K[None] <= K[:, None, :]).all()
    assert not is_psd(K)


@given(st.integers(2, 7), st.integers(0, 2**31))
def test_equivalences_for_the_minimum_are_kernels(n, seed):
    rng = np.random.default_rng(seed)
    # Single linkage of random values: the largest equivalence for the minimum below them.
    E = rng.integers(0, 8, (n, n))
    E = np.maximum(E, E.T)
    np.fill_diagonal(E, 8)
    for k in range(n):
        E = np.maximum(E, np.minimum(E[:, [k]], E[[k], :]))
    assert (np.minimum(E[:, :, None], E[None]) <= E[:, None, :]).all()
    assert is_psd(E)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**31))
def test_random_partitions_are_kernels_and_equivalences(n, m, seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 5, m)
    classes = rng.integers(0, 3, (m, n))
    total = int(weights.sum())
    parts = zip(weights, classes, strict=True)
    E = sum(Fraction(int(w), total) * np.equal.outer(row, row) for w, row in parts)
    assert is_psd(E)
    assert lukasiewicz(E)


# ---- Combinations


def least_of_features(u, v):
    return min(kappa(a, b) for a, b in zip(u, v, strict=True))


@pytest.mark.parametrize("q", [2, 3, 4, 5])
def test_the_minimum_over_two_features_is_a_kernel(q):
    grid = [Fraction(k, q) for k in range(-q, q + 1)]
    assert is_psd(gram(least_of_features, list(itertools.product(grid, repeat=2))[: 6 * len(grid)]))
    positive = [Fraction(k, q) for k in range(1, q + 1)]
    square = list(itertools.product(positive, repeat=2))
    K = gram(least_of_features, square)
    assert is_psd(K)
    turned = gram(lambda u, v: 1 - abs(sum(u) - sum(v)) / 2 - abs(u[0] - u[1] - v[0] + v[1]) / 2, square)
    assert (turned == K).all()


def test_the_minimum_over_three_features_is_none():
    corners = [(1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 3, 1), (3, 2, 2)]
    u = [tuple(Fraction(k, 3) for k in corner) for corner in corners]
    assert not is_psd(gram(least_of_features, u))
    for four in itertools.combinations(u, 4):
        assert is_psd(gram(least_of_features, list(four)))
    halves = [tuple(Fraction(k, 2) for k in corner) for corner in itertools.product((1, 2), repeat=3)]
    assert is_psd(gram(least_of_features, halves))


def test_the_minimum_of_the_arithmetic_and_the_geometric_kernel_is_none():
    fortieths = [(38, 17), (33, 14), (18, 15), (36, 21), (29, 16), (5, 4), (23, 12)]
    pairs = [(Fraction(a, 40), Fraction(b, 40)) for a, b in fortieths]
    A, G = proportion_gram("arithmetic", pairs), proportion_gram("geometric", pairs)
    assert is_psd(A)
    assert is_psd(G)
    least = np.minimum(A, G)
    x = np.array([2, -2, -2, 1, -2, 2, 1])
    assert x @ least @ x < 0
    assert not is_psd(least)


@given(PAIRS, st.integers(0, 3), st.integers(0, 3))
def test_sums_and_products_of_proportions_that_are_kernels(pairs, s, t):
    A, G = proportion_gram("arithmetic", pairs), proportion_gram("geometric", pairs)
    assert is_psd(s * A + t * G)
    assert is_psd(A * G)
