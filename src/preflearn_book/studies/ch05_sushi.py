"""Samples of the sushi ratings of section 4.2 of [Venuto2017]_, and simulated ratings.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import require
from preflearn.datasets.sushi import BEST, SushiData, pairs_of_neighbours
from preflearn.pairs import Pairs


def simulate_sushi(rng: np.random.Generator | int, n_users: int = 2500) -> SushiData:
    """Simulate ratings in the form of the sushi data, which may not be available.

    Each user rates ten items. An item has seven random features of its own and seven of
    its user. Its score is a noisy linear function of all features, rounded to five
    values.

    Parameters
    ----------
    rng : numpy Generator or int
        Source of randomness, or its seed.
    n_users : int

    Returns
    -------
    SushiData
        The data, without item names and provenance.
    """
    rng = np.random.default_rng(rng)
    user = np.repeat(np.arange(n_users), 10)
    items = np.hstack(
        [rng.normal(size=(len(user), 7)), rng.normal(size=(n_users, 7))[user]]
    )
    noise = rng.normal(scale=0.5, size=len(user))
    scores = np.clip(
        np.round(2 + items @ rng.normal(size=14) / 4 + noise), 0, BEST
    ).astype(np.int8)
    index = pairs_of_neighbours(user, scores)
    y = np.sign(scores[index[:, 0]] - scores[index[:, 1]]).astype(np.int8)
    names = tuple(f"feature {k}" for k in range(14))
    return SushiData(
        Pairs(items, index), y, names, (), scores, user, np.arange(len(user)), ()
    )


def disjoint_samples(
    pairs: Pairs,
    y: NDArray,
    sizes: Iterable[int],
    tie_share: float,
    rng: np.random.Generator,
) -> list[tuple[Pairs, NDArray]]:
    """Draw samples without common pairs and with the same fraction of ties.

    Parameters
    ----------
    pairs : Pairs
    y : ndarray of shape (m,)
    sizes : iterable of int
        Number of pairs of each sample.
    tie_share : float
        Fraction of ties, from 0 to 1; the number of ties is rounded.
    rng : numpy Generator

    Raises
    ------
    ValueError
        If there are not enough ties or preferences.

    Examples
    --------
    >>> pairs, y = Pairs([[0.0], [1.0], [2.0]], [[1, 0], [2, 1], [2, 0], [0, 2]]), np.array([0, 1, 1, 0])
    >>> samples = disjoint_samples(pairs, y, [2, 2], 0.5, np.random.default_rng(0))
    >>> [sorted(labels.tolist()) for _, labels in samples]
    [[0, 1], [0, 1]]
    """
    ties = rng.permutation(np.flatnonzero(y == 0))
    preferences = rng.permutation(np.flatnonzero(y != 0))
    samples = []
    for size in sizes:
        n_ties = round(size * tie_share)
        parts = [ties[:n_ties], preferences[: size - n_ties]]
        counts = [len(part) for part in parts]
        expected = f"{n_ties} ties and {size - n_ties} preferences that are left"
        require(counts == [n_ties, size - n_ties], counts, "a sample", expected)
        ids = np.concatenate(parts)
        samples.append((pairs[ids], y[ids]))
        ties = ties[n_ties:]
        preferences = preferences[size - n_ties :]
    return samples
