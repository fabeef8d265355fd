"""One small ranking problem per user: the protocol of section 6.1 of [Tsivtsivadze2013]_.

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from preflearn.core.validation import Floats, Ids, require


class Counts(NamedTuple):
    """Numbers of users that were available for the tasks.

    Attributes
    ----------
    group : int
        Number of users whose number of ratings is within the group.
    references : int
        Number of users of the group whose ratings are features. If the group has fewer
        than `n_reference` users, it is all of them.
    candidates : int
        Number of other users with `least` to `most` ratings.
    passed_over : int
        Number of drawn candidates whose ratings of the training or test items are all
        equal.
    """

    group: int
    references: int
    candidates: int
    passed_over: int


class UserTask(NamedTuple):
    """Items that a user has rated, with the ratings as scores.

    Attributes
    ----------
    X_train, X_test, X_hidden : ndarray of shape (n, p), (t, p), (h, p)
        Ratings of the items by the p reference users.
    y_train, y_test, y_hidden : ndarray of shape (n,), (t,), (h,)
        The ratings of the user. The ratings of hidden items are not used for learning.
    user : int
        Row of the ratings.
    references : ndarray of int, shape (p,)
        Rows of the reference users, which all tasks of one call share.
    counts : Counts
    """

    X_train: Floats
    y_train: Floats
    X_test: Floats
    y_test: Floats
    X_hidden: Floats
    y_hidden: Floats
    user: int
    references: Ids
    counts: Counts


def user_tasks(
    ratings: sparse.csr_array,
    group: tuple[int, int],
    n_tasks: int,
    rng: np.random.Generator | int,
    *,
    n_reference: int = 300,
    least: int = 50,
    most: int = 300,
    hidden: float = 0.0,
) -> list[UserTask]:
    """Draw users. The task is to rank half of a user's items, given the other half.

    Reference users are drawn from the users with low <= number of ratings < high. The
    features of an item are its ratings by the reference users. A missing rating is
    replaced by the median rating of the reference user. Test users are drawn from all
    other users with `least` to `most` ratings. A random half of a user's items is used
    for training (the larger half of an odd number), and the rest for testing.

    Parameters
    ----------
    ratings : csr_array of shape (users, items)
        Ratings. Stored entries, including stored zeros, are ratings.
    group : tuple of int
        (low, high) with low included and high excluded. Low is at least 1, because a
        user without ratings has no median.
    n_tasks : int
    rng : numpy Generator or int
        Source of randomness, or its seed. Users and halves are the same for each
        value of `hidden`, except for users who are passed over.
    n_reference : int
        Number of reference users. If the group is smaller, all its users are reference
        users (see `Counts`). In Jester, 350, 1191, and 1681 of 5000 users have 20 to 39,
        40 to 59, and 60 to 79 ratings. In MovieLens, it is 289, 143, and 86 of 943 users.
    least, most : int
    hidden : float
        Fraction of the training items whose scores are hidden; below 1. It is 1/2 in
        Tables 2 and 4.

    Returns
    -------
    list of UserTask

    Raises
    ------
    ValueError
        If there are too few test users.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = rng.integers(-9, 9, (40, 30)) * (rng.random((40, 30)) < np.linspace(0.3, 1, 40)[:, None])
    >>> tasks = user_tasks(sparse.csr_array(table), (10, 20), 3, rng, n_reference=8, least=20)
    >>> [task.X_train.shape for task in tasks]
    [(11, 8), (15, 8), (13, 8)]
    """
    n_ratings = np.diff(ratings.indptr)
    rng = np.random.default_rng(rng)
    inside = np.flatnonzero((group[0] <= n_ratings) & (n_ratings < group[1]))
    references = np.sort(rng.permutation(inside)[:n_reference])
    usable = (least <= n_ratings) & (n_ratings <= most)
    usable[references] = False
    features = _features(ratings, references)
    drawn = []
    passed = 0
    candidates = rng.permutation(np.flatnonzero(usable))
    for user in candidates.tolist():
        if len(drawn) == n_tasks:
            break
        parts = _halves(ratings, user, hidden, rng)
        if all(np.ptp(scores) > 0 for _, scores in parts[:2]):
            drawn.append((user, parts))
        else:
            passed += 1
    require(
        len(drawn) == n_tasks,
        n_tasks,
        "n_tasks",
        f"at most {len(drawn)}: {len(candidates)} other users have {least} to {most} "
        f"ratings, and {passed} of them are left out, because all ratings in one half are equal",
    )
    counts = Counts(len(inside), len(references), len(candidates), passed)
    tasks = []
    for user, parts in drawn:
        (train, y_train), (test, y_test), (out, y_out) = parts
        scored = features[train], y_train, features[test], y_test, features[out], y_out
        tasks.append(UserTask(*scored, user, references, counts))
    return tasks


def _halves(
    ratings: sparse.csr_array, user: int, hidden: float, rng: np.random.Generator
) -> list[tuple[Ids, Floats]]:
    """Training, test, and hidden items with their ratings."""
    row = slice(ratings.indptr[user], ratings.indptr[user + 1])
    items = ratings.indices[row].astype(np.int64)
    scores = ratings.data[row].astype(np.float64)
    order = rng.permutation(len(items))
    half = (len(items) + 1) // 2
    known = half - int(hidden * half)
    parts = order[:known], order[half:], order[known:half]
    return [(items[ids], scores[ids]) for ids in parts]


def _features(ratings: sparse.csr_array, references: Ids) -> Floats:
    """Ratings of each item by the reference users, shape (items, p)."""
    n_items = int(ratings.shape[1])  # pyright: ignore[reportOptionalSubscript]  (a matrix)
    values = np.empty((n_items, len(references)))
    for column, user in enumerate(references.tolist()):
        row = slice(ratings.indptr[user], ratings.indptr[user + 1])
        values[:, column] = np.median(ratings.data[row])
        values[ratings.indices[row], column] = ratings.data[row]
    return values
