"""Descriptions of covariances in words. Each number is compared with the covariance
itself."""

import re

import numpy as np
import pytest

from preflearn.dynamics import (
    Affine,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    PiecewiseConstant,
    SquaredExponential,
    Wiener,
    in_words,
)
from preflearn.dynamics.covariances.units import length, number
from preflearn.dynamics.model_selection.summary import variance_after

YEAR = 365.25


def numbers(line):
    """Return the numbers that are neither in the name of a part nor 0."""
    text = re.sub(r"[A-Za-z]+\d+( \(\d\))?|\b0\b(?!\.)", "", line)
    return [
        float(found.replace(",", ""))
        for found in re.findall(r"\d[\d,]*\.?\d*(?:e-?\d+)?", text)
    ]


@pytest.mark.parametrize(
    ("covariance", "expected"),
    [
        (Constant(0.25), {0.5}),
        (PiecewiseConstant(4.0, (1.0, 2.0, 3.0)), {2}),
        (Wiener(0.01 / YEAR, origin="first"), {0.01, 0.1}),
        (Linear((0.5 / YEAR) ** 2, origin=20.0), {20, 0.5}),
        (Affine(0.09, (0.5 / YEAR) ** 2, origin="first"), {0.3, 0.5}),
        (Matern12(2.25, 2 * YEAR) * Wiener(0.5 / YEAR), {1.5, 2, 0.5}),
    ],
    ids=repr,
)
def test_parts_are_described_by_standard_deviations_and_rates_per_year(
    covariance, expected
):
    assert expected <= set(numbers(in_words(covariance).splitlines()[0]))


@pytest.mark.parametrize("kind", [Matern12, Matern32, Matern52, SquaredExponential])
def test_the_correlations_are_those_of_the_covariance(kind):
    covariance = kind(variance=2.25, lengthscale=20.0)
    deviation, correlation, days, half = numbers(in_words(covariance).splitlines()[0])
    assert (deviation, days) == (1.5, 20.0)
    found = covariance.gram([0.0], [20.0, half])[0] / 2.25
    np.testing.assert_allclose(found, [correlation, 0.5], atol=5e-3)


def test_the_least_correlation_of_a_period_is_that_of_the_covariance():
    covariance = Periodic(variance=1.44, lengthscale=1.5, period=YEAR)
    found = numbers(in_words(covariance).splitlines()[0])
    assert {1, 1.2} <= set(found)
    assert covariance.gram([0.0], [YEAR / 2])[0, 0] / 1.44 == pytest.approx(
        found[-1], abs=5e-3
    )


def test_amounts_have_three_digits_and_lengths_a_unit():
    assert [number(value) for value in (1234.5, 999.7, 0.0012345)] == [
        "1,234",
        "1,000",
        "0.00123",
    ]
    assert [length(days) for days in (1, 364, 365.2, 3652.5)] == [
        "1 day",
        "364 days",
        "1 year",
        "10 years",
    ]


@pytest.mark.parametrize(
    ("covariance", "expected"),
    [
        (Constant(0.5), [1]),
        (
            Constant(0.01) + Matern12(0.03, 900.0) + Matern12(0.06, 9.0),
            [np.sqrt(0.2), 10, 30, 60],
        ),
        (
            Constant(1.0) + Wiener(0.01, origin=50.0) + Linear(0.0004, origin="first"),
            # standard deviations after 100 days
            [100, np.sqrt(12), 100 / 6, 100 / 6, 400 / 6],
        ),
    ],
    ids=repr,
)
def test_percentages_are_those_of_the_variance_of_a_difference(covariance, expected):
    assert numbers(in_words(covariance, span=100.0).splitlines()[-1]) == pytest.approx(
        expected, rel=5e-3
    )


def test_the_variance_after_a_time_is_from_the_origins_on():
    assert (
        variance_after(
            Linear(3.0, origin=7.0) * (Constant(2.0) + Wiener(1.0, "first")), 2.0
        )
        == 12 * 4
    )


def test_bad_input():
    with pytest.raises(ValueError, match="covariance"):
        in_words(1)
    with pytest.raises(ValueError, match="span"):
        in_words(Constant(), span=0)
