"""Chapter 17: who learns from pairs with ties, of items that have features; methods of
the book and others.

A learner gets Pairs and labels -1, 0, 1, and forecasts probabilities of the three (m,
3), or labels (m,).

References
----------
.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams, "Gaussian processes for machine
  learning", 2006.
"""

from __future__ import annotations

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

from preflearn.core import OnItems
from preflearn.core.validation import Floats
from preflearn.metrics import best_threshold, threshold
from preflearn.pairs import Pairs
from preflearn.ranking import OrdinalComparison, RankNet
from preflearn.svm import LogisticCompare, LPCompare, SVMCompare, SVMRank
from preflearn_book.studies.ch17_protocol import (
    CONSTANT,
    QUIET_TREES,
    Learner,
    configurations,
    spaced,
)

_CENTRES = 100  # items of the kernel features

Labelled = tuple[Pairs, NDArray]


def _fitted(make: Callable[..., Any], train: Labelled, **how: Any) -> Any:
    return make(**how).fit(*train)


def predicted(model: Any, pairs: Pairs) -> NDArray:
    return model.predict(pairs)


def probable(model: Any, pairs: Pairs) -> Floats:
    return model.predict_proba(pairs)


def refitted(train: Labelled, **how: Any) -> SVMCompare:
    """SVMCompare whose threshold is then chosen on the training pairs, as that of the
    ranking SVM is."""
    model = SVMCompare(tie_weight="least", **how).fit(*train)
    model.tau_ = best_threshold(train[1], model.decision_function(train[0]))[0]
    return model


class BothOrders(NamedTuple):
    """A classifier of -1, 0, 1 that has seen each pair in both orders, and whose
    forecasts are the mean.

    Attributes
    ----------
    probabilities : callable
        From rows to those of -1, 0, 1.
    rows : callable
        From Pairs to one row a pair.
    """

    probabilities: Callable[[Floats], Any]
    rows: Callable[[Pairs], Floats]

    @classmethod
    def fit(
        cls, train: Labelled, rows: Callable, learn: Callable[[Floats, NDArray], Any]
    ) -> BothOrders:
        """`learn` gives the probabilities from rows and labels."""
        pairs, y = train
        return cls(
            learn(np.vstack([rows(pairs), rows(pairs.swapped())]), np.append(y, -y)),
            rows,
        )

    def predict_proba(self, pairs: Pairs) -> Floats:
        """Probabilities (m, 3); those of swapped pairs are the same from behind."""
        there, back = (
            self.probabilities(self.rows(some)) for some in (pairs, pairs.swapped())
        )
        return (there + back[:, ::-1]) / 2


def logistic(
    train: Labelled, C: float, rows: Callable[[Pairs], Floats] = Pairs.differences
) -> BothOrders:
    """Logistic regression of three classes on differences.

    With both orders its minimum is Davidson's model on features, with alpha = 1 / (4
    C).
    """

    def learn(X: Floats, y: NDArray) -> Any:
        machine = LogisticRegression(
            C=C, solver="newton-cholesky", tol=1e-6, max_iter=1000
        )
        return machine.fit(X, y).predict_proba

    return BothOrders.fit(train, rows, learn)


def kernel_logistic(train: Labelled, C: float, width: float) -> BothOrders:
    """The same on differences of kernel features, of 100 items at most; `width` is
    gamma times p."""
    pairs = train[0]
    n = min(_CENTRES, len(np.unique(pairs.items[pairs.B.occurring()], axis=0)))
    features = OnItems(
        Nystroem(gamma=width / pairs.shape[2], n_components=n, random_state=0)
    ).fit(pairs)
    return logistic(train, C, lambda some: features.transform(some).differences())


def boosted(train: Labelled, min_child_samples: int, n_estimators: int) -> BothOrders:
    """Trees of seven leaves on the features of first and second, and their differences."""
    fixed = {
        "objective": "multiclass",
        "num_class": 3,
        "num_leaves": 7,
        "max_bin": 63,
        "seed": 0,
    }

    def learn(X: Floats, y: NDArray) -> Any:
        settings = fixed | QUIET_TREES | {"min_data_in_leaf": min_child_samples}
        return lightgbm.train(
            settings, lightgbm.Dataset(X, y + 1), n_estimators
        ).predict

    return BothOrders.fit(
        train,
        lambda some: np.hstack([some.first, some.second, some.differences()]),
        learn,
    )


