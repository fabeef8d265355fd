"""Sums and products of covariances, their Gram matrices, and what they refuse."""

import math

import numpy as np
import pytest

from preflearn.dynamics import Affine, Constant, Linear, Matern12, Matern32, PiecewiseConstant, Wiener


def test_sums_and_products_add_and_multiply():
    a, b, c = Constant(2.0), Matern12(), Wiener(0.5, origin="first")
    t = np.array([1.0, 4.0, 2.5])
    np.testing.assert_allclose((a + b * c).gram(t), a.gram(t) + b.gram(t) * c.gram(t))
    np.testing.assert_allclose(((a + b) * c).gram(t), (a * c + b * c).gram(t))
    for operation in (lambda: Constant() + 1.0, lambda: 2.0 * Constant(), lambda: Constant() * "a"):
        with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
            operation()


def test_an_origin_at_the_first_time_is_the_least_time_of_the_call():
    np.testing.assert_array_equal(
        Wiener(origin="first").gram([5.0, 3.0, 9.0]), Wiener(origin=3.0).gram([5.0, 3.0, 9.0])
    )
    np.testing.assert_array_equal(Linear(origin="first").gram([5.0], [3.0, 4.0]), [[0.0, 2.0]])
    composite = Wiener(origin="first") + Affine(origin="first") * Matern12()
    np.testing.assert_allclose(composite.gram([1e6, 1e6 + 2]), composite.gram([0.0, 2.0]))


def test_equal_parameters_are_equal_covariances():
    assert Constant(2) == Constant(np.float32(2)) == Constant(variance=2.0) != Constant(3.0)
    assert Matern12() != Matern32()
    assert (Constant() + Linear(origin=0.0)) + Wiener(origin=0.0) == Constant() + (
        Linear(origin=0.0) + Wiener(origin=0.0)
    )
    assert Constant() + Linear(origin=0.0) != Constant() * Linear(origin=0.0)
    assert PiecewiseConstant(boundaries=[1, 2]) == PiecewiseConstant(boundaries=np.array([1.0, 2.0]))
    assert repr((Constant(2) + Wiener(origin="first")) * Constant()) == (
        "(Constant(variance=2.0) + Wiener(variance=1.0, origin='first')) * Constant(variance=1.0)"
    )


@pytest.mark.parametrize(
    ("covariance", "times", "message"),
    [
        (Constant(), [[0.0, math.nan]], r"t\[1\] is nan; expected finite numbers"),
        (Constant(), [[0.0], [1e101]], r"t2\[0\] is 1e\+101; expected times up to 1e100 in size"),
        (Constant(), [[]], "t is empty"),
        (Constant(), [0.0], r"t has shape \(\); expected \(n,\): times"),
        (
            Wiener(origin=0.0),
            [[0.0, 1.0], [-2.0]],
            "the least time is -2.0; expected times from the origin 0 on",
        ),
        (Linear(1e100, origin=0.0) * Linear(origin=0.0), [[1e80]], "the covariance overflows"),
    ],
)
def test_bad_times_are_named(covariance, times, message):
    with pytest.raises(ValueError, match=message):
        covariance.gram(*times)
