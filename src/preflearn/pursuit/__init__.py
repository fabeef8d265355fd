"""P3: learning to rank scored items by the squared loss of pairs, sparsely and with unscored items."""

from preflearn.pursuit.pursuit import RankingPursuit
from preflearn.pursuit.rls import RLS, RankRLS
from preflearn.pursuit.semi_supervised import SemiSupervisedRankingPursuit
from preflearn.pursuit.sparse_rls import SparseRankRLS
from preflearn.pursuit.study import (
    Errors,
    Family,
    Method,
    Problem,
    by_least_squares,
    by_pursuit,
    by_ranking_svm,
    by_sparse_least_squares,
    curves,
    errors_of,
    judged,
    tuned,
)
from preflearn.pursuit.users import UserTask, user_tasks

__all__ = [
    "RLS",
    "Errors",
    "Family",
    "Method",
    "Problem",
    "RankRLS",
    "RankingPursuit",
    "SemiSupervisedRankingPursuit",
    "SparseRankRLS",
    "UserTask",
    "by_least_squares",
    "by_pursuit",
    "by_ranking_svm",
    "by_sparse_least_squares",
    "curves",
    "errors_of",
    "judged",
    "tuned",
    "user_tasks",
]
