"""The compiled integrals, against many digits, each other, and what must hold of them."""

import itertools
import math

import numpy as np
import pytest
from dynamics import digits
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from preflearn.dynamics import (
    Gaussian,
    Logit,
    OrdinalLogit,
    OrdinalProbit,
    Poisson,
    Probit,
    Skellam,
    integrals,
)
from preflearn.dynamics.density import log_bessel
from preflearn.dynamics.normal import excess, log_interval, log_ndtr

CASES = [
    (Probit(), 1),
    (Logit(), -1),
    (OrdinalProbit(0.5), 1),
    (OrdinalProbit(0.1), 0),
    (OrdinalProbit(4.0), 0),
    (OrdinalLogit(0.5), -1),
    (OrdinalLogit(0.5), 0),
    (OrdinalLogit(4.0), 0),
    (Poisson(), 0),
    (Poisson(), 100),
    (Gaussian(3.0), -2.5),
    (Skellam(0.05), 1),
    (Skellam(50.0), -7),
]
# The means and variances of the contract: ±50 and 1e-12 to 1e6; at 0.5 the rule of integration changes.
MOMENTS = [
    (0.0, 0.51), (-1.7, 1e-12), (4.0, 0.5), (50.0, 1e-12), (-50.0, 3.0), (23.0, 20.0), (-11.0, 150.0), (50.0, 1e6)
]  # fmt: skip


def compiled(likelihood, y, mean, variance, ep):
    function = integrals.log_partition if ep else integrals.expected
    return function(likelihood.kind, *likelihood.parameters, float(y), float(mean), float(variance))


def name(case):
    return f"{case[0]!r}, y={case[1]}"


@pytest.mark.parametrize("case", CASES, ids=name)
@pytest.mark.parametrize("moments", MOMENTS[::2] + MOMENTS[1::4], ids=str)
def test_ep_equals_many_digits(case, moments):
    found = compiled(*case, *moments, ep=True)
    np.testing.assert_allclose(found, digits.integrals(*case, *moments, ep=True), rtol=1e-9, atol=1e-9)
