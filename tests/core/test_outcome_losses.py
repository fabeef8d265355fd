"""Losses of paired comparisons with ties and their derivatives, compared with the
definitions."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm

from preflearn.core.outcome_losses import (
    LINKS,
    davidson_loss,
    davidson_probabilities,
    log_interval,
    ordinal_loss,
)

KINDS = pytest.mark.parametrize("kind", ["davidson", *LINKS])


def loss_of(kind, d, t, y):
    return (
        davidson_loss(d, t, y)
        if kind == "davidson"
        else ordinal_loss(d, t, y, LINKS[kind])
    )


@KINDS
@pytest.mark.parametrize("t", [0.03, 0.6, 2.5])
def test_derivatives_agree_with_finite_differences(kind, t):
    d = np.tile(np.linspace(-9, 9, 37), 3)
    y = np.repeat([-1, 0, 1], 37)
    h = 1e-6
    here = loss_of(kind, d, t, y)
    right = loss_of(kind, d + h, t, y)
    left = loss_of(kind, d - h, t, y)
    up = loss_of(kind, d, t + h, y)
    down = loss_of(kind, d, t - h, y)
    for ours, more, less in [
        (here.d, right.value, left.value),
        (here.t, up.value, down.value),
        (here.dd, right.d, left.d),
        (here.dt, right.t, left.t),
        (here.tt, up.t, down.t),
    ]:
        np.testing.assert_allclose(ours, (more - less) / (2 * h), rtol=1e-5, atol=1e-6)


@KINDS
@given(d=st.floats(-30, 30), t=st.floats(1e-3, 20), y=st.sampled_from([-1, 0, 1]))
def test_losses_are_jointly_convex(kind, d, t, y):
    loss = loss_of(kind, np.array([d]), t, np.array([y]))
    hessian = np.array([[loss.dd[0], loss.dt[0]], [loss.dt[0], loss.tt[0]]])
    assert np.linalg.eigvalsh(hessian)[0] >= -1e-9 * (1 + np.abs(hessian).max())


@KINDS
def test_losses_are_negative_log_probabilities(kind):
    d = np.linspace(-4, 4, 33)
    t = 0.7
    cdf = {"logit": expit, "probit": norm.cdf}.get(kind)
    expected = (
        davidson_probabilities(d, np.exp(t)).T
        if cdf is None
        else [cdf(-d - t), 0 * d, cdf(d - t)]
    )
    expected[1] = 1 - expected[0] - expected[2]
    found = [np.exp(-loss_of(kind, d, t, np.full(33, y)).value) for y in (-1, 0, 1)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("t", [1e-3, 0.7])
def test_the_log_probability_of_a_tie_is_exact_far_in_the_tail(t):
    """For d above 1e16 both ends of the interval are the same float."""
    with mpmath.workdps(200):
        for d in (0.3, 20.0, 1e3, 1e8, 1e15, 1e17, 1e150):
            low, high = (
                mpmath.mpf(s) * mpmath.mpf(t) - abs(mpmath.mpf(d)) for s in (-1, 1)
            )
            ratio = (
                mpmath.exp(low - high) * (1 + mpmath.exp(high)) / (1 + mpmath.exp(low))
            )
            exact = high - mpmath.log1p(mpmath.exp(high)) + mpmath.log(1 - ratio)
            found = log_interval(np.array([d, -d]), t, LINKS["logit"].log_cdf)
            assert found == pytest.approx(float(exact), rel=1e-11, abs=1e-12)
