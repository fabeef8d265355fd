"""Chapter 17, arena "regimes": simulated worlds in which one factor moves at a time,
and two for the map.

An item's score is a function of its features, or in part its own; a comparison sees the
difference of two scores with noise, and the smallest are ties. **What is forecast are
new comparisons of items that were seen**, so that those who know items by number only
can take part; so folds, too, are of comparisons.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from numpy.typing import NDArray

from preflearn.core import NotIdentifiedWarning, QueryKFold
from preflearn.core.diagnosis import without_features
from preflearn.core.validation import Floats, check_choice
from preflearn.metrics import best_threshold, threshold
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson
from preflearn_book.studies.ch17_features import N_ASKED, N_FOLDS, drawn_pairs, posed
from preflearn_book.studies.ch17_pairs import LEARNERS as EVERY
from preflearn_book.studies.ch17_pairs import Labelled, learner, probable
from preflearn_book.studies.ch17_protocol import CONSTANT, Problem, Split, spaced

BASE = {
    "comparisons": 300,
    "features": 10,  # of which half matter
    "items": 100,
    "ties": 0.3,  # share of the comparisons
    "noise": 1.0,  # standard deviation, in units of that of the scores
    "missing": 0.0,  # share of the features that learners don't see
    "explained": 1.0,  # share of the variance of the scores that all features explain
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
    # 30, 10 and 3 comparisons an item
    {"items": (20, 60, 200), "explained": (0.1, 0.5, 1.0)},
)
WORLDS = ("linear", "non-linear")
DRAWS = 3
_CHEAP = (
    "SVMCompare",
    "ranking SVM",
    "logistic regression",
    "logistic, kernel features",
    "boosted trees",
)


class Named:
    """Davidson's model of items that are known by number, or by number and features.

    An item that was not met has a score of 0, or what its features say.
    """

    def __init__(self, train: Labelled, alpha: float, own: float = 0.0) -> None:
        self.own = own
        # folds choose alpha
        with warnings.catch_warnings(action="ignore", category=NotIdentifiedWarning):
            self.model = Davidson(alpha).fit(self.told(train[0]), train[1])

    def told(self, pairs: Pairs) -> Pairs:
        """The pairs of indicators of items, or of these times `own` beside the
        features."""
        if not self.own:
            return without_features(pairs.index, len(pairs.items))
        return pairs.with_items(
            np.hstack([pairs.items, self.own * np.eye(len(pairs.items))])
        )

    def predict_proba(self, pairs: Pairs) -> Floats:
        return self.model.predict_proba(self.told(pairs))


LEARNERS = (
    *(one for one in EVERY if one.name in _CHEAP),
    learner("Davidson", Named, probable, alpha=spaced(1e-5, 30.0)),
    learner(
        "Davidson, also features",
        Named,
        probable,
        own=[0.5, 2.0],
        alpha=spaced(1e-4, 1e3),
    ),
    *(one for one in EVERY if one.name in (CONSTANT, "random")),
)


def settings() -> list[dict[str, float]]:
    """What differs from the base case, for each: the base, one factor at a time, and
    the two maps."""
    sweeps = [{factor: value} for factor, values in SWEEPS.items() for value in values]
    return [
        {},
        *sweeps,
        *(
            dict(zip(two, at, strict=True))
            for two in MAPS
            for at in product(*two.values())
        ),
    ]


def tasks(profile: str) -> list[str]:
    """Names such as "linear items=30/0": the world, what differs from `BASE`, and the
    draw."""
    domains = [
        " ".join([world, *(f"{factor}={value:g}" for factor, value in moved.items())])
        for world in WORLDS
        for moved in settings()
    ]
    if profile == "quick":
        return ["linear/0", "linear items=10/0", "non-linear/0"]
    return [f"{domain}/{draw}" for domain in domains for draw in range(DRAWS)]


def problem(name: str) -> Problem:
    """A problem by its name; a draw has the same random numbers in all worlds, so that
    one factor moves.

    Its facts say all factors, and `least`: the loss of the true scores with the best
    threshold.
    """
    domain, draw = name.split("/")
    world, *moved = domain.split()
    check_choice(world, "the world", WORLDS)
    at = BASE | {
        factor: type(BASE[factor])(value)
        for factor, value in (one.split("=") for one in moved)
    }
    X, index, gap, y = drawn_world(world, int(draw), **at)
    n = at["comparisons"]
    facts = {"n_items": at["items"], "n_features": at["features"]}
    facts |= {factor: at[factor] for factor in ("noise", "missing", "explained")}
    facts |= {
        "nonlinear": int(world == WORLDS[1]),
        "least": best_threshold(y[n:], gap[n:])[1],
    }
    pairs = Pairs(X, index)
    folds = QueryKFold(N_FOLDS).split(pairs[:n], groups=np.arange(n))
    found = posed(name, "regimes", pairs, y, n, folds, facts)
    return found._replace(
        whole=_again(found.whole), folds=[_again(fold) for fold in found.folds]
    )


def _again(split: Split) -> Split:
    """Pairs that know nothing of each other, since here items are met again on purpose."""
    test = split.test
    (train, y) = split.train
    return Split(
        (Pairs(train.items, train.index), y), Pairs(test.items, test.index), split.truth
    )


def drawn_world(
    world: str,
    draw: int,
    comparisons: int,
    features: int,
    items: int,
    ties: float,
    noise: float,
    missing: float,
    explained: float,
) -> tuple[Floats, NDArray, Floats, NDArray]:
    """Features that learners see, pairs by number, the true difference of their scores,
    and labels.

    The first comparisons are learned from, the others, between items of these, are
    forecast. Of the labels of all of them the share of ties is exact. A non-linear
    world adds squares of the features that matter.
    """
    of_items, of_scores, of_pairs, of_noise = np.random.default_rng([17, draw]).spawn(4)
    X = of_items.normal(size=(features, items)).T
    use = X[:, : max(1, features // 2)]
    linear, bent = (
        w / np.linalg.norm(w) for w in of_scores.normal(size=(2, use.shape[1]))
    )
    scores = use @ linear
    if world == WORLDS[1]:
        # both parts have variance 1
        scores = (scores + (use**2 - 1) @ bent / np.sqrt(2)) / np.sqrt(2)
    scores = np.sqrt(explained) * scores + np.sqrt(1 - explained) * of_noise.normal(
        size=items
    )
    seen = of_scores.permutation(features)[: features - round(missing * features)]
    learned = drawn_pairs(of_pairs, np.arange(items), comparisons)
    index = np.vstack([learned, drawn_pairs(of_pairs, np.unique(learned), N_ASKED)])
    gap = np.subtract(*scores[index].T)
    z = gap + noise * of_noise.normal(size=len(gap))
    return X[:, seen], index, gap, threshold(z, float(np.quantile(np.abs(z), ties)))
