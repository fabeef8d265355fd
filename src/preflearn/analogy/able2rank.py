"""Object ranking by the observed preferences that are most analogous
[AhmadiFahandar2018]_.

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

_DEGREE_DIGITS = 12  # degrees are compared after rounding to as many digits


@dataclass(eq=False, repr=False)
class Able2Rank(PairwiseLearner):
    """able2rank: the k most analogous training preferences vote on each pair,
    [AhmadiFahandar2018]_.

    Section 3.2 of [AhmadiFahandar2019]_: z > z' in the training data speaks for x_i >
    x_j to the degree v(z, z', x_i, x_j), and for x_j > x_i to the degree v(z, z', x_j,
    x_i); v is eq. 5, averaged over features (`analogy_kernel` of degree 1). Each
    training pair votes once, for the direction of its larger degree; the k pairs with
    the largest such degrees count, as in the authors' public code. The fractions of the
    votes are p_ij, and the worths of `bradley_terry(P)` order the items. Nothing is
    learned: the training pairs are kept.

    Parameters
    ----------
    k : int
        Number of votes on each pair; all if there are fewer.

    Attributes
    ----------
    k_ : int
    differences_ : ndarray of shape (m, d)
        Better item minus worse item of the training pairs.
    n_features_in_ : int

    Notes
    -----
    Votes do not depend on the order of items: training pairs whose degree is equal to
    the k-th largest (in 12 digits) share what is left of the k votes, and a pair with
    equal degrees in both directions gives half a vote to each. (The authors' code takes
    whichever a sort puts first, and counts equality for the item that comes later.)

    References
    ----------
    .. [AhmadiFahandar2018] See the module.
    .. [AhmadiFahandar2019] See the module.

    Examples
    --------
    >>> X = [[0.0, 0.2], [0.4, 0.3], [1.0, 0.9]]
    >>> learner = Able2Rank(k=2).fit(X, [0, 1, 2])
    >>> learner.rank([[0.3, 0.5], [0.1, 0.2], [0.8, 0.6]]).tolist()
    [2, 3, 1]
    """

    k: int = 10

    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Keep the preferences between scored items.

        Parameters
        ----------
        X : array-like of shape (n, d)
            In [0, 1].
        y : array-like of shape (n,)
            Scores; larger is better, see `RankingLearner.fit`. Items of one query with
            equal scores make no pair.
        qid : array-like of shape (n,), optional
            Query ids: only items of one query are compared. None: one query.

        Raises
        ------
        ValueError
            On a bad k, features outside [0, 1], or where no pair is left.
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
            # many degrees of scaled integers are equal up to rounding
            first = np.round(analogy_kernel(part, self.differences_), _DEGREE_DIGITS)
            second = np.round(analogy_kernel(-part, self.differences_), _DEGREE_DIGITS)
            votes = (1 + np.sign(first - second)) / 2
            weights = _top_k_weights(np.maximum(first, second), self.k_)
            fractions.append((weights * votes).sum(axis=1) / weights.sum(axis=1))
        return np.concatenate(fractions)


def _top_k_weights(values: Floats, k: int) -> Floats:
    """1 for the k largest of each row; values equal to the k-th divide what is left."""
    k = min(k, values.shape[1])
    kth = np.partition(values, -k, axis=1)[:, -k, None]
    above = values > kth
    equal = values == kth
    left = k - above.sum(axis=1, keepdims=True)
    return above + equal * (left / equal.sum(axis=1, keepdims=True))
