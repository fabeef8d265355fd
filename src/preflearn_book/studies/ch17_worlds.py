"""The task family "regimes" of chapter 17: simulated worlds with varying factors.

One factor changes at a time, or two factors for a map. The score of an item is the sum of
a function of its features and an individual part. A comparison is a noisy difference of
two scores, and the smallest differences are ties. The test comparisons are **new
comparisons of items from the training data**. Therefore learners that identify items only
by number can be included. For the same reason, folds split comparisons instead of items.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core import QueryKFold
from preflearn.core.validation import Floats
from preflearn.metrics import best_threshold, threshold
from preflearn.pairs import Pairs
from preflearn.solvers.search import grid
from preflearn_book.studies.ch17_features import (
    N_ASKED,
    N_FOLDS,
    drawn_pairs,
    make_problem,
)
from preflearn_book.studies.ch17_protocol import Problem, Split

BASE = {
    "comparisons": 300,
    "features": 10,  # number of features, half of which matter
    "items": 100,
    "ties": 0.3,  # fraction of ties among the comparisons
    "noise": 1.0,  # standard deviation of the noise, relative to that of the scores
    "missing": 0.0,  # fraction of the features that are hidden from the learners
    "explained": 1.0,  # fraction of the score variance that all features explain
}
SWEEPS = {
    "comparisons": (50, 100, 800, 3200),
    "ties": (0.05, 0.15, 0.6),
    "noise": (0.25, 0.5, 2.0),
    "items": (10, 30, 300),
    "missing": (0.2, 0.5, 0.8),
}
MAPS = (
    {"comparisons": (50, 150, 500, 1500), "features": (2, 20, 60)},
    # 30, 10, and 3 comparisons per item
    {"items": (20, 60, 200), "explained": (0.1, 0.5, 1.0)},
)
WORLDS = ("linear", "non-linear")
DRAWS = 5  # minimum number of replicates for a decision


def settings() -> list[dict[str, float]]:
    """Changes to the base case: none, one factor, and two factors for the maps."""
    changes: list[dict[str, float]] = [{}]
    for factors in (*({factor: SWEEPS[factor]} for factor in SWEEPS), *MAPS):
        changes += grid(factors).to_dict("records")  # pyright: ignore[reportOperatorIssue]
    return changes


def tasks(profile: str) -> list[str]:
    """Names such as "linear items=30/0": world, changes to `BASE`, and draw."""
    if profile == "quick":
        return ["linear/0", "linear items=10/0", "non-linear/0"]
    domains = [
        " ".join([world, *(f"{factor}={value:g}" for factor, value in change.items())])
        for world in WORLDS
        for change in settings()
    ]
    return [f"{domain}/{draw}" for domain in domains for draw in range(DRAWS)]


def problem(name: str) -> Problem:
    """The problem with a given name.

    A draw uses the same random numbers in all worlds, so only the factors differ.
    The fact `least` is the loss of the true scores with the best threshold.
    """
    domain, draw = name.split("/")
    world, *changes = domain.split()
    factors = dict(BASE)
    for change in changes:
        factor, value = change.split("=")
        factors[factor] = type(BASE[factor])(value)
    simulated = simulate_world(world, int(draw), **factors)
    n = factors["comparisons"]
    least = best_threshold(simulated.y[n:], simulated.gap[n:])[1]
    facts = {"n_features": factors["features"], "least": least}
    pairs = Pairs(simulated.X, simulated.index)
    folds = QueryKFold(N_FOLDS).split(pairs[:n], groups=np.arange(n))
    posed = make_problem(name, "regimes", pairs, simulated.y, n, folds)
    return posed._replace(
        whole=_without_origin(posed.whole),
        folds=[_without_origin(fold) for fold in posed.folds],
        facts=dict(posed.facts) | facts,
    )


def _without_origin(split: Split) -> Split:
    """Copy pairs without the information by which `Pairs` detects leakage.

    Here the test pairs consist of training items on purpose.
    """
    train, y = split.train
    test = split.test
    return Split(
        (Pairs(train.items, train.index), y), Pairs(test.items, test.index), split.truth
    )


class SimulatedWorld(NamedTuple):
    """Comparisons in a simulated world, starting with the training comparisons.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Features that are visible to the learners.
    index : ndarray of shape (m, 2)
        Items of each comparison.
    gap : ndarray of shape (m,)
        True score differences.
    y : ndarray of shape (m,)
        Labels.
    """

    X: Floats
    index: NDArray
    gap: Floats
    y: NDArray


def simulate_world(world: str, draw: int, **factors: Any) -> SimulatedWorld:
    """Simulate a world.

    Test comparisons are between items of the training comparisons. The fraction of ties
    among all labels is exact. A nonlinear world adds squares of the features that matter.

    Parameters
    ----------
    world : str
        One of `WORLDS`.
    draw : int
        Seed.
    **factors : int or float
        All factors, by their names in `BASE`.
    """
    n_items = factors["items"]
    n_features = factors["features"]
    rng_items, rng_scores, rng_pairs, rng_noise = np.random.default_rng(
        [17, draw]
    ).spawn(4)
    X = rng_items.normal(size=(n_features, n_items)).T
    relevant = X[:, : max(1, n_features // 2)]
    weights = rng_scores.normal(size=(2, relevant.shape[1]))
    linear, quadratic = (w / np.linalg.norm(w) for w in weights)
    scores = relevant @ linear
    if world == "non-linear":
        # Both parts have variance 1.
        squares = (relevant**2 - 1) @ quadratic / np.sqrt(2)
        scores = (scores + squares) / np.sqrt(2)
    explained = factors["explained"]
    own = rng_noise.normal(size=n_items)
    scores = np.sqrt(explained) * scores + np.sqrt(1 - explained) * own
    n_seen = n_features - round(factors["missing"] * n_features)
    seen = rng_scores.permutation(n_features)[:n_seen]
    train = drawn_pairs(rng_pairs, np.arange(n_items), factors["comparisons"])
    test = drawn_pairs(rng_pairs, np.unique(train), N_ASKED)
    index = np.vstack([train, test])
    gap = np.subtract(*scores[index].T)
    z = gap + factors["noise"] * rng_noise.normal(size=len(gap))
    y = threshold(z, float(np.quantile(np.abs(z), factors["ties"])))
    return SimulatedWorld(X[:, seen], index, gap, y)
