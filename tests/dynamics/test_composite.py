"""Covariance functions: their formulas, sums, and products, and the input that they
reject."""

import math

import numpy as np
import pytest
from dynamics.problems import FORMULAS

from preflearn.dynamics import (
    Affine,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Periodic,
    PiecewiseConstant,
    SquaredExponential,
    Wiener,
)


@pytest.mark.parametrize("covariance", FORMULAS, ids=repr)
def test_gram_is_the_formula(covariance):
    t = np.array([3.0, -0.9, 0.5, 0.0])
    t2 = np.array([0.5, 1.0, 2.0, -0.9, 7.7])
    expected = [[FORMULAS[covariance](a, b) for b in t2] for a in t]
    np.testing.assert_allclose(covariance.gram(t, t2), expected, rtol=1e-13)
    np.testing.assert_array_equal(covariance.gram(t), covariance.gram(t, t))


def test_sums_and_products_add_and_multiply():
    a = Constant(2.0)
    b = Matern12()
    c = Wiener(0.5, origin="first")
    t = np.array([1.0, 4.0, 2.5])
    np.testing.assert_allclose((a + b * c).gram(t), a.gram(t) + b.gram(t) * c.gram(t))
    np.testing.assert_allclose(((a + b) * c).gram(t), (a * c + b * c).gram(t))
    for operation in (lambda: a + 1.0, lambda: 2.0 * a, lambda: a * "a"):
        with pytest.raises(TypeError):
            operation()


def test_an_origin_at_the_first_time_is_the_least_time_of_the_call():
    np.testing.assert_array_equal(
        Wiener(origin="first").gram([5.0, 3.0, 9.0]),
        Wiener(origin=3.0).gram([5.0, 3.0, 9.0]),
    )
    np.testing.assert_array_equal(
        Linear(origin="first").gram([5.0], [3.0, 4.0]), [[0.0, 2.0]]
    )
    composite = Wiener(origin="first") + Affine(origin="first") * Matern12()
    np.testing.assert_allclose(
        composite.gram([1e6, 1e6 + 2]), composite.gram([0.0, 2.0])
    )


def test_equal_parameters_are_equal_covariances():
    assert (
        Constant(2)
        == Constant(np.float32(2))
        == Constant(variance=2.0)
        != Constant(3.0)
    )
    assert Matern12() != Matern32()
    a = Constant()
    b = Linear(origin=0.0)
    c = Wiener(origin=0.0)
    assert (a + b) + c == a + (b + c)
    assert a + b != a * b
    assert PiecewiseConstant(boundaries=[1, 2]) == PiecewiseConstant(
        boundaries=np.array([1.0, 2.0])
    )


@pytest.mark.parametrize(
    ("covariance", "times", "named"),
    [
        (Constant(), [[0.0, math.nan]], r"t\[1\]"),
        (Constant(), [[0.0], [1e101]], r"t2\[0\]"),
        (Constant(), [[]], "t is empty"),
        (Constant(), [0.0], "t has shape"),
        (Wiener(origin=0.0), [[0.0, 1.0], [-2.0]], "-2.0.* origin"),
        (Linear(1e100, origin=0.0) * Linear(origin=0.0), [[1e80]], "overflow"),
    ],
)
def test_bad_times_are_named(covariance, times, named):
    with pytest.raises(ValueError, match=named):
        covariance.gram(*times)


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        *(
            (type(covariance), "variance", (0.0, math.nan, None))
            for covariance in FORMULAS
        ),
        (Constant, "variance", (math.inf, True, "1", 1e-101, 1e101)),
        *(
            (kind, "lengthscale", (0.0,))
            for kind in (Matern12, Periodic, SquaredExponential)
        ),
        *(
            (kind, "origin", ("last", math.nan, None, 1e101, [0.0]))
            for kind in (Wiener, Linear, Affine)
        ),
        (
            PiecewiseConstant,
            "boundaries",
            ((1.0, 3.0, 2.0), (1.0, 1.0), (1.0, math.nan), (), 3.0),
        ),
        (Affine, "slope_variance", (0.0,)),
        (Periodic, "period", (0.0,)),
        (Periodic, "order", (0, 51)),
        (SquaredExponential, "order", (1, 2.5)),
    ],
)
def test_bad_parameters_are_named(kind, name, values):
    for value in values:
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            kind(**{name: value})
