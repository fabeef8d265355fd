"""Comparisons that need no file: the four items, simulations whose truth is known, and samples of pairs."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import (
    as_real,
    check_array,
    check_choice,
    check_count,
    check_items,
    check_labels,
    check_real,
    require,
)
from preflearn.metrics import threshold
from preflearn.pairs import Pairs

_ITEMS = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [4.0, 1.0]])
_INDEX = [[1, 0], [2, 1], [3, 2], [3, 0]]
_ORDERS = {1: 1, "1": 1, "l1": 1, 2: 2, "2": 2, "l2": 2, np.inf: np.inf, "inf": np.inf, "linf": np.inf}
_DELTAS = {1: (-0.5, 0.5), 2: (-1.0, 0.5), np.inf: (-1.0, 1.0)}
_SIGMA = 0.25
_GAUSSIAN_STEP = 0.5


class FourItems(NamedTuple):
    """What `four_items` returns.

    Attributes
    ----------
    pairs : Pairs
        Four comparisons of four items, whose graph is one cycle.
    y : ndarray of shape (4,)
        Three preferences for the first item, and a tie.
    """

    pairs: Pairs
    y: NDArray[np.int8]


def four_items(n_features: int = 1) -> FourItems:
    """Four items and four comparisons, small enough for a hand.

    Item 2 beats item 1, item 4 beats items 3 and 1, and items 3 and 2 tie (in code, items count from 0). By
    their first feature, 0, 1, 2 and 4, the tied items differ as much as the first preference does; with the
    second one, 0, 1, 0 and 1, a line tells the preferences from the tie.

    Parameters
    ----------
    n_features : {1, 2}

    Raises
    ------
    ValueError
        On another number of features.

    Examples
    --------
    >>> pairs, y = four_items()
    >>> pairs.incidence().toarray().astype(int).tolist()
    [[-1, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1], [-1, 0, 0, 1]]
    >>> pairs.differences().ravel().tolist(), y.tolist()
    ([1.0, 1.0, 2.0, 4.0], [1, 0, 1, 1])
    """
    require(n_features in (1, 2), n_features, "n_features", "1 or 2")
    return FourItems(Pairs(_ITEMS[:, :n_features], _INDEX), np.array([1, 0, 1, 1], dtype=np.int8))


class NormPairs(NamedTuple):
    """What `simulate_norm_pairs` returns.

    Attributes
    ----------
    pairs : Pairs
        n pairs of 2n items of two features.
    y : ndarray of shape (n,)
        Noisy labels.
    scores : ndarray of shape (2n,)
        The noise-free r(x) of each row of ``pairs.items``.
    """

    pairs: Pairs
    y: NDArray[np.int8]
    scores: NDArray[np.float64]


class SeparablePairs(NamedTuple):
    """What `simulate_separable_pairs` returns.

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


def squared_norm(X: ArrayLike, norm: float | str) -> NDArray[np.float64]:
    """The ranking functions r(x) = ||x||_j^2 of section 4.1 of [Venuto2017]_.

    Parameters
    ----------
    X : array-like of shape (n, p)
    norm : {1, 2, inf} or {"l1", "l2", "linf"}

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        On another norm, or on X that is no finite (n, p) array.

    Examples
    --------
    >>> squared_norm([[3.0, -4.0]], 1), squared_norm([[3.0, -4.0]], "l2"), squared_norm([[3.0, -4.0]], "linf")
    (array([49.]), array([25.]), array([16.]))
    """
    return np.linalg.norm(check_items(X, "X"), ord=_order(norm), axis=1) ** 2


