"""What covariances say, in words: every number is checked against the covariance itself."""

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
from preflearn.dynamics.choosing.words import variance_after


def first_line(covariance, unit="day", **options):
    return in_words(covariance, unit, **options).splitlines()[0]


def numbers(text):
    return [float(found.replace(",", "")) for found in re.findall(r"[0-9][0-9,]*\.?[0-9]*(?:e-?\d+)?", text)]


@pytest.mark.parametrize(
    ("covariance", "expected"),
    [
        (Constant(0.25), "Constant: a level that does not change, of standard deviation 0.5."),
        (
            PiecewiseConstant(4.0, (1.0, 2.0, 3.0)),
            "PiecewiseConstant: a level that is drawn anew at each of its boundaries, of standard "
            "deviation 2.",
        ),
        (
            Wiener(0.01 / 365.25, origin="first"),
            "Wiener: a random walk from 0 at each feature's first match; its variance grows by 0.01 a year, "
            "so a change has standard deviation 0.1 over one year and twice that over 4.",
        ),
        (
            Linear((0.5 / 365.25) ** 2, origin=20.0),
            "Linear: a straight line through 0 at time 20; its slope has standard deviation 0.5 a year.",
        ),
        (
            Affine(0.09, (0.5 / 365.25) ** 2, origin="first"),
            "Affine: a straight line, of standard deviation 0.3 at each feature's first match; its slope has "
            "standard deviation 0.5 a year.",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sentences(covariance, expected):
    assert first_line(covariance) == expected


@pytest.mark.parametrize("kind", [Matern12, Matern32, Matern52, SquaredExponential])
def test_memory_is_that_of_the_covariance(kind):
    covariance = kind(variance=2.25, lengthscale=20.0)
    told = re.search(
        r"deviation (.*); its correlation falls to (.*) over (.*) days and .* over (.*) days",
        first_line(covariance),
    )
    assert told is not None
    deviation, left, length, half = map(float, told.groups())
    assert (deviation, length) == (1.5, 20.0)
    assert covariance.gram([0.0], [20.0])[0, 0] / 2.25 == pytest.approx(left, abs=5e-3)
    assert covariance.gram([0.0], [half])[0, 0] / 2.25 == pytest.approx(0.5, abs=5e-3)


def test_periods_and_their_smoothness():
    covariance = Periodic(variance=1.44, lengthscale=1.5, period=365.25)
    told = first_line(covariance)
    assert told.startswith("Periodic: a pattern that comes back every 1 year, of standard deviation 1.2; its")
    assert covariance.gram([0.0], [365.25 / 2])[0, 0] / 1.44 == pytest.approx(numbers(told)[-1], abs=5e-3)


@pytest.mark.parametrize(
    ("covariance", "unit", "expected"),
    [
        (Matern12(1.0, 365.25), "day", "over 1 year and"),
        (Matern12(1.0, 1214.0), "day", "over 3.32 years and"),
        (Matern12(1.0, 200.0), "day", "over 200 days and"),
        (Matern12(1.0, 3.324), "year", "over 3.32 years and"),
        (Matern12(1.0, 0.1), "year", "over 0.1 years and"),
        (Matern12(1.0, 2.0), "week", "over 2 weeks and"),
        (Matern12(1.0, 40.0), "round", "falls to 0.37 over 40 rounds and"),
        (Matern12(1.0, 1.0), "round", "over 1 round and"),
        (Matern12(1.0, 1e6), "year", "over 1,000,000 years and"),
        (Wiener(0.147), "year", "grows by 0.147 a year"),
        (Wiener(0.147 / 365.25), "day", "grows by 0.147 a year"),
        (Wiener(0.147), "round", "0.147 a round, so a change has standard deviation 0.383 over one round"),
    ],
)
def test_units_are_such_that_one_can_imagine(covariance, unit, expected):
    assert expected in first_line(covariance, unit)


def test_shares_are_those_of_the_variance_of_a_difference():
    covariance = Constant(0.01) + Matern12(0.03, 900.0) + Matern12(0.06, 9.0)
    last = in_words(covariance).splitlines()[-1]
    assert last == (
        f"Together: a difference of two scores has standard deviation {np.sqrt(0.2):.3g}; of its variance "
        "10 % is from Constant, 30 % from Matern12 (1) and 60 % from Matern12 (2)."
    )
    assert in_words(Constant(0.5)).splitlines()[-1] == (
        "Together: a difference of two scores has standard deviation 1."
    )


def test_parts_that_grow_are_compared_after_a_time():
    covariance = Constant(1.0) + Wiener(0.01, origin=50.0) + Linear(0.0004, origin="first")
    last = in_words(covariance, "round", span=100.0).splitlines()[-1]
    assert last == (
        f"Together: 100 rounds after the origin, a difference of two scores has standard deviation "
        f"{np.sqrt(12):.3g}; of its variance {100 / 6:.3g} % is from Constant, {100 / 6:.3g} % from Wiener "
        f"and {400 / 6:.3g} % from Linear."
    )
    assert "Together: 1 year after the origin" in in_words(covariance)
    assert "Together: 10 rounds after the origin" in in_words(covariance, "round")
    assert variance_after(Linear(3.0, origin=7.0) * (Constant(2.0) + Wiener(1.0, "first")), 2.0) == 12 * 4


def test_products_and_sums_inside_them():
    covariance = Constant(1.0) + Matern12(4.0, 10.0) * (Constant(0.25) + Wiener(0.5, "first"))
    told = in_words(covariance).splitlines()
    assert told[1].startswith(
        "Matern12 x (Constant + Wiener): a product of 2 parts, whose covariances are multiplied [Matern12, a "
        "rough curve around 0, of standard deviation 2; its correlation"
    )
    assert "; Constant + Wiener, a sum of 2 parts [Constant, a level" in told[1]
    assert told[2].startswith("Together: 1 year after the origin, ")


def test_mappings_name_whose_covariance_it_is():
    told = in_words({"advantage": Constant(0.04), "*": Constant(0.25)}).splitlines()
    assert told[0] == "advantage:"
    assert told[3] == "all other features:"
    assert len(told) == 6


def test_bad_input():
    with pytest.raises(ValueError, match=r"covariance is 1; expected a Covariance"):
        in_words(1)
    with pytest.raises(ValueError, match=r"covariance is \{\}; expected at least one covariance"):
        in_words({})
    for wrong in ("", 3, None):
        with pytest.raises(ValueError, match=r"unit is .*; expected a word"):
            in_words(Constant(), wrong)
    with pytest.raises(ValueError, match=r"unit is 'days'; expected a word in the singular"):
        in_words(Constant(), "days")
    with pytest.raises(ValueError, match="span is 0; expected a positive number"):
        in_words(Constant(), span=0)
