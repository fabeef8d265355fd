"""The arena "ratings" of chapter 17: the order of a user's items is learned from half
of them.

The problems are those of section 6.1 of [Tsivtsivadze2013]_, see `user_tasks`: features
of an item are what reference users say of it. A domain is a set of ratings and a group
of reference users; a unit is a block of users. Learners are fitted to each user by
himself, but choose once a block, by halves of the items of each of its users. Of Jester
only the first half of the users takes part; the others are for `new_user`.

A fit sees rated items only, where semi-supervised pursuit is ranking pursuit; so it is
left out.

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import sparse

from preflearn.core.validation import Floats, Ids, short_repr
from preflearn.datasets import load_jester, load_movielens
from preflearn.metrics import disagreement_error
from preflearn.ranking import bradley_terry
from preflearn_book.studies.ch10_users import UserTask, user_tasks
from preflearn_book.studies.ch17_orders import (
    FITS,
    Grids,
    Scored,
    Scores,
    learners,
    ordered,
    seed_of,
)
from preflearn_book.studies.ch17_protocol import (
    SIMULATED,
    Problem,
    Split,
    problem_or_simulation,
)

# ratings of references
GROUPS = {"20-39": (20, 40), "40-59": (40, 60), "60-79": (60, 80), "new": (20, 80)}
DOMAINS = [
    f"{data} {group}"
    for data in ("jester", "movielens")
    for group in ("20-39", "40-59", "60-79")
]
NEW = "jester new"
# of a block, and blocks of a domain
_USERS = 6
_UNITS = 6
_SPARE = 10  # users drawn in place of those of whom half of a half is all ties
# users of Jester that take part, and ratings of those that do not
_HALF = 2500
_RATINGS = 100_000

# times 2 is the exponent of the kernel at the mean squared distance
_WIDTHS = [0.03, 0.3]
GRIDS: Grids = {
    "ranking SVM": {"C": np.logspace(-7, 0, 8).tolist()},
    "ranking SVM, rbf": {"C": np.logspace(-5, 4, 8).tolist(), "width": _WIDTHS},
    "RankRLS": {"alpha": np.logspace(-3, 9, 8).tolist(), "width": _WIDTHS},
    "RLS": {"alpha": np.logspace(-3, 9, 8).tolist(), "width": _WIDTHS},
    "ranking pursuit": {"n_basis": [1, 2, 4, 8, 16, 32, 64, 128], "width": _WIDTHS},
    "combined pursuit": {"n_basis": [1, 2, 4, 8, 16, 32, 64, 128], "width": _WIDTHS},
    "RankNet": {"n_hidden": [2, 8], "learning_rate": np.logspace(-5, 1, 8).tolist()},
    "logistic regression": {"C": np.logspace(-7, 3, 8).tolist()},
    "logistic, kernel features": {
        "C": np.logspace(-5, 8, 8).tolist(),
        "width": _WIDTHS,
    },
    "boosted trees": {
        "min_child_samples": [1, 1, 3, 3, 9, 9, 27, 27],
        "num_leaves": [2, 6],
    },
}


def _by_popularity(train: Scored) -> Scores:
    """What the reference users say of an item in the mean, who have their median where
    they say nothing."""
    return lambda Q: Q.mean(axis=1)


def _by_worths(train: Scored) -> Scores:
    """Worths of the items asked for, from the share of reference users that rates one
    above the other."""
    return lambda Q: bradley_terry((Q[:, None] > Q).mean(axis=2))


def _each(fit: Callable[..., Scores], train: Sequence[Scored], **options: Any) -> Any:
    """A fit to each user."""
    models = [fit(one, **options) for one in train]
    return lambda asked: [scores(Q) for scores, Q in zip(models, asked, strict=True)]


LEARNERS = learners(
    GRIDS,
    {
        name: partial(_each, fit)
        for name, fit in (
            FITS | {"popularity": _by_popularity, "Bradley-Terry": _by_worths}
        ).items()
    },
)


def tasks(profile: str) -> list[str]:
    """Names such as "jester 20-39/0"; quick: the first block of the first group."""
    if profile == "quick":
        return [f"{DOMAINS[0]}/0"]
    return [f"{domain}/{k}" for k in range(_UNITS) for domain in DOMAINS]


def new_user() -> list[Problem]:
    """100,000 ratings of 100 jokes by users that are in no task: blocks of them, by the
    same protocol."""
    return [problem(f"{NEW}/{k}") for k in range(_UNITS)]


def problem(name: str) -> Problem:
    """The task of a name, which alone decides its numbers; blocks of a domain have the
    same references.

    If the ratings are not available, they are simulated.
    """
    return problem_or_simulation(name, _problem, _problem)


def _problem(name: str) -> Problem:
    domain, unit = name.split("/")
    seed = seed_of(name)
    start = _USERS * int(unit)
    users = _users(domain)[start : start + _USERS]
    train = []
    folds = ([], [])
    for k, task in enumerate(users):
        train.append(Scored(task.X_train, task.y_train, seed + k))
        for fold, (a, b) in zip(folds, halves(task.y_train, seed + k), strict=True):
            X = task.X_train
            y = task.y_train
            fold.append((Scored(X[a], y[a], seed + k), X[b], y[b]))
    whole = Split(
        train, [task.X_test for task in users], [task.y_test for task in users]
    )
    splits = [
        Split(*(list(part) for part in zip(*fold, strict=True))) for fold in folds
    ]
    facts = {
        "n_users": len(users),
        "n_items": sum(len(one.y) for one in train) / len(train),
        "n_features": train[0].X.shape[1],
        "n_comparisons": int(
            sum(np.greater.outer(one.y, one.y).sum() for one in train)
        ),
        "n_asked": sum(map(len, whole.test)) / len(train),
    }
    return Problem("ratings", domain, unit, whole, splits, judge, facts)


def halves(y: Floats, seed: int) -> list[tuple[Ids, Ids]]:
    """Halves of a user's items, each to learn from and to judge by: of two neighbours
    in order each has one.

    Which of the two is drawn, again where one half would be all ties. Of four scores or
    more, two at least have to differ from the most frequent one.

    Raises
    ------
    ValueError
        If no draw of a thousand has unequal scores in both halves.

    Examples
    --------
    >>> (a, b), _ = halves(np.array([5.0, 5.0, 1.0, 5.0, 2.0, 5.0]), seed=0)
    >>> sorted(a.tolist() + b.tolist()), len({2, 4} & set(a.tolist()))
    ([0, 1, 2, 3, 4, 5], 1)
    """
    rng = np.random.default_rng(seed)
    n = len(y)
    for _ in range(1000):
        order = np.lexsort([rng.random(n), y])
        part = np.zeros(n, dtype=bool)
        part[order[np.arange(0, n - 1, 2) + rng.integers(0, 2, n // 2)]] = True
        if min(len(set(y[part])), len(set(y[~part]))) > 1:
            a = np.flatnonzero(part)
            b = np.flatnonzero(~part)
            return [(a, b), (b, a)]
    raise ValueError(
        f"y is {short_repr(y)}; expected scores that differ within both halves of them"
    )


def judge(truth: Sequence[Floats], scores: Sequence[Floats]) -> dict[str, float]:
    """Disagreement errors, eq.

    1, in the mean of the users: without the pairs of equal ratings, and with.
    """
    both = [(y, ordered(f)) for y, f in zip(truth, scores, strict=True)]
    loss, printed = (
        float(np.mean([disagreement_error(y, f, ties=ties) for y, f in both]))
        for ties in ("drop", "keep")
    )
    return {"loss": loss, "with_ties": printed}


@cache
def _users(domain: str) -> list[UserTask]:
    """The users of all blocks of a domain, but those with a single rating that differs
    from the others."""
    data, group = domain.removeprefix(SIMULATED).split(" ")
    if domain.startswith(SIMULATED):
        ratings = simulated_ratings(seed_of(domain))
    elif domain == NEW:
        ratings = unseen()
    else:
        ratings = (
            load_jester().ratings[:_HALF]
            if data == "jester"
            else load_movielens().ratings
        )
    found = user_tasks(
        ratings, GROUPS[group], _USERS * _UNITS + _SPARE, seed_of(domain)
    )
    return [
        one
        for one in found
        if len(one.y_train) - np.unique_counts(one.y_train).counts.max() > 1
    ]


def simulated_ratings(
    seed: int, n_users: int = 900, n_items: int = 100
) -> sparse.csr_array:
    """Ratings by three tastes and noise; each user rates 20 to 79 items."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_users, 3)) @ rng.normal(size=(3, n_items))
    # no rating is 0
    values = np.rint(3 * (values + rng.normal(size=values.shape))) + 0.5
    rated = np.argsort(rng.random(values.shape)) < rng.integers(
        20, 80, size=(n_users, 1)
    )
    return sparse.csr_array(np.where(rated, values, 0.0))


def unseen() -> sparse.csr_array:
    """The ratings of the next users of Jester, as many users as have given 100,000
    ratings or just less."""
    ratings = load_jester().ratings[_HALF:]
    return ratings[: int(np.searchsorted(ratings.indptr, _RATINGS, side="right")) - 1]
