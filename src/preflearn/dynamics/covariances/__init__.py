"""Covariance functions of scores over time, each with a state-space model.

To add a covariance, write a class in a module of this folder, and add it to `EXAMPLES`
and to `__all__`. The package exports the class from there, and the tests run over all
entries.
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

# An instance of each covariance, and the error of its state-space model as a fraction
# of the variance; 0 if it is exact.
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
