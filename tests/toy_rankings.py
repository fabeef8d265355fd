"""Random scored items in [0, 1], their pairs, and differences of other pairs."""

import numpy as np

from preflearn.pairs import ranks_to_scores
from preflearn.ranking.base import positions


def rankings(seed, n=15, d=3, levels=None, noise=0.2):
    rng = np.random.default_rng(seed)
    X = (
        rng.integers(0, levels + 1, (n, d)) / levels
        if levels
        else rng.uniform(size=(n, d))
    )
    rank = positions(X**2 @ np.arange(1, d + 1) + noise * rng.normal(size=n))
    return X, ranks_to_scores(rank)


def better_minus_worse(X, scores):
    """Return differences in the order of `Pairs.from_scores`; larger is better."""
    pairs = [
        (i, j)
        for i in range(len(X))
        for j in range(i + 1, len(X))
        if scores[i] != scores[j]
    ]
    return np.array(
        [(X[i] - X[j]) * (1 if scores[i] > scores[j] else -1) for i, j in pairs]
    )


def differences(seed, n, d, kind="any"):
    """Return differences of n pairs of items; some are 0, -1, 1 or equal."""
    rng = np.random.default_rng(seed)
    U = rng.uniform(0, 1, (n, d)) - rng.uniform(0, 1, (n, d))
    if kind == "coarse":
        return np.round(2 * U) / 2
    if kind == "mixed":
        U = np.where(rng.random((n, d)) < 0.3, rng.choice([-1.0, 0.0, 1.0], (n, d)), U)
        U[:, -1] = 0.25
    return U
