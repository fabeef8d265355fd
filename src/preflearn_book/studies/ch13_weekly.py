"""Forecasts of each week from all matches before it (section 4.3.1 of
[Maystre2019]_).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from preflearn.core.validation import Floats
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.model import DynamicComparisons
from preflearn.matches import Matches


def weeks_of(matches: Matches, begin: float, length: float) -> list[slice]:
    """The rows of the matches of each week from a given time on, without empty weeks.

    Parameters
    ----------
    matches : Matches
    begin : float
        Start of the first week, in the unit of `Matches.time`.
    length : float
        Length of a week, in the same unit; above 0.

    Returns
    -------
    list of slice
        Consecutive slices. The first starts with the first match at `begin` or later.

    Examples
    --------
    >>> weeks_of(Matches([[1, -1]] * 4, [0, 3, 4, 20], "AB"), begin=2, length=7)
    [slice(1, 3, None), slice(3, 4, None)]
    """
    first = int(np.searchsorted(matches.time, begin))
    week = np.floor((matches.time[first:] - begin) / length)
    cuts = first + 1 + np.flatnonzero(np.diff(week))
    ends = [first, *cuts.tolist(), len(matches)]
    return [slice(low, high) for low, high in pairwise(ends)]


def weekly_moments(
    model: DynamicComparisons, matches: Matches, y: NDArray, weeks: Sequence[slice]
) -> tuple[Floats, Floats]:
    """Mean and variance of score differences, forecast from all matches before each week.

    Parameters
    ----------
    model : DynamicComparisons
        Model that is fitted again for each week. The object itself is not changed.
    matches : Matches
    y : ndarray of shape (N,)
    weeks : sequence of slice
        Rows of the matches of consecutive weeks, as returned by `weeks_of`. There must
        be matches before the first week. Matches between two weeks are not forecast.

    Returns
    -------
    mean, variance : ndarray
        One value per match of the weeks.
    """
    moments = []
    for week in weeks:
        fresh: Any = clone(model)
        fresh.fit(matches[: week.start], y[: week.start])
        moments.append(fresh.moments(matches[week]))
    mean, variance = np.hstack(moments)
    return mean, variance


def exact_weekly_moments(
    covariance: Covariance,
    variance: float,
    matches: Matches,
    y: NDArray,
    weeks: Sequence[slice],
) -> tuple[Floats, Floats]:
    """`weekly_moments` of the exact posterior for Gaussian outcomes.

    See footnote 5 of [Maystre2019]_. One Kalman filter processes the states of all
    features together. With M features of state size K and few entries per row, it takes
    O(N (MK)² K) time. With the Gram matrix of all outcomes, it would take O(N³).

    Parameters
    ----------
    covariance : Covariance
        Covariance of each feature. All features start at the same time, so its origin
        cannot be "first".
    variance : float
        Variance of an outcome given the scores; above 0.
    matches, y, weeks
        As in `weekly_moments`, where y (N,) are numbers.

    Returns
    -------
    mean, variance : ndarray
        One value per match of the weeks.
    """
    joint = _Joint(covariance, matches)
    learned = 0
    moments = []
    for week in weeks:
        for row in range(learned, week.start):
            joint.learn(row, y[row], variance)
        learned = week.start
        # A shallow copy is enough, since arrays are replaced and never changed.
        forecaster = copy(joint)
        moments += [forecaster.forecast(row) for row in range(week.start, week.stop)]
    mean, variances = np.transpose(moments)
    return mean, variances


class _Joint:
    """Mean and covariance of all states at one time."""

    def __init__(self, covariance: Covariance, matches: Matches) -> None:
        space = covariance.state_space()
        self._space = space
        self._time = matches.time
        self._rows = np.kron(matches.design.toarray(), space.measurement)
        self._eye = np.eye(len(matches.features))
        self._now = matches.time[0]
        self._mean = np.zeros(self._rows.shape[1])
        self._cov = np.kron(self._eye, space.initial(matches.time[:1])[0])

    def forecast(self, row: int) -> tuple[float, float]:
        """Mean and variance of the score difference of a match, at its time."""
        if self._time[row] > self._now:
            times = np.array([self._now]), self._time[row : row + 1]
            A, Q = (part[0] for part in self._space.transitions(*times))
            self._mean = (self._mean.reshape(-1, len(A)) @ A.T).ravel()
            self._cov = _multiply_blocks(A, _multiply_blocks(A, self._cov).T) + np.kron(
                self._eye, Q
            )
            self._now = self._time[row]
        x = self._rows[row]
        return float(x @ self._mean), float(x @ self._cov @ x)

    def learn(self, row: int, outcome: float, noise: float) -> None:
        mean, variance = self.forecast(row)
        covariance = self._cov @ self._rows[row]
        self._mean = self._mean + covariance * (outcome - mean) / (variance + noise)
        downdate = np.outer(covariance, covariance) / (variance + noise)
        self._cov = self._cov - downdate


def _multiply_blocks(A: Floats, matrix: Floats) -> Floats:
    """The product of a block-diagonal matrix with a matrix, without using its zeros."""
    return (A @ matrix.reshape(-1, len(A), len(matrix))).reshape(matrix.shape)
