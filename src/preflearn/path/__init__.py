"""Regularization paths of support vector machines (P2).

A path contains the solutions for all values of the regularization parameter.
"""

from preflearn.path.binary import svm_path
from preflearn.path.ranking import ranksvm_path
from preflearn.path.reduced import reduced_graph
from preflearn.path.regularization import RegularizationPath, Selection
from preflearn.path.validation import CrossValidation, ItemFolds, cross_validated_path

__all__ = [
    "CrossValidation",
    "ItemFolds",
    "RegularizationPath",
    "Selection",
    "cross_validated_path",
    "ranksvm_path",
    "reduced_graph",
    "svm_path",
]
