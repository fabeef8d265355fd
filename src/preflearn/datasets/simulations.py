"""Simulated comparisons whose truth is known: section 4.1 of [Venuto2017]_, and separable ones."""

from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import check_array, check_choice, check_items
from preflearn.metrics import threshold
from preflearn.pairs import Pairs

_ORDERS = {1: 1, "1": 1, "l1": 1, 2: 2, "2": 2, "l2": 2, np.inf: np.inf, "inf": np.inf, "linf": np.inf}
_DELTAS = {1: (-0.5, 0.5), 2: (-1.0, 0.5), np.inf: (-1.0, 1.0)}
_SIGMA = 0.25
_GAUSSIAN_STEP = 0.5


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
    _check(p, "p", Integral, 1, 10**9, "a whole number of features, at least one and at most 1e9")
    _check(
        margin, "margin", Real, np.nextafter(0, 1), np.nextafter(1, 0), "a number strictly between 0 and 1"
    )
    scale = check_array(np.full(p, scale) if np.ndim(scale) == 0 else scale, "scale", (p,))
    if scale.min() <= 0:
        raise ValueError(f"scale is {scale.tolist()}; expected positive numbers")
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
    try:
        return _ORDERS[norm]
    except (KeyError, TypeError):
        raise ValueError(f"norm is {norm!r}; expected 1, 2, inf, or 'l1', 'l2', 'linf'") from None


def _tie_quota(n: int, tie_share: float) -> int:
    _check(n, "n", Integral, 1, 10**9, "a whole number of pairs, at least one and at most 1e9")
    _check(tie_share, "tie_share", Real, 0, 1, "a share from 0 to 1")
    return round(n * tie_share)


def _check(value: Any, name: str, kind: type, low: float, high: float, expected: str) -> None:
    if not isinstance(value, kind) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}; expected {expected}")
