"""What all learners share: item kernels, the estimator contract, losses of outcomes, splits of pairs."""

from preflearn.ground.diagnosis import Diagnosis, NotIdentifiedWarning, diagnose
from preflearn.ground.estimator import ComparisonEstimator
from preflearn.ground.kernels import NotPositiveSemidefiniteError
from preflearn.ground.splits import DateSplit, ItemKFold, QueryKFold

__all__ = [
    "ComparisonEstimator",
    "DateSplit",
    "Diagnosis",
    "ItemKFold",
    "NotIdentifiedWarning",
    "NotPositiveSemidefiniteError",
    "QueryKFold",
    "diagnose",
]
