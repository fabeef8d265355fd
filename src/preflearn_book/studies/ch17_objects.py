"""The arena "objects" of chapter 17: a ranking of some items is learned, and other
items are to be ranked.

A domain is a family of sets, such as results of decathlons; a unit is a row of Table 2
of [AhmadiFahandar2019]_, but for those of a set that is not public. Rows of a family
share its sets, and so depend on each other.

All learners get the features that chapter 16 gives to AnKer-rank: in [0, 1], a query
together with the items to learn from where a Kolmogorov-Smirnov test does not tell them
apart, else by itself.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import RepeatedKFold

from preflearn.analogy import Able2Rank, AnKerRank, DomainScaler
from preflearn.core.validation import Floats
from preflearn.datasets import load_object_ranking
from preflearn.datasets.object_ranking import OBJECT_RANKINGS
from preflearn.metrics import ranking_loss
from preflearn_book.studies.ch17_orders import (
    FITS,
    Grids,
    Scored,
    Scores,
    learners,
    ordered,
    seed_of,
)
from preflearn_book.studies.ch17_protocol import Problem, Split, problem_or_simulation

FAMILIES = {
    "B": "Bundesliga",
    "D": "decathlon",
    "F": "strikers",
    "G": "world cups",
    "H": "hotels",
    "U": "universities",
    "V": "volleyball",
}
TRANSFERS = [
    (a, b)
    for a, b in permutations(OBJECT_RANKINGS, 2)
    if a[0] == b[0] and (a, b) != ("H2", "H1")
]
_FEW = 50  # items up to which three folds are drawn three times

# times 2 is the exponent of the kernel at the mean squared distance
_WIDTHS = [0.03, 0.3]
GRIDS: Grids = {
    "AnKer-rank": {"C": np.logspace(-4, 3, 8).tolist()},
    "able2rank": {"k": [1, 3, 10, 30, 100, 300, 1000, 3000]},
    "ranking SVM": {"C": np.logspace(-5, 5, 8).tolist()},
    "ranking SVM, rbf": {"C": np.logspace(-3, 8, 8).tolist(), "width": _WIDTHS},
    "RankRLS": {"alpha": np.logspace(-4, 4, 8).tolist(), "width": _WIDTHS},
    "ranking pursuit": {"n_basis": [1, 2, 4, 8, 16, 32, 64, 128], "width": _WIDTHS},
    "RankNet": {"n_hidden": [8, 32], "learning_rate": np.logspace(-5, 1, 8).tolist()},
    "logistic regression": {"C": np.logspace(-2, 9, 8).tolist()},
    "logistic, kernel features": {
        "C": np.logspace(0, 11, 8).tolist(),
        "width": _WIDTHS,
    },
    "boosted trees": {
        "min_child_samples": [1, 1, 3, 3, 9, 9, 27, 27],
        "num_leaves": [2, 6],
    },
}


def _by_anker(train: Scored, C: float) -> Scores:
    return AnKerRank(C, random_state=train.seed).fit(train.X, train.y).rank_function


def _by_able(train: Scored, k: int) -> Scores:
    return Able2Rank(k).fit(train.X, train.y).rank_function


_OF_RATINGS = ("RLS", "combined pursuit")
LEARNERS = learners(
    GRIDS,
    {"AnKer-rank": _by_anker, "able2rank": _by_able}
    | {name: fit for name, fit in FITS.items() if name not in _OF_RATINGS},
)


def tasks(profile: str) -> list[str]:
    """Names such as "decathlon/D1-D2"; quick: those of the smallest sets."""
    return [
        f"{FAMILIES[a[0]]}/{a}-{b}"
        for a, b in TRANSFERS
        if profile == "full" or a[0] in "BV"
    ]


def problem(name: str) -> Problem:
    """The task of a name, which alone decides its numbers; a simulated one if its sets
    are not available."""
    return problem_or_simulation(name, _problem, _simulated)


def _problem(name: str) -> Problem:
    first, second = (load_object_ranking(one) for one in name.split("/")[1].split("-"))
    return _posed(name, first.X, first.y, second.X, second.y)


def _simulated(name: str) -> Problem:
    """Two sets whose items are ranked by one noisy linear utility."""
    rng = np.random.default_rng(seed_of(name))
    n = 20
    p = 6
    X = rng.uniform(size=(2, n, p))
    y = X @ np.linspace(1, 2, p) + 0.3 * rng.normal(size=(2, n))
    y = -rankdata(-y, axis=1)
    return _posed(name, X[0], y[0], X[1], y[1])


def _posed(name: str, X: Floats, y: Floats, Q: Floats, truth: Floats) -> Problem:
    """The problem to learn the order of X, and to rank Q."""
    domain, unit = name.split("/")
    seed = seed_of(name)
    n = len(X)
    parts = RepeatedKFold(
        n_splits=3, n_repeats=3 if n <= _FEW else 1, random_state=seed
    ).split(X)
    folds = [split(X[a], y[a], X[b], y[b], seed) for a, b in parts]
    facts = {
        "n_items": n,
        "n_features": X.shape[1],
        "n_comparisons": n * (n - 1) // 2,
        "n_asked": len(Q),
    }
    whole = split(X, y, Q, truth, seed)
    return Problem("objects", domain, unit, whole, folds, judge, facts)


def split(X: Floats, y: Floats, Q: Floats, truth: Floats, seed: int) -> Split:
    """Items to learn from and a query, each normalised for the other.

    Scores of the query's items, larger is better, are the truth.
    """
    X, Q = DomainScaler().fit(X).both(Q)
    return Split(Scored(X, y, seed), Q, truth)


def judge(truth: Floats, scores: Floats) -> dict[str, float]:
    """The ranking loss of section 2; a pair that is tied in the scores counts half."""
    return {"loss": ranking_loss(-truth, -ordered(scores))}
