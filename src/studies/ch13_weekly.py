"""Forecasts week by week: of each week from all matches before it (section 4.3.1 of [Maystre2019]_).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from preflearn.checks import LARGEST, Floats, as_real, check_real, require
from preflearn.dynamics.choosing.evidence import checked_outcomes
from preflearn.dynamics.choosing.parameters import leaves
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.likelihoods.normal import Gaussian
from preflearn.dynamics.model import DynamicComparisons
from preflearn.matches import Matches


def weeks_of(matches: Matches, begin: float, length: float) -> list[slice]:
    """The rows of the matches from a time on, a week of equal length each; empty weeks are left out.

    Parameters
    ----------
    matches : Matches
    begin : float
        When the first week begins, in the unit of `Matches.time`.
    length : float
        Of a week, in the same unit; above 0.

    Returns
    -------
    list of slice
        One after the other; the first begins with the first match at `begin` or later.

    Raises
    ------
    ValueError
        If the length is not positive, or no match is at `begin` or later; on what are no matches.

    Examples
    --------
    >>> weeks_of(Matches([[1, -1]] * 4, [0, 3, 4, 20], "AB"), begin=2, length=7)
    [slice(1, 3, None), slice(3, 4, None)]
    """
    require(isinstance(matches, Matches) and len(matches) > 0, matches, "matches", "Matches, at least one")
    begin = check_real(begin, "begin", "a time", -LARGEST, LARGEST)
    require(0 < as_real(length) < np.inf, length, "length", "a positive number")
    first = int(np.searchsorted(matches.time, begin))
    if first == len(matches):
        raise ValueError(f"begin is {begin:g}, after the last match; expected at most {matches.time[-1]:g}")
    week = np.floor((matches.time[first:] - begin) / length)
    cuts = first + 1 + np.flatnonzero(np.diff(week))
    return [slice(low, high) for low, high in pairwise([first, *cuts.tolist(), len(matches)])]


def weekly_moments(
    model: DynamicComparisons, matches: Matches, y: ArrayLike, weeks: Sequence[slice]
) -> tuple[Floats, Floats]:
    """Mean and variance of the score differences of each week, by a model of all matches before it.

    Parameters
    ----------
    model : DynamicComparisons
        Fitted anew for each week; it is not changed.
    matches : Matches
    y : array-like of shape (N,)
    weeks : sequence of slice
        As of `weeks_of`: rows of the matches, one week after the other. Matches have to come before the
        first; between two weeks there may be more, which are not forecast.

    Returns
    -------
    mean, variance : ndarray
        One value a match of the weeks.

    Raises
    ------
    ValueError
        As `DynamicComparisons.fit`; on weeks that overlap, are not in order, or begin with the first match.
    """
    y = checked_outcomes(model, matches, y)
    _check_weeks(weeks, len(matches))
    found = []
    for week in weeks:
        fresh: Any = clone(model)
        found.append(fresh.fit(matches[: week.start], y[: week.start]).moments(matches[week]))
    mean, variance = (np.concatenate(part) for part in zip(*found, strict=True))
    return mean, variance


def exact_weekly_moments(
    covariance: Covariance, variance: float, matches: Matches, y: ArrayLike, weeks: Sequence[slice]
) -> tuple[Floats, Floats]:
    """`weekly_moments` of the exact posterior, where outcomes are Gaussian (footnote 5 of [Maystre2019]_).

    One Kalman filter runs over the states of all features together. With M features of state size K and rows
    of few entries it takes time O(N (MK)² K), where the Gram matrix of all outcomes takes O(N³).

    Parameters
    ----------
    covariance : Covariance
        Of every feature, which all start at one time: its origin can't be "first".
    variance : float
        Of an outcome, given the scores; above 0.
    matches, y, weeks
        As of `weekly_moments`; y (N,) are numbers.

    Returns
    -------
    mean, variance : ndarray
        One value a match of the weeks.

    Raises
    ------
    ValueError
        If the variance is not positive, y is not finite, or an origin of the covariance is "first"; on weeks
        that overlap, are not in order, or begin with the first match.
    """
    require(isinstance(covariance, Covariance), covariance, "covariance", "a covariance, such as Constant()")
    origins = [leaf.get("origin") for leaf in leaves(covariance.describe())]
    require("first" not in origins, "first", "an origin of the covariance", "a time, one for all features")
    likelihood = Gaussian(variance)
    y = checked_outcomes(DynamicComparisons(covariance, likelihood), matches, y)
    _check_weeks(weeks, len(matches))
    joint, learned, found = _Joint(covariance, matches), 0, []
    for week in weeks:
        for row in range(learned, week.start):
            joint.learn(row, y[row], likelihood.variance)
        ahead, learned = joint.copy(), week.start
        found += [ahead.forecast(row) for row in range(week.start, week.stop)]
    mean, spread = np.transpose(found)
    return mean, spread


class _Joint:
    """Mean and covariance of all states at one time."""

    def __init__(self, covariance: Covariance, matches: Matches) -> None:
        space = covariance.state_space()
        self._space, self._time = space, matches.time
        self._rows = np.kron(matches.design.toarray(), space.measurement)
        self._eye = np.eye(len(matches.features))
        self._now = matches.time[0]
        self._mean = np.zeros(self._rows.shape[1])
        self._cov = np.kron(self._eye, space.initial(matches.time[:1])[0])

    def copy(self) -> _Joint:
        new = object.__new__(_Joint)
        new.__dict__.update(self.__dict__)  # arrays are replaced, never changed
        return new

    def forecast(self, row: int) -> tuple[float, float]:
        """Of the score difference of a match, at its time."""
        if self._time[row] > self._now:
            times = np.array([self._now]), self._time[row : row + 1]
            A, Q = (part[0] for part in self._space.transitions(*times))
            self._mean = (self._mean.reshape(-1, len(A)) @ A.T).ravel()
            self._cov = _moved(A, _moved(A, self._cov).T) + np.kron(self._eye, Q)
            self._now = self._time[row]
        x = self._rows[row]
        return float(x @ self._mean), float(x @ self._cov @ x)

    def learn(self, row: int, outcome: float, noise: float) -> None:
        mean, variance = self.forecast(row)
        told = self._cov @ self._rows[row]
        self._mean = self._mean + told * (outcome - mean) / (variance + noise)
        self._cov = self._cov - np.outer(told, told) / (variance + noise)


def _moved(A: Floats, matrix: Floats) -> Floats:
    """A times each block of rows: the product with a block-diagonal matrix, without its zeros."""
    return (A @ matrix.reshape(-1, len(A), len(matrix))).reshape(matrix.shape)


def _check_weeks(weeks: Sequence[slice], n: int) -> None:
    """Raise unless they are slices of n rows, each after the one before; the first is not at row 0."""
    require(isinstance(weeks, Sequence) and len(weeks) > 0, weeks, "weeks", "a list of slices, at least one")
    least = 1
    for k, week in enumerate(weeks):
        good = isinstance(week, slice) and week.step in (None, 1)
        good = good and all(isinstance(row, int | np.integer) for row in (week.start, week.stop))
        expected = f"a slice of rows from {least} to {n}: with matches before it, after the week before"
        require(good and least <= week.start < week.stop <= n, week, f"weeks[{k}]", expected)
        least = week.stop
