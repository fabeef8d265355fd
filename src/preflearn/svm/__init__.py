"""P1, sections 3.2 and 4: ranking functions from preferences and ties that no function separates."""

from preflearn.svm.compare import SVMCompare
from preflearn.svm.logistic import LogisticCompare
from preflearn.svm.machine import DegenerateBiasError
from preflearn.svm.rank import SVMRank
from preflearn.svm.selection import GridSelection, SelectedMachine, select_on_grid
from preflearn.svm.soft_lp import LPCompare
from preflearn.svm.study import Outcome, compare_methods, direction_auc

__all__ = [
    "DegenerateBiasError",
    "GridSelection",
    "LPCompare",
    "LogisticCompare",
    "Outcome",
    "SVMCompare",
    "SVMRank",
    "SelectedMachine",
    "compare_methods",
    "direction_auc",
    "select_on_grid",
]
