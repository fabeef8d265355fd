"""P4: matches in time, and what can be learned of players whose strength changes.

The engine is loaded at once, the rest when a name of it is first asked for: a program or a recorded run that
only forecasts matches does not depend on the modules that search for hyperparameters.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from preflearn.dynamics.approximations import Periodic, SquaredExponential
from preflearn.dynamics.composite import Covariance, covariance_from
from preflearn.dynamics.covariance import (
    Affine,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    PiecewiseConstant,
    Wiener,
)
from preflearn.dynamics.likelihood import (
    Gaussian,
    Likelihood,
    Logit,
    OrdinalLogit,
    OrdinalProbit,
    Poisson,
    Probit,
    Skellam,
    likelihood_from,
)
from preflearn.dynamics.matches import Matches
from preflearn.dynamics.model import DynamicComparisons, load
from preflearn.dynamics.state_size import least_state_size
from preflearn.dynamics.state_space import StateSpace

if TYPE_CHECKING:
    from preflearn.dynamics.ahead import OneStepAhead, one_step_ahead
    from preflearn.dynamics.configurations import RandomSearch, random_search
    from preflearn.dynamics.discovery import Discovery, discover_covariance
    from preflearn.dynamics.histories import (
        FEATURES,
        SeasonSplit,
        forward_splits,
        match_features,
        season_split,
    )
    from preflearn.dynamics.hyperparameters import EvidenceMaximum, evidence_gradient, maximise_evidence
    from preflearn.dynamics.parameters import parameters_of, with_parameters
    from preflearn.dynamics.points import result_probabilities, scoring_matches
    from preflearn.dynamics.protocol import (
        ForwardSearch,
        SeasonTests,
        auc_scorer,
        forward_search,
        scaled_pairs,
        score_differences,
        season_tests,
    )
    from preflearn.dynamics.rating_search import RatingSearch, select_rating
    from preflearn.dynamics.rating_system import earlier_forecasts
    from preflearn.dynamics.ratings import Elo, Glicko
    from preflearn.dynamics.simulated import simulate_matches
    from preflearn.dynamics.sports import (
        ResultForecasts,
        bradley_terry_probabilities,
        forecast_results,
        interaction_model,
        observations,
        published_model,
        random_split,
        training_size,
    )
    from preflearn.dynamics.trueskill import TrueSkill
    from preflearn.dynamics.weekly import exact_weekly_moments, weekly_moments, weeks_of
    from preflearn.dynamics.words import in_words

__all__ = [
    "FEATURES",
    "Affine",
    "Constant",
    "Covariance",
    "Discovery",
    "DynamicComparisons",
    "Elo",
    "EvidenceMaximum",
    "ForwardSearch",
    "Gaussian",
    "Glicko",
    "Likelihood",
    "Linear",
    "Logit",
    "Matches",
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
    "RatingSearch",
    "ResultForecasts",
    "SeasonSplit",
    "SeasonTests",
    "Skellam",
    "SquaredExponential",
    "StateSpace",
    "TrueSkill",
    "Wiener",
    "auc_scorer",
    "bradley_terry_probabilities",
    "covariance_from",
    "discover_covariance",
    "earlier_forecasts",
    "evidence_gradient",
    "exact_weekly_moments",
    "forecast_results",
    "forward_search",
    "forward_splits",
    "in_words",
    "interaction_model",
    "least_state_size",
    "likelihood_from",
    "load",
    "match_features",
    "maximise_evidence",
    "observations",
    "one_step_ahead",
    "parameters_of",
    "published_model",
    "random_search",
    "random_split",
    "result_probabilities",
    "scaled_pairs",
    "score_differences",
    "scoring_matches",
    "season_split",
    "season_tests",
    "select_rating",
    "simulate_matches",
    "training_size",
    "weekly_moments",
    "weeks_of",
    "with_parameters",
]

_LATER = {
    "ahead": ("OneStepAhead", "one_step_ahead"),
    "configurations": ("RandomSearch", "random_search"),
    "discovery": ("Discovery", "discover_covariance"),
    "histories": ("FEATURES", "SeasonSplit", "forward_splits", "match_features", "season_split"),
    "hyperparameters": ("EvidenceMaximum", "evidence_gradient", "maximise_evidence"),
    "parameters": ("parameters_of", "with_parameters"),
    "points": ("result_probabilities", "scoring_matches"),
    "protocol": (
        "ForwardSearch",
        "SeasonTests",
        "auc_scorer",
        "forward_search",
        "scaled_pairs",
        "score_differences",
        "season_tests",
    ),
    "rating_search": ("RatingSearch", "select_rating"),
    "rating_system": ("earlier_forecasts",),
    "ratings": ("Elo", "Glicko"),
    "simulated": ("simulate_matches",),
    "sports": (
        "ResultForecasts",
        "bradley_terry_probabilities",
        "forecast_results",
        "interaction_model",
        "observations",
        "published_model",
        "random_split",
        "training_size",
    ),
    "trueskill": ("TrueSkill",),
    "weekly": ("exact_weekly_moments", "weekly_moments", "weeks_of"),
    "words": ("in_words",),
}
_MODULES = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