def simulate_norm_pairs(
    norm: float | str,
    n: int,
    tie_share: float,
    rng: np.random.Generator | int,
    steps: Literal["uniform", "gaussian"] = "uniform",
) -> NormPairs:
    """Noisy comparisons by a squared norm in the plane, section 4.1 of [Venuto2017]_.

    The label is y = t_1[r(first) - r(second) + epsilon], eq. 4 there, with r(x) = ||x||_j^2 and
    epsilon ~ N(0, (1/4)^2). The second item is uniform on [-2, 2]^2; the first (the paper's x') is the
    second plus a step delta. The text of the paper says only that all lie in [-3, 3]^2. The authors'
    scripts have two designs, the values of `steps`; Figure 4 was built from Gaussian steps, which may leave
    that square.

    Parameters
    ----------
    norm : {1, 2, inf} or {"l1", "l2", "linf"}
        The j of r(x).
    n : int
        The number of pairs.
    tie_share : float
        rho, the share of pairs with label 0: exactly round(n * tie_share) pairs, by rejection.
    rng : numpy Generator or int
        Source of randomness, or its seed.
    steps : {"uniform", "gaussian"}
        The law of delta: uniform on [-1/2, 1/2]^2, [-1, 1/2]^2, [-1, 1]^2 for the norms 1, 2, inf; or
        normal, each coordinate with mean 0 and standard deviation 1/2, for every norm.

    Returns
    -------
    NormPairs
        pairs, y, and the noise-free scores, so that the truth can be evaluated too.

    Raises
    ------
    ValueError
        On an unknown norm, n < 1, a share outside [0, 1], or unknown steps.

    Examples
    --------
    >>> pairs, y, scores = simulate_norm_pairs("l2", 6, 0.5, rng=0)
    >>> pairs, int((y == 0).sum())
    (Pairs(6 pairs of 12 items, 2 features), 3)
    """
    order = _order(norm)
    wanted = _tie_quota(n, tie_share)
    check_choice(steps, "steps", ("uniform", "gaussian"))
    rng = np.random.default_rng(rng)
    drawn, chosen = [], np.zeros(0, dtype=np.int64)
    while len(chosen) < n:
        second = rng.uniform(-2, 2, size=(n + 100, 2))
        if steps == "uniform":
            first = second + rng.uniform(*_DELTAS[order], size=second.shape)
        else:
            first = second + rng.normal(scale=_GAUSSIAN_STEP, size=second.shape)
        gain = squared_norm(first, order) - squared_norm(second, order)
        drawn.append((first, second, threshold(gain + rng.normal(scale=_SIGMA, size=len(gain)), 1.0)))
        y = np.concatenate([labels for _, _, labels in drawn])
        chosen = np.concatenate([np.flatnonzero(y == 0)[:wanted], np.flatnonzero(y)[: n - wanted]])
    chosen = chosen[rng.permutation(n)]  # a label must not be told from a pair's place
    first, second, y = (np.concatenate(part)[chosen] for part in zip(*drawn, strict=True))
    pairs = Pairs.from_arrays(first, second)
    return NormPairs(pairs, y, squared_norm(pairs.items, order))


