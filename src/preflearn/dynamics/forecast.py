"""The posterior of scores at any time, from the states at the features' own matches (section 3.3 of P4).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids
from preflearn.dynamics.covariances.blocks import AGE
from preflearn.dynamics.covariances.state_space import StateSpace
from preflearn.dynamics.engine.schedule import distinct
from preflearn.dynamics.engine.smoother import packed, states
from preflearn.dynamics.engine.threads import njit_free

_TOGETHER = 100_000  # visits, or forecasts, whose matrices are made together


class ScoreProcesses:
    """Scores of features of one covariance, given their pseudo-observations; the prior where there are none.

    What the matches up to each time say, and what those after it say, is found once for a feature, when it is
    first asked for, in time proportional to their number. Then a forecast at any time takes one look-up and
    two transitions.

    Parameters
    ----------
    space : StateSpace
    start : ndarray of int, shape (M + 1,)
        Where the visits of each feature begin.
    time : ndarray of shape (n,)
        Of the visits, ascending within a feature.
    alpha, beta : ndarray of shape (n,)
        Their pseudo-observations.
    """

    def __init__(self, space: StateSpace, start: Ids, time: Floats, alpha: Floats, beta: Floats) -> None:
        self._space, self._start, self._time, self._sites = space, start, time, (alpha, beta)
        width = space.size + space.size**2
        self._after, self._before = np.empty((len(time), width)), np.empty((len(time), width))
        self._known = np.diff(start) == 0

    def moments(self, feature: Ids, time: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the scores of some features, each at a time.

        Parameters
        ----------
        feature : ndarray of int, shape (k,)
        time : ndarray of shape (k,)

        Returns
        -------
        mean, variance : ndarray of shape (k,)

        Raises
        ------
        ValueError
            If the prior is not defined at a time: before the origin of a Wiener process, or before the first
            match with origin="first".
        """
        self._learn(feature)
        mean, variance = np.empty(len(time)), np.empty(len(time))
        for begin in range(0, len(time), _TOGETHER):
            part = slice(begin, begin + _TOGETHER)
            mean[part], variance[part] = self._moments(feature[part], time[part])
        return mean, variance

    def _moments(self, feature: Ids, time: Floats) -> tuple[Floats, Floats]:
        h, first = self._space.measurement, self._start[feature]
        place = _places(self._start, self._time, feature, time)  # of the first visit that is later
        early, later, seen = place == first, place > first, place < self._start[feature + 1]
        if (early & seen).any() and any(AGE in block.varies for block in self._space.blocks):
            row = np.argmax(early & seen)
            raise ValueError(
                f"a time is {time[row]:g}, before the feature's first match, at "
                f"{self._time[first[row]]:g}; expected times from it on, since the covariance has "
                "origin='first'"
            )
        mean, covariance = np.zeros((len(time), len(h))), np.empty((len(time), len(h), len(h)))
        covariance[early] = self._space.initial(time[early])
        if later.any():
            last, begin = place[later] - 1, self._time[first[later]]
            A, Q = self._space.transitions(self._time[last], time[later], begin)
            m, P = _split(self._after[last], len(h))
            mean[later] = np.einsum("kij,kj->ki", A, m)
            covariance[later] = A @ P @ A.swapaxes(1, 2) + Q
        k = covariance @ h
        score, variance = mean @ h, k @ h
        if seen.any():  # by later matches
            begin = np.minimum(time[seen], self._time[first[seen]])
            A, _ = self._space.transitions(time[seen], self._time[place[seen]], begin)
            r, N = _split(self._before[place[seen]], len(h))
            k = np.einsum("kij,kj->ki", A, k[seen])
            score[seen] += np.einsum("ki,ki->k", k, r)
            variance[seen] -= np.einsum("ki,kij,kj->k", k, N, k)
        return score, np.maximum(variance, 0.0)

    def _learn(self, features: Ids) -> None:
        """The states of those features that were not asked for before, some visits after the other."""
        asked = np.zeros(len(self._known), dtype=np.bool_)
        asked[features] = True
        new = np.flatnonzero(asked & ~self._known)
        lengths = np.diff(self._start)[new]
        part = (np.cumsum(lengths) - lengths) // _TOGETHER
        for some in np.split(new, np.flatnonzero(np.diff(part)) + 1) if len(new) else []:
            lengths = np.diff(self._start)[some]
            start = np.concatenate([[0], np.cumsum(lengths)])
            visits = np.arange(start[-1]) + np.repeat(self._start[some] - start[:-1], lengths)
            time, first = self._time[visits], self._time[self._start[some]]
            later = np.ones(len(visits), dtype=np.bool_)
            later[start[:-1]] = False
            later = np.flatnonzero(later)
            steps = time[later - 1], time[later], np.repeat(first, lengths)[later]
            step = np.zeros(len(visits), dtype=np.int64)
            kinds, step[later] = distinct(self._space.keys(*steps))
            table = packed(*self._space.transitions(*(times[kinds] for times in steps)))
            alpha, beta = (site[visits] for site in self._sites)
            model = self._space.measurement, self._space.initial(first), table
            self._after[visits], self._before[visits] = states(alpha, beta, start, step, *model)
        self._known[new] = True


@njit_free
def _places(start, time, feature, at):
    """Where in `time` the first visit of each feature after a time is, or the end of its visits."""
    found = np.empty(len(at), dtype=np.int64)
    for k in range(len(at)):
        low, high = start[feature[k]], start[feature[k] + 1]
        while low < high:
            middle = (low + high) // 2
            if time[middle] <= at[k]:
                low = middle + 1
            else:
                high = middle
        found[k] = low
    return found


def _split(states: Floats, size: int) -> tuple[NDArray, NDArray]:
    return states[:, :size], states[:, size:].reshape(-1, size, size)
