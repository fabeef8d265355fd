"""test_logit"""

import numpy as np
import pytest
from dynamics.digits import arrays, near, one

from preflearn.dynamics import Gaussian, Logit, OrdinalLogit, OrdinalProbit, Probit


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [
        (Probit(), 1),
        (Logit(), -1),
        (OrdinalProbit(0.5), 1),
        (OrdinalProbit(0.1), 0),
        (OrdinalProbit(4.0), 0),
        (OrdinalLogit(0.5), -1),
        (OrdinalLogit(0.5), 0),
        (OrdinalLogit(4.0), 0),
        (Gaussian(3.0), -2.5),
    ],
)
def test_reverse_kl_of_wide_distributions(likelihood, y):
    """One sum of 200,000 nodes, where many digits take long."""
    x = np.linspace(-12, 12, 200_001)
    weights = np.exp(-(x**2) / 2)
    for mean, deviation in ((-11.0, 12.0), (50.0, 100.0)):
        values = arrays(likelihood, y, mean + deviation * x, np.zeros(len(x)), ep=False)
        near(one(likelihood, y, mean, deviation**2, ep=False), values @ weights / weights.sum(), 1e-9)
