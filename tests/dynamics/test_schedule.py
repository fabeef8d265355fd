"""Degenerate schedules: at one time, centuries apart, an instant apart, each feature once."""

import numpy as np
import pytest
from dynamics import dense
from dynamics.problems import (
    LIKELIHOODS,
    SIZES,
    assert_equals_dense,
    both_methods,
    fitted,
    matches_of,
    random_design,
)

from preflearn.dynamics import Constant, Matern12, Matern32, Matern52, Probit, Wiener


@both_methods
@pytest.mark.parametrize("time", [np.zeros(8), np.repeat([0.0, 1.0], 4)], ids=["one time", "two times"])
def test_simultaneous_matches(method, time):
    """The same two players meet at one time, and others too; all at one time."""
    rng = np.random.default_rng(11)
    matches, y = matches_of(random_design(rng, 8, 3), time), rng.choice([1, 0, -1], 8)
    likelihood, density, _ = LIKELIHOODS["ordinal probit"]
    for covariance in (Matern32(1.0, 0.5), Wiener(1.0, origin=-1.0)):
        assert_equals_dense(fitted(covariance, likelihood, matches, y, method), density)


@both_methods
@pytest.mark.filterwarnings("ignore:the lengthscale .* is very short:UserWarning")
@pytest.mark.parametrize(
    "covariance", [Matern12(1.0, 0.5), Matern52(1.0, 0.5), Constant(0.5) + Wiener(0.01, origin=0.0)]
)
def test_gaps_of_centuries_and_of_an_instant(covariance, method):
    rng = np.random.default_rng(12)
    matches = matches_of(random_design(rng, 7, 3), [0.0, 1e-9, 0.3, 500.0, 500.0 + 1e-7, 900.0, 4000.0])
    model = fitted(covariance, Probit(), matches, rng.choice([1, -1], 7), method)
    assert_equals_dense(model, dense.probit, rate=0.2)


@both_methods
@pytest.mark.parametrize("covariance", SIZES, ids=repr)
def test_features_that_are_seen_once(method, covariance):
    matches = matches_of(np.kron(np.eye(4), [1.0, -1.0, 0.5]))
    assert_equals_dense(fitted(covariance, Probit(), matches, [1, -1, -1, 1], method), dense.probit)
