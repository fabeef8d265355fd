"""Chapter 17, arena "features": pairs with ties of items that have features, and who
learns from them.

Features are scaled by the items learned from. Folds never part what belongs together:
the pairs of a user, the matches of a day; and no match is learned from what came later.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

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
from preflearn_book.studies.ch07_histories import FEATURES, match_features
from preflearn_book.studies.ch17_pairs import LEARNERS
from preflearn_book.studies.ch17_protocol import Problem, Split, problem_or_simulation

__all__ = ["LEARNERS", "judge", "new_user", "problem", "tasks"]

N_FOLDS = 3
# to learn from, and to forecast
N_PAIRS = 300
N_ASKED = 1000
DRAWS = 5
TIES = 0.3
_NORMS = {"norm 1": 1, "norm 2": 2, "norm inf": np.inf}
# what is forecast begins with the year
_YEARS = ("1998", "2003", "2008", "2013", "2018")
_RECENT = 10  # matches of a team
_OF_A_USER = 5  # pairs: ten ratings, two at a time


def judge(truth: ArrayLike, forecast: ArrayLike) -> dict[str, float]:
    """The zero-one loss of labels; of probabilities (m, 3) also the logarithmic one,
    and the overconfidence.

    The overconfidence is the mean of the largest probability less the accuracy: 0 where
    a learner is right as often as it says.

    Examples
    --------
    >>> judge([1, 0], [1, 1]), judge([1], [[0.25, 0.25, 0.5]])["overconfidence"]
    ({'loss': 0.5}, -0.5)
    """
    forecast = np.asarray(forecast)
    if forecast.ndim == 1:
        return {"loss": comparison_loss(truth, forecast)}
    loss = comparison_loss(truth, forecast.argmax(axis=1) - 1)
    confidence = float(forecast.max(axis=1).mean())
    return {
        "loss": loss,
        "log_loss": log_loss(truth, forecast),
        "overconfidence": confidence - (1 - loss),
    }


def parted(pairs: Pairs, y: NDArray, learn: NDArray, ask: NDArray) -> Split:
    """Pairs to learn from and pairs to forecast, with features scaled by the items
    learned from."""
    scaled = OnItems(StandardScaler()).fit(pairs[learn])
    return Split(
        (scaled.transform(pairs[learn]), y[learn]), scaled.transform(pairs[ask]), y[ask]
    )


def posed(
    name: str,
    arena: str,
    pairs: Pairs,
    y: NDArray,
    n: int,
    folds: Iterable,
    facts: Mapping[str, float] = {},
) -> Problem:
    """The problem whose first n pairs are learned from, by these folds of them, and the
    rest forecast."""
    domain, unit = name.split("/")
    facts = {
        "n_pairs": n,
        "n_features": pairs.shape[2],
        "n_items": len(np.unique(pairs.index[:n])),
        "tie_share": round(float(np.mean(y[:n] == 0)), 3),
    } | dict(facts)
    whole = parted(pairs, y, np.arange(n), np.arange(n, len(y)))
    return Problem(
        arena,
        domain,
        unit,
        whole,
        [parted(pairs, y, *fold) for fold in folds],
        judge,
        facts,
    )


def tasks(profile: str) -> list[str]:
    """Names of the problems, domain/unit."""
    draws = [
        f"{domain}/{draw}" for domain in (*_NORMS, "sushi") for draw in range(DRAWS)
    ]
    every = draws + [f"football/{year}" for year in _YEARS]
    return ["norm 1/0", "norm 2/0", "football/2018"] if profile == "quick" else every


def problem(name: str) -> Problem:
    """A problem by its name; simulations are those of section 4.1 of [Venuto2017]_,
    sushi those of 4.2.

    If sushi or football are not available, the problem is one more simulation with the
    norm 2.
    """
    return problem_or_simulation(name, _problem, _simulated)


def _problem(name: str) -> Problem:
    domain, unit = name.split("/")
    if domain == "football":
        return _football(name)
    if domain == "sushi":
        return _sushi(name)
    rng = np.random.default_rng([17, list(_NORMS).index(domain), int(unit)])
    return _norm_pairs(name, _NORMS[domain], rng)


def _simulated(name: str) -> Problem:
    return _norm_pairs(name, 2, np.random.default_rng([17, *name.encode()]))


def _norm_pairs(name: str, norm: float, rng: np.random.Generator) -> Problem:
    pairs, y, _ = simulate_norm_pairs(norm, N_PAIRS + N_ASKED, TIES, rng)
    # by design the first is better more often, which is no lesson
    turned = rng.random(len(y)) < 0.5
    index = np.where(turned[:, None], pairs.index[:, ::-1], pairs.index)
    pairs = Pairs(pairs.items, index)
    y = np.where(turned, -y, y)
    # no two share an item
    folds = QueryKFold(N_FOLDS).split(pairs[:N_PAIRS], groups=np.arange(N_PAIRS))
    return posed(name, "features", pairs, y, N_PAIRS, folds)


def _sushi(name: str) -> Problem:
    """Ratings of other users, each rating in one pair, drawn at random: not by the
    order of the file."""
    data = load_sushi()
    rng = np.random.default_rng(17)
    own = data.user.reshape(-1, 2 * _OF_A_USER)
    rows = rng.permuted(np.arange(own.size).reshape(own.shape), axis=1)[
        rng.permutation(len(own))
    ]
    n_users = (N_PAIRS + N_ASKED) // _OF_A_USER
    start = n_users * int(name.split("/")[1])  # no user is in two draws
    first, second = rows[start : start + n_users].reshape(-1, 2).T
    pairs = Pairs.from_arrays(data.pairs.items[first], data.pairs.items[second])
    y = np.sign(data.scores[first] - data.scores[second]).astype(np.int8)
    folds = QueryKFold(N_FOLDS).split(
        pairs[:N_PAIRS], groups=data.user[first[:N_PAIRS]]
    )
    return posed(name, "features", pairs, y, N_PAIRS, folds)


def _football(name: str) -> Problem:
    """The last matches before a year, and those that follow."""
    matches, X = _known_before()
    cut = int(np.searchsorted(matches["time"], np.datetime64(name.split("/")[1])))
    rows = np.arange(cut - N_PAIRS, cut + N_ASKED)
    pairs = Pairs.from_arrays(X[rows, 0], X[rows, 1])
    y = matches["outcome"].to_numpy()[rows]
    dates = matches["time"].to_numpy()[rows[:N_PAIRS]]
    folds = DateSplit(N_FOLDS).split(pairs[:N_PAIRS], groups=dates)
    return posed(name, "features", pairs, y, N_PAIRS, folds)


@cache
def _known_before() -> tuple[pd.DataFrame, Floats]:
    """Matches between teams that had ten before, and features of both from earlier days
    (N, 2, p)."""
    frame = load_football().matches
    matches, y = Matches.from_frame(frame, advantage="advantage")
    elo = Elo(k=30.0, advantage=100.0).fit(matches, y).before_
    X, names = match_features(
        frame, elo, Glicko().fit(matches, y).before_, past="times", elite=1e9
    )
    X = np.concatenate([X, recent_results(frame)], axis=2)
    X = np.delete(X, names.index("ever elite"), axis=2)
    rows = (X[:, :, FEATURES.index("games")] >= _RECENT).all(axis=1)
    return frame.loc[rows], X[rows]


def recent_results(frame: pd.DataFrame, recent: int = _RECENT) -> Floats:
    """Mean points, goals for and goals against in a team's last matches of earlier
    days, shape (N, 2, 3).

    Points are 1, 0 and -1; of a team without earlier matches all are 0.

    Examples
    --------
    >>> frame = pd.DataFrame({"first": ["a", "b"], "second": ["b", "a"], "time": [0, 1],
    ...                       "outcome": [1, 0], "first_score": [3, 1], "second_score": [2, 1]})
    >>> recent_results(frame)[1].tolist()
    [[-1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]
    """
    own = frame[["outcome", "first_score", "second_score"]].to_numpy(dtype=np.float64)
    both = np.stack([own, own[:, [0, 2, 1]] * [-1, 1, 1]], axis=1).reshape(-1, 3)
    team = frame[["first", "second"]].to_numpy().ravel()
    day = np.repeat(frame["time"].to_numpy(), 2)
    table = pd.DataFrame(both)
    before = table.groupby(team).transform(
        lambda some: some.shift().rolling(recent, min_periods=1).mean()
    )
    first = before.fillna(0.0).groupby([team, day]).transform("first")
    return first.to_numpy().reshape(-1, 2, 3)


def new_user() -> list[Problem]:
    """ "I have 300 pairs and 20 features": patients, in no arena, and other patients to
    compare.

    Diabetes: whose disease goes further in a year, by ten measurements and ten products
    of them; a tie where the difference is among the smallest. Breast cancer: who is
    ill, by means and worst values of ten measures of cells; two of one kind tie.
    """
    illness, ill = load_diabetes(return_X_y=True)
    cells, healthy = load_breast_cancer(return_X_y=True)
    products = PolynomialFeatures(
        interaction_only=True, include_bias=False
    ).fit_transform(illness)
    measures = np.hstack([cells[:, :10], cells[:, 20:]])  # means and worst
    data = {
        "diabetes": (products[:, :20], ill),
        "breast cancer": (measures, 1.0 - healthy),
    }
    return [
        _patients(f"{name}/{draw}", *data[name])
        for name in data
        for draw in range(DRAWS)
    ]


def _patients(name: str, X: Floats, scores: Floats) -> Problem:
    rng = np.random.default_rng([17, 3, len(X), int(name.split("/")[1])])
    half = np.array_split(rng.permutation(len(X)), 2)
    index = np.vstack(
        [
            drawn_pairs(rng, part, n)
            for part, n in zip(half, (N_PAIRS, N_ASKED), strict=True)
        ]
    )
    gap = np.subtract(*scores[index].T)
    y = threshold(
        gap, 0.0 if (gap == 0).mean() > TIES else float(np.quantile(np.abs(gap), TIES))
    )
    pairs = Pairs(X, index)
    folds = ItemKFold(N_FOLDS, shuffle=True, random_state=0).split(pairs[:N_PAIRS])
    return posed(name, "new user", pairs, y, N_PAIRS, folds)


def drawn_pairs(rng: np.random.Generator, items: NDArray, n: int) -> NDArray:
    """n pairs of different items."""
    first = rng.integers(len(items), size=n)
    step = rng.integers(1, len(items), size=n)
    return items[np.stack([first, (first + step) % len(items)], axis=1)]
