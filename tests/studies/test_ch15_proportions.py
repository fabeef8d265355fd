import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn.analogy.certificate import psd_certificate
from studies.ch15_proportions import PROPORTIONS, proportion, proportion_gram

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
SIX = {(0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 0, 1), (1, 0, 1, 0), (1, 1, 0, 0), (1, 1, 1, 1)}
TOLERANCE = {"approximate": Fraction(1, 4), "graded": Fraction(3, 4)}

# What holds for all numbers in [0, 1]; see the axioms below.
AXIOMS = {
    ("arithmetic", "apart"): "range reflexive identity symmetric swap only if",
    ("arithmetic", "positive"): "range reflexive identity symmetric only if",
    ("difference", "apart"): "reflexive identity symmetric central swap only if",
    ("clipped", "apart"): "range reflexive identity symmetric central swap only if",
    ("softened", "apart"): "range reflexive identity symmetric swap only if",
    ("softened", "positive"): "range reflexive identity symmetric swap only if",
    ("geometric", "apart"): "range symmetric swap",
    ("geometric", "positive"): "range symmetric",
    ("min-max", "apart"): "range reflexive identity symmetric central swap only",
    ("signed min-max", "apart"): "range reflexive identity symmetric swap only",
    ("signed min-max", "positive"): "range reflexive identity symmetric only",
    ("approximate", "apart"): "range reflexive identity symmetric central swap",
    ("graded", "apart"): "range reflexive identity symmetric central swap only",
}


KINDS = list(AXIOMS)  # sign(0) positive where it makes a difference, and for the softened one


def by_definition(name, a, b, c, d, zero="apart", t=Fraction(0)):
    """One quadruple, branch by branch."""

    def sign(x):
        return (x > 0) - (x < 0) or (1 if zero == "positive" else 0)

    u, v = a - b, c - d
    agree = sign(u) == sign(v)
    if name in ("arithmetic", "difference", "clipped", "softened"):
        if name == "clipped":
            return max(Fraction(0), 1 - abs(u - v))
        if agree or name == "difference":
            return 1 - abs(u - v)
        return 0 if name == "arithmetic" else 1 - max(abs(u), abs(v))
    if name == "geometric":
        return min(a * d, b * c) / max(a * d, b * c) if agree and max(a * d, b * c) else 0
    if name.endswith("min-max"):
        low, high = sorted((a, d)), sorted((b, c))
        return 1 - max(abs(low[0] - high[0]), abs(low[1] - high[1])) if agree or name == "min-max" else 0
    if name == "approximate":
        within, across = abs(a - b) <= t and abs(c - d) <= t, abs(a - c) <= t and abs(b - d) <= t
        return int(within or across)

    def near(x, y):
        return max(1 - abs(x - y) / t, Fraction(0))

    return max(min(near(a, b), near(c, d)), min(near(a, c), near(b, d)))


def quadruples(q):
    grid = np.array([Fraction(k, q) for k in range(q + 1)], dtype=object)
    return [axis.ravel() for axis in np.meshgrid(grid, grid, grid, grid, indexing="ij")]


def pairs(q):
    return [[Fraction(i, q), Fraction(j, q)] for i in range(q + 1) for j in range(q + 1)]


@pytest.mark.parametrize("zero", ["apart", "positive"])
@pytest.mark.parametrize("name", PROPORTIONS)
def test_equals_the_definition(name, zero):
    t = TOLERANCE.get(name, Fraction(0))
    axes = quadruples(4)
    degrees = proportion(name, *axes, zero=zero, tolerance=t)
    expected = [by_definition(name, *values, zero=zero, t=t) for values in zip(*axes, strict=True)]
    assert degrees.tolist() == expected
    floats = proportion(name, *(axis.astype(float) for axis in axes), zero=zero, tolerance=float(t))
    assert floats.dtype == float
    np.testing.assert_allclose(floats, np.array(expected, dtype=float), rtol=0, atol=1e-15)


@pytest.mark.parametrize(("name", "zero"), KINDS)
def test_axioms_as_a_matter_of_degree(name, zero):
    a, b, c, d = quadruples(4)
    t = TOLERANCE.get(name, 0)

    def degree(*values):
        return proportion(name, *values, zero=zero, tolerance=t)

    degrees = degree(a, b, c, d)
    holds = {
        "range": (degrees >= 0) & (degrees <= 1),
        "reflexive": degree(a, b, a, b) == 1,
        "identity": degree(a, a, b, b) == 1,
        "symmetric": degree(c, d, a, b) == degrees,
        "central": degree(a, c, b, d) == degrees,
        "swap": degree(b, a, d, c) == degrees,
        "only": (degrees != 1) | (a - b == c - d),  # degree 1 only if a differs from b as c from d
        "if": (degrees == 1) | (a - b != c - d),
    }
    assert {axiom for axiom, where in holds.items() if where.all()} == set(AXIOMS[name, zero].split())


@pytest.mark.parametrize(
    ("name", "zero", "ones"),
    [(*kind, SIX) for kind in KINDS if kind[0] != "geometric"]
    + [("geometric", zero, {(1, 1, 1, 1)}) for zero in ("apart", "positive")],
)
def test_boolean_patterns(name, zero, ones):
    degrees = {
        values: proportion(name, *values, zero=zero, tolerance=TOLERANCE.get(name, 0))
        for values in itertools.product((0, 1), repeat=4)
    }
    assert {values for values, degree in degrees.items() if degree == 1} == ones
    between = {values: degree for values, degree in degrees.items() if degree not in (0, 1)}
    assert between == ({(0, 1, 1, 0): -1, (1, 0, 0, 1): -1} if name == "difference" else {})


def refuted(name, points, **options):
    K = proportion_gram(name, points, **options)
    certificate = psd_certificate(K)
    assert certificate.verify(K)
    return not certificate.psd


