import pytest

from preflearn.dynamics import (
    Affine,
    Constant,
    Linear,
    Matern12,
    Matern52,
    PiecewiseConstant,
    Wiener,
)
from preflearn_book.studies.ch12_states import least_state_size

WIENER, LINEAR, AFFINE = (part(origin=0.0) for part in (Wiener, Linear, Affine))
MATERN52 = Matern52(lengthscale=3.0)


@pytest.mark.parametrize(
    ("covariance", "sizes"),
    [
        (WIENER, (1, 1, True)),
        (LINEAR, (1, 2, True)),
        (AFFINE, (2, 2, True)),
        (MATERN52, (3, 3, True)),
        (PiecewiseConstant(boundaries=(12.5,)), (1, None, None)),
        (WIENER * WIENER, (1, 1, False)),
        (WIENER * LINEAR, (1, 2, False)),
        (LINEAR * LINEAR, (1, 3, True)),
        (AFFINE * AFFINE, (3, 3, True)),
        (MATERN52 * Matern52(lengthscale=4.0), (5, 5, True)),
        (Constant() + Matern12(lengthscale=3.0), (2, 2, True)),
        (AFFINE + WIENER, (2, 2, True)),
    ],
    ids=repr,
)
def test_least_state_size(covariance, sizes):
    assert least_state_size(covariance) == sizes
