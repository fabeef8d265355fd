"""P4: scores that move in time, learned from matches; and what can be chosen by the
evidence."""

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
from preflearn.dynamics.forecasting import OneStepAhead, one_step_ahead
from preflearn.dynamics.likelihoods.counts import Poisson, Skellam
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.dynamics.likelihoods.logit import Logit, OrdinalLogit
from preflearn.dynamics.likelihoods.normal import Gaussian, OrdinalProbit, Probit
from preflearn.dynamics.model import DynamicComparisons, load
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
    "Affine",
    "Constant",
    "Covariance",
    "Discovery",
    "DynamicComparisons",
    "EvidenceMaximum",
    "Gaussian",
    "Likelihood",
    "Linear",
    "Logit",
    "Matern12",
    "Matern32",
    "Matern52",
    "OneStepAhead",
    "OrdinalLogit",
    "OrdinalProbit",
    "Periodic",
    "PiecewiseConstant",
    "Poisson",
    "Probit",
    "RandomSearch",
    "Skellam",
    "SquaredExponential",
    "StateSpace",
    "Wiener",
    "discover_covariance",
    "in_words",
    "load",
    "maximise_evidence",
    "one_step_ahead",
    "parameters_of",
    "random_search",
    "with_parameters",
]
