"""Covariances and likelihoods as values. A new one is a separate class and needs no
other edit."""

import json
from dataclasses import dataclass, fields

import numpy as np
import pytest
from dynamics import dense
from dynamics.problems import (
    COVARIANCES,
    LIKELIHOODS,
    assert_equals_dense,
    fitted,
    informative,
    own_density,
    small,
)

from preflearn import dynamics
from preflearn.core.compilation import njit_inside
from preflearn.dynamics import (
    Constant,
    Covariance,
    Gaussian,
    Likelihood,
    StateSpace,
    discover_covariance,
    in_words,
    load,
    maximise_evidence,
    one_step_ahead,
    parameters_of,
    random_search,
    with_parameters,
)
from preflearn.dynamics.covariances.blocks import Decay
from preflearn.dynamics.likelihoods.likelihood import Results
from preflearn.dynamics.likelihoods.quadrature import around, averaged, tilted
from preflearn.dynamics.parametrized import Length, Positive

VALUES = [
    *dynamics.covariances.EXAMPLES,
    *(c for c in COVARIANCES if "parts" in c.to_dict()),
    *(ours for ours, *_ in LIKELIHOODS.values()),
    Gaussian(3.0, margin=0.5),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_descriptions_reprs_and_hashes(value):
    read = (
        Likelihood.from_dict if isinstance(value, Likelihood) else Covariance.from_dict
    )
    for again in (
        read(json.loads(json.dumps(value.to_dict()))),
        eval(repr(value), dict(vars(dynamics))),
    ):
        assert again == value
        assert hash(again) == hash(value)
        assert repr(again) == repr(value)
    assert [value == other for other in VALUES].count(True) == 1
    for field in fields(value):
        with pytest.raises(AttributeError):
            setattr(value, field.name, 2.0)


@pytest.mark.parametrize(
    ("read", "description", "named"),
    [
        (Covariance.from_dict, "Constant", "'Constant'"),
        (Likelihood.from_dict, {"kind": "Cauchy"}, "'Cauchy'"),
        (Covariance.from_dict, {"kind": "_Matern", "variance": 1.0}, "'_Matern'"),
        (Covariance.from_dict, {"kind": "Probit"}, "'Probit'"),
        (Covariance.from_dict, {"variance": 1.0}, "'kind' is one of"),
        (Covariance.from_dict, {"kind": "Constant"}, "Constant.*'variance'"),
        (
            Covariance.from_dict,
            {"kind": "Linear", "a": 1},
            "Linear.*'variance', 'origin'",
        ),
        (Covariance.from_dict, {"kind": "Constant", "variance": -1.0}, "variance"),
        (Covariance.from_dict, {"kind": "Sum", "parts": []}, "parts"),
        (Covariance.from_dict, {"kind": "Sum", "parts": 3}, "parts"),
        (Covariance.from_dict, {"kind": "Sum", "parts": [1]}, "is 1"),
    ],
)
def test_bad_descriptions_are_named(read, description, named):
    with pytest.raises(ValueError, match=named):
        read(description)


@dataclass(frozen=True)
class TwoScales(Covariance):
    """Covariance of which half the variance decays over a length scale, and half over a
    multiple of it."""

    variance: Positive = 1.0
    lengthscale: Length = 1.0
    factor: Positive = 10.0

    def _gram(self, t, t2, first):
        u = np.abs(t - t2) / self.lengthscale
        return self.variance / 2 * (np.exp(-u) + np.exp(-u / self.factor))

    def state_space(self):
        rates = 1 / self.lengthscale, 1 / (self.lengthscale * self.factor)
        return StateSpace([Decay(self.variance / 2, rate, 1) for rate in rates])


@njit_inside
def _density(a, b, y, u, x):
    decay = np.exp(-abs(u + x) / a)
    value = min(y * (u + x) / a, 0.0) - np.log1p(decay)
    lost = 1 / (1 + np.exp(y * (u + x) / a))
    return value, y * lost / a, -decay / (1 + decay) ** 2 / a**2


def _log_partition(a, b, y, mean, variance):
    mode, value, first, second = tilted(
        _density, (a, b, y, mean, variance), mean, around(0.0, y)
    )
    return value + _density(a, b, y, mode, 0.0)[0], first, second


def _expected(a, b, y, mean, variance):
    return averaged(_density, a, b, y, mean, variance, around(0.0, y))


@dataclass(frozen=True)
class WideLogit(Results):
    """A logistic likelihood with a scale of the noise."""

    scale: Positive = 1.0
    ranges = {"scale": (0.5, 2.0)}  # noqa: RUF012
    integrals = _log_partition, _expected
    has_ties = False


def test_a_new_class_is_fitted_saved_searched_and_described_without_another_edit(
    tmp_path,
):
    matches, y = informative(margin=0)
    covariance = Constant(0.5) + TwoScales(0.4, 3.0, 5.0)
    for method in ("kl", "ep"):
        model = fitted(covariance, WideLogit(1.2), matches, y, method, tol=1e-8)
        problem = dense.Problem(matches, covariance)
        reference = dense.fixed_point(
            problem, lambda y, d: dense.logit(y, d / 1.2), y, method, rate=0.5
        )
        assert model.log_marginal_likelihood_ == pytest.approx(
            reference.log_evidence, rel=1e-9
        )
    values = {
        "TwoScales.variance": 0.4,
        "TwoScales.lengthscale": 3.0,
        "TwoScales.factor": 5.0,
    }
    assert parameters_of(model) == {
        "Constant.variance": 0.5,
        **values,
        "likelihood.scale": 1.2,
    }
    assert with_parameters(model, {"likelihood.scale": 1.5}).likelihood == WideLogit(
        1.5
    )
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert (again.covariance, again.likelihood) == (covariance, WideLogit(1.2))
    np.testing.assert_array_equal(
        again.predict_proba(matches), model.predict_proba(matches)
    )
    drawn = random_search(
        model, matches, y, {"TwoScales.factor": (2.0, 50.0)}, 5, random_state=0
    )
    assert drawn.configurations["converged"].all()
    best = maximise_evidence(model, matches, y, gtol=0.05)
    assert best.converged
    assert best.evidence > model.log_marginal_likelihood_
    # the declared range of the scale
    assert 0.5 <= best.parameters["likelihood.scale"] <= 2.0
    assert np.isfinite(one_step_ahead(model, matches, y, 45).probabilities).all()
    assert repr(covariance.parts[1]) in in_words(covariance)


@njit_inside
def _cloglog(a, b, y, u, x):
    """Density of the complementary log-log link, P(1 | u) = 1 - exp(-e^u)."""
    rate = np.exp(min(u + x, 30.0))
    if y < 0:
        return -rate, -rate, -rate
    first = rate / np.expm1(rate)
    return np.log(-np.expm1(-rate)), first, first * (1 - rate - first)


def _cloglog_partition(a, b, y, mean, variance):
    rule = (0.0, 0.0, 1.0, 0.05)
    mode, value, first, second = tilted(
        _cloglog, (a, b, y, mean, variance), min(mean, 3.0), rule
    )
    return value + _cloglog(a, b, y, mode, 0.0)[0], first, second


def _cloglog_expected(a, b, y, mean, variance):
    return averaged(_cloglog, a, b, y, mean, variance, (0.0, 0.0, 1.0, 0.05))


@dataclass(frozen=True)
class ToyLikelihood(Results):
    integrals = _cloglog_partition, _cloglog_expected
    has_ties = False


@dataclass(frozen=True)
class ToyCovariance(Covariance):
    """A score that is drawn independently at each time."""

    variance: Positive = 1.0

    def _gram(self, t, t2, first):
        return self.variance * (t == t2)

    def state_space(self):
        return StateSpace([Decay(self.variance, 1e6, 1)])


@pytest.mark.parametrize("method", ["ep", "kl"])
def test_a_toy_likelihood_and_a_toy_covariance_are_fitted(method):
    matches, y = small(n=20, outcomes=(1, -1))
    likelihood = ToyLikelihood()
    model = fitted(Constant(0.4) + ToyCovariance(0.3), likelihood, matches, y, method)
    assert_equals_dense(model, own_density(likelihood))


def test_a_likelihood_without_powers_takes_weights_from_one_on():
    matches, y = small(outcomes=(1, -1))
    weights = np.linspace(0.5, 2.0, len(y))
    likelihood = ToyLikelihood()
    with pytest.raises(ValueError, match=r"sample_weight.*ToyLikelihood.*method='kl'"):
        fitted(Constant(), likelihood, matches, y, sample_weight=weights)
    for method, given_weights in (("kl", weights), ("ep", 2 * weights)):
        model = fitted(
            Constant(), likelihood, matches, y, method, sample_weight=given_weights
        )
        assert model.converged_


def test_a_new_covariance_takes_part_in_a_discovery():
    found = discover_covariance(
        *informative(margin=0),
        WideLogit(),
        bases=[Constant(), TwoScales()],
        max_parts=1,
    )
    assert found.table["structure"].tolist() == ["Constant", "TwoScales"]
    assert (found.table["error"] == "").all()


def test_annotations_count_as_they_are_and_as_text():
    """Test without and with `from __future__ import annotations`, which this file does
    not contain."""
    assert TwoScales().positive() == {
        "variance": 1.0,
        "lengthscale": 1.0,
        "factor": 10.0,
    }
    assert TwoScales().lengths() == {"lengthscale": 1.0}
    with pytest.raises(ValueError, match="factor"):
        TwoScales(factor=-1)
    with pytest.raises(ValueError, match="scale"):
        WideLogit(3)
