"""P4: matches in time, and what can be learned of players whose strength changes."""

from preflearn.dynamics.histories import (
    FEATURES,
    SeasonSplit,
    forward_splits,
    match_features,
    season_split,
)
from preflearn.dynamics.matches import Matches
from preflearn.dynamics.ratings import Elo, Glicko

__all__ = [
    "FEATURES",
    "Elo",
    "Glicko",
    "Matches",
    "SeasonSplit",
    "forward_splits",
    "match_features",
    "season_split",
]
