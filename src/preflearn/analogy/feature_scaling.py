"""Feature scaling if training data and query may come from different domains.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ks_2samp
from sklearn.base import BaseEstimator, TransformerMixin

from preflearn.core.estimator import check_new_items
from preflearn.core.validation import Floats, check_choice, check_flag, check_items

_TEST_LEVEL = 0.05
# smallest range of a feature, by which values of 1e100 can be divided
_MIN_RANGE = 1e-200


@dataclass(eq=False, repr=False)
class DomainScaler(TransformerMixin, BaseEstimator):
    """Scale the features of queries from other domains, [AhmadiFahandar2019]_.

    Use it before `AnKerRank` and `Able2Rank`, which need features in [0, 1], or if
    training data and queries may have different scales. The method is described in
    section 6.2 of the paper.

    Feature k becomes (x_k - min_k) / (max_k - min_k), or (x_k - mean_k) / std_k.
    "Apart" computes these statistics from the query alone, "joint" from training data
    and query together. By default a Kolmogorov-Smirnov test decides: if it rejects that
    both have the same distribution, the query is scaled apart, otherwise jointly.

    `transform` is transductive: the scaled features of an item depend on the other
    items of its query.

    Parameters
    ----------
    kind : {"min-max", "standard"}
        Target scale: [0, 1], as the analogy kernel needs it, or mean 0 and standard
        deviation 1 (with the denominator n - 1).
    decision : {"ks", "joint", "apart", "train"}
        Choice between joint and separate scaling. "ks": a test at the level 0.05.
        "joint" or "apart": the same for all features. "train": statistics of the
        training data alone; with "min-max", values outside [0, 1] are then clipped.
    per_feature : bool
        Whether "ks" decides for each feature separately. If False, all features are
        scaled apart if any of the d tests rejects at the level 0.05 / d (Bonferroni).
        The paper does not say which version it uses.
    training : {"joint", "own"}
        Statistics that scale the training data if the query is scaled jointly, see
        `both`. "joint": the same statistics as for the query ("the entire data" in
        section 6.2), so that a learner has to be fitted for each query. "own": always
        the statistics of the training data.

    Attributes
    ----------
    X_ : ndarray of shape (n, d)
        Training items, not scaled.
    n_features_in_ : int

    Notes
    -----
    A feature becomes 0 if it is constant, or varies by at most 1e-200, in the data from
    which its statistics are computed.

    The defaults reproduce the authors' results: the denominator n - 1, a test for each
    feature, p-values from the asymptotic distribution (as in R's `ks.test` for tied
    values), and training="joint". With these choices, ordinary least squares gives all
    losses of Table 2 for expected rank regression (chapter 16).

    References
    ----------
    .. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based
       preference learning with kernels", KI 2019.

    Examples
    --------
    >>> scaler = DomainScaler().fit([[0.0], [1.0], [2.0], [4.0]])
    >>> scaler.transform([[1.0], [5.0]]).ravel().tolist()  # jointly: the range is [0, 5]
    [0.2, 1.0]
    >>> scaler.transform([[10.0], [11.0], [12.0], [13.0], [14.0]]).ravel().tolist()  # apart
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    kind: Literal["min-max", "standard"] = "min-max"
    _: KW_ONLY
    decision: Literal["ks", "joint", "apart", "train"] = "ks"
    per_feature: bool = True
    training: Literal["joint", "own"] = "joint"

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Store the training items.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored

        Raises
        ------
        ValueError
            If parameters are not valid, or features are infinite, NaN, or above
            1e100 in absolute value.
        """
        check_choice(self.kind, "kind", ("min-max", "standard"))
        check_choice(self.decision, "decision", ("ks", "joint", "apart", "train"))
        check_choice(self.training, "training", ("joint", "own"))
        check_flag(self.per_feature, "per_feature")
        X = check_items(X, "X", scaled=True)
        self.X_ = X.copy()
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, Q: ArrayLike) -> Floats:
        """Scale the items of one query.

        Parameters
        ----------
        Q : array-like of shape (n, d)
            All items of the query. If they are the training items, the statistics of
            the training data are used.

        Raises
        ------
        ValueError
            If Q has another number of features than the training items, or values that
            are not finite.
        """
        return self.both(Q)[1]

    def both(self, Q: ArrayLike) -> tuple[Floats, Floats]:
        """Scale the training items and the items of a query together.

        The results have the shapes (n, d) and (n', d).

        If they are scaled apart, each uses its own statistics. If they are scaled
        jointly, `training` determines the statistics of the training items.
        """
        Q = check_new_items(self, Q, "Q")
        own = self._numbers(self.X_)
        # the query consists of the training items
        if self.decision == "train" or np.array_equal(Q, self.X_):
            return self._scaled(self.X_, own), self._scaled(Q, own)
        joint = self._joint(Q)
        together = self._numbers(np.vstack([self.X_, Q]))
        alone = np.where(joint, together, self._numbers(Q))
        if self.training == "joint":
            own = np.where(joint, together, own)
        return self._scaled(self.X_, own), self._scaled(Q, alone)

    def _joint(self, Q: Floats) -> NDArray[np.bool_]:
        """Return a mask of the features that are scaled jointly with the training data."""
        if self.decision != "ks":
            return np.full(Q.shape[1], self.decision == "joint")
        columns = zip(self.X_.T, Q.T, strict=True)
        p = np.array([ks_2samp(x, q, method="asymp")[1] for x, q in columns])
        if self.per_feature:
            return p >= _TEST_LEVEL
        return np.full(len(p), p.min() >= _TEST_LEVEL / len(p))

    def _numbers(self, data: Floats) -> Floats:
        """Return minimum, range (infinite if constant), mean, and deviation, (4, d).

        The mean minus the minimum, and the standard deviation, are in units of the
        range, so that they do not underflow.
        """
        low = data.min(axis=0)
        spread = np.ptp(data, axis=0)
        spread = np.where(spread > _MIN_RANGE, spread, np.inf)
        unit = (data - low) / spread
        size = unit.std(axis=0, ddof=min(1, len(data) - 1))
        return np.array([low, spread, unit.mean(axis=0), np.where(size > 0, size, 1.0)])

    def _scaled(self, data: Floats, numbers: Floats) -> Floats:
        unit = (data - numbers[0]) / numbers[1]
        if self.kind == "min-max":
            return np.clip(unit, 0.0, 1.0)
        return (unit - numbers[2]) / numbers[3]
