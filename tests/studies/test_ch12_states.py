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
        (Wiener(origin=0.0), (1, 1, True)),
        (Linear(origin=0.0), (1, 2, True)),
        (Affine(origin=0.0), (2, 2, True)),
        (Matern12(lengthscale=3.0), (1, 1, True)),
        (Matern32(lengthscale=3.0), (2, 2, True)),
        (Matern52(lengthscale=3.0), (3, 3, True)),
        (PiecewiseConstant(boundaries=(12.5,)), (1, None, None)),
        (Wiener(origin=0.0) * Wiener(origin=0.0), (1, 1, False)),
        (Wiener(origin=0.0) * Linear(origin=0.0), (1, 2, False)),
        (Linear(origin=0.0) * Linear(origin=0.0), (1, 3, True)),
        (Affine(origin=0.0) * Affine(origin=0.0), (3, 3, True)),
        (Matern52(lengthscale=3.0) * Matern52(lengthscale=4.0), (5, 5, True)),
        (Constant() + Matern12(lengthscale=3.0), (2, 2, True)),
        (Affine(origin=0.0) + Wiener(origin=0.0), (2, 2, True)),
    ],
    ids=repr,
)
def test_least_state_size(covariance, found):
    assert least_state_size(covariance) == found


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"start": float("nan")}, "start is nan"),
        ({"step": 0}, "step is 0; expected a positive number"),
        ({"n_times": 3}, "n_times is 3; expected a whole number of at least 4"),
        ({"tol": 2}, "tol is 2; expected a number from 0 to 1"),
    ],
)
def test_a_grid_that_is_none_is_named(grid, message):
    with pytest.raises(ValueError, match=message):
        least_state_size(Constant(), **grid)
