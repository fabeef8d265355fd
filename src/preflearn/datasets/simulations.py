"""Comparisons without data files: the four items, and simulations."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.validation import (
    as_real,
    check_choice,
    check_count,
    check_items,
    check_real,
    generator,
    require,
)
from preflearn.metrics import threshold
from preflearn.pairs import Pairs

_ITEMS = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [4.0, 1.0]])
_INDEX = [[1, 0], [2, 1], [3, 2], [3, 0]]
_ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
_DELTAS = {"l1": (-0.5, 0.5), "l2": (-1.0, 0.5), "linf": (-1.0, 1.0)}
_SIGMA = 0.25
_GAUSSIAN_STEP = 0.5


def four_items(n_features: int = 1) -> tuple[Pairs, NDArray[np.int8]]:
    """Four items and four comparisons, for calculations by hand.

    Item 2 beats item 1, item 4 beats items 3 and 1, and items 3 and 2 tie (in code,
    items are numbered from 0). The first feature is 0, 1, 2, and 4; the tied items
    differ in it as much as the items of the first preference. The second feature is 0,
    1, 0, and 1; with it, a line separates the preferences from the tie.

    Parameters
    ----------
    n_features : {1, 2}
        Number of features.

    Returns
    -------
    pairs : Pairs
        Four comparisons of four items, whose graph is a cycle.
    y : ndarray of shape (4,)
        Three preferences for the first item, and a tie.

    Raises
    ------
    ValueError
        If the number of features is neither 1 nor 2.

    Examples
    --------
    >>> pairs, y = four_items()
    >>> pairs.incidence().toarray().astype(int).tolist()
    [[-1, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1], [-1, 0, 0, 1]]
    >>> pairs.differences().ravel().tolist(), y.tolist()
    ([1.0, 1.0, 2.0, 4.0], [1, 0, 1, 1])
    """
    require(as_real(n_features) in (1, 2), n_features, "n_features", "1 or 2")
    pairs = Pairs(_ITEMS[:, : int(n_features)], _INDEX)
    return pairs, np.array([1, 0, 1, 1], dtype=np.int8)


class NormPairs(NamedTuple):
    """Simulated pairs, with noisy labels and noise-free scores.

    Attributes
    ----------
    pairs : Pairs
        n pairs of 2n items with two features.
    y : ndarray of shape (n,)
        Noisy labels.
    scores : ndarray of shape (2n,)
        Noise-free r(x) of each row of ``pairs.items``.
    """

    pairs: Pairs
    y: NDArray[np.int8]
    scores: NDArray[np.float64]


def squared_norm(
    X: ArrayLike, norm: Literal["l1", "l2", "linf"]
) -> NDArray[np.float64]:
    """Ranking functions r(x) = ||x||_j^2 of section 4.1 of [Venuto2017]_.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Items.
    norm : {"l1", "l2", "linf"}
        Name of the norm.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If the norm is unknown, or X is not an (n, p) array of numbers from -1e100 to
        1e100.

    Examples
    --------
    >>> squared_norm([[3.0, -4.0]], "l1"), squared_norm([[3.0, -4.0]], "linf")
    (array([49.]), array([16.]))
    """
    check_choice(norm, "norm", tuple(_ORDERS))
    X = check_items(X, "X", scaled=True)
    return np.linalg.norm(X, ord=_ORDERS[norm], axis=1) ** 2


def simulate_norm_pairs(
    norm: Literal["l1", "l2", "linf"],
    n: int,
    tie_share: float,
    rng: np.random.Generator | int,
    steps: Literal["uniform", "gaussian"] = "uniform",
) -> NormPairs:
    """Simulate noisy comparisons by a squared norm (section 4.1 of [Venuto2017]_).

    The label is y = t_1[r(first) - r(second) + epsilon] (eq. 4) with r(x) = ||x||_j^2
    and epsilon ~ N(0, (1/4)^2). The second item is uniform on [-2, 2]^2; the first (the
    paper's x') is the second plus a step delta. The text of the paper only says that
    all items are in [-3, 3]^2. The authors' scripts have two designs, the values of
    `steps`. Figure 4 was made with Gaussian steps, which may leave this square.

    Parameters
    ----------
    norm : {"l1", "l2", "linf"}
        Norm j of r(x).
    n : int
        Number of pairs.
    tie_share : float
        Fraction rho of pairs with label 0: exactly round(n * tie_share) pairs, by
        rejection sampling.
    rng : numpy Generator or int
        Source of randomness, or its seed.
    steps : {"uniform", "gaussian"}
        Distribution of delta: uniform on [-1/2, 1/2]^2, [-1, 1/2]^2, and [-1, 1]^2 for
        the norms 1, 2, and inf; or normal, each coordinate with mean 0 and standard
        deviation 1/2, for all norms.

    Returns
    -------
    NormPairs
        Pairs, labels, and noise-free scores, so that the true ranking can be evaluated.

    Raises
    ------
    ValueError
        If the norm or `steps` is unknown, n < 1, or the fraction is outside [0, 1].

    Examples
    --------
    >>> pairs, y, scores = simulate_norm_pairs("l2", 6, 0.5, rng=0)
    >>> pairs, int((y == 0).sum())
    (Pairs(6 pairs of 12 items, 2 features), 3)
    """
    check_choice(norm, "norm", tuple(_ORDERS))
    n_ties = tie_quota(n, tie_share)
    check_choice(steps, "steps", ("uniform", "gaussian"))
    rng = generator(rng, "rng")
    batches = []
    chosen = np.zeros(0, dtype=np.int64)
    while (
        len(chosen) < n
    ):  # each batch has enough ties and preferences to make progress
        second = rng.uniform(-2, 2, size=(n + 100, 2))
        if steps == "uniform":
            first = second + rng.uniform(*_DELTAS[norm], size=second.shape)
        else:
            first = second + rng.normal(scale=_GAUSSIAN_STEP, size=second.shape)
        gain = squared_norm(first, norm) - squared_norm(second, norm)
        noise = rng.normal(scale=_SIGMA, size=len(gain))
        batches.append((first, second, threshold(gain + noise, 1.0)))
        y = np.concatenate([labels for _, _, labels in batches])
        ties = np.flatnonzero(y == 0)[:n_ties]
        chosen = np.append(ties, np.flatnonzero(y)[: n - n_ties])
    chosen = chosen[rng.permutation(n)]  # ties must not come first
    first, second, y = (
        np.concatenate(parts)[chosen] for parts in zip(*batches, strict=True)
    )
    pairs = Pairs.from_arrays(first, second)
    return NormPairs(pairs, y, squared_norm(pairs.items, norm))


def tie_quota(n: int, tie_share: float) -> int:
    """Number of ties among n pairs, from their fraction."""
    fraction = check_real(tie_share, "tie_share", "a number from 0 to 1", 0, 1)
    return round(check_count(n, "n", 1) * fraction)
