"""The posterior of a feature's score at any time, from the states at its own matches (section 3.3 of P4).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import numpy as np

from preflearn.checks import Floats
from preflearn.dynamics.blocks import AGE
from preflearn.dynamics.smoother import packed, states
from preflearn.dynamics.state_space import StateSpace


class ScoreProcess:
    """One feature's score, given its pseudo-observations; the prior where there are none.

    What the matches up to each time say, and what those after it say, is found once, in time proportional to
    their number. Then a forecast at any time takes one look-up and two transitions.

    Parameters
    ----------
    space : StateSpace
    time : ndarray of shape (n,)
        Of the feature's matches, ascending.
    alpha, beta : ndarray of shape (n,)
        Its pseudo-observations there.
    """

    def __init__(self, space: StateSpace, time: Floats, alpha: Floats, beta: Floats) -> None:
        self._space, self._time = space, time
        self._after, self._before = np.zeros((2, 0, space.size + space.size**2))
        if len(time):
            table = packed(*self._transitions(time[:-1], time[1:]))
            step = np.maximum(np.arange(len(time)) - 1, 0)
            initial = space.initial(time[:1])[0]
            self._after, self._before = states(alpha, beta, step, space.measurement, initial, table)

    def moments(self, time: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the score at some times.

        Parameters
        ----------
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
        h, n = self._space.measurement, len(self._time)
        place = np.searchsorted(self._time, time, side="right")  # how many matches are not later
        mean, covariance = np.zeros((len(time), len(h))), np.empty((len(time), len(h), len(h)))
        early, later = place == 0, place > 0
        if n > 0 and early.any() and any(AGE in block.varies for block in self._space.blocks):
            raise ValueError(
                f"a time is {time[early][0]:g}, before the feature's first match, at {self._time[0]:g}; "
                "expected times from it on, since the covariance has origin='first'"
            )
        covariance[early] = self._space.initial(time[early])
        if later.any():
            last = place[later] - 1
            A, Q = self._transitions(self._time[last], time[later])
            m, P = _split(self._after[last], len(h))
            mean[later] = np.einsum("kij,kj->ki", A, m)
            covariance[later] = A @ P @ A.swapaxes(1, 2) + Q
        k = covariance @ h
        score, variance = mean @ h, k @ h
        seen = place < n  # by later matches
        if seen.any():
            A, _ = self._transitions(time[seen], self._time[place[seen]])
            r, N = _split(self._before[place[seen]], len(h))
            k = np.einsum("kij,kj->ki", A, k[seen])
            score[seen] += np.einsum("ki,ki->k", k, r)
            variance[seen] -= np.einsum("ki,kij,kj->k", k, N, k)
        return score, np.maximum(variance, 0.0)

    def _transitions(self, start: Floats, end: Floats) -> tuple[Floats, Floats]:
        if AGE not in self._space.depends:
            return self._space.transitions(start, end)
        origin = self._time[0] if len(self._time) else np.inf
        return self._space.transitions(start, end, np.minimum(start, origin))


def _split(states: Floats, size: int) -> tuple[Floats, Floats]:
    return states[:, :size], states[:, size:].reshape(-1, size, size)