class RankedPairs(NamedTuple):
    """RankNet on preferences, each a query of two items; the threshold is chosen on the
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
    """A Gaussian process over items: least squares for the labels of pairs, then a link
    for probabilities.

    Section 6.5 of [Rasmussen2006]_: the link, here the probit model with ties, is
    fitted to what the process says of each pair without its label, eq. 5.12.
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
        without = y - weights / np.diag(inverse)
        link = OrdinalComparison("probit", alpha=1e-3).fit(_on_a_line(without), y)
        return cls(width, pairs, weights, link)

    @staticmethod
    def _covariance(some: Pairs, others: Pairs, width: float) -> Floats:
        kernel = partial(rbf_kernel, gamma=width / some.shape[2])
        (a, b), (c, d) = (some.first, some.second), (others.first, others.second)
        return kernel(a, c) + kernel(b, d) - kernel(a, d) - kernel(b, c)

    def predict_proba(self, pairs: Pairs) -> Floats:
        means = self._covariance(pairs, self.centres, self.width) @ self.weights
        return self.link.predict_proba(_on_a_line(means))


def _on_a_line(differences: Floats) -> Pairs:
    """Pairs of items of one feature that differ so."""
    return Pairs.from_arrays(differences[:, None], np.zeros((len(differences), 1)))


def _shares(train: Labelled) -> Floats:
    # of each one more, as none is impossible
    counts = np.bincount(train[1] + 1, minlength=3) + 1
    return counts / counts.sum()


def _same(shares: Floats, pairs: Pairs) -> Floats:
    return np.tile(shares, (len(pairs), 1))


def _coin(train: Labelled) -> list[int]:
    return (train[1] + 1).tolist()


def _tossed(seed: list[int], pairs: Pairs) -> NDArray:
    return np.random.default_rng(seed).integers(-1, 2, len(pairs))


def learner(name: str, fit: Callable, forecast: Callable, **values: Any) -> Learner:
    return Learner(name, fit, forecast, configurations(values), _NATURAL)


_NATURAL = {"min_child_samples": "low"}  # there is no leaf of less than one


_KERNELS = ["linear", "rbf"]
_SVM = {"kernel": _KERNELS, "C": spaced(1e-3, 3e3)}
_LOGISTIC = partial(LogisticCompare, tie_weight="least", random_state=0)
_LEAVES = [1, 2, 4, 8, 16, 32, 64, 128]
_EPOCHS = [2, 4, 9, 20, 45, 100, 220, 500]
LEARNERS = (
    learner(
        "SVMCompare",
        partial(_fitted, partial(SVMCompare, tie_weight="least")),
        predicted,
        **_SVM,
    ),
    learner("SVMCompare, threshold refitted", refitted, predicted, **_SVM),
    learner("ranking SVM", partial(_fitted, SVMRank), predicted, **_SVM),
    learner(
        "LPCompare",
        partial(_fitted, partial(LPCompare, nu=0.8)),
        predicted,
        kernel=_KERNELS,
        radius=spaced(0.3, 3e3),
    ),
    learner(
        "LogisticCompare",
        partial(_fitted, _LOGISTIC),
        predicted,
        kernel=_KERNELS,
        alpha=spaced(1e-9, 10.0),
    ),
    learner(
        "ordinal model",
        partial(_fitted, OrdinalComparison),
        probable,
        link=["logit", "probit"],
        alpha=spaced(1e-2, 1e3),
    ),
    learner(
        "RankNet",
        RankedPairs.fit,
        predicted,
        learning_rate=[0.003, 0.01],
        n_epochs=_EPOCHS,
    ),
    learner("logistic regression", logistic, probable, C=spaced(1e-6, 1e3)),
    learner(
        "logistic, kernel features",
        kernel_logistic,
        probable,
        width=[0.1, 1.0],
        C=spaced(1e-2, 1e4),
    ),
    learner(
        "boosted trees",
        boosted,
        probable,
        n_estimators=[50, 150],
        min_child_samples=_LEAVES,
    ),
    learner(
        "Gaussian process",
        PairProcess.fit,
        probable,
        width=[0.1, 1.0],
        noise=spaced(1e-4, 1e2),
    ),
    Learner(CONSTANT, _shares, _same),
    Learner("random", _coin, _tossed),
)
