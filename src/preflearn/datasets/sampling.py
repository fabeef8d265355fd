"""Samples of labelled pairs."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import check_labels, require
from preflearn.pairs import Pairs


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
    require(0 <= tie_share <= 1, tie_share, "tie_share", "a share from 0 to 1")
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
