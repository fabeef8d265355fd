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

from dataclasses import KW_ONLY, dataclass
from typing import Literal, Self

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike

from preflearn.analogy.kernel import analogy_kernel, blocks
from preflearn.analogy.training import Aggregate, PairwiseLearner, halves
from preflearn.core.validation import Floats, as_real, generator, require
from preflearn.pairs import Pairs
from preflearn.solvers.search import in_parallel

_DEGREE_DIGITS = 12  # degrees are compared after rounding to as many digits
_K_GRID = (10, 15, 20)


@dataclass(eq=False, repr=False)
class Able2Rank(PairwiseLearner):
    """able2rank: the k most analogous training preferences vote on each pair,
    [AhmadiFahandar2018]_.

    Section 3.2 of [AhmadiFahandar2019]_: z > z' in the training data speaks for x_i >
    x_j to the degree v(z, z', x_i, x_j), and for x_j > x_i to the degree v(z, z', x_j,
    x_i); v is eq. 5, averaged over features (`analogy_kernel` of degree 1). Each
    training pair votes once, for the direction of its larger degree; the k pairs with
    the largest such degrees count, as in the authors' public code. The fractions of the
    votes are p_ij, and the worths that aggregate P order the items. Only k is learned:
    the training pairs are kept.

    Parameters
    ----------
    k : int or "cv"
        Number of votes on each pair; all if there are fewer. "cv": that of 10, 15 and
        20 with the lowest fraction of wrong directions in 2-fold cross-validation of
        the objects, repeated three times; of several, the smallest.
    aggregate : {"bradley-terry", "row sums", "copeland"}
        See `preflearn.ranking`.
    random_state : int, numpy Generator or None
        Seed of the folds of k="cv". A Generator goes on from fit to fit.
    n_jobs : int, optional
        Processes for the folds; None: one, or as `joblib.parallel_config` says.

    Attributes
    ----------
    k_ : int
    losses_ : dict of int to float, or None
        The fraction of wrong directions for each k, with k="cv"; an undecided one
        counts half.
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

    k: int | Literal["cv"] = 10
    _: KW_ONLY
    aggregate: Aggregate = "bradley-terry"
    random_state: int | np.random.Generator | None = None
    n_jobs: int | None = None

    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Keep the preferences between scored items, and choose k.

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
            On bad parameters, features outside [0, 1], where no pair is left, or where
            k="cv" finds no pairs in both halves of the objects.
        """
        rng = generator(self.random_state, fresh=True)
        if self.k != "cv":
            good = as_real(self.k) % 1 == 0 and self.k >= 1
            require(good, self.k, "k", "an integer of at least 1 or 'cv'")
        pairs, better = self._preferences(X, y, qid)
        if self.k == "cv":
            self.losses_ = self._cross_validate(pairs, better, rng)
            self.k_ = min(self.losses_, key=self.losses_.__getitem__)
        else:
            self.losses_ = None
            self.k_ = int(self.k)
        self.differences_ = better
        self.n_features_in_ = better.shape[1]
        return self

    def _degrees(self, U: Floats) -> Floats:
        return self._vote_fractions(U, self.differences_, (self.k_,))[0]

    def _cross_validate(
        self, pairs: Pairs, better: Floats, rng: np.random.Generator
    ) -> dict[int, float]:
        calls = [
            delayed(self._vote_fractions)(better[valid], better[train], _K_GRID)
            for train, valid in halves(pairs, "objects", 3, rng)
            if len(train) and len(valid)
        ]
        wrong = [
            (fraction < 0.5) + (fraction == 0.5) / 2
            for fraction in in_parallel(calls, self.n_jobs)
        ]
        expected = (
            f"a number, or more objects: no half of the {len(pairs.items)} objects "
            "has pairs to train while the other has pairs to validate"
        )
        require(len(wrong) > 0, self.k, "k", expected)
        return dict(zip(_K_GRID, np.hstack(wrong).mean(axis=1).tolist(), strict=True))

    def _vote_fractions(
        self, V: Floats, better: Floats, k_values: tuple[int, ...]
    ) -> Floats:
        """Fractions of votes for the first item of pairs with differences V.

        The shape is (len(k_values), len(V)).
        """
        fractions = []
        for part in blocks(V, 2 * len(better)):
            # many degrees of scaled integers are equal up to rounding
            first = np.round(analogy_kernel(part, better), _DEGREE_DIGITS)
            second = np.round(analogy_kernel(-part, better), _DEGREE_DIGITS)
            strength = np.maximum(first, second)
            votes = (1 + np.sign(first - second)) / 2
            weights = np.array([_top_k_weights(strength, k) for k in k_values])
            fractions.append((weights * votes).sum(axis=2) / weights.sum(axis=2))
        return np.hstack(fractions)


def _top_k_weights(values: Floats, k: int) -> Floats:
    """1 for the k largest of each row; values equal to the k-th divide what is left."""
    k = min(k, values.shape[1])
    kth = np.partition(values, -k, axis=1)[:, -k, None]
    above = values > kth
    equal = values == kth
    left = k - above.sum(axis=1, keepdims=True)
    return above + equal * (left / equal.sum(axis=1, keepdims=True))
