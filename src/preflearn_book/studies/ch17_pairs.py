"""Learners of chapter 17 from pairs of items with features, with ties.

`train` is a tuple of Pairs and labels -1, 0, 1. The fitted model is a function from
Pairs to probabilities of the three labels, shape (m, 3), or to labels, shape (m,).

References
----------
.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams, "Gaussian processes for machine
  learning", 2006.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.core import NotIdentifiedWarning, OnItems
from preflearn.core.diagnosis import without_features
from preflearn.core.validation import Floats
from preflearn.metrics import best_threshold, threshold
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison, RankNet
from preflearn.svm import SVMCompare
from preflearn_book.studies.ch17_protocol import QUIET_TREES

_CENTRES = 100  # largest number of items for kernel features
_TREE_SETTINGS = QUIET_TREES | {"num_leaves": 7, "max_bin": 63, "seed": 0}

Labelled = tuple[Pairs, NDArray]
Forecast = Callable[[Pairs], NDArray]


def fit_estimator(
    train: Labelled, estimator: Any, width: float | None = None, **options: Any
) -> Forecast:
    """An estimator of the package that predicts labels.

    With a `width`, it has a Gaussian kernel.
    """
    options |= kernel_options(train, width)
    return estimator(**options).fit(*train).predict


def kernel_options(train: Labelled, width: float | None) -> dict[str, Any]:
    """A linear kernel, or a Gaussian kernel with gamma = `width` / number of features."""
    if width is None:
        return {"kernel": "linear"}
    return {"kernel": "rbf", "gamma": width / train[0].shape[2]}


def fit_ordinal(train: Labelled, **options: Any) -> Forecast:
    """The ordinal model, which predicts probabilities."""
    return OrdinalComparison(**options).fit(*train).predict_proba


def fit_with_threshold(train: Labelled, C: float) -> Forecast:
    """Linear SVMCompare with a threshold that is chosen on the training pairs.

    The threshold is chosen in the same way as for the ranking SVM.
    """
    model = SVMCompare(C, kernel="linear", tie_weight="least").fit(*train)
    return _with_best_threshold(train, model.decision_function)


def fit_ranknet(train: Labelled, **options: Any) -> Forecast:
    """RankNet on preferences as queries of two items.

    The threshold is chosen on the training pairs.
    """
    pairs, y = train
    X = np.vstack([pairs.first, pairs.second])
    queries = np.tile(np.arange(len(y)), 2)
    score = RankNet(**options).fit(X, np.append(y, 0 * y), queries).rank_function
    return _with_best_threshold(train, _differences_of(score))


def _differences_of(score: Callable[[Floats], Floats]) -> Forecast:
    """A function from Pairs to their score differences."""
    return lambda pairs: score(pairs.first) - score(pairs.second)


def _with_best_threshold(train: Labelled, differences: Forecast) -> Forecast:
    pairs, y = train
    tau, _ = best_threshold(y, differences(pairs))
    return lambda asked: threshold(differences(asked), tau)


def fit_both_orders(
    train: Labelled, rows: Forecast, fit_rows: Callable[[Floats, NDArray], Any]
) -> Forecast:
    """A classifier of -1, 0, 1 that is fitted to each pair in both orders.

    A forecast is the mean of the forecasts for both orders. Therefore swapping the
    items of the pairs reverses its columns.

    Parameters
    ----------
    train : tuple of Pairs and ndarray
    rows : callable
        Function from Pairs to one row per pair.
    fit_rows : callable
        Function from rows and labels to a model, which is a function from rows to the
        probabilities of -1, 0, 1.
    """
    pairs, y = train
    both = np.vstack([rows(pairs), rows(pairs.swapped())])
    probabilities = fit_rows(both, np.append(y, -y))

    def forecast(asked: Pairs) -> Floats:
        forward = probabilities(rows(asked))
        backward = probabilities(rows(asked.swapped()))
        return (forward + backward[:, ::-1]) / 2

    return forecast


def fit_logistic(
    train: Labelled, C: float, rows: Forecast = Pairs.differences
) -> Forecast:
    """Logistic regression with three classes on feature differences.

    With both orders, the result is Davidson's model on features with alpha = 1 / (4 C).
    """
    classifier = LogisticRegression(
        C=C, solver="newton-cholesky", tol=1e-6, max_iter=1000
    )
    return fit_both_orders(train, rows, lambda X, y: classifier.fit(X, y).predict_proba)


def fit_kernel_logistic(train: Labelled, C: float, width: float) -> Forecast:
    """Logistic regression on differences of kernel features of at most 100 items.

    The parameter gamma of the kernel is `width` divided by the number of features.
    """
    pairs = train[0]
    n = min(_CENTRES, len(np.unique(pairs.items[pairs.B.occurring()], axis=0)))
    nystroem = Nystroem(gamma=width / pairs.shape[2], n_components=n, random_state=0)
    features = OnItems(nystroem).fit(pairs)
    return fit_logistic(train, C, lambda asked: features.transform(asked).differences())


def fit_trees(train: Labelled, min_child_samples: int, n_estimators: int) -> Forecast:
    """Boosted trees with seven leaves on the features of both items and differences."""
    settings = _TREE_SETTINGS | {
        "objective": "multiclass",
        "num_class": 3,
        "min_data_in_leaf": min_child_samples,
    }

    def fit_rows(X: Floats, y: NDArray) -> Any:
        data = lightgbm.Dataset(X, y + 1)
        return lightgbm.train(settings, data, n_estimators).predict

    def rows(pairs: Pairs) -> Floats:
        return np.hstack([pairs.first, pairs.second, pairs.differences()])

    return fit_both_orders(train, rows, fit_rows)


def fit_lambdamart(
    train: Labelled, min_child_samples: int, n_estimators: int
) -> Forecast:
    """LambdaMART of LightGBM on preferences as queries of two items.

    The threshold is chosen on the training pairs. In a query of two items, each swap has
    the same cost, so the trees are boosted for the logistic loss of score differences.
    """
    pairs, y = train
    both = np.stack([pairs.first, pairs.second], axis=1)
    settings = _TREE_SETTINGS | {
        "objective": "lambdarank",
        "min_data_in_leaf": min_child_samples,
    }
    grades = np.stack([y > 0, y < 0], axis=1).astype(int)
    data = lightgbm.Dataset(
        both.reshape(-1, both.shape[2]), grades.ravel(), group=np.full(len(y), 2)
    )
    score: Any = lightgbm.train(settings, data, n_estimators).predict
    return _with_best_threshold(train, _differences_of(score))


def fit_gaussian_process(train: Labelled, width: float, noise: float) -> Forecast:
    """A Gaussian process over items by least squares on labels, with a probit link.

    The link is the probit model with ties. As in section 6.5 of [Rasmussen2006]_, it is
    fitted to leave-one-out predictions (eq. 5.12).
    """
    pairs, y = train
    covariance = partial(pair_covariance, gamma=width / pairs.shape[2])
    K = covariance(pairs, pairs) + noise * np.eye(len(y))
    inverse = cho_solve(cho_factor(K), np.eye(len(y)))
    weights = inverse @ y
    leave_one_out = y - weights / np.diag(inverse)
    link = OrdinalComparison("probit", alpha=1e-3).fit(on_a_line(leave_one_out), y)
    return lambda asked: link.predict_proba(
        on_a_line(covariance(asked, pairs) @ weights)
    )


def pair_covariance(pairs: Pairs, others: Pairs, gamma: float) -> Floats:
    """Covariances of score differences for a Gaussian kernel between items."""
    kernel = partial(rbf_kernel, gamma=gamma)
    a = pairs.first
    b = pairs.second
    c = others.first
    d = others.second
    return kernel(a, c) + kernel(b, d) - kernel(a, d) - kernel(b, c)


def on_a_line(differences: Floats) -> Pairs:
    """Pairs of items with one feature that have these differences."""
    return Pairs.from_arrays(differences[:, None], np.zeros((len(differences), 1)))


def fit_davidson(train: Labelled, alpha: float, own: float = 0.0) -> Forecast:
    """Davidson's model with one score per item, and optionally with features.

    An item without comparisons has the score 0, or the score of its features.

    Parameters
    ----------
    train : tuple of Pairs and ndarray
    alpha : float
        Regularization parameter.
    own : float
        Scale of the indicator of each item relative to the features; 0 for no features.
    """

    def with_indicators(pairs: Pairs) -> Pairs:
        if own == 0:
            return without_features(pairs.index, len(pairs.items))
        indicators = own * np.eye(len(pairs.items))
        return pairs.with_items(np.hstack([pairs.items, indicators]))

    # Small values of alpha are tried on purpose.
    with warnings.catch_warnings(action="ignore", category=NotIdentifiedWarning):
        model = Davidson(alpha).fit(with_indicators(train[0]), train[1])
    return lambda asked: model.predict_proba(with_indicators(asked))


def fit_frequencies(train: Labelled) -> Forecast:
    """Frequencies of the training labels, for every pair."""
    # Each outcome is counted once more than observed, so that no probability is 0.
    counts = np.bincount(train[1] + 1, minlength=3) + 1
    return lambda asked: np.tile(counts / counts.sum(), (len(asked), 1))


def fit_coin(train: Labelled) -> Forecast:
    """Random labels, with a seed that is computed from the training labels."""
    seed = (train[1] + 1).tolist()
    return lambda asked: np.random.default_rng(seed).integers(-1, 2, len(asked))
