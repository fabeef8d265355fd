"""What all learners share: item kernels, the estimator contract, losses of outcomes."""

from preflearn.ground.estimator import ComparisonEstimator
from preflearn.ground.kernels import NotPositiveSemidefiniteError

__all__ = ["ComparisonEstimator", "NotPositiveSemidefiniteError"]
