"""How models of matches are chosen and compared: the protocol of section 5.2 of
[Venuto2017]_.

Players' features are scaled, a model is chosen on matches that come later than those it
learned from, and two models are compared season by season. Nothing here knows what kind
of model it is.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, wilcoxon
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from preflearn.core.validation import Floats, Ids, check_array, generator, raise_if_any
from preflearn.metrics import comparison_auc
from preflearn.pairs import Pairs, as_pairs
from preflearn_book.studies.ch07_histories import forward_splits

# a solver may leave values of u·d below 1e-9 in place of 0, and they would rank
_ROUNDING = 1e-8
_CONSTANT = -1.0  # the score of a model that ranks nothing, below any AUC
_N_BOOTSTRAP = 5000


def scaled_pairs(X: ArrayLike, rows: ArrayLike, by: ArrayLike) -> Pairs:
    """Both players of some matches, with features in units of their spread in other
    matches.

    Parameters
    ----------
    X : array-like of shape (N, 2, p)
        Features of the first and of the second player of each match, as
        `match_features` returns them.
    rows : array-like of int
        The matches wanted.
    by : array-like of int
        The matches whose 2 len(by) players give mean and standard deviation: those that
        are learned from. A feature without spread there is centred only.

    Returns
    -------
    Pairs
        One pair a match, of items that are nobody else's.

    Raises
    ------
    ValueError
        If X has another shape or is not finite.

    Examples
    --------
    >>> X = [[[1200.0, 1.0], [1300.0, 0.0]], [[1400.0, 1.0], [1300.0, 0.0]]]
    >>> scaled_pairs(X, [0, 1], by=[0]).differences().tolist()
    [[-2.0, 2.0], [2.0, 2.0]]
    """
    X = check_array(X, "X", ("N", 2, "p"), "features of both players of each match")
    rows = _ids(rows, "rows", len(X))
    by = _ids(by, "by", len(X))
    seen = X[by].reshape(-1, X.shape[2])
    spread = seen.std(axis=0)
    return as_pairs((X[rows] - seen.mean(axis=0)) / np.where(spread > 0, spread, 1))


def _ids(ids: ArrayLike, name: str, n: int) -> Ids:
    found = check_array(ids, name, ("k",), "numbers of matches")
    raise_if_any(
        ~np.isin(found, np.arange(n)),
        found,
        name,
        f"the number of a match, from 0 to {n - 1}",
    )
    return found.astype(np.int64)


def score_differences(model: Any, pairs: Pairs) -> Floats:
    """Differences r(first) - r(second), all 0 where a machine's are no more than
    rounding.

    A machine with a bias ranks by -u/bias. It counts as constant, u = 0, if no
    \\|u·d\\| of the pairs exceeds 1e-8. The differences of other models are returned as
    they are.
    """
    z = model.decision_function(pairs)
    bias = getattr(model, "bias_", None)
    return z if bias is None or np.abs(bias * z).max() >= _ROUNDING else 0 * z


def auc_scorer(
    model: Any, pairs: Pairs, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """`comparison_auc` of a fitted model, as scikit-learn's searches call it; -1 for a
    constant model."""
    z = score_differences(model, pairs)
    return comparison_auc(y, z, sample_weight) if z.any() else _CONSTANT


class ForwardSearch(NamedTuple):
    """What `forward_search` returns.

    Attributes
    ----------
    model : estimator
        With the parameters that were chosen, not fitted.
    failed : int
        How many fits of the search were degenerate or constant.
    """

    model: Any
    failed: int


def forward_search(
    model: Any,
    grid: Mapping[str, Sequence],
    pairs: Pairs,
    y: ArrayLike,
    *,
    shares: tuple[float, ...],
    sample_weight: ArrayLike | None = None,
) -> ForwardSearch:
    """The parameters with the best mean AUC on matches that come later (section 5.2 of
    [Venuto2017]_).

    Parameters
    ----------
    model : estimator
    grid : mapping of str to sequence
        The values to try, a parameter each.
    pairs : Pairs
        In the order of time.
    y : array-like of shape (m,)
    shares : tuple of float
        The model learns from each of these shares of the matches, the first ones, and
        is judged on the rest.
    sample_weight : array-like of shape (m,), optional
        Weights to learn with.

    Returns
    -------
    ForwardSearch
        A model that fails or is constant on one split counts there as -1, so it is
        chosen only where all are.

    Raises
    ------
    TypeError, ValueError
        On bad pairs, labels or shares, or as `GridSearchCV` on a grid that is none.

    Examples
    --------
    >>> from preflearn.svm import SVMRank
    >>> pairs = Pairs([[0.0], [1.0], [3.0]], [[1, 0], [2, 0], [1, 2], [2, 1], [1, 0], [0, 2], [1, 0], [2, 1]])
    >>> y = [0, 1, -1, 1, 0, -1, 0, 1]
    >>> forward_search(SVMRank(kernel="linear"), {"C": [0.1, 1.0]}, pairs, y, shares=(0.5,))
    ForwardSearch(model=SVMRank(C=0.1, kernel='linear'), failed=0)
    """
    cv = forward_splits(len(pairs), shares)
    search = GridSearchCV(
        model, dict(grid), scoring=auc_scorer, cv=cv, refit=False, error_score=_CONSTANT
    )
    search.fit(pairs, y, sample_weight=sample_weight)
    scores = np.array(
        [search.cv_results_[f"split{i}_test_score"] for i in range(len(cv))]
    )
    chosen: Any = clone(model)
    return ForwardSearch(
        chosen.set_params(**search.best_params_), int(np.sum(scores == _CONSTANT))
    )


class SeasonTests(NamedTuple):
    """What `season_tests` returns.

    Attributes
    ----------
    won : int
        Seasons in which the first model is ahead.
    sign, ranks : float
        Two-sided p-values of the sign test, of seasons that differ, and of Wilcoxon's
        signed-rank test.
    low, high : float
        The 95 percent bootstrap interval of the mean difference.
    """

    won: int
    sign: float
    ranks: float
    low: float
    high: float


def season_tests(
    ours: ArrayLike, theirs: ArrayLike, seed: np.random.Generator | int = 0
) -> SeasonTests:
    """Whether one model is ahead of another over seasons: three tests of paired
    differences.

    All take the seasons as independent, and none is corrected for other comparisons.

    Parameters
    ----------
    ours, theirs : array-like of shape (n,)
        One value a season, paired; larger is better.
    seed : int or numpy Generator
        Of the bootstrap.

    Raises
    ------
    ValueError
        If the two are not paired or not finite, or the seed is none.

    Examples
    --------
    >>> tests = season_tests([0.5, 0.6, 0.7, 0.8, 0.9], [0.4, 0.4, 0.4, 0.4, 0.4])
    >>> tests.won, tests.sign, tests.ranks
    (5, 0.0625, 0.0625)
    """
    ours = check_array(ours, "ours", ("n",), "one value a season")
    gap = ours - check_array(theirs, "theirs", (len(ours),), "one value a season")
    won = int(np.sum(gap > 0))
    unequal = int(np.sum(gap != 0))
    sign = ranks = 1.0
    if unequal:
        signed_ranks: Any = wilcoxon(gap)
        sign = float(binomtest(won, unequal).pvalue)
        ranks = float(signed_ranks.pvalue)
    means = generator(seed, "seed").choice(gap, (_N_BOOTSTRAP, len(gap))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return SeasonTests(won, sign, ranks, float(low), float(high))
