"""P4: matches in time, and what can be learned of players whose strength changes."""

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
from preflearn.dynamics.histories import (
    FEATURES,
    SeasonSplit,
    forward_splits,
    match_features,
    season_split,
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
from preflearn.dynamics.protocol import (
    ForwardSearch,
    SeasonTests,
    auc_scorer,
    forward_search,
    scaled_pairs,
    score_differences,
    season_tests,
)
from preflearn.dynamics.ratings import Elo, Glicko
from preflearn.dynamics.simulated import simulate_matches
from preflearn.dynamics.state_size import least_state_size
from preflearn.dynamics.state_space import StateSpace
from preflearn.dynamics.weekly import exact_weekly_moments, weekly_moments, weeks_of

__all__ = [
    "FEATURES",
    "Affine",
    "Constant",
    "Covariance",
    "DynamicComparisons",
    "Elo",
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
    "OrdinalLogit",
    "OrdinalProbit",
    "Periodic",
    "PiecewiseConstant",
    "Poisson",
    "Probit",
    "SeasonSplit",
    "SeasonTests",
    "Skellam",
    "SquaredExponential",
    "StateSpace",
    "Wiener",
    "auc_scorer",
    "covariance_from",
    "exact_weekly_moments",
    "forward_search",
    "forward_splits",
    "least_state_size",
    "likelihood_from",
    "load",
    "match_features",
    "scaled_pairs",
    "score_differences",
    "season_split",
    "season_tests",
    "simulate_matches",
    "weekly_moments",
    "weeks_of",
]
