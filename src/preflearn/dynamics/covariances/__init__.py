"""Covariance functions of a score in time, each also as a linear state-space model.

A new covariance is a class in a file of this folder, with an entry in `EXAMPLES` and in
`__all__`; the package exports it from there, and the tests run over all entries.
"""

from preflearn.dynamics.covariances.approximations import Periodic, SquaredExponential
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.elementary import (
    Affine,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    PiecewiseConstant,
    Wiener,
)
from preflearn.dynamics.covariances.state_space import StateSpace

__all__ = [
    "Affine",
    "Constant",
    "Covariance",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "PiecewiseConstant",
    "SquaredExponential",
    "StateSpace",
    "Wiener",
]

# An instance of each covariance, and the error of its state-space model, as a fraction
# of the variance; 0 where it is exact.
EXAMPLES: dict[Covariance, float] = {
    Constant(0.7): 0.0,
    PiecewiseConstant(2.0, (0.5, 2.0)): 0.0,
    Wiener(0.3, origin=-1.0): 0.0,
    Matern12(0.6, 1.3): 0.0,
    Matern32(0.6, 1.3): 0.0,
    Matern52(0.8, 2.0): 0.0,
    Linear(0.5, origin=-1.0): 0.0,
    Affine(1.2, 0.3, origin=-0.5): 0.0,
    Periodic(0.9, 0.8, 2.5): 1e-4,
    SquaredExponential(0.9, 0.8): 3.1e-3,
}
