"""Object ranking by the most analogous training preferences.

References
----------
.. [AhmadiFahandar2018] M. Ahmadi Fahandar, E. Hüllermeier, "Learning to rank based on
   analogical reasoning", AAAI 2018.
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from preflearn.analogy.kernel import analogy_kernel, blocks
from preflearn.analogy.training import PairwiseLearner
from preflearn.core.validation import Floats, check_count

# decimal digits to which degrees are rounded before they are compared
_DEGREE_DIGITS = 12


@dataclass(eq=False, repr=False)
class Able2Rank(PairwiseLearner):
    """Rank by votes of the k most analogous preferences, [AhmadiFahandar2018]_.

    Choose it as a nearest-neighbor baseline for `AnKerRank`: nothing is learned, and
    the training pairs are stored.

    The method is described in section 3.2 of [AhmadiFahandar2019]_. A training
    preference z > z' supports x_i > x_j to the degree v(z, z', x_i, x_j), and x_j > x_i
    to the degree v(z, z', x_j, x_i). Here v is eq. 5, averaged over features
    (`analogy_kernel` of degree 1). Each training pair votes for the direction of its
    larger degree. The k pairs with the largest degrees count, as in the authors' public
    code. p_ij is the fraction of votes for x_i > x_j, and the items are ordered by the
    worths of `bradley_terry(P)`.

    Parameters
    ----------
    k : int
        Number of votes on each pair; all training pairs vote if there are fewer.

    Attributes
    ----------
    k_ : int
        Value of `k` in `fit`.
    differences_ : ndarray of shape (m, d)
        Feature differences, better minus worse item, of the training pairs.
    n_features_in_ : int

    Notes
    -----
    Votes do not depend on the order of items. Training pairs whose degree equals the
    k-th largest (to 12 digits) share the votes that remain, and a pair with equal
    degrees in both directions gives half a vote to each. (The authors' code takes the
    pairs that come first after sorting, and counts equal degrees as a vote for the
    later item.)

    References
    ----------
    .. [AhmadiFahandar2018] M. Ahmadi Fahandar, E. Hüllermeier, "Learning to rank
       based on analogical reasoning", AAAI 2018.
    .. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based
       preference learning with kernels", KI 2019.

    Examples
    --------
    >>> X = [[0.0, 0.2], [0.4, 0.3], [1.0, 0.9]]
    >>> learner = Able2Rank(k=2).fit(X, [0, 1, 2])
    >>> learner.rank([[0.3, 0.5], [0.1, 0.2], [0.8, 0.6]]).tolist()
    [2, 3, 1]
    """

    k: int = 10

    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Store the preferences between scored items.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features in [0, 1].
        y : array-like of shape (n,)
            Scores; larger is better, see `RankingLearner.fit`. Items of the same query
            with equal scores give no pair.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.

        Raises
        ------
        ValueError
            If k is not valid, features are outside [0, 1], or no pair is left.
        """
        k = check_count(self.k, "k", 1)
        _, better = self._preferences(X, y, qid)
        self.k_ = k
        self.differences_ = better
        self.n_features_in_ = better.shape[1]
        return self

    def _degrees(self, U: Floats) -> Floats:
        fractions = []
        for part in blocks(U, 2 * len(self.differences_)):
            # for scaled integer features, many degrees are equal up to rounding errors
            first = np.round(analogy_kernel(part, self.differences_), _DEGREE_DIGITS)
            second = np.round(analogy_kernel(-part, self.differences_), _DEGREE_DIGITS)
            votes = (1 + np.sign(first - second)) / 2
            weights = _top_k_weights(np.maximum(first, second), self.k_)
            fractions.append((weights * votes).sum(axis=1) / weights.sum(axis=1))
        return np.concatenate(fractions)


def _top_k_weights(values: Floats, k: int) -> Floats:
    """Return weights 1 for the k largest values per row; ties at the k-th share."""
    k = min(k, values.shape[1])
    kth = np.partition(values, -k, axis=1)[:, -k, None]
    above = values > kth
    equal = values == kth
    left = k - above.sum(axis=1, keepdims=True)
    return above + equal * (left / equal.sum(axis=1, keepdims=True))
