"""P3: learning to rank scored items by the squared loss of pairs, sparsely and with unscored items."""

from preflearn.pursuit.pursuit import RankingPursuit

__all__ = [
    "RankingPursuit",
]
