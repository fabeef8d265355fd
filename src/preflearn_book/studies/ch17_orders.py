"""What the arenas "objects" and "ratings" of chapter 17 share: learners of an order
from items with scores.

A learner is fitted to items and their scores, of which only the order counts, and
becomes a function that gives scores of other items; larger is better. Features are
centred on the items to learn from and divided by one number for all of them, the same
for all learners but those by analogy (which need [0, 1]), so that one grid suits sets
of any unit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np
from lightgbm import LGBMRegressor
from scipy.stats import norm, rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression

from preflearn.core.validation import Floats
from preflearn.metrics import ranking_loss
from preflearn.pairs import Pairs
from preflearn.pursuit import RLS, RankingPursuit, RankRLS
from preflearn.ranking import ExpectedRankRegression, RankNet
from preflearn.ranking.aggregation import merged
from preflearn.svm import SVMRank
from preflearn_book.studies.ch17_protocol import (
    CONSTANT,
    QUIET_TREES,
    Learner,
    configurations,
)

# of the range and the size of forecasts: what is closer is tied by rounding
_ROUNDING = 1e-9
_LEVEL = 1e-13
_STEPS = 500  # of a network, however few the pairs, but no less than five passes
_MOST = 150  # features of a kernel: all, as no set has more items to learn from

Grids = Mapping[str, Mapping[str, Any]]
Scores = Callable[[Floats], Floats]


class Scored(NamedTuple):
    """Items to learn from.

    Attributes
    ----------
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,)
        Scores; larger is better.
    seed : int
        Of learners that draw.
    """

    X: Floats
    y: Floats
    seed: int


def seed_of(name: str) -> int:
    """The seed of all draws of a task.

    Examples
    --------
    >>> seed_of("D1-D2/0") == seed_of("D1-D2/1")
    False
    """
    return int(np.random.default_rng([17, *name.encode()]).integers(2**31))


def ordered(scores: Floats) -> Floats:
    """Forecasts, those equal that only rounding tells apart.

    Examples
    --------
    >>> ordered(np.array([0.1 + 0.2, 0.3, 1.0])).tolist()
    [0.3, 0.3, 1.0]
    """
    return merged(
        scores,
        max(_ROUNDING * float(np.ptp(scores)), _LEVEL * float(np.abs(scores).max())),
    )


def _asked(scores: Callable[..., Any], Q: Any) -> Any:
    return scores(Q)


def learners(
    grids: Grids, fits: Mapping[str, Callable[..., Scores]]
) -> tuple[Learner, ...]:
    """Learners that choose among numbers of a grid, and those without one, which have
    nothing to choose.

    Parameters
    ----------
    grids : mapping of str to (mapping of str to sequence of numbers)
        See `configurations`.
    fits : mapping of str to callable
        From Scored, and numbers by name, to a function.
    """
    tried = {
        name: configurations(grids[name]) if name in grids else ({},) for name in fits
    }
    return tuple(
        Learner(name, fit, _asked, tried[name], ENDS.get(name, {}))
        for name, fit in fits.items()
    )


def _levelled(fit: Callable[..., Scores]) -> Callable[..., Scores]:
    """A fit to features and scores with mean 0, and features with mean square 1 over
    all of them."""

    @wraps(fit)
    def run(train: Scored, **options: Any) -> Scores:
        centre = train.X.mean(axis=0)
        unit = float(np.sqrt(np.mean((train.X - centre) ** 2))) or 1.0
        level = Scored((train.X - centre) / unit, train.y - train.y.mean(), train.seed)
        scores = fit(level, **options)
        return lambda Q: scores((Q - centre) / unit)

    return run


# ---- Learners


@_levelled
def _by_squares(train: Scored, alpha: float, width: float, machine: Any) -> Scores:
    return (
        machine(alpha, "rbf", gamma=width / train.X.shape[1])
        .fit(train.X, train.y)
        .rank_function
    )


@_levelled
def _by_pursuit(train: Scored, n_basis: int, width: float, mix: float = 0.0) -> Scores:
    machine = RankingPursuit(n_basis, "rbf", gamma=width / train.X.shape[1], mix=mix)
    return machine.fit(train.X, train.y).rank_function


@_levelled
def _by_svm(train: Scored, C: float, width: float | None = None) -> Scores:
    machine = (
        SVMRank(C, "linear")
        if width is None
        else SVMRank(C, "rbf", gamma=width / train.X.shape[1])
    )
    return machine.fit(train.X, train.y).rank_function


@_levelled
def _by_logistic(train: Scored, C: float, width: float | None = None) -> Scores:
    """Logistic regression on the differences of all pairs, every other one turned,
    without a constant."""
    kernel = (
        {"kernel": "linear"} if width is None else {"gamma": width / train.X.shape[1]}
    )
    most = min(len(train.y), _MOST, *(train.X.shape if width is None else ()))
    features = Nystroem(**kernel, n_components=most, random_state=0)  # type: ignore[arg-type]
    pairs, labels = Pairs.from_scores(features.fit_transform(train.X), train.y)
    turned = np.where(np.arange(len(labels)) % 2, -1, 1)
    machine = LogisticRegression(
        C=C / len(labels), fit_intercept=False, solver="newton-cholesky"
    )
    machine.fit(turned[:, None] * pairs.differences(), turned * labels)
    return lambda Q: features.transform(Q) @ machine.coef_[0]


@_levelled
def _by_err(train: Scored) -> Scores:
    return ExpectedRankRegression().fit(train.X, train.y).rank_function


@_levelled
def _by_net(train: Scored, n_hidden: int, learning_rate: float) -> Scores:
    n = len(train.y)
    epochs = max(5, -(-_STEPS * 16 // (n * (n - 1) // 2)))  # batches hold 16 pairs
    net = RankNet(
        n_hidden, learning_rate=learning_rate, n_epochs=epochs, random_state=train.seed
    )
    return net.fit(train.X, train.y).rank_function


def _places(y: Floats) -> Floats:
    """Ranks as quantiles of a normal distribution, which suit a squared error."""
    return norm.ppf(rankdata(y) / (len(y) + 1))


def _by_trees(train: Scored, min_child_samples: int, num_leaves: int) -> Scores:
    trees = LGBMRegressor(
        n_estimators=200,
        num_leaves=num_leaves,
        min_child_samples=min_child_samples,
        min_data_in_bin=1,
        colsample_bytree=min(1.0, 30 / train.X.shape[1]),
        random_state=train.seed,
        **QUIET_TREES,
    )
    trees.fit(train.X, _places(train.y))
    return lambda Q: np.asarray(trees.booster_.predict(Q, num_threads=1))


@_levelled
def _by_process(train: Scored) -> Scores:
    """A linear and a smooth part and noise, whose sizes and length have the largest
    likelihood."""
    p = train.X.shape[1]
    kernel = (
        1.0 * RBF(np.sqrt(p)) + 1.0 / p * DotProduct(0.0, "fixed") + WhiteKernel(0.1)
    )
    process = GaussianProcessRegressor(kernel, normalize_y=True)
    # a size of 0 is an answer
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        process.fit(train.X, _places(train.y))
    return lambda Q: np.asarray(process.predict(Q))


def _by_best_feature(train: Scored) -> Scores:
    alone = np.array([ranking_loss(-train.y, -x) for x in train.X.T])
    best = int(np.abs(alone - 0.5).argmax())
    return lambda Q: np.sign(0.5 - alone[best]) * Q[:, best]


@_levelled
def _by_correlations(train: Scored) -> Scores:
    """Each feature weighs as much as it correlates with the ranks: in ratings, users by
    their likeness."""
    sizes = train.X.std(axis=0)
    weights = (
        train.X.T
        @ (_places(train.y) - _places(train.y).mean())
        / np.where(sizes > 0, sizes, 1.0)
    )
    return lambda Q: Q @ weights


def _by_nothing(train: Scored) -> Scores:
    return lambda Q: np.zeros(len(Q))


def _by_chance(train: Scored) -> Scores:
    return lambda Q: np.random.default_rng(train.seed).random(len(Q))


FITS: dict[str, Callable[..., Scores]] = {
    "ranking SVM": _by_svm,
    "ranking SVM, rbf": _by_svm,
    "RankRLS": partial(_by_squares, machine=RankRLS),
    "RLS": partial(_by_squares, machine=RLS),
    "ranking pursuit": _by_pursuit,
    "combined pursuit": partial(_by_pursuit, mix=0.5),
    "expected rank regression": _by_err,
    "RankNet": _by_net,
    "logistic regression": _by_logistic,
    "logistic, kernel features": _by_logistic,
    "boosted trees": _by_trees,
    "Gaussian process": _by_process,
    "correlation weights": _by_correlations,
    "best feature": _by_best_feature,
    CONSTANT: _by_nothing,
    "random": _by_chance,
}
ENDS = {
    "able2rank": {"k": "low"},
    "ranking pursuit": {"n_basis": "low"},
    "combined pursuit": {"n_basis": "low"},
    "boosted trees": {"min_child_samples": "low"},
}
