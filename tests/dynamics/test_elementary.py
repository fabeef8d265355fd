"""Covariance functions: their formulas, and the parameters that they refuse."""

import math

import numpy as np
import pytest
from dynamics.problems import FORMULAS

from preflearn.dynamics import (
    Affine,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    PiecewiseConstant,
    SquaredExponential,
    Wiener,
)


@pytest.mark.parametrize("covariance", FORMULAS, ids=repr)
def test_gram_is_the_formula(covariance):
    t, t2 = np.array([3.0, -0.9, 0.5, 0.0]), np.array([0.5, 1.0, 2.0, -0.9, 7.7])
    expected = [[FORMULAS[covariance](a, b) for b in t2] for a in t]
    np.testing.assert_allclose(covariance.gram(t, t2), expected, rtol=1e-13)
    np.testing.assert_array_equal(covariance.gram(t), covariance.gram(t, t))


def refused(kind, message, **parameters):
    with pytest.raises(ValueError, match=message):
        kind(**parameters)


@pytest.mark.parametrize("kind", [type(covariance) for covariance in FORMULAS])
@pytest.mark.parametrize("variance", [0.0, -1.0, math.nan, math.inf, True, "1", None, 1e-101, 1e101])
def test_variances_that_are_refused(kind, variance):
    refused(kind, "variance is .*; expected a positive number", variance=variance)


@pytest.mark.parametrize("kind", [Matern12, Matern32, Matern52, Periodic, SquaredExponential])
@pytest.mark.parametrize("lengthscale", [0.0, -1.0, math.nan])
def test_lengthscales_that_are_refused(kind, lengthscale):
    refused(kind, "lengthscale is .*; expected a positive number", lengthscale=lengthscale)


@pytest.mark.parametrize("kind", [Wiener, Linear, Affine])
@pytest.mark.parametrize("origin", ["last", math.nan, None, 1e101, [0.0]])
def test_origins_that_are_refused(kind, origin):
    refused(kind, "origin is .*; expected a time or 'first'", origin=origin)


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (
            PiecewiseConstant,
            {"boundaries": (1.0, 3.0, 2.0)},
            r"boundaries\[2\] is 2.0; expected ascending times",
        ),
        (PiecewiseConstant, {"boundaries": (1.0, 1.0)}, r"boundaries\[1\] is 1.0; expected ascending times"),
        (PiecewiseConstant, {"boundaries": (1.0, math.nan)}, r"boundaries\[1\] is nan; expected finite"),
        (PiecewiseConstant, {"boundaries": ()}, "boundaries is empty"),
        (PiecewiseConstant, {"boundaries": 3.0}, r"boundaries has shape \(\); expected"),
        (Affine, {"slope_variance": 0.0}, "slope_variance is 0.0; expected a positive number"),
        (Periodic, {"period": 0.0}, "period is 0.0; expected a positive number"),
        (Periodic, {"order": 0}, "order is 0; expected a whole number of at least 1"),
        (Periodic, {"order": 51}, "order is 51; expected a whole number from 1 to 50"),
        (SquaredExponential, {"order": 1}, "order is 1; expected a whole number of at least 2"),
        (SquaredExponential, {"order": 2.5}, "order is 2.5; expected a whole number of at least 2"),
    ],
)
def test_other_parameters_that_are_refused(kind, parameters, message):
    refused(kind, message, **parameters)
