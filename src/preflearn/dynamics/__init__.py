"""P4: matches in time, and what can be learned of players whose strength changes."""

from preflearn.dynamics.histories import (
    FEATURES,
    SeasonSplit,
    forward_splits,
    match_features,
    season_split,
)
from preflearn.dynamics.matches import Matches
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

__all__ = [
    "FEATURES",
    "Elo",
    "ForwardSearch",
    "Glicko",
    "Matches",
    "SeasonSplit",
    "SeasonTests",
    "auc_scorer",
    "forward_search",
    "forward_splits",
    "match_features",
    "scaled_pairs",
    "score_differences",
    "season_split",
    "season_tests",
]
