"""What all learners share: item kernels, the estimator contract, losses of outcomes, splits of pairs."""

from preflearn.ground.estimator import ComparisonEstimator, LeakageWarning, OnItems
from preflearn.ground.kernels import NotPositiveSemidefiniteError
from preflearn.ground.splits import DateSplit, ItemKFold, QueryKFold

__all__ = [
    "ComparisonEstimator",
    "DateSplit",
    "ItemKFold",
    "LeakageWarning",
    "NotPositiveSemidefiniteError",
    "OnItems",
    "QueryKFold",
]
