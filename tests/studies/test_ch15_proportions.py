from fractions import Fraction

import numpy as np
import pytest

from preflearn_book.studies.ch15_proportions import (
    PROPORTIONS,
    proportion,
    proportion_gram,
)

TOLERANCE = {"approximate": Fraction(1, 4), "graded": Fraction(3, 4)}


def by_definition(name, a, b, c, d, zero="apart", t=Fraction(0)):
    """Return the degree of one quadruple, branch by branch."""

    def sign(x):
        return (x > 0) - (x < 0) or (1 if zero == "positive" else 0)

    u = a - b
    v = c - d
    agree = sign(u) == sign(v)
    if name in ("arithmetic", "difference", "clipped", "softened"):
        if name == "clipped":
            return max(Fraction(0), 1 - abs(u - v))
        if agree or name == "difference":
            return 1 - abs(u - v)
        return 0 if name == "arithmetic" else 1 - max(abs(u), abs(v))
    if name == "geometric":
        return (
            min(a * d, b * c) / max(a * d, b * c) if agree and max(a * d, b * c) else 0
        )
    if name.endswith("min-max"):
        low = sorted((a, d))
        high = sorted((b, c))
        return (
            1 - max(abs(low[0] - high[0]), abs(low[1] - high[1]))
            if agree or name == "min-max"
            else 0
        )
    if name == "approximate":
        within = abs(a - b) <= t and abs(c - d) <= t
        across = abs(a - c) <= t and abs(b - d) <= t
        return int(within or across)

    def near(x, y):
        return max(1 - abs(x - y) / t, Fraction(0))

    return max(min(near(a, b), near(c, d)), min(near(a, c), near(b, d)))


def quadruples(q):
    grid = np.array([Fraction(k, q) for k in range(q + 1)], dtype=object)
    return [axis.ravel() for axis in np.meshgrid(grid, grid, grid, grid, indexing="ij")]


@pytest.mark.parametrize("zero", ["apart", "positive"])
@pytest.mark.parametrize("name", PROPORTIONS)
def test_equals_the_definition(name, zero):
    t = TOLERANCE.get(name, Fraction(0))
    axes = quadruples(4)
    degrees = proportion(name, *axes, zero=zero, tolerance=t)
    expected = [
        by_definition(name, *values, zero=zero, t=t)
        for values in zip(*axes, strict=True)
    ]
    assert degrees.tolist() == expected
    K = proportion_gram(name, np.column_stack(axes[2:])[:25], zero=zero, tolerance=t)
    assert K.ravel().tolist() == expected
    floats = proportion(
        name, *(axis.astype(float) for axis in axes), zero=zero, tolerance=float(t)
    )
    assert floats.dtype == float
    np.testing.assert_allclose(
        floats, np.array(expected, dtype=float), rtol=0, atol=1e-15
    )


def test_arguments_of_other_kinds_become_fractions_and_are_broadcast():
    assert proportion("difference", 0.5, Fraction(1, 4), 0, True) == -0.25
    assert isinstance(proportion("arithmetic", 1, 0, 1, 0), Fraction)
    assert proportion(
        "arithmetic", np.float32(0.5), 0, [[0.25], [0.5]], [0, 0.25]
    ).shape == (2, 2)
