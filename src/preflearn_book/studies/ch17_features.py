"""The task family "features" of chapter 17: pairs of items with features, with ties.

Features are scaled by the training items. Folds never split the pairs of a user or the
matches of a day. No match is forecast from later matches.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from preflearn.core import DateSplit, ItemKFold, OnItems, QueryKFold
from preflearn.core.validation import Floats
from preflearn.datasets import load_football, load_sushi, simulate_norm_pairs
from preflearn.matches import Matches
from preflearn.metrics import comparison_loss, log_loss, threshold
from preflearn.pairs import Pairs
from preflearn.ratings import Elo, Glicko
from preflearn_book.studies.ch07_histories import match_features
from preflearn_book.studies.ch17_protocol import Problem, Split, problem_or_simulation
from preflearn_book.studies.ch17_queries import search_results

N_FOLDS = 3
N_PAIRS = 300  # training pairs
N_ASKED = 1000  # test pairs
DRAWS = 5
TIES = 0.3  # fraction of the pairs
_NORMS: dict[str, Any] = {"norm 1": "l1", "norm 2": "l2", "norm inf": "linf"}
_YEARS = ("1998", "2003", "2008", "2013", "2018")  # first year of the test matches
_RECENT = 10  # matches per team
_PAIRS_PER_USER = 5  # five disjoint pairs of ten ratings


def judge(truth: ArrayLike, forecast: NDArray) -> dict[str, float]:
    """The zero-one loss. For probabilities (m, 3), also log loss and overconfidence.

    The overconfidence is the mean of the largest probability minus the accuracy. It is 0
    for calibrated forecasts.

    Examples
    --------
    >>> judge([1, 0], [1, 1]), judge([1], np.array([[0.25, 0.25, 0.5]]))["overconfidence"]
    ({'loss': 0.5}, -0.5)
    """
    if np.ndim(forecast) == 1:
        return {"loss": comparison_loss(truth, forecast)}
    loss = comparison_loss(truth, forecast.argmax(axis=1) - 1)
    confidence = float(forecast.max(axis=1).mean())
    return {
        "loss": loss,
        "log_loss": log_loss(truth, forecast),
        "overconfidence": confidence - (1 - loss),
    }


def scaled_split(pairs: Pairs, y: NDArray, train: NDArray, test: NDArray) -> Split:
    """Training and test pairs, with features that are scaled by the training items."""
    scaler = OnItems(StandardScaler()).fit(pairs[train])
    return Split(
        (scaler.transform(pairs[train]), y[train]),
        scaler.transform(pairs[test]),
        y[test],
    )


def make_problem(
    name: str, family: str, pairs: Pairs, y: NDArray, n: int, folds: Iterable
) -> Problem:
    """The problem with the first n pairs for training and the others for testing.

    Parameters
    ----------
    name : str
        Domain and unit, such as "sushi/0".
    family : str
    pairs : Pairs
    y : ndarray
        Labels.
    n : int
    folds : iterable of (ndarray, ndarray)
        Row numbers of training and validation pairs among the first n.
    """
    domain, unit = name.split("/")
    facts = {"n_pairs": n, "n_features": pairs.shape[2]}
    whole = scaled_split(pairs, y, np.arange(n), np.arange(n, len(y)))
    splits = [scaled_split(pairs, y, *fold) for fold in folds]
    return Problem(family, domain, unit, whole, splits, judge, facts)


def tasks(profile: str) -> list[str]:
    """Names of the problems in the form domain/unit."""
    if profile == "quick":
        return ["norm 1/0", "norm 2/0", "football/2018"]
    names = [
        f"{domain}/{draw}"
        for domain in (*_NORMS, "sushi", "search")
        for draw in range(DRAWS)
    ]
    return names + [f"football/{year}" for year in _YEARS]


def problem(name: str) -> Problem:
    """The problem with a given name.

    Simulations and sushi data are as in section 4 of [Venuto2017]_. The last section of
    the paper suggests data from search engines. If the data on sushi, search results, or
    football are not available, the problem is another simulation with the norm 2.
    """
    return problem_or_simulation(name, _real_problem, _simulated)


def _real_problem(name: str) -> Problem:
    domain, unit = name.split("/")
    if domain == "football":
        return _football(name)
    if domain == "sushi":
        return _sushi(name)
    if domain == "search":
        return _search(name)
    rng = np.random.default_rng([17, list(_NORMS).index(domain), int(unit)])
    return _norm_pairs(name, _NORMS[domain], rng)


def _simulated(name: str) -> Problem:
    return _norm_pairs(name, "l2", np.random.default_rng([17, *name.encode()]))


def _norm_pairs(name: str, norm: Any, rng: np.random.Generator) -> Problem:
    pairs, y, _ = simulate_norm_pairs(norm, N_PAIRS + N_ASKED, TIES, rng)
    # In the simulation, the first item is better more often. This must not be learned.
    swapped = rng.random(len(y)) < 0.5
    index = np.where(swapped[:, None], pairs.index[:, ::-1], pairs.index)
    pairs = Pairs(pairs.items, index)
    y = np.where(swapped, -y, y)
    # Each pair is a group, since no two pairs share an item.
    folds = QueryKFold(N_FOLDS).split(pairs[:N_PAIRS], groups=np.arange(N_PAIRS))
    return make_problem(name, "features", pairs, y, N_PAIRS, folds)


def _sushi(name: str) -> Problem:
    """Random pairs of ratings. Users are in one draw only, and ratings in one pair."""
    data = load_sushi()
    rng = np.random.default_rng(17)
    own = data.user.reshape(-1, 2 * _PAIRS_PER_USER)
    rows = rng.permuted(np.arange(own.size).reshape(own.shape), axis=1)
    rows = rows[rng.permutation(len(own))]
    n_users = (N_PAIRS + N_ASKED) // _PAIRS_PER_USER
    start = n_users * int(name.split("/")[1])
    first, second = rows[start : start + n_users].reshape(-1, 2).T
    pairs = Pairs.from_arrays(data.pairs.items[first], data.pairs.items[second])
    y = np.sign(data.scores[first] - data.scores[second]).astype(np.int8)
    folds = QueryKFold(N_FOLDS).split(
        pairs[:N_PAIRS], groups=data.user[first[:N_PAIRS]]
    )
    return make_problem(name, "features", pairs, y, N_PAIRS, folds)


def _search(name: str) -> Problem:
    """Pairs of documents of one query, tied if their grades are equal.

    Draws have no query in common.
    """
    data = search_results()
    draw = int(name.split("/")[1])
    rng = np.random.default_rng([17, 4, draw])
    n_queries = (int(data.qid[-1]) + 1) // DRAWS
    first_query = n_queries * draw
    first_asked = first_query + 2 * n_queries // 5
    known = pairs_of_queries(data.qid, first_query, first_asked, N_PAIRS, rng)
    asked = pairs_of_queries(
        data.qid, first_asked, first_query + n_queries, N_ASKED, rng
    )
    first, second = np.vstack([known, asked]).T
    pairs = Pairs.from_arrays(data.X[first], data.X[second])
    y = np.sign(data.y[first] - data.y[second]).astype(np.int8)
    groups = data.qid[first[:N_PAIRS]]
    folds = QueryKFold(N_FOLDS).split(pairs[:N_PAIRS], groups=groups)
    return make_problem(name, "features", pairs, y, N_PAIRS, folds)


def pairs_of_queries(
    qid: NDArray, start: int, stop: int, n: int, rng: np.random.Generator
) -> NDArray:
    """n different pairs of items of the same query, in random order and direction.

    The queries have the numbers from start to stop - 1.
    """
    rows = np.flatnonzero((start <= qid) & (qid < stop))
    i, j = np.triu_indices(len(rows), 1)
    candidates = np.stack([rows[i], rows[j]], axis=1)
    candidates = candidates[qid[rows[i]] == qid[rows[j]]]
    return rng.permuted(rng.permutation(candidates)[:n], axis=1)


def _football(name: str) -> Problem:
    """The last matches before a year, and the following matches."""
    matches, X = _known_before()
    cut = int(np.searchsorted(matches["time"], np.datetime64(name.split("/")[1])))
    rows = np.arange(cut - N_PAIRS, cut + N_ASKED)
    pairs = Pairs.from_arrays(X[rows, 0], X[rows, 1])
    y = matches["outcome"].to_numpy()[rows]
    dates = matches["time"].to_numpy()[rows[:N_PAIRS]]
    folds = DateSplit(N_FOLDS).split(pairs[:N_PAIRS], groups=dates)
    return make_problem(name, "features", pairs, y, N_PAIRS, folds)


@cache
def _known_before() -> tuple[pd.DataFrame, Floats]:
    """Matches of teams with at least ten earlier matches, and features (N, 2, p).

    Features are computed from earlier days.
    """
    frame = load_football().matches
    matches, y = Matches.from_frame(frame, advantage="advantage")
    elo = Elo(k=30.0, advantage=100.0).fit(matches, y).before_
    X, names = match_features(
        frame, elo, Glicko().fit(matches, y).before_, past="times", elite=1e9
    )
    X = np.concatenate([X, recent_results(frame)], axis=2)
    X = np.delete(X, names.index("ever elite"), axis=2)
    rows = (X[:, :, names.index("games")] >= _RECENT).all(axis=1)
    return frame.loc[rows], X[rows]


def recent_results(frame: pd.DataFrame) -> Floats:
    """Mean points, goals for, and goals against in the last ten matches of each team.

    Only matches of earlier days count. The shape is (N, 2, 3). Points are 1, 0, and -1.
    If a team has no earlier matches, all its means are 0.

    Examples
    --------
    >>> frame = pd.DataFrame({"first": ["a", "b"], "second": ["b", "a"], "time": [0, 1],
    ...                       "outcome": [1, 0], "first_score": [3, 1], "second_score": [2, 1]})
    >>> recent_results(frame)[1].tolist()
    [[-1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]
    """
    own = frame[["outcome", "first_score", "second_score"]].to_numpy(dtype=np.float64)
    both = np.stack([own, own[:, [0, 2, 1]] * [-1, 1, 1]], axis=1).reshape(-1, 3)
    teams = frame[["first", "second"]].to_numpy().ravel()
    days = np.repeat(frame["time"].to_numpy(), 2)
    means = (
        pd.DataFrame(both)
        .groupby(teams)
        .transform(lambda column: column.shift().rolling(_RECENT, min_periods=1).mean())
    )
    # Features at the first match of a day do not contain results of that day.
    of_day = means.fillna(0.0).groupby([teams, days]).transform("first")
    return of_day.to_numpy().reshape(-1, 2, 3)


def new_user() -> list[Problem]:
    """ "I have 300 pairs and 20 features": pairs of patients from two other data sets.

    In the diabetes data, the better item is the patient whose disease progresses further
    in a year. The features are ten measurements and ten products of them, and the
    smallest differences are ties. In the breast cancer data, it is the patient with
    cancer. The features are the means and the worst values of ten cell measurements, and
    two patients with the same diagnosis are tied.
    """
    illness, progression = load_diabetes(return_X_y=True)
    cells, healthy = load_breast_cancer(return_X_y=True)
    products = PolynomialFeatures(interaction_only=True, include_bias=False)
    means_and_worst = np.delete(cells, np.arange(10, 20), axis=1)
    data = {
        "diabetes": (products.fit_transform(illness)[:, :20], progression),
        "breast cancer": (means_and_worst, 1.0 - healthy),
    }
    return [
        _patients(f"{name}/{draw}", *table)
        for name, table in data.items()
        for draw in range(DRAWS)
    ]


def _patients(name: str, X: Floats, scores: Floats) -> Problem:
    rng = np.random.default_rng([17, 3, len(X), int(name.split("/")[1])])
    known, others = np.array_split(rng.permutation(len(X)), 2)
    index = np.vstack(
        [drawn_pairs(rng, known, N_PAIRS), drawn_pairs(rng, others, N_ASKED)]
    )
    gap = np.subtract(*scores[index].T)
    tau = 0.0
    if (gap == 0).mean() <= TIES:
        tau = float(np.quantile(np.abs(gap), TIES))
    pairs = Pairs(X, index)
    folds = ItemKFold(N_FOLDS, shuffle=True, random_state=0).split(pairs[:N_PAIRS])
    return make_problem(name, "new user", pairs, threshold(gap, tau), N_PAIRS, folds)


def drawn_pairs(rng: np.random.Generator, items: NDArray, n: int) -> NDArray:
    """n pairs of different items."""
    first = rng.integers(len(items), size=n)
    step = rng.integers(1, len(items), size=n)
    return items[np.stack([first, (first + step) % len(items)], axis=1)]
