"""Expected rank regression: the pointwise baseline of [AhmadiFahandar2019]_, section
3.1.1.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from preflearn.core.estimator import check_asked
from preflearn.core.validation import Floats, require
from preflearn.ranking.base import RankingLearner, check_scored_items

_RCOND = 1e-12  # relative to the largest singular value: smaller ones are rounding
_MIN_RANGE = 1e-150  # so that w is below 1e170, which times 1e100 is finite


class ExpectedRankRegression(RankingLearner):
    """Least squares of relative positions: ERR of [AhmadiFahandar2019]_.

    With pi(i) the position of item i, 1 for the largest score, among the ``|Q|`` items
    of its query, it solves::

        minimise sum_i (pi(i) / (|Q| + 1) - w·x_i - b)^2,

    and ranks by -w·x. For a query drawn from N ranked items, ``pi(i) (N + 1) / (|Q| +
    1)`` is the expected position of item i among them all, given the order of the
    query.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        w; where features depend on each other linearly, the shortest of all solutions.
    intercept_ : float
        The constant b.
    n_features_in_ : int

    Notes
    -----
    Only the order of the scores within a query counts: items of equal scores share the
    mean of their positions.

    Examples
    --------
    >>> learner = ExpectedRankRegression().fit([[1.0], [2.0], [3.0]], [0, 1, 2])
    >>> learner.coef_.round(9).tolist(), round(learner.intercept_, 9)
    ([-0.25], 1.0)
    >>> learner.rank([[0.0], [9.0]]).tolist()
    [2, 1]
    """

    coef_: Floats
    intercept_: float

    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Learn from scored items; parameters as in `RankingLearner.fit`.

        Raises
        ------
        ValueError
            On bad input, features above 1e100 in size or with differences below 1e-150,
            or where no query has two items of different scores.
        """
        X, scores, query = check_scored_items(X, y, qid)
        # mean positions within queries
        positions = pd.Series(-scores).groupby(query).rank().to_numpy()
        target = positions / (np.bincount(query)[query] + 1)
        away = X - X[0]  # exactly 0 where a feature is constant
        width = float(np.abs(away).max())
        expected = f"0 or at least {_MIN_RANGE:g}, since below weights overflow: standardise the features"
        require(
            not 0 < width < _MIN_RANGE,
            width,
            "the largest difference of items of X",
            expected,
        )
        centre = away.mean(axis=0)
        self.coef_ = np.linalg.lstsq(
            away - centre, target - target.mean(), rcond=_RCOND
        )[0]
        self.intercept_ = float(target.mean() - (X[0] + centre) @ self.coef_)
        self.n_features_in_ = X.shape[1]
        return self

    def rank_function(self, X: ArrayLike) -> Floats:
        """Minus the predicted relative positions, shape (n,); larger is better."""
        # a product of matrices may differ for equal rows
        terms = check_asked(self, X) * self.coef_
        return -(terms.sum(axis=1) + self.intercept_)
