"""Covariances and likelihoods as values: what they say of themselves, and what comes back from it."""

import json
from dataclasses import fields

import pytest
from dynamics.problems import COVARIANCES, FORMULAS, LIKELIHOODS

from preflearn import dynamics
from preflearn.dynamics import Gaussian, Likelihood, covariance_from, likelihood_from

VALUES = [
    *FORMULAS,
    *COVARIANCES[8:],
    *(ours for ours, *_ in LIKELIHOODS.values()),
    Gaussian(3.0, margin=0.5),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_descriptions_reprs_and_hashes(value):
    read = likelihood_from if isinstance(value, Likelihood) else covariance_from
    for again in (read(json.loads(json.dumps(value.describe()))), eval(repr(value), dict(vars(dynamics)))):
        assert again == value
        assert hash(again) == hash(value)
        assert repr(again) == repr(value)
    assert [value == other for other in VALUES].count(True) == 1
    for field in fields(value):
        with pytest.raises(AttributeError):
            setattr(value, field.name, 2.0)


@pytest.mark.parametrize(
    ("read", "description", "message"),
    [
        (covariance_from, "Constant", "the description of a covariance is 'Constant'; expected a dict"),
        (likelihood_from, "Probit", "the description of a likelihood is 'Probit'; expected a dict"),
        (covariance_from, {"kind": "Cosine"}, r"a covariance is 'Cosine'; expected one of \['Aff"),
        (likelihood_from, {"kind": "Cauchy"}, r"a likelihood is 'Cauchy'; expected one of \['Gau"),
        (covariance_from, {"kind": "_Matern", "variance": 1.0}, "the kind of a covariance is '_Matern'"),
        (covariance_from, {"variance": 1.0}, "the kind of a covariance is None"),
        (covariance_from, {"kind": "Constant"}, r"Constant has \[\]; expected \['variance'"),
        (
            covariance_from,
            {"kind": "Linear", "a": 1},
            r"Linear has \['a'\]; expected \['variance', 'origin'\]",
        ),
        (covariance_from, {"kind": "Constant", "variance": -1.0}, "variance is -1.0"),
        (likelihood_from, {"kind": "OrdinalProbit", "margin": -1.0}, r"margin is -1\.0"),
        (covariance_from, {"kind": "Sum", "parts": []}, r"parts is \(\); expected at least one covariance"),
        (covariance_from, {"kind": "Sum", "parts": 3}, "parts is 3; expected a list of descriptions"),
        (covariance_from, {"kind": "Sum", "parts": [1]}, "the description of a covariance is 1"),
    ],
)
def test_descriptions_that_are_refused(read, description, message):
    with pytest.raises(ValueError, match=message):
        read(description)
