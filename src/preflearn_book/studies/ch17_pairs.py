"""Chapter 17: learners from pairs with ties, of items that have features.

`train` is a tuple of Pairs and labels -1, 0, 1. A forecast of Pairs has the
probabilities of the three labels, shape (m, 3), or labels, shape (m,).

References
----------
.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams, "Gaussian processes for machine
  learning", 2006.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

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

_CENTRES = 100  # items of the kernel features

Labelled = tuple[Pairs, NDArray]


def fit_estimator(
    estimator: Callable[..., Any], train: Labelled, **options: Any
) -> Any:
    return estimator(**options).fit(*train)


def predict(model: Any, pairs: Pairs) -> NDArray:
    return model.predict(pairs)


def predict_proba(model: Any, pairs: Pairs) -> Floats:
    return model.predict_proba(pairs)


def fit_with_threshold(train: Labelled, **options: Any) -> SVMCompare:
    """SVMCompare with a threshold chosen on the training pairs, like a ranking SVM's."""
    model = SVMCompare(tie_weight="least", **options).fit(*train)
    model.tau_ = best_threshold(train[1], model.decision_function(train[0]))[0]
    return model


class BothOrders(NamedTuple):
    """A classifier of -1, 0, 1 that is fitted to each pair in both orders.

    A forecast is the mean of the forecasts for both orders.

    Attributes
    ----------
    probabilities : callable
        From rows to probabilities of -1, 0, 1.
    rows : callable
        From Pairs to one row for each pair.
    """

    probabilities: Callable[[Floats], Any]
    rows: Callable[[Pairs], Floats]

    @classmethod
    def fit(
        cls, train: Labelled, rows: Callable, fit_rows: Callable[[Floats, NDArray], Any]
    ) -> BothOrders:
        """Fit with a function from rows and labels to one that gives probabilities."""
        pairs, y = train
        both = np.vstack([rows(pairs), rows(pairs.swapped())])
        return cls(fit_rows(both, np.append(y, -y)), rows)

    def predict_proba(self, pairs: Pairs) -> Floats:
        """Probabilities (m, 3); swapping the pairs reverses their columns."""
        forward = self.probabilities(self.rows(pairs))
        backward = self.probabilities(self.rows(pairs.swapped()))
        return (forward + backward[:, ::-1]) / 2


def fit_logistic(
    train: Labelled, C: float, rows: Callable[[Pairs], Floats] = Pairs.differences
) -> BothOrders:
    """Logistic regression of three classes on differences.

    With both orders its minimum is Davidson's model on features with alpha = 1 / (4 C).
    """

    def fit_rows(X: Floats, y: NDArray) -> Any:
        classifier = LogisticRegression(
            C=C, solver="newton-cholesky", tol=1e-6, max_iter=1000
        )
        return classifier.fit(X, y).predict_proba

    return BothOrders.fit(train, rows, fit_rows)


def fit_kernel_logistic(train: Labelled, C: float, width: float) -> BothOrders:
    """Logistic regression on differences of kernel features of at most 100 items.

    The parameter gamma of the kernel is `width` over the number of features.
    """
    pairs = train[0]
    n = min(_CENTRES, len(np.unique(pairs.items[pairs.B.occurring()], axis=0)))
    nystroem = Nystroem(gamma=width / pairs.shape[2], n_components=n, random_state=0)
    features = OnItems(nystroem).fit(pairs)
    return fit_logistic(train, C, lambda asked: features.transform(asked).differences())


def fit_trees(train: Labelled, min_child_samples: int, n_estimators: int) -> BothOrders:
    """Trees of seven leaves on the features of both items and their differences."""
    settings = QUIET_TREES | {
        "objective": "multiclass",
        "num_class": 3,
        "num_leaves": 7,
        "max_bin": 63,
        "seed": 0,
        "min_data_in_leaf": min_child_samples,
    }

    def rows(pairs: Pairs) -> Floats:
        return np.hstack([pairs.first, pairs.second, pairs.differences()])

    def fit_rows(X: Floats, y: NDArray) -> Any:
        data = lightgbm.Dataset(X, y + 1)
        return lightgbm.train(settings, data, n_estimators).predict

    return BothOrders.fit(train, rows, fit_rows)


