"""Expected rank regression, section 3.1.1 of [AhmadiFahandar2019]_.

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

from preflearn.core.estimator import check_new_items
from preflearn.core.validation import Floats, require
from preflearn.ranking.base import RankingLearner, check_scored_items

_RCOND = 1e-12  # smaller singular values, relative to the largest, are rounding errors
_MIN_RANGE = 1e-150  # keeps w below 1e170, so that products with 1e100 are finite


class ExpectedRankRegression(RankingLearner):
    """Expected rank regression: least squares on relative positions.

    Choose it as a fast linear baseline for rankings; it is ERR in
    [AhmadiFahandar2019]_.

    With pi(i) the position of item i (1 for the largest score) among the ``|Q|``
    items of its query, it solves::

        minimize sum_i (pi(i) / (|Q| + 1) - w·x_i - b)^2,

    and ranks by -w·x. If a query is a random sample from N ranked items, ``pi(i) (N +
    1) / (|Q| + 1)`` is the expected position of item i among all N items, given the
    order of the query.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        w; the solution of minimum norm if features are linearly dependent.
    intercept_ : float
        Constant b.
    n_features_in_ : int

    Notes
    -----
    Only the order of the scores within a query matters. Items of equal scores share the
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
        """Fit the model to scored items; see `RankingLearner.fit`.

        Raises
        ------
        ValueError
            If the input is not valid, features exceed 1e100 in absolute value, all
            their differences are below 1e-150, or no query has two items of different
            scores.
        """
        X, scores, query = check_scored_items(X, y, qid)
        # mean positions within queries
        positions = pd.Series(-scores).groupby(query).rank().to_numpy()
        target = positions / (np.bincount(query)[query] + 1)
        away = X - X[0]  # exactly 0 if a feature is constant
        width = float(np.abs(away).max())
        expected = (
            f"0 or at least {_MIN_RANGE:g}, so that weights do not overflow: "
            "standardize the features"
        )
        require(
            not 0 < width < _MIN_RANGE,
            width,
            "the largest difference between features in X",
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
        """Return minus the predicted relative positions, shape (n,); larger is better."""
        # a matrix product may have different rounding errors for equal rows
        terms = check_new_items(self, X) * self.coef_
        return -(terms.sum(axis=1) + self.intercept_)
