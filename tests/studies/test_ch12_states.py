import pytest

from preflearn.dynamics import (
    Affine,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    PiecewiseConstant,
    Wiener,
)
from studies.ch12_states import least_state_size


@pytest.mark.parametrize(
    ("covariance", "found"),
    [
        (Constant(), (1, 1, True)),
        (Wiener(), (1, 1, True)),
        (Linear(), (1, 2, True)),
        (Affine(), (2, 2, True)),
        (Matern12(lengthscale=3.0), (1, 1, True)),
        (Matern32(lengthscale=3.0), (2, 2, True)),
        (Matern52(lengthscale=3.0), (3, 3, True)),
        (PiecewiseConstant(boundaries=(12.5,)), (1, None, None)),
        (Wiener() * Wiener(), (1, 1, False)),
        (Wiener() * Linear(), (1, 2, False)),
        (Linear() * Linear(), (1, 3, True)),
        (Affine() * Affine(), (3, 3, True)),
        (Matern52(lengthscale=3.0) * Matern52(lengthscale=4.0), (5, 5, True)),
        (Constant() + Matern12(lengthscale=3.0), (2, 2, True)),
        (Affine() + Wiener(), (2, 2, True)),
    ],
    ids=repr,
)
def test_least_state_size(covariance, found):
    assert least_state_size(covariance) == found
