"""Baselines and aggregation: paired comparisons with ties, learners of rankings, orders from degrees."""

from preflearn.ranking.aggregation import AGGREGATES, bradley_terry, copeland, row_sums
from preflearn.ranking.base import RankingLearner
from preflearn.ranking.rank_net import RankNet
from preflearn.ranking.regression import ExpectedRankRegression
from preflearn.ranking.tie_models import Davidson, OrdinalComparison

__all__ = [
    "AGGREGATES",
    "Davidson",
    "ExpectedRankRegression",
    "OrdinalComparison",
    "RankNet",
    "RankingLearner",
    "bradley_terry",
    "copeland",
    "row_sums",
]
