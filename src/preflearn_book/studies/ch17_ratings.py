"""The task family "ratings" of chapter 17: learn to rank a user's items from half of them.

The problems are those of section 6.1 of [Tsivtsivadze2013]_ (see `user_tasks`). The
features of an item are its ratings by reference users. A domain is a data set with a
group of reference users, and a unit is a block of users. Learners are fitted to each user
separately, but their configuration is chosen once for a block, by splitting the training
items of each user in half. These problems use only the first half of the Jester users;
the others are for `new_user`.

Semi-supervised pursuit is not included, because the training data contain rated items
only. For such data, it equals ranking pursuit.

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy import sparse

from preflearn.core.validation import Floats, Ids
from preflearn.datasets import load_jester, load_movielens
from preflearn.metrics import disagreement_error
from preflearn_book.studies.ch10_users import UserTask, user_tasks
from preflearn_book.studies.ch17_orders import Scored, merge_rounded, seed_of
from preflearn_book.studies.ch17_protocol import (
    SIMULATED,
    Problem,
    Split,
    problem_or_simulation,
)

# Numbers of ratings of reference users.
GROUPS = {"20-39": (20, 40), "40-59": (40, 60), "60-79": (60, 80), "new": (20, 80)}
DOMAINS = [
    f"{data} {group}" for data in ("jester", "movielens") for group in list(GROUPS)[:3]
]
NEW = "jester new"
_USERS_PER_BLOCK = 6
_BLOCKS = 6
# additional users, who replace users whose ratings in a fold might all be tied
_SPARE = 10
_JESTER_USERS = 2500  # users in the tasks; the others are for `new_user`
_NEW_RATINGS = 100_000


def tasks(profile: str) -> list[str]:
    """Names such as "jester 20-39/0". The quick task is the first block of the first group."""
    if profile == "quick":
        return [f"{DOMAINS[0]}/0"]
    return [f"{domain}/{k}" for k in range(_BLOCKS) for domain in DOMAINS]


def new_user() -> list[Problem]:
    """Blocks of users who are in no task, with 100,000 ratings of 100 jokes."""
    return [problem(f"{NEW}/{k}") for k in range(_BLOCKS)]


def problem(name: str) -> Problem:
    """The problem with a given name, or a simulated one if the data are not available.

    Blocks of a domain have the same reference users.
    """
    return problem_or_simulation(name, _problem, _problem)


def _problem(name: str) -> Problem:
    domain, unit = name.split("/")
    seed = seed_of(name)
    start = _USERS_PER_BLOCK * int(unit)
    users = _users(domain)[start : start + _USERS_PER_BLOCK]
    train = [
        Scored(user.X_train, user.y_train, seed + k) for k, user in enumerate(users)
    ]
    whole = Split(
        train, [user.X_test for user in users], [user.y_test for user in users]
    )
    folds = [Split([], [], []), Split([], [], [])]
    for user in train:
        for fold, (a, b) in zip(folds, halves(user.y, user.seed), strict=True):
            fold.train.append(Scored(user.X[a], user.y[a], user.seed))
            fold.test.append(user.X[b])
            fold.truth.append(user.y[b])
    facts = {"n_features": train[0].X.shape[1]}
    return Problem("ratings", domain, unit, whole, folds, judge, facts)


def halves(y: Floats, seed: int) -> list[tuple[Ids, Ids]]:
    """Split the items of a user in two halves, which are training and test items in turn.

    Items are paired in the order of their scores, and one item of each pair is drawn for
    the first half. If all scores of a half are equal, the halves are drawn again. There
    must be at least four scores, two of which differ from the most frequent score.

    Raises
    ------
    ValueError
        If none of a thousand draws has unequal scores in both halves.

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
    raise ValueError(f"y is {y}; expected scores that differ within both halves")


def judge(truth: Sequence[Floats], scores: Sequence[Floats]) -> dict[str, float]:
    """Mean disagreement errors of the users (eq. 1), without and with pairs of equal
    ratings."""
    users = [(y, merge_rounded(f)) for y, f in zip(truth, scores, strict=True)]
    loss = [disagreement_error(y, f, ties="drop") for y, f in users]
    with_ties = [disagreement_error(y, f, ties="keep") for y, f in users]
    return {"loss": float(np.mean(loss)), "with_ties": float(np.mean(with_ties))}


@cache
def _users(domain: str) -> list[UserTask]:
    """The users of all blocks of a domain.

    A user is left out if all ratings except one are equal.
    """
    data, group = domain.removeprefix(SIMULATED).split(" ")
    if domain.startswith(SIMULATED):
        ratings = simulated_ratings(seed_of(domain))
    elif domain == NEW:
        ratings = unseen()
    elif data == "jester":
        ratings = load_jester().ratings[:_JESTER_USERS]
    else:
        ratings = load_movielens().ratings
    n_users = _USERS_PER_BLOCK * _BLOCKS + _SPARE
    users = user_tasks(ratings, GROUPS[group], n_users, seed_of(domain))
    return [
        user
        for user in users
        if len(user.y_train) - np.unique_counts(user.y_train).counts.max() > 1
    ]


def simulated_ratings(seed: int) -> sparse.csr_array:
    """Ratings from three tastes and noise. Each of 900 users rates 20 to 79 items."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(900, 3)) @ rng.normal(size=(3, 100))
    # Adding 1/2 avoids ratings of 0, which would mean no rating.
    values = np.rint(3 * (values + rng.normal(size=values.shape))) + 0.5
    rated = np.argsort(rng.random(values.shape)) < rng.integers(20, 80, (900, 1))
    return sparse.csr_array(np.where(rated, values, 0.0))


def unseen() -> sparse.csr_array:
    """The ratings of the next users of Jester, at most 100,000 in total."""
    ratings = load_jester().ratings[_JESTER_USERS:]
    n_users = int(np.searchsorted(ratings.indptr, _NEW_RATINGS, side="right")) - 1
    return ratings[:n_users]
