"""Uncertainty of the scores of a static model: standard errors, intervals, ranks,
quasi-variances.

All assume estimates whose errors are jointly normal, with the covariance V of score
differences: the inverse of the observed information and the penalty, V = (I +
alpha)^-1, or, where comparisons of one judge depend on each other, the sandwich V (G'G
+ alpha) V, with the gradients G of the judges in the place of the information I
[LiangZeger1986]_. A difference that no data identify has the variance of its prior,
with judges and without.

References
----------
.. [LiangZeger1986] K.-Y. Liang, S. L. Zeger, "Longitudinal data analysis using
   generalized linear models", Biometrika 73, 1986.
.. [FirthMenezes2004] D. Firth, R. X. de Menezes, "Quasi-variances", Biometrika 91,
  2004.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.base import clone

from preflearn.core.diagnosis import NotIdentifiedWarning, as_compared
from preflearn.core.validation import (
    Floats,
    check_count,
    check_query_ids,
    check_real,
    generator,
    raise_if_any,
    require,
)
from preflearn.matches import OutcomeWarning
from preflearn.ranking.base import positions
from preflearn.solvers.search import in_parallel
from preflearn.solvers.smooth_losses import DENSE

_BLOCK = 256  # rows whose covariance is formed at once
_TINY = np.finfo(np.float64).tiny
SOME_PAIRS = f"at most {DENSE}: ask for the errors of some pairs"


class Ranks(NamedTuple):
    """Ranks of items, 1 is the best, and an interval of each."""

    rank: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


class Uncertain(ABC):
    """A model with scores that have a covariance.

    Items are those of the fit; scores are less their mean.
    """

    @abstractmethod
    def _rows_and_scores(self, pairs: Any) -> tuple[Any, Floats]:
        """Features x (k, p) of items, or feature differences of pairs, and w·x (k,)."""

    @abstractmethod
    def _covariance_of(self, rows: Any) -> Floats:
        """The covariance of w·x for rows x (k, p) of features, (k, k)."""

    def _covariance(self, pairs: Any = None) -> tuple[Floats, Floats]:
        rows, scores = self._rows_and_scores(pairs)
        n = len(scores)
        require(n <= DENSE, n, "the number of items", SOME_PAIRS)
        return scores, self._covariance_of(rows)

    def moments(self, pairs: Any) -> tuple[Floats, Floats]:
        """Mean and variance of the difference of scores of each pair, shape (m,) both."""
        rows, mean = self._rows_and_scores(pairs)
        parts = [rows[k : k + _BLOCK] for k in range(0, rows.shape[0], _BLOCK)]
        return mean, np.concatenate(
            [np.diag(self._covariance_of(part)) for part in parts]
        )

    def standard_errors(self, pairs: Any = None) -> Floats:
        """Standard errors of the scores of the items, less their mean, or of the
        differences of pairs.

        Parameters
        ----------
        pairs : Pairs or array-like, optional
            In the form that the model is fitted to. Without them the scores of the
            items are meant.

        Returns
        -------
        errors : ndarray of shape (n,), or (m,)

        Raises
        ------
        ValueError
            If there are more than 5,000 items or features, and no pairs are named.
        """
        return np.sqrt(self.moments(pairs)[1])

    def interval(self, level: float = 0.95, pairs: Any = None) -> Floats:
        """Intervals that hold the scores, or the differences of pairs, with this
        probability each.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        pairs : Pairs or array-like, optional
            As in `standard_errors`.

        Returns
        -------
        interval : ndarray of shape (n, 2), or (m, 2)
            Lower and upper ends.
        """
        mean, variance = self.moments(pairs)
        ends = _quantile(level) * np.array([-1.0, 1.0])
        return mean[:, None] + np.sqrt(variance)[:, None] * ends

    def ranks(
        self,
        level: float = 0.95,
        n_draws: int = 10_000,
        random_state: Any = 0,
        pairs: Any = None,
    ) -> Ranks:
        """Ranks by score, and intervals of them: quantiles of the ranks of draws of all
        scores together.

        Parameters
        ----------
        level : float
            Probability of each interval.
        n_draws : int
        random_state : int or numpy Generator
        pairs : Pairs or array-like, optional
            As in `standard_errors`: then their differences are ranked, such as those of
            items from one item.

        Returns
        -------
        ranks : Ranks
            `rank`, `low` and `high`, each of shape (n,), or (m,).
        """
        _quantile(level)
        scores, covariance = self._covariance(pairs)
        values, vectors = np.linalg.eigh(covariance)
        noise = generator(random_state).standard_normal(
            (check_count(n_draws, "n_draws", 1), len(scores))
        )
        draws = scores + noise * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        tail = np.quantile(
            rankdata(-draws, axis=1), [(1 - level) / 2, (1 + level) / 2], axis=0
        )
        low, high = np.rint(tail).astype(np.int64)
        return Ranks(positions(scores), low, high)

    def quasi_variances(self, pairs: Any = None) -> Floats:
        """Numbers q of which q_i + q_j is nearly the variance of s_i - s_j, for each
        pair of items.

        So intervals of half width z sqrt(q_i) compare any two items by eye. They
        minimise the sum over pairs of (log(q_i + q_j) - log Var(s_i - s_j))²
        ([FirthMenezes2004]_); of three items they are exact. One may be negative, and
        has no such interval then, as it happens with few clusters. With pairs, as in
        `ranks`, their differences take the place of scores.

        Returns
        -------
        q : ndarray of shape (n,)

        Raises
        ------
        ValueError
            If there are fewer than three items, or two that are alike.
        """
        covariance = self._covariance(pairs)[1]
        n = len(covariance)
        own = np.diag(covariance)
        expected = "at least 3: of two items only the sum is determined"
        require(n > 2, n, "the number of items", expected)
        first, second = np.triu_indices(n, 1)
        variance = own[first] + own[second] - 2 * covariance[first, second]
        raise_if_any(
            variance <= 0, variance, "the variance of pairs", "items that are not alike"
        )
        logs = np.log(variance)

        def errors(q: Floats) -> Floats:
            return np.log(np.maximum(q[first] + q[second], _TINY)) - logs

        return least_squares(
            errors, own, x_scale=own, xtol=1e-12, ftol=1e-12, gtol=1e-12
        ).x


def bootstrap(
    model: Any,
    pairs: Any,
    y: ArrayLike,
    unit: ArrayLike | None = None,
    n_draws: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Floats:
    """Weights of refits to data of which units are drawn with replacement: quantiles of
    them are intervals.

    Parameters
    ----------
    model : Davidson or OrdinalComparison
    pairs, y :
        As in its `fit`.
    unit : array-like of shape (m,), optional
        What is drawn, by an id for each pair: judges, days, sets; pairs, if None.
    n_draws : int
    random_state : int or numpy Generator
    n_jobs : int, optional
        Processes; None: one, or as `joblib.parallel_config` says.

    Returns
    -------
    coef : ndarray of shape (n_draws, p)

    Examples
    --------
    >>> from preflearn.ranking import Davidson
    >>> pairs, y, judge = [[0, 1]] * 6, [1, 1, -1, 1, -1, 1], [1, 1, 2, 2, 3, 3]
    >>> bootstrap(Davidson(), pairs, y, judge, n_draws=50).shape
    (50, 2)
    """
    good = isinstance(model, Uncertain) and hasattr(model, "decision_function")
    require(good, model, "model", "Davidson or OrdinalComparison")
    rng = generator(random_state)
    m = len(as_compared(pairs))
    ids: Any = np.arange(m)
    if unit is not None:
        ids = check_query_ids(unit, m, "unit", "unit id", "pair")
    fitted: Any = clone(model).fit(pairs, y)  # pyright: ignore[reportAttributeAccessIssue]
    number = np.unique(ids, return_inverse=True)[1]
    n = int(number.max()) + 1
    counts = (
        np.bincount(rng.integers(n, size=n), minlength=n)[number]
        for _ in range(check_count(n_draws, "n_draws", 1))
    )
    calls = (delayed(_refitted_weights)(fitted, pairs, y, c) for c in counts)
    return np.array(in_parallel(calls, n_jobs))


def _refitted_weights(fitted: Any, pairs: Any, y: ArrayLike, counts: Any) -> Floats:
    labels = fitted._data[2]
    if not labels[counts > 0].any():  # ties alone: all scores are equal
        return 0 * fitted.coef_
    with warnings.catch_warnings():
        for category in (NotIdentifiedWarning, OutcomeWarning):  # the first fit warned
            warnings.simplefilter("ignore", category)
        model: Any = clone(fitted)
        return model.fit(pairs, y, sample_weight=counts).coef_


def _quantile(level: float) -> float:
    """The standard normal quantile at the upper end of a central interval."""
    check_real(level, "level", "a number between 0 and 1", 1e-9, 1 - 1e-9)
    return float(ndtri((1 + level) / 2))
