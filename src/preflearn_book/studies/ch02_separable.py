"""Simulated comparisons for chapters 02 and 03 that a hyperplane separates with a known
margin.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.datasets.simulations import tie_quota
from preflearn.pairs import Pairs


class SeparablePairs(NamedTuple):
    """Result of `simulate_separable_pairs`.

    Attributes
    ----------
    pairs : Pairs
    y : ndarray of shape (n,)
    scores : ndarray of shape (2n,)
        r(x) = w'x of each row of ``pairs.items``.
    coef : ndarray of shape (p,)
        The w that was drawn.
    """

    pairs: Pairs
    y: NDArray[np.int8]
    scores: NDArray[np.float64]
    coef: NDArray[np.float64]


def simulate_separable_pairs(
    n: int,
    p: int,
    tie_share: float,
    margin: float,
    rng: np.random.Generator | int,
    scale: ArrayLike = 1.0,
) -> SeparablePairs:
    """Simulate comparisons that are separable with at least a given margin.

    The margin is that of eq. 7 of [Venuto2017]_.

    Let d = first - second. Up to rounding, |w'd| <= 1 - margin if y = 0, and
    y w'd >= 1 + margin otherwise. Therefore the optimum of the linear program (7) is at
    least `margin`.

    Parameters
    ----------
    n, p : int
        Numbers of pairs and of features.
    tie_share : float
        Fraction of pairs with label 0. Exactly round(n * tie_share) pairs have it.
    margin : float
        mu, strictly between 0 and 1.
    rng : numpy Generator or int
        Source of randomness, or its seed.
    scale : float or array-like of shape (p,)
        Positive unit of each feature. Feature j is multiplied by it, and w_j is divided
        by it.

    Returns
    -------
    SeparablePairs
        pairs, y, the scores w'x of ``pairs.items``, and w.

    Examples
    --------
    >>> pairs, y, scores, w = simulate_separable_pairs(50, 2, 0.4, 0.3, rng=0, scale=[100, 1])
    >>> bool((abs(pairs.differences() @ w)[y == 0] <= 0.7 + 1e-12).all())
    True
    """
    rng = np.random.default_rng(rng)
    scale = np.asarray(scale)
    w = rng.normal(size=p)
    w /= np.linalg.norm(w)

    n_ties = tie_quota(n, tie_share)
    preferences = rng.choice([-1, 1], n - n_ties).astype(np.int8)
    y = rng.permutation(np.append(np.zeros(n_ties, dtype=np.int8), preferences))
    tied_gain = rng.uniform(margin - 1, 1 - margin, size=n)
    gain = np.where(y == 0, tied_gain, y * (1 + margin + rng.exponential(size=n)))
    across = 1.5 * rng.normal(size=(n, p))
    differences = across + np.outer(gain - across @ w, w)
    second = rng.uniform(-2, 2, size=(n, p))
    pairs = Pairs.from_arrays((second + differences) * scale, second * scale)
    return SeparablePairs(pairs, y, pairs.items @ (w / scale), w / scale)