def simulate_separable_pairs(
    n: int, p: int, tie_share: float, margin: float, rng: np.random.Generator | int, scale: ArrayLike = 1.0
) -> SeparablePairs:
    """Comparisons that some w separates with at least the given margin, eq. 7 of [Venuto2017]_.

    With d = first - second, |w'd| <= 1 - margin where y = 0, and y w'd >= 1 + margin elsewhere, up to
    rounding; so the optimum of the linear program (7) is at least `margin`.

    Parameters
    ----------
    n, p : int
        Numbers of pairs and of features.
    tie_share : float
        The share of pairs with label 0: exactly round(n * tie_share) pairs.
    margin : float
        mu, strictly between 0 and 1.
    rng : numpy Generator or int
        Source of randomness, or its seed.
    scale : float or array-like of shape (p,)
        Unit of each feature: feature j is multiplied by it, and w_j divided.

    Returns
    -------
    SeparablePairs
        pairs, y, the scores w'x of ``pairs.items``, and w.

    Raises
    ------
    ValueError
        On n or p below 1, a share outside [0, 1], a margin outside (0, 1), or a scale that is not positive.

    Examples
    --------
    >>> pairs, y, scores, w = simulate_separable_pairs(50, 2, 0.4, 0.3, rng=0, scale=[100, 1])
    >>> bool((abs(pairs.differences() @ w)[y == 0] <= 0.7 + 1e-12).all())
    True
    """
    n_ties = _tie_quota(n, tie_share)
    check_count(p, "p", 1)
    require(0 < as_real(margin) < 1, margin, "margin", "a number strictly between 0 and 1")
    scale = check_array(np.full(p, scale) if np.ndim(scale) == 0 else scale, "scale", (p,))
    require(scale.min() > 0, scale.tolist(), "scale", "positive numbers")
    rng = np.random.default_rng(rng)
    w = rng.normal(size=p)
    w /= np.linalg.norm(w)

    y = np.concatenate([np.zeros(n_ties, dtype=np.int8), rng.choice([-1, 1], n - n_ties).astype(np.int8)])
    y = rng.permutation(y)
    tied_gain = rng.uniform(margin - 1, 1 - margin, size=n)
    gain = np.where(y == 0, tied_gain, y * (1 + margin + rng.exponential(size=n)))
    across = 1.5 * rng.normal(size=(n, p))
    differences = across + np.outer(gain - across @ w, w)
    second = rng.uniform(-2, 2, size=(n, p))
    pairs = Pairs.from_arrays((second + differences) * scale, second * scale)
    return SeparablePairs(pairs, y, pairs.items @ (w / scale), w / scale)


def _order(norm: float | str) -> float:
    require(norm in list(_ORDERS), norm, "norm", "1, 2, inf, or 'l1', 'l2', 'linf'")
    return _ORDERS[norm]


def _tie_quota(n: int, tie_share: float) -> int:
    share = check_real(tie_share, "tie_share", "a share from 0 to 1", 0, 1)
    return round(check_count(n, "n", 1) * share)


def disjoint_samples(
    pairs: Pairs, y: ArrayLike, sizes: Iterable[int], tie_share: float, rng: np.random.Generator
) -> list[tuple[Pairs, NDArray]]:
    """Random samples that share no pair, each with the same share of ties.

    Parameters
    ----------
    pairs : Pairs
    y : array-like of shape (m,)
    sizes : iterable of int
        Pairs of each sample.
    tie_share : float
        From 0 to 1; the number of ties is rounded.
    rng : numpy Generator

    Raises
    ------
    ValueError
        On bad labels or a bad share, or where there are not enough ties or preferences.

    Examples
    --------
    >>> pairs, y = Pairs([[0.0], [1.0], [2.0]], [[1, 0], [2, 1], [2, 0], [0, 2]]), [0, 1, 1, 0]
    >>> samples = disjoint_samples(pairs, y, [2, 2], 0.5, np.random.default_rng(0))
    >>> [sorted(labels.tolist()) for _, labels in samples]
    [[0, 1], [0, 1]]
    """
    y, sizes = check_labels(y, len(pairs)), list(sizes)
    check_real(tie_share, "tie_share", "a share from 0 to 1", 0, 1)
    ties, preferences = (rng.permutation(np.flatnonzero(chosen)) for chosen in (y == 0, y != 0))
    wanted = [(round(size * tie_share), size - round(size * tie_share)) for size in sizes]
    for have, name, needed in zip(
        (ties, preferences), ("ties", "preferences"), zip(*wanted, strict=True), strict=True
    ):
        require(len(have) >= sum(needed), len(have), f"number of {name}", f"at least {sum(needed)}")
    samples = []
    for n_ties, n_preferences in wanted:
        rows = np.concatenate([ties[:n_ties], preferences[:n_preferences]])
        ties, preferences = ties[n_ties:], preferences[n_preferences:]
        samples.append((pairs[rows], y[rows]))
    return samples
