"""The task family "objects" of chapter 17: learn a ranking of items, rank other items.

A domain is a group of data sets, such as results of decathlons. A unit is a row of
Table 2 of [AhmadiFahandar2019]_. Rows with a data set that is not public are left out.
The rows of a domain share data sets, so they are dependent.

All learners get the features that AnKer-rank has in chapter 16, scaled to [0, 1]. The
columns that determine the ranking are left out, because they contain the answer. A query
is scaled together with the training items if a Kolmogorov-Smirnov test does not reject
that both have the same distribution. Otherwise it is scaled by itself.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
"""

from __future__ import annotations

from itertools import compress, permutations

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import RepeatedKFold

from preflearn.analogy import DomainScaler
from preflearn.core.validation import Floats
from preflearn.datasets import load_object_ranking
from preflearn.datasets.object_ranking import OBJECT_RANKINGS, ObjectRanking
from preflearn.metrics import ranking_loss
from preflearn_book.studies.ch17_orders import (
    Scored,
    merge_rounded,
    seed_of,
)
from preflearn_book.studies.ch17_protocol import Problem, Split, problem_or_simulation

GROUPS = {
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
SORT_KEYS = {
    "B": ("Pts", "GD", "GF"),
    "G": ("Goalsfor",),
    "V": ("Matches_Won", "Points", "Sets_Ration", "Points_Ratio"),
}
"""The columns that determine the rankings of a group.

The first column sorts all items, and each further column sorts items that are equal in
the earlier columns. (The points of the decathlon and the score of CWUR are not features
in chapter 16 either.)
"""

_COMPLEMENTS = {"V": ("Matches_Lost",)}  # all teams have as many matches
# With more items, the three folds are drawn once instead of three times.
MAX_REPEATED_ITEMS = 50


def tasks(profile: str) -> list[str]:
    """Names such as "decathlon/D1-D2". Quick tasks use the smallest data sets."""
    return [
        f"{GROUPS[a[0]]}/{a}-{b}"
        for a, b in TRANSFERS
        if profile == "full" or a[0] in "BV"
    ]


def problem(name: str) -> Problem:
    """The problem with a given name, or a simulated one if the data are not available."""
    return problem_or_simulation(name, _real_problem, _simulated)


def _real_problem(name: str) -> Problem:
    first, second = (without_sort_keys(one) for one in name.split("/")[1].split("-"))
    return make_problem(name, first.X, first.y, second.X, second.y)


def without_sort_keys(name: str) -> ObjectRanking:
    """A ranking without the features in `SORT_KEYS`.

    Features that equal one of them up to sign and a constant are also left out.
    """
    data = load_object_ranking(name)
    left_out = {*SORT_KEYS.get(name[0], ()), *_COMPLEMENTS.get(name[0], ())}
    kept = [feature not in left_out for feature in data.feature_names]
    names = tuple(compress(data.feature_names, kept))
    return data._replace(X=data.X[:, kept], feature_names=names)


def _simulated(name: str) -> Problem:
    """Two data sets that are ranked by the same noisy linear utility."""
    rng = np.random.default_rng(seed_of(name))
    X = rng.uniform(size=(2, 20, 6))
    y = X @ np.linspace(1, 2, 6) + 0.3 * rng.normal(size=(2, 20))
    y = -rankdata(-y, axis=1)
    return make_problem(name, X[0], y[0], X[1], y[1])


def make_problem(name: str, X: Floats, y: Floats, Q: Floats, truth: Floats) -> Problem:
    """The problem of learning the order of X and ranking Q."""
    domain, unit = name.split("/")
    seed = seed_of(name)
    n_repeats = 3 if len(X) <= MAX_REPEATED_ITEMS else 1
    splitter = RepeatedKFold(n_splits=3, n_repeats=n_repeats, random_state=seed)
    folds = [
        split(X[train], y[train], X[test], y[test], seed)
        for train, test in splitter.split(X)
    ]
    whole = split(X, y, Q, truth, seed)
    facts = {"n_features": X.shape[1]}
    return Problem("objects", domain, unit, whole, folds, judge, facts)


def split(X: Floats, y: Floats, Q: Floats, truth: Floats, seed: int) -> Split:
    """Training items and a query, scaled to [0, 1].

    The truth is the scores of the query items; larger is better.
    """
    X, Q = DomainScaler().fit(X).both(Q)
    return Split(Scored(X, y, seed), Q, truth)


def judge(truth: Floats, scores: Floats) -> dict[str, float]:
    """The ranking loss of section 2, where a pair with tied scores counts half."""
    return {"loss": ranking_loss(-truth, -merge_rounded(scores))}
