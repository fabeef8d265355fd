"""Fewer comparisons between the same items, by section 4 of [Zapien2009]_.

References
----------
.. [Zapien2009] K. Zapien, G. Gasso, T. Gärtner, S. Canu, "Model selection for ranking
   SVM using regularization path", in: Machine Learning, I-Tech, 2009.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.validation import check_array, check_left, query_numbers


def reduced_graph(scores: ArrayLike, qid: ArrayLike | None = None) -> NDArray[np.int64]:
    """About n comparisons through one chosen item per level, instead of about n².

    The items of one query with equal scores are a *level*. From the lowest level up,
    section 4 of [Zapien2009]_ chooses an item of each level as its maximum. The maximum
    is preferred to the others of its level, and all items of the next level are
    preferred to the maximum. The highest level of a query does not need a maximum.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Larger is better; only their order matters.
    qid : array-like of shape (n,), optional
        Query ids: only items with equal ids are compared. None: one query.

    Returns
    -------
    index : ndarray of int, shape (m', 2)
        Row numbers of the better and the worse item of each pair, for `Pairs(X, index)`
        with labels +1, by query and level. In a query of n items and L > 1 levels, of
        sizes n_1 (lowest) to n_L, there are 2n - n_1 - n_L - L + 1 pairs; a query of
        one level has none.

    Raises
    ------
    ValueError
        As `Pairs.from_scores`: on wrong shapes, values that are not finite, or where no
        pair is left.

    Notes
    -----
    The pairs within a level are **not in the data**: they say that of two items with
    equal scores the chosen one is better. Chapter 09 shows that the solutions, and the
    order they give, are therefore other ones than those of all pairs.

    The paper does not say which item of a level is chosen; here it is the first one.
    Shuffle the items to choose at random: where the order of the file has a meaning,
    such as the year of a car, the first items give even worse rankings. For fewer pairs,
    draw some from the full graph at random.

    The text leaves room for other readings. This one gives all counts of Table 1 (199,
    656, 767 and 568). So does the graph of all items of a level against the maximum of
    the level below, and of the maximum against all items of the level below; it has no
    pairs within a level, but little of the order of the data follows from it. Only its
    first half, all items against the maximum of the level below, has n - n_1 pairs
    (100, 391, 268 and 357).

    Examples
    --------
    >>> reduced_graph([0, 1, 1, 2]).tolist()
    [[1, 2], [1, 0], [2, 0], [3, 1]]
    """
    scores = check_array(scores, "scores", ("n",), "one value for each item")
    query = query_numbers(qid, len(scores))
    order = np.lexsort((scores, query))  # stable: the first item of a level comes first
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
    check_left(len(index), len(scores), " with different scores")
    return np.array(index, dtype=np.int64)
