"""The task family "queries" of chapter 17: learn to rank documents of new queries.

Learners are trained on relevance grades of documents of several queries. The data are the
search results of `load_lightgbm_ranking`: 251 queries of 1 to 27 documents. A domain is a
number of training queries. A unit is a sample of training and test queries; the samples
of a domain have no query in common. Folds split queries.

Some queries have higher grades than others, for reasons that their documents do not
show. With several queries, learners that compare documents within a query may therefore
differ from learners that regress grades.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.metrics import ndcg_score

from preflearn.core.validation import Floats, Ids
from preflearn.datasets import load_lightgbm_ranking
from preflearn.metrics import ranking_loss
from preflearn_book.studies.ch17_orders import Scored, merge_rounded, seed_of
from preflearn_book.studies.ch17_protocol import (
    SIMULATED,
    Problem,
    Split,
    problem_or_simulation,
)

N_FOLDS = 3
CUT_OFF = 10
"""Number of top documents for the second measure."""

SIZES = {"12 queries": (12, 12), "30 queries": (30, 18)}
"""Numbers of training and test queries by domain."""

_N_QUERIES = 240  # number of features that are used
_SEED = 17


def tasks(profile: str) -> list[str]:
    """Names such as "12 queries/0". Quick tasks are the first two of the first domain."""
    names = [
        f"{domain}/{unit}"
        for domain, size in SIZES.items()
        for unit in range(_N_QUERIES // sum(size))
    ]
    return names[:2] if profile == "quick" else names


class Queries(NamedTuple):
    """Documents with their grades and query numbers."""

    X: Floats
    y: Floats
    qid: Ids

    def take(self, numbers: Sequence[int] | Ids) -> Queries:
        """The documents of some queries. The queries are renumbered in the given order."""
        rows = [np.flatnonzero(self.qid == number) for number in numbers]
        qid = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        all_rows = np.concatenate(rows)
        return Queries(self.X[all_rows], self.y[all_rows], qid)


def problem(name: str) -> Problem:
    """The problem with a given name, or a simulated one if the data are not available."""
    return problem_or_simulation(name, _real_problem, _simulated)


def _real_problem(name: str) -> Problem:
    return make_problem(name, search_results())


@cache
def search_results() -> Queries:
    """All queries with at least two different grades, in random order."""
    data = load_lightgbm_ranking()
    found = Queries(data.X.toarray(), data.scores, data.qid)
    numbers = [q for q in np.unique(found.qid) if np.ptp(found.y[found.qid == q]) > 0]
    order = np.random.default_rng(_SEED).permutation(numbers)
    return found.take(order)


def _simulated(name: str) -> Problem:
    """Grades 0 to 4 from a noisy linear utility.

    Each query has an offset that no feature explains.
    """
    domain, unit = name.removeprefix(SIMULATED).split("/")
    n_queries = sum(SIZES[domain]) * (int(unit) + 1)
    rng = np.random.default_rng(seed_of(name))
    qid = np.repeat(np.arange(n_queries), rng.integers(5, 25, n_queries))
    X = rng.uniform(size=(len(qid), 20))
    utility = X @ np.linspace(0, 2, 20) + rng.normal(size=n_queries)[qid]
    utility += 0.5 * rng.normal(size=len(qid))
    y = np.searchsorted(np.quantile(utility, [0.3, 0.6, 0.9, 0.97]), utility)
    return make_problem(name, Queries(X, y.astype(np.float64), qid))


def make_problem(name: str, data: Queries) -> Problem:
    """The problem of a domain and a unit, given queries in random order."""
    domain, unit = name.split("/")
    n_train, n_test = SIZES[domain.removeprefix(SIMULATED)]
    start = (n_train + n_test) * int(unit)
    seed = seed_of(name)
    train = np.arange(start, start + n_train)
    whole = split(
        data, train, np.arange(start + n_train, start + n_train + n_test), seed
    )
    folds = []
    for part in np.array_split(np.random.default_rng(seed).permutation(train), N_FOLDS):
        folds.append(split(data, np.setdiff1d(train, part), part, seed))
    n_pairs = len(whole.train.pairs()[1])
    facts = {"n_pairs": n_pairs, "n_features": data.X.shape[1]}
    return Problem("queries", domain, unit, whole, folds, judge, facts)


def split(data: Queries, train: Ids, test: Ids, seed: int) -> Split:
    """Training documents of some queries, and test documents of others."""
    known = data.take(train)
    asked = data.take(test)
    scored = Scored(known.X, known.y, seed, known.qid)
    return Split(scored, asked.X, (asked.y, asked.qid))


def judge(truth: tuple[Floats, Ids], scores: Floats) -> dict[str, float]:
    """The fraction of wrong pairs and the normalized discounted cumulative gain.

    Both are means over queries. A pair with tied scores counts half. The gain refers to
    the first ten documents; the gain of a document with grade g is 2^g - 1.
    """
    y, qid = truth
    forecast = merge_rounded(scores)
    gains = [
        ndcg_score([2 ** y[rows] - 1], [forecast[rows]], k=CUT_OFF)
        for rows in (qid == number for number in np.unique(qid))
        if np.ptp(y[rows]) > 0
    ]
    return {"loss": ranking_loss(-y, -forecast, qid), "ndcg": float(np.mean(gains))}
