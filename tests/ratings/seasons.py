"""Simulated seasons for the rating systems."""

import numpy as np
from scipy.special import expit

from preflearn.matches import Matches
from preflearn.ratings import TrueSkill

TRUESKILLS = {
    "match": TrueSkill(dynamics=0.05),
    "match, ties": TrueSkill(variance=0.5, dynamics=0.02, margin=0.4, advantage=0.3),
    "time": TrueSkill(dynamics=0.03, step="time"),
    "time, ties": TrueSkill(
        variance=2.0, dynamics=0.1, step="time", margin=0.3, advantage=-0.2
    ),
}


def played(seed, n=6, N=60, ties=0.3, a_day=5, day=1.0):
    """Return a season of n players with a home advantage and some matches per day. All
    players occur from the start."""
    rng = np.random.default_rng(seed)
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(N)])
    index[: n // 2] = np.arange(2 * (n // 2)).reshape(-1, 2)
    home = rng.integers(0, 2, N)
    skill = rng.standard_normal(n)
    won = rng.random(N) < expit(skill[index[:, 0]] - skill[index[:, 1]] + 0.3 * home)
    y = np.where(rng.random(N) < ties, 0, np.where(won, 1, -1))
    design = np.zeros((N, n + 1))
    design[np.arange(N), index[:, 0]] = 1
    design[np.arange(N), index[:, 1]] = -1
    design[:, n] = home
    names = [*(f"p{k}" for k in range(n)), "advantage"]
    return Matches(design, np.arange(N) // a_day * day, names), y


def one_after_the_other(matches, y, advantage):
    """Return the two players, the advantage, the time, and the outcome of each
    match."""
    home = matches.design.toarray()[:, matches.features.index("advantage")] * advantage
    return zip(matches.players().tolist(), home, matches.time, y, strict=True)


def davidson(score, nu):
    """Return the probabilities of -1, 0, 1 for the expected scores E: (1 - E) x² + (1/2
    - E) nu x = E with x = e^{D/2}."""
    middle = (0.5 - score) * nu
    x = (np.sqrt(middle**2 + 4 * score * (1 - score)) - middle) / (2 * (1 - score))
    weights = np.stack([1 / x, np.full_like(x, nu), x], axis=-1)
    return weights / weights.sum(axis=-1, keepdims=True)
