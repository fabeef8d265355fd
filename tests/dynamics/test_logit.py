"""Wins and ties of logistic noise, on both sides of where the rules of integration change."""

import pytest
from dynamics.digits import CASES, near_a_plain_sum

from preflearn.dynamics import Logit, OrdinalLogit

LOGIT = Logit | OrdinalLogit


@pytest.mark.parametrize(
    ("mean", "variance"), [(-11, 144), (50, 1e4), (3, 7.99), (3, 8.01), (199, 1), (201, 1), (-30, 63.9)]
)
@pytest.mark.parametrize(("likelihood", "y"), [case for case in CASES if isinstance(case[0], LOGIT)])
def test_wide_and_narrow_distributions(likelihood, y, mean, variance):
    near_a_plain_sum(likelihood, y, mean, variance)