class RankedPairs(NamedTuple):
    """RankNet on preferences as queries of two items, with a threshold chosen on the
    training pairs."""

    net: RankNet
    tau: float

    @classmethod
    def fit(cls, train: Labelled, **how: Any) -> RankedPairs:
        pairs, y = train
        X = np.vstack([pairs.first, pairs.second])
        scores = np.append(y, 0 * y)
        net = RankNet(**how).fit(X, scores, np.tile(np.arange(len(y)), 2))
        return cls(net, best_threshold(y, cls(net, 0.0).differences(pairs))[0])

    def differences(self, pairs: Pairs) -> Floats:
        return self.net.rank_function(pairs.first) - self.net.rank_function(
            pairs.second
        )

    def predict(self, pairs: Pairs) -> NDArray:
        return threshold(self.differences(pairs), self.tau)


class PairProcess(NamedTuple):
    """A Gaussian process over items by least squares on labels, with a probit link.

    As in section 6.5 of [Rasmussen2006]_, the link is fitted to leave-one-out
    predictions (eq. 5.12); here it is the probit model with ties.
    """

    width: float
    centres: Pairs
    weights: Floats
    link: OrdinalComparison

    @classmethod
    def fit(cls, train: Labelled, width: float, noise: float) -> PairProcess:
        pairs, y = train
        K = cls._covariance(pairs, pairs, width) + noise * np.eye(len(y))
        inverse = cho_solve(cho_factor(K), np.eye(len(y)))
        weights = inverse @ y
        leave_one_out = y - weights / np.diag(inverse)
        link = OrdinalComparison("probit", alpha=1e-3).fit(_on_a_line(leave_one_out), y)
        return cls(width, pairs, weights, link)

    @staticmethod
    def _covariance(pairs: Pairs, others: Pairs, width: float) -> Floats:
        kernel = partial(rbf_kernel, gamma=width / pairs.shape[2])
        a = pairs.first
        b = pairs.second
        c = others.first
        d = others.second
        return kernel(a, c) + kernel(b, d) - kernel(a, d) - kernel(b, c)

    def predict_proba(self, pairs: Pairs) -> Floats:
        means = self._covariance(pairs, self.centres, self.width) @ self.weights
        return self.link.predict_proba(_on_a_line(means))


def _on_a_line(differences: Floats) -> Pairs:
    """Pairs of items with one feature that have these differences."""
    return Pairs.from_arrays(differences[:, None], np.zeros((len(differences), 1)))


class ItemDavidson:
    """Davidson's model of items that are known by number, or by number and features.

    An item without comparisons has a score of 0, or the score of its features.

    Parameters
    ----------
    train : tuple of Pairs and ndarray
    alpha : float
        Regularization parameter.
    own : float
        Size of the indicators of items next to the features; 0 for no features.
    """

    def __init__(self, train: Labelled, alpha: float, own: float = 0.0) -> None:
        self.own = own
        # Small values of alpha are tried on purpose.
        with warnings.catch_warnings(action="ignore", category=NotIdentifiedWarning):
            self.model = Davidson(alpha).fit(self.with_indicators(train[0]), train[1])

    def with_indicators(self, pairs: Pairs) -> Pairs:
        """The pairs of item indicators, after the features if `own` is positive."""
        if not self.own:
            return without_features(pairs.index, len(pairs.items))
        indicators = self.own * np.eye(len(pairs.items))
        return pairs.with_items(np.hstack([pairs.items, indicators]))

    def predict_proba(self, pairs: Pairs) -> Floats:
        return self.model.predict_proba(self.with_indicators(pairs))


def fit_frequencies(train: Labelled) -> Floats:
    # Each outcome counts once more than it was seen, so that none is impossible.
    counts = np.bincount(train[1] + 1, minlength=3) + 1
    return counts / counts.sum()


def repeat_frequencies(frequencies: Floats, pairs: Pairs) -> Floats:
    return np.tile(frequencies, (len(pairs), 1))


def fit_coin(train: Labelled) -> list[int]:
    """A seed that the labels determine."""
    return (train[1] + 1).tolist()


def toss_coin(seed: list[int], pairs: Pairs) -> NDArray:
    return np.random.default_rng(seed).integers(-1, 2, len(pairs))
