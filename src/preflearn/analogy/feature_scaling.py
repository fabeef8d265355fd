"""Normalisation of features where training data and query may come from different
domains.

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

from preflearn.core.estimator import check_asked
from preflearn.core.validation import Floats, check_choice, check_flag, check_items

_TEST_LEVEL = 0.05
_MIN_RANGE = 1e-200  # of a feature; values of 1e100 can be divided by it


@dataclass(eq=False, repr=False)
class DomainScaler(TransformerMixin, BaseEstimator):
    """Features of training data and query on one scale, section 6.2 of
    [AhmadiFahandar2019]_.

    Feature k becomes (x_k - min_k) / (max_k - min_k), or (x_k - mean_k) / std_k.
    "Apart" takes these numbers from the query alone, "joint" from training data and
    query together. By default a Kolmogorov-Smirnov test decides: where it rejects that
    both come from one distribution, apart, else joint.

    `transform` is transductive: what an item of a query becomes depends on the other
    items of that query.

    Parameters
    ----------
    kind : {"min-max", "standard"}
        To [0, 1], as the analogy kernel needs it, or to mean 0 and standard deviation 1
        (with n - 1 below the root).
    decision : {"ks", "joint", "apart", "train"}
        "ks" tests at the level 0.05; "joint" and "apart" hold for all features.
        "train": numbers of the training data alone; then a query may leave [0, 1], and
        min-max clips it.
    per_feature : bool
        With "ks": True, a test and a decision for each feature; False, one decision for
        all, apart if any of the d tests rejects at the level 0.05 / d (Bonferroni). The
        paper does not say which.
    training : {"joint", "own"}
        What normalises the training data in the joint branch, see `both`. "joint": the
        numbers that normalise the query, "the entire data" of section 6.2, so that a
        learner has to be fitted for each query. "own": always the numbers of the
        training data.

    Attributes
    ----------
    X_ : ndarray of shape (n, d)
        The training items as given.
    n_features_in_ : int

    Notes
    -----
    A feature that is constant in the data that its numbers come from, or varies by at
    most 1e-200, becomes 0 everywhere.

    Defaults are what the authors did, as far as Table 2 tells: with n - 1, a test for
    each feature, its p-value by the asymptotic law (which R's `ks.test` has where
    values are tied), and training="joint", plain least squares gives all the losses
    that the table prints for expected rank regression (chapter 16).

    References
    ----------
    .. [AhmadiFahandar2019] See the module.

    Examples
    --------
    >>> scaler = DomainScaler().fit([[0.0], [1.0], [2.0], [4.0]])
    >>> scaler.transform([[1.0], [5.0]]).ravel().tolist()  # together: the range is [0, 5]
    [0.2, 1.0]
    >>> scaler.transform([[10.0], [11.0], [12.0], [13.0], [14.0]]).ravel().tolist()  # another domain
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    kind: Literal["min-max", "standard"] = "min-max"
    _: KW_ONLY
    decision: Literal["ks", "joint", "apart", "train"] = "ks"
    per_feature: bool = True
    training: Literal["joint", "own"] = "joint"

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Keep the training items.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored

        Raises
        ------
        ValueError
            On bad parameters, or items that are not finite or above 1e100 in size.
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
        """The items of one query normalised, shape (n, d).

        Parameters
        ----------
        Q : array-like of shape (n, d)
            All items of the query. The training items themselves are normalised by
            their own numbers.

        Raises
        ------
        ValueError
            If Q has other features than the training items, or values that are not
            finite.
        """
        return self.both(Q)[1]

    def both(self, Q: ArrayLike) -> tuple[Floats, Floats]:
        """The training items, shape (n, d), and those of a query, (n', d), both
        normalised for each other.

        In the branch "apart" each is normalised by its own numbers; `training` says
        what happens in "joint".
        """
        Q = check_asked(self, Q, "Q")
        own = self._numbers(self.X_)
        # the training items as their own query
        if self.decision == "train" or np.array_equal(Q, self.X_):
            return self._scaled(self.X_, own), self._scaled(Q, own)
        joint = self._joint(Q)
        together = self._numbers(np.vstack([self.X_, Q]))
        alone = np.where(joint, together, self._numbers(Q))
        if self.training == "joint":
            own = np.where(joint, together, own)
        return self._scaled(self.X_, own), self._scaled(Q, alone)

    def _joint(self, Q: Floats) -> NDArray[np.bool_]:
        """Which features of a query are normalised together with the training data."""
        if self.decision != "ks":
            return np.full(Q.shape[1], self.decision == "joint")
        columns = zip(self.X_.T, Q.T, strict=True)
        p = np.array([ks_2samp(x, q, method="asymp")[1] for x, q in columns])
        if self.per_feature:
            return p >= _TEST_LEVEL
        return np.full(len(p), p.min() >= _TEST_LEVEL / len(p))

    def _numbers(self, data: Floats) -> Floats:
        """Minimum, range (infinity if constant), mean and deviation of features, (4, d).

        The mean above the minimum and the standard deviation are in units of the range,
        where they do not underflow.
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
