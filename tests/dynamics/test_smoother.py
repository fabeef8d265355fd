"""Sums and products of covariances of one, two and more states, smoothed: equal to the dense twins."""

import numpy as np
import pytest
from dynamics import dense
from dynamics.problems import (
    COVARIANCES,
    SIZES,
    assert_equals_dense,
    both_methods,
    fit_small,
    fitted,
    is_finite,
    matches_of,
    random_matches,
)

from preflearn.dynamics import Affine, Constant, Linear, Probit, Wiener


@pytest.mark.parametrize(
    ("method", "covariance"),
    [*(("ep", covariance) for covariance in COVARIANCES), *(("kl", some) for some in SIZES)],
    ids=repr,
)
def test_fixed_points_equal_the_dense_ones_by_covariance(method, covariance):
    rng = np.random.default_rng(2)
    assert_equals_dense(
        fitted(covariance, Probit(), random_matches(rng), rng.choice([1, -1], 9), method), dense.probit
    )


@both_methods
def test_a_process_that_is_certain_at_its_first_match(method):
    """A Wiener process whose first match is at its origin: the score is 0 there, whatever the outcome."""
    matches = matches_of([[1.0, -1.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 2.0])
    model = fitted(Wiener(0.5), Probit(), matches, [1, 1, -1], method)
    mean, deviation = model.scores("f0", [0.0, 1.0])
    assert (mean[0], deviation[0]) == pytest.approx((0, 0), abs=1e-12)
    later = fitted(Wiener(0.5), Probit(), matches[1:], [1, -1], method)
    np.testing.assert_allclose(mean, later.scores("f0", [0.0, 1.0])[0], atol=1e-9)
    expected = later.log_marginal_likelihood_ + np.log(0.5)
    assert model.log_marginal_likelihood_ == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("left", [Constant(0.5), Linear(0.3), Affine(0.5, 0.2)], ids=repr)
@both_methods
def test_a_product_of_what_has_no_noise_and_a_process_from_the_first_match(left, method):
    model = fit_small(left * (Constant(1.0) + Wiener(0.5, "first")), method=method)
    assert model.converged_
    assert is_finite(model)


def test_a_constant_factor_is_a_variance():
    product, wiener = Constant(0.5) * Wiener(1.0, "first"), Wiener(0.5, "first")
    found, expected = (
        fit_small(k + Constant(0.2), tol=1e-10).scores("Ann", [9.0, 20]) for k in (product, wiener)
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)
