"""Learners of chapter 17 that learn an order of items from scores.

They belong to the task families "objects", "ratings", and "queries". `train` is `Scored`:
items and their scores, where only the order within a query matters. The fitted model is
a function from the features of other items to scores; larger is better. In "ratings",
`train` is a list of `Scored`, one per user.

Features are centered on the training items and divided by one number. Therefore the same
grid suits data in any unit. Learners by analogy need features in [0, 1] instead.
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
from preflearn.ranking.aggregation import check_degrees, fit_worths, merge_close
from preflearn_book.studies.ch17_protocol import QUIET_TREES, Learner

# Scores that differ by less, relative to the range or size of a forecast, count as tied.
_ROUNDING_OF_RANGE = 1e-9
_ROUNDING_OF_SIZE = 1e-13
_MIN_STEPS = 500  # minimum for a network on few pairs; it makes at least five passes
_N_TREES = 200
_MAX_KERNEL_FEATURES = 150

Labels = NDArray[np.int8]
Scores = Callable[[Floats], Floats]


class Scored(NamedTuple):
    """Training items.

    Attributes
    ----------
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,)
        Scores; larger is better.
    seed : int
        Seed for learners that use random numbers.
    qid : ndarray of shape (n,), optional
        Query of each item, numbered from 0. None means a single query.
    """

    X: Floats
    y: Floats
    seed: int
    qid: Ids | None = None

    def pairs(self) -> tuple[Pairs, Labels]:
        """All pairs within a query with different scores, with the better item first."""
        return Pairs.from_scores(self.X, self.y, self.qid)

    def query_means(self, values: Floats) -> Floats:
        """The mean of values over the query of each item."""
        if self.qid is None:
            return np.full(len(values), values.mean())
        sums = np.bincount(self.qid, values)
        return (sums / np.maximum(np.bincount(self.qid), 1))[self.qid]


def seed_of(name: str) -> int:
    """The seed for all random numbers of a task.

    Examples
    --------
    >>> seed_of("D1-D2/0") == seed_of("D1-D2/1")
    False
    """
    return int(np.random.default_rng([17, *name.encode()]).integers(2**31))


def merge_rounded(scores: Floats) -> Floats:
    """Set scores that differ only by rounding equal.

    Examples
    --------
    >>> merge_rounded(np.array([0.1 + 0.2, 0.3, 1.0])).tolist()
    [0.3, 0.3, 1.0]
    """
    of_range = _ROUNDING_OF_RANGE * float(np.ptp(scores))
    of_size = _ROUNDING_OF_SIZE * float(np.abs(scores).max())
    return merge_close(scores, max(of_range, of_size))


def standardized(fit: Callable[..., Scores]) -> Callable[..., Scores]:
    """Fit a model to centered scores and scaled features.

    Each feature has mean 0, and the mean square over all features is 1.
    """

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
    """AnKer-rank, with random signs and folds from the seed of the training data."""
    model = AnKerRank(**options, random_state=train.seed)
    return model.fit(train.X, train.y).rank_function


def fit_able2rank(train: Scored, **options: Any) -> Scores:
    """Able2rank, which uses no random numbers."""
    return Able2Rank(**options).fit(train.X, train.y).rank_function


@standardized
def fit_logistic(train: Scored, C: float, width: float | None = None) -> Scores:
    """Logistic regression on the differences of all pairs, without an intercept.

    Every second pair is swapped, so that both labels occur. The features are those of a
    Gaussian kernel with a `width`, or of a linear kernel without one.
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
    epochs = max(5, -(-_MIN_STEPS * 16 // n_pairs))  # A batch has 16 pairs.
    net = RankNet(
        n_hidden, learning_rate=learning_rate, n_epochs=epochs, random_state=train.seed
    )
    return net.fit(train.X, train.y, train.qid).rank_function


def normal_scores(y: Floats) -> Floats:
    """Normal quantiles of the ranks, which suit a squared error."""
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

    The cost of swapping two items is the change in discounted cumulative gain. The
    gain of an item is the rank of its score in its query. All positions count, because
    the loss gives all pairs the same weight.
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
    """A Gaussian process with a linear part, a smooth part, and noise.

    Their variances and the length scale maximize the likelihood.
    """
    p = train.X.shape[1]
    kernel = (
        1.0 * RBF(np.sqrt(p)) + 1.0 / p * DotProduct(0.0, "fixed") + WhiteKernel(0.1)
    )
    process = GaussianProcessRegressor(kernel, normalize_y=True)
    # A variance of 0 is a valid result.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        process.fit(train.X, normal_scores(train.y))
    return lambda Q: np.asarray(process.predict(Q))


def fit_best_feature(train: Scored) -> Scores:
    """The single feature, with a sign, that orders the items best."""
    pairs, labels = train.pairs()
    # fraction of correctly ordered pairs minus fraction of wrong pairs
    agreement = np.sign(pairs.differences()).T @ labels
    best = int(np.abs(agreement).argmax())
    return lambda Q: np.sign(agreement[best]) * Q[:, best]


@standardized
def fit_correlations(train: Scored) -> Scores:
    """Features weighted by their correlations with the ranks, within queries.

    In "ratings", features are users, who are thus weighted by their similarity.
    """
    deviations = train.X.std(axis=0)
    targets = normal_scores(train.y)
    covariances = train.X.T @ (targets - train.query_means(targets))
    weights = covariances / np.where(deviations > 0, deviations, 1.0)
    return lambda Q: Q @ weights


def fit_zero(train: Scored) -> Scores:
    """The score 0 for each item, so that all items are tied."""
    return lambda Q: np.zeros(len(Q))


def fit_random(train: Scored) -> Scores:
    """Random scores from the seed of the training data."""
    return lambda Q: np.random.default_rng(train.seed).random(len(Q))


def fit_popularity(train: Scored) -> Scores:
    """The mean rating by the reference users, with medians for missing ratings."""
    return lambda Q: Q.mean(axis=1)


def fit_bradley_terry(train: Scored) -> Scores:
    """Worths from the fraction of reference users who rate one item above another."""
    return lambda Q: fit_worths(check_degrees((Q[:, None] > Q).mean(axis=2)))


# ---- Learners of several users


def for_each_user(*learners: Learner) -> tuple[Learner, ...]:
    """Learners that are fitted to each user of a list with the same configuration."""
    return tuple(
        learner._replace(fit=partial(fit_users, learner.fit)) for learner in learners
    )


def fit_users(
    fit: Callable[..., Scores], train: Sequence[Scored], **options: Any
) -> Callable[[Sequence[Floats]], list[Floats]]:
    """Fit each user. The model scores one set of items per user."""
    models = [fit(user, **options) for user in train]
    return lambda test: [scores(Q) for scores, Q in zip(models, test, strict=True)]
