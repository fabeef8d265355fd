"""The naive estimator, which only uses how often one item was better than another.

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
    """Forecast each pair from its own past comparisons only.

    This is "naive" in section 4.2.3 of [Maystre2019]_.

    Let w_ij be the number of times that i was better than j, and a the smoothing::

        P(i better than j) = (w_ij + a) / (w_ij + w_ji + 2a).

    The estimator does not assume scores or an order of the items, so it can represent any
    intransitivity. However, it learns nothing about a pair from other pairs. A pair that
    was never compared has the probability 1/2.

    Parameters
    ----------
    index : array-like of int, shape (m, 2)
        First and second item of each comparison, as integers from 0, such as
        `Matches.players()`.
    y : array-like of shape (m,)
        +1 if the first item was better, -1 if the second item was better. No ties.
    asked : array-like of int, shape (q, 2)
        The pairs to forecast, with the same numbers.
    smoothing : float
        Positive number of wins that are added to each side of every pair. With 1, the
        estimator is Laplace's rule of succession: the posterior mean of p_ij under a
        uniform prior.

    Returns
    -------
    probabilities : ndarray of shape (q, 2)
        Probabilities that the first item is worse, and that it is better.

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
