"""Models of scores that change over time, and their selection by evidence (P4)."""

from preflearn.dynamics import covariances, likelihoods
from preflearn.dynamics.covariances import *  # noqa: F403
from preflearn.dynamics.forecasting import OneStepAhead, one_step_ahead
from preflearn.dynamics.likelihoods import *  # noqa: F403
from preflearn.dynamics.model import DynamicComparisons, load
from preflearn.dynamics.model_selection.averaged import AveragedComparisons
from preflearn.dynamics.model_selection.averaging import average_over_hyperparameters
from preflearn.dynamics.model_selection.discovery import Discovery, discover_covariance
from preflearn.dynamics.model_selection.evidence import (
    EvidenceMaximum,
    maximise_evidence,
)
from preflearn.dynamics.model_selection.hyperparameters import (
    parameters_of,
    random_search,
    with_parameters,
)
from preflearn.dynamics.model_selection.summary import in_words
from preflearn.solvers.search import RandomSearch

__all__ = [
    "AveragedComparisons",
    "Discovery",
    "DynamicComparisons",
    "EvidenceMaximum",
    "OneStepAhead",
    "RandomSearch",
    "average_over_hyperparameters",
    "discover_covariance",
    "in_words",
    "load",
    "maximise_evidence",
    "one_step_ahead",
    "parameters_of",
    "random_search",
    "with_parameters",
]
__all__ += covariances.__all__
__all__ += likelihoods.__all__
