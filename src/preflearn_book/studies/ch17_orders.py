"""Learners of chapter 17 for the task families "objects", "ratings" and "queries": an
order of items is learned from scores.

`train` is `Scored`: items and their scores, of which only the order within a query
counts. The fitted model is a function from the features of other items to scores;
larger is better. In "ratings", `train` is a list of them, one for each user.

Features are centered on the training items and divided by one number, so that one grid
suits sets of any unit. Learners by analogy need features in [0, 1] instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, NamedTuple

import lightgbm
import numpy as np
from lightgbm import LGBMRegressor
from numpy.typing import NDArray
from scipy.stats import norm, rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression

from preflearn.analogy import Able2Rank, AnKerRank
from preflearn.core.validation import Floats, Ids
from preflearn.pairs import Pairs
from preflearn.ranking import RankNet
from preflearn.ranking.aggregation import check_degrees, fit_worths, merged
from preflearn_book.studies.ch17_protocol import QUIET_TREES, Learner

# Scores that differ by less, relative to the range or size of a forecast, are tied.
_ROUNDING_OF_RANGE = 1e-9
_ROUNDING_OF_SIZE = 1e-13
_MIN_STEPS = 500  # of a network on few pairs; it makes at least five passes
_N_TREES = 200
_MAX_KERNEL_FEATURES = 150

Labels = NDArray[np.int8]
Scores = Callable[[Floats], Floats]


class Scored(NamedTuple):
    """Items to learn from.

    Attributes
    ----------
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,)
        Scores; larger is better.
    seed : int
        Seed of learners that draw random numbers.
    qid : ndarray of shape (n,), optional
        Queries of the items, by number from 0; None: one query.
    """

    X: Floats
    y: Floats
    seed: int
    qid: Ids | None = None

    def pairs(self) -> tuple[Pairs, Labels]:
        """All pairs of one query with different scores; the first item is better."""
        return Pairs.from_scores(self.X, self.y, self.qid)

    def query_means(self, values: Floats) -> Floats:
        """The mean of values over the query of each item."""
        if self.qid is None:
            return np.full(len(values), values.mean())
        sums = np.bincount(self.qid, values)
        return (sums / np.maximum(np.bincount(self.qid), 1))[self.qid]


def seed_of(name: str) -> int:
    """The seed of all draws of a task.

    Examples
    --------
    >>> seed_of("D1-D2/0") == seed_of("D1-D2/1")
    False
    """
    return int(np.random.default_rng([17, *name.encode()]).integers(2**31))


def merge_rounded(scores: Floats) -> Floats:
    """Forecasts in which scores that differ only by rounding are equal.

    Examples
    --------
    >>> merge_rounded(np.array([0.1 + 0.2, 0.3, 1.0])).tolist()
    [0.3, 0.3, 1.0]
    """
    of_range = _ROUNDING_OF_RANGE * float(np.ptp(scores))
    of_size = _ROUNDING_OF_SIZE * float(np.abs(scores).max())
    return merged(scores, max(of_range, of_size))


def standardized(fit: Callable[..., Scores]) -> Callable[..., Scores]:
    """Fit to scores with mean 0, and to features with mean 0 and mean square 1 over
    all of them."""

    @wraps(fit)
    def fit_standardized(train: Scored, **options: Any) -> Scores:
        mean = train.X.mean(axis=0)
        scale = float(np.sqrt(np.mean((train.X - mean) ** 2)))
        if scale == 0:
            scale = 1.0
        X = (train.X - mean) / scale
        y = train.y - train.y.mean()
        scores = fit(train._replace(X=X, y=y), **options)
        return lambda Q: scores((Q - mean) / scale)

    return fit_standardized


# ---- Learners


@standardized
def fit_estimator(
    train: Scored, estimator: Any, width: float | None = None, **options: Any
) -> Scores:
    """An estimator of the package, with a Gaussian kernel if it has a `width`."""
    if width is not None:
        options |= {"kernel": "rbf", "gamma": width / train.X.shape[1]}
    return estimator(**options).fit(train.X, train.y, train.qid).rank_function


def fit_centered(train: Scored, **options: Any) -> Scores:
    """An estimator that is fitted to scores minus their means over queries."""
    centered = train.y - train.query_means(train.y)
    return fit_estimator(train._replace(y=centered), **options)


def fit_anker_rank(train: Scored, **options: Any) -> Scores:
    """AnKer-rank, whose coins and folds are drawn from the seed of the training data."""
    model = AnKerRank(**options, random_state=train.seed)
    return model.fit(train.X, train.y).rank_function


def fit_able2rank(train: Scored, **options: Any) -> Scores:
    """Able2rank, which draws nothing."""
    return Able2Rank(**options).fit(train.X, train.y).rank_function


@standardized
def fit_logistic(train: Scored, C: float, width: float | None = None) -> Scores:
    """Logistic regression on the differences of all pairs, without an intercept.

    Every other pair is swapped, so that both labels occur. The features are those of a
    kernel, which is linear without a `width`.
    """
    n, p = train.X.shape
    n_components = min(n, _MAX_KERNEL_FEATURES)
    features = Nystroem(n_components=n_components, random_state=0)
    if width is None:
        features.set_params(kernel="linear", n_components=min(n_components, p))
    else:
        features.set_params(gamma=width / p)
    pairs, labels = train._replace(X=features.fit_transform(train.X)).pairs()
    signs = np.where(np.arange(len(labels)) % 2, -1, 1)
    classifier = LogisticRegression(
        C=C / len(labels), fit_intercept=False, solver="newton-cholesky"
    )
    classifier.fit(signs[:, None] * pairs.differences(), signs * labels)
    return lambda Q: features.transform(Q) @ classifier.coef_[0]


@standardized
def fit_ranknet(train: Scored, n_hidden: int, learning_rate: float) -> Scores:
    """RankNet, trained for at least `_MIN_STEPS` steps."""
    n_pairs = len(train.pairs()[1])
    epochs = max(5, -(-_MIN_STEPS * 16 // n_pairs))  # batches hold 16 pairs
    net = RankNet(
        n_hidden, learning_rate=learning_rate, n_epochs=epochs, random_state=train.seed
    )
    return net.fit(train.X, train.y, train.qid).rank_function


def normal_scores(y: Floats) -> Floats:
    """Ranks as normal quantiles, which suit a squared error."""
    return norm.ppf(rankdata(y) / (len(y) + 1))


def fit_trees(train: Scored, min_child_samples: int, num_leaves: int) -> Scores:
    """Gradient-boosted regression trees on the scores."""
    trees = LGBMRegressor(
        n_estimators=_N_TREES,
        num_leaves=num_leaves,
        min_child_samples=min_child_samples,
        min_data_in_bin=1,
        colsample_bytree=min(1.0, 30 / train.X.shape[1]),
        random_state=train.seed,
        **QUIET_TREES,
    )
    trees.fit(train.X, normal_scores(train.y))
    return lambda Q: np.asarray(trees.booster_.predict(Q, num_threads=1))


def fit_lambdamart(train: Scored, min_child_samples: int, num_leaves: int) -> Scores:
    """LambdaMART of LightGBM, with the sizes of `fit_trees`.

    A swap of two items costs the change in discounted cumulative gain. The gain of an
    item is the rank of its score in its query, and all positions count, since the loss
    counts all pairs alike.
    """
    qid = np.zeros(len(train.y), dtype=np.int64)
    if train.qid is not None:
        qid = train.qid
    order = np.argsort(qid, kind="stable")
    starts = np.flatnonzero(np.diff(qid[order], prepend=-1))
    queries = np.split(train.y[order], starts[1:])
    grades = np.concatenate([rankdata(y, "dense") - 1 for y in queries]).astype(int)
    sizes = [len(y) for y in queries]
    settings = QUIET_TREES | {
        "objective": "lambdarank",
        "label_gain": list(range(int(grades.max()) + 1)),
        "lambdarank_truncation_level": max(sizes),
        "num_leaves": num_leaves,
        "min_data_in_leaf": min_child_samples,
        "min_data_in_bin": 1,
        "feature_fraction": min(1.0, 30 / train.X.shape[1]),
        "seed": train.seed,
    }
    data = lightgbm.Dataset(train.X[order], grades, group=sizes)
    trees = lightgbm.train(settings, data, _N_TREES)
    return lambda Q: np.asarray(trees.predict(Q, num_threads=1))


@standardized
def fit_gaussian_process(train: Scored) -> Scores:
    """A linear and a smooth part and noise, whose sizes and length have the largest
    likelihood."""
    p = train.X.shape[1]
    kernel = (
        1.0 * RBF(np.sqrt(p)) + 1.0 / p * DotProduct(0.0, "fixed") + WhiteKernel(0.1)
    )
    process = GaussianProcessRegressor(kernel, normalize_y=True)
    # a size of 0 is an answer
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        process.fit(train.X, normal_scores(train.y))
    return lambda Q: np.asarray(process.predict(Q))


def fit_best_feature(train: Scored) -> Scores:
    """The feature that orders the items best, with its sign."""
    pairs, labels = train.pairs()
    # The fraction of right pairs minus that of wrong ones.
    agreement = np.sign(pairs.differences()).T @ labels
    best = int(np.abs(agreement).argmax())
    return lambda Q: np.sign(agreement[best]) * Q[:, best]


@standardized
def fit_correlations(train: Scored) -> Scores:
    """Features weighted by their correlations with the ranks, within queries.

    Features of ratings are users, who are thus weighted by their similarity.
    """
    deviations = train.X.std(axis=0)
    targets = normal_scores(train.y)
    covariances = train.X.T @ (targets - train.query_means(targets))
    weights = covariances / np.where(deviations > 0, deviations, 1.0)
    return lambda Q: Q @ weights


def fit_zero(train: Scored) -> Scores:
    """The score 0 for each item, so that all are tied."""
    return lambda Q: np.zeros(len(Q))


def fit_random(train: Scored) -> Scores:
    """Random scores from the seed of the training data."""
    return lambda Q: np.random.default_rng(train.seed).random(len(Q))


def fit_popularity(train: Scored) -> Scores:
    """The mean rating by the reference users; a missing one is the user's median."""
    return lambda Q: Q.mean(axis=1)


def fit_bradley_terry(train: Scored) -> Scores:
    """Worths from the fraction of reference users that rate one item above another."""
    return lambda Q: fit_worths(check_degrees((Q[:, None] > Q).mean(axis=2)))


# ---- Learners of several users


def for_each_user(*learners: Learner) -> tuple[Learner, ...]:
    """Learners that are fitted to each user of a list, with one configuration."""
    return tuple(
        learner._replace(fit=partial(fit_users, learner.fit)) for learner in learners
    )


def fit_users(
    fit: Callable[..., Scores], train: Sequence[Scored], **options: Any
) -> Callable[[Sequence[Floats]], list[Floats]]:
    """Fit each user; the result scores one set of items for each of them."""
    models = [fit(user, **options) for user in train]
    return lambda test: [scores(Q) for scores, Q in zip(models, test, strict=True)]