@pytest.mark.parametrize(("name", "tolerance"), [("difference", 0), ("approximate", 0), ("approximate", 1)])
@pytest.mark.parametrize("q", [1, 2, 3, 4, 6])
def test_semidefinite_on_all_pairs_of_a_grid(name, tolerance, q):
    assert not refuted(name, pairs(q), tolerance=tolerance)


E = Fraction


@pytest.mark.parametrize(
    ("name", "zero", "points"),
    [
        ("min-max", "apart", [[0, 0], [HALF, HALF], [0, 1]]),
        ("signed min-max", "positive", [[0, 0], [HALF, HALF], [1, 0]]),
        ("signed min-max", "apart", [[E(1, 8), 0], [E(5, 8), HALF], [1, E(1, 8)]]),
        ("signed min-max", "apart", [[E(1, 4), 0], [HALF, 0], [E(3, 4), HALF], [1, E(1, 4)]]),
    ],
)
def test_counterexamples(name, zero, points):
    assert refuted(name, points, zero=zero)
    for left in itertools.combinations(points, len(points) - 1):
        assert not refuted(name, list(left), zero=zero)


@given(st.fractions(Fraction(1, 50), Fraction(49, 50)))
def test_approximate_fails_for_every_tolerance_between_0_and_1(tolerance):
    assert refuted("approximate", [[1, 1], [0, tolerance], [0, min(1, 2 * tolerance)]], tolerance=tolerance)


@given(st.fractions(Fraction(1, 50), 3))
def test_graded_fails_for_every_tolerance(tolerance):
    m = min(tolerance, Fraction(1)) / 2
    assert refuted("graded", [[0, 0], [m, m], [0, 2 * m]], tolerance=tolerance)


@pytest.mark.parametrize(
    ("name", "zero", "tolerance", "q"),
    [
        ("min-max", "apart", 0, 1),
        ("signed min-max", "positive", 0, 1),
        ("signed min-max", "apart", 0, 3),
        ("approximate", "apart", HALF, 1),
        ("graded", "apart", 1, 1),
    ],
)
def test_no_counterexample_has_smaller_denominators(name, zero, tolerance, q):
    for smaller in range(1, q + 1):
        assert not refuted(name, pairs(smaller), zero=zero, tolerance=tolerance)
    assert refuted(name, pairs(q + 1), zero=zero, tolerance=tolerance)


def test_no_three_pairs_with_denominators_up_to_seven_refute_signed_min_max():
    # Pairs of one sign only: those of two signs are in two blocks, and constant pairs are one row of ones.
    for q in range(2, 9):
        points = [[i, j] for i in range(q + 1) for j in range(i)]
        K = np.array(
            (q * proportion_gram("signed min-max", np.array(points) / E(q))).tolist(), dtype=np.int64
        )
        i, j, k = np.array(list(itertools.combinations(range(len(points)), 3))).T
        x, y, z = K[i, j], K[i, k], K[j, k]
        determinants = q**3 + 2 * x * y * z - q * (x * x + y * y + z * z)
        assert (determinants.min() < 0) == (q == 8)


def test_equal_rows_are_needed():
    """A degree of 1 between two pairs must make their rows equal, or the Gram matrix is not semi-definite."""
    for name, tolerance in (("min-max", 0), ("graded", 1), ("approximate", HALF)):
        points = pairs(2)
        K = proportion_gram(name, points, tolerance=tolerance)
        unequal = [
            (i, j, k)
            for i, j, k in itertools.permutations(range(len(points)), 3)
            if K[i, j] == 1 and K[i, k] != K[j, k]
        ]
        assert unequal
        for i, j, k in unequal:
            assert not psd_certificate(K[np.ix_([i, j, k], [i, j, k])]).psd


def test_kinds_of_numbers():
    assert proportion("difference", 0.5, Fraction(1, 4), 0, True) == -0.25
    assert isinstance(proportion("arithmetic", 1, 0, 1, 0), Fraction)
    assert proportion("arithmetic", np.float32(0.5), 0, [[0.25], [0.5]], [0, 0.25]).shape == (2, 2)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("harmonic", 0, 0, 0, 0), {}, "name is 'harmonic'; expected 'arithmetic' or"),
        (("arithmetic", 0, 0, 0, 0), {"zero": "?"}, "zero is '\\?'; expected 'apart' or 'positive'"),
        (("arithmetic", 0, 1.5, 0, 0), {}, r"b is 1.5; expected a number in \[0, 1\]"),
        (("arithmetic", 0, 0, [0, -1], 0), {}, r"c\[1\] is .*-1.*; expected a number in \[0, 1\]"),
        (("arithmetic", 0, 0, 0, [np.nan, HALF]), {}, r"d\[0\] is nan; expected a finite"),
        (("arithmetic", "x", 0, 0, 0), {}, "a is 'x'; expected"),
        (("approximate", 0, 0, 0, 0), {"tolerance": -1}, "tolerance is -1; expected a number of at"),
        (
            ("arithmetic", [0, 0], 0, [0, 0, 0], 0),
            {},
            r"shape mismatch:.* arg 0 with shape \(2,\) and arg 2",
        ),
        (("graded", 0, 0, 0, 0), {}, "tolerance is 0; expected a positive number"),
        (("arithmetic", [0.5, 0.5]), {}, r"pairs has shape \(2,\); expected \(n, 2\)"),
        (("arithmetic", [[0.5, 2]]), {}, r"pairs\[0, 1\] is 2.0; expected a number in"),
    ],
)
def test_bad_input(arguments, options, message):
    call = proportion if len(arguments) == 5 else proportion_gram
    with pytest.raises(ValueError, match=message):
        call(*arguments, **options)
