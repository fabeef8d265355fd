"""Reduced comparison graph, section 4 of [Zapien2009]_.

References
----------
.. [Zapien2009] K. Zapien, G. Gasso, T. Gärtner, S. Canu, "Model selection for ranking
   SVM using regularization path", in: Machine Learning, I-Tech, 2009.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.validation import check_array, query_numbers, require_pairs


def reduced_graph(scores: ArrayLike, qid: ArrayLike | None = None) -> NDArray[np.int64]:
    """Make about n comparisons, through one item per level, instead of about n².

    The items of a query with equal scores form a *level*. From the lowest level up,
    section 4 of [Zapien2009]_ chooses an item of each level as its maximum. The maximum
    is preferred to the other items of its level, and all items of the next level are
    preferred to the maximum. The highest level of a query needs no maximum.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of the items; larger is better, and only their order matters.
    qid : array-like of shape (n,), optional
        Query ids: only items with equal ids are compared. None: one query.

    Returns
    -------
    index : ndarray of int, shape (m', 2)
        Row numbers of the better and the worse item of each pair, sorted by query and
        level, for `Pairs(X, index)` with labels +1. A query of n items and L > 1
        levels, of sizes n_1 (lowest) to n_L, gives 2n - n_1 - n_L - L + 1 pairs; a
        query with one level gives none.

    Raises
    ------
    ValueError
        As in `Pairs.from_scores`: if shapes are wrong, values are not finite, or no
        pair is left.

    Notes
    -----
    The pairs within a level are **not in the data**: they state that the chosen one of
    two items with equal scores is better. As chapter 9 shows, the solutions and their
    rankings therefore differ from those for all pairs.

    The paper does not say which item of a level is chosen; here it is the first one.
    Shuffle the items for a random choice: if the order of the file has a meaning, such
    as the year of a car, the first items give even worse rankings. If you want fewer
    pairs, a random sample of all pairs is an alternative.

    The text of the paper allows other interpretations. This one gives all counts of
    Table 1 (199, 656, 767 and 568). A second one gives the same counts: all items of a
    level are preferred to the maximum of the level below, and the maximum to all
    items of the level below. It has no pairs within a level, but little of the order of
    the data follows from it. The first half of these pairs (all items of a level, each
    with the maximum of the level below) has n - n_1 pairs: 100, 391, 268 and 357.

    Examples
    --------
    >>> reduced_graph([0, 1, 1, 2]).tolist()
    [[1, 2], [1, 0], [2, 0], [3, 1]]
    """
    scores = check_array(scores, "scores", ("n",), "one value per item")
    query = query_numbers(qid, len(scores))
    order = np.lexsort(
        (scores, query)
    )  # stable, so that the first item of a level comes first
    new_query = np.diff(query[order], prepend=-1) > 0
    ordered = scores[order]
    new_level = new_query | np.append(True, ordered[1:] != ordered[:-1])
    starts = np.flatnonzero(new_level)
    levels = np.split(order, starts[1:])
    is_lowest = new_query[starts]
    is_highest = np.append(is_lowest[1:], True)
    index = []
    for k, level in enumerate(levels):
        if not is_highest[k]:
            index += [(level[0], other) for other in level[1:]]
        if not is_lowest[k]:
            index += [(item, levels[k - 1][0]) for item in level]
    require_pairs(len(index), len(scores), " with different scores")
    return np.array(index, dtype=np.int64)
