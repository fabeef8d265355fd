"""Comparisons from best-worst choices, and selection of informative pairs.

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

_N_NODES = 32  # nodes of the Gauss-Hermite quadrature


def best_worst(
    sets: Sequence[Sequence[int]], best: Sequence[int], worst: Sequence[int]
) -> tuple[Pairs, NDArray[np.int8], Floats]:
    """Convert best-worst choices from sets to weighted comparisons.

    In the sequential model of [Marley2005]_ the best of J items is chosen with
    probability proportional to e^s, then the worst of the others with probability
    proportional to e^-s. A choice from k items becomes k - 1 comparisons of the chosen
    item with each of the other items, in which s is the score of the Bradley-Terry
    model ([Khetan2016]_). Each comparison has the weight 2/k. For items of equal
    scores, the comparisons then have the same gradient and expected information as the
    choice. Therefore standard errors are right for equal scores, and nearly right for
    others. With weights of 1 they would be too small.

    Parameters
    ----------
    sets : sequence of sequences of int
        Item numbers, from 0 on; each set has at least two items.
    best, worst : sequence of int
        Best and worst item of each set.

    Returns
    -------
    pairs : Pairs
        Pairs of items without features.
    y : ndarray of shape (m,)
        Labels, all +1: the first item is better.
    weight : ndarray of shape (m,)
        Weights of the pairs, to pass to `fit` as `sample_weight`.

    Raises
    ------
    ValueError
        If the best or the worst item is not in its set, both are the same, or a set
        contains an item twice.

    Examples
    --------
    >>> pairs, y, weight = best_worst([[0, 1, 2]], best=[1], worst=[0])
    >>> pairs.index.tolist(), weight.round(2).tolist()
    ([[1, 0], [1, 2], [2, 0]], [0.67, 0.67, 1.0])
    """
    sets = [
        check_list(items, f"sets[{row}]", "a list of item numbers")
        for row, items in enumerate(check_list(sets, "sets", "a list of sets"))
    ]
    best = check_list(best, "best", "a list with one item per set")
    worst = check_list(worst, "worst", "a list with one item per set")
    counts = len(sets), len(best), len(worst)
    require(
        min(counts) == max(counts) > 0,
        counts,
        "(len(sets), len(best), len(worst))",
        "equal lengths of at least 1",
    )
    index = []
    weight = []
    for row, (items, top, last) in enumerate(zip(sets, best, worst, strict=True)):
        k = len(items)
        integers = all(isinstance(item, Integral) for item in [*items, top, last])
        distinct = integers and len(set(items)) == k and top != last
        good = distinct and {top, last} <= set(items)
        name = f"(sets[{row}], best[{row}], worst[{row}])"
        expected = "a set of different item numbers, and two different items of it"
        require(good, (items, top, last), name, expected)
        between = [item for item in items if item not in (top, last)]
        index += [(top, item) for item in items if item != top] + [
            (item, last) for item in between
        ]
        weight += [2 / k] * (k - 1) + [2 / (k - 1)] * (k - 2)
    return without_features(index), np.ones(len(index), dtype=np.int8), np.array(weight)


def next_pairs(model: Any, candidates: Any, n: int = 1) -> NDArray[np.int64]:
    """Select the pairs whose outcomes have the most expected information.

    Use it to decide which comparison to ask for next.

    The information of an outcome is its mutual information with the score difference d,
    eq. 2 of [Houlsby2011]_::

        H(E p(y | d)) - E H(p(y | d)),    d ~ N(mean, variance),

    where H is the entropy, and mean and variance are those of the posterior or of an
    estimate. It is large if d is uncertain and determines the outcome.

    Parameters
    ----------
    model : DynamicComparisons, Davidson, OrdinalComparison or PlackettLuce
        Fitted model.
    candidates : Matches, DataFrame, Pairs or array-like
        Candidate pairs, in the form that the model accepts in `fit` or for forecasts.
        Unknown names, whose outcomes have the most information, give a warning.
    n : int
        Number of selected candidates. Each is chosen as if it were the only new
        comparison.

    Returns
    -------
    rows : ndarray of int, shape (min(n, number of candidates),)
        Row numbers of the selected candidates, the most informative first.

    Examples
    --------
    >>> from preflearn.ranking import Davidson
    >>> model = Davidson(0.1).fit([[0, 1], [1, 0]] * 5 + [[1, 2], [2, 1]], [1, -1] * 6)
    >>> next_pairs(model, [[0, 1], [1, 2]]).tolist()  # the pair with fewer comparisons
    [1]
    """
    expected = "a fitted model with standard errors, such as Davidson"
    require(hasattr(model, "moments"), model, "model", expected)
    mean, variance = model.moments(candidates)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_N_NODES)
    d = mean[:, None] + np.sqrt(variance)[:, None] * nodes
    if hasattr(model, "probabilities"):
        p = model.probabilities(d.ravel())
    else:  # a likelihood also takes the variance of d
        p = model.likelihood_.probabilities(d.ravel(), np.zeros(d.size))
    p = p.reshape(*d.shape, -1)
    weights = weights / weights.sum()
    expected_entropy = entr(p).sum(axis=2) @ weights
    entropy = entr(np.einsum("mkc,k->mc", p, weights)).sum(axis=1)
    information = entropy - expected_entropy
    return np.argsort(-information, kind="stable")[: check_count(n, "n", 1)]
