"""P3: learning to rank scored items by the squared loss of pairs, sparsely and with
unscored items."""

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
