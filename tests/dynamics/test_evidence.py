"""The gradient of the evidence, and its maximum."""

import math
import warnings

import numpy as np
import pytest
from dynamics.problems import LIKELIHOODS, MOVING, both_methods, informative, small
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Matern12,
    OrdinalProbit,
    Probit,
    Skellam,
    maximise_evidence,
    parameters_of,
    with_parameters,
)
from preflearn.dynamics.model_selection import evidence
from preflearn.matches import Matches, TimeWarning


def series(seed=0, n=200, covariance=MOVING, noise=0.2):
    """Return measurements of three processes, with one feature per row. Their posterior
    is Gaussian."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 3, n)
    times = np.sort(rng.integers(0, 400, n) / 8)
    y = rng.normal(scale=math.sqrt(noise), size=n)
    for k in range(3):
        gram = covariance.gram(times[which == k])
        y[which == k] += rng.multivariate_normal(np.zeros(len(gram)), gram)
    return Matches(np.eye(3)[which], times, ["a", "b", "c"]), y


def weights_and_offsets(n):
    return np.arange(n) % 3, 0.5 * np.random.default_rng(0).normal(size=n)


OWN = {"Ann": Constant(0.2), "*": MOVING}


@both_methods
@pytest.mark.parametrize(
    ("covariance", "name"),
    [(OWN, "Probit"), *((MOVING, name) for name in LIKELIHOODS)],
    ids=str,
)
# rounding errors may be larger than this tol
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_gradient_is_that_of_refitted_models(method, covariance, name):
    likelihood, _, outcomes = LIKELIHOODS[name]
    data = *small(n=40, outcomes=outcomes), *weights_and_offsets(40)
    model = DynamicComparisons(covariance, likelihood, method, tol=1e-11, max_iter=500)
    names = list(parameters_of(model))
    found = evidence.gradient_of(model.fit(*data), names)

    def evidence_at(name, step):
        value = parameters_of(model)[name] * math.exp(step)
        return with_parameters(model, {name: value}).fit(*data).log_marginal_likelihood_

    step = 1e-3
    for name, derivative in zip(names, found, strict=True):
        # differences with an error of fourth order in the step
        near, far = (
            evidence_at(name, k * step) - evidence_at(name, -k * step) for k in (1, 2)
        )
        assert derivative == pytest.approx(
            (8 * near - far) / (12 * step), rel=1e-5, abs=1e-7
        ), name


@both_methods
def test_maximum_is_that_of_brute_force(method):
    matches, y = informative()
    start = DynamicComparisons(
        Constant(1.0), OrdinalProbit(margin=0.3), method, tol=1e-9
    )

    def minus_evidence(at):
        values = dict(
            zip(
                ("Constant.variance", "likelihood.margin"),
                np.exp(at).tolist(),
                strict=True,
            )
        )
        return -with_parameters(start, values).fit(matches, y).log_marginal_likelihood_

    best = optimize.brute(
        minus_evidence, ((-6, 2), (-4, 1)), Ns=6, finish=optimize.fmin, full_output=True
    )
    found = maximise_evidence(start, matches, y, gtol=1e-5)
    assert found.converged
    assert found.at_bound == ()
    assert found.evidence == pytest.approx(-best[1], abs=1e-7)
    np.testing.assert_allclose(
        np.log(list(found.parameters.values())), best[0], atol=1e-3
    )


def test_certificates_are_those_of_what_is_returned():
    data = *series(1), *weights_and_offsets(200)
    start = DynamicComparisons(
        Constant(1.0) + Matern12(1.0, 5.0), Gaussian(variance=1.0)
    )
    found = maximise_evidence(start, *data)
    assert found.converged
    np.testing.assert_allclose(
        found.gradient,
        evidence.gradient_of(found.model, list(found.parameters)),
        atol=2e-3,
    )
    assert np.abs(found.gradient).max() <= 1e-2
    assert (
        found.evidence
        == found.model.log_marginal_likelihood_
        == found.trace["evidence"].max()
    )
    assert found.parameters == parameters_of(found.model)
    assert found.model.converged_
    assert found.trace["evidence"].iloc[0] == pytest.approx(
        start.fit(*data).log_marginal_likelihood_
    )
    step = np.log(found.trace[list(found.parameters)]).diff().abs().iloc[1].max()
    # the first step changes each parameter by a factor of at most e
    assert step <= 1.001
    fresh = with_parameters(start, found.parameters).fit(*data)
    assert found.evidence == pytest.approx(fresh.log_marginal_likelihood_, abs=1e-6)


def test_fixed_parameters_stay():
    matches, y = series(1)
    start = DynamicComparisons(MOVING, Gaussian(variance=0.2))
    free = maximise_evidence(start, matches, y)
    found = maximise_evidence(
        start, matches, y, fixed=["Matern12.lengthscale", "likelihood.variance"]
    )
    assert found.parameters["Matern12.lengthscale"] == 1.5
    assert found.parameters["likelihood.variance"] == 0.2
    assert list(found.gradient.index) == ["Constant.variance", "Matern12.variance"]
    assert found.converged
    assert found.evidence < free.evidence


def test_default_bounds_are_wide_and_lengths_fit_the_span():
    """All measurements are 0, so the variance decreases to its bound, and the length
    scale reaches one end."""
    matches, y = series(1)
    span = float(np.ptp(matches.time))
    start = DynamicComparisons(Matern12(2.0, 1.0), Gaussian(variance=1.0))
    fixed = ["likelihood.variance", "Matern12.lengthscale"]
    found = maximise_evidence(start, matches, 0 * y, fixed=fixed, gtol=1e-9)
    assert found.parameters["Matern12.variance"] == pytest.approx(2e-6)
    assert found.at_bound == ("Matern12.variance",)
    free = ["likelihood.variance", "Matern12.variance"]
    found = maximise_evidence(start, matches, 1 + 0 * y, fixed=free)
    assert found.parameters["Matern12.lengthscale"] == pytest.approx(100 * span)


def test_a_search_that_ends_too_early_warns():
    matches, y = series(1)
    start = DynamicComparisons(
        Constant(1.0) + Matern12(1.0, 20.0), Gaussian(variance=5.0)
    )
    with pytest.warns(ConvergenceWarning, match="no maximum"):
        found = maximise_evidence(start, matches, y, max_iter=1)
    assert not found.converged


def test_the_search_returns_from_where_no_fit_is_possible(monkeypatch):
    matches, y = informative(n=400, margin=0)
    start = DynamicComparisons(Constant(1.0), Probit())
    free = maximise_evidence(start, matches, y, gtol=1e-4)
    best = free.parameters["Constant.variance"]
    fit = evidence.infer

    def fails_below(model, *rest):
        if model.covariance.variance < 0.9 * best:
            raise ValueError("the likelihood overflows")
        return fit(model, *rest)

    monkeypatch.setattr(evidence, "infer", fails_below)
    start.set_params(covariance=Constant(2 * best))
    found = maximise_evidence(start, matches, y, gtol=1e-4)
    assert found.trace["evidence"].isna().any()
    assert found.converged
    assert found.parameters["Constant.variance"] == pytest.approx(best, rel=1e-2)
    start.set_params(covariance=Constant(0.5 * best))
    with pytest.raises(ValueError, match="the likelihood overflows"):
        maximise_evidence(start, matches, y)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model": Constant()}, "model"),
        ({"model": DynamicComparisons(Constant(1.0), Probit(), max_iter=1)}, "sweeps"),
        ({"matches": [[1, -1]]}, "matches"),
        ({"y": np.full(40, 3)}, r"y\[0\]"),
        ({"fixed": ["a"]}, "fixed.*'a'"),
        ({"fixed": ["Constant.variance"]}, "Constant.variance"),
        ({"fixed": None}, "fixed"),
        ({"fixed": "Constant.variance"}, "fixed"),
        ({"gtol": 0}, "gtol"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_input_of_the_maximum(changes, named):
    matches, y = small(n=40, outcomes=(1, -1))
    usual = {
        "model": DynamicComparisons(Constant(1.0), Probit()),
        "matches": matches,
        "y": y,
    }
    with pytest.raises(ValueError, match=named):
        maximise_evidence(**(usual | changes))


@pytest.mark.parametrize(
    ("fixed", "n_warnings"), [(["Matern12.lengthscale"], 1), ([], 0)]
)
def test_a_maximum_warns_once_where_a_length_that_stays_is_absurd(fixed, n_warnings):
    matches, y = small(n=40, outcomes=(1, -1))
    model = DynamicComparisons(Constant(0.3) + Matern12(0.6, 5e-5), Probit())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        maximise_evidence(model, matches, y, max_iter=2, gtol=1e9, fixed=fixed)
    assert [warning.category for warning in caught] == [TimeWarning] * n_warnings


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_search_stays_in_the_range_of_the_likelihood():
    """The point differences are so large that the evidence would prefer a base rate
    above the largest allowed one."""
    y = np.round(np.random.default_rng(1).normal(0, 5000, 40))
    matches = Matches(np.tile([[1, -1]], (40, 1)), np.arange(40.0), ["a", "b"])
    found = maximise_evidence(
        DynamicComparisons(Constant(0.01), Skellam(1e5)), matches, y
    )
    assert found.parameters["likelihood.base_rate"] == pytest.approx(1e6, rel=1e-3)
    assert "likelihood.base_rate" in found.at_bound
