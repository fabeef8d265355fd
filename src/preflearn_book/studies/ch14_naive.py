"""The naive estimator: how often one item was better than the other, and nothing else.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from preflearn.core.validation import Floats


def naive_probabilities(
    index: ArrayLike, y: ArrayLike, asked: ArrayLike, smoothing: float = 1.0
) -> Floats:
    """Probabilities by the past comparisons of each pair only.

    This is "naive" in section 4.2.3 of [Maystre2019]_.

    With w_ij the number of times that i was better than j::

        P(i better than j) = (w_ij + a) / (w_ij + w_ji + 2a),   a the smoothing.

    It assumes nothing of the items, no order and no scores, so that it can follow any
    intransitivity; and it learns nothing of a pair from other pairs: one that was never
    compared has 1/2.

    Parameters
    ----------
    index : array-like of int, shape (m, 2)
        First and second item of each comparison, any numbers from 0 on;
        `Matches.players()`, for instance.
    y : array-like of shape (m,)
        +1: the first was better; -1: the second. No ties.
    asked : array-like of int, shape (q, 2)
        The pairs to be forecast, in the same numbers.
    smoothing : float
        a, positive: wins that are added to each side of every pair. With 1 it is
        Laplace's rule of succession, the mean of p_ij given the counts where all values
        were equally likely before.

    Returns
    -------
    probabilities : ndarray of shape (q, 2)
        That the first is worse, and that it is better.

    Examples
    --------
    >>> naive_probabilities([[0, 1], [1, 0], [0, 1]], [1, -1, -1], [[1, 0], [0, 2]]).tolist()
    [[0.6, 0.4], [0.5, 0.5]]
    """
    pairs = np.transpose(index)
    first, second = np.transpose(asked)
    n = int(max(pairs.max(), np.max(asked))) + 1
    better, worse = np.where(np.asarray(y) > 0, pairs, pairs[::-1])
    wins: Any = sparse.csr_array((np.ones(len(better)), (better, worse)), shape=(n, n))
    chances = np.column_stack([wins[second, first], wins[first, second]]) + smoothing
    return chances / chances.sum(axis=1, keepdims=True)
