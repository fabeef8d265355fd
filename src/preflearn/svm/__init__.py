"""Support vector machines for preferences and ties (P1, sections 3.2 and 4)."""

from preflearn.svm.base import DegenerateBiasError
from preflearn.svm.compare import SVMCompare
from preflearn.svm.logistic import LogisticCompare
from preflearn.svm.rank import SVMRank
from preflearn.svm.soft_lp import LPCompare

__all__ = [
    "DegenerateBiasError",
    "LPCompare",
    "LogisticCompare",
    "SVMCompare",
    "SVMRank",
]
