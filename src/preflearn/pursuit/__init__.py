"""Ranking pursuit and RankRLS: squared loss of pairs of scored items (P3)."""

from preflearn.pursuit.pursuit import RankingPursuit
from preflearn.pursuit.rls import RLS, RankRLS, SparseRankRLS
from preflearn.pursuit.semi_supervised import SemiSupervisedRankingPursuit

__all__ = [
    "RLS",
    "RankRLS",
    "RankingPursuit",
    "SemiSupervisedRankingPursuit",
    "SparseRankRLS",
]
