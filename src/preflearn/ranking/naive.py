"""The naive estimator of chances: how often one has beaten the other, and nothing else.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from preflearn.checks import (
    LARGEST,
    Floats,
    Ids,
    as_array,
    check_labels,
    check_real,
    check_shape,
    refuse,
    require,
)

_MOST_ITEMS = 10**8  # a table of this length is made


def naive_probabilities(index: ArrayLike, y: ArrayLike, asked: ArrayLike, smoothing: float = 1.0) -> Floats:
    """Chances of pairs by their own past comparisons only: "naive" in section 4.2.3 of [Maystre2019]_.

    With w_ij the number of times that i was better than j::

        P(i better than j) = (w_ij + a) / (w_ij + w_ji + 2a),   a the smoothing.

    It assumes nothing of the items, no order and no scores, so that it can follow any intransitivity; and it
    learns nothing of a pair from other pairs: one that was never compared has 1/2.

    Parameters
    ----------
    index : array-like of int, shape (m, 2)
        First and second item of each comparison, any numbers from 0 on; `Matches.players()`, for instance.
    y : array-like of shape (m,)
        +1: the first was better; -1: the second. No ties.
    asked : array-like of int, shape (q, 2)
        The pairs whose chances are asked for, in the same numbers.
    smoothing : float
        a, positive: wins that are added to each side of every pair. With 1 it is Laplace's rule of
        succession, the mean of p_ij given the counts where all values were equally likely before.

    Returns
    -------
    probabilities : ndarray of shape (q, 2)
        That the first is worse, and that it is better.

    Raises
    ------
    ValueError
        On an index that is not of pairs of two different items, other labels, or a smoothing that is not
        positive.

    Examples
    --------
    >>> naive_probabilities([[0, 1], [1, 0], [0, 1]], [1, -1, -1], [[1, 0], [0, 2]]).tolist()
    [[0.6, 0.4], [0.5, 0.5]]
    """
    pairs, wanted = _check_pairs(index, "index"), _check_pairs(asked, "asked")
    labels = check_labels(y, len(pairs), allow=(-1, 1))
    a = check_real(smoothing, "smoothing", "a positive number", 1 / LARGEST, LARGEST)
    n = int(max(pairs.max(), wanted.max())) + 1
    better, worse = np.where(labels > 0, pairs.T, pairs.T[::-1])
    wins: Any = sparse.csr_array((np.ones(len(labels)), (better, worse)), shape=(n, n))
    first, second = wanted.T
    chances = np.column_stack([wins[second, first], wins[first, second]]) + a
    return chances / chances.sum(axis=1, keepdims=True)


def _check_pairs(values: ArrayLike, name: str) -> Ids:
    array = as_array(values, name)
    check_shape(array, name, ("m", 2), "first and second item of a pair")
    require(len(array) > 0, values, name, "at least one pair")
    require(array.dtype.kind in "iu", values, name, "integers, the numbers of items")
    outside = (array < 0) | (array >= _MOST_ITEMS)
    refuse(outside, array, name, f"the number of an item, from 0 to below {_MOST_ITEMS:,}")
    same = array[:, 0] == array[:, 1]
    if same.any():
        row = np.argmax(same)
        raise ValueError(f"row {row} of {name} is item {array[row, 0]} twice; expected two different items")
    return array.astype(np.int64)
