"""From answers about sets to comparisons, and which comparison to ask for next.

References
----------
.. [Khetan2016] A. Khetan, S. Oh, "Data-driven rank breaking for efficient rank
  aggregation", JMLR 17, 2016.
.. [Marley2005] A. A. J. Marley, J. J. Louviere, "Some probabilistic models of best,
   worst, and best-worst choices", Journal of Mathematical Psychology 49, 2005.
.. [Houlsby2011] N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel, "Bayesian active
   learning for classification and preference learning", arXiv 1112.5745, 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from preflearn.core.diagnosis import without_features
from preflearn.core.validation import Floats, check_count, check_list, require
from preflearn.pairs import Pairs

_N_NODES = 32  # of the Gauss-Hermite quadrature


def best_worst(
    sets: Sequence[Sequence[int]], best: Sequence[int], worst: Sequence[int]
) -> tuple[Pairs, NDArray[np.int8], Floats]:
    """Comparisons and weights from the best and the worst items of sets.

    In the sequential model of [Marley2005]_ the best of J items is chosen with
    probability in proportion to e^s, then the worst of the rest in proportion to e^-s.
    A choice from k items becomes k - 1 comparisons of the chosen one with each other,
    in which s is that of Bradley and Terry ([Khetan2016]_). Each has the weight 2/k:
    then, between equals, slope and expected information of the sum are those of the
    choice, so standard errors are right there, and nearly so elsewhere. With weights of
    1 they would be too small.

    Parameters
    ----------
    sets : sequence of sequences of int
        Numbers of items from 0 on, each set of at least two.
    best, worst : sequence of int
        The item of each set that was chosen.

    Returns
    -------
    pairs : Pairs
        Pairs of items without features.
    y : ndarray of shape (m,)
        All +1: the first is better.
    weight : ndarray of shape (m,)
        The `sample_weight` of a fit.

    Raises
    ------
    ValueError
        If best or worst are not in their set, or are the same, or a set has an item
        twice.

    Examples
    --------
    >>> pairs, y, weight = best_worst([[0, 1, 2]], best=[1], worst=[0])
    >>> pairs.index.tolist(), weight.round(2).tolist()
    ([[1, 0], [1, 2], [2, 0]], [0.67, 0.67, 1.0])
    """
    sets = [
        check_list(items, "a set", "numbers of items")
        for items in check_list(sets, "sets", "sets")
    ]
    best = check_list(best, "best", "an item per set")
    worst = check_list(worst, "worst", "an item per set")
    counts = len(sets), len(best), len(worst)
    require(
        min(counts) == max(counts) > 0,
        counts,
        "how many sets, best and worst there are",
        "the same",
    )
    index = []
    weight = []
    for row, (items, top, last) in enumerate(zip(sets, best, worst, strict=True)):
        k = len(items)
        integers = all(isinstance(item, Integral) for item in [*items, top, last])
        distinct = integers and len(set(items)) == k and top != last
        good = distinct and {top, last} <= set(items)
        name = f"set {row}, its best and its worst"
        require(good, (items, top, last), name, "two different items of the set")
        between = [item for item in items if item not in (top, last)]
        index += [(top, item) for item in items if item != top] + [
            (item, last) for item in between
        ]
        weight += [2 / k] * (k - 1) + [2 / (k - 1)] * (k - 2)
    return without_features(index), np.ones(len(index), dtype=np.int8), np.array(weight)


def next_pairs(model: Any, candidates: Any, n: int = 1) -> NDArray[np.int64]:
    """The candidates whose outcomes have most expected information, the best first.

    The information of an outcome is its mutual information with the score difference d,
    eq. 2 of [Houlsby2011]_::

        H(E p(y | d)) - E H(p(y | d)),    d ~ N(mean, variance),

    with H the entropy, and the moments of the posterior, or of an estimate. It is large
    where d is uncertain and decides the outcome.

    Parameters
    ----------
    model : DynamicComparisons, Davidson, OrdinalComparison or PlackettLuce
        Fitted.
    candidates : Matches, DataFrame, Pairs or array-like
        Pairs in the form that the model is fitted to or forecasts. Unknown names, whose
        outcomes have most information, give a warning.
    n : int
        Number of candidates; each is chosen as if it was the only question.

    Returns
    -------
    rows : ndarray of int, shape (min(n, number of candidates),)

    Examples
    --------
    >>> from preflearn.ranking import Davidson
    >>> model = Davidson(0.1).fit([[0, 1], [1, 0]] * 5 + [[1, 2], [2, 1]], [1, -1] * 6)
    >>> next_pairs(model, [[0, 1], [1, 2]]).tolist()  # the one that was asked less often
    [1]
    """
    expected = "a fitted model with errors, such as Davidson"
    require(hasattr(model, "moments"), model, "model", expected)
    mean, variance = model.moments(candidates)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_N_NODES)
    d = mean[:, None] + np.sqrt(variance)[:, None] * nodes
    if hasattr(model, "probabilities"):
        p = model.probabilities(d.ravel())
    else:  # a likelihood takes the variance of d, too
        p = model.likelihood.probabilities(d.ravel(), np.zeros(d.size))
    p = p.reshape(*d.shape, -1)
    weights = weights / weights.sum()
    expected_entropy = entr(p).sum(axis=2) @ weights
    entropy = entr(np.einsum("mkc,k->mc", p, weights)).sum(axis=1)
    information = entropy - expected_entropy
    return np.argsort(-information, kind="stable")[: check_count(n, "n", 1)]
