"""The posterior of scores at any time, from the states at the features' own matches (section 3.3 of P4).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids
from preflearn.dynamics.covariances.blocks import AGE
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.covariances.state_space import StateSpace
from preflearn.dynamics.engine.schedule import schedule_of
from preflearn.matches import Matches

_TOGETHER = 100_000  # forecasts whose matrices are made together


class Posterior:
    """Scores of features, given their pseudo-observations; the prior where there are none.

    What the matches up to each time say, and what those after it say, is found once, in time proportional to
    their number. Then a forecast at any time takes one look-up and two transitions.

    Parameters
    ----------
    prior : Prior
    matches : Matches
    sites : ndarray of shape (E, 2)
        alpha and beta of each entry of the design.

    Attributes
    ----------
    column : dict
        That of each feature of the matches, by name.
    """

    def __init__(self, prior: Prior, matches: Matches, sites: Floats) -> None:
        self._prior, n = prior, len(matches.features)
        schedule = schedule_of(matches, prior)
        entry, _, start = schedule.visits
        source = schedule.entry_order[entry]
        self._start = np.append(start, start[-1])  # the last one was in no match
        self.column = {name: k for k, name in enumerate(matches.features)}
        self._rank = np.append(schedule.rank, n)
        self._time = np.repeat(matches.time, np.diff(matches.design.indptr))[source]
        self._visits = np.repeat(np.arange(n), np.diff(start)) + 1j * self._time  # rank and time, ascending
        width = max(space.size * (space.size + 3) // 2 for space in prior.spaces)
        self._after, self._before = np.empty((2, len(entry), width))
        entries = np.pad(sites[schedule.entry_order], [(0, 0), (0, 2)])
        for group in schedule.groups:
            for features in group.chunks:
                group.smooth(entries, schedule.visits, features, False, self._after, self._before)

    def moments(self, names: tuple[Hashable, ...], which: Ids, time: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the scores of some features, each at a time.

        Parameters
        ----------
        names : tuple
            Of features, also of those that were in no match.
        which : ndarray of int, shape (k,)
            Which of them.
        time : ndarray of shape (k,)

        Returns
        -------
        mean, variance : ndarray of shape (k,)

        Raises
        ------
        ValueError
            If the prior is not defined at a time: before the origin of a Wiener process, or before the first
            match with origin="first"; if a feature that was in no match has no covariance.
        """
        column = np.array([self.column.get(name, -1) for name in names])
        space_of = self._prior.of(names)[which]
        rank = self._rank[column][which]
        mean, variance = np.empty(len(time)), np.empty(len(time))
        for space in np.unique(space_of):
            rows = np.flatnonzero(space_of == space)
            for part in np.split(rows, range(_TOGETHER, len(rows), _TOGETHER)):
                mean[part], variance[part] = self._moments(space, rank[part], time[part])
        return mean, variance

    def _moments(self, space: int, rank: Ids, time: Floats) -> tuple[Floats, Floats]:
        model: StateSpace = self._prior.spaces[space]
        h, first = model.measurement, self._start[rank]
        place = np.searchsorted(self._visits, rank + 1j * time, side="right")  # of the first that is later
        early, later, seen = place == first, place > first, place < self._start[rank + 1]
        if (early & seen).any() and any(AGE in block.varies for block in model.blocks):
            row = np.argmax(early & seen)
            raise ValueError(
                f"a time is {time[row]:g}, before the feature's first match, at "
                f"{self._time[first[row]]:g}; expected times from it on, since the covariance has "
                "origin='first'"
            )
        mean, covariance = np.zeros((len(time), len(h))), np.empty((len(time), len(h), len(h)))
        covariance[early] = model.initial(time[early])
        if later.any():
            last, begin = place[later] - 1, self._time[first[later]]
            A, Q = model.transitions(self._time[last], time[later], begin)
            m, P = _split(self._after[last], len(h))
            mean[later] = np.einsum("kij,kj->ki", A, m)
            covariance[later] = A @ P @ A.swapaxes(1, 2) + Q
        k = covariance @ h
        score, variance = mean @ h, k @ h
        if seen.any():  # by later matches
            begin = np.minimum(time[seen], self._time[first[seen]])
            A, _ = model.transitions(time[seen], self._time[place[seen]], begin)
            r, N = _split(self._before[place[seen]], len(h))
            k = np.einsum("kij,kj->ki", A, k[seen])
            score[seen] += np.einsum("ki,ki->k", k, r)
            variance[seen] -= np.einsum("ki,kij,kj->k", k, N, k)
        return score, np.maximum(variance, 0.0)


def _split(states: Floats, size: int) -> tuple[NDArray, NDArray]:
    """Vectors and symmetric matrices, of rows that `smoother` wrote."""
    rows, columns = np.triu_indices(size, m=size + 1)
    both = np.empty((len(states), size + 1, size + 1))
    both[:, columns, rows] = both[:, rows, columns] = states[:, : len(rows)]
    return both[:, :size, size], both[:, :size, :size]
