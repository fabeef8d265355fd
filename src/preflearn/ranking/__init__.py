"""Models of paired comparisons with ties, baseline rankers, rank aggregation."""

from preflearn.ranking.active_learning import best_worst, next_pairs
from preflearn.ranking.aggregation import bradley_terry, copeland, row_sums
from preflearn.ranking.base import RankingLearner, RankTargetWarning
from preflearn.ranking.plackett_luce import PlackettLuce
from preflearn.ranking.rank_net import RankNet
from preflearn.ranking.regression import ExpectedRankRegression
from preflearn.ranking.tie_models import Davidson, OrdinalComparison
from preflearn.ranking.uncertainty import Ranks, Reliability, bootstrap

__all__ = [
    "Davidson",
    "ExpectedRankRegression",
    "OrdinalComparison",
    "PlackettLuce",
    "RankNet",
    "RankTargetWarning",
    "RankingLearner",
    "Ranks",
    "Reliability",
    "best_worst",
    "bootstrap",
    "bradley_terry",
    "copeland",
    "next_pairs",
    "row_sums",
]
