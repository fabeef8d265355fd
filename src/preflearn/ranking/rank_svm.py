"""The linear ranking SVM, with C chosen on the whole path: a baseline of [AhmadiFahandar2019]_.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference learning with kernels",
   KI 2019.
.. [Zapien2009] K. Zapien, G. Gasso, T. Gärtner, S. Canu, "Model selection for ranking SVM using
   regularization path", Machine Learning, InTech, 2009.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import LARGEST, Floats, check_count
from preflearn.pairs import Pairs
from preflearn.path import cross_validated_path, ranksvm_path
from preflearn.path.ranking_path import RankingPath
from preflearn.path.regularization import Selection, widest
from preflearn.ranking.learner import RankingLearner, check_rankings, check_size, check_spread, fold_seeds

_SPAN = 1e4  # from the first breakpoint of a fold to the end of its path
_WIDEST = 1e49  # how far items may be apart: the squares of their Gram matrix stay below 1e100


class RankingSVM(RankingLearner):
    """A linear utility learned from all preferences, section 3.1.2 of [AhmadiFahandar2019]_.

    With one pair (i, j) for each two items of a query where i has the smaller rank, it solves::

        minimise 1/2 |w|^2 + C sum over pairs of max(0, 1 - w·(x_i - x_j)),

    and ranks by w·x. It has no bias, which would cancel in the differences.

    Parameters
    ----------
    C : float or "path"
        From 1e-100 to 1e100, though rounding ends the path of some data before so large a C, which is then
        refused. "path": of all C, the one with the least pair error of held-out items. Folds split items; a
        pair trains where both of its items are outside the fold, and validates where both are in it.
    n_folds, n_repeats : int
        Folds, and how often they are drawn anew; the errors of all repetitions are averaged. For "path" only.
    random_state : int, numpy Generator or None
        Seed of the folds: a whole number, and those that follow it for the repetitions. A Generator goes on
        from fit to fit. None: other folds each time.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        w.
    C_ : float
        Given or chosen.
    curve_ : Selection
        For "path" only: the mean error of held-out pairs (``losses``) as a function of lambda = 1/C; each
        value holds from one of the decreasing ``lambdas`` to the next.
    n_features_in_ : int

    Notes
    -----
    The paper, too, chooses C on the whole path, by 2-fold cross-validation repeated three times. It does not
    say whether folds split pairs or items: pairs that share an item are not independent. Among the lambda of
    least error the middle of the widest interval is taken, on the logarithmic scale.

    "path" follows n_folds · n_repeats paths of folds, which together take two to ten times as long as one
    fit with a given C. For one C up to 10, scikit-learn's LinearSVC (a hinge loss, no intercept) on the
    differences of the pairs comes close to the minimum two to fifty times as fast, from 20 items with 3
    features to 300 with 8; the path is exact, and has the errors of all C.

    Examples
    --------
    >>> learner = RankingSVM(C=10.0).fit([[0.0], [1.0], [3.0]], [3, 2, 1])
    >>> learner.coef_.round(9).tolist(), learner.rank([[5.0], [4.0]]).tolist()
    ([1.0], [1, 2])
    """

    coef_: Floats
    C_: float
    curve_: Selection

    def __init__(
        self,
        C: float | Literal["path"] = "path",
        *,
        n_folds: int = 2,
        n_repeats: int = 3,
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.C: float | Literal["path"] = C
        self.n_folds = n_folds
        self.n_repeats = n_repeats
        self.random_state = random_state

    def fit(self, X: ArrayLike, rank: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Learn from ranked items; parameters as in `RankingLearner.fit`.

        Raises
        ------
        ValueError
            On bad input or parameters, where no two items of a query have different ranks, where items are
            more than 1e49 or less than 1e-49 apart, where no fold has pairs to train and pairs to validate,
            or where rounding ends the path before the given C. With "path" also where all C give w = 0.
        """
        chosen = isinstance(self.C, str) and self.C == "path"
        lam = 0.0 if chosen else 1 / check_size(self.C, "C", LARGEST, " or 'path'")
        X, rank, query = check_rankings(X, rank, qid)
        check_spread(X, _WIDEST)
        pairs, y = Pairs.from_rankings(X - X[0], rank, query)  # only differences count
        path = ranksvm_path(pairs, y, "linear", max_events=1)
        curve = self._cross_validated(pairs, y, path) if chosen else None
        lam = lam if curve is None else curve.lam
        if len(path.breakpoints) and lam < path.breakpoints[0]:
            path = ranksvm_path(pairs, y, "linear", lambda_min=lam)
        if curve is None and lam < path.lambda_end:
            most = 1 / path.lambda_end
            raise ValueError(f"C is {1 / lam:g}; expected at most {most:g}, where rounding ends the path")
        lam = max(lam, path.lambda_end)
        gains = pairs.B.adjoint(y * path.alpha(lam))
        self.coef_ = (pairs.items - pairs.items.mean(axis=0)).T @ gains / lam
        self.C_, self.n_features_in_ = 1 / lam, pairs.items.shape[1]
        vars(self).pop("curve_", None)  # of an earlier fit
        if curve is not None:
            self.curve_ = curve
        return self

    def worths(self, Q: ArrayLike) -> Floats:
        """w·x of the items of one query, shape (n,)."""
        return (self._checked_query(Q) * self.coef_).sum(axis=1)  # a product may differ for equal rows

    def _cross_validated(self, pairs: Pairs, y: NDArray, path: RankingPath) -> Selection:
        """The mean over the repetitions, as a function of every lambda."""
        seeds = fold_seeds(self.random_state, check_count(self.n_repeats, "n_repeats", 1))
        if len(path.breakpoints) == 0:
            raise ValueError(
                "w is 0 for all C: the items of each query in X are equal, or their ranks contradict each "
                "other; expected items that differ, as do their ranks"
            )
        curves = [
            cross_validated_path(
                pairs, y, kernel="linear", n_folds=self.n_folds, span=_SPAN, random_state=seed
            ).curves[0]
            for seed in seeds
        ]
        lambdas = np.unique(np.concatenate([curve.lambdas for curve in curves]))[::-1]
        losses = np.mean([_at(curve, lambdas) for curve in curves], axis=0)
        end = lambdas[0] / _SPAN  # no path of a fold goes further
        return widest(lambdas[lambdas > end], losses[lambdas > end], end)


def _at(curve: Selection, lambdas: Floats) -> Floats:
    """The losses of a curve at other lambdas; above the first breakpoint the order of items stays."""
    place = np.searchsorted(-curve.lambdas, -lambdas, side="right") - 1
    return curve.losses[np.maximum(place, 0)]
